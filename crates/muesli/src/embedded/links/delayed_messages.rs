//! What is under way between loops that are far from each other.

use std::collections::VecDeque;

use muesli_core::Nanos;
use rtrb::Consumer;

/// So many messages of one sender are held; the others stay in its ring.
const HELD_MAX: usize = 1 << 16;

/// Messages to a loop that are held until they have been under way for long enough.
///
/// Invariants (`assert_invariants`): of each sender as many are held as may be at most, in the
/// order in which they are due; nothing is held of those that are near.
pub(in super::super) struct DelayedMessages<T> {
    senders: Vec<DelayedSender<T>>,
}

struct DelayedSender<T> {
    /// How far it is away.
    delay: Nanos,
    held: VecDeque<(Nanos, T)>,
}

impl<T> DelayedMessages<T> {
    /// Of so many senders, which are so far away.
    pub fn new(delays: &[Nanos]) -> DelayedMessages<T> {
        let sender = |delay: &Nanos| DelayedSender { delay: *delay, held: VecDeque::new() };
        DelayedMessages { senders: delays.iter().map(sender).collect() }
    }

    /// The next message of a sender that has arrived by now.
    #[inline]
    pub fn take(&mut self, from: usize, link: &mut Consumer<T>, now: Nanos) -> Option<T> {
        let sender = &mut self.senders[from];
        if sender.delay == Nanos(0) {
            return link.pop().ok();
        }
        while sender.held.len() < HELD_MAX
            && let Ok(message) = link.pop()
        {
            sender.held.push_back((now + sender.delay, message));
        }
        sender.held.pop_front_if(|(due, _)| *due <= now).map(|(_, message)| message)
    }

    /// When the next one arrives.
    pub fn next(&self) -> Option<Nanos> {
        self.senders.iter().filter_map(|it| it.held.front()).map(|(due, _)| *due).min()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.senders.iter().all(|it| it.held.is_empty())
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for (from, DelayedSender { delay, held }) in self.senders.iter().enumerate() {
            assert!(held.len() <= HELD_MAX, "{} of {from} are held", held.len());
            assert!(*delay > Nanos(0) || held.is_empty(), "{from} is near, and its mail is held");
            assert!(held.iter().is_sorted_by_key(|(due, _)| *due), "mail of {from} overtakes");
        }
    }
}

#[cfg(test)]
mod tests {
    use rtrb::RingBuffer;

    use super::*;

    #[test]
    fn what_comes_from_far_is_held_in_its_order() {
        let (mut far_in, mut far) = RingBuffer::new(8);
        let (mut near_in, mut near) = RingBuffer::new(8);
        let mut delayed = DelayedMessages::new(&[Nanos(0), Nanos(100)]);
        near_in.push('a').unwrap();
        far_in.push('b').unwrap();
        assert_eq!(delayed.take(0, &mut near, Nanos(10)), Some('a'));
        assert_eq!(delayed.take(1, &mut far, Nanos(10)), None);
        assert!(far.is_empty() && !delayed.is_empty());
        far_in.push('c').unwrap();
        assert_eq!(delayed.take(1, &mut far, Nanos(50)), None);
        assert_eq!(delayed.next(), Some(Nanos(110)));
        assert_eq!(delayed.take(1, &mut far, Nanos(110)), Some('b'));
        assert_eq!(delayed.take(1, &mut far, Nanos(110)), None);
        delayed.assert_invariants();
        assert_eq!(delayed.take(1, &mut far, Nanos(150)), Some('c'));
        assert!(delayed.is_empty() && delayed.next().is_none());
    }

    #[test]
    fn what_is_held_is_bounded() {
        let (mut to, mut from) = RingBuffer::new(HELD_MAX + 8);
        (0..HELD_MAX + 8).for_each(|number| to.push(number).unwrap());
        let mut delayed = DelayedMessages::new(&[Nanos(5)]);
        assert_eq!(delayed.take(0, &mut from, Nanos(1)), None);
        delayed.assert_invariants();
        assert_eq!(from.slots(), 8, "these wait in the ring");
        assert_eq!(delayed.take(0, &mut from, Nanos(6)), Some(0));
    }
}
