//! Links as nodes see them: when one comes and goes, who is at its other end, and what that one
//! has proven.
//!
//! This is what the cluster driver does with its connections. A node is told of each link that
//! comes up or goes down. Nodes that the catalog does not list are *unregistered*: clients that
//! come and go. Their messages count as a client's. With all that members say to an unregistered
//! client comes the largest timestamp that they know to be issued, and the client shows the largest
//! that it was given with all that it says. There are no links between unregistered clients.

use std::collections::BTreeSet;

use muesli_core::{Catalog, NodeId, Sender};

use super::host::input::HostInput;
use super::host::message::SentMessage;
use super::{Event, World};
use crate::network::LinkBreak;
use crate::time::Span;

/// The unregistered clients among so many nodes.
pub(super) fn unregistered(catalog: &Catalog, nodes: usize) -> BTreeSet<NodeId> {
    let all = (0..nodes as u32).map(NodeId);
    all.filter(|node| catalog.visiting_coordinators && catalog.is_client(*node)).collect()
}

impl World {
    /// Whether there is a link between two nodes at all.
    pub(super) fn are_joined(&self, first: NodeId, second: NodeId) -> bool {
        let visit = self.unregistered.contains(&first) && self.unregistered.contains(&second);
        first != second && !visit
    }

    /// Who sent a message, as far as whoever receives it can know.
    pub(super) fn sender_of(&self, sent: &SentMessage) -> Sender {
        match self.unregistered.contains(&sent.envelope.from.node) {
            true => Sender::Client { issued: sent.proven },
            false => Sender::Member,
        }
    }

    /// The nodes to which a link of this one is up.
    pub(super) fn linked_to(&self, node: NodeId) -> Vec<NodeId> {
        let others = (0..self.engines.len() as u32).map(NodeId);
        let is_up =
            |other: &NodeId| self.are_joined(node, *other) && !self.network.is_broken(node, *other);
        others.filter(is_up).collect()
    }

    /// A link has broken: both ends are told in time, and then it is made anew.
    pub(super) fn expect_reconnect(&mut self, first: NodeId, second: NodeId, cut: &LinkBreak) {
        let numbers =
            [second.0.into(), cut.first_notified.as_nanos(), cut.second_notified.as_nanos()];
        self.trace_node(first.0 as usize, "break", numbers);
        for (node, other, at) in
            [(first, second, cut.first_notified), (second, first, cut.second_notified)]
        {
            let place = node.0 as usize;
            let incarnation = self.engines[place].host.borrow().incarnation;
            if self.is_alive(place, incarnation) && self.are_joined(node, other) {
                self.queue.push(at, Event::Unlinked { place, incarnation, other });
            }
        }
        let both_notified = cut.first_notified.max(cut.second_notified) + Span::from_nanos(1);
        self.queue.push(both_notified, Event::Reconnect(first, second));
    }

    /// A node is told that its link to another one is gone.
    pub(super) fn unlinked(&mut self, place: usize, incarnation: u32, other: NodeId) {
        if self.is_alive(place, incarnation) {
            self.offer(place, HostInput::Unlinked(other));
        }
    }

    /// Tries to make a broken link anew, and tries again later if it cannot be yet.
    pub(super) fn reconnect(&mut self, first: NodeId, second: NodeId) {
        let held = self.held_broken.contains_key(&pair(first, second));
        if held || !self.network.reconnect(self.now, first, second) {
            let again = self.now + self.reconnect_every;
            return self.queue.push(again, Event::Reconnect(first, second));
        }
        self.trace_node(first.0 as usize, "connect", [second.0.into(), 0, 0]);
        if self.are_joined(first, second) {
            self.offer(first.0 as usize, HostInput::Linked(second));
            self.offer(second.0 as usize, HostInput::Linked(first));
        }
    }
}

/// The key of a link, whichever end is named first.
pub(super) fn pair(first: NodeId, second: NodeId) -> (NodeId, NodeId) {
    (first.min(second), first.max(second))
}
