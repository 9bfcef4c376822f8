//! Which partitions a transaction touched, for those who decide where partitions are to be.

use muesli_core::{EVERYWHERE, Timestamp};

use crate::granola::message::{Part, Request, Task};
use crate::granola::participant::{Context, Participant};

impl Participant {
    /// Counts a transaction that was done at this timestamp, and samples it where it is one of
    /// those that are. The request names the partitions at all participants; each of them counts
    /// the fragments that it did, and the first one counts the transaction. Reads that an
    /// interactive transaction asks for before its end are fragments, and no transactions.
    #[inline]
    pub(super) fn note_accesses(&self, request: &Request, at: Timestamp, cx: &mut Context<'_>) {
        let catalog = cx.catalog;
        let Some(sampler) = &mut cx.effects.environment.accesses else { return };
        let dealt = |part: &&Part| part.is_about_keys() && part.partition != EVERYWHERE;
        let parts = || request.parts.iter().filter(dealt);
        for part in parts().filter(|part| part.is_held_by(self.id, catalog)) {
            sampler.count_fragment(part.partition);
        }
        let looks = |part: &Part| matches!(part.task, Task::Read(_) | Task::Scan { .. });
        if parts().all(looks) {
            return;
        }
        if request.participants.first() == Some(&self.id) {
            sampler.count_transaction(request.participants.len() > 1);
        }
        if sampler.keeps(request.txn) {
            sampler.keep(request.txn, at, parts().map(|part| part.partition));
        }
    }
}
