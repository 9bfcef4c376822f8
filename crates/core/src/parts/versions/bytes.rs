//! What versions take, in bytes.

use crate::bytes::SmallBytes;

/// Bytes of a value, where there is one.
#[inline(always)]
pub(super) fn len(value: Option<&SmallBytes>) -> usize {
    value.map_or(0, SmallBytes::len)
}
