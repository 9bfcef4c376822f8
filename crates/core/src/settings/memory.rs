//! What the versions of a process take, and how much they may.
//!
//! Every repository of a process counts the bytes of its keys and versions, and of what it keeps of
//! transactions, and reports them here once in a while: what is shown to operators, and judged.
//! There are two limits. At the limit of all memory, writes are refused and nothing else: reads go
//! on, and so do deletes. At the limit of old versions, which snapshots hold, the oldest snapshots
//! become too old.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a repository holds is counted anew once so many bytes have come and gone there, and not
/// only once in a while: so nobody passes the limit by much more.
pub const REPORT_BYTES: usize = 1 << 20;

/// So many bytes: in all, and of versions that were replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Keys and all versions of them, with what each costs beside its bytes, and what is kept of
    /// transactions, under way and over.
    pub all: u64,
    /// Of these, versions that were replaced and that a snapshot may need.
    pub old: u64,
}

/// The memory of a process: its limits, and what its repositories have reported.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Above this, writes are refused.
    pub limit: u64,
    /// Above this, the oldest snapshots become too old.
    pub old_limit: u64,
    all: Arc<AtomicU64>,
    old: Arc<AtomicU64>,
}

impl Memory {
    /// With these limits; nothing was reported.
    pub fn new(limit: u64, old_limit: u64) -> Memory {
        Memory { limit, old_limit, all: Arc::default(), old: Arc::default() }
    }

    /// The same limits, for another process.
    #[must_use]
    pub fn anew(&self) -> Memory {
        Memory::new(self.limit, self.old_limit)
    }

    /// A repository holds `now` where it had reported `before`.
    pub fn report(&self, before: Held, now: Held) {
        // Wrapping: what is less than before is added as its complement.
        self.all.fetch_add(now.all.wrapping_sub(before.all), Ordering::Relaxed);
        self.old.fetch_add(now.old.wrapping_sub(before.old), Ordering::Relaxed);
    }

    /// What all repositories hold.
    pub fn held(&self) -> Held {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Held { all: of(&self.all), old: of(&self.old) }
    }

    /// Whether writes are refused.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.all.load(Ordering::Relaxed) > self.limit
    }
}

impl Default for Memory {
    /// As good as no limit for all, 256 MiB for what was replaced.
    fn default() -> Memory {
        Memory::new(u64::MAX >> 1, 256 << 20)
    }
}

/// By the limits.
impl PartialEq for Memory {
    fn eq(&self, other: &Memory) -> bool {
        (self.limit, self.old_limit) == (other.limit, other.old_limit)
    }
}

impl Eq for Memory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_add_up_and_come_down_again() {
        let memory = Memory::new(100, 50);
        let (none, some) = (Held::default(), Held { all: 90, old: 30 });
        memory.report(none, some);
        memory.report(none, Held { all: 11, old: 0 });
        assert_eq!((memory.held(), memory.is_full()), (Held { all: 101, old: 30 }, true));
        memory.report(some, Held { all: 10, old: 0 });
        assert_eq!((memory.held(), memory.is_full()), (Held { all: 21, old: 0 }, false));
        assert_eq!((memory.anew(), memory.anew().held()), (memory, none));
    }
}
