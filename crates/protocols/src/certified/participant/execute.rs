//! Procedures that are run when their command's turn has come (state machine replication): on the
//! newest versions, by each site, with the same result at all. Nothing that they do can conflict.

use muesli_broadcast::MemberId;
use muesli_core::parts::single_repository::NewValues;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::recorder::RecordedOperations;
use muesli_core::{Abort, Decision, RepositoryId, Timestamp};

use super::CertifiedSite;
use crate::certified::message::command::{CallsEnd, CertifiedCommand};
use crate::certified::message::objects::key_object;
use crate::sight::Sight;

/// What procedures of a command have come to.
pub(super) struct ExecutedCalls {
    /// Where they take effect, if they do.
    pub decision: Decision,
    /// What they wrote.
    pub writes: NewValues,
    /// What they gave, or why they have no effect.
    pub end: CallsEnd,
    /// For a history: where they lie, and what they did.
    pub operations: Option<(Timestamp, RecordedOperations)>,
}

impl CertifiedSite {
    /// Runs the procedures of a command: where it takes effect, what they wrote, what they gave.
    ///
    /// # Panics
    /// This node does not know one of them, and so cannot do what the others do.
    pub(super) fn execute(
        &self,
        leader: MemberId,
        command: &CertifiedCommand,
        cx: Sight<'_>,
    ) -> ExecutedCalls {
        assert!(!command.calls.is_empty(), "{} runs nothing", command.txn);
        assert!(command.writes.is_empty(), "{} writes beside what it runs", command.txn);
        let mut sets = TransactionSets::default();
        let seen_by = (cx.catalog, cx.settings);
        let results = match self.data().run(command, &mut sets, seen_by, cx.recording) {
            Ok(results) => results,
            Err(stop) => {
                let (decision, operations) = (Decision::Abort(Abort::Rollback), None);
                return ExecutedCalls {
                    decision,
                    writes: Vec::new(),
                    end: stop.into(),
                    operations,
                };
            }
        };
        // Of what was read, the command may have no object but that of a range.
        let writes = sets.writes.iter().map(|write| key_object(write.space, &write.key));
        let counter = self.counter_above(command.after, writes);
        let at = Timestamp::new(counter, RepositoryId(leader.0));
        let writes = sets.writes.into_iter().map(|it| (it.space, it.key, it.value)).collect();
        let (end, operations) = (CallsEnd::Given { results }, Some((at, sets.operations)));
        ExecutedCalls { decision: Decision::Commit(at), writes, end, operations }
    }
}
