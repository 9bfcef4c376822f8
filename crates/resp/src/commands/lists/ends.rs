//! The ends of lists: pushes and pops.

use crate::call::{Answer, CommandCall, wrong_number};
use crate::commands::many_keys::{PopFrom, still_to_come, timeout_ms};
use crate::keyspace::lists::ListEnd;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

pub(super) async fn lpush(call: &CommandCall<'_>) -> Answer {
    push(call, ListEnd::Left).await
}

pub(super) async fn rpush(call: &CommandCall<'_>) -> Answer {
    push(call, ListEnd::Right).await
}

pub(super) async fn lpushx(call: &CommandCall<'_>) -> Answer {
    push_if_there(call, ListEnd::Left).await
}

pub(super) async fn rpushx(call: &CommandCall<'_>) -> Answer {
    push_if_there(call, ListEnd::Right).await
}

async fn push(call: &CommandCall<'_>, end: ListEnd) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let list = call.scope.list_to_grow(&mut entry).await?;
    let list = call.scope.push(list, end, call.args(2)).await?;
    call.scope.changed(&entry).await?;
    call.scope.is_ready(&entry);
    Ok(RespReply::Integer(list.len()))
}

async fn push_if_there(call: &CommandCall<'_>, end: ListEnd) -> Answer {
    match call.scope.list(call.db, call.arg(1)).await? {
        Some(_) => push(call, end).await,
        None => Ok(RespReply::Integer(0)),
    }
}

pub(super) async fn lpop(call: &CommandCall<'_>) -> Answer {
    pop(call, ListEnd::Left, "lpop").await
}

pub(super) async fn rpop(call: &CommandCall<'_>) -> Answer {
    pop(call, ListEnd::Right, "rpop").await
}

async fn pop(call: &CommandCall<'_>, end: ListEnd, name: &str) -> Answer {
    if call.len() > 3 {
        return CommandStop::refused(wrong_number(name));
    }
    let count = call.optional_count()?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let Some(list) = call.scope.entry_list(&entry).await? else {
        return Ok(if count.is_some() { RespReply::NullArray } else { RespReply::Null });
    };
    if count == Some(0) {
        return Ok(RespReply::Array(Vec::new()));
    }
    let (list, taken) =
        call.scope.pop(&mut entry, list, end, count.map_or(1, |it| it as i64)).await?;
    call.scope.shrunk(&mut entry, list).await?;
    let mut taken = taken.into_iter().map(RespReply::Bulk);
    match count {
        Some(_) => Ok(RespReply::Array(taken.collect())),
        None => Ok(taken.next().unwrap_or(RespReply::Null)),
    }
}

pub(super) async fn blpop(call: &CommandCall<'_>) -> Answer {
    pop_or_wait(call, ListEnd::Left).await
}

pub(super) async fn brpop(call: &CommandCall<'_>) -> Answer {
    pop_or_wait(call, ListEnd::Right).await
}

async fn pop_or_wait(call: &CommandCall<'_>, end: ListEnd) -> Answer {
    timeout_ms(call.command, call.len() - 1)?;
    for at in 1..call.len() - 1 {
        let mut entry = call.scope.entry(call.db, call.arg(at)).await?;
        let found = call.scope.entry_list(&entry).await;
        let Some(list) = still_to_come(call, found)? else { continue };
        let (list, taken) = call.scope.pop(&mut entry, list, end, 1).await?;
        call.scope.shrunk(&mut entry, list).await?;
        let item = taken.into_iter().next().map_or(RespReply::Null, RespReply::Bulk);
        return Ok(RespReply::Array(vec![RespReply::bulk(call.arg(at)), item]));
    }
    Err(CommandStop::Waits)
}

pub(super) async fn lmpop(call: &CommandCall<'_>) -> Answer {
    match pop_several(call, 1).await {
        Err(CommandStop::Waits) => Ok(RespReply::NullArray),
        other => other,
    }
}

pub(super) async fn blmpop(call: &CommandCall<'_>) -> Answer {
    timeout_ms(call.command, 1)?;
    pop_several(call, 2).await
}

async fn pop_several(call: &CommandCall<'_>, at: usize) -> Answer {
    let from = PopFrom::read(call, at)?;
    let end = match () {
        () if call.is(from.options, "LEFT") => ListEnd::Left,
        () if call.is(from.options, "RIGHT") => ListEnd::Right,
        () => return CommandStop::refused(texts::SYNTAX),
    };
    for at in from.keys.clone() {
        let mut entry = call.scope.entry(call.db, call.arg(at)).await?;
        let found = call.scope.entry_list(&entry).await;
        let Some(list) = still_to_come(call, found)? else { continue };
        let (list, taken) = call.scope.pop(&mut entry, list, end, from.count).await?;
        call.scope.shrunk(&mut entry, list).await?;
        let taken = RespReply::Array(taken.into_iter().map(RespReply::Bulk).collect());
        return Ok(RespReply::Array(vec![RespReply::bulk(call.arg(at)), taken]));
    }
    Err(CommandStop::Waits)
}
