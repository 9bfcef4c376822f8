//! The queue of what is decided and not yet stable, as the thesis prints it for timestamps
//! (appendix B, `STABLE_TIMESTAMPS` and `PENDING_COMMIT`).
//!
//! A transaction is told its end once every child that has ever voted has voted later. An idle
//! child then stops all commits, and nothing is gained: what is decided is decided. It is here for
//! [`DecidesAtOnce`](crate::two_phase::policy::TreeSwitch::DecidesAtOnce), to show that.

use std::collections::BTreeMap;

use muesli_core::{Address, Nanos, Timestamp, TxnId};

use crate::two_phase::message::merged_vote::MergedVote;

/// The queue.
///
/// Invariants: each vote stands at its own proposal.
#[derive(Clone, Debug, Default)]
pub(super) struct StableQueue {
    /// The last proposal of each child: overwritten, and not raised.
    last: BTreeMap<Address, Timestamp>,
    pending: BTreeMap<(Timestamp, TxnId), (Nanos, MergedVote)>,
}

impl StableQueue {
    /// A child has proposed this.
    pub fn observe(&mut self, child: Address, proposal: Timestamp) {
        assert!(proposal > Timestamp::ZERO, "{child:?} proposes no time");
        self.last.insert(child, proposal);
    }

    /// Keeps the votes of all on a transaction until they are stable.
    pub fn keep(&mut self, vote: MergedVote, now: Nanos) {
        assert!(vote.proposal > Timestamp::ZERO || vote.refused.is_some(), "a vote for no time");
        self.pending.insert((vote.proposal, vote.txn), (now, vote));
    }

    /// The first of those that have become stable, taken out.
    pub fn next_stable(&mut self) -> Option<MergedVote> {
        let stable = self.last.values().min()?;
        let first = self.pending.first_entry().filter(|first| first.key().0 < *stable)?;
        let vote = first.remove().1;
        assert!(vote.proposal < *stable, "{} is told before it is stable", vote.txn);
        Some(vote)
    }

    /// Drops those kept since a time or longer.
    pub fn drop_kept_until(&mut self, until: Nanos) {
        self.pending.retain(|_, (since, _)| *since > until);
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for ((at, txn), (_, vote)) in &self.pending {
            assert_eq!((*at, *txn), (vote.proposal, vote.txn), "where votes wait");
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, RepositoryId};

    use super::*;
    use crate::two_phase::message::Repositories;

    fn at(counter: u64) -> Timestamp {
        Timestamp::new(counter, RepositoryId(0))
    }

    fn vote(sequence: u64, proposal: u64) -> MergedVote {
        let txn = TxnId { node: NodeId(1), incarnation: 1, sequence };
        let all = Repositories::from_slice(&[RepositoryId(0)]);
        MergedVote { proposal: at(proposal), ..MergedVote::of(txn, all, RepositoryId(0)) }
    }

    #[test]
    fn nothing_is_stable_until_each_child_has_voted_later() {
        let mut queue = StableQueue::default();
        let child = |node| Address::repository(NodeId(node), RepositoryId(node as u16));
        queue.observe(child(0), at(5));
        queue.observe(child(1), at(4));
        queue.keep(vote(1, 5), Nanos(0));
        assert_eq!(queue.next_stable(), None, "the largest proposal is never below the least");
        queue.observe(child(0), at(9));
        assert_eq!(queue.next_stable(), None, "the other child is idle");
        queue.observe(child(1), at(8));
        assert_eq!(queue.next_stable(), Some(vote(1, 5)));
        assert!(queue.is_empty());
    }

    #[test]
    fn what_never_gets_stable_is_dropped() {
        let mut queue = StableQueue::default();
        queue.keep(vote(1, 5), Nanos(10));
        queue.keep(vote(2, 6), Nanos(20));
        queue.drop_kept_until(Nanos(10));
        queue.observe(Address::repository(NodeId(0), RepositoryId(0)), at(100));
        assert_eq!(queue.next_stable(), Some(vote(2, 6)));
        assert!(queue.is_empty());
    }
}
