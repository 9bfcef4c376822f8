//! For which locks a prepare waits, and who is refused instead.
//!
//! A prepare that meets a lock at a repository either waits there, for
//! [`lock_wait`](muesli_core::Settings::lock_wait) at most, or is refused at once. What was read
//! and is locked by a writer is another matter: the read would be stale, so nobody waits for that
//! but where waits are ordered, or where the user lets prepares wait [for all](super::LockWaits).

/// For which locks prepares wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPolicy {
    /// For those of keys that are only written, whoever has them. Circles of waits end by
    /// `lock_wait`.
    ForWrites,
    /// The same, or for none, as the user [chooses](crate::two_phase::Variant::waits_for_locks).
    ForWritesOrNone,
    /// Only for older transactions, and for those that are decided, so that no circle forms:
    /// whoever meets none but younger ones is refused at once. Where the user
    /// [chooses](crate::two_phase::Variant::orders_waits) otherwise, as by `ForWrites`.
    ForOlder,
}

impl WaitPolicy {
    /// Whether there may be no waiting at all.
    #[inline]
    pub const fn may_refuse_all(self) -> bool {
        matches!(self, WaitPolicy::ForWritesOrNone)
    }

    /// Whether waits may go in one direction of an order only.
    #[inline]
    pub const fn may_order(self) -> bool {
        matches!(self, WaitPolicy::ForOlder)
    }
}
