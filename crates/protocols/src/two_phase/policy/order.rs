//! In which order a repository applies decided transactions.

/// In which order decided transactions are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOrder {
    /// In the order of their timestamps, from a commit queue.
    ByTimestamp,
    /// As their decisions arrive.
    AsDecided,
}

impl ApplyOrder {
    /// Whether they leave a commit queue in the order of their timestamps.
    #[inline]
    pub const fn queues(self) -> bool {
        matches!(self, ApplyOrder::ByTimestamp)
    }
}
