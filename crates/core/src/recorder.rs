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

/// Collects the transactions of one node.
#[derive(Debug, Default)]
pub struct Recorder {
    transactions: Vec<TxnRecord>,
    operations: Vec<Operation>,
    applied: BTreeMap<TxnId, Timestamp>,
}

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
        let from = self.operations.len();
        self.operations.append(operations);
        let operations = (from, self.operations.len());
        let record = TxnRecord { id, session, begin, end, status, read_only, at, operations };
        self.transactions.push(record);
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
        self.transactions
            .iter()
            .map(|record| (record, &self.operations[record.operations.0..record.operations.1]))
    }

    /// How many transactions were recorded.
    pub fn len(&self) -> usize {
        self.transactions.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }
}

/// The hash of a value as histories carry it: 53 bits, so that every JSON reader keeps it whole.
pub fn value_hash(value: &SmallBytes) -> u64 {
    foldhash::fast::FixedState::with_seed(0x4d75_6573).hash_one(value) >> 11
}
