//! Bounded rings between loops: one producer, one consumer, for each direction of each pair.

use muesli_core::{Envelope, Protocol};
use rtrb::{Consumer, Producer, RingBuffer};

/// So many messages may be on their way in one direction.
const MESSAGES_MAX: usize = 1024;

/// A loop's ends: to and from each loop, by its number; none to itself.
pub(in super::super) struct RingLinks<P: Protocol> {
    pub to: Vec<Option<Producer<Envelope<P::Message>>>>,
    pub from: Vec<Option<Consumer<Envelope<P::Message>>>>,
}

/// The ends of all loops, connected.
pub(in super::super) fn all_pairs<P: Protocol>(loops: usize) -> Vec<RingLinks<P>> {
    let none = || RingLinks { to: Vec::new(), from: (0..loops).map(|_| None).collect() };
    let mut links: Vec<RingLinks<P>> = (0..loops).map(|_| none()).collect();
    for sender in 0..loops {
        for receiver in 0..loops {
            if sender == receiver {
                links[sender].to.push(None);
                continue;
            }
            let (producer, consumer) = RingBuffer::new(MESSAGES_MAX);
            links[sender].to.push(Some(producer));
            links[receiver].from[sender] = Some(consumer);
        }
    }
    links
}
