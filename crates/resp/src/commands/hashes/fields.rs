//! Fields of hashes.

use muesli::SmallBytes;

use crate::call::{Answer, CommandCall, wrong_number};
use crate::keyspace::header::ValueKind;
use crate::keyspace::rows::ContentPart;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

async fn field(call: &CommandCall<'_>) -> Result<Option<SmallBytes>, CommandStop> {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Hash).await? {
        Some(id) => call.scope.member(id, call.arg(2)).await,
        None => Ok(None),
    }
}

pub(super) async fn hget(call: &CommandCall<'_>) -> Answer {
    Ok(field(call).await?.map_or(RespReply::Null, RespReply::Bulk))
}

pub(super) async fn hexists(call: &CommandCall<'_>) -> Answer {
    Ok(RespReply::flag(field(call).await?.is_some()))
}

pub(super) async fn hstrlen(call: &CommandCall<'_>) -> Answer {
    Ok(RespReply::count(field(call).await?.map_or(0, |it| it.len())))
}

pub(super) async fn hmget(call: &CommandCall<'_>) -> Answer {
    let id = call.scope.rows(call.db, call.arg(1), ValueKind::Hash).await?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    for field in call.args(2) {
        call.check_reply(bytes)?;
        let value = match id {
            Some(id) => call.scope.member(id, field).await?,
            None => None,
        };
        let value = value.map_or(RespReply::Null, RespReply::Bulk);
        bytes += value.size();
        found.push(value);
    }
    Ok(RespReply::Array(found))
}

/// Sets the fields of a command; how many are new.
async fn set_fields(call: &CommandCall<'_>, name: &str) -> Result<usize, CommandStop> {
    if call.len() % 2 == 1 {
        return CommandStop::refused(wrong_number(name));
    }
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let id = call.scope.collection(&mut entry, ValueKind::Hash).await?;
    let mut new = 0;
    for at in (2..call.len()).step_by(2) {
        let value = SmallBytes::new(call.arg(at + 1));
        new += usize::from(call.scope.put_member(id, call.arg(at), value).await?.is_none());
    }
    call.scope.changed(&entry).await?;
    Ok(new)
}

pub(super) async fn hset(call: &CommandCall<'_>) -> Answer {
    Ok(RespReply::count(set_fields(call, "hset").await?))
}

pub(super) async fn hmset(call: &CommandCall<'_>) -> Answer {
    set_fields(call, "hmset").await?;
    Ok(RespReply::OK)
}

pub(super) async fn hsetnx(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    if let Some(id) = entry.rows(ValueKind::Hash)?
        && call.scope.member(id, call.arg(2)).await?.is_some()
    {
        return Ok(RespReply::Integer(0));
    }
    let id = call.scope.collection(&mut entry, ValueKind::Hash).await?;
    call.scope.put_member(id, call.arg(2), SmallBytes::new(call.arg(3))).await?;
    call.scope.changed(&entry).await?;
    Ok(RespReply::Integer(1))
}

pub(super) async fn hdel(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let Some(id) = entry.rows(ValueKind::Hash)? else { return Ok(RespReply::Integer(0)) };
    let mut gone = 0;
    for field in call.args(2) {
        gone += usize::from(call.scope.take_member(id, field).await?.is_some());
    }
    if gone > 0 {
        call.scope.changed(&entry).await?;
        call.scope.drop_if_empty(&mut entry, id, ContentPart::Member).await?;
    }
    Ok(RespReply::count(gone))
}

pub(super) async fn hincrby(call: &CommandCall<'_>) -> Answer {
    let change = call.integer(3)?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let before = match entry.rows(ValueKind::Hash)? {
        Some(id) => call.scope.member(id, call.arg(2)).await?,
        None => None,
    };
    let before = before.map_or(Some(0), |it| numbers::integer(it.as_slice()));
    let Some(before) = before else {
        return CommandStop::refused("ERR hash value is not an integer");
    };
    let Some(after) = before.checked_add(change) else {
        return CommandStop::refused(texts::OVERFLOW);
    };
    let id = call.scope.collection(&mut entry, ValueKind::Hash).await?;
    let text = SmallBytes::new(itoa::Buffer::new().format(after).as_bytes());
    call.scope.put_member(id, call.arg(2), text).await?;
    call.scope.changed(&entry).await?;
    Ok(RespReply::Integer(after))
}

pub(super) async fn hincrbyfloat(call: &CommandCall<'_>) -> Answer {
    match numbers::double(call.arg(3)) {
        None => return CommandStop::refused(texts::NO_FLOAT),
        Some(change) if !change.is_finite() => {
            return CommandStop::refused("ERR value is NaN or Infinity");
        }
        Some(_) => {}
    }
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let before = match entry.rows(ValueKind::Hash)? {
        Some(id) => call.scope.member(id, call.arg(2)).await?,
        None => None,
    };
    let before = before.unwrap_or(SmallBytes::new(b"0"));
    if numbers::double(before.as_slice()).is_none() {
        return CommandStop::refused("ERR hash value is not a float");
    }
    let Some(sum) = numbers::decimal_sum(before.as_slice(), call.arg(3)) else {
        return CommandStop::refused("ERR increment would produce NaN or Infinity");
    };
    let id = call.scope.collection(&mut entry, ValueKind::Hash).await?;
    call.scope.put_member(id, call.arg(2), SmallBytes::new(sum.as_bytes())).await?;
    call.scope.changed(&entry).await?;
    Ok(RespReply::bulk(sum))
}
