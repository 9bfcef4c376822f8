//! A connection between two loops of one process: bytes that pass in memory, without the system.
//!
//! It behaves as a socket does that never fails: what was written comes in order, a write takes as
//! much as there is space for, and the end of one side is read after all that it has written. So
//! frames, handshakes and limits are those of every connection. No poller tells of it: who writes
//! raises the signal of the loop that reads, and a loop looks at its pipes in each turn.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::mailbox::signal::Signal;

/// So many bytes are on their way at most, one way.
const CAPACITY: usize = 1 << 20;
/// Memory for more than so many is given back once all were read.
const KEPT: usize = 64 << 10;

/// One end of a pipe.
pub(crate) struct PipeEnd {
    incoming: Arc<PipeChannel>,
    outgoing: Arc<PipeChannel>,
}

/// One direction.
struct PipeChannel {
    state: Mutex<PipeState>,
    /// There is something new for the reader: bytes, or their end.
    readable: AtomicBool,
    /// There is space again for a writer who had found none.
    writable: AtomicBool,
    reader: Arc<Signal>,
    writer: Arc<Signal>,
}

#[derive(Default)]
struct PipeState {
    bytes: Vec<u8>,
    /// How many of these were read.
    read: usize,
    /// Nothing more is written.
    ended: bool,
    /// Nobody reads any more.
    unread: bool,
    /// The writer waits for space.
    full: bool,
}

impl PipeChannel {
    fn new(writer: &Arc<Signal>, reader: &Arc<Signal>) -> Arc<PipeChannel> {
        let (reader, writer) = (Arc::clone(reader), Arc::clone(writer));
        Arc::new(PipeChannel {
            state: Mutex::default(),
            readable: AtomicBool::new(false),
            writable: AtomicBool::new(false),
            reader,
            writer,
        })
    }

    fn state(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn tell_reader(&self) {
        self.readable.store(true, Ordering::Release);
        self.reader.raise();
    }

    fn tell_writer(&self) {
        self.writable.store(true, Ordering::Release);
        self.writer.raise();
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        if state.unread || state.ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(CAPACITY - (state.bytes.len() - state.read));
        state.full = count < bytes.len();
        if count == 0 && state.full {
            return Err(ErrorKind::WouldBlock.into());
        }
        if state.read > 0 {
            let read = std::mem::take(&mut state.read);
            state.bytes.drain(..read);
        }
        state.bytes.extend_from_slice(&bytes[..count]);
        assert!(state.bytes.len() <= CAPACITY, "a pipe holds no more than it may");
        drop(state);
        self.tell_reader();
        Ok(count)
    }

    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        let count = into.len().min(state.bytes.len() - state.read);
        if count == 0 {
            return if state.ended { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        }
        into[..count].copy_from_slice(&state.bytes[state.read..state.read + count]);
        state.read += count;
        if state.read == state.bytes.len() {
            state.read = 0;
            state.bytes.clear();
            state.bytes.shrink_to(KEPT);
        }
        let has_space = std::mem::take(&mut state.full);
        let ends = state.ended && state.bytes.is_empty();
        drop(state);
        if has_space {
            self.tell_writer();
        }
        if ends {
            self.tell_reader(); // The end is still to be read.
        }
        Ok(count)
    }
}

impl PipeEnd {
    /// Both ends of a pipe, the first for the loop with the first signal.
    pub fn pair(first: &Arc<Signal>, second: &Arc<Signal>) -> (PipeEnd, PipeEnd) {
        let (there, back) = (PipeChannel::new(first, second), PipeChannel::new(second, first));
        let ours = PipeEnd { incoming: Arc::clone(&back), outgoing: Arc::clone(&there) };
        (ours, PipeEnd { incoming: there, outgoing: back })
    }

    /// Whether something new has come since this was asked last: bytes, or their end.
    pub fn take_readable(&self) -> bool {
        self.incoming.readable.load(Ordering::Relaxed)
            && self.incoming.readable.swap(false, Ordering::Acquire)
    }

    /// Whether there is space again, after there was none.
    pub fn take_writable(&self) -> bool {
        self.outgoing.writable.load(Ordering::Relaxed)
            && self.outgoing.writable.swap(false, Ordering::Acquire)
    }

    /// Nothing more is written.
    pub fn end(&self) {
        self.outgoing.state().ended = true;
        self.outgoing.tell_reader();
    }
}

impl Read for PipeEnd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.incoming.read(into)
    }
}

impl Write for PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut state = self.incoming.state();
        (state.unread, state.bytes, state.read) = (true, Vec::new(), 0);
        drop(state);
        self.incoming.tell_writer();
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (PipeEnd, PipeEnd, [mio::Poll; 2]) {
        let signal = || {
            let poll = mio::Poll::new().unwrap();
            let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
            (Arc::new(Signal::new(waker)), poll)
        };
        let ((first, first_poll), (second, second_poll)) = (signal(), signal());
        let (one, other) = PipeEnd::pair(&first, &second);
        (one, other, [first_poll, second_poll])
    }

    fn read(end: &mut PipeEnd, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; most];
        end.read(&mut bytes).map(|count| bytes[..count].to_vec())
    }

    #[test]
    fn what_was_written_is_read_in_order_and_then_its_end() {
        let (mut one, mut other, _polls) = pair();
        assert_eq!(read(&mut other, 9).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(!other.take_readable());
        assert_eq!(one.write(b"abc").unwrap(), 3);
        assert_eq!(one.write(b"de").unwrap(), 2);
        assert!(other.take_readable() && !other.take_readable());
        assert_eq!(read(&mut other, 2).unwrap(), b"ab");
        assert_eq!(one.write(b"f").unwrap(), 1);
        drop(one);
        assert!(other.take_readable() && !other.take_readable());
        assert_eq!(read(&mut other, 3).unwrap(), b"cde");
        assert!(!other.take_readable());
        assert_eq!(read(&mut other, 9).unwrap(), b"f");
        assert!(other.take_readable(), "its end came with its last bytes, and was not read");
        assert_eq!(read(&mut other, 9).unwrap(), b"");
        assert_eq!(other.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_full_pipe_takes_no_more_until_it_is_read() {
        let (mut one, mut other, _polls) = pair();
        let long = vec![7; CAPACITY + 1];
        assert_eq!(one.write(&long).unwrap(), CAPACITY);
        assert_eq!(one.write(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(!one.take_writable());
        assert_eq!(read(&mut other, 10).unwrap().len(), 10);
        assert!(one.take_writable() && !one.take_writable());
        assert_eq!(one.write(&long).unwrap(), 10);
        one.end();
        assert_eq!(read(&mut other, 2 * CAPACITY).unwrap().len(), CAPACITY);
        assert!(other.incoming.state().bytes.capacity() <= 2 * KEPT, "memory is given back");
        assert_eq!(read(&mut other, 1).unwrap(), b"");
    }
}
