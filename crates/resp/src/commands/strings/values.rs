//! Whole strings.

use crate::call::{Answer, CommandCall, wrong_number};
use crate::commands::times::Unit;
use crate::keyspace::header::KeyHeader;
use crate::keyspace::scope::KeyHandle;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

pub(super) async fn get(call: &CommandCall<'_>) -> Answer {
    let found = call.scope.string(call.db, call.arg(1)).await?;
    Ok(found.map_or(RespReply::Null, RespReply::Bulk))
}

pub(super) async fn mget(call: &CommandCall<'_>) -> Answer {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for key in call.args(1) {
        call.check_reply(bytes)?;
        found.push(match call.scope.string(call.db, key).await {
            Ok(text) => text.map_or(RespReply::Null, RespReply::Bulk),
            Err(CommandStop::Refused(_)) => RespReply::Null, // No string.
            Err(other) => return Err(other),
        });
        bytes += found.last().map_or(0, RespReply::size);
    }
    Ok(RespReply::Array(found))
}

/// The options of SET.
#[derive(Default)]
struct SetOptions {
    only_new: bool,
    only_old: bool,
    get: bool,
    keep: bool,
    expires: Option<u64>,
}

impl SetOptions {
    fn read(call: &CommandCall<'_>) -> Result<SetOptions, CommandStop> {
        let mut options = SetOptions::default();
        let mut at = 3;
        while at < call.len() {
            let unit = Unit::of_option(call.arg(at));
            match unit {
                Some(unit) if !options.keep && options.expires.is_none() => {
                    at += 1;
                    options.expires = Some(unit.expiry(call, at)?);
                }
                _ if call.is(at, "NX") && !options.only_old => options.only_new = true,
                _ if call.is(at, "XX") && !options.only_new => options.only_old = true,
                _ if call.is(at, "GET") => options.get = true,
                _ if call.is(at, "KEEPTTL") && options.expires.is_none() => options.keep = true,
                _ => return CommandStop::refused(texts::SYNTAX),
            }
            at += 1;
        }
        Ok(options)
    }
}

pub(super) async fn set(call: &CommandCall<'_>) -> Answer {
    let options = SetOptions::read(call)?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let before = match options.get {
        true => call
            .scope
            .string_of(entry.found.as_ref())
            .await?
            .map_or(RespReply::Null, RespReply::Bulk),
        false => RespReply::Null,
    };
    let is_there = entry.found.is_some();
    if options.only_new && is_there || options.only_old && !is_there {
        return Ok(before);
    }
    let expires = if options.keep { entry.expires() } else { options.expires };
    call.scope.set_string(&mut entry, call.arg(2), expires).await?;
    Ok(if options.get { before } else { RespReply::OK })
}

pub(super) async fn setnx(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    if entry.found.is_some() {
        return Ok(RespReply::Integer(0));
    }
    call.scope.set_string(&mut entry, call.arg(2), None).await?;
    Ok(RespReply::Integer(1))
}

pub(super) async fn setex(call: &CommandCall<'_>) -> Answer {
    set_expiring(call, Unit::EX).await
}

pub(super) async fn psetex(call: &CommandCall<'_>) -> Answer {
    set_expiring(call, Unit::PX).await
}

async fn set_expiring(call: &CommandCall<'_>, unit: Unit) -> Answer {
    let expires = unit.expiry(call, 2)?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    call.scope.set_string(&mut entry, call.arg(3), Some(expires)).await?;
    Ok(RespReply::OK)
}

/// A key, and its string as a reply.
async fn taken(call: &CommandCall<'_>) -> Result<(KeyHandle, RespReply), CommandStop> {
    let entry = call.scope.entry(call.db, call.arg(1)).await?;
    let text = call.scope.string_of(entry.found.as_ref()).await?;
    Ok((entry, text.map_or(RespReply::Null, RespReply::Bulk)))
}

pub(super) async fn getset(call: &CommandCall<'_>) -> Answer {
    let (mut entry, before) = taken(call).await?;
    call.scope.set_string(&mut entry, call.arg(2), None).await?;
    Ok(before)
}

pub(super) async fn getdel(call: &CommandCall<'_>) -> Answer {
    let (mut entry, before) = taken(call).await?;
    call.scope.remove(&mut entry).await?;
    Ok(before)
}

pub(super) async fn getex(call: &CommandCall<'_>) -> Answer {
    let expires = match call.len() {
        2 => None,
        3 if call.is(2, "PERSIST") => Some(None),
        4 => match Unit::of_option(call.arg(2)) {
            Some(unit) => Some(Some(unit.expiry(call, 3)?)),
            None => return CommandStop::refused(texts::SYNTAX),
        },
        _ => return CommandStop::refused(texts::SYNTAX),
    };
    let (mut entry, before) = taken(call).await?;
    if let (Some(expires), Some(header)) = (expires, entry.found.clone())
        && header.expires != expires
    {
        call.scope.set(&mut entry, KeyHeader { expires, ..header }).await?;
    }
    Ok(before)
}

/// # Errors
/// A key has no value.
fn check_pairs(call: &CommandCall<'_>, name: &str) -> Result<(), CommandStop> {
    if call.len().is_multiple_of(2) { CommandStop::refused(wrong_number(name)) } else { Ok(()) }
}

async fn set_all(call: &CommandCall<'_>) -> Result<(), CommandStop> {
    for at in (1..call.len()).step_by(2) {
        let mut entry = call.scope.entry(call.db, call.arg(at)).await?;
        call.scope.set_string(&mut entry, call.arg(at + 1), None).await?;
    }
    Ok(())
}

pub(super) async fn mset(call: &CommandCall<'_>) -> Answer {
    check_pairs(call, "mset")?;
    set_all(call).await?;
    Ok(RespReply::OK)
}

pub(super) async fn msetnx(call: &CommandCall<'_>) -> Answer {
    check_pairs(call, "msetnx")?;
    for at in (1..call.len()).step_by(2) {
        if call.scope.header(call.db, call.arg(at)).await?.is_some() {
            return Ok(RespReply::Integer(0));
        }
    }
    set_all(call).await?;
    Ok(RespReply::Integer(1))
}
