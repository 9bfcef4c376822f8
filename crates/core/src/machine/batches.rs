//! Messages for other nodes that are held back, to leave together.
//!
//! Each link has a queue of what the node has said over it and what has not left. All messages of a
//! batched link go through its queue, whatever they are, so their order stays. A queue leaves in
//! one go when it is as long as the link's [batch](LinkBatch), or has [as many bytes](BYTES_MAX) as
//! are worth a packet of their own, or when its first message has waited for the time-out, or when
//! the machine is told not to wait: at the end of the node, and when the link breaks. In the last
//! case what is held goes the way of all that was said before the break: the driver loses it, and
//! counts it.
//!
//! A message waits for the log first, and then here: nothing is in a queue that may not be said.
//!
//! There is one timer for all queues, the one that was armed last. Its number tells it from earlier
//! ones, which are ignored. It may come early, and the clock may be wrong by any amount: then a
//! queue waits once more, for its time-out at most, or leaves before its time.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::batching::{Batching, LinkBatch, LinkClass};
use crate::contract::Envelope;
use crate::ids::NodeId;
use crate::time::Nanos;

/// A queue that has grown to so many bytes leaves, as a full one does.
const BYTES_MAX: usize = 64 << 10;
/// With more links known than this, those over which nothing is held are forgotten.
const LINKS_KEPT: usize = 4_096;

/// What became of messages that were held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Messages that left in batches.
    pub messages: u64,
    /// Batches that were full, or long enough.
    pub full: u64,
    /// Batches whose first message had waited for the time-out.
    pub late: u64,
    /// Batches that were asked for: the node ended, or the link broke.
    pub asked: u64,
    /// For how long messages were held, all added up.
    pub held: Nanos,
    /// For how long at most.
    pub held_longest: Nanos,
}

impl BatchCounts {
    /// What came after `before`, an earlier look at the same counts; the longest is that of both.
    pub fn since(self, before: BatchCounts) -> BatchCounts {
        BatchCounts {
            messages: self.messages.saturating_sub(before.messages),
            full: self.full.saturating_sub(before.full),
            late: self.late.saturating_sub(before.late),
            asked: self.asked.saturating_sub(before.asked),
            held: self.held - before.held,
            held_longest: self.held_longest,
        }
    }
}

impl AddAssign for BatchCounts {
    fn add_assign(&mut self, more: BatchCounts) {
        self.messages += more.messages;
        self.full += more.full;
        self.late += more.late;
        self.asked += more.asked;
        self.held = self.held + more.held;
        self.held_longest = self.held_longest.max(more.held_longest);
    }
}

/// Why a batch leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Full,
    Late,
    Asked,
}

/// What is to be done for a message that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing: the timer that runs is early enough.
    Wait,
    /// The batch is full and must leave: see [`Batches::release`].
    Leave,
    /// The timer of this number must be armed, to come after so long.
    Arm(u32, Nanos),
}

/// What was said over one link.
#[derive(Clone, Debug)]
struct LinkQueue<M> {
    batch: LinkBatch,
    /// The placement by which the link is of its class.
    placement: u64,
    /// In the order said, each with when that was; fewer than the batch between calls.
    held: Vec<(Nanos, Envelope<M>)>,
    /// How long these messages are on the wire, all together.
    bytes: usize,
}

impl<M> LinkQueue<M> {
    /// When it must leave, however short it is; `None`: it is empty.
    fn deadline(&self) -> Option<Nanos> {
        self.held.first().map(|(since, _)| *since + self.batch.timeout())
    }

    fn is_full(&self) -> bool {
        self.held.len() >= self.batch.size() || self.bytes >= BYTES_MAX
    }

    /// Whether its time is over at `now`. A clock that has gone back tells nothing of how long it
    /// has waited.
    fn is_late(&self, now: Nanos) -> bool {
        let since = self.held.first().map(|(since, _)| *since);
        since.is_some_and(|since| since > now || since + self.batch.timeout() <= now)
    }
}

/// The queues of a node.
#[derive(Clone, Debug)]
pub(super) struct Batches<M> {
    batching: Batching,
    links: BTreeMap<NodeId, LinkQueue<M>>,
    /// The timer that counts, and when it is due.
    armed: Option<(u32, Nanos)>,
    /// The number of the timer armed last.
    last: u32,
    counts: BatchCounts,
}

impl<M> Batches<M> {
    /// None, where nothing is ever held.
    pub fn new(batching: Batching) -> Option<Box<Batches<M>>> {
        batching.holds().then(|| {
            Box::new(Batches {
                batching,
                links: BTreeMap::new(),
                armed: None,
                last: 0,
                counts: BatchCounts::default(),
            })
        })
    }

    /// Takes a message of so many bytes, which may be said now. `class` tells of which class the
    /// link is, under the placement of that number.
    pub fn take(
        &mut self,
        now: Nanos,
        (envelope, bytes): (Envelope<M>, usize),
        placement: u64,
        class: impl FnOnce(NodeId) -> LinkClass,
    ) -> Next {
        let to = envelope.to.node;
        let is_known =
            |queue: &LinkQueue<M>| queue.placement == placement || !queue.held.is_empty();
        if !self.links.get(&to).is_some_and(is_known) {
            self.learn(to, placement, class(to));
        }
        let queue = self.links.get_mut(&to).expect("a link that is known by now");
        queue.held.push((now, envelope));
        queue.bytes += bytes;
        if queue.is_full() {
            return Next::Leave;
        }
        let due = queue.deadline().expect("it holds a message");
        match self.armed {
            Some((_, at)) if at <= due => Next::Wait,
            _ => self.arm(now, due),
        }
    }

    fn learn(&mut self, to: NodeId, placement: u64, class: LinkClass) {
        if self.links.len() >= LINKS_KEPT {
            self.links.retain(|_, queue| !queue.held.is_empty());
        }
        let batch = self.batching.of(class);
        self.links.insert(to, LinkQueue { batch, placement, held: Vec::new(), bytes: 0 });
    }

    fn arm(&mut self, now: Nanos, due: Nanos) -> Next {
        let after = due - now;
        assert!(after > Nanos(0), "a queue that is late already has left");
        self.last = self.last.wrapping_add(1);
        self.armed = Some((self.last, due));
        Next::Arm(self.last, after)
    }

    /// Has the batch for `to` leave, in order, which is full.
    pub fn release(&mut self, now: Nanos, to: NodeId, send: &mut impl FnMut(Envelope<M>)) {
        self.leave(now, to, Cause::Full, send);
    }

    fn leave(&mut self, now: Nanos, to: NodeId, why: Cause, send: &mut impl FnMut(Envelope<M>)) {
        let Some(queue) = self.links.get_mut(&to).filter(|it| !it.held.is_empty()) else { return };
        assert!(queue.held.len() <= queue.batch.size(), "a full batch has left");
        queue.bytes = 0;
        let counts = &mut self.counts;
        // Over a link without batches nothing has waited.
        if queue.batch.holds() {
            counts.messages += queue.held.len() as u64;
            *match why {
                Cause::Full => &mut counts.full,
                Cause::Late => &mut counts.late,
                Cause::Asked => &mut counts.asked,
            } += 1;
        }
        for (since, envelope) in queue.held.drain(..) {
            counts.held = counts.held + (now - since);
            counts.held_longest = counts.held_longest.max(now - since);
            send(envelope);
        }
    }

    /// The timer of this number has come: has those leave whose time is over. Which timer is to be
    /// armed for the others, if any are left.
    pub fn on_timer(
        &mut self,
        now: Nanos,
        number: u32,
        send: &mut impl FnMut(Envelope<M>),
    ) -> Option<(u32, Nanos)> {
        self.armed.take_if(|(armed, _)| *armed == number)?;
        let is_late = |(to, queue): (&NodeId, &LinkQueue<M>)| queue.is_late(now).then_some(*to);
        let late: Vec<NodeId> = self.links.iter().filter_map(is_late).collect();
        late.into_iter().for_each(|to| self.leave(now, to, Cause::Late, send));
        let next = self.links.values().filter_map(LinkQueue::deadline).min()?;
        match self.arm(now, next) {
            Next::Arm(number, after) => Some((number, after)),
            Next::Wait | Next::Leave => None,
        }
    }

    /// Has all that is held leave, for each node in order.
    pub fn release_all(&mut self, now: Nanos, send: &mut impl FnMut(Envelope<M>)) {
        let all: Vec<NodeId> = self.links.keys().copied().collect();
        all.into_iter().for_each(|to| self.leave(now, to, Cause::Asked, send));
    }

    /// The link to a node is gone: has what is held for it leave before.
    pub fn unlinked(&mut self, now: Nanos, to: NodeId, send: &mut impl FnMut(Envelope<M>)) {
        self.leave(now, to, Cause::Asked, send);
        self.links.remove(&to);
    }

    /// Whether anything is held.
    pub fn is_empty(&self) -> bool {
        self.links.values().all(|queue| queue.held.is_empty())
    }

    /// What became of what was held.
    pub fn counts(&self) -> BatchCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
