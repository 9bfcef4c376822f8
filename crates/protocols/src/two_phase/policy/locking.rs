//! When keys are locked that a transaction writes.

/// When keys can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPolicy {
    /// When the commit prepares.
    AtPrepare,
    /// As they are written (encounter time), or when the commit prepares, as the user
    /// [chooses](crate::two_phase::Variant::locks_at_writes).
    AtWriteOrPrepare,
    /// When the commit prepares, or never, as the user
    /// [chooses](crate::two_phase::Variant::has_intervals).
    ///
    /// Where nothing is locked, a vote says up to where what it read stays the newest, and until
    /// its end is known those who write a key that was read are put above that. Several may be
    /// about to write a key; their versions go where they lie, whoever is decided first.
    AtPrepareOrNever,
}

impl LockPolicy {
    /// Whether keys may be locked as they are written, before the commit.
    #[inline]
    pub const fn may_lock_at_writes(self) -> bool {
        matches!(self, LockPolicy::AtWriteOrPrepare)
    }

    /// Whether votes may tell intervals in which what was read is the newest, and nothing is
    /// locked.
    #[inline]
    pub const fn may_have_intervals(self) -> bool {
        matches!(self, LockPolicy::AtPrepareOrNever)
    }
}
