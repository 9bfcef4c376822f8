//! The first and the last members, taken away.

use crate::call::{Answer, CommandCall};
use crate::commands::many_keys::{PopFrom, still_to_come, timeout_ms};
use crate::commands::sorted::members::scored_replies;
use crate::keyspace::header::ValueKind;
use crate::keyspace::sorted::{ScoreRows, Scored};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

/// Takes members of the key at this place, at most so many.
async fn take(
    call: &CommandCall<'_>,
    at: usize,
    last: bool,
    most: usize,
) -> Result<Vec<Scored>, CommandStop> {
    let mut entry = call.scope.entry(call.db, call.arg(at)).await?;
    let Some(id) = still_to_come(call, entry.rows(ValueKind::Sorted))? else {
        return Ok(Vec::new());
    };
    let taken = call.scope.scored(id, &ScoreRows::all(id), last, 0, most).await?;
    call.scope.take_scores(&mut entry, id, &taken).await?;
    Ok(taken)
}

pub(super) async fn zpopmin(call: &CommandCall<'_>) -> Answer {
    pop(call, false).await
}

pub(super) async fn zpopmax(call: &CommandCall<'_>) -> Answer {
    pop(call, true).await
}

async fn pop(call: &CommandCall<'_>, last: bool) -> Answer {
    let count = call.optional_count()?;
    let taken = take(call, 1, last, count.unwrap_or(1)).await?;
    if count.is_some() || taken.is_empty() {
        return Ok(scored_replies(call, taken, true));
    }
    let (member, score) = taken.into_iter().next().expect("it was looked at above");
    Ok(RespReply::Array(vec![RespReply::Bulk(member), RespReply::Double(score)]))
}

pub(super) async fn bzpopmin(call: &CommandCall<'_>) -> Answer {
    pop_or_wait(call, false).await
}

pub(super) async fn bzpopmax(call: &CommandCall<'_>) -> Answer {
    pop_or_wait(call, true).await
}

async fn pop_or_wait(call: &CommandCall<'_>, last: bool) -> Answer {
    timeout_ms(call.command, call.len() - 1)?;
    for at in 1..call.len() - 1 {
        if let Some((member, score)) = take(call, at, last, 1).await?.into_iter().next() {
            let key = RespReply::bulk(call.arg(at));
            return Ok(RespReply::Array(vec![
                key,
                RespReply::Bulk(member),
                RespReply::Double(score),
            ]));
        }
    }
    Err(CommandStop::Waits)
}

pub(super) async fn zmpop(call: &CommandCall<'_>) -> Answer {
    match pop_several(call, 1).await {
        Err(CommandStop::Waits) => Ok(RespReply::NullArray),
        other => other,
    }
}

pub(super) async fn bzmpop(call: &CommandCall<'_>) -> Answer {
    timeout_ms(call.command, 1)?;
    pop_several(call, 2).await
}

async fn pop_several(call: &CommandCall<'_>, at: usize) -> Answer {
    let from = PopFrom::read(call, at)?;
    let last = match () {
        () if call.is(from.options, "MIN") => false,
        () if call.is(from.options, "MAX") => true,
        () => return CommandStop::refused(texts::SYNTAX),
    };
    for at in from.keys.clone() {
        let taken = take(call, at, last, from.count as usize).await?;
        if !taken.is_empty() {
            let pair = |(member, score)| {
                RespReply::Array(vec![RespReply::Bulk(member), RespReply::Double(score)])
            };
            let taken = RespReply::Array(taken.into_iter().map(pair).collect());
            return Ok(RespReply::Array(vec![RespReply::bulk(call.arg(at)), taken]));
        }
    }
    Err(CommandStop::Waits)
}
