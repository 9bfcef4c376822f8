//! Members of sets.

use muesli::SmallBytes;

use crate::call::{Answer, CommandCall};
use crate::commands::iterating::{Iteration, random_members};
use crate::keyspace::header::ValueKind;
use crate::keyspace::members::Member;
use crate::keyspace::rows::ContentPart;
use crate::protocol::reply::RespReply;

pub(super) async fn sadd(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let id = call.scope.collection(&mut entry, ValueKind::Set).await?;
    let mut new = 0;
    for member in call.args(2) {
        let before = call.scope.put_member(id, member, SmallBytes::EMPTY).await?;
        new += usize::from(before.is_none());
    }
    if new > 0 {
        call.scope.changed(&entry).await?;
    }
    Ok(RespReply::count(new))
}

pub(super) async fn srem(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let Some(id) = entry.rows(ValueKind::Set)? else { return Ok(RespReply::Integer(0)) };
    let mut gone = 0;
    for member in call.args(2) {
        gone += usize::from(call.scope.take_member(id, member).await?.is_some());
    }
    if gone > 0 {
        call.scope.changed(&entry).await?;
        call.scope.drop_if_empty(&mut entry, id, ContentPart::Member).await?;
    }
    Ok(RespReply::count(gone))
}

pub(super) async fn scard(call: &CommandCall<'_>) -> Answer {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Set).await? {
        Some(id) => Ok(RespReply::Integer(call.scope.members_count(id).await?)),
        None => Ok(RespReply::Integer(0)),
    }
}

pub(super) async fn sismember(call: &CommandCall<'_>) -> Answer {
    match call.scope.rows(call.db, call.arg(1), ValueKind::Set).await? {
        Some(id) => Ok(RespReply::flag(call.scope.member(id, call.arg(2)).await?.is_some())),
        None => Ok(RespReply::Integer(0)),
    }
}

pub(super) async fn smismember(call: &CommandCall<'_>) -> Answer {
    let id = call.scope.rows(call.db, call.arg(1), ValueKind::Set).await?;
    let mut found = Vec::new();
    for member in call.args(2) {
        found.push(RespReply::flag(match id {
            Some(id) => call.scope.member(id, member).await?.is_some(),
            None => false,
        }));
    }
    Ok(RespReply::Array(found))
}

pub(super) async fn smembers(call: &CommandCall<'_>) -> Answer {
    let all = match call.scope.rows(call.db, call.arg(1), ValueKind::Set).await? {
        Some(id) => call.scope.members(id).await?,
        None => Vec::new(),
    };
    Ok(RespReply::Set(all.into_iter().map(|it| RespReply::Bulk(it.0)).collect()))
}

pub(super) async fn smove(call: &CommandCall<'_>) -> Answer {
    let mut source = call.scope.entry(call.db, call.arg(1)).await?;
    let Some(id) = source.rows(ValueKind::Set)? else {
        return Ok(RespReply::Integer(0));
    };
    call.scope.rows(call.db, call.arg(2), ValueKind::Set).await?;
    let member = call.arg(3);
    if call.arg(1) == call.arg(2) {
        return Ok(RespReply::flag(call.scope.member(id, member).await?.is_some()));
    }
    if call.scope.take_member(id, member).await?.is_none() {
        return Ok(RespReply::Integer(0));
    }
    call.scope.changed(&source).await?;
    call.scope.drop_if_empty(&mut source, id, ContentPart::Member).await?;
    let mut target = call.scope.entry(call.db, call.arg(2)).await?;
    let to = call.scope.collection(&mut target, ValueKind::Set).await?;
    if call.scope.put_member(to, member, SmallBytes::EMPTY).await?.is_none() {
        call.scope.changed(&target).await?;
    }
    Ok(RespReply::Integer(1))
}

pub(super) async fn sscan(call: &CommandCall<'_>) -> Answer {
    let iteration = Iteration::read(call, 2, false)?;
    let (next, found) = match call.scope.rows(call.db, call.arg(1), ValueKind::Set).await? {
        Some(id) => call.scope.members_from(id, iteration.cursor, iteration.count).await?,
        None => (0, Vec::new()),
    };
    let found = found.into_iter().filter(|(member, _)| iteration.holds(member.as_slice()));
    Ok(Iteration::page(next, found.map(|it| RespReply::Bulk(it.0)).collect()))
}

pub(super) async fn spop(call: &CommandCall<'_>) -> Answer {
    let count = call.optional_count()?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let Some(id) = entry.rows(ValueKind::Set)? else {
        return Ok(if count.is_some() { RespReply::Set(Vec::new()) } else { RespReply::Null });
    };
    let most = count.unwrap_or(1);
    if most as i64 >= call.scope.members_count(id).await? && count.is_some() {
        let all = call.scope.members(id).await?;
        call.scope.remove(&mut entry).await?;
        return Ok(RespReply::Set(all.into_iter().map(|it| RespReply::Bulk(it.0)).collect()));
    }
    let mut taken = Vec::new();
    for (member, _) in call.scope.random_members(id, most).await? {
        call.scope.take_member(id, member.as_slice()).await?;
        taken.push(RespReply::Bulk(member));
    }
    if !taken.is_empty() {
        call.scope.changed(&entry).await?;
        call.scope.drop_if_empty(&mut entry, id, ContentPart::Member).await?;
    }
    match count {
        Some(_) => Ok(RespReply::Set(taken)),
        None => Ok(taken.into_iter().next().unwrap_or(RespReply::Null)),
    }
}

pub(super) async fn srandmember(call: &CommandCall<'_>) -> Answer {
    let several = |found: Vec<Member>, _| {
        RespReply::Array(found.into_iter().map(|it| RespReply::Bulk(it.0)).collect())
    };
    random_members(call, ValueKind::Set, None, several).await
}
