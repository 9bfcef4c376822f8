//! Where a node's records go, and when they are stable: the seam for durable logs.
//!
//! The driver appends every record as the node makes it, begins to make them stable once a turn,
//! and lets nothing leave that depends on a record before the log says that it is stable.

use muesli_core::{Encode, LogPosition, Role};
use muesli_log::{CheckpointStream, Published, Sequence};
use thiserror::Error;

/// The log cannot be relied on any more. The node stops; nothing is taken for written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the log failed: {0}")]
pub struct LogFailure(pub String);

/// A log of one node. Positions count the records appended in this life of the process, from 1.
pub trait Log: Send {
    /// Appends a record, which is not stable yet.
    ///
    /// # Errors
    /// Nothing more can be made stable.
    fn append(&mut self, role: Role, record: &dyn Encode) -> Result<(), LogFailure>;

    /// Begins to make stable all that was appended; called at most once a turn. Where that takes
    /// time, another thread does it, and wakes the loop by the waker that the log was made with.
    /// Answers whether so much waits already that no new work should be taken.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn sync(&mut self) -> Result<bool, LogFailure>;

    /// Has all that was appended written, without making it stable: that happens with the next
    /// [`sync`](Self::sync). Answers as that does.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn write(&mut self) -> Result<bool, LogFailure> {
        Ok(false)
    }

    /// Up to which position records are stable now; never falls.
    ///
    /// # Errors
    /// What was to be made stable is not, and may be lost.
    fn stable(&mut self) -> Result<LogPosition, LogFailure>;

    /// Up to which record of all lives of the process the log is stable; 0 where nothing is kept.
    fn kept(&self) -> u64 {
        0
    }

    /// How often something was made stable.
    fn syncs(&self) -> u64 {
        0
    }

    /// Whether so much was appended since the last checkpoint that another one should begin.
    fn is_checkpoint_due(&self) -> bool {
        false
    }

    /// Begins a checkpoint that covers the records up to there; `None`: this log takes none. If it
    /// is to stand `alone`, older ones go once it is there, and so do all files of the log that
    /// hold none but these records.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn begin_checkpoint(
        &mut self,
        covers: LogPosition,
        alone: bool,
    ) -> Result<Option<CheckpointStream>, LogFailure> {
        let _ = (covers, alone);
        Ok(None)
    }

    /// A checkpoint is on the disk: what it covers may go.
    fn published(&mut self, published: &Published) {
        let _ = published;
    }

    /// Up to which record of all lives of the process files are gone, as
    /// [`published`](Self::published) had asked.
    fn truncated(&self) -> Sequence {
        Sequence(u64::MAX)
    }

    /// Makes stable all that was appended, and ends.
    ///
    /// # Errors
    /// As [`stable`](Self::stable).
    fn close(self: Box<Self>) -> Result<(), LogFailure>;
}

/// `durability = "memory"`: nothing survives the process, so all is as stable as it will be.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryLog {
    appended: u64,
}

impl Log for MemoryLog {
    fn append(&mut self, _: Role, _: &dyn Encode) -> Result<(), LogFailure> {
        self.appended += 1;
        Ok(())
    }

    fn sync(&mut self) -> Result<bool, LogFailure> {
        Ok(false)
    }

    fn stable(&mut self) -> Result<LogPosition, LogFailure> {
        Ok(LogPosition(self.appended))
    }

    fn close(self: Box<Self>) -> Result<(), LogFailure> {
        Ok(())
    }
}
