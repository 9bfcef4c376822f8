//! Which transactions count as committed, and which of them are updates.
//!
//! An unknown transaction counts as committed if and only if somebody else read one of its
//! versions, or one of them stands in a replica's chain at the end: then its effect is visible
//! and only a commit explains it. Nobody saw the others, so they cannot matter.

use super::versions::VersionTable;
use crate::history::{History, KeyId, Op, SeenId, Status, TxnIndex, VersionId};

pub(super) fn acknowledged(history: &History) -> Vec<bool> {
    history.transactions.iter().map(|txn| txn.status == Status::Committed).collect()
}

pub(super) fn any_unknown(history: &History) -> bool {
    history.transactions.iter().any(|txn| txn.status == Status::Unknown)
}

pub(super) fn decide(history: &History, table: &VersionTable) -> Vec<bool> {
    let mut committed = acknowledged(history);
    if !any_unknown(history) {
        return committed;
    }
    let mut witness = |reader: Option<TxnIndex>, key, version| {
        prove(history, table, &mut committed, reader, key, version);
    };
    for reader in history.indices() {
        for op in history.ops_of(reader) {
            match op {
                Op::Read { key, seen: SeenId::Version(version), .. } => {
                    witness(Some(reader), *key, *version);
                }
                Op::Scan { scan } => {
                    for row in &history.rows[history.scans[*scan as usize].rows.clone()] {
                        if let SeenId::Version(version) = row.seen {
                            witness(Some(reader), row.key, version);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    for order in &history.orders {
        for version in &order.versions {
            witness(None, order.key, *version);
        }
    }
    committed
}

/// `version` of `key` was seen: whoever wrote it, if unknown and the only writer, committed.
fn prove(
    history: &History,
    table: &VersionTable,
    committed: &mut [bool],
    reader: Option<TxnIndex>,
    key: KeyId,
    version: VersionId,
) {
    let entries = table.find(history, key, version);
    let status = |txn: TxnIndex| history.transaction(txn).status;
    if entries.iter().any(|entry| status(entry.writer) == Status::Committed) {
        return;
    }
    for entry in entries {
        if status(entry.writer) == Status::Unknown && Some(entry.writer) != reader {
            committed[entry.writer.index()] = true;
        }
    }
}

/// Which committed transactions have a write.
pub(super) fn updates(history: &History, committed: &[bool]) -> Vec<bool> {
    let writes = |op: &Op| matches!(op, Op::Write { .. } | Op::Delete { .. } | Op::Append { .. });
    let update = |txn: TxnIndex| committed[txn.index()] && history.ops_of(txn).iter().any(writes);
    history.indices().map(update).collect()
}
