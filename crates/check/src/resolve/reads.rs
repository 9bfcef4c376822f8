//! Giving every recorded read of a version history its place, or a finding.
//!
//! The operations of a transaction are walked in program order, so that reads of its own writes
//! can be told from reads of other transactions' versions.

use super::history_walk::HistoryWalk;
use super::scans::{RangeKeys, covers};
use super::versions::{ChainEntry, VersionTable, find_missing, written};
use super::{ChainPosition, Chains, RangeRead, Resolved, fate, replicas};
use crate::finding::{Anomaly, Findings};
use crate::history::{Atom, History, KeyId, Op, Row, SeenId, TxnIndex, VersionId};

pub(super) fn resolve(history: &History) -> Resolved<'_> {
    let mut findings = Findings::default();
    let mut table = VersionTable::new(history);
    let committed = fate::decide(history, &table);
    let chains = table.chain(history, &committed, &mut findings);
    find_missing(history, &committed, &mut findings);
    replicas::check(history, &table, &committed, &mut findings);
    compare_initial_values(history, &committed, &mut findings);
    let range_keys = match history.scans.is_empty() {
        true => RangeKeys::default(),
        false => RangeKeys::new(history, &chains),
    };
    let mut placer = ReadPlacer {
        table: &table,
        chains: &chains,
        range_keys: &range_keys,
        range_reads: Vec::new(),
        walk: HistoryWalk::new(history, &committed, findings),
    };
    for txn in history.indices() {
        placer.transaction(txn);
    }
    let ReadPlacer { range_reads, walk: HistoryWalk { reads, findings, .. }, .. } = placer;
    let found = (reads, findings);
    let range_keys = range_keys.sorted;
    Resolved { range_keys, range_reads, ..Resolved::of(history, committed, chains, found) }
}

/// Walks the transactions and collects the places they read.
struct ReadPlacer<'a> {
    table: &'a VersionTable,
    chains: &'a Chains,
    range_keys: &'a RangeKeys,
    range_reads: Vec<RangeRead>,
    /// Its numbers are the transaction's latest write so far per key, as an operation index.
    walk: HistoryWalk<'a>,
}

impl ReadPlacer<'_> {
    fn transaction(&mut self, txn: TxnIndex) {
        for op in self.walk.begin(txn) {
            match self.walk.history.ops[op] {
                Op::Read { key, seen, value } => self.read(txn, Row { key, seen, value }),
                Op::Write { key, .. } | Op::Delete { key, .. } => self.walk.own.set(key, op as u32),
                Op::Scan { scan } => self.scan(txn, op, scan),
                Op::Append { .. } | Op::ReadList { .. } => {}
            }
        }
    }

    fn read(&mut self, txn: TxnIndex, row: Row) {
        let own = self.walk.own.get(row.key);
        match (row.seen, own) {
            (SeenId::Own, Some(op)) => self.compare_own(txn, row, op),
            (SeenId::Own, None) => self.internal(txn, row.key, "as its own before writing it"),
            (SeenId::Version(version), Some(op)) => {
                let entries = self.table.find(self.walk.history, row.key, version);
                match entries.iter().any(|entry| entry.writer == txn) {
                    true => self.compare_own(txn, row, op),
                    false => self.internal(txn, row.key, "from others after writing it"),
                }
            }
            (SeenId::Version(VersionId::INITIAL), None) => self.place(txn, row.key, 0),
            (SeenId::Version(version), None) => self.read_other(txn, row, version),
        }
    }

    fn read_other(&mut self, txn: TxnIndex, row: Row, version: VersionId) {
        let entries = self.table.find(self.walk.history, row.key, version);
        let best = entries.iter().max_by_key(|entry| {
            let committed = self.walk.committed[entry.writer.index()];
            (entry.position > 0, committed, entry.writer == txn, std::cmp::Reverse(entry.position))
        });
        let Some(entry) = best.copied() else {
            return self.misplaced(Anomaly::UnknownVersion, txn, row, version, None);
        };
        if entry.writer == txn {
            self.internal(txn, row.key, "in its own version before writing it");
        } else if entry.position > 0 {
            self.compare_values(txn, row, version, &entry);
            self.place(txn, row.key, entry.position);
        } else if self.walk.committed[entry.writer.index()] {
            self.misplaced(Anomaly::IntermediateRead, txn, row, version, Some(entry.writer));
        } else {
            self.misplaced(Anomaly::DirtyRead, txn, row, version, Some(entry.writer));
        }
    }

    fn place(&mut self, txn: TxnIndex, key: KeyId, position: u32) {
        let (history, chains) = (self.walk.history, self.chains);
        self.walk.place(txn, (key, position), |first| {
            let show = |position| show_position(history, chains, ChainPosition { key, position });
            format!("twice: version {}, then {}", show(first), show(position))
        });
    }

    fn scan(&mut self, txn: TxnIndex, op: usize, scan: u32) {
        let history = self.walk.history;
        let scan = &history.scans[scan as usize];
        let rows = &history.rows[scan.rows.clone()];
        for row in rows {
            self.read(txn, *row);
            if !covers(scan, history.keys.bytes(row.key.0)) {
                self.internal(txn, row.key, "in a scan whose range does not hold it");
            }
        }
        let before: Vec<(KeyId, bool)> = history.ops[history.ops_range(txn).start..op]
            .iter()
            .filter_map(|op| Some((written(op)?.0, matches!(op, Op::Delete { .. }))))
            .collect();
        self.require_own_rows(txn, scan, rows, &before);
        let own_first = history.ops_of(txn).iter().filter_map(written).map(|(key, _)| key);
        let own_first =
            own_first.filter(|key| self.chains.of(*key).first().is_some_and(|l| l.writer == txn));
        let excluded = rows.iter().map(|row| row.key).chain(before.iter().map(|(key, _)| *key));
        let excluded = excluded.chain(own_first);
        self.range_keys.gaps(history, txn, scan, excluded, &mut self.range_reads);
    }

    /// A scan must list what its transaction wrote into the range before.
    fn require_own_rows(
        &mut self,
        txn: TxnIndex,
        scan: &crate::history::Scan,
        rows: &[Row],
        before: &[(KeyId, bool)],
    ) {
        if before.is_empty() {
            return;
        }
        let mut listed: Vec<KeyId> = rows.iter().map(|row| row.key).collect();
        listed.sort_unstable();
        let mut latest: Vec<(KeyId, bool)> = before.to_vec();
        latest.reverse();
        latest.sort_by_key(|(key, _)| *key);
        latest.dedup_by_key(|(key, _)| *key);
        for (key, deleted) in latest {
            let inside = covers(scan, self.walk.history.keys.bytes(key.0));
            if inside && !deleted && listed.binary_search(&key).is_err() {
                self.internal(txn, key, "as absent in a scan after writing it");
            }
        }
    }

    fn compare_own(&mut self, txn: TxnIndex, row: Row, op: u32) {
        let wrote = op_value(&self.walk.history.ops[op as usize]);
        if row.value.contradicts(wrote) {
            self.internal(txn, row.key, "with another value than its own last write");
        }
    }

    fn compare_values(&mut self, txn: TxnIndex, row: Row, version: VersionId, entry: &ChainEntry) {
        let history = self.walk.history;
        let wrote = op_value(&history.ops[entry.op as usize]);
        if !row.value.contradicts(wrote) {
            return;
        }
        self.walk.findings.add(Anomaly::ValueMismatch, self.walk.committed[txn.index()], || {
            format!(
                "{} read {} = {} in version {}, but {} wrote {}",
                history.show_name(txn),
                history.show_key(row.key),
                history.show_atom(row.value),
                history.show_version(version),
                history.show_name(entry.writer),
                history.show_atom(wrote),
            )
        });
    }

    fn internal(&mut self, txn: TxnIndex, key: KeyId, how: &str) {
        self.walk.add(Anomaly::InternalRead, txn, key, || how);
    }

    fn misplaced(
        &mut self,
        anomaly: Anomaly,
        txn: TxnIndex,
        row: Row,
        version: VersionId,
        writer: Option<TxnIndex>,
    ) {
        let history = self.walk.history;
        self.walk.findings.add(anomaly, self.walk.committed[txn.index()], || {
            let version = history.show_version(version);
            let read = format!(
                "{} read version {version} of {}",
                history.show_name(txn),
                history.show_key(row.key)
            );
            match writer.map(|writer| history.show_name(writer)) {
                None => format!("{read}, which no transaction wrote"),
                Some(writer) if anomaly == Anomaly::DirtyRead => {
                    format!("{read}, written by {writer}, which did not commit")
                }
                Some(writer) => format!("{read}, which {writer} overwrote before committing"),
            }
        });
    }
}

fn show_position(history: &History, chains: &Chains, place: ChainPosition) -> String {
    match chains.link(place).map(|link| link.label) {
        Some(super::Label::Version(version)) => history.show_version(version),
        _ => "0".to_owned(),
    }
}

/// The value a write or delete leaves behind.
fn op_value(op: &Op) -> Atom {
    match *op {
        Op::Write { value, .. } => value,
        Op::Delete { .. } => Atom::Null,
        Op::Read { .. } | Op::Scan { .. } | Op::Append { .. } | Op::ReadList { .. } => {
            Atom::Unrecorded
        }
    }
}

/// All reads of the initial version of a key must return one value. Committed readers go first,
/// so that a wrong value is not blamed on them.
fn compare_initial_values(history: &History, committed: &[bool], findings: &mut Findings) {
    let mut initial: Vec<(Atom, TxnIndex)> =
        vec![(Atom::Unrecorded, TxnIndex(0)); history.keys.len()];
    let mut compare = |txn: TxnIndex, row: Row| {
        let (value, first) = &mut initial[row.key.index()];
        if row.seen != SeenId::Version(VersionId::INITIAL) || row.value == Atom::Unrecorded {
            return;
        }
        if *value == Atom::Unrecorded {
            (*value, *first) = (row.value, txn);
        } else if *value != row.value {
            findings.add(Anomaly::ValueMismatch, committed[txn.index()], || {
                format!(
                    "the initial version of {} is {} to {} and {} to {}",
                    history.show_key(row.key),
                    history.show_atom(*value),
                    history.show_name(*first),
                    history.show_atom(row.value),
                    history.show_name(txn),
                )
            });
        }
    };
    for wanted in [true, false] {
        for txn in history.indices().filter(|txn| committed[txn.index()] == wanted) {
            for op in history.ops_of(txn) {
                match *op {
                    Op::Read { key, seen, value } => compare(txn, Row { key, seen, value }),
                    Op::Scan { scan } => {
                        let rows = history.scans[scan as usize].rows.clone();
                        history.rows[rows].iter().for_each(|row| compare(txn, *row));
                    }
                    _ => {}
                }
            }
        }
    }
}
