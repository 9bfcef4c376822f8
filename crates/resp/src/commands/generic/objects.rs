//! What is told of the inside of values.

use muesli::Range;

use crate::call::{Answer, CommandCall};
use crate::keyspace::header::{KeyHeader, KeyValue, ValueKind};
use crate::keyspace::rows::{PIECE_BYTES, RowKey, tag};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

/// Up to so many members Redis keeps a collection in one piece.
const COMPACT_MAX: i64 = 128;
/// Up to so many numbers Redis keeps a set of numbers in order.
const NUMBERS_MAX: i64 = 512;
/// Up to so many bytes Redis keeps a string beside its header.
const EMBEDDED_MAX: usize = 44;

pub(super) async fn object(call: &CommandCall<'_>) -> Answer {
    if call.is(1, "HELP") {
        return Ok(RespReply::Array(vec![
            RespReply::Simple("OBJECT <subcommand> <key>. Subcommands are:"),
            RespReply::Simple("ENCODING, FREQ, IDLETIME, REFCOUNT"),
        ]));
    }
    let known = ["ENCODING", "REFCOUNT", "IDLETIME", "FREQ"];
    if call.len() != 3 || !known.iter().any(|it| call.is(1, it)) {
        let word = String::from_utf8_lossy(call.arg(1)).into_owned();
        return CommandStop::refused(format!(
            "ERR unknown subcommand or wrong number of arguments for '{word}'. Try OBJECT HELP."
        ));
    }
    let Some(header) = call.scope.header(call.db, call.arg(2)).await? else {
        return Ok(RespReply::Null);
    };
    match () {
        () if call.is(1, "ENCODING") => Ok(RespReply::bulk(encoding(call, &header).await?)),
        () if call.is(1, "REFCOUNT") => Ok(RespReply::Integer(1)),
        () if call.is(1, "FREQ") => CommandStop::refused(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        ),
        () => Ok(RespReply::Integer(0)),
    }
}

/// So many bytes a row takes beside its key and its value, about.
const ROW_BYTES: usize = 96;
/// So many rows of a value are looked at, unless told otherwise.
const SAMPLES: usize = 5;

pub(super) async fn memory(call: &CommandCall<'_>) -> Answer {
    if call.is(1, "DOCTOR") && call.len() == 2 {
        return Ok(RespReply::bulk("Nothing is known."));
    }
    if !call.is(1, "USAGE") || call.len() < 3 {
        let word = String::from_utf8_lossy(call.arg(1)).into_owned();
        return CommandStop::refused(format!("ERR unknown subcommand '{word}'. Try MEMORY HELP."));
    }
    let samples = match call.len() {
        3 => SAMPLES,
        5 if call.is(3, "SAMPLES") && call.integer(4)? >= 0 => match call.integer(4)? {
            0 => usize::MAX,
            samples => samples as usize,
        },
        _ => return CommandStop::refused(texts::SYNTAX),
    };
    let Some(header) = call.scope.header(call.db, call.arg(2)).await? else {
        return Ok(RespReply::Null);
    };
    let own = ROW_BYTES + call.arg(2).len() + header.to_row().len();
    let (Some(id), members) = (
        header.value.id(),
        match &header.value {
            KeyValue::Rows(ValueKind::List, _) => {
                match call.scope.list(call.db, call.arg(2)).await? {
                    Some(list) => list.len() as usize,
                    None => 0,
                }
            }
            KeyValue::Rows(ValueKind::Sorted, id) => {
                call.scope.members_count(*id).await? as usize * 2
            }
            KeyValue::Rows(_, id) => call.scope.members_count(*id).await? as usize,
            KeyValue::Pieces(_, length) => (*length as usize).div_ceil(PIECE_BYTES),
            KeyValue::Text(_) => 0,
        },
    ) else {
        return Ok(RespReply::count(own));
    };
    let rows = RowKey::new(tag::CONTENT).number(id).done();
    let rows = call.scope.scan(Range::prefix(rows.as_slice()).limit(samples)).await?;
    let bytes: usize = rows.iter().map(|it| it.0.len() + it.1.len() + ROW_BYTES).sum();
    Ok(RespReply::count(own + bytes * members.max(rows.len()) / rows.len().max(1)))
}

async fn encoding(call: &CommandCall<'_>, header: &KeyHeader) -> Result<&'static str, CommandStop> {
    Ok(match &header.value {
        KeyValue::Text(text) if numbers::integer(text.as_slice()).is_some() => "int",
        KeyValue::Text(text) if text.len() <= EMBEDDED_MAX => "embstr",
        KeyValue::Text(_) | KeyValue::Pieces(..) => "raw",
        KeyValue::Rows(ValueKind::List, _) => "quicklist",
        KeyValue::Rows(kind, id) => {
            let count = call.scope.members_count(*id).await?;
            match kind {
                ValueKind::Set if count <= NUMBERS_MAX => {
                    let all = call.scope.members(*id).await?;
                    let is_number = |it: &[u8]| numbers::integer(it).is_some();
                    match all.iter().all(|it| is_number(it.0.as_slice())) {
                        true => "intset",
                        false => "hashtable",
                    }
                }
                ValueKind::Hash | ValueKind::Sorted if count <= COMPACT_MAX => "listpack",
                ValueKind::Sorted => "skiplist",
                _ => "hashtable",
            }
        }
    })
}
