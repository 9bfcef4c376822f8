//! The event queue: what happens next, in order of (time, sequence of insertion).
//!
//! Events are only ever scheduled at or after the time of the newest event taken, so the queue can
//! be a monotone one. It is a radix queue: times are read as digits of six bits, and an event lies
//! on the level of the highest digit in which its time differs from the time taken last, in the
//! list of the value of that digit. Taking the next event goes to the lowest level that holds
//! anything and to its lowest digit; if several events share that list, the least of their times
//! becomes the new reference and the list is dealt out over the levels below.
//!
//! Why the order is right: below the lowest occupied level nothing lies, and on one level a lower
//! digit is an earlier time, so the least time is always in the list that is opened. Events of
//! equal time always share a list, for the list is a function of their time and the reference;
//! lists are first in, first out, and dealing one out keeps its order. So events of equal time
//! leave in the order in which they came, without a sequence number being kept.
//!
//! Each event moves at most once per level, in practice two or three times. Lists are links
//! through one slab, so that payloads stay where they are and memory is reused.

use crate::time::VirtualTime;

const DIGIT_BITS: u32 = 6;
const DIGITS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;
/// The end of a list.
const NONE: u32 = u32::MAX;

/// Events of payload `E`, taken in order of time, and of insertion where times are equal.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// The lists run through these; apart from the events, so that walking a list is cheap.
    links: Vec<QueueLink>,
    /// The event of each link; `None` iff that is free.
    events: Vec<Option<E>>,
    /// Head of the list of free slots.
    free: u32,
    lists: Box<[[List; DIGITS]; LEVELS]>,
    /// Bit d of entry l is set iff list d of level l holds something.
    occupied: [u64; LEVELS],
    /// Bit l is set iff level l holds something.
    occupied_levels: u32,
    /// The reference: no event in the queue is earlier.
    newest_taken: u64,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct QueueLink {
    time: u64,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        let empty = List { head: NONE, tail: NONE };
        EventQueue {
            links: Vec::new(),
            events: Vec::new(),
            free: NONE,
            lists: Box::new([[empty; DIGITS]; LEVELS]),
            occupied: [0; LEVELS],
            occupied_levels: 0,
            newest_taken: 0,
            len: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// An empty queue, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event.
    ///
    /// # Panics
    /// If `time` is before the newest event taken, or if four billion events wait: both are
    /// mistakes of the simulator.
    pub fn push(&mut self, time: VirtualTime, event: E) {
        let time = time.as_nanos();
        assert!(time >= self.newest_taken, "an event was scheduled in the past");
        let slot = self.allocate(time, event);
        self.link(slot, time);
        self.len += 1;
    }

    /// Takes the next event if it is due at `limit` or before.
    pub fn pop_until(&mut self, limit: VirtualTime) -> Option<(VirtualTime, E)> {
        if self.occupied_levels == 0 {
            return None;
        }
        let level = self.occupied_levels.trailing_zeros() as usize;
        let digit = self.occupied[level].trailing_zeros() as usize;
        let List { head, tail } = self.lists[level][digit];
        let slot = if head == tail || level == 0 {
            // Alone, or all of one time: the first is the next.
            if self.links[head as usize].time > limit.as_nanos() {
                return None;
            }
            self.unlink_head(level, digit);
            head
        } else {
            self.open(level, digit, limit.as_nanos())?
        };
        let (time, event) = self.release(slot);
        self.newest_taken = time;
        self.len -= 1;
        Some((VirtualTime::from_nanos(time), event))
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(VirtualTime, E)> {
        self.pop_until(VirtualTime::NEVER)
    }

    /// Deals the list out over the levels below, all but the first of its earliest events, which
    /// it returns. Does nothing if the earliest is later than `limit`.
    fn open(&mut self, level: usize, digit: usize, limit: u64) -> Option<u32> {
        let (mut earliest, mut first) = (u64::MAX, NONE);
        let mut next = self.lists[level][digit].head;
        while next != NONE {
            let slot = self.links[next as usize];
            if slot.time < earliest || first == NONE {
                (earliest, first) = (slot.time, next);
            }
            next = slot.next;
        }
        if earliest > limit {
            return None;
        }
        self.newest_taken = earliest;
        next = self.lists[level][digit].head;
        self.clear(level, digit);
        while next != NONE {
            let QueueLink { time, next: after } = self.links[next as usize];
            if next != first {
                self.link(next, time);
            }
            next = after;
        }
        Some(first)
    }

    fn link(&mut self, slot: u32, time: u64) {
        // The lowest bit is set so that equal times land on level zero.
        let highest = u64::BITS - 1 - ((time ^ self.newest_taken) | 1).leading_zeros();
        let level = (highest / DIGIT_BITS) as usize;
        let digit = (time >> (level as u32 * DIGIT_BITS)) as usize % DIGITS;
        self.links[slot as usize].next = NONE;
        let list = &mut self.lists[level][digit];
        if list.head == NONE {
            *list = List { head: slot, tail: slot };
            self.occupied[level] |= 1 << digit;
            self.occupied_levels |= 1 << level;
        } else {
            let tail = list.tail;
            list.tail = slot;
            self.links[tail as usize].next = slot;
        }
    }

    fn unlink_head(&mut self, level: usize, digit: usize) {
        let List { head, tail } = self.lists[level][digit];
        if head == tail {
            self.clear(level, digit);
        } else {
            self.lists[level][digit].head = self.links[head as usize].next;
        }
    }

    fn clear(&mut self, level: usize, digit: usize) {
        self.lists[level][digit] = List { head: NONE, tail: NONE };
        self.occupied[level] &= !(1 << digit);
        if self.occupied[level] == 0 {
            self.occupied_levels &= !(1 << level);
        }
    }

    fn allocate(&mut self, time: u64, event: E) -> u32 {
        let link = QueueLink { time, next: NONE };
        if self.free == NONE {
            let slot = u32::try_from(self.links.len()).ok().filter(|slot| *slot != NONE);
            let slot = slot.expect("the event queue holds at most four billion events");
            self.links.push(link);
            self.events.push(Some(event));
            return slot;
        }
        let slot = self.free;
        self.free = self.links[slot as usize].next;
        self.links[slot as usize] = link;
        self.events[slot as usize] = Some(event);
        slot
    }

    fn release(&mut self, slot: u32) -> (u64, E) {
        let event = self.events[slot as usize].take().expect("a linked slot holds an event");
        let link = &mut self.links[slot as usize];
        link.next = self.free;
        self.free = slot;
        (link.time, event)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// Push this much after the time reached.
        Push(u64),
        /// Pop if due within this much of the time reached, which then moves there.
        PopWithin(u64),
    }

    fn delay() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            0..4_u64,
            0..200_u64,
            0..100_000_u64,
            (0..62_u32).prop_map(|shift| 1 << shift)
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![delay().prop_map(Step::Push), delay().prop_map(Step::PopWithin)]
    }

    fn at(nanos: u64) -> VirtualTime {
        VirtualTime::from_nanos(nanos)
    }

    proptest! {
        /// The queue against a sorted map from (time, sequence).
        #[test]
        fn behaves_as_a_sorted_map(steps in prop::collection::vec(step(), 1..400)) {
            let mut queue = EventQueue::new();
            let mut model = BTreeMap::new();
            let mut now = 0_u64;
            for (sequence, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(delay) => {
                        let time = now.saturating_add(delay);
                        queue.push(at(time), sequence);
                        model.insert((time, sequence), ());
                    }
                    Step::PopWithin(delay) => {
                        let limit = now.saturating_add(delay);
                        let first = model.first_key_value().map(|(key, ())| *key);
                        let due = first.filter(|(time, _)| *time <= limit);
                        let expected = due.map(|(time, sequence)| (at(time), sequence));
                        prop_assert_eq!(queue.pop_until(at(limit)), expected);
                        if let Some(key) = due {
                            model.remove(&key);
                        }
                        now = due.map_or(limit, |(time, _)| time);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
            }
            while let Some(((time, sequence), ())) = model.pop_first() {
                prop_assert_eq!(queue.pop(), Some((at(time), sequence)));
            }
            prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut queue = EventQueue::new();
        for round in 0..1_000 {
            queue.push(at(round), round);
            queue.push(at(round + 1), round);
            assert!(queue.pop().is_some() && queue.pop().is_some());
        }
        assert_eq!(queue.links.len(), 2);
    }

    #[test]
    #[should_panic(expected = "in the past")]
    fn times_before_now_are_refused() {
        let mut queue = EventQueue::new();
        queue.push(at(5), ());
        queue.pop();
        queue.push(at(4), ());
    }
}
