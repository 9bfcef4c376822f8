//! Members with their scores, as replies; and random ones.

use crate::call::{Answer, CommandCall};
use crate::commands::iterating::{Iteration, random_count, repeated};
use crate::keyspace::header::ValueKind;
use crate::keyspace::members::CHOSEN_AMONG;
use crate::keyspace::sorted::{Scored, score_in};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers::double_text;
use crate::protocol::reply::RespReply;

/// Members, with their scores or without.
pub(super) fn scored_replies(
    call: &CommandCall<'_>,
    found: Vec<Scored>,
    with_scores: bool,
) -> RespReply {
    let mut replies = Vec::new();
    for (member, score) in found {
        let member = RespReply::Bulk(member);
        match (with_scores, call.is_resp3()) {
            (false, _) => replies.push(member),
            (true, true) => replies.push(RespReply::Array(vec![member, RespReply::Double(score)])),
            (true, false) => replies.extend([member, RespReply::Double(score)]),
        }
    }
    RespReply::Array(replies)
}

/// Keeps members under the first key of the command.
pub(super) async fn store(call: &CommandCall<'_>, members: Vec<Scored>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    call.scope.remove(&mut entry).await?;
    if members.is_empty() {
        return Ok(RespReply::Integer(0));
    }
    let id = call.scope.collection(&mut entry, ValueKind::Sorted).await?;
    for (member, score) in &members {
        call.scope.put_score(id, member.as_slice(), *score).await?;
    }
    call.scope.is_ready(&entry);
    Ok(RespReply::count(members.len()))
}

pub(super) async fn zscan(call: &CommandCall<'_>) -> Answer {
    let iteration = Iteration::read(call, 2, false)?;
    let (next, found) = match call.scope.rows(call.db, call.arg(1), ValueKind::Sorted).await? {
        Some(id) => call.scope.members_from(id, iteration.cursor, iteration.count).await?,
        None => (0, Vec::new()),
    };
    let found = found.into_iter().filter(|(member, _)| iteration.holds(member.as_slice()));
    let pairs = found.flat_map(|(member, score)| {
        [RespReply::Bulk(member), RespReply::bulk(double_text(score_in(&score)))]
    });
    Ok(Iteration::page(next, pairs.collect()))
}

pub(super) async fn zrandmember(call: &CommandCall<'_>) -> Answer {
    let with_scores = match call.len() {
        4 if call.is(3, "WITHSCORES") => true,
        2 | 3 => false,
        _ => return CommandStop::refused(texts::SYNTAX),
    };
    let count = if call.len() > 2 { Some(call.integer(2)?) } else { None };
    if with_scores && count.is_some_and(|it| it.unsigned_abs() > i64::MAX as u64 / 2) {
        return CommandStop::refused("ERR value is out of range");
    }
    let id = call.scope.rows(call.db, call.arg(1), ValueKind::Sorted).await?;
    let Some(count) = count else {
        let Some(id) = id else { return Ok(RespReply::Null) };
        let found = call.scope.random_members(id, 1).await?;
        return Ok(found.into_iter().next().map_or(RespReply::Null, |it| RespReply::Bulk(it.0)));
    };
    let (count, repeats) = random_count(count)?;
    let Some(id) = id else { return Ok(RespReply::Array(Vec::new())) };
    let found = match repeats {
        false => call.scope.random_members(id, count).await?,
        true => {
            let among = call.scope.random_members(id, CHOSEN_AMONG).await?;
            repeated(call, &among, count)?
        }
    };
    let scored = found.into_iter().map(|(member, score)| (member, score_in(&score)));
    Ok(scored_replies(call, scored.collect(), with_scores))
}
