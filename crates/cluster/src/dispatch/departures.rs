//! What leaves: one write for each connection that something is for.

use muesli_core::Nanos;
use muesli_core::wire::Wire;

use crate::connections::connection::{Connection, ConnectionState};
use crate::dispatch::event_loop::Loop;
use crate::wire::frame::FrameKind;

/// How often a server that writes to a connection says how much it has taken over it.
const TELL_EVERY: Nanos = Nanos::from_millis(5);

impl Loop {
    /// Writes once to every connection that something is for.
    pub(super) fn flush(&mut self, now: Nanos) {
        let dirty = self.loop_engine.inner.borrow_mut().outside.outbox.take_dirty();
        if dirty.is_empty() {
            return;
        }
        for place in dirty {
            self.tell_taken(place, now);
            self.write(place, now);
            let node = self.peers.at(place).and_then(Connection::server);
            if let Some(node) = node {
                self.loop_engine.inner.borrow_mut().note_sent(place, node, now);
            }
        }
        let traffic = self.loop_engine.inner.borrow().outside.counts.traffic;
        *self.entry_point.traffic.lock().unwrap_or_else(|broken| broken.into_inner()) = traffic;
    }

    /// Puts a frame of the driver's own behind what waits for a connection.
    pub(crate) fn frame(&mut self, place: usize, kind: FrameKind, body: &impl Wire) {
        self.loop_engine.inner.borrow_mut().outside.outbox.to(place).frame(kind, body);
    }

    /// Says how much was taken over a connection, behind what is said there anyway.
    fn tell_taken(&mut self, place: usize, now: Nanos) {
        if self.peers.is_client() {
            return; // Servers ask nothing of clients.
        }
        let Some(connection) = self.peers.at_mut(place) else { return };
        if connection.taken > connection.reported && connection.reported_at + TELL_EVERY <= now {
            self.tell_alive(place, now);
        }
    }

    pub(crate) fn write(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        if connection.blocked || connection.state == ConnectionState::Dialling {
            return;
        }
        let mut inner = self.loop_engine.inner.borrow_mut();
        let outgoing = inner.outside.outbox.at(place);
        let ready = outgoing.ready();
        if ready.is_empty() {
            return;
        }
        let written = connection.write(ready, now);
        match written {
            Some(count) => {
                outgoing.advance(count);
                let traffic = &mut inner.outside.counts.traffic;
                traffic.writes += 1;
                traffic.bytes += count as u64;
            }
            None => {
                drop(inner);
                self.close(place, now, "the connection broke");
            }
        }
    }
}
