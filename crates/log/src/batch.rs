//! Records on their way to the log: appended by a loop, written as one.

use crate::error::LogError;
use crate::format::frame::{self, MARK, MARK_BYTES, OWN_KINDS, PAYLOAD_MAX};
use crate::sequence::Sequence;

/// Records that will be written together.
///
/// Their bytes already stand as they will in the file, behind room for a mark; only the checksums
/// are missing, which the writer adds, off the loop.
#[derive(Clone, Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    /// The last record appended, here or before.
    last: Sequence,
    count: u64,
}

impl Batch {
    /// An empty batch whose first record will follow `last`.
    pub fn after(last: Sequence) -> Batch {
        let mut bytes = Vec::new();
        frame::open(&mut bytes, MARK, last.next(), |out| out.extend_from_slice(&[0; 8]));
        Batch { bytes, last, count: 0 }
    }

    /// Appends a record of `kind` (1 to 239) whose payload `payload` writes.
    ///
    /// # Errors
    /// It is longer than [`PAYLOAD_MAX`]; then nothing was appended.
    ///
    /// # Panics
    /// If the kind is 0 or the log's own.
    pub fn append(
        &mut self,
        kind: u8,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Sequence, LogError> {
        assert!((1..OWN_KINDS).contains(&kind), "records have kinds from 1 to 239, not {kind}");
        let start = self.bytes.len();
        let bytes = frame::open(&mut self.bytes, kind, self.last.next(), payload);
        if bytes > PAYLOAD_MAX {
            self.bytes.truncate(start);
            return Err(LogError::TooLong { bytes, max: PAYLOAD_MAX });
        }
        self.last = self.last.next();
        self.count += 1;
        Ok(self.last)
    }

    /// Takes over the records of `other`, which follow those here, and leaves it empty.
    ///
    /// # Panics
    /// If they do not follow.
    pub fn absorb(&mut self, other: &mut Batch) {
        assert_eq!(other.first(), self.last.next(), "batches follow each other");
        if self.is_empty() {
            std::mem::swap(&mut self.bytes, &mut other.bytes);
        } else {
            self.bytes.extend_from_slice(&other.bytes[MARK_BYTES..]);
        }
        (self.last, self.count) = (other.last, self.count + other.count);
        other.restart(self.last);
    }

    /// Empties the batch; its first record will follow `last`. The memory is kept.
    pub fn restart(&mut self, last: Sequence) {
        self.bytes.clear();
        frame::open(&mut self.bytes, MARK, last.next(), |out| out.extend_from_slice(&[0; 8]));
        (self.last, self.count) = (last, 0);
    }

    /// Writes what the mark claims and puts in the checksums. Returns the bytes and the last
    /// checksum.
    pub(crate) fn seal(&mut self, stable: Sequence, salt: u32, previous: u32) -> (&[u8], u32) {
        self.bytes[MARK_BYTES - 8..MARK_BYTES].copy_from_slice(&stable.0.to_le_bytes());
        let last = frame::seal(&mut self.bytes, salt, previous);
        (&self.bytes, last)
    }

    /// The number of the first record, or of the next one if there is none.
    pub fn first(&self) -> Sequence {
        Sequence(self.last.0 + 1 - self.count)
    }

    /// The number of the last record, or of the one before if there is none.
    pub fn last(&self) -> Sequence {
        self.last
    }

    /// Whether it holds no records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that will be written.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that records keep waiting: none where there are none, though a mark has some.
    pub fn waiting(&self) -> usize {
        if self.is_empty() { 0 } else { self.bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_absorbed_in_order() {
        let mut first = Batch::after(Sequence(4));
        let mut second = Batch::after(Sequence(4));
        second.append(1, |out| out.push(5)).unwrap();
        first.absorb(&mut second);
        second.append(1, |out| out.push(6)).unwrap();
        first.absorb(&mut second);
        assert_eq!((first.first(), first.last()), (Sequence(5), Sequence(6)));
        assert!(second.is_empty());
        let mut whole = Batch::after(Sequence(4));
        whole.append(1, |out| out.push(5)).unwrap();
        whole.append(1, |out| out.push(6)).unwrap();
        let sealed = whole.seal(Sequence(3), 8, 9);
        assert_eq!(first.seal(Sequence(3), 8, 9), sealed);
    }

    #[test]
    fn a_record_that_is_too_long_leaves_nothing_behind() {
        let mut batch = Batch::after(Sequence(0));
        let refused = batch.append(1, |out| out.resize(out.len() + PAYLOAD_MAX + 1, 0));
        assert!(matches!(refused, Err(LogError::TooLong { .. })));
        assert!(batch.is_empty() && batch.bytes() == MARK_BYTES);
    }
}
