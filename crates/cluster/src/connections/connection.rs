//! One connection: its stream, what has arrived of its next frame, and how it stands.

use std::io::{self, Read, Write};

use muesli_core::{Nanos, NodeId};

use crate::connections::stream::Stream;
use crate::wire::challenge::Challenge;
use crate::wire::frame;
use crate::wire::hello::{HELLO_BYTES_MAX, Hello, ProcessKind};
use crate::wire::ids::DataId;
use crate::wire::progress::Reached;

/// The longest body of a frame of a probe, who has but questions.
pub(crate) const PROBE_BYTES_MAX: usize = 16 << 10;
/// With more bytes than this waiting to be sent to a probe, nothing more is read from it.
const PROBE_OUTGOING_BYTES_HIGH: usize = 64 << 10;
/// The longest body of a frame of an administrator, who sends maps.
const ADMIN_BYTES_MAX: usize = 16 << 20;

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Dialled, and not connected yet.
    Dialling,
    /// Connected; the hello went out.
    AwaitWelcome,
    /// Accepted; nobody has said who it is.
    AwaitHello,
    /// It said who it is, and was asked to prove the cluster's secret.
    AwaitProof,
    /// Messages pass. Of a server, what it said of itself in the handshake.
    Up { node: NodeId, process_kind: ProcessKind, data_id: DataId, own: Reached },
    /// A refusal was sent: what still comes is thrown away, until the other end closes.
    Closing,
}

/// A connection.
pub(crate) struct Connection {
    pub stream: Stream,
    pub state: ConnectionState,
    /// For one that was dialled, the number of its target.
    pub target: Option<usize>,
    /// What has arrived of a frame that is not whole.
    input: Vec<u8>,
    /// There may be something to read.
    pub readable: bool,
    /// The poller has told that nothing comes after what is there.
    pub read_closed: bool,
    /// The socket took less than it was given; it will say when it can take more.
    pub blocked: bool,
    pub opened: Nanos,
    /// When the last whole frame came.
    pub seen_at: Nanos,
    pub spoke: Nanos,
    /// Since when a frame is not whole.
    pub partial_since: Option<Nanos>,
    /// Since when too much waits to be sent, and nothing of it leaves.
    pub crowded_since: Option<Nanos>,
    /// The bytes of room that were given for a long frame of which a part has come.
    pub capacity: usize,
    /// The bytes of room that it waits for; until then nothing is read.
    pub awaits_capacity: Option<usize>,
    /// While others wait for room and it has some: since when its pace is measured, and how much of
    /// its frame had come then.
    pub pace: Option<(Nanos, usize)>,
    /// What was said and asked in a handshake that is under way.
    pub claim: Option<Box<HandshakeClaim>>,
    /// Whole frames have come that were not looked at, as what they cause could not leave.
    pub stalled: bool,
    /// Bytes of messages taken, and how many of them the other end was told of, and when.
    pub taken: u64,
    pub reported: u64,
    pub reported_at: Nanos,
    /// Up to which record of the log here the other end was told that it is stable.
    pub reported_record: u64,
    /// How long the frame is that is arriving; zero where that is not known.
    awaited: usize,
    /// How much had come, or had been written, when the time it may take was begun to be counted.
    progress: (usize, u64),
    written: u64,
    /// How much will have been written when the welcome has left.
    welcomed: u64,
}

/// A handshake under way.
pub(crate) struct HandshakeClaim {
    /// What whoever dialled said.
    pub hello: Hello,
    /// What it was asked to prove by whoever was dialled.
    pub challenge: Challenge,
}

/// A frame that arrives, or bytes that leave, have not stopped while there is so much of them in
/// the time that a slow connection has.
pub(crate) const PROGRESS_BYTES: usize = 1 << 20;

/// What came of reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Nothing,
    Bytes(usize),
    Closed,
}

impl Connection {
    pub fn new(
        stream: Stream,
        state: ConnectionState,
        target: Option<usize>,
        now: Nanos,
    ) -> Connection {
        Connection {
            stream,
            state,
            target,
            input: Vec::new(),
            readable: false,
            read_closed: false,
            blocked: false,
            opened: now,
            seen_at: now,
            spoke: now,
            partial_since: None,
            crowded_since: None,
            capacity: 0,
            awaits_capacity: None,
            pace: None,
            claim: None,
            stalled: false,
            taken: 0,
            reported: 0,
            reported_record: 0,
            reported_at: now,
            awaited: 0,
            progress: (0, 0),
            written: 0,
            welcomed: 0,
        }
    }

    /// Who is at the other end, where that is known.
    pub fn node(&self) -> Option<NodeId> {
        match self.state {
            ConnectionState::Up { node, .. } => Some(node),
            _ => None,
        }
    }

    /// Which server is at the other end, if one is.
    pub fn server(&self) -> Option<NodeId> {
        match self.state {
            ConnectionState::Up { node, process_kind: ProcessKind::Server, .. } => Some(node),
            _ => None,
        }
    }

    /// Whether nothing is read from it while too much waits to be sent to all: it is a client or a
    /// probe. Servers and administrators are heard, and so is who has not said yet what it is.
    pub fn waits_with_all(&self) -> bool {
        let others = [ProcessKind::Server, ProcessKind::Admin];
        match self.state {
            ConnectionState::Up { process_kind, .. } => !others.contains(&process_kind),
            ConnectionState::Closing => true,
            ConnectionState::AwaitHello
            | ConnectionState::AwaitProof
            | ConnectionState::Dialling
            | ConnectionState::AwaitWelcome => false,
        }
    }

    /// With more bytes than this waiting to be sent to it, too much does, where that is `high` for
    /// clients.
    pub fn outgoing_bytes_high(&self, high: usize) -> usize {
        match self.state {
            ConnectionState::Up { process_kind: ProcessKind::Probe, .. } => {
                PROBE_OUTGOING_BYTES_HIGH.min(high)
            }
            _ => high,
        }
    }

    /// Whether it is no server, as far as is known.
    pub fn is_guest(&self) -> bool {
        match self.state {
            ConnectionState::Up { process_kind, .. } => process_kind != ProcessKind::Server,
            ConnectionState::AwaitHello
            | ConnectionState::AwaitProof
            | ConnectionState::Closing => true,
            ConnectionState::Dialling | ConnectionState::AwaitWelcome => false,
        }
    }

    /// Whether it is an administrator.
    pub fn is_admin(&self) -> bool {
        matches!(self.state, ConnectionState::Up { process_kind: ProcessKind::Admin, .. })
    }

    /// The longest body of a frame that is taken now.
    pub fn frame_bytes_max(&self, most: usize) -> usize {
        match self.state {
            ConnectionState::AwaitHello | ConnectionState::AwaitProof => HELLO_BYTES_MAX.min(most),
            ConnectionState::Up { process_kind: ProcessKind::Probe, .. } => {
                PROBE_BYTES_MAX.min(most)
            }
            ConnectionState::Up { process_kind: ProcessKind::Admin, .. } => {
                ADMIN_BYTES_MAX.min(most)
            }
            _ => most,
        }
    }

    /// Reads once into `scratch`.
    pub fn read(&mut self, scratch: &mut [u8]) -> Arrived {
        match self.stream.read(scratch) {
            Ok(0) => Arrived::Closed,
            Ok(count) => {
                // A short read has emptied the socket; the poller tells of what comes next, but for
                // an end that it has told of with these bytes.
                self.readable = count == scratch.len() || self.read_closed;
                Arrived::Bytes(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Arrived::Nothing
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Arrived::Nothing,
            Err(_) => Arrived::Closed,
        }
    }

    /// Writes once; how many bytes were taken. `None`: the connection is broken.
    pub fn write(&mut self, bytes: &[u8], now: Nanos) -> Option<usize> {
        match self.stream.write(bytes) {
            Ok(count) => {
                self.blocked = count < bytes.len();
                self.spoke = now;
                self.written += count as u64;
                Some(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked = true;
                Some(0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Some(0),
            Err(_) => None,
        }
    }

    /// Its welcome is the last of so many bytes that wait to be sent to it.
    pub fn welcome(&mut self, waiting: usize) {
        self.welcomed = self.written + waiting as u64;
    }

    /// How many bytes of its welcome it has not taken in.
    pub fn welcome_left(&self) -> usize {
        self.welcomed.saturating_sub(self.written) as usize
    }

    /// Takes what arrived to what had before, if that is a frame which is not whole with it either:
    /// then nothing is to be looked at, and a long frame is not copied again and again.
    pub fn is_held(&mut self, arrived: &[u8], now: Nanos) -> bool {
        if self.input.len() + arrived.len() >= self.awaited {
            return false;
        }
        self.input.extend_from_slice(arrived);
        self.seen_at = now;
        if self.input.len() >= self.progress.0 + PROGRESS_BYTES {
            (self.progress.0, self.partial_since) = (self.input.len(), Some(now));
        }
        true
    }

    /// Whether so much waits that is not leaving; `crowded`: too much waits.
    pub fn note_crowd(&mut self, crowded: bool, now: Nanos) {
        let moves = self.written >= self.progress.1 + PROGRESS_BYTES as u64;
        if !crowded {
            self.crowded_since = None;
        } else if moves || self.crowded_since.is_none() {
            (self.crowded_since, self.progress.1) = (Some(now), self.written);
        }
    }

    /// What has arrived before and is no whole frame, with `arrived` after it. Where nothing had,
    /// that is `arrived` itself, uncopied.
    pub fn join<'a>(&mut self, arrived: &'a [u8], joined: &'a mut Vec<u8>) -> &'a [u8] {
        if self.input.is_empty() {
            return arrived;
        }
        self.input.extend_from_slice(arrived);
        *joined = std::mem::take(&mut self.input);
        joined
    }

    /// Keeps what is not a whole frame yet: `rest` is the end of what [`join`](Self::join) gave.
    pub fn keep(&mut self, rest: &[u8], now: Nanos) {
        self.partial_since = (!rest.is_empty()).then(|| self.partial_since.unwrap_or(now));
        self.input = rest.to_vec();
        self.awaited = frame::announced(rest).unwrap_or_default();
        self.progress.0 = rest.len();
    }

    /// Drops what has come of a frame that is not whole.
    pub fn drop_frame(&mut self) {
        (self.input, self.awaited) = (Vec::new(), 0);
    }

    /// How many bytes are held of a frame that is not whole.
    pub fn held(&self) -> usize {
        self.input.len()
    }

    /// How long the frame is of which a part has come, as far as its header says.
    pub fn announced(&self) -> usize {
        frame::announced(&self.input).unwrap_or(self.input.len())
    }

    /// Whether it can be closed to make room for somebody who has something to say: it has not said
    /// who it is, or only asks questions. Lower ones go first.
    pub fn expendable(&self) -> Option<u8> {
        match self.state {
            ConnectionState::Closing => Some(0),
            ConnectionState::AwaitHello | ConnectionState::AwaitProof => Some(1),
            ConnectionState::Up { process_kind: ProcessKind::Probe, .. } => Some(2),
            ConnectionState::Dialling
            | ConnectionState::AwaitWelcome
            | ConnectionState::Up { .. } => None,
        }
    }

    /// A whole frame has come.
    pub fn observe(&mut self, now: Nanos) {
        self.seen_at = now;
        self.partial_since = None;
    }
}
