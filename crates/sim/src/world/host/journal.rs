//! What the transactions of a host did, and what their clients were told of it.
//!
//! A coordinator records a transaction when it ends there. If the answer still waits for the log,
//! its client is told later, and if the host crashes or the client vanishes first, never. The
//! journal keeps the two apart: the end of a transaction is when its client was told, and a commit
//! that was never told is of unknown outcome, whatever the coordinator had recorded. So a session
//! that goes on after one of its clients has vanished owes nothing to a commit that came later:
//! whoever runs its next transaction cannot have heard of it.
//!
//! What transactions have read that a crash ended is kept and marked: they may have seen writes of
//! their own node that were not stable and are lost with it. Whoever makes the history leaves out
//! what they read of such writes.

use std::collections::BTreeMap;

use muesli_core::recorder::{PartRan, RecordedOperation, Status, TxnRecord};
use muesli_core::{Answer, Environment, Failure, Recorder, Timestamp, TxnId, TxnLevel};

use crate::hardware::clock::LocalClock;
use crate::time::{Span, VirtualTime};

/// The transactions begun at one host, over all lives of its node.
///
/// Everything is in one recorder: a look-up must cost the same however long the run is.
#[derive(Debug, Default)]
pub(in crate::world) struct WorldJournal {
    recorder: Recorder,
    /// The transactions whose answers waited or found nobody, by their place in the recorder.
    answers: BTreeMap<usize, Delivery>,
    /// So many transactions were begun before the last crash.
    before_crash: usize,
}

/// What has become of the answer to a commit.
#[derive(Clone, Copy, Debug)]
enum Delivery {
    /// It waits for the log, perhaps for ever.
    Waits,
    /// The client was told after it had waited.
    ReportedTransaction(VirtualTime),
    /// It could be told, and the client was gone.
    Unheard,
}

/// A transaction whose client is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct PendingReport {
    /// Its place in the recorder.
    place: usize,
}

impl PendingReport {
    /// The one at this place of the list.
    pub(in crate::world) fn at(place: usize) -> PendingReport {
        PendingReport { place }
    }

    /// Where it stands in the list.
    pub(in crate::world) fn place(self) -> usize {
        self.place
    }
}

/// Matches the answers of one batch of effects with the transactions recorded with them.
#[derive(Debug, Default)]
pub(in crate::world) struct Matching {
    /// The transactions that were recorded as committed, by place, in order.
    committed: std::vec::IntoIter<(usize, Option<Timestamp>)>,
}

/// A transaction of the history, its times put back from its node's clock to virtual time.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The record as its coordinator made it. Its times are by the node's own clock.
    pub record: TxnRecord,
    /// How it ended as far as its client was told.
    pub status: Status,
    /// What it did, in order.
    pub operations: Vec<RecordedOperation>,
    /// Whether its node crashed in it or after it, and its client was not told that it committed.
    pub crashed: bool,
    /// When it began, or up to 2 ns before.
    pub begin: VirtualTime,
    /// When its client was told of its end, or up to 2 ns after; `None` if it never was.
    pub end: Option<VirtualTime>,
}

impl WorldJournal {
    /// Takes over what has been recorded since the last look, ahead of the answers that belong to
    /// it, which are among the effects still to be sorted.
    pub(in crate::world) fn look(&mut self, environment: &mut Environment) -> Matching {
        let mut committed = Vec::new();
        if let Some(recorder) = environment.recorder.as_deref_mut()
            && !recorder.is_empty()
        {
            let ended = recorder.transactions().zip(self.recorder.len()..);
            let ended = ended.filter(|((record, _), _)| record.status == Status::Committed);
            committed.extend(ended.map(|((record, _), place)| (place, record.at)));
            self.recorder.absorb(recorder);
        }
        Matching { committed: committed.into_iter() }
    }

    /// The answer of a commit waits for the log: until it is told, nothing is promised.
    pub(in crate::world) fn gate(
        &mut self,
        matching: &mut Matching,
        result: &Result<Answer, Failure>,
    ) -> Option<PendingReport> {
        let pending_report = matching.pending_report_of(result)?;
        self.note(pending_report, Delivery::Waits);
        Some(pending_report)
    }

    /// The client is told, after it has waited.
    pub(in crate::world) fn tell(&mut self, pending_report: PendingReport, now: VirtualTime) {
        self.note(pending_report, Delivery::ReportedTransaction(now));
    }

    /// The client was gone before it heard the answer.
    pub(in crate::world) fn unheard(&mut self, pending_report: PendingReport) {
        self.note(pending_report, Delivery::Unheard);
    }

    fn note(&mut self, pending_report: PendingReport, answer: Delivery) {
        self.answers.insert(pending_report.place, answer);
    }

    /// The node has crashed; `recorder` has what was running there.
    pub(in crate::world) fn crash(&mut self, mut recorder: Recorder) {
        self.recorder.absorb(&mut recorder);
        self.before_crash = self.recorder.len();
    }

    /// The run is over; `recorder` has what was running there.
    pub(in crate::world) fn finish(&mut self, mut recorder: Recorder) {
        self.recorder.absorb(&mut recorder);
    }

    /// All transactions, in the order they ended at their coordinator.
    pub(in crate::world) fn transactions<'a>(
        &'a self,
        clock: &'a LocalClock,
    ) -> impl Iterator<Item = Recorded> {
        let transactions = self.recorder.transactions().enumerate();
        transactions.map(move |(place, (record, operations))| {
            self.recorded(place, record, operations, clock)
        })
    }

    /// What participants of this host ran for `txn`, over all their lives.
    pub(in crate::world) fn executed(
        &self,
        txn: TxnId,
    ) -> impl Iterator<Item = Vec<RecordedOperation>> + '_ {
        self.recorder.executed_for(txn)
    }

    /// What participants of this host ran of the parts of `txn`. One that was run again was lost
    /// in a crash before, and nobody had been told of it.
    pub(in crate::world) fn ran(&self, txn: TxnId) -> Vec<PartRan> {
        self.recorder.ran_for(txn).collect()
    }

    /// What a transaction of this host is within its root.
    pub(in crate::world) fn level_of(&self, txn: TxnId) -> TxnLevel {
        self.recorder.level_of(txn)
    }

    /// The timestamp at which some participant of this host applied `txn`: the last time, as with
    /// what was [run](Self::ran).
    pub(in crate::world) fn applied_at(&self, txn: TxnId) -> Option<Timestamp> {
        self.recorder.applied_at(txn)
    }

    fn recorded(
        &self,
        place: usize,
        record: TxnRecord,
        operations: impl Iterator<Item = RecordedOperation>,
        clock: &LocalClock,
    ) -> Recorded {
        // Drift costs the way back up to two nanoseconds; they must not order what overlapped.
        let slack = if clock.is_exact() { Span::ZERO } else { Span::from_nanos(2) };
        let answer = self.answers.get(&place);
        let (status, end) = match answer {
            Some(Delivery::Waits | Delivery::Unheard) => (Status::Unknown, None),
            Some(Delivery::ReportedTransaction(reported)) => (record.status, Some(*reported)),
            None => (record.status, record.end.map(|end| clock.virtual_at(end) + slack)),
        };
        let crashed = place < self.before_crash && status != Status::Committed
            || matches!(answer, Some(Delivery::Waits));
        let operations = operations.collect();
        // A turn is at its times before the world is. Where a fault changes the clock meanwhile,
        // the way back goes by another piece of it, and may come out late by a part of the turn.
        let begin = clock.virtual_at(record.begin);
        let begin = end.map_or(begin, |end| begin.min(end));
        Recorded { record, status, operations, crashed, begin, end }
    }
}

impl Matching {
    /// The transaction that an answer belongs to: both are in the order of ending, but a
    /// transaction that ended at once has no answer.
    pub(in crate::world) fn pending_report_of(
        &mut self,
        result: &Result<Answer, Failure>,
    ) -> Option<PendingReport> {
        let reported = match result {
            Ok(Answer::Committed(committed) | Answer::Answered(committed, _)) => committed.at,
            Ok(Answer::Invoked(invoked)) => invoked.at,
            _ => return None,
        };
        let (place, _) = self.committed.find(|(_, at)| *at == Some(reported))?;
        Some(PendingReport { place })
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::recorder::RecordedOperations;
    use muesli_core::{Committed, NodeId};

    use super::*;
    use crate::hardware::clock::Drift;

    /// What became of a transaction before its node crashed, or after it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum JournalCase {
        /// It committed, and its client was told at once.
        CommittedAtOnce,
        /// It committed, and its client was told when the log was stable.
        CommittedDelayed,
        /// It committed, and its client was never told.
        Untold,
        /// It committed, and its client was gone.
        Unheard,
        Aborted,
        /// Its client was told that nobody knows.
        Unknown,
        Running,
    }

    const CASES: [JournalCase; 7] = [
        JournalCase::CommittedAtOnce,
        JournalCase::CommittedDelayed,
        JournalCase::Untold,
        JournalCase::Unheard,
        JournalCase::Aborted,
        JournalCase::Unknown,
        JournalCase::Running,
    ];

    fn recorder_of(case: JournalCase, sequence: u64) -> Recorder {
        let status = match case {
            JournalCase::CommittedAtOnce
            | JournalCase::CommittedDelayed
            | JournalCase::Untold
            | JournalCase::Unheard => Status::Committed,
            JournalCase::Aborted => Status::Aborted,
            JournalCase::Unknown => Status::Unknown,
            JournalCase::Running => Status::Running,
        };
        let id = TxnId { node: NodeId(0), incarnation: 1, sequence };
        let (end, at) = (Some(muesli_core::Nanos(2)), Some(Timestamp(sequence)));
        let begin = muesli_core::Nanos(1);
        let (session, read_only, staleness) = (0, false, None);
        let record = TxnRecord { id, session, begin, end, status, read_only, at, staleness };
        let mut recorder = Recorder::new();
        recorder.transaction(&record, &RecordedOperations::default());
        recorder
    }

    /// A transaction ends in this way, in a turn of its own.
    fn end(journal: &mut WorldJournal, case: JournalCase, sequence: u64) {
        let recorder = Some(Box::new(recorder_of(case, sequence)));
        let mut environment = Environment { recorder, ..Environment::default() };
        let mut matching = journal.look(&mut environment);
        let committed = Committed { at: Timestamp(sequence) };
        let answer = Ok(Answer::Committed(committed));
        let now = VirtualTime::from_nanos(5);
        match case {
            JournalCase::CommittedDelayed => {
                let pending_report = journal.gate(&mut matching, &answer).unwrap();
                journal.tell(pending_report, now);
            }
            JournalCase::Untold => assert!(journal.gate(&mut matching, &answer).is_some()),
            JournalCase::Unheard => {
                let pending_report = matching.pending_report_of(&answer).unwrap();
                journal.unheard(pending_report);
            }
            JournalCase::CommittedAtOnce
            | JournalCase::Aborted
            | JournalCase::Unknown
            | JournalCase::Running => {}
        }
    }

    /// Which of all cases count as crashed, in each of the lives of a node that ended so many times
    /// by a crash.
    fn crashed(crashes: u64) -> Vec<Vec<JournalCase>> {
        let (mut journal, mut sequence) = (WorldJournal::default(), 0);
        for incarnation in 0..=crashes {
            for case in CASES.into_iter().filter(|case| *case != JournalCase::Running) {
                sequence += 1;
                end(&mut journal, case, sequence);
            }
            sequence += 1;
            let running = recorder_of(JournalCase::Running, sequence);
            match incarnation < crashes {
                true => journal.crash(running),
                false => journal.finish(running),
            }
        }
        let clock = LocalClock::new(Span::ZERO, Drift::new(0));
        let all: Vec<_> = journal.transactions(&clock).collect();
        let chunks = all.chunks(CASES.len());
        let crashed = |incarnation: &[Recorded]| {
            let marked =
                CASES.into_iter().zip(incarnation).filter(|(_, recorded)| recorded.crashed);
            marked.map(|(case, _)| case).collect()
        };
        chunks.map(crashed).collect()
    }

    /// A commit that its client was told of was stable, and so was what it had read. What others
    /// have read may be lost with the crash: it counts only as far as it lasts.
    #[test]
    fn a_crash_marks_what_ended_before_it_but_for_commits_that_clients_know_of() {
        let before = [
            JournalCase::Untold,
            JournalCase::Unheard,
            JournalCase::Aborted,
            JournalCase::Unknown,
            JournalCase::Running,
        ];
        let after = [JournalCase::Untold];
        assert_eq!(crashed(0), [after.to_vec()]);
        assert_eq!(crashed(1), [before.to_vec(), after.to_vec()]);
        assert_eq!(crashed(2), [before.to_vec(), before.to_vec(), after.to_vec()]);
    }

    /// Whose answer waits for the log when the run ends was never told, crash or not.
    #[test]
    fn a_transaction_ends_for_its_client_when_its_answer_leaves() {
        let mut journal = WorldJournal::default();
        for (sequence, case) in (1..).zip([
            JournalCase::CommittedAtOnce,
            JournalCase::CommittedDelayed,
            JournalCase::Untold,
        ]) {
            end(&mut journal, case, sequence);
        }
        let clock = LocalClock::new(Span::ZERO, Drift::new(0));
        let reported = journal.transactions(&clock).map(|it| (it.status, it.end));
        let at = |nanos| Some(VirtualTime::from_nanos(nanos));
        let expected =
            [(Status::Committed, at(2)), (Status::Committed, at(5)), (Status::Unknown, None)];
        assert_eq!(reported.collect::<Vec<_>>(), expected);
    }
}
