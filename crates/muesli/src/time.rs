//! Lengths of time as drivers have them.

use std::time::Duration;

use muesli_core::Nanos;

/// As nanoseconds; a time that is too long for them stands for ever.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX >> 1))
}
