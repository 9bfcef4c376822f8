//! Unions, intersections and differences of sets.

use std::collections::BTreeSet;
use std::ops::Range;

use muesli::SmallBytes;

use crate::call::{Answer, CommandCall, integer_or};
use crate::commands::many_keys::keys_at;
use crate::keyspace::header::ValueKind;
use crate::keyspace::rows::Id;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

/// The sets of these keys; `None` for those that are not there.
async fn sets(call: &CommandCall<'_>, keys: Range<usize>) -> Result<Vec<Option<Id>>, CommandStop> {
    let mut found = Vec::new();
    for at in keys {
        found.push(call.scope.rows(call.db, call.arg(at), ValueKind::Set).await?);
    }
    Ok(found)
}

async fn union(call: &CommandCall<'_>, keys: Range<usize>) -> Result<Vec<SmallBytes>, CommandStop> {
    let mut all = BTreeSet::new();
    for id in sets(call, keys).await?.into_iter().flatten() {
        all.extend(call.scope.members(id).await?.into_iter().map(|it| it.0));
    }
    Ok(all.into_iter().collect())
}

async fn difference(
    call: &CommandCall<'_>,
    keys: Range<usize>,
) -> Result<Vec<SmallBytes>, CommandStop> {
    let all = sets(call, keys).await?;
    let Some(Some(first)) = all.first().copied() else { return Ok(Vec::new()) };
    let mut rest = Vec::new();
    for (member, _) in call.scope.members(first).await? {
        let mut is_elsewhere = false;
        for id in all[1..].iter().flatten() {
            is_elsewhere |= call.scope.member(*id, member.as_slice()).await?.is_some();
        }
        if !is_elsewhere {
            rest.push(member);
        }
    }
    Ok(rest)
}

/// Members that all sets have, at most so many.
async fn intersection(
    call: &CommandCall<'_>,
    keys: Range<usize>,
    most: usize,
) -> Result<Vec<SmallBytes>, CommandStop> {
    let mut counted = Vec::new();
    let all = sets(call, keys).await?;
    for id in all {
        let Some(id) = id else { return Ok(Vec::new()) };
        counted.push((call.scope.members_count(id).await?, id));
    }
    counted.sort_unstable();
    let Some((_, smallest)) = counted.first().copied() else { return Ok(Vec::new()) };
    let mut common = Vec::new();
    for (member, _) in call.scope.members(smallest).await? {
        if common.len() == most {
            break;
        }
        let mut is_everywhere = true;
        for (_, id) in &counted[1..] {
            is_everywhere &= call.scope.member(*id, member.as_slice()).await?.is_some();
        }
        if is_everywhere {
            common.push(member);
        }
    }
    Ok(common)
}

fn as_set(members: Vec<SmallBytes>) -> RespReply {
    RespReply::Set(members.into_iter().map(RespReply::Bulk).collect())
}

/// Keeps members under the first key of the command.
async fn store(call: &CommandCall<'_>, members: Vec<SmallBytes>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    call.scope.remove(&mut entry).await?;
    if members.is_empty() {
        return Ok(RespReply::Integer(0));
    }
    let id = call.scope.collection(&mut entry, ValueKind::Set).await?;
    for member in &members {
        call.scope.put_member(id, member.as_slice(), SmallBytes::EMPTY).await?;
    }
    Ok(RespReply::count(members.len()))
}

pub(super) async fn sunion(call: &CommandCall<'_>) -> Answer {
    Ok(as_set(union(call, 1..call.len()).await?))
}

pub(super) async fn sdiff(call: &CommandCall<'_>) -> Answer {
    Ok(as_set(difference(call, 1..call.len()).await?))
}

pub(super) async fn sinter(call: &CommandCall<'_>) -> Answer {
    Ok(as_set(intersection(call, 1..call.len(), usize::MAX).await?))
}

pub(super) async fn sunionstore(call: &CommandCall<'_>) -> Answer {
    store(call, union(call, 2..call.len()).await?).await
}

pub(super) async fn sdiffstore(call: &CommandCall<'_>) -> Answer {
    store(call, difference(call, 2..call.len()).await?).await
}

pub(super) async fn sinterstore(call: &CommandCall<'_>) -> Answer {
    store(call, intersection(call, 2..call.len(), usize::MAX).await?).await
}

pub(super) async fn sintercard(call: &CommandCall<'_>) -> Answer {
    let count = integer_or(call.arg(1), "ERR numkeys should be greater than 0")?;
    if count > 0 && count as u64 > call.len() as u64 - 2 {
        return CommandStop::refused("ERR Number of keys can't be greater than number of args");
    }
    let keys = keys_at(call, 1)?;
    let mut most = 0;
    let mut at = keys.end;
    while at < call.len() {
        if !call.is(at, "LIMIT") || at + 1 == call.len() {
            return CommandStop::refused(texts::SYNTAX);
        }
        most = integer_or(call.arg(at + 1), "ERR LIMIT can't be negative")?;
        if most < 0 {
            return CommandStop::refused("ERR LIMIT can't be negative");
        }
        at += 2;
    }
    let most = if most == 0 { usize::MAX } else { most as usize };
    Ok(RespReply::count(intersection(call, keys, most).await?.len()))
}
