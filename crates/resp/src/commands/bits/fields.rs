//! Strings as arrays of numbers of any width.

use crate::call::{Answer, CommandCall, integer_or};
use crate::commands::bits::single::BITS_MAX;
use crate::keyspace::header::KeyHeader;
use crate::keyspace::scope::KeyHandle;
use crate::keyspace::stop::{CommandStop, texts};
use crate::keyspace::strings::length;
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

/// A number in a string: its width, and where it begins.
#[derive(Clone, Copy)]
struct BitNumber {
    signed: bool,
    bits: u32,
    at: u64,
}

/// What becomes of a number that does not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy)]
enum BitStep {
    Get,
    Set(i64),
    Add(i64),
}

impl BitNumber {
    fn read(call: &CommandCall<'_>, at: usize) -> Result<BitNumber, CommandStop> {
        let wrong = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
            supported but i64 is.";
        let (signed, digits) = match call.arg(at).split_first() {
            Some((b'i' | b'I', digits)) => (true, digits),
            Some((b'u' | b'U', digits)) => (false, digits),
            _ => return CommandStop::refused(wrong),
        };
        let bits = integer_or(digits, wrong)?;
        if !(1..=if signed { 64 } else { 63 }).contains(&bits) {
            return CommandStop::refused(wrong);
        }
        let bad = "ERR bit offset is not an integer or out of range";
        let (times, digits) = match call.arg(at + 1) {
            [b'#', digits @ ..] => (bits as u64, digits),
            digits => (1, digits),
        };
        let at = numbers::integer(digits).and_then(|it| u64::try_from(it).ok());
        let at = at.and_then(|it| it.checked_mul(times)).filter(|it| *it <= BITS_MAX - bits as u64);
        match at {
            Some(at) => Ok(BitNumber { signed, bits: bits as u32, at }),
            None => CommandStop::refused(bad),
        }
    }

    /// The bytes that it touches: from, and before which.
    fn bytes(self) -> (u64, u64) {
        (self.at / 8, (self.at + u64::from(self.bits)).div_ceil(8))
    }

    /// Its lowest bit within those bytes.
    fn shift(self) -> u32 {
        (self.bytes().1 * 8 - self.at) as u32 - self.bits
    }

    fn mask(self) -> u128 {
        (1 << self.bits) - 1
    }

    fn value(self, bytes: &[u8]) -> i64 {
        let all = bytes.iter().fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
        let value = all >> self.shift() & self.mask();
        if self.signed {
            let unused = 64 - self.bits;
            (value as i64) << unused >> unused
        } else {
            value as i64
        }
    }

    fn write(self, bytes: &mut [u8], value: i64) {
        let all = bytes.iter().fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
        let cleared = all & !(self.mask() << self.shift());
        let all = cleared | (value as u128 & self.mask()) << self.shift();
        let count = bytes.len();
        bytes.copy_from_slice(&all.to_be_bytes()[size_of::<u128>() - count..]);
    }

    /// A number as it is kept here; `None`: it does not fit, and is not to be kept then.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1_i128 << self.bits) - 1),
        };
        match overflow {
            _ if (least..=most).contains(&value) => Some(value as i64),
            Overflow::Fail => None,
            Overflow::Saturate => Some(value.clamp(least, most) as i64),
            Overflow::Wrap => {
                let value = value as u128 & self.mask();
                let negative = self.signed && value >> (self.bits - 1) & 1 == 1;
                Some(if negative { (value | !self.mask()) as i64 } else { value as i64 })
            }
        }
    }
}

type Steps = Vec<(BitNumber, BitStep, Overflow)>;

fn steps(call: &CommandCall<'_>) -> Result<Steps, CommandStop> {
    let (mut steps, mut overflow, mut at) = (Vec::new(), Overflow::Wrap, 2);
    while at < call.len() {
        let left = call.len() - at - 1;
        let (words, step) = match () {
            () if call.is(at, "GET") && left >= 2 => (3, BitStep::Get),
            () if call.is(at, "SET") && left >= 3 => {
                BitNumber::read(call, at + 1)?;
                (4, BitStep::Set(integer_or(call.arg(at + 3), texts::NO_INTEGER)?))
            }
            () if call.is(at, "INCRBY") && left >= 3 => {
                BitNumber::read(call, at + 1)?;
                (4, BitStep::Add(integer_or(call.arg(at + 3), texts::NO_INTEGER)?))
            }
            () if call.is(at, "OVERFLOW") && left >= 1 => {
                overflow = match () {
                    () if call.is(at + 1, "WRAP") => Overflow::Wrap,
                    () if call.is(at + 1, "SAT") => Overflow::Saturate,
                    () if call.is(at + 1, "FAIL") => Overflow::Fail,
                    () => return CommandStop::refused("ERR Invalid OVERFLOW type specified"),
                };
                at += 2;
                continue;
            }
            () => return CommandStop::refused(texts::SYNTAX),
        };
        steps.push((BitNumber::read(call, at + 1)?, step, overflow));
        at += words;
    }
    Ok(steps)
}

pub(super) async fn bitfield_ro(call: &CommandCall<'_>) -> Answer {
    let steps = steps(call)?;
    if steps.iter().any(|it| !matches!(it.1, BitStep::Get)) {
        return CommandStop::refused("ERR BITFIELD_RO only supports the GET subcommand");
    }
    run(call, steps).await
}

pub(super) async fn bitfield(call: &CommandCall<'_>) -> Answer {
    run(call, steps(call)?).await
}

/// The bytes of a field; zeros beyond the end.
async fn read(
    call: &CommandCall<'_>,
    header: Option<&KeyHeader>,
    field: BitNumber,
) -> Result<Vec<u8>, CommandStop> {
    let (from, to) = field.bytes();
    let end = length(header)?.min(to);
    let mut bytes = match header {
        Some(header) if from < end => call.scope.string_part(header, from, end).await?,
        _ => Vec::new(),
    };
    bytes.resize((to - from) as usize, 0);
    Ok(bytes)
}

async fn run(call: &CommandCall<'_>, steps: Steps) -> Answer {
    let mut entry: KeyHandle = call.scope.entry(call.db, call.arg(1)).await?;
    length(entry.found.as_ref())?;
    // It grows once, to what it has then.
    let writes = steps.iter().filter(|it| !matches!(it.1, BitStep::Get));
    if let Some(end) = writes.map(|it| it.0.bytes().1).max()
        && length(entry.found.as_ref())? < end
    {
        call.scope.write_string(&mut entry, end - 1, &[0]).await?;
    }
    let mut replies = Vec::new();
    for (field, step, overflow) in steps {
        let mut bytes = read(call, entry.found.as_ref(), field).await?;
        let before = field.value(&bytes);
        let (wanted, sets) = match step {
            BitStep::Get => {
                replies.push(RespReply::Integer(before));
                continue;
            }
            BitStep::Set(value) => (i128::from(value), true),
            BitStep::Add(change) => (i128::from(before) + i128::from(change), false),
        };
        let Some(value) = field.fit(wanted, overflow) else {
            replies.push(RespReply::Null);
            continue;
        };
        if value != before {
            field.write(&mut bytes, value);
            call.scope.write_string(&mut entry, field.bytes().0, &bytes).await?;
        }
        replies.push(RespReply::Integer(if sets { before } else { value }));
    }
    Ok(RespReply::Array(replies))
}
