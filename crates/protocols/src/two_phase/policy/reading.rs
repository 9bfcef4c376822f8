//! What a transaction's reads see.

/// What reads see, and how they go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPolicy {
    /// At one timestamp, which the first read fixes.
    AtTimestamp,
    /// At a vector, of which each repository fixes its entry at the first read there.
    AtVector,
    /// The newest version there is, once for each key.
    NewestOnce,
    /// The newest version there is, and at one timestamp: where a version is newer than that, the
    /// timestamp moves to the present, if all else that was read is the newest there.
    NewestForwarded,
}

impl ReadPolicy {
    /// Whether reads are made at a snapshot; else they see the newest version, whichever that is,
    /// and once more what they saw before.
    #[inline]
    pub const fn has_snapshots(self) -> bool {
        !matches!(self, ReadPolicy::NewestOnce)
    }

    /// Whether the snapshot of a transaction that runs can be moved to a later one, at which all
    /// that was read can be looked at once more.
    #[inline]
    pub const fn can_move(self) -> bool {
        self.has_snapshots()
    }

    /// Whether every read is to see the newest version, and moves the snapshot where it must.
    #[inline]
    pub const fn is_forwarded(self) -> bool {
        matches!(self, ReadPolicy::NewestForwarded)
    }

    /// Whether reads that fix a part of the snapshot go out side by side; then an answer is taken
    /// only if it [fits](crate::two_phase::Time::fits) what was learnt since it was asked for.
    #[inline]
    pub const fn is_side_by_side(self) -> bool {
        matches!(self, ReadPolicy::AtVector)
    }

    /// Whether a transaction sees what earlier ones of its node have seen, which a timestamp of its
    /// session does not tell.
    #[inline]
    pub const fn nodes_remember(self) -> bool {
        matches!(self, ReadPolicy::AtVector)
    }
}
