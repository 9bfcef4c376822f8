//! Votes on transactions whose requests have not come.
//!
//! # The problem
//! A vote may come before the request that it is about, and is kept until that comes. The request
//! may never come: its coordinator has died, or the link has lost it and the others have ended the
//! transaction without this repository.
//!
//! # The idea
//! A vote is kept for [`in_doubt_after`](muesli_core::Settings::in_doubt_after), and votes on
//! [`EARLY_MAX`] transactions at most. A vote that is dropped can be had again: when the request
//! comes, this repository asks for the votes that it misses, and the voter remembers how it voted
//! until the transaction is settled everywhere.
//!
//! # Why it is safe
//! A vote that is dropped is like one that was lost with its link, but it was counted: the bound of
//! its voter has risen above it ([`implicit`](super::implicit)). So the voter's bound implies
//! nothing any more for this transaction, nor for older ones of its coordinator.

use std::collections::BTreeMap;

use muesli_core::{Nanos, RepositoryId, TxnId};

use crate::granola::message::{Ballots, Vote};
use crate::granola::participant::{Context, Participant};

/// Votes are kept on so many transactions whose requests have not come.
pub(in super::super) const EARLY_MAX: usize = 4096;

/// The votes kept, by transaction.
///
/// Invariant: there is a vote at least of each transaction, and one of each voter at most.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct EarlyVotes {
    kept: BTreeMap<TxnId, (Nanos, Ballots)>,
}

impl EarlyVotes {
    /// How many transactions votes are kept on.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Takes out what is kept on a transaction.
    pub fn take(&mut self, txn: TxnId) -> Ballots {
        self.kept.remove(&txn).map_or_else(Vec::new, |(_, ballots)| ballots)
    }

    /// Keeps votes on a transaction whose request waits.
    pub fn put_back(&mut self, txn: TxnId, ballots: Ballots, now: Nanos) {
        if !ballots.is_empty() {
            self.kept.insert(txn, (now, ballots));
        }
    }

    /// Checks the invariant.
    ///
    /// # Panics
    /// It does not hold.
    pub fn assert_invariants(&self) {
        for (txn, (_, ballots)) in &self.kept {
            assert!(!ballots.is_empty(), "{txn} is kept for no vote");
            let mut voters: Vec<_> = ballots.iter().map(|(voter, _)| *voter).collect();
            voters.sort_unstable();
            assert!(voters.windows(2).all(|pair| pair[0] < pair[1]), "a second vote on {txn}");
        }
    }

    /// Keeps a vote; false: there is no room for votes on another transaction.
    fn keep(&mut self, txn: TxnId, vote: (RepositoryId, Vote), now: Nanos) -> bool {
        if self.kept.len() >= EARLY_MAX && !self.kept.contains_key(&txn) {
            return false;
        }
        let (_, ballots) = self.kept.entry(txn).or_insert_with(|| (now, Vec::new()));
        if ballots.iter().all(|(other, _)| *other != vote.0) {
            ballots.push(vote);
        }
        true
    }
}

impl Participant {
    /// A vote on a transaction whose request has not come.
    pub(in super::super) fn keep_early(
        &mut self,
        txn: TxnId,
        repository: RepositoryId,
        vote: Vote,
        cx: &mut Context<'_>,
    ) {
        if self.memory.get(txn).is_some() || !self.memory.is_current(txn) {
            return;
        }
        if self.early_votes.keep(txn, (repository, vote), cx.now()) {
            self.set_sweep_timer(cx);
        } else {
            self.vote_sequences.vote_is_lost(repository, txn);
        }
    }

    /// Drops votes whose requests should have come long ago.
    pub(in super::super) fn drop_early(&mut self, cx: &Context<'_>) {
        if self.early_votes.len() == 0 {
            return;
        }
        let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
        let deferred = &self.deferred;
        let waits = |txn: &TxnId| deferred.iter().any(|it| it.request.txn == *txn);
        let late =
            |txn: &TxnId, kept: &mut (Nanos, Ballots)| kept.0 + patience <= now && !waits(txn);
        let dropped: Vec<_> = self.early_votes.kept.extract_if(.., late).collect();
        for (txn, (_, ballots)) in dropped {
            for (repository, _) in ballots {
                self.vote_sequences.vote_is_lost(repository, txn);
            }
        }
        assert!(
            self.early_votes.len() <= EARLY_MAX + self.deferred.len(),
            "early votes have a bound"
        );
    }

    /// How many transactions votes are kept on whose requests have not come.
    pub fn early_votes(&self) -> usize {
        self.early_votes.len()
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, Timestamp};

    use super::*;
    use crate::granola::message::TimestampVote;

    fn txn(sequence: u64) -> TxnId {
        TxnId { node: NodeId(1), incarnation: 1, sequence }
    }

    #[test]
    fn a_hundred_times_as_many_votes_as_are_kept_are_no_more() {
        let mut early = EarlyVotes::default();
        let ballot = || (TimestampVote::Commit(Timestamp(7)), 0);
        let kept = (0..100 * EARLY_MAX as u64)
            .filter(|&number| early.keep(txn(number), (RepositoryId(2), ballot()), Nanos(1)));
        assert_eq!(kept.count(), EARLY_MAX);
        assert_eq!(early.len(), EARLY_MAX);
        assert!(early.keep(txn(0), (RepositoryId(3), ballot()), Nanos(2)), "one that is known");
        assert!(early.keep(txn(0), (RepositoryId(3), ballot()), Nanos(2)), "repeated");
        assert_eq!(early.take(txn(0)).len(), 2);
        assert!(early.keep(txn(EARLY_MAX as u64), (RepositoryId(2), ballot()), Nanos(3)));
    }
}
