//! How transactions ended, of all coordinators, whichever site proposed them.
//!
//! All sites decide alike, so any of them can say how a transaction ended whose site is lost. An
//! end is kept until its coordinator says that it is settled, by a commit that it asks for here, by
//! one that is delivered, or by a question; or until a client was silent for a lease. What is kept
//! has a bound: beyond it the oldest ends of the same coordinator go, and of what procedures gave
//! the oldest answers. What was kept once and is not known any more is never taken for what never
//! was: [`kept_from`](CoordinatorHead::kept_from) says where that begins, and clients that were
//! forgotten are remembered by name for one more lease.

use std::collections::BTreeMap;

use muesli_core::limits::ENTRY_BYTES;
use muesli_core::parts::single_repository::KnownOutcome;
use muesli_core::{Decision, Nanos, NodeId, TxnId, wire_struct};

use crate::certified::message::command::CallsEnd;
use crate::client_quota::ClientQuota;

/// Answers to all coordinators take so many times what those to one may.
const ANSWERS_IN_ALL: usize = 4;

/// What is known of a coordinator beside the ends of its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoordinatorHead {
    node: NodeId,
    /// Its newest incarnation.
    incarnation: u32,
    /// It knows how its transactions below ended.
    settled_below: u64,
    /// All ends from this one on that came here and are not settled are kept.
    kept_from: u64,
    /// Of what was asked for here from this one on all is known: incarnation and number.
    asked_from: Option<(u32, u64)>,
}

wire_struct!(CoordinatorHead {
    node: NodeId,
    incarnation: u32,
    settled_below: u64,
    kept_from: u64,
    asked_from: Option<(u32, u64)>,
});

/// How a transaction ended, and what came of its procedures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownEnd {
    txn: TxnId,
    decision: Decision,
    calls: Option<CallsEnd>,
}

wire_struct!(KnownEnd { txn: TxnId, decision: Decision, calls: Option<CallsEnd> });

/// A coordinator, and how its transactions ended.
#[derive(Clone, Debug)]
struct CoordinatorEnds {
    head: CoordinatorHead,
    /// When it was seen last.
    at: Nanos,
    ended: BTreeMap<u64, Decision>,
    /// What came of procedures.
    answers: BTreeMap<u64, CallsEnd>,
    /// So much these take.
    bytes: usize,
}

/// How transactions ended.
///
/// Invariants: no end is settled, each answer is of an end, and what all take is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct SiteEnds {
    coordinators: BTreeMap<NodeId, CoordinatorEnds>,
    /// Clients that were forgotten within the last lease, and when.
    forgotten: BTreeMap<NodeId, Nanos>,
    /// When there was no room for a client, the last time.
    overflowed: Option<Nanos>,
    entries: usize,
    bytes: usize,
}

impl CoordinatorEnds {
    fn of(txn: TxnId, at: Nanos) -> CoordinatorEnds {
        let (node, incarnation) = (txn.node, txn.incarnation);
        let (settled_below, kept_from, asked_from) = (0, 0, None);
        let head = CoordinatorHead { node, incarnation, settled_below, kept_from, asked_from };
        CoordinatorEnds::from_head(head, at)
    }

    fn from_head(head: CoordinatorHead, at: Nanos) -> CoordinatorEnds {
        let (ended, answers, bytes) = Default::default();
        CoordinatorEnds { head, at, ended, answers, bytes }
    }

    /// Takes note of an incarnation, and of what is settled in it.
    fn settle(&mut self, incarnation: u32, settled_below: u64) {
        let head = &mut self.head;
        if incarnation > head.incarnation {
            (head.incarnation, head.settled_below, head.kept_from) = (incarnation, 0, 0);
            self.ended.clear();
            self.answers.clear();
            self.bytes = 0;
        }
        if incarnation == head.incarnation && settled_below > head.settled_below {
            head.settled_below = settled_below;
            self.ended.extract_if(..settled_below, |_, _| true).for_each(drop);
            let over = self.answers.extract_if(..settled_below, |_, _| true);
            self.bytes -= over.map(|(_, answer)| answer.bytes()).sum::<usize>();
        }
    }

    fn known(&self, txn: TxnId) -> KnownOutcome {
        let CoordinatorHead { incarnation, settled_below, .. } = self.head;
        if incarnation < txn.incarnation {
            return KnownOutcome::New;
        }
        if incarnation > txn.incarnation || txn.sequence < settled_below {
            return KnownOutcome::Gone;
        }
        let decision = self.ended.get(&txn.sequence);
        decision.map_or(KnownOutcome::New, |decision| KnownOutcome::Decided(*decision))
    }

    /// Forgets the oldest end; false: there is none.
    fn drop_end(&mut self) -> bool {
        let Some((sequence, _)) = self.ended.pop_first() else { return false };
        self.head.kept_from = self.head.kept_from.max(sequence + 1);
        self.bytes -= self.answers.remove(&sequence).map_or(0, |answer| answer.bytes());
        true
    }

    /// Forgets the oldest answer; false: there is none.
    fn drop_answer(&mut self) -> bool {
        let first = self.answers.pop_first();
        self.bytes -= first.as_ref().map_or(0, |(_, answer)| answer.bytes());
        first.is_some()
    }

    fn id(&self, sequence: u64) -> TxnId {
        TxnId { node: self.head.node, incarnation: self.head.incarnation, sequence }
    }
}

impl SiteEnds {
    /// Changes what is known of a coordinator, and counts anew what that takes.
    fn change<T>(&mut self, node: NodeId, run: impl FnOnce(&mut CoordinatorEnds) -> T) -> T {
        let coordinator = self.coordinators.get_mut(&node).expect("a coordinator that is known");
        let before = (coordinator.ended.len(), coordinator.bytes);
        let result = run(coordinator);
        assert!(before.0 <= self.entries, "{} ends, of {} in all", before.0, self.entries);
        assert!(before.1 <= self.bytes, "{} bytes, of {} in all", before.1, self.bytes);
        self.entries = self.entries - before.0 + coordinator.ended.len();
        self.bytes = self.bytes - before.1 + coordinator.bytes;
        result
    }

    /// A coordinator asks for a commit here, or has one proposed here.
    pub fn observe_asked(&mut self, txn: TxnId, now: Nanos) {
        let made = || CoordinatorEnds::of(txn, now);
        let coordinator = self.coordinators.entry(txn.node).or_insert_with(made);
        coordinator.at = coordinator.at.max(now);
        coordinator.head.asked_from.get_or_insert((txn.incarnation, txn.sequence));
    }

    /// A coordinator is there, whichever site it asks. Of one that is not known nothing is kept.
    pub fn observe(&mut self, node: NodeId, now: Nanos) {
        if let Some(coordinator) = self.coordinators.get_mut(&node) {
            coordinator.at = coordinator.at.max(now);
        }
    }

    /// A coordinator knows how its transactions below ended.
    pub fn settle(&mut self, txn: TxnId, settled_below: u64) {
        assert!(settled_below <= txn.sequence, "{txn} settles itself");
        if self.coordinators.contains_key(&txn.node) {
            self.change(txn.node, |it| it.settle(txn.incarnation, settled_below));
        }
    }

    /// A transaction ended. Whoever asks two sites for one is answered by the end that came first.
    pub fn remember(
        &mut self,
        txn: TxnId,
        (decision, calls): (Decision, Option<CallsEnd>),
        (quota, is_client): (ClientQuota, bool),
        now: Nanos,
    ) {
        if !self.coordinators.contains_key(&txn.node) {
            if is_client && self.is_full(quota) {
                self.overflowed = Some(now);
                return;
            }
            self.coordinators.insert(txn.node, CoordinatorEnds::of(txn, now));
        }
        self.observe(txn.node, now);
        self.settle(txn, 0);
        if self.known(txn) != KnownOutcome::New {
            return;
        }
        self.change(txn.node, |it| {
            it.ended.insert(txn.sequence, decision);
            it.bytes += calls.as_ref().map_or(0, CallsEnd::bytes);
            it.answers.extend(calls.map(|calls| (txn.sequence, calls)));
        });
        self.keep_within(txn.node, quota);
    }

    /// Forgets the oldest of what is too much, of this coordinator.
    fn keep_within(&mut self, node: NodeId, quota: ClientQuota) {
        loop {
            let coordinator = &self.coordinators[&node];
            let is_over = coordinator.ended.len() > quota.entries || self.entries > quota.all;
            let in_all = quota.bytes.saturating_mul(ANSWERS_IN_ALL);
            let is_large = coordinator.bytes > quota.bytes || self.bytes > in_all;
            let goes_on = match (is_over, is_large) {
                (true, _) => self.change(node, CoordinatorEnds::drop_end),
                (false, true) => self.change(node, CoordinatorEnds::drop_answer),
                (false, false) => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// What is known of a transaction.
    pub fn known(&self, txn: TxnId) -> KnownOutcome {
        self.coordinators.get(&txn.node).map_or(KnownOutcome::New, |it| it.known(txn))
    }

    /// What came of the procedures of a transaction that ended; nothing: it had none, or that is
    /// not kept.
    pub fn answer(&self, txn: TxnId) -> Option<&CallsEnd> {
        let coordinator = self.coordinators.get(&txn.node)?;
        let is_of_it = coordinator.head.incarnation == txn.incarnation;
        coordinator.answers.get(&txn.sequence).filter(|_| is_of_it)
    }

    /// Whether a transaction that is not known may have been asked for here and be forgotten.
    pub fn is_forgotten(&self, txn: TxnId, is_client: bool) -> bool {
        let Some(CoordinatorEnds { head, .. }) = self.coordinators.get(&txn.node) else {
            return is_client;
        };
        let is_asked = head.asked_from.is_some_and(|it| it <= (txn.incarnation, txn.sequence));
        is_client && !is_asked || self.is_dropped(txn)
    }

    fn is_dropped(&self, txn: TxnId) -> bool {
        let head = self.coordinators.get(&txn.node).map(|it| it.head);
        head.is_some_and(|it| it.incarnation == txn.incarnation && txn.sequence < it.kept_from)
    }

    /// Whether a transaction that is not known was delivered nowhere before what was delivered here
    /// last: its end cannot have been forgotten. Of a client that is so where it has asked for the
    /// transaction less than a lease ago: what was forgotten before that it asks for no more.
    pub fn is_complete_for(&self, txn: TxnId) -> bool {
        let was_kept = !self.forgotten.contains_key(&txn.node) && self.overflowed.is_none();
        was_kept && !self.is_dropped(txn) && self.known(txn) == KnownOutcome::New
    }

    /// Whether so many ends of a client are kept, or of all, that no more is to be.
    pub fn lacks_capacity(&self, client: NodeId, quota: ClientQuota) -> bool {
        let count = self.coordinators.get(&client).map_or(0, |it| it.ended.len());
        count >= quota.entries || self.is_full(quota)
    }

    fn is_full(&self, quota: ClientQuota) -> bool {
        self.entries + self.coordinators.len() + self.forgotten.len() >= quota.all
    }

    /// Coordinators that were not seen for a lease.
    pub fn silent(&self, now: Nanos, lease: Nanos) -> impl Iterator<Item = NodeId> + '_ {
        let all = self.coordinators.iter();
        all.filter(move |(_, it)| it.at + lease <= now).map(|(&node, _)| node)
    }

    /// Forgets a client, but for its name.
    pub fn forget(&mut self, client: NodeId, now: Nanos) {
        if let Some(coordinator) = self.coordinators.remove(&client) {
            assert!(coordinator.ended.len() <= self.entries, "more than all are forgotten");
            self.entries -= coordinator.ended.len();
            self.bytes -= coordinator.bytes;
        }
        self.forgotten.insert(client, now);
    }

    /// Forgets the names of those that were forgotten a lease ago.
    pub fn expire(&mut self, now: Nanos, lease: Nanos) {
        self.forgotten.retain(|_, at| *at + lease > now);
        self.overflowed.take_if(|at| *at + lease <= now);
    }

    /// An incarnation begins: nobody knows when anybody was seen last, and all count as just now.
    pub fn begin_incarnation(&mut self, now: Nanos) {
        self.coordinators.values_mut().for_each(|it| it.at = now);
        self.forgotten.values_mut().for_each(|at| *at = now);
        self.overflowed.iter_mut().for_each(|at| *at = now);
    }

    /// So much memory it takes.
    pub fn bytes(&self) -> usize {
        let entries = self.entries + self.coordinators.len() + self.forgotten.len();
        self.bytes + entries * ENTRY_BYTES
    }

    /// What is known of coordinators, for a checkpoint.
    pub fn heads(&self) -> impl Iterator<Item = CoordinatorHead> + '_ {
        self.coordinators.values().map(|it| it.head)
    }

    /// All ends, for a checkpoint.
    pub fn ended(&self) -> impl Iterator<Item = KnownEnd> + '_ {
        self.coordinators.values().flat_map(|it| {
            let ended = it.ended.iter();
            ended.map(|(sequence, decision)| KnownEnd {
                txn: it.id(*sequence),
                decision: *decision,
                calls: it.answers.get(sequence).cloned(),
            })
        })
    }

    /// Who was forgotten lately, and whether there was no room, for a checkpoint.
    pub fn forgotten(&self) -> (Vec<NodeId>, bool) {
        (self.forgotten.keys().copied().collect(), self.overflowed.is_some())
    }

    /// Takes what a checkpoint has of a coordinator.
    pub fn restore_head(&mut self, head: CoordinatorHead, now: Nanos) {
        let fresh = || CoordinatorEnds::from_head(head, now);
        self.coordinators.entry(head.node).or_insert_with(fresh);
    }

    /// Takes an end that a checkpoint has, after its coordinator.
    pub fn restore_end(&mut self, end: KnownEnd) {
        let KnownEnd { txn, decision, calls } = end;
        let is_there = self.coordinators.contains_key(&txn.node);
        let is_due = is_there && self.known(txn) == KnownOutcome::New;
        if is_due && self.coordinators[&txn.node].head.incarnation == txn.incarnation {
            self.change(txn.node, |it| {
                it.ended.insert(txn.sequence, decision);
                it.bytes += calls.as_ref().map_or(0, CallsEnd::bytes);
                it.answers.extend(calls.map(|calls| (txn.sequence, calls)));
            });
        }
    }

    /// Takes what a checkpoint has of those that were forgotten.
    pub fn restore_forgotten(&mut self, (clients, is_full): (Vec<NodeId>, bool), now: Nanos) {
        self.forgotten.extend(clients.into_iter().map(|client| (client, now)));
        self.overflowed = self.overflowed.or(is_full.then_some(now));
    }

    /// Takes the place of what was known before, as part of another site's state: what was asked
    /// for here, and refused, that one does not know.
    pub fn replace(&mut self, before: SiteEnds, quota: ClientQuota, now: Nanos) {
        self.coordinators.values_mut().for_each(|it| it.head.asked_from = None);
        let knew = |it: &SiteEnds, node| {
            let has_kept = !it.forgotten.contains_key(&node) && it.overflowed.is_none();
            has_kept && it.coordinators.contains_key(&node)
        };
        let known: Vec<_> = before.coordinators.keys().map(|it| knew(self, *it)).collect();
        self.restore_forgotten(before.forgotten(), now);
        for (coordinator, is_known) in before.coordinators.values().zip(known) {
            let (head, node) = (coordinator.head, coordinator.head.node);
            if !self.coordinators.contains_key(&node) {
                self.restore_head(head, now);
            }
            self.change(node, |it| {
                it.settle(head.incarnation, head.settled_below);
                // What that site has forgotten may have been asked for here, and have ended.
                it.head.asked_from = head.asked_from.filter(|_| is_known);
                if it.head.incarnation == head.incarnation {
                    it.head.kept_from = it.head.kept_from.max(head.kept_from);
                }
            });
        }
        let ends: Vec<_> = before.ended().collect();
        for end in ends {
            let node = end.txn.node;
            self.restore_end(end);
            self.keep_within(node, quota);
        }
    }

    /// Checks what holds between steps.
    ///
    /// # Panics
    /// It does not.
    pub fn assert_invariants(&self) {
        let (mut entries, mut bytes) = (0, 0);
        for (node, it) in &self.coordinators {
            assert_eq!(it.head.node, *node, "whose ends these are");
            let first = it.ended.first_key_value().map_or(u64::MAX, |(sequence, _)| *sequence);
            assert!(first >= it.head.settled_below, "{first} of n{} is settled", node.0);
            let mut answers = it.answers.keys();
            assert!(answers.all(|it_| it.ended.contains_key(it_)), "an answer without an end");
            let taken: usize = it.answers.values().map(CallsEnd::bytes).sum();
            assert_eq!(taken, it.bytes, "bytes of n{}", node.0);
            (entries, bytes) = (entries + it.ended.len(), bytes + it.bytes);
        }
        assert_eq!((entries, bytes), (self.entries, self.bytes), "what all take");
    }
}

#[cfg(test)]
mod tests;
