//! What the walk over the transactions of a history keeps: of the one that it is at, and what it
//! found.

use std::ops::Range;

use super::marks::VersionMarks;
use super::{ChainPosition, PlacedReads};
use crate::finding::{Anomaly, Findings};
use crate::history::{History, KeyId, TxnIndex};

/// The places of reads among the versions of their keys, as they are collected.
pub(super) struct HistoryWalk<'a> {
    pub history: &'a History,
    pub committed: &'a [bool],
    /// A number for each key that the transaction has written so far: which, the walk says.
    pub own: VersionMarks,
    /// The first place the transaction read per key.
    first: VersionMarks,
    pub reads: PlacedReads,
    pub findings: Findings,
}

impl<'a> HistoryWalk<'a> {
    pub(super) fn new(history: &'a History, committed: &'a [bool], findings: Findings) -> Self {
        let (own, first) =
            (VersionMarks::new(history.keys.len()), VersionMarks::new(history.keys.len()));
        HistoryWalk { history, committed, own, first, reads: PlacedReads::default(), findings }
    }

    /// The next transaction begins: its operations are these.
    pub(super) fn begin(&mut self, txn: TxnIndex) -> Range<usize> {
        self.own.clear();
        self.first.clear();
        self.reads.starts.push(self.reads.places.len() as u32);
        self.history.ops_range(txn)
    }

    /// The transaction read a key there; `twice` says how, if it read another place before.
    pub(super) fn place(
        &mut self,
        txn: TxnIndex,
        (key, position): (KeyId, u32),
        twice: impl FnOnce(u32) -> String,
    ) {
        match self.first.get(key) {
            Some(first) if first == position => return,
            Some(first) => self.add(Anomaly::UnrepeatableRead, txn, key, || twice(first)),
            None => self.first.set(key, position),
        }
        self.reads.places.push(ChainPosition { key, position });
    }

    /// The transaction read a key as it must not.
    pub(super) fn add<S: std::fmt::Display>(
        &mut self,
        anomaly: Anomaly,
        txn: TxnIndex,
        key: KeyId,
        how: impl FnOnce() -> S,
    ) {
        let history = self.history;
        self.findings.add(anomaly, self.committed[txn.index()], || {
            format!("{} read {} {}", history.show_name(txn), history.show_key(key), how())
        });
    }
}
