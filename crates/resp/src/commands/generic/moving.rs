//! Keys that get other names, other databases, or copies.

use muesli::Range;

use crate::call::{Answer, CommandCall, integer_or};
use crate::keyspace::header::{KeyHeader, KeyValue};
use crate::keyspace::rows::{DATABASES, Id, RowKey, tag};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

pub(super) async fn rename(call: &CommandCall<'_>) -> Answer {
    let mut from = call.scope.entry(call.db, call.arg(1)).await?;
    if from.found.is_none() {
        return CommandStop::refused(texts::NO_KEY);
    }
    if call.arg(1) != call.arg(2) {
        let mut to = call.scope.entry(call.db, call.arg(2)).await?;
        call.scope.move_to(&mut from, &mut to).await?;
        call.scope.is_ready(&to);
    }
    Ok(RespReply::OK)
}

pub(super) async fn renamenx(call: &CommandCall<'_>) -> Answer {
    let mut from = call.scope.entry(call.db, call.arg(1)).await?;
    if from.found.is_none() {
        return CommandStop::refused(texts::NO_KEY);
    }
    let mut to = call.scope.entry(call.db, call.arg(2)).await?;
    if to.found.is_some() {
        return Ok(RespReply::Integer(0));
    }
    call.scope.move_to(&mut from, &mut to).await?;
    call.scope.is_ready(&to);
    Ok(RespReply::Integer(1))
}

fn database(text: &[u8]) -> Result<u8, CommandStop> {
    let number = integer_or(text, texts::NO_INTEGER)?;
    match u8::try_from(number) {
        Ok(db) if usize::from(db) < DATABASES => Ok(db),
        _ => CommandStop::refused("ERR DB index is out of range"),
    }
}

pub(super) async fn move_key(call: &CommandCall<'_>) -> Answer {
    let db = match numbers::integer(call.arg(2)) {
        Some(_) => database(call.arg(2))?,
        None => return CommandStop::refused(texts::NO_INTEGER),
    };
    if db == call.db {
        return CommandStop::refused("ERR source and destination objects are the same");
    }
    let mut from = call.scope.entry(call.db, call.arg(1)).await?;
    let mut to = call.scope.entry(db, call.arg(1)).await?;
    if from.found.is_none() || to.found.is_some() {
        return Ok(RespReply::Integer(0));
    }
    call.scope.move_to(&mut from, &mut to).await?;
    call.scope.is_ready(&to);
    Ok(RespReply::Integer(1))
}

pub(super) async fn copy(call: &CommandCall<'_>) -> Answer {
    let (mut db, mut replaces, mut at) = (call.db, false, 3);
    while at < call.len() {
        if call.is(at, "REPLACE") {
            replaces = true;
        } else if call.is(at, "DB") && at + 1 < call.len() {
            at += 1;
            db = database(call.arg(at))?;
        } else {
            return CommandStop::refused(texts::SYNTAX);
        }
        at += 1;
    }
    if db == call.db && call.arg(1) == call.arg(2) {
        return CommandStop::refused("ERR source and destination objects are the same");
    }
    let Some(header) = call.scope.header(call.db, call.arg(1)).await? else {
        return Ok(RespReply::Integer(0));
    };
    let mut to = call.scope.entry(db, call.arg(2)).await?;
    if to.found.is_some() && !replaces {
        return Ok(RespReply::Integer(0));
    }
    let value = match header.value {
        KeyValue::Text(text) => KeyValue::Text(text),
        KeyValue::Pieces(id, length) => KeyValue::Pieces(copy_rows(call, id).await?, length),
        KeyValue::Rows(kind, id) => KeyValue::Rows(kind, copy_rows(call, id).await?),
    };
    call.scope.set(&mut to, KeyHeader { value, expires: header.expires }).await?;
    call.scope.is_ready(&to);
    Ok(RespReply::Integer(1))
}

/// Copies rows; the id of the copies.
async fn copy_rows(call: &CommandCall<'_>, id: Id) -> Result<Id, CommandStop> {
    let all = RowKey::new(tag::CONTENT).number(id).done();
    let copy = call.scope.new_id();
    for (row, value) in call.scope.scan(Range::prefix(all.as_slice())).await? {
        let rest = &row.as_slice()[all.len()..];
        let row = RowKey::new(tag::CONTENT).number(copy).bytes(rest).done();
        call.scope.put(row, value).await?;
    }
    Ok(copy)
}
