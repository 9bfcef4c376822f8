//! A visit: a short blocking conversation with one server, for tools.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use muesli_core::NodeId;
use muesli_core::wire::{Wire, WireError};
use thiserror::Error;

use crate::control::Control;
use crate::frame::{self, FrameError, Kind};
use crate::hello::{ClusterId, Hello, Life, Refusal, Station, Welcome};

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visited {
    /// Who it is, and its map.
    pub welcome: Welcome,
    /// How it does: names and numbers.
    pub status: Vec<(String, u64)>,
}

impl Visited {
    /// The number of this name.
    pub fn status_of(&self, name: &str) -> Option<u64> {
        self.status.iter().find(|(it, _)| it == name).map(|(_, value)| *value)
    }
}

/// Why a visit failed.
#[derive(Debug, Error)]
pub enum VisitError {
    /// The connection.
    #[error("{address}: {error}")]
    Io {
        /// Who was visited.
        address: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// What came is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// What came cannot be decoded.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server said no.
    #[error("refused: {0}")]
    Refused(String),
    /// The server answered something else.
    #[error("the server answered with a frame {0:?}")]
    Unexpected(Kind),
}

/// Asks the server at `address` how it does; each step of it may take `within`.
///
/// # Errors
/// It does not answer, or refuses.
pub fn status(address: &str, protocol: &str, within: Duration) -> Result<Visited, VisitError> {
    let told = |error| VisitError::Io { address: address.to_owned(), error };
    let mut found = address.to_socket_addrs().map_err(told)?;
    let none = || std::io::Error::other("the address names no machine");
    let at = found.next().ok_or_else(none).map_err(told)?;
    let mut stream = TcpStream::connect_timeout(&at, within).map_err(told)?;
    stream.set_read_timeout(Some(within)).map_err(told)?;
    stream.set_write_timeout(Some(within)).map_err(told)?;
    let hello = Hello {
        cluster: ClusterId(0),
        protocol: protocol.to_owned(),
        station: Station::Visitor,
        node: NodeId(u32::MAX),
        life: Life(0),
        lives: Vec::new(),
    };
    let mut asked = Vec::new();
    for (kind, body) in
        [(Kind::Hello, encoded(&hello)), (Kind::Control, encoded(&Control::AskStatus))]
    {
        let start = frame::begin(kind, &mut asked);
        asked.extend_from_slice(&body);
        frame::end(start, &mut asked);
    }
    stream.write_all(&asked).map_err(told)?;
    let mut buffer = Vec::new();
    let welcome = Welcome::decode_all(&answer(&mut stream, &mut buffer, Kind::Welcome, told)?)?;
    loop {
        let body = answer(&mut stream, &mut buffer, Kind::Control, told)?;
        if let Control::Status(status) = Control::decode_all(&body)? {
            return Ok(Visited { welcome, status });
        }
    }
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// The body of the next frame, which must be of this kind.
fn answer(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    wanted: Kind,
    told: impl Fn(std::io::Error) -> VisitError,
) -> Result<Vec<u8>, VisitError> {
    loop {
        if let Some(found) = frame::next(buffer, ANSWER_BYTES_MAX)? {
            let (kind, body, bytes) = (found.kind, found.body.to_vec(), found.bytes());
            buffer.drain(..bytes);
            match kind {
                Kind::Refusal => return Err(VisitError::Refused(Refusal::decode_all(&body)?.text)),
                Kind::Alive => continue,
                kind if kind == wanted => return Ok(body),
                other => return Err(VisitError::Unexpected(other)),
            }
        }
        let mut more = [0; 16 << 10];
        let count = stream.read(&mut more).map_err(&told)?;
        if count == 0 {
            return Err(told(std::io::ErrorKind::UnexpectedEof.into()));
        }
        buffer.extend_from_slice(&more[..count]);
    }
}
