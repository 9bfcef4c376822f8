//! What is due: signs of life, and the end of connections that were silent or slow for too long.

use muesli_core::Nanos;

use crate::connections::connection::{Connection, ConnectionState};
use crate::dispatch::event_loop::Loop;

/// How long whoever was refused may take to close.
const CLOSING_AT_MOST: Nanos = Nanos::from_millis(1_000);

impl Loop {
    /// Looks after times: who is to be dialled, who was silent or slow for too long, and to whom
    /// a sign of life is due.
    pub(crate) fn handle_timeouts(&mut self, now: Nanos) {
        if self.accept_again {
            self.accept_again = false;
            self.accept(now);
        }
        self.dial(now);
        self.keep_budget(now);
        self.keep_pace(now);
        self.relieve(now);
        self.read_spaces(now);
        self.loop_engine.clock.look();
        let (mut overdue, mut due, is_server) = (Vec::new(), Vec::new(), !self.peers.is_client());
        let loop_engine = self.loop_engine.clone();
        let inner = loop_engine.inner.borrow();
        for (place, connection) in self.peers.all_mut() {
            let waiting = inner.outside.outbox.waiting_at(place);
            let high = connection.outgoing_bytes_high(self.network.outgoing_bytes_high);
            connection.note_crowd(waiting > high, now);
            if let Some(why) = overdue_reason(connection, waiting, &self.network, now) {
                overdue.push((place, why));
                continue;
            }
            let up = matches!(connection.state, ConnectionState::Up { .. });
            let silent = waiting == 0 && passed(connection.spoke, self.network.alive_every, now);
            let has_kept =
                connection.server().is_some() && inner.kept() > connection.reported_record;
            if up && (silent || is_server && connection.taken > connection.reported || has_kept) {
                due.push(place);
            }
        }
        drop(inner);
        for place in due {
            self.tell_alive(place, now);
            let loop_engine = self.loop_engine.clone();
            loop_engine.inner.borrow_mut().outside.outbox.to(place);
        }
        self.keep_heights(now);
        for (place, why) in overdue {
            self.close(place, now, why);
        }
    }
}

pub(crate) fn passed(since: Nanos, most: std::time::Duration, now: Nanos) -> bool {
    (now - since).0 > most.as_nanos() as u64
}

/// Why a connection is to be closed now, if it is.
fn overdue_reason(
    connection: &Connection,
    waiting: usize,
    network: &crate::network::Network,
    now: Nanos,
) -> Option<&'static str> {
    let since = |since: Option<Nanos>| since.is_some_and(|at| passed(at, network.slow_after, now));
    match connection.state {
        ConnectionState::Closing => {
            (now - connection.opened > CLOSING_AT_MOST).then_some("it was refused")
        }
        ConnectionState::Dialling
        | ConnectionState::AwaitHello
        | ConnectionState::AwaitProof
        | ConnectionState::AwaitWelcome => {
            let late = passed(connection.opened, network.hello_within, now);
            late.then_some("nobody said hello in time")
        }
        ConnectionState::Up { .. } if waiting > network.outgoing_bytes_max => {
            Some("too much waits to be sent to it")
        }
        ConnectionState::Up { .. } if since(connection.crowded_since) => {
            Some("it takes in too slowly")
        }
        ConnectionState::Up { .. } if since(connection.partial_since) => {
            Some("a frame took too long")
        }
        ConnectionState::Up { .. } => passed(connection.seen_at, network.dead_after, now)
            .then_some("it was silent for too long"),
    }
}
