//! What transactions did, as histories need it: compact, appended once per transaction.
//!
//! The recorder belongs to the driver, not to the node, so that it outlives a crash. It knows
//! nothing of formats: `muesli-check` reads what it collected. It keeps all transactions, or a
//! share of them and the [footprints](sampling) of the others.

use std::collections::{BTreeMap, BTreeSet};

use operations::Decoder;

use crate::bytes::SmallBytes;
use crate::ids::{NodeId, SpaceId, Timestamp, TxnId};
use crate::options::TxnLevel;
use crate::time::Nanos;

pub use hash::value_hash;
pub use operations::RecordedOperations;
pub use sampling::Sampling;

pub mod accesses;
mod hash;
mod operations;
pub mod partition_sizes;
pub mod sampling;

/// How a transaction stood at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
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

/// In the order of their numbers.
const STATUSES: [Status; 4] =
    [Status::Committed, Status::Aborted, Status::Unknown, Status::Running];

/// One operation, in program order. Fields: the space and key, the version read (zero: never
/// written), and the hash of the value (`None`: absent or deleted).
#[expect(missing_docs, reason = "the fields are described above, once")]
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedOperation {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// How long before its begin everything was committed that it must see, where it may be stale.
    pub staleness: Option<Nanos>,
}

/// Collects the transactions of one node, in chunks that never move once they are full: growing
/// one long list would copy all of it again and again.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    sampling: Sampling,
    chunks: Vec<Vec<u8>>,
    count: usize,
    applied: BTreeMap<TxnId, Timestamp>,
    /// Of those that are part of a root.
    levels: BTreeMap<TxnId, TxnLevel>,
    executed: BTreeSet<Executed>,
    /// What delayed procedures did, encoded; those that ran alike are one.
    called: BTreeSet<(TxnId, Vec<u8>)>,
    /// By transaction and part, those that clients were told of apart.
    ran: BTreeMap<(TxnId, bool, u16), (Timestamp, RecordedOperations)>,
}

/// What a part of a one-round transaction did.
#[derive(Clone, Debug, PartialEq)]
pub struct PartRan {
    /// Its number.
    pub part: u16,
    /// Where the transaction lies, as far as who says so knows.
    pub at: Timestamp,
    /// Whether its client was told of this very run; else a participant says that it made it.
    pub shared: bool,
    /// What it did, in order.
    pub operations: Vec<RecordedOperation>,
}

/// A delayed action as a participant ran it. All that run it must have seen and done the same, and
/// one that ran it twice would show as two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Executed {
    txn: TxnId,
    space: SpaceId,
    key: SmallBytes,
    /// What it was given, and what it left; hashes as in [`RecordedOperation`].
    version: Timestamp,
    read: Option<u64>,
    written: Option<u64>,
}

/// A chunk takes no further transaction beyond so many bytes; the first one grows from nothing,
/// for short runs.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a record before its operations.
const RECORD_BYTES: usize = 65;
/// Stands for a time or version that is not there.
const NONE: u64 = u64::MAX;

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// An empty recorder that keeps this share of the transactions whole, and of the others what
    /// they wrote.
    pub fn sampling(sampling: Sampling) -> Recorder {
        Recorder { sampling, ..Recorder::default() }
    }

    /// Which transactions it keeps whole.
    pub fn share(&self) -> Sampling {
        self.sampling
    }

    /// Adds a transaction with its operations.
    pub fn transaction(&mut self, record: &TxnRecord, operations: &RecordedOperations) {
        match self.sampling.keeps(record.id) {
            true => self.add(record, operations),
            false => self.add_footprint(record, operations),
        }
    }

    /// Adds what a transaction wrote, if it may have written something.
    fn add_footprint(&mut self, record: &TxnRecord, operations: &RecordedOperations) {
        if record.read_only || record.status == Status::Aborted {
            return;
        }
        let chunk = self.chunk();
        let start = chunk.len();
        chunk.extend_from_slice(&record.encoded(0));
        operations.append_writes(chunk);
        let size = chunk.len() - start - RECORD_BYTES;
        // What one-round transactions and delayed actions wrote, participants know.
        if size == 0 && !operations.is_empty() && record.at.is_none() {
            chunk.truncate(start);
            return;
        }
        let place = start + RECORD_BYTES - 8;
        chunk[place..place + 8].copy_from_slice(&(size as u64).to_le_bytes());
        self.count += 1;
    }

    fn add(&mut self, record: &TxnRecord, operations: &RecordedOperations) {
        self.count += 1;
        let chunk = self.chunk();
        chunk.extend_from_slice(&record.encoded(operations.bytes.len()));
        chunk.extend_from_slice(&operations.bytes);
    }

    /// The chunk that takes the next transaction.
    #[inline]
    fn chunk(&mut self) -> &mut Vec<u8> {
        if self.chunks.last().is_none_or(|chunk| chunk.len() >= CHUNK_BYTES) {
            let capacity = if self.chunks.is_empty() { 0 } else { CHUNK_BYTES + CHUNK_BYTES / 8 };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        self.chunks.last_mut().expect("just made sure of")
    }

    /// Takes over all that `other` has recorded, after what is here, and leaves it empty. Where
    /// both say something of one transaction, what `other` says is newer and counts.
    pub fn absorb(&mut self, other: &mut Recorder) {
        for chunk in &mut other.chunks {
            if self.chunks.last().is_none_or(|last| last.len() >= CHUNK_BYTES) {
                self.chunks.push(Vec::new());
            }
            self.chunks.last_mut().expect("just made sure of").append(chunk);
        }
        self.count += std::mem::take(&mut other.count);
        other.chunks.truncate(1);
        // Not `append`: it builds the whole tree again, however little is added.
        self.applied.extend(std::mem::take(&mut other.applied));
        self.levels.extend(std::mem::take(&mut other.levels));
        self.executed.extend(std::mem::take(&mut other.executed));
        self.called.extend(std::mem::take(&mut other.called));
        self.ran.extend(std::mem::take(&mut other.ran));
    }

    /// What a transaction of this node is within its root, if it has one.
    pub fn level(&mut self, txn: TxnId, level: TxnLevel) {
        if level.root != 0 {
            self.levels.insert(txn, level);
        }
    }

    /// A participant applied `txn` at `at`: tells the version of writes whose coordinator never
    /// learned it.
    pub fn applied(&mut self, txn: TxnId, at: Timestamp) {
        self.applied.insert(txn, at);
    }

    /// A participant ran the delayed actions of `txn` on a key: what they found, what they left.
    pub fn executed(
        &mut self,
        txn: TxnId,
        (space, key): (SpaceId, &SmallBytes),
        (version, read): (Timestamp, Option<&SmallBytes>),
        written: Option<&SmallBytes>,
    ) {
        let (read, written) = (read.map(value_hash), written.map(value_hash));
        self.executed.insert(Executed { txn, space, key: key.clone(), version, read, written });
    }

    /// A participant ran a delayed procedure of `txn`, which did this.
    pub fn called(&mut self, txn: TxnId, operations: &RecordedOperations) {
        let kept = self.kept_of(txn, operations);
        self.called.insert((txn, kept.bytes));
    }

    /// What the delayed actions of `txn` read and wrote, as the participants of this node saw it.
    pub fn executed_for(&self, txn: TxnId) -> impl Iterator<Item = Vec<RecordedOperation>> + '_ {
        let first = Executed {
            txn,
            space: SpaceId(0),
            key: SmallBytes::EMPTY,
            version: Timestamp::ZERO,
            read: None,
            written: None,
        };
        let of_txn = self.executed.range(first..).take_while(move |it| it.txn == txn);
        let called = self.called.range((txn, Vec::new())..).take_while(move |it| it.0 == txn);
        of_txn.map(Executed::as_operations).chain(called.map(|it| Decoder(&it.1).collect()))
    }

    /// The same of all transactions.
    pub fn all_executed(&self) -> impl Iterator<Item = (TxnId, Vec<RecordedOperation>)> + '_ {
        let called = self.called.iter().map(|(txn, bytes)| (*txn, Decoder(bytes).collect()));
        self.executed.iter().map(|it| (it.txn, it.as_operations())).chain(called)
    }

    /// A participant ran part number `part` of a one-round transaction that lies at `at`. Whoever
    /// runs it again, after a crash in which its first run was lost, says so again: the last time
    /// counts.
    pub fn ran(&mut self, txn: TxnId, part: u16, at: Timestamp, operations: RecordedOperations) {
        let kept = self.kept_of(txn, &operations);
        self.ran.insert((txn, false, part), (at, kept));
    }

    /// The client of a one-round transaction is told what came of this run of a part: whatever
    /// others ran, this is what must fit.
    pub fn shared(&mut self, txn: TxnId, part: u16, at: Timestamp, operations: RecordedOperations) {
        let kept = self.kept_of(txn, &operations);
        self.ran.insert((txn, true, part), (at, kept));
    }

    /// What is kept of operations of a transaction.
    fn kept_of(&self, txn: TxnId, operations: &RecordedOperations) -> RecordedOperations {
        match self.sampling.keeps(txn) {
            true => operations.clone(),
            false => operations.writes(),
        }
    }

    /// What the parts of `txn` did, as this node knows it.
    pub fn ran_for(&self, txn: TxnId) -> impl Iterator<Item = PartRan> + '_ {
        let parts = self.ran.range((txn, false, 0)..=(txn, true, u16::MAX));
        parts.map(|(&(_, shared, part), (at, operations))| PartRan {
            part,
            at: *at,
            shared,
            operations: Decoder(&operations.bytes).collect(),
        })
    }

    /// The one-round transactions of which it knows what some part did.
    pub fn all_ran(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.ran.keys().map(|(txn, ..)| *txn)
    }

    /// What a transaction of this node is within its root, whose number is zero if it has none.
    pub fn level_of(&self, txn: TxnId) -> TxnLevel {
        self.levels.get(&txn).copied().unwrap_or_default()
    }

    /// The timestamp at which some participant of this node applied `txn`.
    pub fn applied_at(&self, txn: TxnId) -> Option<Timestamp> {
        self.applied.get(&txn).copied()
    }

    /// All transactions, in the order they ended, with their operations.
    pub fn transactions(
        &self,
    ) -> impl Iterator<Item = (TxnRecord, impl Iterator<Item = RecordedOperation> + '_)> {
        self.chunks.iter().flat_map(|chunk| {
            let mut rest = Decoder(chunk);
            std::iter::from_fn(move || {
                if rest.0.is_empty() {
                    return None;
                }
                let (record, length) = TxnRecord::decode(&mut rest);
                Some((record, Decoder(rest.bytes(length))))
            })
        })
    }

    /// How many transactions were recorded.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Executed {
    fn as_operations(&self) -> Vec<RecordedOperation> {
        let Executed { space, key, version, read, written, .. } = self.clone();
        let read = RecordedOperation::Read { space, key: key.clone(), version, hash: read };
        vec![read, RecordedOperation::Write { space, key, hash: written }]
    }
}

impl TxnRecord {
    #[inline]
    fn encoded(&self, operations: usize) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.status as u8 * 2 + u8::from(self.read_only);
        bytes[1..5].copy_from_slice(&self.id.node.0.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.id.incarnation.to_le_bytes());
        let end = self.end.map_or(NONE, |end| end.0);
        let at = self.at.map_or(NONE, |at| at.0);
        let (session, begin) = (self.session, self.begin.0);
        let staleness = self.staleness.map_or(NONE, |staleness| staleness.0);
        let words = [self.id.sequence, session, begin, end, at, staleness, operations as u64];
        for (place, word) in bytes[9..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// A record, and how many bytes its operations take.
    fn decode(from: &mut Decoder<'_>) -> (TxnRecord, usize) {
        let head = from.u8();
        let (node, incarnation) = (NodeId(from.u32()), from.u32());
        let id = TxnId { node, incarnation, sequence: from.u64() };
        let (session, begin) = (from.u64(), Nanos(from.u64()));
        let mut optional = || Some(from.u64()).filter(|&word| word != NONE);
        let (end, at) = (optional().map(Nanos), optional().map(Timestamp));
        let staleness = optional().map(Nanos);
        let (status, read_only) = (STATUSES[usize::from(head / 2)], head % 2 == 1);
        let record = TxnRecord { id, session, begin, end, status, read_only, at, staleness };
        (record, from.u64() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_come_back_in_order_with_their_own_operations() {
        let mut recorder = Recorder::new();
        let record = |number: usize| TxnRecord {
            id: TxnId { node: NodeId(2), incarnation: 3, sequence: number as u64 },
            session: number as u64 / 3,
            begin: Nanos(number as u64),
            end: (!number.is_multiple_of(5)).then_some(Nanos(number as u64 + 1)),
            status: STATUSES[number % 4],
            read_only: number.is_multiple_of(3),
            at: (number.is_multiple_of(2)).then_some(Timestamp(number as u64)),
            staleness: (number.is_multiple_of(7)).then_some(Nanos(number as u64)),
        };
        let operations = |number: usize| {
            let key = SmallBytes::from(number.to_string().as_str());
            vec![RecordedOperation::ReadOwn { space: SpaceId(0), key, hash: None }; number % 7]
        };
        let total = 20_000;
        for number in 0..total {
            let list = operations(number);
            recorder.transaction(&record(number), &RecordedOperations::from(&list[..]));
        }
        assert!(recorder.chunks.len() > 1, "the test is to cross chunks");
        assert_eq!(recorder.len(), total);
        recorder.applied(record(1).id, Timestamp(1));
        let mut all = Recorder::new();
        all.applied(record(1).id, Timestamp(0));
        let mut early = Recorder::new();
        for number in 0..7 {
            let list = operations(number);
            early.transaction(&record(number), &RecordedOperations::from(&list[..]));
        }
        all.absorb(&mut early);
        assert_eq!((all.len(), early.len(), early.transactions().count()), (7, 0, 0));
        all.absorb(&mut recorder);
        assert_eq!((all.len(), all.applied_at(record(1).id)), (total + 7, Some(Timestamp(1))));
        let recorder = all;
        let mut seen = 0;
        for (number, (found, list)) in recorder.transactions().skip(7).enumerate() {
            assert_eq!(found, record(number));
            assert_eq!(list.collect::<Vec<_>>(), operations(number));
            seen += 1;
        }
        assert_eq!(seen, total);
    }
}
