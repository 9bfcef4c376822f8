//! A visit: a short blocking conversation with one server, for tools. An administrator's begins
//! with the proofs of both sides, where there is a secret.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use muesli_core::wire::{Wire, WireError};
use muesli_core::{NodeId, Secret};
use thiserror::Error;

use crate::wire::challenge::Challenge;
use crate::wire::control::Control;
use crate::wire::frame::{self, FrameError, FrameKind};
use crate::wire::hello::{Hello, ProcessKind, Welcome};
use crate::wire::ids::ClusterId;
use crate::wire::proof::{self, SecretProof};
use crate::wire::refusal::ConnectionRefusal;

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A visitor, as a connection that servers let in.
pub struct Visit {
    address: String,
    stream: TcpStream,
    /// What came of frames that were not looked at.
    buffer: Vec<u8>,
    /// Who was visited, and its map.
    pub welcome: Welcome,
}

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
    /// The server is not one of the cluster, as far as it has shown.
    #[error(
        "{address}: the server did not prove that it knows the cluster's secret, or has another one"
    )]
    Unproven {
        /// Who was visited.
        address: String,
    },
    /// The server answered something else.
    #[error("the server answered with a frame {0:?}")]
    Unexpected(FrameKind),
}

/// Asks the server at `address` how it does; each step of it may take `within`.
///
/// # Errors
/// It does not answer, or refuses.
pub fn status(address: &str, within: Duration) -> Result<Visited, VisitError> {
    let mut visit = Visit::begin(address, within)?;
    loop {
        if let Control::Status(status) = visit.ask(&Control::AskStatus)? {
            return Ok(Visited { welcome: visit.welcome, status });
        }
    }
}

impl Visit {
    /// Visits the server at `address`; each step of it may take `within`.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub fn begin(address: &str, within: Duration) -> Result<Visit, VisitError> {
        Visit::begin_as(ProcessKind::Probe, address, within, None)
    }

    /// Visits the server at `address` as an administrator, who may change where members live. With
    /// a secret both sides prove that they know it; a server that has one asks for that.
    ///
    /// # Errors
    /// It does not answer, refuses, or does not prove the secret.
    pub fn begin_as_admin(
        address: &str,
        within: Duration,
        secret: Option<&Secret>,
    ) -> Result<Visit, VisitError> {
        Visit::begin_as(ProcessKind::Admin, address, within, secret)
    }

    fn begin_as(
        process_kind: ProcessKind,
        address: &str,
        within: Duration,
        secret: Option<&Secret>,
    ) -> Result<Visit, VisitError> {
        let io_error = |error| VisitError::Io { address: address.to_owned(), error };
        let mut found = address.to_socket_addrs().map_err(io_error)?;
        let none = || std::io::Error::other("the address names no machine");
        let at = found.next().ok_or_else(none).map_err(io_error)?;
        let stream = TcpStream::connect_timeout(&at, within).map_err(io_error)?;
        stream.set_read_timeout(Some(within)).map_err(io_error)?;
        stream.set_write_timeout(Some(within)).map_err(io_error)?;
        let proves = secret.is_some();
        let challenge = if proves { Challenge::draw() } else { Challenge::default() };
        let (cluster, node) = (ClusterId(0), NodeId(u32::MAX));
        let hello = Hello { cluster, process_kind, node, proves, challenge, ..Hello::default() };
        let (address, welcome) = (address.to_owned(), Welcome::default());
        let mut visit = Visit { address, stream, buffer: Vec::new(), welcome };
        visit.send_frame(FrameKind::Hello, &hello)?;
        if let Some(secret) = secret {
            let asked = Challenge::decode_all(&visit.answer(FrameKind::Challenge)?)?;
            let tag = proof::of_dialler(secret, &hello, asked);
            visit.send_frame(FrameKind::Proof, &SecretProof { tag })?;
        }
        visit.welcome = Welcome::decode_all(&visit.answer(FrameKind::Welcome)?)?;
        if secret.is_some_and(|it| !proof::is_signed(it, challenge, &visit.welcome)) {
            return Err(VisitError::Unproven { address: visit.address });
        }
        Ok(visit)
    }

    /// Asks something; the answer, or what the server says before it.
    ///
    /// # Errors
    /// It does not answer.
    pub fn ask(&mut self, control: &Control) -> Result<Control, VisitError> {
        self.send_frame(FrameKind::Control, control)?;
        Ok(Control::decode_all(&self.answer(FrameKind::Control)?)?)
    }

    fn io_error(&self, error: std::io::Error) -> VisitError {
        VisitError::Io { address: self.address.clone(), error }
    }

    fn send_frame(&mut self, kind: FrameKind, body: &impl Wire) -> Result<(), VisitError> {
        let mut bytes = Vec::new();
        let start = frame::begin(kind, &mut bytes);
        body.encode(&mut bytes);
        frame::end(start, &mut bytes);
        self.stream.write_all(&bytes).map_err(|error| self.io_error(error))
    }

    /// The body of the next frame, which must be of this kind.
    fn answer(&mut self, wanted: FrameKind) -> Result<Vec<u8>, VisitError> {
        loop {
            if let Some(found) = frame::next(&self.buffer, ANSWER_BYTES_MAX)? {
                let (kind, body, bytes) = (found.kind, found.body.to_vec(), found.bytes());
                self.buffer.drain(..bytes);
                match kind {
                    FrameKind::Refusal => {
                        return Err(VisitError::Refused(
                            ConnectionRefusal::decode_all(&body)?.text,
                        ));
                    }
                    FrameKind::Alive => continue,
                    kind if kind == wanted => return Ok(body),
                    other => return Err(VisitError::Unexpected(other)),
                }
            }
            let mut more = [0; 16 << 10];
            let count = self.stream.read(&mut more).map_err(|error| self.io_error(error))?;
            if count == 0 {
                return Err(self.io_error(std::io::ErrorKind::UnexpectedEof.into()));
            }
            self.buffer.extend_from_slice(&more[..count]);
        }
    }
}
