//! What arrives: one read from each connection that has something, and the whole frames in it.

use muesli_core::Nanos;

use crate::connections::connection::{Arrived, ConnectionState};
use crate::dispatch::event_loop::{Loop, Stopping};
use crate::wire::frame;
use crate::wire::refusal::Reason;

impl Loop {
    pub(super) fn read_all(&mut self, now: Nanos) {
        if matches!(self.stopping, Stopping::Answering(_) | Stopping::Leaving(_)) {
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut joined = Vec::new();
        for place in self.peers.take_readable() {
            let waiting = self.loop_engine.inner.borrow().outside.outbox.waiting_at(place);
            let Some(connection) = self.peers.at(place) else { continue };
            if connection.state == ConnectionState::Dialling {
                continue;
            }
            if self.is_held_back(connection, waiting) {
                self.peers.note_readable(place);
                continue;
            }
            if connection.stalled {
                self.go_on_with_frames(place, &mut joined, now);
                continue;
            }
            self.loop_engine.inner.borrow_mut().outside.counts.traffic.reads += 1;
            let connection = self.peers.at_mut(place).expect("just seen");
            match connection.read(&mut scratch) {
                Arrived::Nothing => {}
                Arrived::Closed => {
                    self.close(place, now, "the other end closed the connection");
                    continue;
                }
                Arrived::Bytes(count) if connection.is_held(&scratch[..count], now) => {}
                Arrived::Bytes(count) => {
                    let bytes = connection.join(&scratch[..count], &mut joined);
                    self.take_frames(place, bytes, now);
                    joined.clear();
                }
            }
            if self.peers.at(place).is_some_and(|connection| connection.readable) {
                self.peers.note_readable(place);
            }
        }
        self.scratch = scratch;
    }

    /// Frames that have come before are looked at now.
    fn go_on_with_frames(&mut self, place: usize, joined: &mut Vec<u8>, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        connection.stalled = false;
        let bytes = connection.join(&[], joined);
        self.take_frames(place, bytes, now);
        joined.clear();
        self.peers.note_readable(place);
    }

    /// Whether frames that have come are not to be looked at for now: what they cause could not
    /// leave.
    pub(crate) fn stalls(&self, place: usize) -> bool {
        let waiting = self.loop_engine.inner.borrow().outside.outbox.waiting_at(place);
        self.peers.at(place).is_some_and(|connection| self.is_held_back(connection, waiting))
    }

    /// Takes the whole frames out of `bytes`, and keeps what follows them.
    fn take_frames(&mut self, place: usize, bytes: &[u8], now: Nanos) {
        let mut at = 0;
        loop {
            let Some(connection) = self.peers.at_mut(place) else { return };
            if connection.state == ConnectionState::Closing {
                return;
            }
            let most = connection.frame_bytes_max(self.network.frame_bytes_max);
            match frame::next(&bytes[at..], most) {
                Ok(Some(found)) => {
                    connection.observe(now);
                    at += found.bytes();
                    self.return_capacity(place);
                    self.on_frame(place, found, now);
                    if at < bytes.len() && self.stalls(place) {
                        return self.keep_frames(place, &bytes[at..], now);
                    }
                }
                Ok(None) => {
                    connection.keep(&bytes[at..], now);
                    self.request_capacity(place);
                    return;
                }
                Err(error) => {
                    self.refuse(place, Reason::Misunderstood, error.to_string(), now);
                    return;
                }
            }
        }
    }

    fn keep_frames(&mut self, place: usize, rest: &[u8], now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        connection.keep(rest, now);
        connection.stalled = true;
        self.peers.note_readable(place);
    }
}
