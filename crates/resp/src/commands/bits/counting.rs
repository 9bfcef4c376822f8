//! How many bits are set, and where the first one is.

use crate::call::{Answer, CommandCall, integer_or};
use crate::keyspace::header::KeyHeader;
use crate::keyspace::stop::{CommandStop, texts};
use crate::keyspace::strings::length;
use crate::protocol::reply::RespReply;

/// A part of a string by bits: from, and before which.
struct BitRange {
    from: u64,
    to: u64,
    has_end: bool,
}

/// Reads the range behind this place; `None`: it is empty.
fn range(call: &CommandCall<'_>, at: usize, length: u64) -> Result<Option<BitRange>, CommandStop> {
    let by_bits = match call.len().saturating_sub(at) {
        3 if call.is(at + 2, "BIT") => true,
        3 if !call.is(at + 2, "BYTE") => return CommandStop::refused(texts::SYNTAX),
        0..=3 => false,
        _ => return CommandStop::refused(texts::SYNTAX),
    };
    let (unit, length) = if by_bits { (1, length as i64 * 8) } else { (8, length as i64) };
    let number = |at: usize, otherwise: i64| match at < call.len() {
        true => integer_or(call.arg(at), texts::NO_INTEGER),
        false => Ok(otherwise),
    };
    let (start, end) = (number(at, 0)?, number(at + 1, -1)?);
    if start < 0 && end < 0 && start > end {
        return Ok(None);
    }
    let from_end = |it: i64| if it < 0 { it.saturating_add(length).max(0) } else { it };
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    let range = BitRange {
        from: start as u64 * unit,
        to: (end + 1).max(0) as u64 * unit,
        has_end: at + 1 < call.len(),
    };
    Ok((start <= end).then_some(range))
}

/// The bytes that a range of bits touches.
async fn bytes(
    call: &CommandCall<'_>,
    header: &KeyHeader,
    range: &BitRange,
) -> Result<Vec<u8>, CommandStop> {
    call.scope.string_part(header, range.from / 8, range.to.div_ceil(8)).await
}

pub(super) async fn bitcount(call: &CommandCall<'_>) -> Answer {
    let header = call.scope.header(call.db, call.arg(1)).await?;
    let length = length(header.as_ref())?;
    if call.len() == 3 {
        return CommandStop::refused(texts::SYNTAX);
    }
    let range = range(call, 2, length)?;
    let (Some(header), Some(range)) = (header, range) else { return Ok(RespReply::Integer(0)) };
    let bytes = bytes(call, &header, &range).await?;
    let mut count: u64 = bytes.iter().map(|it| u64::from(it.count_ones())).sum();
    let (before, after) = (range.from % 8, range.to.div_ceil(8) * 8 - range.to);
    if let Some(first) = bytes.first() {
        count -= u64::from((first >> 1 >> (7 - before)).count_ones());
    }
    if let Some(last) = bytes.last() {
        count -= u64::from((last & ((1_u16 << after) - 1) as u8).count_ones());
    }
    Ok(RespReply::Integer(count as i64))
}

pub(super) async fn bitpos(call: &CommandCall<'_>) -> Answer {
    let wanted = match call.integer(2)? {
        bit @ (0 | 1) => bit == 1,
        _ => return CommandStop::refused("ERR The bit argument must be 1 or 0."),
    };
    let header = call.scope.header(call.db, call.arg(1)).await?;
    let length = length(header.as_ref())?;
    let range = range(call, 3, length)?;
    let Some(header) = header else { return Ok(RespReply::Integer(if wanted { -1 } else { 0 })) };
    let Some(range) = range else { return Ok(RespReply::Integer(-1)) };
    let bytes = bytes(call, &header, &range).await?;
    let base = range.from / 8 * 8;
    let is_it = |bit: &u64| {
        let at = bit - base;
        (bytes[(at / 8) as usize] >> (7 - at % 8) & 1 == 1) == wanted
    };
    Ok(RespReply::Integer(match (range.from..range.to).find(is_it) {
        Some(bit) => bit as i64,
        // Beyond a string there are zeros.
        None if !wanted && !range.has_end => range.to as i64,
        None => -1,
    }))
}
