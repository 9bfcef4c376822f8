//! Interactive transactions over one-round ones (section 7.5): the end.
//!
//! The end of a transaction is a one-round transaction itself. It checks that nothing of what was
//! read has changed, and then writes. Where all of it is in one partition, that needs no votes but
//! on the timestamp, since all who hold the partition come to the same decision; where nothing was
//! read, neither, since nobody refuses; else it is coordinated. A reader whose reads were all made
//! by one request is over as it is; any other is checked, at one timestamp for all.

use std::collections::BTreeMap;

use muesli_core::parts::locator::Locator;
use muesli_core::recorder::{RecordedOperations, Status};
use muesli_core::{Abort, Answer, Catalog, Committed, Failure, OpId, Step, Timestamp, Txn, TxnId};

use crate::granola::coordinator::calls::{Holders, participants_of};
use crate::granola::coordinator::{Context, Coordinator, InteractiveSlot, Purpose, RequestVerdict};
use crate::granola::message::limits::check_parts_size;
use crate::granola::message::{Agreement, Few, Install, Part, PartAnswer, Request, Task};

impl Coordinator {
    pub(in super::super) fn on_commit(
        &mut self,
        txn: Txn,
        cx: &mut Context<'_>,
    ) -> Step<Committed> {
        if let Err(failure) = self.open(txn) {
            return Step::Done(Err(failure));
        }
        // Reads that are under way as their transaction is to end have come too late.
        self.fail_operations(txn, &Failure::Ended, cx);
        let reader = self.reader();
        let slot = self.slot(txn).expect("an open transaction");
        let read_only = slot.sets.writes.is_empty();
        if read_only && slot.looks <= 1 {
            let at = slot.read_at.max(slot.options.lower_bound);
            self.end(txn, None, Status::Committed, Some(at), cx);
            return Step::Done(Ok(Committed { at }));
        }
        let follower_read = slot.options.follower_reads && read_only;
        let lower_bound = if follower_read { slot.lower_bound() } else { slot.options.lower_bound };
        let mut parts = slot.divide(cx.catalog);
        parts.iter_mut().for_each(|part| part.owners = self.names.moved(&part.partition).cloned());
        let participants = participants_of(&parts, Holders::of(read_only, reader), cx.catalog);
        let agreement = self.agree_on_end(&parts, participants.len(), read_only);
        if let Err(failure) = check_parts_size(&parts, &cx.settings.limits) {
            self.abort(txn, &failure, cx);
            return Step::Done(Err(failure));
        }
        let settled_below = self.settled_below();
        let id = self.next_txn_id();
        assert!(settled_below <= id.sequence, "{id} settles itself");
        self.slot(txn).expect("an open transaction").ending = Some(id.sequence);
        let op = self.next_op();
        let follower_read = follower_read && agreement == Agreement::Alone;
        let request = Request {
            settled_below,
            lower_bound,
            agreement,
            read_only,
            follower_read,
            ..Request::new(id, participants, parts)
        };
        self.ask(request, Purpose::Commit(txn, op), cx);
        Step::Wait(op)
    }

    /// How the participants of the end of an interactive transaction agree, or those of a read.
    pub(in super::super) fn agree_on_end(
        &self,
        parts: &[Part],
        participants: usize,
        read_only: bool,
    ) -> Agreement {
        let one_partition = parts.iter().all(|part| part.partition == parts[0].partition);
        let blind = parts.iter().all(|part| match &part.task {
            Task::Install(install) => install.reads.is_empty() && install.scans.is_empty(),
            _ => false,
        });
        match participants {
            1 => Agreement::Alone,
            _ if self.switches.has_master() => Agreement::Coordinated,
            _ if one_partition || blind || read_only => Agreement::Independent,
            _ => Agreement::Coordinated,
        }
    }

    /// The participants have answered the end of a transaction.
    pub(in super::super) fn on_commit_end(
        &mut self,
        txn: Txn,
        op: OpId,
        request: &Request,
        verdict: RequestVerdict,
        cx: &mut Context<'_>,
    ) {
        let (status, at, result) = match verdict {
            RequestVerdict::Done(at, answers) => {
                note_absent(request.txn, at, &answers, cx);
                (Status::Committed, Some(at), Ok(Answer::Committed(Committed { at })))
            }
            RequestVerdict::Conflict | RequestVerdict::Moved(_) | RequestVerdict::Forgotten(_) => {
                (Status::Aborted, None, Err(Failure::Aborted(Abort::Locked)))
            }
            RequestVerdict::Refused(refusal) => {
                (Status::Aborted, None, Err(Failure::from(refusal)))
            }
        };
        self.end(txn, Some(request.txn), status, at, cx);
        cx.complete(op, result);
    }
}

/// For histories: the deletions that participants have found where the transaction found keys
/// absent. Where they are on this node they have recorded so themselves.
pub(in super::super) fn note_absent(
    txn: TxnId,
    at: Timestamp,
    answers: &[(u16, PartAnswer)],
    cx: &mut Context<'_>,
) {
    let Some(recorder) = &mut cx.effects.recorder else { return };
    for (part, answer) in answers {
        let PartAnswer::Absent(absent) = answer else { continue };
        let mut operations = RecordedOperations::default();
        for (space, key, deleted) in absent {
            operations.read(*space, key, *deleted, None);
        }
        recorder.shared(txn, *part, at, operations);
    }
}

impl InteractiveSlot {
    /// What is to be checked and written, by partition.
    fn divide(&self, catalog: &Catalog) -> Few<Part> {
        let mut parts: BTreeMap<u16, Install> = BTreeMap::new();
        for read in &self.sets.reads {
            let part = parts.entry(catalog.partition(read.space, &read.key)).or_default();
            part.reads.push((read.space, read.key.clone(), read.version));
        }
        for (partition, seen) in &self.scans {
            parts.entry(*partition).or_default().scans.push(seen.clone());
        }
        for write in &self.sets.writes {
            let part = parts.entry(catalog.partition(write.space, &write.key)).or_default();
            part.writes.push((write.space, write.key.clone(), write.value.clone()));
        }
        let part = |(partition, install)| Part {
            partition,
            owners: None,
            task: Task::Install(Box::new(install)),
        };
        parts.into_iter().map(part).collect()
    }
}
