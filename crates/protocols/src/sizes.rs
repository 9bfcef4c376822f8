//! How long pieces of messages and records are, for models of networks and disks.

use muesli_core::exceeded::Limit;
use muesli_core::limits::{ENTRY_BYTES, Limits, check_size};
use muesli_core::ranges::KeyRange;
use muesli_core::{Failure, SmallBytes};

/// Bytes of a key with its space and a timestamp, beside the key's own.
pub(crate) const KEY_BYTES: usize = 12;
/// Bytes of a message's addresses, kind and transaction.
pub(crate) const HEADER_BYTES: usize = 40;

/// Bytes of a value, if there is one.
pub(crate) fn value_bytes(value: Option<&SmallBytes>) -> usize {
    4 + value.map_or(0, SmallBytes::len)
}

/// Bytes of a range.
pub(crate) fn range_bytes(range: &KeyRange) -> usize {
    KEY_BYTES + range.lo.len() + range.hi.as_ref().map_or(0, SmallBytes::len)
}

/// Counts entries of an answer, each of the key's length and its value, to `bytes`, which it has
/// already.
///
/// # Errors
/// The answer is longer than one may be.
pub(crate) fn grow_answer<'a>(
    bytes: &mut usize,
    entries: impl Iterator<Item = (usize, Option<&'a SmallBytes>)>,
    limits: &Limits,
) -> Result<(), Failure> {
    let size = |(key, value): (usize, Option<&SmallBytes>)| {
        ENTRY_BYTES + key + value.map_or(0, SmallBytes::len)
    };
    *bytes += entries.map(size).sum::<usize>();
    check_size(Limit::Answer, *bytes, limits.answer_bytes)
}
