//! Votes: gathered from a known set of voters, merged by a rule of the protocol's own, complete
//! once.

use smallvec::SmallVec;

/// Votes `V` of the voters `K`.
///
/// Invariants: each voter is there once, and `missing` counts those without a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Votes<K, V> {
    votes: SmallVec<[(K, Option<V>); 3]>,
    missing: usize,
}

/// What a vote did to the gathering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It counts, and others are missing.
    Waiting,
    /// It was the last one.
    Complete,
    /// The voter had voted already, or is not among those asked: nothing changed.
    Ignored,
}

impl<K: Copy + PartialEq, V: Clone> Votes<K, V> {
    /// Waits for `voters`, each once.
    pub fn from_voters(voters: impl IntoIterator<Item = K>) -> Votes<K, V> {
        let votes: SmallVec<_> = voters.into_iter().map(|voter| (voter, None)).collect();
        Votes { missing: votes.len(), votes }
    }

    /// The votes so far, with their voters.
    pub fn by_voter(&self) -> impl Iterator<Item = (K, &V)> {
        self.votes.iter().filter_map(|(voter, vote)| Some((*voter, vote.as_ref()?)))
    }

    /// Counts a vote.
    pub fn count(&mut self, voter: K, vote: V) -> Counted {
        let found = self.votes.iter_mut().find(|(known, _)| *known == voter);
        let Some((_, empty @ None)) = found else { return Counted::Ignored };
        *empty = Some(vote);
        self.missing -= 1;
        if self.missing == 0 { Counted::Complete } else { Counted::Waiting }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let missing = self.votes.iter().filter(|(_, vote)| vote.is_none()).count();
        assert_eq!(self.missing, missing, "how many votes are missing");
        for (place, (voter, _)) in self.votes.iter().enumerate() {
            let again = self.votes[place + 1..].iter().any(|(other, _)| other == voter);
            assert!(!again, "voter {place} of {} is there twice", self.votes.len());
        }
    }

    /// How many vote.
    pub fn voters(&self) -> usize {
        self.votes.len()
    }

    /// Whether all have voted.
    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Those who have not voted.
    pub fn missing(&self) -> impl Iterator<Item = K> {
        self.votes.iter().filter(|(_, vote)| vote.is_none()).map(|(voter, _)| *voter)
    }

    /// The votes so far.
    pub fn so_far(&self) -> impl Iterator<Item = &V> {
        self.votes.iter().filter_map(|(_, vote)| vote.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn completes_once_whatever_comes_twice(
            voters in 1u8..6, order in prop::collection::vec(0u8..8, 0..40),
        ) {
            let mut votes = Votes::from_voters(0..voters);
            let mut seen = std::collections::BTreeSet::new();
            for voter in order {
                let counted = votes.count(voter, voter);
                let expected = match (voter < voters && seen.insert(voter), seen.len()) {
                    (false, _) => { if voter >= voters { seen.remove(&voter); } Counted::Ignored }
                    (true, n) if n == usize::from(voters) => Counted::Complete,
                    (true, _) => Counted::Waiting,
                };
                prop_assert_eq!(counted, expected);
                prop_assert_eq!(votes.is_complete(), seen.len() == usize::from(voters));
                let known = votes.missing().count() + votes.so_far().count();
                prop_assert_eq!(known, usize::from(voters));
            }
        }
    }
}
