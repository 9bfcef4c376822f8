//! Versions become the newest ones of their keys.

use muesli_core::parts::versions::{Handle, Versions};
use muesli_core::{SmallBytes, Timestamp};

/// At most so many deleted keys are removed with each that is deleted.
const COLLECT_BUDGET: usize = 4;

/// Makes `value` the newest version of a key. Nobody reads an older one, so none is kept. Returns
/// how many deletions were collected.
pub(in super::super) fn install(
    store: &mut Versions,
    handle: Handle,
    value: Option<SmallBytes>,
    at: Timestamp,
) -> u64 {
    // After a checkpoint this version or a later one may be there already; otherwise only where
    // transactions are done out of order, on purpose.
    if store.newest(handle).at >= at {
        return 0;
    }
    match value {
        Some(value) => {
            store.overwrite(handle, value, at);
            0
        }
        None => {
            store.install(handle, None, at);
            store.collect(at, COLLECT_BUDGET)
        }
    }
}
