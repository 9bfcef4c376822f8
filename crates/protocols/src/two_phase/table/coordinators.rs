//! What a repository knows of each coordinator: its newest life, what it has settled, and how much
//! is kept of it.

use super::*;
use crate::client_quota::ClientQuota;

impl<V: Variant> Table<V> {
    /// Takes note of a coordinator's life and of what it has settled; false if `txn` is of an
    /// earlier life or settled already, so that whatever was said of it comes too late.
    pub fn is_current(&mut self, txn: TxnId, settled_below: u64) -> bool {
        let now = self.now;
        let known = self.known_mut(txn.node);
        let is_new_incarnation = txn.incarnation > known.incarnation;
        if is_new_incarnation {
            (known.incarnation, known.below) = (txn.incarnation, 0);
            known.refused_below = 0;
            known.earlier_put = now;
        }
        if txn.incarnation < known.incarnation || txn.sequence < known.below {
            return false;
        }
        if settled_below > known.below {
            assert!(settled_below <= txn.sequence, "{txn} settles itself");
            known.below = settled_below;
            if known.refused_below <= settled_below {
                known.refused_below = 0; // What comes late of these is settled.
            }
            self.forget_settled(txn.node, txn.incarnation, settled_below);
        }
        if is_new_incarnation {
            self.forget_refusals_before(txn.node, txn.incarnation);
        }
        true
    }

    /// A coordinator says that nobody asks about its transactions below this one any more. Of one
    /// that is not known there is nothing to forget.
    pub fn settle_below(&mut self, txn: TxnId) {
        if self.settled.contains_key(&txn.node) {
            self.is_current(txn, txn.sequence);
        }
    }

    /// What is done from now on is done at this time.
    pub fn tell_time(&mut self, now: Nanos) {
        self.now = now;
    }

    /// A client was heard of.
    pub fn observe(&mut self, node: NodeId, now: Nanos) {
        if let Some(known) = self.settled.get_mut(&node) {
            known.seen_at = now;
        }
        self.note_client(node);
    }

    /// What is known of a coordinator counts as a client's from now on.
    pub fn note_client(&mut self, node: NodeId) {
        if let Some(known) = self.settled.get_mut(&node).filter(|it| !it.is_client) {
            known.is_client = true;
            self.of_clients += known.entries + 1;
        }
    }

    /// All coordinators count as heard of just now: nobody knows when they last were.
    pub fn receive_all(&mut self, now: Nanos, is_client: impl Fn(NodeId) -> bool) {
        self.settled.values_mut().for_each(|known| known.seen_at = now);
        let clients: Vec<_> = self.settled.keys().copied().filter(|it| is_client(*it)).collect();
        clients.into_iter().for_each(|client| self.observe(client, now));
    }

    /// Whether there is room for a transaction of a client. Where there is none, what it says with
    /// the transaction has to make some: the first of another life, by which refusals of earlier
    /// ones are forgotten; or one that says which others are settled.
    pub fn has_capacity(&self, txn: TxnId, below: u64, quota: ClientQuota) -> bool {
        let known = self.settled.get(&txn.node).copied().unwrap_or_default();
        let is_full = known.entries >= quota.entries || self.of_clients >= quota.all;
        if !is_full && known.answers < quota.bytes {
            return true;
        }
        if txn.incarnation > known.incarnation {
            return !is_full || known.lasting < known.entries;
        }
        if txn.incarnation < known.incarnation || below <= known.below {
            return false;
        }
        let first = |sequence| TxnId { sequence, ..txn };
        let mut settled = self.entries.range(first(known.below)..first(below));
        let mut frees_capacity = || settled.any(|(_, entry)| matches!(entry, TableEntry::Over(..)));
        let answers = self.answers.range(first(0)..first(below));
        let freed: usize = answers.map(|(_, it)| answers_bytes(it)).sum();
        assert!(freed <= known.answers, "answers that were not counted");
        (!is_full || frees_capacity()) && known.answers - freed < quota.bytes
    }

    /// How many coordinators are known.
    pub fn known(&self) -> usize {
        self.settled.len()
    }

    /// Nothing of a coordinator's earlier lives is prepared any more, so whoever asks about a
    /// transaction that was refused or aborted is told no, remembered or not. What was committed
    /// stays: those in doubt must hear of it.
    pub(super) fn forget_refusals_before(&mut self, node: NodeId, incarnation: u32) {
        let first = TxnId { node, incarnation: 0, sequence: 0 };
        let end = TxnId { node, incarnation, sequence: 0 };
        let earlier = self.entries.range(first..end).filter(|(_, entry)| !entry.lasts());
        let forgotten: Vec<_> = earlier.map(|(txn, _)| *txn).collect();
        for txn in forgotten {
            self.take(txn);
        }
        self.forget_answers(first, end);
    }

    /// Whether the coordinator has begun another life since.
    pub fn is_of_earlier_incarnation(&self, txn: TxnId) -> bool {
        self.settled.get(&txn.node).is_some_and(|known| txn.incarnation < known.incarnation)
    }

    pub(super) fn forget_settled(&mut self, node: NodeId, incarnation: u32, below: u64) {
        let first = TxnId { node, incarnation, sequence: 0 };
        let end = TxnId { node, incarnation, sequence: below };
        let mut next = first;
        while let Some((&txn, entry)) = self.entries.range(next..end).next() {
            if let TableEntry::Over(vote, participants) = entry {
                let end = (vote.clone(), *participants);
                self.take(txn);
                self.retire(txn, end);
            }
            next = TxnId { sequence: txn.sequence + 1, ..txn };
        }
        self.forget_answers(first, end);
    }

    /// Whether the coordinator said that `txn` is settled everywhere.
    pub fn is_settled(&self, txn: TxnId) -> bool {
        let known = self.settled.get(&txn.node);
        known
            .is_some_and(|known| txn.incarnation == known.incarnation && txn.sequence < known.below)
    }
}
