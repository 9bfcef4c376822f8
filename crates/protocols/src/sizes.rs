//! How long pieces of messages and records are, for models of networks and disks.

use muesli_core::SmallBytes;
use muesli_core::ranges::KeyRange;

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
