//! Single bits.

use crate::call::{Answer, CommandCall};
use crate::keyspace::header::KeyHeader;
use crate::keyspace::stop::CommandStop;
use crate::keyspace::strings::length;
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

/// Bits before this one can be set: those of 512 MB.
pub(super) const BITS_MAX: u64 = (512 << 20) * 8;

/// The number of a bit, by the word at this place.
fn offset(call: &CommandCall<'_>, at: usize) -> Result<u64, CommandStop> {
    let found = numbers::integer(call.arg(at)).and_then(|it| u64::try_from(it).ok());
    match found.filter(|it| *it < BITS_MAX) {
        Some(bit) => Ok(bit),
        None => CommandStop::refused("ERR bit offset is not an integer or out of range"),
    }
}

/// The byte at this place; zero beyond the end.
async fn byte(
    call: &CommandCall<'_>,
    header: Option<&KeyHeader>,
    at: u64,
) -> Result<u8, CommandStop> {
    match header {
        Some(header) if at < length(Some(header))? => {
            Ok(call.scope.string_part(header, at, at + 1).await?[0])
        }
        _ => Ok(0),
    }
}

pub(super) async fn getbit(call: &CommandCall<'_>) -> Answer {
    let bit = offset(call, 2)?;
    let header = call.scope.header(call.db, call.arg(1)).await?;
    length(header.as_ref())?;
    let byte = byte(call, header.as_ref(), bit / 8).await?;
    Ok(RespReply::Integer(i64::from(byte >> (7 - bit % 8) & 1)))
}

pub(super) async fn setbit(call: &CommandCall<'_>) -> Answer {
    let bit = offset(call, 2)?;
    let on = match numbers::integer(call.arg(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => return CommandStop::refused("ERR bit is not an integer or out of range"),
    };
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    length(entry.found.as_ref())?;
    let before = byte(call, entry.found.as_ref(), bit / 8).await?;
    let mask = 1 << (7 - bit % 8);
    let is_there = length(entry.found.as_ref())? > bit / 8;
    if is_there && (before & mask != 0) == on {
        return Ok(RespReply::flag(on));
    }
    let after = if on { before | mask } else { before & !mask };
    call.scope.write_string(&mut entry, bit / 8, &[after]).await?;
    Ok(RespReply::flag(before & mask != 0))
}
