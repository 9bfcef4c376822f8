//! What a transaction did, encoded as it is noted.
//!
//! A run notes millions of operations that nobody looks at before it is over, and memory that is
//! touched for the first time costs more than all else that a note does. So an operation is its
//! bytes: kind, space, the version where it has one, the value's hash, the key. They are read back
//! once, by whoever makes the history, and by nobody else: what is here was encoded here.

use super::RecordedOperation;
use super::hash::value_hash;
use crate::bytes::SmallBytes;
use crate::ids::{SpaceId, Timestamp};

const READ: u8 = 0;
const READ_OWN: u8 = 1;
const WRITE: u8 = 2;
const SCAN: u8 = 3;
/// Marks a kind whose value is not absent.
const PRESENT: u8 = 0x80;

/// The operations of one transaction, in program order, encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedOperations {
    pub(super) bytes: Vec<u8>,
}

impl RecordedOperations {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets all and keeps their memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Where the next operation will begin.
    #[inline]
    pub fn mark(&self) -> usize {
        self.bytes.len()
    }

    /// A copy of those between two marks.
    pub fn between(&self, marks: std::ops::Range<usize>) -> RecordedOperations {
        RecordedOperations { bytes: self.bytes[marks].to_vec() }
    }

    /// The writes among them.
    pub(super) fn writes(&self) -> RecordedOperations {
        let mut writes = RecordedOperations::default();
        self.append_writes(&mut writes.bytes);
        writes
    }

    /// Appends the writes among them to others.
    pub(super) fn append_writes(&self, out: &mut Vec<u8>) {
        let mut rest = Decoder(&self.bytes);
        while !rest.0.is_empty() {
            let before = rest.0;
            if rest.pass_by() == WRITE {
                out.extend_from_slice(&before[..before.len() - rest.0.len()]);
            }
        }
    }

    /// Of the operations from a mark on keeps those that read what others wrote; scans only if
    /// `scans` says so.
    pub fn keep_reads(&mut self, mark: usize, scans: bool) {
        let since = self.bytes.split_off(mark);
        let mut rest = Decoder(&since);
        while !rest.0.is_empty() {
            let before = rest.0;
            let kind = rest.pass_by();
            if kind == READ || kind == SCAN && scans {
                self.bytes.extend_from_slice(&before[..before.len() - rest.0.len()]);
            }
        }
    }

    /// Forgets the operations from a mark on.
    pub fn rewind(&mut self, mark: usize) {
        self.bytes.truncate(mark);
    }

    /// A read of `version` of a key (zero: never written).
    #[inline]
    pub fn read(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        version: Timestamp,
        value: Option<&SmallBytes>,
    ) {
        self.keyed(READ, space, key, value);
        self.bytes.extend_from_slice(&version.0.to_le_bytes());
    }

    /// A read of the transaction's own write.
    pub fn read_own(&mut self, space: SpaceId, key: &SmallBytes, value: Option<&SmallBytes>) {
        self.keyed(READ_OWN, space, key, value);
    }

    /// A write, or a delete.
    #[inline]
    pub fn write(&mut self, space: SpaceId, key: &SmallBytes, value: Option<&SmallBytes>) {
        self.keyed(WRITE, space, key, value);
    }

    /// A scan of `[lo, hi)` that saw these rows as (key, version, hash of the value).
    pub fn scan(
        &mut self,
        space: SpaceId,
        lo: &SmallBytes,
        hi: Option<&SmallBytes>,
        rows: impl ExactSizeIterator<Item = (SmallBytes, Timestamp, Option<u64>)>,
    ) {
        self.bytes.push(SCAN | if hi.is_some() { PRESENT } else { 0 });
        self.bytes.extend_from_slice(&space.0.to_le_bytes());
        self.text(lo);
        if let Some(hi) = hi {
            self.text(hi);
        }
        self.bytes.extend_from_slice(&(rows.len() as u64).to_le_bytes());
        for (key, version, hash) in rows {
            self.text(&key);
            self.bytes.extend_from_slice(&version.0.to_le_bytes());
            self.bytes.extend_from_slice(&hash.map_or(u64::MAX, |hash| hash).to_le_bytes());
        }
    }

    /// Kind, space, hash and key.
    #[inline]
    fn keyed(&mut self, kind: u8, space: SpaceId, key: &SmallBytes, value: Option<&SmallBytes>) {
        let (present, hash) = match value {
            Some(value) => (PRESENT, value_hash(value)),
            None => (0, 0),
        };
        let mut head = [0; 15];
        head[0] = kind | present;
        head[1..3].copy_from_slice(&space.0.to_le_bytes());
        head[3..11].copy_from_slice(&hash.to_le_bytes());
        head[11..].copy_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.reserve(head.len() + key.len() + 8);
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(key.as_slice());
    }

    fn text(&mut self, text: &SmallBytes) {
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_slice());
    }
}

/// Reads back what was encoded.
#[derive(Clone, Debug)]
pub(super) struct Decoder<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> {
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    pub fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().expect("four bytes"))
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("eight bytes"))
    }

    fn space(&mut self) -> SpaceId {
        SpaceId(u16::from_le_bytes(self.bytes(2).try_into().expect("two bytes")))
    }

    fn text(&mut self) -> SmallBytes {
        let length = self.u32() as usize;
        SmallBytes::new(self.bytes(length))
    }

    /// Passes an operation by; its kind.
    fn pass_by(&mut self) -> u8 {
        let head = self.u8();
        self.space();
        let (kind, is_present) = (head & !PRESENT, head & PRESENT != 0);
        if kind == SCAN {
            for _ in 0..1 + usize::from(is_present) {
                let length = self.u32() as usize;
                self.bytes(length);
            }
            for _ in 0..self.u64() {
                let length = self.u32() as usize;
                self.bytes(length + 16);
            }
            return kind;
        }
        self.u64();
        let length = self.u32() as usize;
        self.bytes(length + if kind == READ { 8 } else { 0 });
        kind
    }

    fn rows(&mut self) -> Vec<(SmallBytes, Timestamp, Option<u64>)> {
        let count = self.u64();
        let row = |_| {
            let (key, version, hash) = (self.text(), Timestamp(self.u64()), self.u64());
            (key, version, (hash != u64::MAX).then_some(hash))
        };
        (0..count).map(row).collect()
    }
}

impl Iterator for Decoder<'_> {
    type Item = RecordedOperation;

    fn next(&mut self) -> Option<RecordedOperation> {
        if self.0.is_empty() {
            return None;
        }
        let kind = self.u8();
        let (space, present) = (self.space(), kind & PRESENT != 0);
        if kind & !PRESENT == SCAN {
            let (lo, hi) = (self.text(), present.then(|| self.text()));
            return Some(RecordedOperation::Scan { space, lo, hi, rows: self.rows() });
        }
        let hash = Some(self.u64()).filter(|_| present);
        let key = self.text();
        Some(match kind & !PRESENT {
            READ => RecordedOperation::Read { space, key, version: Timestamp(self.u64()), hash },
            READ_OWN => RecordedOperation::ReadOwn { space, key, hash },
            WRITE => RecordedOperation::Write { space, key, hash },
            other => unreachable!("kind {other} was never encoded"),
        })
    }
}

impl From<&[RecordedOperation]> for RecordedOperations {
    /// The same operations, encoded; for those who have them at hand, such as tests.
    fn from(list: &[RecordedOperation]) -> RecordedOperations {
        let mut operations = RecordedOperations::default();
        for operation in list {
            operations.push(operation);
        }
        operations
    }
}

impl RecordedOperations {
    fn push(&mut self, operation: &RecordedOperation) {
        let hashed = |kind, out: &mut RecordedOperations, space, key, hash: &Option<u64>| {
            let start = out.bytes.len();
            out.keyed(kind, space, key, None);
            if let Some(hash) = hash {
                out.bytes[start] |= PRESENT;
                out.bytes[start + 3..start + 11].copy_from_slice(&hash.to_le_bytes());
            }
        };
        match operation {
            RecordedOperation::Read { space, key, version, hash } => {
                hashed(READ, self, *space, key, hash);
                self.bytes.extend_from_slice(&version.0.to_le_bytes());
            }
            RecordedOperation::ReadOwn { space, key, hash } => {
                hashed(READ_OWN, self, *space, key, hash)
            }
            RecordedOperation::Write { space, key, hash } => hashed(WRITE, self, *space, key, hash),
            RecordedOperation::Scan { space, lo, hi, rows } => {
                self.scan(*space, lo, hi.as_ref(), rows.iter().cloned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = SmallBytes> {
        prop::collection::vec(any::<u8>(), 0..40).prop_map(SmallBytes::from)
    }

    fn hash() -> impl Strategy<Value = Option<u64>> {
        prop::option::of(0..1u64 << 53)
    }

    fn operation() -> impl Strategy<Value = RecordedOperation> {
        let space = || any::<u16>().prop_map(SpaceId);
        let at = || any::<u64>().prop_map(Timestamp);
        let rows = prop::collection::vec((text(), at(), hash()), 0..4);
        prop_oneof![
            (space(), text(), at(), hash()).prop_map(|(space, key, version, hash)| {
                RecordedOperation::Read { space, key, version, hash }
            }),
            (space(), text(), hash()).prop_map(|(space, key, hash)| RecordedOperation::ReadOwn {
                space,
                key,
                hash
            }),
            (space(), text(), hash()).prop_map(|(space, key, hash)| RecordedOperation::Write {
                space,
                key,
                hash
            }),
            (space(), text(), prop::option::of(text()), rows)
                .prop_map(|(space, lo, hi, rows)| RecordedOperation::Scan { space, lo, hi, rows }),
        ]
    }

    proptest! {
        #[test]
        fn writes_are_picked_out(list in prop::collection::vec(operation(), 0..8)) {
            let recorded = RecordedOperations::from(&list[..]);
            let writes: Vec<_> = Decoder(&recorded.writes().bytes).collect();
            let is_write = |it: &&RecordedOperation| matches!(it, RecordedOperation::Write { .. });
            prop_assert_eq!(writes, list.iter().filter(is_write).cloned().collect::<Vec<_>>());
        }

        #[test]
        fn operations_come_back(list in prop::collection::vec(operation(), 0..8)) {
            let operations = RecordedOperations::from(&list[..]);
            let back: Vec<_> = Decoder(&operations.bytes).collect();
            prop_assert_eq!(back, list);
        }

        #[test]
        fn noting_is_encoding(key in text(), value in prop::option::of(text()), at: u64) {
            let (space, version) = (SpaceId(3), Timestamp(at));
            let hash = value.as_ref().map(value_hash);
            let mut noted = RecordedOperations::default();
            noted.read(space, &key, version, value.as_ref());
            noted.read_own(space, &key, value.as_ref());
            noted.write(space, &key, value.as_ref());
            let list = [
                RecordedOperation::Read { space, key: key.clone(), version, hash },
                RecordedOperation::ReadOwn { space, key: key.clone(), hash },
                RecordedOperation::Write { space, key, hash },
            ];
            prop_assert_eq!(noted, RecordedOperations::from(&list[..]));
        }
    }
}
