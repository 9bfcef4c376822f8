//! What clients and strangers may take of a server: connections, and memory for unfinished frames
//! and for what waits to be sent to them.
//!
//! Short frames are held as they come, within a quarter of the budget; beyond it whoever began
//! first is closed. For a long one room is given by the length that its header says, and until
//! there is some its connection is not read from, in the order of asking; while others wait, a
//! frame that has room must come at a pace. Where too much waits to be sent to all, nothing is read
//! from clients and probes, and those that do not take it in are closed. Where all connections
//! are taken, those who have not said who they are, and probes, make room for whoever has
//! something to say; some connections are kept for servers and administrators alone. Members are
//! not held to this.

use std::cmp::Reverse;
use std::time::Duration;

use muesli_core::Nanos;

use crate::admission::timeouts::passed;
use crate::connections::connection::{Connection, PROBE_BYTES_MAX, PROGRESS_BYTES};
use crate::dispatch::event_loop::Loop;
use crate::wire::hello::ProcessKind;
use crate::wire::refusal::Reason;

/// A frame up to this is held without room being given for it.
const SHORT_BYTES: usize = 64 << 10;

/// Welcomes of clients and probes have this part of what may wait to be sent to all.
const WELCOMES_SHARE: usize = 4;

/// Where others wait for what a slow connection holds, it has this part of the time that it has
/// otherwise.
const HURRY: u32 = 10;

impl Loop {
    /// Whether nothing is to be read from a connection for now: what it causes could not leave.
    pub(crate) fn is_held_back(&self, connection: &Connection, waiting: usize) -> bool {
        let high = connection.outgoing_bytes_high(self.network.outgoing_bytes_high);
        connection.is_guest()
            && (waiting > high
                || self.peers.all_crowded && connection.waits_with_all()
                || connection.awaits_capacity.is_some())
    }

    /// How many connections there may be with those that are kept for members.
    pub(crate) fn connections_most(&self) -> usize {
        self.network.connections_max + self.network.connections_reserved
    }

    /// Closes whoever is the least loss, `but` one; false: everybody here has said who it is.
    pub(crate) fn close_expendable(&mut self, but: Option<usize>, now: Nanos) -> bool {
        let all = self.peers.all().filter(|(place, _)| Some(*place) != but);
        let least = all.filter_map(|(place, it)| Some((it.expendable()?, it.opened, place))).min();
        let Some((_, _, place)) = least else { return false };
        self.peers.refused_at_limit += 1;
        self.close(place, now, "somebody else needs the connection");
        true
    }

    /// Whether whoever says that it is this kind of process may stay, as far as there are
    /// connections left.
    pub(crate) fn has_capacity_for(
        &mut self,
        place: usize,
        process_kind: ProcessKind,
        now: Nanos,
    ) -> bool {
        match process_kind {
            ProcessKind::Server | ProcessKind::Admin => true,
            ProcessKind::Client | ProcessKind::Probe => {
                self.peers.count() <= self.network.connections_max
                    || self.close_expendable(Some(place), now)
            }
        }
    }

    /// The welcome of whoever is at `place` waits to be sent. It carries the map, which is long
    /// where there are many spaces, and answers a few bytes of somebody who need not have proven
    /// anything: so welcomes of clients and probes have a share of what may wait, and beyond it
    /// those that have not taken theirs in are closed, oldest first.
    pub(crate) fn close_expendable_for_welcome(&mut self, place: usize, now: Nanos) {
        let waiting = self.loop_engine.inner.borrow().outside.outbox.waiting_at(place);
        if let Some(connection) = self.peers.at_mut(place) {
            connection.welcome(waiting);
        }
        let most = (self.network.outgoing_bytes_total / WELCOMES_SHARE).max(waiting);
        let left = |(place, it): (usize, &Connection)| {
            let left = if it.waits_with_all() { it.welcome_left() } else { 0 };
            (left > 0).then_some((it.opened, place, left))
        };
        let mut all: Vec<_> = self.peers.all().filter_map(left).collect();
        let mut sum: usize = all.iter().map(|(_, _, left)| left).sum();
        all.sort_unstable();
        for (_, other, left) in all {
            if sum <= most {
                return;
            }
            if other != place {
                sum -= left;
                self.peers.refused_at_limit += 1;
                self.close(other, now, "its welcome waits, and others are to be welcomed");
            }
        }
    }

    /// A part of a frame has come at `place`: a long one needs room.
    pub(crate) fn request_capacity(&mut self, place: usize) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        let wanted = connection.announced();
        let has_some = connection.capacity > 0 || connection.awaits_capacity.is_some();
        // Administrators send few, and must be heard whatever others hold.
        let is_limited = connection.is_guest() && !connection.is_admin();
        if wanted <= SHORT_BYTES || has_some || !is_limited {
            return;
        }
        (connection.awaits_capacity, connection.pace) = (Some(wanted), None);
        self.peers.awaiting_capacity.push_back(place);
        self.grant_capacity();
    }

    /// The frame is whole: its room is free.
    pub(crate) fn return_capacity(&mut self, place: usize) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        let capacity = std::mem::take(&mut connection.capacity);
        if capacity > 0 {
            self.peers.incoming -= capacity;
            self.grant_capacity();
        }
    }

    /// Gives room to those who wait, in their order, as far as there is some.
    pub(crate) fn grant_capacity(&mut self) {
        while let Some(&place) = self.peers.awaiting_capacity.front() {
            let free = self.network.incoming_bytes_total.saturating_sub(self.peers.incoming);
            let Some(connection) = self.peers.at_mut(place) else { return };
            let wanted = connection.awaits_capacity.expect("it is among those that wait");
            // One alone may be longer than all together: frames have a limit of their own.
            let alone = self.peers.incoming == 0;
            if wanted > free && !alone {
                return;
            }
            let connection = self.peers.at_mut(place).expect("just seen");
            connection.awaits_capacity = None;
            connection.capacity = wanted;
            self.peers.incoming += wanted;
            self.peers.awaiting_capacity.pop_front();
            self.peers.note_readable(place);
        }
    }

    /// Looks after memory: who waits for room is not slow, and where too much is held of short
    /// frames, those that began first are closed.
    pub(crate) fn keep_budget(&mut self, now: Nanos) {
        let (mut held, mut partial) = (0, Vec::new());
        for (place, connection) in self.peers.all_mut() {
            if connection.awaits_capacity.is_some() {
                connection.seen_at = now;
                connection.partial_since = Some(now);
            }
            if connection.is_guest() && connection.capacity == 0 && connection.held() > 0 {
                held += connection.held();
                partial.push((connection.partial_since, place, connection.held()));
            }
        }
        let most = (self.network.incoming_bytes_total / 4).max(PROBE_BYTES_MAX);
        partial.sort_unstable();
        for (_, place, bytes) in partial {
            if held <= most {
                break;
            }
            held -= bytes;
            self.close(place, now, "too much is held of unfinished frames");
        }
    }

    /// How long a connection may stand still while others wait for what it holds.
    fn hurry(&self) -> Duration {
        self.network.slow_after / HURRY
    }

    /// While others wait for room, a frame that has some comes at a pace, or its connection is
    /// closed. Bytes that wait here to be read are no fault of the other end.
    pub(crate) fn keep_pace(&mut self, now: Nanos) {
        let others_wait = !self.peers.awaiting_capacity.is_empty();
        let has_capacity = |(place, it): (usize, &Connection)| (it.capacity > 0).then_some(place);
        let holders: Vec<_> = self.peers.all().filter_map(has_capacity).collect();
        // Who has had room for longest keeps it: where all are slow, one at a time gets done.
        let began = |(place, it): (usize, &Connection)| {
            (it.capacity > 0).then_some((it.partial_since, place))
        };
        let oldest = self.peers.all().filter_map(began).min().map(|(_, place)| place);
        for place in holders.into_iter().filter(|place| Some(*place) != oldest) {
            let is_read = others_wait && !self.stalls(place);
            let hurry = self.hurry();
            let Some(connection) = self.peers.at_mut(place) else { continue };
            let held = connection.held();
            let (since, had) = match connection.pace.filter(|_| is_read) {
                Some(begun) => begun,
                None => {
                    connection.pace = is_read.then_some((now, held));
                    continue;
                }
            };
            if !passed(since, hurry, now) || connection.readable {
                continue;
            }
            let announced = connection.announced();
            let least = PROGRESS_BYTES.min(announced.saturating_sub(had));
            if held.saturating_sub(had) >= least {
                connection.pace = Some((now, held));
                continue;
            }
            let text = format!(
                "a frame of {announced} bytes came too slowly while others waited for room \
                 (`incoming_bytes_total`): {} of {least} bytes within {} ms",
                held.saturating_sub(had),
                hurry.as_millis()
            );
            connection.drop_frame();
            self.peers.refused_at_limit += 1;
            self.refuse(place, Reason::Full, text, now);
            self.return_capacity(place);
        }
    }

    /// Where too much waits to be sent to all, closes those that hold most of it until it does not:
    /// probes, and then clients that take nothing in.
    pub(crate) fn relieve(&mut self, now: Nanos) {
        let inner = self.loop_engine.inner.borrow();
        let (mut all, _) = inner.outside.outbox.waiting();
        let most = self.network.outgoing_bytes_total;
        if all <= most {
            return;
        }
        let hurry = self.hurry();
        let held = self.peers.all().filter_map(|(place, it)| {
            let waiting = inner.outside.outbox.waiting_at(place);
            let is_client = goes_as_client(it, waiting, hurry, now)?;
            Some((is_client, Reverse(waiting), place))
        });
        let mut held: Vec<_> = held.collect();
        drop(inner);
        held.sort_unstable();
        for (_, Reverse(waiting), place) in held {
            if all <= most {
                return;
            }
            all -= waiting;
            self.peers.refused_at_limit += 1;
            self.close(place, now, "too much waits to be sent to all, and it does not take it in");
        }
    }
}

/// Whether a connection for which so much waits is one of those that are closed where too much
/// waits for all, and then whether as a client, which go last: one that has stood still for so
/// long.
fn goes_as_client(it: &Connection, waiting: usize, hurry: Duration, now: Nanos) -> Option<bool> {
    let is_client = it.expendable().is_none();
    let stands = it.crowded_since.is_some_and(|at| passed(at, hurry, now));
    let goes = it.waits_with_all() && (!is_client || stands);
    (goes && waiting > 0).then_some(is_client)
}

#[cfg(test)]
mod tests {
    use muesli_core::NodeId;

    use super::*;
    use crate::connections::connection::ConnectionState;
    use crate::connections::stream::Stream;
    use crate::wire::ids::DataId;
    use crate::wire::progress::Reached;

    #[test]
    fn handshakes_servers_and_administrators_are_spared_where_too_much_waits() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, hurry, now) = (Nanos(1), Duration::from_millis(10), Nanos::from_millis(20));
        let goes = |state: ConnectionState, crowded_since: Option<Nanos>| {
            let stream = Stream::Tcp(mio::net::TcpStream::connect(address).unwrap());
            let mut connection = Connection::new(stream, state, None, begun);
            connection.crowded_since = crowded_since;
            assert_eq!(goes_as_client(&connection, 0, hurry, now), None, "nothing waits for it");
            goes_as_client(&connection, 1 << 30, hurry, now)
        };
        let up = |process_kind| {
            let (node, data_id, own) = (NodeId(7), DataId(7), Reached::default());
            ConnectionState::Up { node, process_kind, data_id, own }
        };
        let long = Some(begun);
        for state in [
            ConnectionState::AwaitHello,
            ConnectionState::AwaitProof,
            ConnectionState::Dialling,
            ConnectionState::AwaitWelcome,
        ] {
            assert_eq!(goes(state, long), None, "{state:?}");
        }
        for process_kind in [ProcessKind::Server, ProcessKind::Admin] {
            assert_eq!(goes(up(process_kind), long), None, "{process_kind:?}");
        }
        assert_eq!(goes(up(ProcessKind::Probe), None), Some(false));
        assert_eq!(goes(ConnectionState::Closing, None), Some(false));
        assert_eq!(goes(up(ProcessKind::Client), long), Some(true));
        assert_eq!(
            goes(up(ProcessKind::Client), Some(Nanos::from_millis(15))),
            None,
            "not for long"
        );
        assert_eq!(goes(up(ProcessKind::Client), None), None, "it takes in what it is told");
    }
}
