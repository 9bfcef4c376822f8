//! From what recorders collected to the checker's verdict.

use std::collections::BTreeMap;

use muesli_check::{Header, HistoryBuilder, Kind, Level, Options, Seen, TxnId as Name, Value};
use muesli_check::{Status as Fate, Verdict, Version, check};
use muesli_core::recorder::{Operation, Status, TxnRecord};
use muesli_core::{Recorder, SmallBytes, Timestamp, TxnId};
use muesli_protocols::two_phase::Variant;

/// A transaction as it was recorded.
pub type Recorded = (TxnRecord, Vec<Operation>);

/// Transactions, and what participants say of those whose clients were not told.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub transactions: Vec<Recorded>,
    pub applied: BTreeMap<TxnId, Timestamp>,
    /// What delayed actions did, by everybody who ran them; all must say the same.
    pub executed: BTreeMap<TxnId, Vec<Vec<Operation>>>,
}

impl Evidence {
    /// Takes over what a recorder has collected; `known` are ids that it may have seen applied.
    pub fn absorb(&mut self, recorder: &Recorder, known: impl IntoIterator<Item = TxnId>) {
        let all = recorder.transactions();
        self.transactions.extend(all.map(|(record, ops)| (record, ops.collect())));
        for (id, operations) in recorder.all_executed() {
            let all = self.executed.entry(id).or_default();
            if !all.contains(&operations) {
                all.push(operations);
            }
            self.applied.extend(recorder.applied_at(id).map(|at| (id, at)));
        }
        for id in known {
            if let Some(at) = recorder.applied_at(id) {
                self.applied.insert(id, at);
            }
        }
    }

    /// Takes over what was running on a node that crashed, without its reads: they may have seen
    /// writes of that node that were not stable, and are lost with it.
    pub fn absorb_crashed(&mut self, recorder: &Recorder) {
        let before = self.transactions.len();
        self.absorb(recorder, []);
        for (_, operations) in &mut self.transactions[before..] {
            operations.retain(|operation| matches!(operation, Operation::Write { .. }));
        }
    }

    /// Judges all transactions at `level`, in the order of their sessions; and the updates among
    /// them alone, which promise more: their order is that of real time.
    pub fn judge<V: Variant>(&self, level: Level) -> Verdict {
        let all = self.verdict(level, |_| true);
        let updates =
            |ops: &[Operation]| ops.iter().any(|op| matches!(op, Operation::Write { .. }));
        let strict = V::VALIDATES_READS && !V::MAY_COMMIT_IN_THE_PAST;
        if all.holds() && strict { self.verdict(Level::StrictSerializable, updates) } else { all }
    }

    fn verdict(&self, level: Level, wanted: impl Fn(&[Operation]) -> bool) -> Verdict {
        let mut builder = HistoryBuilder::new(Kind::Version);
        for (record, operations) in &self.transactions {
            let mut operations = operations.clone();
            let executed = self.executed.get(&record.id);
            operations.extend(executed.into_iter().flatten().flatten().cloned());
            if wanted(&operations) {
                self.add(&mut builder, record, &operations);
            }
        }
        check(&builder.finish(), level, &Options { session_order: true, ..Options::default() })
    }

    fn add(&self, builder: &mut HistoryBuilder, record: &TxnRecord, operations: &[Operation]) {
        let name = record.id.to_string();
        let at = record.at.or_else(|| self.applied.get(&record.id).copied());
        let session = record.session;
        let header = Header {
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
        };
        let mut transaction = builder.transaction(header).expect("ids are unique");
        for (place, operation) in operations.iter().enumerate() {
            let added = match operation {
                Operation::Read { key, version, hash, .. } => {
                    transaction.read(key.as_slice(), version.0, value(*hash))
                }
                Operation::ReadOwn { key, hash, .. } => {
                    transaction.read(key.as_slice(), Seen::Own, value(*hash))
                }
                Operation::Write { key, hash, .. } => {
                    let last = !operations[place + 1..].iter().any(|later| writes(later, key));
                    let version = at.filter(|_| last).map(|at| Version::Number(at.0));
                    match hash {
                        Some(_) => transaction.write(key.as_slice(), version, value(*hash)),
                        None => transaction.delete(key.as_slice(), version),
                    }
                }
                Operation::Scan { lo, hi, rows, .. } => {
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

fn writes(operation: &Operation, wanted: &SmallBytes) -> bool {
    matches!(operation, Operation::Write { key, .. } if key == wanted)
}

fn value(hash: Option<u64>) -> Value<'static> {
    hash.map_or(Value::Null, Value::Unsigned)
}
