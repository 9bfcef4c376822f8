//! The bytes of a file, with their offset and their checksum.

use std::io::{ErrorKind, Read};

use crc::{CRC_64_REDIS, Crc, Digest, Table};

use crate::error::{RdbError, RdbErrorKind};

/// So many bytes are read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// Redis's CRC-64, with the polynomial of Jones.
static CRC64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The bytes of a file.
pub(crate) struct RdbInput<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where in the buffer the next byte is; `at <= end <= buffer.len()`.
    at: usize,
    end: usize,
    /// The bytes of the buffer before this one are in the digest; `digested <= at`.
    digested: usize,
    digest: Digest<'static, u64, Table<16>>,
    /// How many bytes of the file are before the buffer.
    before: u64,
}

impl<R: Read> RdbInput<R> {
    pub fn new(source: R) -> RdbInput<R> {
        RdbInput {
            source,
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            end: 0,
            digested: 0,
            digest: CRC64.digest(),
            before: 0,
        }
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The error that is at the next byte.
    pub fn error(&self, kind: RdbErrorKind) -> RdbError {
        kind.at(self.offset())
    }

    /// The checksum of all bytes that were read.
    pub fn checksum(&mut self) -> u64 {
        self.digest.update(&self.buffer[self.digested..self.at]);
        self.digested = self.at;
        self.digest.clone().finalize()
    }

    /// Whether there are no further bytes.
    pub fn is_at_end(&mut self) -> Result<bool, RdbError> {
        if self.at == self.end {
            self.fill()?;
        }
        Ok(self.at == self.end)
    }

    /// Reads into the buffer, all of which was used.
    fn fill(&mut self) -> Result<(), RdbError> {
        assert_eq!(self.at, self.end, "nothing of the buffer is lost");
        self.checksum();
        self.before += self.end as u64;
        (self.at, self.end, self.digested) = (0, 0, 0);
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(count) => {
                    self.end = count;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(RdbErrorKind::Read(error))),
            }
        }
    }

    /// The next bytes, at least one and at most so many.
    fn some(&mut self, most: usize) -> Result<&[u8], RdbError> {
        if self.is_at_end()? {
            return Err(self.error(RdbErrorKind::Ended));
        }
        let from = self.at;
        self.at += most.min(self.end - from);
        Ok(&self.buffer[from..self.at])
    }

    pub fn byte(&mut self) -> Result<u8, RdbError> {
        Ok(self.some(1)?[0])
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let mut all = [0; N];
        let mut count = 0;
        while count < N {
            let some = self.some(N - count)?;
            all[count..count + some.len()].copy_from_slice(some);
            count += some.len();
        }
        Ok(all)
    }

    /// The next so many bytes. Memory is taken as they come: a length may be wrong.
    pub fn bytes(&mut self, count: usize) -> Result<Vec<u8>, RdbError> {
        let mut all = Vec::with_capacity(count.min(BUFFER_BYTES));
        while all.len() < count {
            let some = self.some(count - all.len())?;
            all.extend_from_slice(some);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_redis() {
        // The value that Redis's own test of its CRC-64 expects.
        let mut input = RdbInput::new(&b"123456789"[..]);
        assert_eq!(input.bytes(9).unwrap(), b"123456789");
        assert_eq!(input.checksum(), 0xe9c6_d914_c4b8_d9ca);
        assert!(input.is_at_end().unwrap());
        assert_eq!(input.checksum(), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn bytes_come_over_the_ends_of_buffers() {
        let all: Vec<u8> = (0..3 * BUFFER_BYTES + 5).map(|it| (it % 251) as u8).collect();
        let mut input = RdbInput::new(&all[..]);
        assert_eq!(input.array::<3>().unwrap(), all[..3]);
        assert_eq!(input.bytes(2 * BUFFER_BYTES).unwrap(), all[3..2 * BUFFER_BYTES + 3]);
        assert_eq!(input.offset(), 2 * BUFFER_BYTES as u64 + 3);
        let expected = CRC64.checksum(&all[..2 * BUFFER_BYTES + 3]);
        assert_eq!(input.checksum(), expected);
        let rest = input.bytes(usize::MAX).unwrap_err();
        assert_eq!(rest.offset, all.len() as u64);
        assert!(matches!(rest.kind, RdbErrorKind::Ended));
    }
}
