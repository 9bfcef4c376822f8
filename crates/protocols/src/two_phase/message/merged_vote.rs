//! Votes on their way up: one for all of a subtree.

use muesli_core::{Abort, Decision, RepositoryId, Timestamp, TxnId, wire_struct};

use super::Repositories;
use super::voted_footprint::VotedFootprint;

/// The votes of repositories below one inner node, merged.
///
/// Invariants: voters and participants ascend, and each voter is a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedVote {
    /// The transaction.
    pub txn: TxnId,
    /// Everyone who votes.
    pub participants: Repositories,
    /// Whose votes these are.
    pub voters: Repositories,
    /// The largest proposal among them.
    pub proposal: Timestamp,
    /// What they read stays newest up to here.
    pub upper_bound: Timestamp,
    /// Why one of them has refused.
    pub refused: Option<Abort>,
    /// As printed: what they hold of the transaction.
    pub carried: Option<Box<VotedFootprint>>,
}

wire_struct!(MergedVote {
    txn: TxnId,
    participants: Repositories,
    voters: Repositories,
    proposal: Timestamp,
    upper_bound: Timestamp,
    refused: Option<Abort>,
    carried: Option<Box<VotedFootprint>>,
});

impl MergedVote {
    /// One of these participants votes.
    pub fn of(txn: TxnId, participants: Repositories, voter: RepositoryId) -> MergedVote {
        MergedVote {
            txn,
            participants,
            voters: Repositories::from_slice(&[voter]),
            proposal: Timestamp::ZERO,
            upper_bound: Timestamp::MAX,
            refused: None,
            carried: None,
        }
    }

    /// Takes in the votes of others on the same transaction. A voter counts once.
    ///
    /// # Panics
    /// If they are on another one, or on one that others take part in.
    pub fn merge(&mut self, other: &MergedVote) {
        assert_eq!(self.txn, other.txn, "votes on two transactions");
        assert_eq!(self.participants, other.participants, "who votes on {}", self.txn);
        self.proposal = self.proposal.max(other.proposal);
        self.upper_bound = self.upper_bound.min(other.upper_bound);
        self.refused = self.refused.or(other.refused);
        match (&mut self.carried, &other.carried) {
            (Some(carried), Some(more))
                if !other.voters.iter().all(|it| self.voters.contains(it)) =>
            {
                carried.join(more);
            }
            (carried @ None, Some(more)) => *carried = Some(more.clone()),
            _ => {}
        }
        self.voters.extend(other.voters.iter().copied());
        self.voters.sort_unstable();
        self.voters.dedup();
    }

    /// What the votes of all participants come to: the largest proposal is final, unless something
    /// that was read need not be the newest any more by then.
    ///
    /// # Panics
    /// If votes are missing, and nobody has refused.
    pub fn decide(&self) -> Decision<Timestamp> {
        let are_all_there = self.voters.len() == self.participants.len();
        assert!(are_all_there || self.refused.is_some(), "{} is decided too early", self.txn);
        match self.refused {
            Some(reason) => Decision::Abort(reason),
            None if self.proposal > self.upper_bound => Decision::Abort(Abort::StaleRead),
            None => Decision::Commit(self.proposal),
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let ascend = |all: &[RepositoryId]| all.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ascend(&self.voters), "{} has votes of {:?}", self.txn, self.voters);
        assert!(ascend(&self.participants), "{} has {:?}", self.txn, self.participants);
        let takes_part = |voter: &RepositoryId| self.participants.contains(voter);
        assert!(self.voters.iter().all(takes_part), "who votes on {} takes part", self.txn);
        assert!(!self.voters.is_empty(), "{} has a vote of nobody", self.txn);
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::NodeId;

    use super::*;

    const TXN: TxnId = TxnId { node: NodeId(1), incarnation: 1, sequence: 1 };

    fn at(counter: u64) -> Timestamp {
        Timestamp::new(counter, RepositoryId(0))
    }

    fn yes(voter: u16, proposal: u64, upper_bound: u64) -> MergedVote {
        let all: Repositories = (0..3).map(RepositoryId).collect();
        let (proposal, upper_bound) = (at(proposal), at(upper_bound));
        MergedVote { proposal, upper_bound, ..MergedVote::of(TXN, all, RepositoryId(voter)) }
    }

    fn merged(all: &[MergedVote]) -> MergedVote {
        let mut merged = all[0].clone();
        all[1..].iter().for_each(|it| merged.merge(it));
        merged.assert_invariants();
        merged
    }

    #[test]
    fn the_largest_proposal_is_final_whatever_the_order_of_votes() {
        let votes = [yes(0, 4, 90), yes(1, 7, 80), yes(2, 5, 99)];
        let mut turned = votes.clone();
        turned.reverse();
        for all in [&votes, &turned] {
            assert_eq!(merged(all).decide(), Decision::Commit(at(7)));
            assert_eq!(merged(all).voters.len(), 3);
        }
    }

    #[test]
    fn what_was_read_must_be_the_newest_up_to_the_end() {
        let late = merged(&[yes(0, 4, 6), yes(1, 7, 80), yes(2, 5, 90)]);
        assert_eq!(late.decide(), Decision::Abort(Abort::StaleRead));
        let in_time = merged(&[yes(0, 4, 7), yes(1, 7, 80), yes(2, 5, 90)]);
        assert_eq!(in_time.decide(), Decision::Commit(at(7)));
    }

    #[test]
    fn one_refusal_is_enough_and_a_voter_counts_once() {
        let no = MergedVote { refused: Some(Abort::Locked), ..yes(1, 0, 90) };
        assert_eq!(merged(&[yes(0, 4, 90), no]).decide(), Decision::Abort(Abort::Locked));
        assert_eq!(merged(&[yes(0, 4, 90), yes(0, 4, 90)]).voters.len(), 1);
    }
}
