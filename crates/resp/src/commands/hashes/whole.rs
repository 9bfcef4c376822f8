//! Whole hashes.

use crate::call::{Answer, CommandCall};
use crate::commands::iterating::{Iteration, random_members};
use crate::keyspace::header::ValueKind;
use crate::keyspace::members::Member;
use crate::keyspace::stop::CommandStop;
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
    let several = |found: Vec<Member>, with_values| {
        let replies = found.into_iter().flat_map(|(field, value)| {
            let (field, value) = (RespReply::Bulk(field), RespReply::Bulk(value));
            match (with_values, call.is_resp3()) {
                (false, _) => vec![field],
                (true, true) => vec![RespReply::Array(vec![field, value])],
                (true, false) => vec![field, value],
            }
        });
        RespReply::Array(replies.collect())
    };
    random_members(call, ValueKind::Hash, Some("WITHVALUES"), several).await
}
