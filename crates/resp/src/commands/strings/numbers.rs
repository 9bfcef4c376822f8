//! Strings that are numbers.

use crate::call::{Answer, CommandCall};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

pub(super) async fn incr(call: &CommandCall<'_>) -> Answer {
    add(call, 1).await
}

pub(super) async fn decr(call: &CommandCall<'_>) -> Answer {
    add(call, -1).await
}

pub(super) async fn incrby(call: &CommandCall<'_>) -> Answer {
    add(call, call.integer(2)?).await
}

pub(super) async fn decrby(call: &CommandCall<'_>) -> Answer {
    match call.integer(2)?.checked_neg() {
        Some(change) => add(call, change).await,
        None => CommandStop::refused("ERR decrement would overflow"),
    }
}

async fn add(call: &CommandCall<'_>, change: i64) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let before = match call.scope.string_of(entry.found.as_ref()).await? {
        Some(text) => numbers::integer(text.as_slice()),
        None => Some(0),
    };
    let Some(before) = before else { return CommandStop::refused(texts::NO_INTEGER) };
    let Some(after) = before.checked_add(change) else {
        return CommandStop::refused(texts::OVERFLOW);
    };
    let (text, expires) = (itoa::Buffer::new().format(after).to_owned(), entry.expires());
    call.scope.set_string(&mut entry, text.as_bytes(), expires).await?;
    Ok(RespReply::Integer(after))
}

pub(super) async fn incrbyfloat(call: &CommandCall<'_>) -> Answer {
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let before = call.scope.string_of(entry.found.as_ref()).await?;
    let before = before.as_ref().map_or(&b"0"[..], |it| it.as_slice());
    if numbers::double(before).is_none() || numbers::double(call.arg(2)).is_none() {
        return CommandStop::refused(texts::NO_FLOAT);
    }
    let Some(sum) = numbers::decimal_sum(before, call.arg(2)) else {
        return CommandStop::refused("ERR increment would produce NaN or Infinity");
    };
    let expires = entry.expires();
    call.scope.set_string(&mut entry, sum.as_bytes(), expires).await?;
    Ok(RespReply::bulk(sum))
}
