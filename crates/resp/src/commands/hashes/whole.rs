//! Whole hashes.

use crate::call::{Answer, CommandCall};
use crate::commands::iterating::{Iteration, random_count, repeated};
use crate::keyspace::header::ValueKind;
use crate::keyspace::members::{CHOSEN_AMONG, Member};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

async fn all(call: &CommandCall<'_>) -> Result<Vec<Member>, CommandStop> {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Hash).await? {
        Some(id) => call.scope.members(id).await,
        None => Ok(Vec::new()),
    }
}

pub(super) async fn hgetall(call: &CommandCall<'_>) -> Answer {
    let all = all(call).await?.into_iter();
    Ok(RespReply::Map(
        all.map(|(field, value)| (RespReply::Bulk(field), RespReply::Bulk(value))).collect(),
    ))
}

pub(super) async fn hkeys(call: &CommandCall<'_>) -> Answer {
    Ok(RespReply::Array(all(call).await?.into_iter().map(|it| RespReply::Bulk(it.0)).collect()))
}

pub(super) async fn hvals(call: &CommandCall<'_>) -> Answer {
    Ok(RespReply::Array(all(call).await?.into_iter().map(|it| RespReply::Bulk(it.1)).collect()))
}

pub(super) async fn hlen(call: &CommandCall<'_>) -> Answer {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Hash).await? {
        Some(id) => Ok(RespReply::Integer(call.scope.members_count(id).await?)),
        None => Ok(RespReply::Integer(0)),
    }
}

pub(super) async fn hscan(call: &CommandCall<'_>) -> Answer {
    let iteration = Iteration::read(call, 2, false)?;
    let id = call.scope.rows(call.db, call.arg(1), ValueKind::Hash).await?;
    let (next, found) = match id {
        Some(id) => call.scope.members_from(id, iteration.cursor, iteration.count).await?,
        None => (0, Vec::new()),
    };
    let found = found.into_iter().filter(|(field, _)| iteration.holds(field.as_slice()));
    let pairs = found.flat_map(|(field, value)| [RespReply::Bulk(field), RespReply::Bulk(value)]);
    Ok(Iteration::page(next, pairs.collect()))
}

pub(super) async fn hrandfield(call: &CommandCall<'_>) -> Answer {
    let with_values = match call.len() {
        4 if call.is(3, "WITHVALUES") => true,
        2 | 3 => false,
        _ => return CommandStop::refused(texts::SYNTAX),
    };
    let count = if call.len() > 2 { Some(call.integer(2)?) } else { None };
    if count.is_some_and(|it| it.unsigned_abs() > i64::MAX as u64 / 2 && with_values) {
        return CommandStop::refused("ERR value is out of range");
    }
    let id = call.scope.rows(call.db, call.arg(1), ValueKind::Hash).await?;
    let (count, repeats) = match count {
        None => {
            let Some(id) = id else { return Ok(RespReply::Null) };
            let found = call.scope.random_members(id, 1).await?;
            return Ok(found
                .into_iter()
                .next()
                .map_or(RespReply::Null, |it| RespReply::Bulk(it.0)));
        }
        Some(count) => random_count(count)?,
    };
    let Some(id) = id else { return Ok(RespReply::Array(Vec::new())) };
    let mut chosen = Vec::new();
    let found = match repeats {
        false => call.scope.random_members(id, count).await?,
        true => {
            let among = call.scope.random_members(id, CHOSEN_AMONG).await?;
            repeated(call, &among, count)?
        }
    };
    for (field, value) in found {
        match (with_values, call.is_resp3()) {
            (false, _) => chosen.push(RespReply::Bulk(field)),
            (true, true) => {
                chosen.push(RespReply::Array(vec![RespReply::Bulk(field), RespReply::Bulk(value)]));
            }
            (true, false) => chosen.extend([RespReply::Bulk(field), RespReply::Bulk(value)]),
        }
    }
    Ok(RespReply::Array(chosen))
}
