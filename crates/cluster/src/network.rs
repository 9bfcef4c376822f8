//! Limits and times of connections.

use std::time::Duration;

/// How a process treats its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The longest body of a frame, in bytes; more than the largest transaction takes. A message
    /// that does not fit is not sent.
    pub frame_bytes_max: usize,
    /// The most connections accepted; further ones are told so and closed.
    pub connections_max: usize,
    /// So many more are kept for servers and administrators.
    pub connections_reserved: usize,
    /// The most bytes of unfinished frames that are held for clients and strangers together;
    /// further long frames are not read until there is room.
    pub incoming_bytes_total: usize,
    /// With more bytes than this waiting to be sent to a client, nothing more is read from it; a
    /// client process with more takes on no new work.
    pub outgoing_bytes_high: usize,
    /// With more bytes than this waiting for one connection, it is closed.
    pub outgoing_bytes_max: usize,
    /// With more bytes than this waiting for all connections together, nothing is read from
    /// clients.
    pub outgoing_bytes_total: usize,
    /// Whoever has sent nothing for this long sends a sign of life.
    pub alive_every: Duration,
    /// A connection without any frame for this long is closed.
    pub dead_after: Duration,
    /// A connection that has not said who it is for this long is closed.
    pub hello_within: Duration,
    /// A frame that has begun must be whole within this, and a connection over its limit must
    /// have come below it.
    pub slow_after: Duration,
    /// The first pause before dialling again; it doubles up to the next, and is random from half
    /// of it up.
    pub redial_first: Duration,
    /// The longest pause before dialling again.
    pub redial_most: Duration,
    /// For so long after something came, a loop looks for more instead of sleeping: to be woken
    /// costs more than to handle a message. Zero lets it sleep at once.
    pub watch_for: Duration,
}

impl Default for Network {
    fn default() -> Network {
        Network {
            frame_bytes_max: 112 << 20,
            connections_max: 12_000,
            connections_reserved: 64,
            incoming_bytes_total: 256 << 20,
            outgoing_bytes_high: 4 << 20,
            outgoing_bytes_max: 256 << 20,
            outgoing_bytes_total: 512 << 20,
            alive_every: Duration::from_millis(1_000),
            dead_after: Duration::from_millis(5_000),
            hello_within: Duration::from_millis(5_000),
            slow_after: Duration::from_millis(10_000),
            redial_first: Duration::from_millis(20),
            redial_most: Duration::from_millis(1_000),
            watch_for: Duration::from_micros(50),
        }
    }
}
