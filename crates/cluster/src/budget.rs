//! What clients and strangers may take of a server: connections, and memory for unfinished frames.
//!
//! Short frames are held as they come, within a quarter of the budget; beyond it whoever began
//! first is closed. For a long one room is given by the length that its header says, and until
//! there is some its connection is not read from, in the order of asking. Where all connections are
//! taken, those who have not said who they are, and visitors, make room for whoever has something
//! to say; some connections are kept for servers and administrators alone. Members are not held to
//! this.

use muesli_core::{Nanos, Protocol};

use crate::connection::VISITOR_BYTES_MAX;
use crate::hello::Station;
use crate::turn::Loop;

/// A frame up to this is held without room being given for it.
const SHORT_BYTES: usize = 64 << 10;

impl<P: Protocol> Loop<P> {
    /// How many connections there may be with those that are kept for members.
    pub(crate) fn connections_most(&self) -> usize {
        self.network.connections_max + self.network.connections_reserved
    }

    /// Closes whoever is the least loss, `but` one; false: everybody here has said who it is.
    pub(crate) fn make_room(&mut self, but: Option<usize>, now: Nanos) -> bool {
        let all = self.peers.all().filter(|(place, _)| Some(*place) != but);
        let least = all.filter_map(|(place, it)| Some((it.expendable()?, it.opened, place))).min();
        let Some((_, _, place)) = least else { return false };
        self.peers.turned_away += 1;
        self.close(place, now, "somebody else needs the connection");
        true
    }

    /// Whether whoever says that it is this kind of process may stay, as far as there are
    /// connections left.
    pub(crate) fn has_room_for(&mut self, place: usize, station: Station, now: Nanos) -> bool {
        match station {
            Station::Server | Station::Admin => true,
            Station::Client | Station::Visitor => {
                self.peers.count() <= self.network.connections_max
                    || self.make_room(Some(place), now)
            }
        }
    }

    /// A part of a frame has come at `place`: a long one needs room.
    pub(crate) fn ask_for_room(&mut self, place: usize) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        let wanted = connection.promised();
        let has_some = connection.room > 0 || connection.awaits_room.is_some();
        if wanted <= SHORT_BYTES || has_some || !connection.is_guest() {
            return;
        }
        connection.awaits_room = Some(wanted);
        self.peers.awaiting_room.push_back(place);
        self.give_room();
    }

    /// The frame is whole: its room is free.
    pub(crate) fn return_room(&mut self, place: usize) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        let room = std::mem::take(&mut connection.room);
        if room > 0 {
            self.peers.incoming -= room;
            self.give_room();
        }
    }

    /// Gives room to those who wait, in their order, as far as there is some.
    pub(crate) fn give_room(&mut self) {
        while let Some(&place) = self.peers.awaiting_room.front() {
            let free = self.network.incoming_bytes_total.saturating_sub(self.peers.incoming);
            let Some(connection) = self.peers.at_mut(place) else { return };
            let wanted = connection.awaits_room.expect("it is among those that wait");
            // One alone may be longer than all together: frames have a limit of their own.
            let alone = self.peers.incoming == 0;
            if wanted > free && !alone {
                return;
            }
            let connection = self.peers.at_mut(place).expect("just seen");
            connection.awaits_room = None;
            connection.room = wanted;
            self.peers.incoming += wanted;
            self.peers.awaiting_room.pop_front();
            self.peers.note_readable(place);
        }
    }

    /// Looks after memory: who waits for room is not slow, and where too much is held of short
    /// frames, those that began first are closed.
    pub(crate) fn keep_budget(&mut self, now: Nanos) {
        let (mut held, mut partial) = (0, Vec::new());
        for (place, connection) in self.peers.all_mut() {
            if connection.awaits_room.is_some() {
                connection.heard = now;
                connection.partial_since = Some(now);
            }
            if connection.is_guest() && connection.room == 0 && connection.held() > 0 {
                held += connection.held();
                partial.push((connection.partial_since, place, connection.held()));
            }
        }
        let most = (self.network.incoming_bytes_total / 4).max(VISITOR_BYTES_MAX);
        partial.sort_unstable();
        for (_, place, bytes) in partial {
            if held <= most {
                break;
            }
            held -= bytes;
            self.close(place, now, "too much is held of unfinished frames");
        }
    }
}
