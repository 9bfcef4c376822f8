//! What transactions did, as histories need it: compact, appended once per transaction.
//!
//! The recorder belongs to the driver, not to the node, so that it outlives a crash. It knows
//! nothing of formats: `muesli-check` reads what it collected.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use crate::bytes::SmallBytes;
use crate::ids::{SpaceId, Timestamp, TxnId};
use crate::options::Nanos;

/// How a transaction stood at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its client was told that it committed.
    Committed,
    /// Its client was told that it aborted.
    Aborted,
    /// Its client was told that nobody knows, or was gone.
    Unknown,
    /// Its client was never told anything.
    Running,
}

/// One operation, in program order. Fields: the space and key, the version read (zero: never
/// written), and the hash of the value (`None`: absent or deleted).
#[expect(missing_docs, reason = "the fields are described above, once")]
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Read `version` of a key (zero: never written) with this hash of the value.
    Read { space: SpaceId, key: SmallBytes, version: Timestamp, hash: Option<u64> },
    /// Read the transaction's own write.
    ReadOwn { space: SpaceId, key: SmallBytes, hash: Option<u64> },
    /// Wrote a value with this hash, or deleted.
    Write { space: SpaceId, key: SmallBytes, hash: Option<u64> },
    /// Scanned `[lo, hi)` and saw these rows as (key, version, hash); `own` rows are not there.
    Scan {
        space: SpaceId,
        lo: SmallBytes,
        hi: Option<SmallBytes>,
        rows: Vec<(SmallBytes, Timestamp, Option<u64>)>,
    },
}

/// A transaction that ended, or was running when the run did.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnRecord {
    /// Its id.
    pub id: TxnId,
    /// Its session.
    pub session: u64,
    /// When begin was called.
    pub begin: Nanos,
    /// When commit or abort returned.
    pub end: Option<Nanos>,
    /// How it ended.
    pub status: Status,
    /// Whether it was begun read-only.
    pub read_only: bool,
    /// The version that its writes installed, where known.
    pub at: Option<Timestamp>,
    operations: (usize, usize),
}

/// Collects the transactions of one node, in chunks that never move once they are full: growing
/// one long list would copy all of it again and again.
#[derive(Debug, Default)]
pub struct Recorder {
    chunks: Vec<Chunk>,
    applied: BTreeMap<TxnId, Timestamp>,
}

#[derive(Debug, Default)]
struct Chunk {
    transactions: Vec<TxnRecord>,
    operations: Vec<Operation>,
}

/// Transactions of a full chunk; the first one grows from nothing, for short runs.
const CHUNK_TRANSACTIONS: usize = 4096;
/// Operations that a chunk has room for from the start.
const CHUNK_OPERATIONS: usize = 4 * CHUNK_TRANSACTIONS;

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Adds a transaction with its operations, which are drained.
    #[expect(clippy::too_many_arguments, reason = "the fields of one line of the history")]
    pub fn transaction(
        &mut self,
        id: TxnId,
        session: u64,
        read_only: bool,
        begin: Nanos,
        end: Option<Nanos>,
        status: Status,
        at: Option<Timestamp>,
        operations: &mut Vec<Operation>,
    ) {
        let full = |chunk: &Chunk| chunk.transactions.len() >= CHUNK_TRANSACTIONS;
        if self.chunks.last().is_none_or(full) {
            self.chunks.push(Chunk::after(self.chunks.len()));
        }
        let chunk = self.chunks.last_mut().expect("just made sure of");
        let from = chunk.operations.len();
        chunk.operations.append(operations);
        let operations = (from, chunk.operations.len());
        let record = TxnRecord { id, session, begin, end, status, read_only, at, operations };
        chunk.transactions.push(record);
    }

    /// A participant applied `txn` at `at`: tells the version of writes whose coordinator never
    /// learned it.
    pub fn applied(&mut self, txn: TxnId, at: Timestamp) {
        self.applied.insert(txn, at);
    }

    /// The timestamp at which some participant of this node applied `txn`.
    pub fn applied_at(&self, txn: TxnId) -> Option<Timestamp> {
        self.applied.get(&txn).copied()
    }

    /// All transactions, in the order they ended, with their operations.
    pub fn transactions(&self) -> impl Iterator<Item = (&TxnRecord, &[Operation])> {
        self.chunks.iter().flat_map(|chunk| {
            let operations = &chunk.operations;
            let records = chunk.transactions.iter();
            records.map(|record| (record, &operations[record.operations.0..record.operations.1]))
        })
    }

    /// How many transactions were recorded.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.transactions.len()).sum()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

impl Chunk {
    /// An empty chunk that follows so many others.
    fn after(others: usize) -> Chunk {
        if others == 0 {
            return Chunk::default();
        }
        Chunk {
            transactions: Vec::with_capacity(CHUNK_TRANSACTIONS),
            operations: Vec::with_capacity(CHUNK_OPERATIONS),
        }
    }
}

/// The hash of a value as histories carry it: 53 bits, so that every JSON reader keeps it whole.
pub fn value_hash(value: &SmallBytes) -> u64 {
    foldhash::fast::FixedState::with_seed(0x4d75_6573).hash_one(value) >> 11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_come_back_in_order_with_their_own_operations() {
        let mut recorder = Recorder::new();
        let total = 2 * CHUNK_TRANSACTIONS + 5;
        for number in 0..total {
            let key = SmallBytes::from(number.to_string().as_str());
            let read = Operation::ReadOwn { space: SpaceId(0), key, hash: None };
            let mut operations = vec![read; number % 7];
            let id = TxnId { sequence: number as u64, ..TxnId::default() };
            let (now, status) = (Nanos(number as u64), Status::Committed);
            recorder.transaction(id, 1, false, now, None, status, None, &mut operations);
            assert!(operations.is_empty());
        }
        assert_eq!(recorder.len(), total);
        for (number, (record, operations)) in recorder.transactions().enumerate() {
            assert_eq!((record.id.sequence, operations.len()), (number as u64, number % 7));
            let own = number.to_string();
            assert!(operations.iter().all(|operation| matches!(operation,
                Operation::ReadOwn { key, .. } if key.as_slice() == own.as_bytes())));
        }
    }
}
