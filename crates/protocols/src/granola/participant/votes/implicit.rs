//! Implicit votes (section 7.4): what a vote says of the voter's next ones.
//!
//! A repository's proposals ascend, so whoever has all of its votes so far knows that each further
//! one lies above the last. A transaction that waits for a vote of that repository will not be done
//! below it either, and need not keep others waiting: with clocks that disagree, everything would
//! else stand behind everything that the slower repository has proposed since.
//!
//! # In order
//! "All so far" is what must be known. A vote may be lost with its link, and is sent again only
//! when somebody asks. So the votes of a repository for another one are numbered, those against a
//! transaction too; a gap ends the raising of the bound. What the bound was stays true: what is
//! missing lies above it. Numbers are of one life of the voter, its *stream*, which a proposal
//! names, and they live in memory. Whoever has lost its place, by a gap, by its own crash or by the
//! voter's, asks for it, and is told ([`Message::Position`]) the number and the proposal that were
//! the last ones, and for each coordinator the newest of its transactions that was ever voted on
//! there. Those and older ones may be missing a vote that lies lower: for them nothing is implied.
//!
//! # Why crashes do no harm
//! A vote is sent when it is stable. One that was not sent is cast again in the voter's next life,
//! above its upper bound, and so above every bound that came of earlier votes; readers' votes, of
//! which there is no record, likewise. A bound is known in memory only, and never logged or told
//! on: a vote that is sent again is what was proposed.
//!
//! # Deviation
//! The thesis has sequence numbers in the log and waits for all votes that were missed. Here the
//! place is asked for, and whatever was voted on before it goes without.

use std::collections::BTreeMap;

use muesli_core::{Nanos, NodeId, RepositoryId, Timestamp, TxnId};

use crate::granola::message::{Message, TimestampVote, VoteOrder};
use crate::granola::participant::modes::WaitQueue;
use crate::granola::participant::modes::active::Active;
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

/// Where this repository stands in its own votes, and in those of others.
///
/// Invariants: votes that were sent are those of a stream; whoever has asked for a position is not
/// in order.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct VoteSequences {
    /// This life's, once a vote was cast in it: a proposal, which no other life has made.
    stream: Option<Timestamp>,
    /// How many votes went to whom.
    sent: BTreeMap<RepositoryId, u64>,
    voters: BTreeMap<RepositoryId, Voter>,
}

/// What is known of another repository's votes for this one.
#[derive(Clone, Debug)]
struct Voter {
    last: VoteOrder,
    /// Whether everything up to `last` has come that anything is implied of.
    in_order: bool,
    /// No vote that is to come lies below, on any transaction that is not among the `older`.
    bound: Timestamp,
    /// Of each coordinator, the newest transaction that the voter had voted on then.
    older: BTreeMap<NodeId, (u32, u64)>,
    /// When it was last asked for that.
    asked: Option<Nanos>,
}

impl Voter {
    fn new() -> Voter {
        let last = VoteOrder { stream: Timestamp::ZERO, number: 0 };
        let (bound, older) = (Timestamp::ZERO, BTreeMap::new());
        Voter { last, in_order: false, bound, older, asked: None }
    }

    /// A vote has come; whether it is the next one. `None`: votes before it are missing.
    fn advance(&mut self, order: VoteOrder) -> Option<bool> {
        let known = self.in_order && order.stream == self.last.stream;
        if order.stream < self.last.stream || (known && order.number <= self.last.number) {
            return Some(false); // Of an earlier life, or repeated.
        }
        self.in_order = known && order.number == self.last.number + 1;
        if self.in_order {
            assert!(order.number > self.last.number, "vote {} comes again", order.number);
            self.last = order;
        }
        self.in_order.then_some(true)
    }

    /// Takes the place that the voter told; false: it is known better.
    fn take_place(&mut self, order: VoteOrder, older: BTreeMap<NodeId, (u32, u64)>) -> bool {
        // A late copy of an earlier place would bring back whom it covered, under a bound that has
        // risen since.
        let (same, last) = (order.stream == self.last.stream, self.last.number);
        let known = order.number < last || self.in_order && order.number == last;
        if order.stream < self.last.stream || same && known {
            return false;
        }
        (self.last, self.in_order, self.asked) = (order, true, None);
        // What was dropped here stays uncovered, whatever the voter tells.
        for (node, newest) in older {
            let known = self.older.entry(node).or_default();
            *known = newest.max(*known);
        }
        true
    }

    fn covers(&self, txn: TxnId) -> bool {
        let older = self.older.get(&txn.node);
        self.bound > Timestamp::ZERO
            && older.is_none_or(|older| *older < (txn.incarnation, txn.sequence))
    }
}

impl VoteSequences {
    /// A vote that has come is not known any more: it lies below the voter's bound, so that nothing
    /// is implied for its transaction, nor for older ones of its coordinator.
    pub fn vote_is_lost(&mut self, voter: RepositoryId, txn: TxnId) {
        let Some(voter) = self.voters.get_mut(&voter) else { return };
        let known = voter.older.entry(txn.node).or_default();
        *known = (txn.incarnation, txn.sequence).max(*known);
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.sent.is_empty() || self.stream.is_some(), "votes of no stream");
        for (to, sent) in &self.sent {
            assert!(*sent > 0, "no vote was sent to {to:?}");
        }
        for (voter, known) in &self.voters {
            let (bound, last) = (known.bound, known.last);
            assert!(known.asked.is_none() || !known.in_order, "{voter:?} is asked where it is");
            let has_begun = last.stream > Timestamp::ZERO || !known.in_order;
            assert!(has_begun, "votes of {voter:?} are in order up to {bound}, of no stream");
        }
    }

    /// What is known of all votes of `voter` that are to come on transactions in its wait queue.
    pub fn bound(&self, voter: RepositoryId) -> Timestamp {
        self.voters.get(&voter).map_or(Timestamp::ZERO, |voter| voter.bound)
    }

    /// The wait queue of a transaction.
    pub fn wait_queue_of(&self, active: &Active) -> WaitQueue {
        if active.place.is_some() {
            return WaitQueue::Placed;
        }
        let txn = active.request.txn;
        let covers =
            |voter: &RepositoryId| self.voters.get(voter).is_some_and(|voter| voter.covers(txn));
        WaitQueue::Behind(active.votes.missing().find(covers))
    }
}

impl Participant {
    /// The number of a vote for another repository.
    pub(in super::super) fn number_vote(
        &mut self,
        to: RepositoryId,
        ballot: &TimestampVote,
        cx: &mut Context<'_>,
    ) -> Option<VoteOrder> {
        if !self.switches.implies_votes() {
            return None;
        }
        let stream = match (self.vote_sequences.stream, ballot) {
            (Some(stream), _) => stream,
            (None, TimestampVote::Commit(at)) => *at,
            (
                None,
                TimestampVote::Conflict | TimestampVote::Abort(..) | TimestampVote::Moved(_),
            ) => self.propose_above(Timestamp::ZERO, cx),
        };
        self.vote_sequences.stream = Some(stream);
        let number = self.vote_sequences.sent.entry(to).or_default();
        *number += 1;
        assert!(stream > Timestamp::ZERO, "a stream of no proposal");
        Some(VoteOrder { stream, number: *number })
    }

    /// Takes note of a vote's number, and of what it implies.
    pub(in super::super) fn note_order(
        &mut self,
        repository: RepositoryId,
        ballot: &TimestampVote,
        order: Option<VoteOrder>,
        cx: &mut Context<'_>,
    ) {
        let Some(order) = order.filter(|_| self.switches.implies_votes()) else { return };
        let voter = self.vote_sequences.voters.entry(repository).or_insert_with(Voter::new);
        let next = voter.advance(order);
        match ballot {
            TimestampVote::Commit(at)
                if next == Some(true) || !self.switches.keeps(GranolaSwitch::BoundsInOrder) =>
            {
                voter.bound = voter.bound.max(at.after(1, repository));
            }
            TimestampVote::Commit(_)
            | TimestampVote::Conflict
            | TimestampVote::Abort(..)
            | TimestampVote::Moved(_) => {}
        }
        let due = voter.asked.is_none_or(|asked| asked + cx.settings.retry_after <= cx.now());
        if next.is_none() && due {
            voter.asked = Some(cx.now());
            cx.send_to_repository(repository, Message::WhichPosition { repository: self.id });
        }
    }

    /// A repository has lost its place among this one's votes.
    pub(in super::super) fn on_which_position(&mut self, asks: RepositoryId, cx: &mut Context<'_>) {
        if !self.switches.implies_votes() {
            return;
        }
        // The next vote lies above this.
        let at = self.clock.proposed;
        let stream = match self.vote_sequences.stream {
            Some(stream) => stream,
            None => self.propose_above(Timestamp::ZERO, cx),
        };
        self.vote_sequences.stream = Some(stream);
        let number = self.vote_sequences.sent.get(&asks).copied().unwrap_or(0);
        let (repository, order) = (self.id, VoteOrder { stream, number });
        let voted = self.memory.voted();
        cx.send_to_repository_when_logged(asks, Message::Position { repository, order, at, voted });
    }

    /// The place among a repository's votes.
    pub(in super::super) fn on_position(
        &mut self,
        repository: RepositoryId,
        order: VoteOrder,
        at: Timestamp,
        voted: Vec<TxnId>,
        cx: &mut Context<'_>,
    ) {
        let voter = self.vote_sequences.voters.entry(repository).or_insert_with(Voter::new);
        let voted = voted.into_iter().map(|txn| (txn.node, (txn.incarnation, txn.sequence)));
        if !self.switches.implies_votes() || !voter.take_place(order, voted.collect()) {
            return;
        }
        voter.bound = voter.bound.max(at.after(1, repository));
        let waiting = self.active.iter().filter(|(_, it)| it.place.is_none());
        let waiting: Vec<_> = waiting.map(|(txn, _)| *txn).collect();
        waiting.into_iter().for_each(|txn| self.change_wait_queue(txn));
        self.go_on(cx);
    }

    /// What a transaction waits for has changed.
    pub(in super::super) fn change_wait_queue(&mut self, txn: TxnId) {
        let Some(active) = self.active.get_mut(&txn) else { return };
        let wait_queue = self.vote_sequences.wait_queue_of(active);
        let was = std::mem::replace(&mut active.wait_queue, wait_queue);
        if !active.is_prepared() && was != wait_queue {
            self.queue.change_wait_queue(was, wait_queue, (active.bound, txn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Timestamp = Timestamp(100);

    fn order(number: u64) -> VoteOrder {
        VoteOrder { stream: STREAM, number }
    }

    fn txn(incarnation: u32, sequence: u64) -> TxnId {
        TxnId { node: NodeId(4), incarnation, sequence }
    }

    #[test]
    fn a_gap_ends_it_until_the_place_is_told() {
        let mut voter = Voter::new();
        assert_eq!(voter.advance(order(1)), None, "there may have been an earlier life");
        assert!(voter.take_place(order(1), BTreeMap::new()));
        assert_eq!(voter.advance(order(2)), Some(true));
        assert_eq!(voter.advance(order(2)), Some(false), "repeated");
        assert_eq!(voter.advance(order(4)), None);
        assert_eq!(voter.advance(order(3)), None, "too late");
        assert!(voter.take_place(order(4), BTreeMap::new()));
        assert!(!voter.take_place(order(4), BTreeMap::new()), "told twice");
        assert_eq!(voter.advance(order(5)), Some(true));
    }

    #[test]
    fn a_late_copy_of_an_earlier_place_is_not_taken_after_a_gap() {
        let mut voter = Voter::new();
        assert!(voter.take_place(order(1), BTreeMap::new()));
        assert!(voter.take_place(order(3), BTreeMap::new()));
        assert_eq!(voter.advance(order(5)), None);
        assert!(!voter.take_place(order(1), BTreeMap::new()));
        assert!(voter.take_place(order(5), BTreeMap::new()));
    }

    #[test]
    fn another_life_of_the_voter_is_another_stream() {
        let mut voter = Voter::new();
        assert!(voter.take_place(order(9), BTreeMap::new()));
        let next = VoteOrder { stream: Timestamp(200), number: 10 };
        assert_eq!(voter.advance(next), None);
        assert!(voter.take_place(next, BTreeMap::new()));
        assert_eq!(voter.advance(order(10)), Some(false), "of the earlier life");
        assert!(!voter.take_place(order(10), BTreeMap::new()));
    }

    #[test]
    fn what_was_voted_on_before_the_place_was_told_goes_without() {
        let mut voter = Voter::new();
        voter.take_place(order(9), BTreeMap::from([(NodeId(4), (2, 7))]));
        assert!(!voter.covers(txn(2, 8)), "nothing is known yet");
        voter.bound = Timestamp(5);
        assert!(voter.covers(txn(2, 8)) && voter.covers(txn(3, 1)));
        assert!(!voter.covers(txn(2, 7)) && !voter.covers(txn(1, 9)));
        assert!(voter.covers(TxnId { node: NodeId(5), ..txn(1, 1) }));
    }

    #[test]
    fn nothing_is_implied_for_a_transaction_whose_vote_was_dropped() {
        let (mut streams, voter) = (VoteSequences::default(), RepositoryId(3));
        streams.vote_is_lost(voter, txn(2, 7));
        let known = streams.voters.entry(voter).or_insert_with(Voter::new);
        known.bound = Timestamp(5);
        assert!(known.covers(txn(2, 7)), "no vote of it has come");
        streams.vote_is_lost(voter, txn(2, 7));
        let known = streams.voters.get_mut(&voter).unwrap();
        assert!(!known.covers(txn(2, 7)) && !known.covers(txn(2, 6)) && known.covers(txn(2, 8)));
        known.take_place(order(9), BTreeMap::from([(NodeId(4), (2, 3))]));
        assert!(!known.covers(txn(2, 7)), "though the voter tells of older ones alone");
    }
}
