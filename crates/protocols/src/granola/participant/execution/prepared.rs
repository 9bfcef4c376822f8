//! What came of a run, put aside until the fate of its transaction is known.

use muesli_core::parts::transaction::{ReadEntry, TransactionSets, WriteEntry};
use muesli_core::ranges::KeyRange;

use super::Notes;
use crate::granola::message::sizes::answers_bytes;
use crate::granola::message::{Few, PartAnswer, Refusal};

/// What was run and awaits its fate.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct PreparedRun {
    pub sets: TransactionSets,
    pub notes: Notes,
    /// What came of it. A refusal, too, is kept as it is by the claims on what it read.
    pub ran: Option<Result<Few<(u16, PartAnswer)>, Refusal>>,
}

impl PreparedRun {
    /// How many bytes it takes, about.
    pub fn held_bytes(&self) -> usize {
        let TransactionSets { reads, writes, scans, .. } = &self.sets;
        let entries = reads.len() * size_of::<ReadEntry>()
            + writes.len() * size_of::<WriteEntry>()
            + scans.len() * size_of::<KeyRange>();
        let given = match &self.ran {
            Some(Ok(answers)) => answers_bytes(answers),
            Some(Err(_)) | None => 0,
        };
        size_of::<PreparedRun>() + entries + self.sets.bytes() + given
    }
}
