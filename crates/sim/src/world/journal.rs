//! What the transactions of a host did, and what their clients were told of it.
//!
//! A coordinator records a transaction when it ends there. If the answer still waits for the log,
//! its client is told later, and if the host crashes first, never. The journal keeps the two
//! apart: the end of a transaction is when its client was told, and a commit that was never told
//! is of unknown outcome, whatever the coordinator had recorded.
//!
//! Reads of transactions that a crash ended are left out. They may have seen writes of their own
//! node that were not stable and are lost with it; nobody who is left has seen them, so they prove
//! nothing of those writes.

use std::collections::BTreeMap;

use muesli_core::recorder::{Operation, PartRan, Status, TxnRecord};
use muesli_core::{Effects, OpResult, Protocol, Recorder, Timestamp, TxnId};

use crate::clock::LocalClock;
use crate::time::{Span, VirtualTime};

/// The transactions begun at one host, over all lives of its node.
#[derive(Debug, Default)]
pub(super) struct Journal {
    segments: Vec<Segment>,
}

/// What was recorded between two looks at the recorder.
#[derive(Debug)]
struct Segment {
    recorder: Recorder,
    /// The transactions whose answers waited, by their place in the recorder, and when they were
    /// told; `None`: not yet, or never.
    waited: Vec<(usize, Option<VirtualTime>)>,
    /// Whether these transactions were ended by a crash.
    crashed: bool,
}

/// A transaction whose client is to be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    segment: usize,
    waited: usize,
}

/// Matches the answers of one batch of effects with the transactions recorded with them.
pub(super) struct Matching {
    /// The transactions that were recorded as committed, by place in their segment, in order.
    committed: std::vec::IntoIter<(usize, Option<Timestamp>)>,
}

/// A transaction of the history, its times put back from its node's clock to virtual time.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The record as its coordinator made it. Its times are by the node's own clock.
    pub record: TxnRecord,
    /// How it ended as far as its client was told.
    pub status: Status,
    /// What it did, in order; without its reads if a crash ended it.
    pub operations: Vec<Operation>,
    /// When it began, or up to 2 ns before.
    pub begin: VirtualTime,
    /// When its client was told of its end, or up to 2 ns after; `None` if it never was.
    pub end: Option<VirtualTime>,
}

impl Journal {
    /// Takes over what has been recorded since the last look, ahead of the answers that belong to
    /// it, which are among the effects still to be sorted.
    pub(super) fn look<P: Protocol>(&mut self, effects: &mut Effects<P>) -> Matching {
        let mut committed = Vec::new();
        if let Some(recorder) = effects.recorder.as_deref_mut()
            && !recorder.is_empty()
        {
            let ended = recorder.transactions().enumerate();
            let ended = ended.filter(|(_, (record, _))| record.status == Status::Committed);
            committed.extend(ended.map(|(place, (record, _))| (place, record.at)));
            self.push(std::mem::take(recorder), false);
        }
        Matching { committed: committed.into_iter() }
    }

    fn push(&mut self, recorder: Recorder, crashed: bool) {
        self.segments.push(Segment { recorder, waited: Vec::new(), crashed });
    }

    /// The answer of a commit waits for the log: until it is told, nothing is promised.
    pub(super) fn gate(&mut self, matching: &mut Matching, result: &OpResult) -> Option<Promise> {
        let place = matching.place_of(result)?;
        let segment = self.segments.len().checked_sub(1)?;
        let waited = self.segments[segment].waited.len();
        self.segments[segment].waited.push((place, None));
        Some(Promise { segment, waited })
    }

    /// The client is told.
    pub(super) fn tell(&mut self, promise: Promise, now: VirtualTime) {
        self.segments[promise.segment].waited[promise.waited].1 = Some(now);
    }

    /// The node has crashed; `recorder` has what was running there.
    pub(super) fn crash(&mut self, recorder: Recorder) {
        self.push(recorder, true);
    }

    /// The run is over; `recorder` has what was running there.
    pub(super) fn finish(&mut self, recorder: Recorder) {
        self.push(recorder, false);
    }

    /// All transactions, in the order they ended at their coordinator.
    pub(super) fn transactions<'a>(
        &'a self,
        clock: &'a LocalClock,
    ) -> impl Iterator<Item = Recorded> {
        self.segments.iter().flat_map(move |segment| {
            let transactions = segment.recorder.transactions().enumerate();
            transactions.map(move |(place, (record, operations))| {
                segment.recorded(place, record, operations, clock)
            })
        })
    }

    /// What participants of this host ran for `txn`, over all their lives.
    pub(super) fn executed(&self, txn: TxnId) -> impl Iterator<Item = Vec<Operation>> + '_ {
        self.segments.iter().flat_map(move |segment| segment.recorder.executed_for(txn))
    }

    /// What participants of this host ran of the parts of `txn`. One that was run again was lost
    /// in a crash before, and nobody had been told of it.
    pub(super) fn ran(&self, txn: TxnId) -> Vec<PartRan> {
        let all = self.segments.iter().flat_map(|segment| segment.recorder.ran_for(txn));
        all.map(|ran| ((ran.told, ran.part), ran))
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect()
    }

    /// The timestamp at which some participant of this host applied `txn`: the last time, as with
    /// what was [run](Self::ran).
    pub(super) fn applied_at(&self, txn: TxnId) -> Option<Timestamp> {
        self.segments.iter().rev().find_map(|segment| segment.recorder.applied_at(txn))
    }
}

impl Segment {
    fn recorded(
        &self,
        place: usize,
        record: TxnRecord,
        operations: impl Iterator<Item = Operation>,
        clock: &LocalClock,
    ) -> Recorded {
        // Drift costs the way back up to two nanoseconds; they must not order what overlapped.
        let slack = if clock.is_exact() { Span::ZERO } else { Span::from_nanos(2) };
        let waited = self.waited.iter().find(|(waited, _)| *waited == place);
        let (status, end) = match waited {
            Some((_, None)) => (Status::Unknown, None),
            Some((_, Some(told))) => (record.status, Some(*told)),
            None => (record.status, record.end.map(|end| clock.virtual_at(end) + slack)),
        };
        let lost = self.crashed || matches!(waited, Some((_, None)));
        let operations =
            operations.filter(|it| !lost || matches!(it, Operation::Write { .. })).collect();
        // A turn is at its times before the world is. Where a fault changes the clock meanwhile,
        // the way back goes by another piece of it, and may come out late by a part of the turn.
        let begin = clock.virtual_at(record.begin);
        let begin = end.map_or(begin, |end| begin.min(end));
        Recorded { record, status, operations, begin, end }
    }
}

impl Matching {
    /// Passes over an answer that does not wait, and the transaction it belongs to.
    pub(super) fn pass(&mut self, result: &OpResult) {
        self.place_of(result);
    }

    /// The place of the transaction that an answer belongs to: both are in the order of ending,
    /// but a transaction that ended at once has no answer.
    fn place_of(&mut self, result: &OpResult) -> Option<usize> {
        let told = match result {
            OpResult::Committed(committed) => committed.at,
            OpResult::Invoked(invoked) => invoked.at,
            _ => return None,
        };
        let found = self.committed.find(|(_, at)| *at == Some(told));
        found.map(|(place, _)| place)
    }
}
