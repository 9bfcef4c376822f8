//! What votes tell of an update, and the commit vector that they come to.
//!
//! Every vote has the reader's clock, all that was committed at the repository, and the number that
//! it proposes there. The commit vector is the maximum of them, with one and the same final number
//! for every repository that holds a key written. It is above every entry of theirs and carries the
//! transaction's name: whoever finds it in a vector knows that this very transaction was applied,
//! and not merely another one with the same number (the paper takes the largest proposal).

use std::fmt;

use muesli_core::parts::vector_clock::{Number, VectorClock};
use muesli_core::parts::votes::Votes;
use muesli_core::parts::watermark::Bound;
use muesli_core::{RepositoryId, Timestamp, TxnId, wire_struct};

use crate::two_phase::CommitPlace;

/// A vote of yes: the paper's prepare VC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorVote {
    /// Whom it is for.
    pub txn: TxnId,
    /// What the transaction depends on, as far as it is known here, with the number proposed here.
    pub vector: VectorClock,
    /// Whether it writes keys here.
    pub writes: bool,
    /// Whether the final number is to be above all; else the largest is taken, as printed.
    pub unique: bool,
}

wire_struct!(VectorVote { txn: TxnId, vector: VectorClock, writes: bool, unique: bool });

/// Where a committed update lies: the paper's commit VC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitVector {
    /// What it depends on, and itself.
    pub vector: VectorClock,
    /// The counter of its number wherever it wrote.
    pub counter: u64,
}

wire_struct!(CommitVector { vector: VectorClock, counter: u64 });

/// It lies at its turn.
impl CommitPlace for CommitVector {
    fn is_time_warped(&self) -> bool {
        false
    }
}

impl CommitVector {
    /// What the votes of all come to.
    pub fn from_votes(votes: &Votes<RepositoryId, VectorVote>) -> CommitVector {
        let all: Vec<_> = votes.by_voter().collect();
        CommitVector::from_ballots(&all)
    }

    /// The same, from the votes with their voters.
    ///
    /// # Panics
    /// If there is no vote.
    pub fn from_ballots(ballots: &[(RepositoryId, &VectorVote)]) -> CommitVector {
        let (_, VectorVote { txn, unique, .. }) = *ballots.first().expect("somebody has voted");
        let mut vector = VectorClock::default();
        for (_, ballot) in ballots {
            vector.join(&ballot.vector);
        }
        let writes = |(_, ballot): &&(RepositoryId, &VectorVote)| ballot.writes;
        let owners: Vec<_> = ballots.iter().filter(writes).map(|(owner, _)| *owner).collect();
        if !unique {
            let counter = vector.largest_counter();
            for &owner in &owners {
                vector.set(owner, Number { counter, ..Number::ZERO });
            }
            return CommitVector { vector, counter };
        }
        let largest = owners.iter().map(|&owner| vector.get(owner).counter).max().unwrap_or(0);
        let counter = largest.saturating_add(1);
        for (voter, ballot) in ballots {
            let next = vector.get(*voter).counter.saturating_add(1);
            let own = if ballot.writes { counter } else { next };
            vector.set(*voter, Number { counter: own, by: *txn });
        }
        for (voter, ballot) in ballots {
            assert_eq!(ballot.txn, *txn, "a vote on another transaction");
            assert!(ballot.vector.is_within(&vector), "{txn} lies before the vote of {voter:?}");
        }
        CommitVector { vector, counter }
    }

    /// The version that its writes install.
    pub fn version(&self) -> Timestamp {
        Timestamp::new(self.counter, RepositoryId(0))
    }
}

impl fmt::Display for VectorVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.vector)
    }
}

impl fmt::Display for CommitVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.vector, self.counter)
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::NodeId;
    use muesli_core::wire::Wire;
    use proptest::prelude::*;

    use super::*;

    fn txn(sequence: u64) -> TxnId {
        TxnId { node: NodeId(0), incarnation: 1, sequence }
    }

    fn ballot(counters: &[u64], writes: bool) -> VectorVote {
        let mut vector = VectorClock::default();
        for (place, &counter) in counters.iter().enumerate() {
            vector.set(RepositoryId(place as u16), Number { counter, by: txn(counter) });
        }
        VectorVote { txn: txn(99), vector, writes, unique: true }
    }

    #[test]
    fn owners_share_a_number_above_theirs_and_readers_get_one_of_their_own() {
        let votes = [ballot(&[3, 7, 1], true), ballot(&[2, 4, 9], false), ballot(&[0, 9, 5], true)];
        let voters = [RepositoryId(0), RepositoryId(2), RepositoryId(1)];
        let all: Vec<_> = voters.into_iter().zip(&votes).collect();
        let place = CommitVector::from_ballots(&all);
        assert_eq!(place.counter, 10);
        let at = |place: u64| Number { counter: place, by: txn(99) };
        assert_eq!(place.vector.get(RepositoryId(0)), at(10));
        assert_eq!(place.vector.get(RepositoryId(1)), at(10));
        assert_eq!(place.vector.get(RepositoryId(2)), at(10), "its own 9, and one");
    }

    proptest! {
        #[test]
        fn it_is_above_every_vote(
            all in prop::collection::vec((prop::collection::vec(0u64..9, 3), any::<bool>()), 1..=3),
        ) {
            let ballots: Vec<_> = all.iter().map(|(c, writes)| ballot(c, *writes)).collect();
            let voters = (0..3).map(RepositoryId);
            let all: Vec<_> = voters.zip(&ballots).collect();
            let place = CommitVector::from_ballots(&all);
            for (voter, ballot) in &all {
                prop_assert!(ballot.vector.is_within(&place.vector));
                prop_assert!(ballot.vector.get(*voter) < place.vector.get(*voter));
                if ballot.writes {
                    prop_assert_eq!(place.vector.get(*voter).counter, place.counter);
                }
            }
            let mut bytes = Vec::new();
            place.encode(&mut bytes);
            prop_assert_eq!(CommitVector::decode_all(&bytes), Ok(place));
        }
    }
}
