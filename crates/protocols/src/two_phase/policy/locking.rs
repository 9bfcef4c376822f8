//! When keys are locked that a transaction writes.

/// When keys can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPolicy {
    /// When the commit prepares.
    AtPrepare,
    /// As they are written (encounter time), or when the commit prepares, as the user
    /// [chooses](crate::two_phase::Variant::locks_at_writes).
    AtWriteOrPrepare,
}

impl LockPolicy {
    /// Whether keys may be locked as they are written, before the commit.
    #[inline]
    pub const fn may_lock_at_writes(self) -> bool {
        matches!(self, LockPolicy::AtWriteOrPrepare)
    }
}
