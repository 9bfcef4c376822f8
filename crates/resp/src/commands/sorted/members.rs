//! Members with their scores, as replies; and random ones.

use crate::call::{Answer, CommandCall};
use crate::commands::iterating::{Iteration, random_members};
use crate::keyspace::header::ValueKind;
use crate::keyspace::members::Member;
use crate::keyspace::sorted::{Scored, score_in};
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
    let several = |found: Vec<Member>, with_scores| {
        let scored = found.into_iter().map(|(member, score)| (member, score_in(&score)));
        scored_replies(call, scored.collect(), with_scores)
    };
    random_members(call, ValueKind::Sorted, Some("WITHSCORES"), several).await
}
