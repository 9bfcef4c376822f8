//! From what recorders collected to the checker's verdict.

use std::collections::{BTreeMap, BTreeSet};

use muesli_check::{
    HistoryBuilder, HistoryHeader, Kind, Level, Options, Seen, TxnId as Name, Value,
};
use muesli_check::{Status as Fate, Verdict, Version, check};
use muesli_core::recorder::{PartRan, RecordedOperation, Status, TxnRecord};
use muesli_core::{Recorder, SmallBytes, Timestamp, TxnId};

use crate::harness::subject::Subject;

/// A transaction as it was recorded.
pub type Recorded = (TxnRecord, Vec<RecordedOperation>);

/// Transactions, and what participants say of those whose clients were not told.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub transactions: Vec<Recorded>,
    pub applied: BTreeMap<TxnId, Timestamp>,
    /// What delayed actions did, by everybody who ran them; all must say the same.
    pub executed: BTreeMap<TxnId, Vec<Vec<RecordedOperation>>>,
    /// What parts of one-round transactions did, by transaction, part, and who ran it; `None`: as
    /// its client was told.
    pub ran: BTreeMap<(TxnId, u16, Option<u32>), PartRan>,
    /// The transactions that a crash ended.
    pub crashed: BTreeSet<TxnId>,
}

impl Evidence {
    /// Takes over what the recorder of a node has collected; `known` are ids that it may have seen
    /// applied.
    pub fn absorb(
        &mut self,
        node: u32,
        recorder: &Recorder,
        known: impl IntoIterator<Item = TxnId>,
    ) {
        let all = recorder.transactions();
        self.transactions.extend(all.map(|(record, ops)| (record, ops.collect())));
        for (id, operations) in recorder.all_executed() {
            let all = self.executed.entry(id).or_default();
            if !all.contains(&operations) {
                all.push(operations);
            }
            self.applied.extend(recorder.applied_at(id).map(|at| (id, at)));
        }
        for id in known.into_iter().chain(recorder.all_ran()) {
            if let Some(at) = recorder.applied_at(id) {
                self.applied.insert(id, at);
            }
            for ran in recorder.ran_for(id) {
                self.absorb_run(node, id, ran);
            }
        }
    }

    /// Of what a client is told, the first counts; of what was run, the last: what was run before
    /// was lost in a crash.
    fn absorb_run(&mut self, node: u32, id: TxnId, ran: PartRan) {
        if ran.shared {
            self.ran.entry((id, ran.part, None)).or_insert(ran);
        } else {
            self.ran.insert((id, ran.part, Some(node)), ran);
        }
    }

    /// What the parts of a one-round transaction did that lies at `at`, as its client was told, if
    /// it was.
    fn ran(&self, id: TxnId, at: Timestamp) -> Vec<RecordedOperation> {
        let all = self.ran.range((id, 0, None)..=(id, u16::MAX, Some(u32::MAX)));
        let mut parts: BTreeMap<u16, Vec<&PartRan>> = BTreeMap::new();
        for (_, ran) in all.filter(|(_, ran)| ran.at == at) {
            let runs = parts.entry(ran.part).or_default();
            let known = runs.iter().any(|it| it.shared || it.operations == ran.operations);
            if !known {
                runs.push(ran);
            }
        }
        parts.into_values().flatten().flat_map(|ran| ran.operations.clone()).collect()
    }

    /// Takes over what was running on a node that crashed. It may have read writes of that node
    /// that were not stable, and are lost with it: of what it read counts what was there before
    /// anybody wrote, and what clients were told of.
    pub fn absorb_crashed(&mut self, node: u32, recorder: &Recorder) {
        let before = self.transactions.len();
        self.absorb(node, recorder, []);
        self.crashed.extend(self.transactions[before..].iter().map(|(record, _)| record.id));
    }

    /// The versions that clients were told of, and the one that was there before.
    fn lasting(&self) -> BTreeSet<Timestamp> {
        let shared = self.transactions.iter().map(|(record, _)| record);
        let shared = shared.filter(|record| record.status == Status::Committed);
        shared.filter_map(|record| record.at).chain([Timestamp::ZERO]).collect()
    }

    /// Judges all transactions at `level`, in the order of their sessions; and the updates among
    /// them alone, which promise more: their order is that of real time.
    pub fn judge<P: Subject>(&self, level: Level) -> Verdict {
        let all = self.verdict(level, |_| true);
        let updates = |ops: &[RecordedOperation]| {
            ops.iter().any(|op| matches!(op, RecordedOperation::Write { .. }))
        };
        if all.holds() && P::STRICT_UPDATES {
            self.verdict(Level::StrictSerializable, updates)
        } else {
            all
        }
    }

    fn verdict(&self, level: Level, wanted: impl Fn(&[RecordedOperation]) -> bool) -> Verdict {
        let mut builder = HistoryBuilder::new(Kind::Version);
        let lasting = self.lasting();
        for (record, operations) in &self.transactions {
            let mut operations = operations.clone();
            if self.crashed.contains(&record.id) {
                operations.retain(|operation| lasts(operation, &lasting));
            }
            let executed = self.executed.get(&record.id);
            operations.extend(executed.into_iter().flatten().flatten().cloned());
            operations.extend(self.ran_of(record));
            if wanted(&operations) {
                self.add(&mut builder, record, &operations);
            }
        }
        check(&builder.finish(), level, &Options { session_order: true, ..Options::default() })
    }

    /// What nobody was told of may have run over what is lost: what it read proves nothing.
    fn ran_of(&self, record: &TxnRecord) -> Vec<RecordedOperation> {
        let sure = record.status == Status::Committed;
        let at = record.at.or_else(|| self.applied.get(&record.id).copied());
        let Some(at) = at.filter(|_| record.status != Status::Aborted) else { return Vec::new() };
        let mut ran = self.ran(record.id, at);
        ran.retain(|operation| sure || matches!(operation, RecordedOperation::Write { .. }));
        ran
    }

    fn add(
        &self,
        builder: &mut HistoryBuilder,
        record: &TxnRecord,
        operations: &[RecordedOperation],
    ) {
        let name = record.id.to_string();
        let at = record.at.or_else(|| self.applied.get(&record.id).copied());
        let session = record.session;
        let header = HistoryHeader {
            id: Name::Text(&name),
            session: if session == 0 { Value::Unrecorded } else { Value::Unsigned(session) },
            begin: record.begin.0,
            end: record.end.map(|end| end.0),
            status: match record.status {
                Status::Committed => Fate::Committed,
                Status::Aborted => Fate::Aborted,
                Status::Unknown => Fate::Unknown,
                Status::Running => Fate::Running,
            },
            read_only: Some(record.read_only),
            timestamp: Value::Unrecorded,
            as_of: record.staleness.map(|it| record.begin.0.saturating_sub(it.0)),
        };
        let mut transaction = builder.transaction(header).expect("ids are unique");
        for (place, operation) in operations.iter().enumerate() {
            let added = match operation {
                RecordedOperation::Read { key, version, hash, .. } => {
                    transaction.read(key.as_slice(), version.0, value(*hash))
                }
                RecordedOperation::ReadOwn { key, hash, .. } => {
                    transaction.read(key.as_slice(), Seen::Own, value(*hash))
                }
                RecordedOperation::Write { key, hash, .. } => {
                    let last = !operations[place + 1..].iter().any(|newer| writes(newer, key));
                    let version = at.filter(|_| last).map(|at| Version::Number(at.0));
                    match hash {
                        Some(_) => transaction.write(key.as_slice(), version, value(*hash)),
                        None => transaction.delete(key.as_slice(), version),
                    }
                }
                RecordedOperation::Scan { lo, hi, rows, .. } => {
                    let rows = rows.iter().map(|(key, version, hash)| {
                        (key.as_slice(), Seen::from(version.0), value(*hash))
                    });
                    transaction.scan(lo.as_slice(), hi.as_ref().map(SmallBytes::as_slice), rows)
                }
            };
            added.expect("a well-formed operation");
        }
    }
}

/// Whether what was read is there whatever crashes.
fn lasts(operation: &RecordedOperation, lasting: &BTreeSet<Timestamp>) -> bool {
    match operation {
        RecordedOperation::Write { .. } | RecordedOperation::ReadOwn { .. } => true,
        RecordedOperation::Read { version, .. } => lasting.contains(version),
        RecordedOperation::Scan { rows, .. } => {
            rows.iter().all(|(_, version, _)| lasting.contains(version))
        }
    }
}

fn writes(operation: &RecordedOperation, wanted: &SmallBytes) -> bool {
    matches!(operation, RecordedOperation::Write { key, .. } if key == wanted)
}

fn value(hash: Option<u64>) -> Value<'static> {
    hash.map_or(Value::Null, Value::Unsigned)
}
