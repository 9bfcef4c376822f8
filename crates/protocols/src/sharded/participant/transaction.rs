//! A transaction as a member of a shard knows it, and the order of those that have not ended.

use std::collections::{BTreeMap, BTreeSet};

use muesli_broadcast::ObjectSet;
use muesli_core::{Abort, Decision, Nanos, Timestamp, TxnId, wire_struct};

use crate::certified::message::command::CertifiedCommand;
use crate::sharded::locator::ShardId;

/// What another shard has said of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerShard {
    /// When it comes there at the earliest.
    pub proposed: Option<Timestamp>,
    /// Whether it was certified there.
    pub has_voted: bool,
    /// Why it is not to commit, if it is not.
    pub objection: Option<Abort>,
    /// It takes no effect there.
    pub is_refused: bool,
    /// Its end is in the order there.
    pub is_settled: bool,
}

wire_struct!(PeerShard {
    proposed: Option<Timestamp>,
    has_voted: bool,
    objection: Option<Abort>,
    is_refused: bool,
    is_settled: bool,
});

/// A transaction that was prepared in this shard, or refused, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// What is to be done here; of a refused one nothing.
    pub command: CertifiedCommand,
    /// The other shards that take part, and what they have said.
    pub peers: BTreeMap<ShardId, PeerShard>,
    /// The timestamp that it was given here.
    pub proposed: Timestamp,
    /// The timestamp that all shards have given it.
    pub at: Option<Timestamp>,
    /// Whether it was certified here, or its procedures were run.
    pub has_voted: bool,
    /// Why it is not to commit, if it is not.
    pub objection: Option<Abort>,
    /// How it ended or will end, if that is known.
    pub outcome: Option<Decision>,
    /// It has ended: what it wrote is there, or never will be.
    pub has_ended: bool,
    /// Its end is in the order.
    pub is_settled: bool,
    /// This member proposed it, and is_proposer for the shard before others do.
    pub is_proposer: bool,
}

wire_struct!(PreparedTransaction {
    command: CertifiedCommand,
    peers: BTreeMap<ShardId, PeerShard>,
    proposed: Timestamp,
    at: Option<Timestamp>,
    has_voted: bool,
    objection: Option<Abort>,
    outcome: Option<Decision>,
    has_ended: bool,
    is_settled: bool,
    is_proposer: bool,
});

impl PreparedTransaction {
    /// One of which nothing is known but what is to be done.
    pub fn new(
        command: CertifiedCommand,
        peers: impl Iterator<Item = ShardId>,
        proposed: Timestamp,
        is_proposer: bool,
    ) -> PreparedTransaction {
        PreparedTransaction {
            command,
            peers: peers.map(|shard| (shard, PeerShard::default())).collect(),
            proposed,
            at: None,
            has_voted: false,
            objection: None,
            outcome: None,
            has_ended: false,
            is_settled: false,
            is_proposer,
        }
    }

    /// Somebody says that it commits at `at`: then all other shards have voted for it, as far as
    /// nothing else is known of them. What this shard itself finds counts all the same: a member
    /// that lies cannot commit what is objected to here.
    pub fn observe_commit(&mut self, at: Timestamp) {
        if self.outcome.is_none() {
            self.at = self.at.or(Some(at));
            self.peers.values_mut().for_each(|peer| peer.has_voted = true);
        }
    }

    /// How it ends, if that follows from what shards have said of it.
    pub fn decided(&self, counts_votes: bool) -> Option<Decision> {
        let mut peers = self.peers.values();
        let others = peers.clone().find_map(|peer| peer.objection).filter(|_| counts_votes);
        if let Some(reason) = self.objection.or(others) {
            return Some(Decision::Abort(reason));
        }
        let all_agree = peers.all(|peer| peer.has_voted) || !counts_votes;
        self.at.filter(|_| self.has_voted && all_agree).map(Decision::Commit)
    }
}

/// A transaction, and what this incarnation of the member does about it.
#[derive(Clone, Debug)]
pub struct ShardTransaction {
    /// What is written down.
    pub prepared: PreparedTransaction,
    /// By which it is in the way of others.
    pub objects: ObjectSet,
    /// Since when it is known in this incarnation.
    pub since: Nanos,
    /// When something was last done about what is missing, and how often.
    pub looked: Nanos,
    /// How often that was.
    pub attempts: u32,
    /// Its end was proposed here.
    pub proposes_end: bool,
}

impl ShardTransaction {
    /// One that is known from now on.
    pub fn new(prepared: PreparedTransaction, objects: ObjectSet, now: Nanos) -> ShardTransaction {
        let (since, looked, attempts, proposes_end) = (now, now, 0, false);
        ShardTransaction { prepared, objects, since, looked, attempts, proposes_end }
    }

    /// Nobody will ask for it any more but its coordinator.
    pub fn is_over(&self) -> bool {
        let it = &self.prepared;
        it.has_ended && it.is_settled && it.peers.values().all(|peer| peer.is_settled)
    }
}

/// The transactions of a shard that somebody still needs.
///
/// Invariant: `queue` has those that have not ended, each by its timestamp, or by the one that it
/// was given here.
#[derive(Clone, Debug, Default)]
pub struct ShardTransactions {
    all: BTreeMap<TxnId, ShardTransaction>,
    queue: BTreeSet<(Timestamp, TxnId)>,
    /// Each goes by what it was given here: tests break it so.
    by_own_proposals: bool,
}

impl ShardTransactions {
    /// None yet; `one_timestamp`: they go by what all shards have given them.
    pub fn new(one_timestamp: bool) -> ShardTransactions {
        ShardTransactions { by_own_proposals: !one_timestamp, ..ShardTransactions::default() }
    }

    fn place(&self, txn: TxnId) -> Option<(Timestamp, TxnId)> {
        let it = &self.all.get(&txn)?.prepared;
        let at = it.at.filter(|_| !self.by_own_proposals).unwrap_or(it.proposed);
        (!it.has_ended).then_some((at, txn))
    }

    /// Adds one.
    pub fn insert(&mut self, txn: TxnId, transaction: ShardTransaction) {
        let before = self.all.insert(txn, transaction);
        assert!(before.is_none(), "{txn} was prepared twice");
        self.queue.extend(self.place(txn));
    }

    /// One of them.
    pub fn get(&self, txn: TxnId) -> Option<&ShardTransaction> {
        self.all.get(&txn)
    }

    /// Whether it is there.
    pub fn has(&self, txn: TxnId) -> bool {
        self.all.contains_key(&txn)
    }

    /// Changes one, if it is there.
    pub fn change<T>(
        &mut self,
        txn: TxnId,
        change: impl FnOnce(&mut ShardTransaction) -> T,
    ) -> Option<T> {
        let before = self.place(txn);
        let result = self.all.get_mut(&txn).map(change);
        let after = self.place(txn);
        if before != after {
            before.iter().for_each(|place| {
                self.queue.remove(place);
            });
            self.queue.extend(after);
        }
        result
    }

    /// Drops one that is over.
    pub fn drop_if_over(&mut self, txn: TxnId) {
        if self.all.get(&txn).is_some_and(ShardTransaction::is_over) {
            self.all.remove(&txn);
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (TxnId, &ShardTransaction)> {
        self.all.iter().map(|(txn, it)| (*txn, it))
    }

    /// Those that have not ended, in their order.
    pub fn queue(&self) -> impl Iterator<Item = (Timestamp, TxnId, &ShardTransaction)> {
        self.queue.iter().map(|(at, txn)| (*at, *txn, &self.all[txn]))
    }

    /// How many have not ended.
    pub fn unfinished(&self) -> usize {
        assert!(self.queue.len() <= self.all.len(), "more that go on than there are");
        self.queue.len()
    }

    /// The next one to be certified: the shard's clock has come to its timestamp, and none that is
    /// in its way comes before it. `waits`: those whose timestamp is not known count. (Where each
    /// goes by what it was given here, who has voted is in nobody's way: shards that wait for each
    /// other in different orders would wait for ever.)
    pub fn next(&self, clock: u64, waits: bool) -> Option<TxnId> {
        let mut before: Vec<&ShardTransaction> = Vec::new();
        for (at, txn, it) in self.queue() {
            let known = it.prepared.at.is_some() || self.by_own_proposals;
            let is_next = known && at.counter() <= clock && !it.prepared.has_voted;
            if is_next && !before.iter().any(|other| other.objects.conflicts_with(&it.objects)) {
                return Some(txn);
            }
            let counts = if self.by_own_proposals { !it.prepared.has_voted } else { true };
            if (waits || known) && counts {
                before.push(it);
            }
        }
        None
    }

    /// Checks the invariant.
    ///
    /// # Panics
    /// It does not hold.
    pub fn assert_invariants(&self) {
        let places: BTreeSet<_> = self.all.keys().filter_map(|txn| self.place(*txn)).collect();
        assert_eq!(places, self.queue, "the order of those that have not ended");
        for (txn, it) in &self.all {
            let it = &it.prepared;
            assert!(!it.has_ended || it.outcome.is_some(), "{txn} has ended, and nobody knows how");
            let fits = it.at.is_none_or(|at| at >= it.proposed);
            assert!(fits, "{txn} is at {:?}, below {}", it.at, it.proposed);
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::RepositoryId;

    use super::*;

    fn prepared() -> PreparedTransaction {
        let (txn, after, spaces) = Default::default();
        let (reads, ranges, writes, calls) = Default::default();
        let command = CertifiedCommand { txn, after, spaces, reads, ranges, writes, calls };
        let others = [ShardId(1), ShardId(2)].into_iter();
        PreparedTransaction::new(command, others, Timestamp::new(3, RepositoryId(0)), true)
    }

    /// Two shards are said to agree; this one decides for itself.
    #[test]
    fn what_is_said_of_a_commit_does_not_count_for_this_shard() {
        let at = Timestamp::new(5, RepositoryId(1));
        for (objection, wanted) in [
            (None, Decision::Commit(at)),
            (Some(Abort::StaleRead), Decision::Abort(Abort::StaleRead)),
        ] {
            let mut it = prepared();
            it.observe_commit(at);
            assert_eq!((it.outcome, it.decided(true)), (None, None), "it has not voted");
            (it.has_voted, it.objection) = (true, objection);
            assert_eq!(it.decided(true), Some(wanted));
        }
    }

    #[test]
    fn an_objection_that_is_known_stands_and_so_does_the_timestamp() {
        let (first, second) =
            (Timestamp::new(5, RepositoryId(1)), Timestamp::new(6, RepositoryId(2)));
        let mut it = prepared();
        it.peers.get_mut(&ShardId(1)).unwrap().objection = Some(Abort::StaleRead);
        it.at = Some(first);
        it.observe_commit(second);
        it.has_voted = true;
        let aborts = Some(Decision::Abort(Abort::StaleRead));
        assert_eq!((it.at, it.decided(true)), (Some(first), aborts));
    }
}
