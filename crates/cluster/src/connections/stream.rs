//! What a connection reads from and writes to: a socket, or a pipe to another loop of the process.

use std::io::{self, Read, Write};

use mio::net::TcpStream;

use crate::mailbox::pipe::PipeEnd;

/// A stream of bytes, both ways.
pub(crate) enum Stream {
    /// To another process.
    Tcp(TcpStream),
    /// To another loop of this one.
    Pipe(PipeEnd),
}

impl Stream {
    /// Nothing more is written; the other end reads so after all that was.
    pub fn end(&self) {
        match self {
            // Where the other end is gone already, there is nobody to be told.
            Stream::Tcp(socket) => drop(socket.shutdown(std::net::Shutdown::Write)),
            Stream::Pipe(pipe) => pipe.end(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(socket) => socket.read(into),
            Stream::Pipe(pipe) => pipe.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(socket) => socket.write(bytes),
            Stream::Pipe(pipe) => pipe.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
