//! A connection to another member.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as StdStream;

use mio::net::TcpStream;
use muesli_broadcast::ChosenMessage;
use muesli_cluster::wire::frame::{self, FrameKind};
use muesli_core::wire::{Reader, Wire};

/// A frame is at most so long.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// A connection, with what waits on both of its ways.
#[derive(Debug)]
pub(super) struct MemberLink {
    pub stream: TcpStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    written: usize,
    /// Where the frame begins that messages are added to.
    open: Option<usize>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenBytes {
    pub calls: u64,
    pub bytes: u64,
}

impl MemberLink {
    pub fn new(stream: StdStream) -> std::io::Result<MemberLink> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let stream = TcpStream::from_std(stream);
        Ok(MemberLink {
            stream,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            written: 0,
            open: None,
        })
    }

    /// Adds a message to the frame that leaves next.
    pub fn send(&mut self, message: &ChosenMessage) {
        if self.open.is_none() {
            self.open = Some(frame::begin(FrameKind::Messages, &mut self.outgoing));
        }
        message.encode(&mut self.outgoing);
    }

    /// Writes what waits, as far as the system takes it.
    pub fn write(&mut self) -> std::io::Result<WrittenBytes> {
        if let Some(start) = self.open.take() {
            frame::end(start, &mut self.outgoing);
        }
        let mut written = WrittenBytes::default();
        while self.written < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    written.calls += 1;
                    written.bytes += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.written = 0;
        Ok(written)
    }

    /// Reads all that has come.
    pub fn read(&mut self, scratch: &mut [u8]) -> std::io::Result<Vec<ChosenMessage>> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => break, // The other one has ended.
                Ok(count) => self.incoming.extend_from_slice(&scratch[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let (mut messages, mut at) = (Vec::new(), 0);
        let wrong = |error: &dyn std::error::Error| std::io::Error::other(error.to_string());
        while let Some(whole) =
            frame::next(&self.incoming[at..], FRAME_BYTES_MAX).map_err(|error| wrong(&error))?
        {
            let mut body = Reader::new(whole.body);
            while body.left() > 0 {
                messages.push(ChosenMessage::decode(&mut body).map_err(|error| wrong(&error))?);
            }
            at += whole.bytes();
        }
        self.incoming.drain(..at);
        Ok(messages)
    }
}
