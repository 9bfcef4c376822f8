//! Items that move from a list to another one.

use crate::call::{Answer, CommandCall};
use crate::commands::many_keys::{still_to_come, timeout_ms};
use crate::keyspace::header::ValueKind;
use crate::keyspace::lists::ListEnd;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

fn end(call: &CommandCall<'_>, at: usize) -> Result<ListEnd, CommandStop> {
    match () {
        () if call.is(at, "LEFT") => Ok(ListEnd::Left),
        () if call.is(at, "RIGHT") => Ok(ListEnd::Right),
        () => CommandStop::refused(texts::SYNTAX),
    }
}

fn null_if_none(answer: Answer) -> Answer {
    match answer {
        Err(CommandStop::Waits) => Ok(RespReply::Null),
        other => other,
    }
}

pub(super) async fn rpoplpush(call: &CommandCall<'_>) -> Answer {
    null_if_none(move_item(call, ListEnd::Right, ListEnd::Left).await)
}

pub(super) async fn lmove(call: &CommandCall<'_>) -> Answer {
    let (from, to) = (end(call, 3)?, end(call, 4)?);
    null_if_none(move_item(call, from, to).await)
}

pub(super) async fn brpoplpush(call: &CommandCall<'_>) -> Answer {
    timeout_ms(call.command, 3)?;
    move_item(call, ListEnd::Right, ListEnd::Left).await
}

pub(super) async fn blmove(call: &CommandCall<'_>) -> Answer {
    let (from, to) = (end(call, 3)?, end(call, 4)?);
    timeout_ms(call.command, 5)?;
    move_item(call, from, to).await
}

async fn move_item(call: &CommandCall<'_>, from: ListEnd, to: ListEnd) -> Answer {
    let mut source = call.scope.entry(call.db, call.arg(1)).await?;
    let found = call.scope.entry_list(&source).await;
    let Some(list) = still_to_come(call, found)? else { return Err(CommandStop::Waits) };
    let is_same = call.arg(1) == call.arg(2);
    if !is_same {
        call.scope.rows(call.db, call.arg(2), ValueKind::List).await?;
    }
    let (list, taken) = call.scope.pop(&mut source, list, from, 1).await?;
    let Some(item) = taken.into_iter().next() else { return Err(CommandStop::Waits) };
    if is_same {
        call.scope.push(list, to, std::iter::once(item.as_slice())).await?;
        call.scope.changed(&source).await?;
        return Ok(RespReply::Bulk(item));
    }
    call.scope.shrunk(&mut source, list).await?;
    let mut target = call.scope.entry(call.db, call.arg(2)).await?;
    let list = call.scope.list_to_grow(&mut target).await?;
    call.scope.push(list, to, std::iter::once(item.as_slice())).await?;
    call.scope.changed(&target).await?;
    call.scope.is_ready(&target);
    Ok(RespReply::Bulk(item))
}
