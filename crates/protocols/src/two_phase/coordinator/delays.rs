//! What a transaction has delayed so far.

use muesli_core::limits::ENTRY_BYTES;
use muesli_core::ranges::KeyRange;
use muesli_core::{Action, DelayedCall, SmallBytes, SpaceId};

use crate::two_phase::table::sizes::action_bytes;

/// What a transaction has delayed so far.
///
/// Invariants: the answers that are wanted have the numbers from zero on, in the order in which
/// they were asked for, and each is of something that is delayed.
#[derive(Clone, Debug, Default)]
pub(in crate::two_phase) struct Delays {
    /// Actions, in order.
    pub actions: Vec<(SpaceId, SmallBytes, Action)>,
    /// Places of actions whose answers are wanted, and the numbers of these.
    pub asked: Vec<(usize, u32)>,
    /// Procedures, with the numbers of their answers where they are wanted. They share no key with
    /// each other, nor with the actions.
    pub calls: Vec<(DelayedCall, Option<u32>)>,
    /// How many answers are wanted.
    pub answers: u32,
    /// How many bytes an action may leave, where one may leave more than it is given.
    pub result_bytes: u64,
    /// How much there was as each open level began.
    marks: Vec<DelaysMark>,
}

/// How much is delayed.
#[derive(Clone, Copy, Debug)]
struct DelaysMark {
    actions: usize,
    asked: usize,
    calls: usize,
    answers: u32,
    result_bytes: u64,
}

impl Delays {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.calls.is_empty()
    }

    #[inline]
    pub fn clear(&mut self) {
        self.marks.clear();
        if !self.is_empty() {
            *self = Delays::default();
        }
    }

    /// A level begins inside of the innermost one.
    pub fn nest(&mut self) {
        self.marks.push(DelaysMark {
            actions: self.actions.len(),
            asked: self.asked.len(),
            calls: self.calls.len(),
            answers: self.answers,
            result_bytes: self.result_bytes,
        });
    }

    /// The innermost level is its parent's.
    pub fn merge(&mut self) {
        self.marks.pop();
    }

    /// What a level has delayed, and all inside of it, is not to be done. (Answers were given
    /// numbers in order, which those that are asked for from now on get again.)
    pub fn roll_back(&mut self, level: u32) {
        let Some(mark) = self.marks.get(level as usize - 1).copied() else { return };
        self.marks.truncate(level as usize - 1);
        self.actions.truncate(mark.actions);
        self.asked.truncate(mark.asked);
        self.calls.truncate(mark.calls);
        (self.answers, self.result_bytes) = (mark.answers, mark.result_bytes);
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.asked.is_sorted(), "answers of actions out of order");
        let last = self.asked.last().map_or(0, |(place, _)| place + 1);
        assert!(last <= self.actions.len(), "action {last} is asked, of {}", self.actions.len());
        let called = self.calls.iter().filter_map(|(_, number)| *number);
        let mut numbers: Vec<u32> = self.asked.iter().map(|(_, it)| *it).chain(called).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..self.answers), "the numbers of {} answers", self.answers);
    }

    /// Whether something may change a key in its turn.
    pub fn changes(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.actions.iter().any(|(other, delayed, _)| *other == space && delayed == key)
            || self.calls.iter().any(|(call, _)| call.has(space, key))
    }

    /// Whether something may look at a key in its turn, or change it.
    pub fn sees(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.changes(space, key) || self.calls.iter().any(|(call, _)| call.sees(space, key))
    }

    /// Whether something may change a key of a range in its turn.
    pub fn changes_in(&self, range: &KeyRange) -> bool {
        let mut called = self.calls.iter().flat_map(|(call, _)| &call.keys);
        self.actions.iter().any(|(space, key, _)| range.contains(*space, key))
            || called.any(|(space, key)| range.contains(*space, key))
    }

    /// Whether a procedure and what was delayed before it cannot be told apart.
    pub fn meets(&self, call: &DelayedCall) -> bool {
        self.actions.iter().any(|(space, key, _)| call.sees(*space, key))
            || self.calls.iter().any(|(other, _)| call.meets(other))
    }

    /// What it counts towards the limit of its transaction.
    pub fn bytes(&self) -> usize {
        let actions = self.actions.iter().map(|(_, key, it)| action_bytes(key, it));
        let calls = self.calls.iter().map(|(call, _)| ENTRY_BYTES + call.bytes());
        actions.sum::<usize>() + calls.sum::<usize>()
    }

    /// The number of the next answer, if it is wanted.
    pub fn number(&mut self, answered: bool) -> Option<u32> {
        self.answers += u32::from(answered);
        answered.then(|| self.answers - 1)
    }
}
