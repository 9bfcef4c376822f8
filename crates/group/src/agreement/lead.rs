//! A member that leads: what its participant said waits here until it may leave.
//!
//! # Which answers wait for what
//! An answer depends on the records that its participant logged before it: it waits until these
//! are decided. And it was made from a state that is right only if nobody else led meanwhile.
//! Where the very step that made it logged a record, the decision proves that: a majority accepted
//! the record after the step, and none of them had promised anybody else by then. Otherwise a
//! *round* must prove it: begun after the step, confirmed by a majority that had promised nobody
//! else when it was asked. A later leader needs a majority's promises before anything is decided
//! under it, so at the moment of the step there was none.
//!
//! A decision of a record that was logged in an earlier step proves nothing: it may have been
//! accepted before the step, by members that have promised somebody else since.
//!
//! One round is under way at a time; what comes meanwhile waits for the next, so one serves many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muesli_core::Envelope;

use crate::agreement::ballot::Ballot;
use crate::agreement::configuration::Configuration;

/// The state of a leader.
#[derive(Clone, Debug)]
pub(crate) struct Leading<M> {
    pub(crate) ballot: Ballot,
    /// What waits for entries to be decided, with the round that it needs; by how many.
    undecided: BTreeMap<u64, VecDeque<(u64, Envelope<M>)>>,
    /// What waits for a round alone, by its number; 0 is none.
    unconfirmed: BTreeMap<u64, VecDeque<Envelope<M>>>,
    /// The newest round that anything waits for.
    needed: u64,
    /// The round that was begun last.
    asked: u64,
    /// The round that was confirmed last.
    confirmed: u64,
    /// Who has confirmed the round under way.
    voters: BTreeSet<u16>,
    /// Members that make a majority together with the leader.
    others_needed: usize,
    /// Members that are to vote, and know all that they have to for that; and since when they live
    /// where they said so.
    pub(crate) ready: BTreeMap<u16, u64>,
    /// What was decided at the last tick, and for how many ticks it has been the same while more
    /// waits.
    decided: u64,
    pub(crate) stalled_ticks: u32,
}

impl<M> Leading<M> {
    pub(crate) fn new(ballot: Ballot, configuration: &Configuration) -> Leading<M> {
        Leading {
            ballot,
            undecided: BTreeMap::new(),
            unconfirmed: BTreeMap::new(),
            needed: 0,
            asked: 0,
            confirmed: 0,
            voters: BTreeSet::new(),
            others_needed: configuration.majority() - 1,
            ready: BTreeMap::new(),
            decided: 0,
            stalled_ticks: 0,
        }
    }

    /// Holds an answer back that depends on the first `after` entries; `before` of them were there
    /// before the step that made it.
    pub(crate) fn hold(&mut self, envelope: Envelope<M>, after: u64, before: u64, confirms: bool) {
        // The round under way was begun before this answer was made.
        let round = if confirms && after <= before { self.asked + 1 } else { 0 };
        self.needed = self.needed.max(round);
        self.undecided.entry(after).or_default().push_back((round, envelope));
    }

    /// Goes on under another ballot, in the next configuration. What waits for a round waits for
    /// one under that, also where one was under way.
    pub(crate) fn go_on(&mut self, ballot: Ballot, configuration: &Configuration) {
        self.ballot = ballot;
        self.others_needed = configuration.majority() - 1;
        self.voters.clear();
        self.ready.clear();
    }

    fn is_asking(&self) -> bool {
        self.asked > self.confirmed
    }

    /// The round to begin now, if one is needed and none is under way.
    pub(crate) fn begin_round(&mut self) -> Option<u64> {
        if self.is_asking() || self.needed <= self.asked {
            return None;
        }
        self.asked += 1;
        self.voters.clear();
        Some(self.asked)
    }

    /// The round under way, to be asked again.
    pub(crate) fn round_under_way(&self) -> Option<u64> {
        self.is_asking().then_some(self.asked)
    }

    /// A member has confirmed a round.
    pub(crate) fn confirm(&mut self, member: u16, ballot: Ballot, round: u64) {
        if ballot != self.ballot || round != self.asked || !self.is_asking() {
            return; // Of a round that is over.
        }
        self.voters.insert(member);
        if self.voters.len() >= self.others_needed {
            self.confirmed = round;
        }
    }

    /// The next answer that may leave, where the first `decided` entries are decided.
    pub(crate) fn release(&mut self, decided: u64) -> Option<Envelope<M>> {
        while let Some(first) = self.undecided.first_entry().filter(|it| *it.key() <= decided) {
            for (round, envelope) in first.remove() {
                self.unconfirmed.entry(round).or_default().push_back(envelope);
            }
        }
        let mut first = self.unconfirmed.first_entry().filter(|it| *it.key() <= self.confirmed)?;
        let envelope = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        envelope
    }

    /// Another tick has passed; entries up to `accepted` are to be decided.
    pub(crate) fn tick(&mut self, decided: u64, accepted: u64) {
        let stalled = decided < accepted && decided == self.decided;
        self.stalled_ticks = if stalled { self.stalled_ticks + 1 } else { 0 };
        self.decided = decided;
    }

    /// How many answers wait.
    pub(crate) fn waiting(&self) -> usize {
        let undecided = self.undecided.values().map(VecDeque::len).sum::<usize>();
        undecided + self.unconfirmed.values().map(VecDeque::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Address, NodeId};

    use super::*;

    const BALLOT: Ballot = Ballot { configuration: 1, number: 4, member: 1 };

    fn three() -> Configuration {
        Configuration::first(vec![0, 1, 2])
    }

    fn envelope(message: u32) -> Envelope<u32> {
        let address = Address::coordinator(NodeId(1));
        Envelope { from: address, to: address, message }
    }

    fn released(leading: &mut Leading<u32>, decided: u64) -> Vec<u32> {
        std::iter::from_fn(|| leading.release(decided).map(|it| it.message)).collect()
    }

    #[test]
    fn a_read_waits_for_a_round_begun_after_it() {
        let mut leading = Leading::new(BALLOT, &three());
        leading.hold(envelope(1), 5, 5, true);
        assert_eq!(leading.begin_round(), Some(1));
        leading.hold(envelope(2), 5, 5, true);
        assert_eq!(leading.begin_round(), None);
        leading.confirm(1, Ballot { number: 3, ..BALLOT }, 1);
        assert!(released(&mut leading, 5).is_empty());
        leading.confirm(1, BALLOT, 1);
        assert_eq!(released(&mut leading, 5), [1]);
        assert_eq!(leading.begin_round(), Some(2));
        leading.confirm(2, BALLOT, 1);
        assert!(released(&mut leading, 5).is_empty());
        leading.confirm(2, BALLOT, 2);
        assert_eq!(released(&mut leading, 5), [2]);
    }

    #[test]
    fn an_answer_with_a_record_of_its_own_waits_for_that_alone() {
        let mut leading = Leading::new(BALLOT, &three());
        leading.hold(envelope(1), 6, 5, true);
        assert_eq!(leading.begin_round(), None);
        assert!(released(&mut leading, 5).is_empty());
        assert_eq!(released(&mut leading, 6), [1]);
        leading.hold(envelope(2), 6, 6, true); // That 6 was decided before proves nothing.
        assert!(released(&mut leading, 6).is_empty());
    }

    #[test]
    fn five_members_need_two_others() {
        let mut leading = Leading::new(BALLOT, &three().next(2, vec![0, 1, 3, 4, 6]));
        leading.hold(envelope(1), 0, 0, true);
        leading.begin_round();
        leading.confirm(3, BALLOT, 1);
        leading.confirm(3, BALLOT, 1);
        assert!(released(&mut leading, 0).is_empty());
        leading.confirm(4, BALLOT, 1);
        assert_eq!(released(&mut leading, 0), [1]);
    }

    #[test]
    fn in_the_next_configuration_a_round_counts_under_the_new_ballot_alone() {
        let mut leading = Leading::new(BALLOT, &three());
        leading.hold(envelope(1), 5, 5, true);
        assert_eq!(leading.begin_round(), Some(1));
        let next = three().next(2, vec![0, 1, 2, 3]);
        let ballot = Ballot { configuration: 2, number: 5, member: 1 };
        leading.go_on(ballot, &next);
        assert_eq!(leading.round_under_way(), Some(1));
        for (member, ballot) in [(1, BALLOT), (2, BALLOT), (1, ballot)] {
            leading.confirm(member, ballot, 1);
            assert!(released(&mut leading, 5).is_empty());
        }
        leading.confirm(3, ballot, 1);
        assert_eq!(released(&mut leading, 5), [1]);
    }
}
