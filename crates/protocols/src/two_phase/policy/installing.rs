//! Where the versions of a transaction are installed.

/// Where versions are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallPolicy {
    /// At the commit timestamp.
    AtCommitTimestamp,
    /// At the serialization timestamp, which may lie below the commit timestamp.
    AtSerializationTimestamp,
}

impl InstallPolicy {
    /// Whether the protocol has stale reads of updates that need not abort them: these are
    /// serialized, and their versions installed, before transactions that were committed earlier.
    #[inline]
    pub const fn may_time_warp(self) -> bool {
        matches!(self, InstallPolicy::AtSerializationTimestamp)
    }
}
