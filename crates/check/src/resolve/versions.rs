//! Every version id that somebody recorded as written, per key in version order.
//!
//! The table holds the versions of committed, aborted and undecided transactions alike, because a
//! read of an aborted or intermediate version must be recognised as such. Once the fate of all
//! transactions is known, the final versions of the committed ones get their places in the chain.

use std::cmp::Ordering;

use super::marks::VersionMarks;
use super::{Chains, Label, Link};
use crate::finding::{Anomaly, Findings};
use crate::history::{History, KeyId, Op, TxnIndex, VersionId};

/// A version id and who wrote it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainEntry {
    pub(super) version: VersionId,
    pub(super) writer: TxnIndex,
    /// The writing operation, an index into the operations of the history.
    pub(super) op: u32,
    /// Whether this is the writer's last write to the key.
    pub(super) last: bool,
    /// The place in the chain; 0 while or if it has none.
    pub(super) position: u32,
}

/// All entries, grouped by key, each group sorted by version.
#[derive(Debug)]
pub(super) struct VersionTable {
    starts: Vec<u32>,
    entries: Vec<ChainEntry>,
}

impl VersionTable {
    pub(super) fn new(history: &History) -> Self {
        let mut table = VersionTable { starts: group_starts(history), entries: Vec::new() };
        table.fill(history);
        for key in 0..history.keys.len() {
            let group = table.starts[key] as usize..table.starts[key + 1] as usize;
            table.entries[group].sort_unstable_by(|a, b| {
                history
                    .compare(a.version, b.version)
                    .then(a.writer.cmp(&b.writer))
                    .then(a.op.cmp(&b.op))
            });
        }
        table
    }

    /// The entries for one version of a key: none, one, or several writers that clash.
    pub(super) fn find(&self, history: &History, key: KeyId, version: VersionId) -> &[ChainEntry] {
        let group = self.of(key);
        let before = |entry: &ChainEntry| history.compare(entry.version, version) == Ordering::Less;
        let start = group.partition_point(before);
        let same = group[start..].iter().take_while(|entry| entry.version == version).count();
        &group[start..start + same]
    }

    pub(super) fn of(&self, key: KeyId) -> &[ChainEntry] {
        let key = key.index();
        &self.entries[self.starts[key] as usize..self.starts[key + 1] as usize]
    }

    /// Gives the final versions of committed transactions their places and returns the chains.
    pub(super) fn chain(
        &mut self,
        history: &History,
        committed: &[bool],
        findings: &mut Findings,
    ) -> Chains {
        let mut chains = Chains { starts: vec![0], links: Vec::with_capacity(self.entries.len()) };
        for key in 0..history.keys.len() {
            let group = self.starts[key] as usize..self.starts[key + 1] as usize;
            let mut previous: Option<ChainEntry> = None;
            let mut position = 0;
            for entry in &mut self.entries[group] {
                if !committed[entry.writer.index()] {
                    continue;
                }
                if let Some(previous) = previous
                    && previous.version == entry.version
                    && previous.writer != entry.writer
                {
                    findings.add(Anomaly::DuplicateVersion, true, || {
                        duplicate(history, KeyId(key as u32), &previous, entry)
                    });
                }
                previous = Some(*entry);
                if entry.last {
                    position += 1;
                    entry.position = position;
                    let label = Label::Version(entry.version);
                    chains.links.push(Link { writer: entry.writer, label });
                }
            }
            chains.starts.push(chains.links.len() as u32);
        }
        chains
    }

    fn fill(&mut self, history: &History) {
        let nobody = ChainEntry {
            version: VersionId::INITIAL,
            writer: TxnIndex(0),
            op: 0,
            last: false,
            position: 0,
        };
        let total = self.starts.last().map_or(0, |end| *end as usize);
        self.entries = vec![nobody; total];
        let mut next = self.starts.clone();
        let mut last_write = VersionMarks::new(history.keys.len());
        for writer in history.indices() {
            last_write.clear();
            for op in history.ops_range(writer) {
                if let Some((key, _)) = written(&history.ops[op]) {
                    last_write.set(key, op as u32);
                }
            }
            for op in history.ops_range(writer) {
                let Some((key, Some(version))) = written(&history.ops[op]) else { continue };
                let op = op as u32;
                let last = last_write.get(key) == Some(op);
                let slot = &mut next[key.index()];
                self.entries[*slot as usize] =
                    ChainEntry { version, writer, op, last, position: 0 };
                *slot += 1;
            }
        }
    }
}

/// Key and version of a write or delete.
pub(super) fn written(op: &Op) -> Option<(KeyId, Option<VersionId>)> {
    match *op {
        Op::Write { key, version, .. } | Op::Delete { key, version } => Some((key, version)),
        Op::Read { .. } | Op::Scan { .. } | Op::Append { .. } | Op::ReadList { .. } => None,
    }
}

/// Reports the committed writes whose version the recorder does not know.
pub(super) fn find_missing(history: &History, committed: &[bool], findings: &mut Findings) {
    let mut decided = VersionMarks::new(history.keys.len());
    for txn in history.indices().filter(|txn| committed[txn.index()]) {
        decided.clear();
        for op in history.ops_of(txn).iter().rev() {
            let Some((key, version)) = written(op) else { continue };
            if decided.get(key).is_none() && version.is_none() {
                findings.add(Anomaly::MissingVersion, true, || {
                    let (txn, key) = (history.show_name(txn), history.show_key(key));
                    format!("{txn} committed its last write of {key} without a version")
                });
            }
            decided.set(key, 0);
        }
    }
}

fn duplicate(history: &History, key: KeyId, first: &ChainEntry, second: &ChainEntry) -> String {
    format!(
        "version {} of {} was installed by {} and by {}",
        history.show_version(second.version),
        history.show_key(key),
        history.show_name(first.writer),
        history.show_name(second.writer),
    )
}

fn group_starts(history: &History) -> Vec<u32> {
    let mut starts = vec![0; history.keys.len() + 1];
    for op in &history.ops {
        if let Some((key, Some(_))) = written(op) {
            starts[key.index() + 1] += 1;
        }
    }
    for key in 1..starts.len() {
        starts[key] += starts[key - 1];
    }
    starts
}
