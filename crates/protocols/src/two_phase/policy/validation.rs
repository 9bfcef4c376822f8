//! What a transaction has read and is validated when it commits.

/// How a protocol validates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// The reads of updates are validated; whoever writes nothing is not.
    Updates,
    /// The reads of updates are validated, and the rows that their scans saw.
    UpdatesAndRows,
    /// Every transaction is validated, whether it writes or not.
    EveryTransaction,
    /// No transaction is validated.
    NoTransaction,
}

impl Validation {
    /// Whether what was read is validated when an update commits.
    #[inline]
    pub const fn has_reads(self) -> bool {
        !matches!(self, Validation::NoTransaction)
    }

    /// Whether a transaction that wrote nothing is validated like an update.
    #[inline]
    pub const fn has_readers(self) -> bool {
        matches!(self, Validation::EveryTransaction)
    }

    /// Whether the rows that a scan saw are validated as reads.
    #[inline]
    pub const fn has_rows(self) -> bool {
        matches!(self, Validation::UpdatesAndRows)
    }
}
