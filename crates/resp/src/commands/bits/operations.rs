//! Operations on whole strings, bit by bit.

use crate::call::{Answer, CommandCall};
use crate::keyspace::stop::{CommandStop, texts};
use crate::keyspace::strings::length;
use crate::protocol::reply::RespReply;

/// So many bytes of each string are read at once.
const PIECE: usize = 1 << 20;

pub(super) async fn bitop(call: &CommandCall<'_>) -> Answer {
    let operation: fn(u8, u8) -> u8 = match () {
        () if call.is(1, "AND") => |left, right| left & right,
        () if call.is(1, "OR") => |left, right| left | right,
        () if call.is(1, "XOR") => |left, right| left ^ right,
        () if call.is(1, "NOT") => |_, right| right,
        () => return CommandStop::refused(texts::SYNTAX),
    };
    let negates = call.is(1, "NOT");
    if negates && call.len() != 4 {
        return CommandStop::refused("ERR BITOP NOT must be called with a single source key.");
    }
    let mut sources = Vec::new();
    for key in call.args(3) {
        let header = call.scope.header(call.db, key).await?;
        sources.push((length(header.as_ref())?, header));
    }
    let longest = sources.iter().map(|it| it.0).max().unwrap_or(0) as usize;
    let mut result = vec![0; longest];
    for (number, piece) in result.chunks_mut(PIECE).enumerate() {
        let from = (number * PIECE) as u64;
        for (source, (length, header)) in sources.iter().enumerate() {
            let to = (*length).min(from + piece.len() as u64);
            let mut part = match header {
                Some(header) if from < to => call.scope.string_part(header, from, to).await?,
                _ => Vec::new(),
            };
            part.resize(piece.len(), 0);
            let combined = piece.iter_mut().zip(part);
            match source {
                0 if negates => combined.for_each(|(it, byte)| *it = !byte),
                0 => combined.for_each(|(it, byte)| *it = byte),
                _ => combined.for_each(|(it, byte)| *it = operation(*it, byte)),
            }
        }
    }
    let mut entry = call.scope.entry(call.db, call.arg(2)).await?;
    if result.is_empty() {
        call.scope.remove(&mut entry).await?;
    } else {
        call.scope.set_string(&mut entry, &result, None).await?;
    }
    Ok(RespReply::count(longest))
}
