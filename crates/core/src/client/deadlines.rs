//! Deadlines of a loop: most are taken back long before they come.
//!
//! An alarm per transaction would stay in the queue of alarms until its time. Here a deadline is a
//! slot that is free again as soon as it is taken back, and all slots are looked at when the
//! earliest deadline that was set may have come: for transactions that are short beside their
//! timeout, about once per timeout.

use std::task::Waker;

use crate::ids::Txn;
use crate::time::Nanos;

/// After so long at the soonest, the slots are looked at again.
const LOOK_EVERY: Nanos = Nanos::from_millis(1);

/// What happens at a deadline.
#[derive(Clone, Debug)]
pub enum Due {
    /// A task is woken.
    Wake(Waker),
    /// A transaction is aborted: it was open for so many milliseconds.
    Abort(Txn, u64),
}

/// A deadline that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineId(u32);

#[derive(Debug)]
enum DeadlineSlot {
    Free,
    Set(Nanos, Due),
    /// It came, and was not taken back yet.
    Over,
}

/// The deadlines of a loop.
#[derive(Debug, Default)]
pub struct Deadlines {
    slots: Vec<DeadlineSlot>,
    free: Vec<u32>,
    /// No deadline comes before this.
    next: Option<Nanos>,
}

impl Deadlines {
    /// Sets a deadline. Its slot is kept until it is [taken back](Self::take_back).
    pub fn set(&mut self, at: Nanos, due: Due) -> DeadlineId {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
        let slot = DeadlineSlot::Set(at, due);
        match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = slot;
                DeadlineId(place)
            }
            None => {
                self.slots.push(slot);
                DeadlineId(self.slots.len() as u32 - 1)
            }
        }
    }

    /// The deadline is not to happen any more, or has happened.
    pub fn take_back(&mut self, deadline: DeadlineId) {
        let slot = &mut self.slots[deadline.0 as usize];
        assert!(!matches!(slot, DeadlineSlot::Free), "a deadline is taken back once");
        *slot = DeadlineSlot::Free;
        self.free.push(deadline.0);
    }

    /// Before this time none comes.
    pub fn next(&self) -> Option<Nanos> {
        self.next
    }

    /// Takes those that have come, in the order of their slots.
    pub fn due(&mut self, now: Nanos) -> Vec<Due> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let (mut due, mut next) = (Vec::new(), None::<Nanos>);
        for slot in &mut self.slots {
            match slot {
                DeadlineSlot::Set(at, _) if *at <= now => {
                    if let DeadlineSlot::Set(_, it) = std::mem::replace(slot, DeadlineSlot::Over) {
                        due.push(it);
                    }
                }
                DeadlineSlot::Set(at, _) => next = Some(next.map_or(*at, |next| next.min(*at))),
                DeadlineSlot::Free | DeadlineSlot::Over => {}
            }
        }
        self.next = next.map(|next| next.max(now + LOOK_EVERY));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aborted(due: &[Due]) -> Vec<u32> {
        let slot = |due: &Due| match due {
            Due::Abort(txn, _) => txn.slot,
            Due::Wake(_) => unreachable!("none was set"),
        };
        due.iter().map(slot).collect()
    }

    #[test]
    fn deadlines_come_once_unless_they_are_taken_back() {
        let mut deadlines = Deadlines::default();
        let due = |slot| Due::Abort(Txn { slot, generation: 0 }, 7);
        let [first, second, _] = [(5, 1), (9, 2), (9, 3)]
            .map(|(at, slot)| deadlines.set(Nanos::from_millis(at), due(slot)));
        assert_eq!(deadlines.next(), Some(Nanos::from_millis(5)));
        assert!(deadlines.due(Nanos::from_millis(4)).is_empty());
        assert_eq!(aborted(&deadlines.due(Nanos::from_millis(5))), [1]);
        assert_eq!(deadlines.next(), Some(Nanos::from_millis(9)));
        deadlines.take_back(first);
        deadlines.take_back(second);
        assert_eq!(aborted(&deadlines.due(Nanos::from_millis(20))), [3]);
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn slots_that_were_taken_back_are_used_again() {
        let mut deadlines = Deadlines::default();
        for number in 0..1000 {
            let due = Due::Abort(Txn { slot: number, generation: 0 }, 1);
            let set = deadlines.set(Nanos(u64::from(number)), due);
            deadlines.take_back(set);
        }
        assert_eq!(deadlines.slots.len(), 1);
    }

    #[test]
    #[should_panic(expected = "taken back once")]
    fn a_deadline_is_not_taken_back_twice() {
        let mut deadlines = Deadlines::default();
        let set = deadlines.set(Nanos(1), Due::Wake(Waker::noop().clone()));
        deadlines.take_back(set);
        deadlines.take_back(set);
    }
}
