//! What a child that locks rows has used of them: which, and what they were before it wrote them.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{SmallBytes, SpaceId};

use super::reads::{OwnValue, SpaceKey};
use super::written::WrittenKeys;
use super::{Accesses, NestingLevel};
use crate::transaction::detour::ChildMark;

/// What rows were, of those that were read and not written before that; and in which order that was
/// learnt, and they were written: a closed child may be undone by a transaction that knows nothing
/// of levels.
///
/// Invariant: what is known of a row was learnt once.
#[derive(Debug, Default)]
pub(super) struct RowsBefore {
    /// `None`: absent.
    known: BTreeMap<SpaceKey, Option<SmallBytes>>,
    steps: Vec<RowStep>,
}

/// What is undone with a closed child.
#[derive(Debug)]
enum RowStep {
    /// It is known what a row was.
    Learnt(SpaceKey),
    /// It was written, over this.
    Wrote(SpaceKey, Option<OwnValue>),
}

impl RowsBefore {
    fn has(&self, key: &SpaceKey) -> bool {
        self.known.contains_key(key)
    }

    /// What a row was; absent, where it is not known.
    fn value(&self, key: &SpaceKey) -> Option<SmallBytes> {
        self.known.get(key).cloned().flatten()
    }
}

impl Accesses {
    /// A row was found that the transaction has not written.
    pub(super) fn note_found(&mut self, key: SpaceKey, value: Option<SmallBytes>) {
        if !self.before.has(&key) {
            self.before.steps.push(RowStep::Learnt(key.clone()));
            self.before.known.insert(key, value);
        }
    }

    /// A row is about to be written.
    pub(super) fn note_write(&mut self, key: &SpaceKey) {
        self.before.steps.push(RowStep::Wrote(key.clone(), self.written.value(key)));
    }

    /// A closed child has learnt and written this, which is its parent's from now on.
    pub(super) fn take_changed(&mut self, before: RowsBefore, written: &WrittenKeys) {
        before.known.into_iter().for_each(|(key, value)| self.note_found(key, value));
        written.keys().for_each(|key| self.note_write(key));
    }

    pub(super) fn mark(&self) -> ChildMark {
        ChildMark(self.before.steps.len())
    }

    /// What was learnt and written from a mark on is undone: it may have been of another snapshot.
    pub(super) fn undo_to(&mut self, from: ChildMark) {
        while self.before.steps.len() > from.0 {
            match self.before.steps.pop().expect("it is longer") {
                RowStep::Learnt(key) => drop(self.before.known.remove(&key)),
                RowStep::Wrote(key, before) => self.written.unwrite(key, before),
            }
        }
    }
}

/// The rows that a transaction has used.
#[derive(Debug, Default)]
pub(in crate::open_nesting) struct UsedRows {
    pub read: BTreeSet<SpaceKey>,
    /// The spaces of which it has read ranges.
    pub scanned: BTreeSet<SpaceId>,
    pub written: Vec<WrittenRow>,
}

/// A row that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::open_nesting) struct WrittenRow {
    pub key: SpaceKey,
    /// What it was before; `None`: absent.
    pub before: Option<SmallBytes>,
    /// What was written last; `None`: that is not known, as an action changes it later.
    pub left: OwnValue,
}

impl NestingLevel {
    /// The same of a child that locks the rows that it uses, and puts back what it wrote.
    pub fn locking_rows(self, locks_rows: bool) -> NestingLevel {
        NestingLevel { locks_rows, ..self }
    }

    /// Whether it is one of these, or within one.
    pub fn locks_rows(&self) -> bool {
        self.locks_rows
    }

    /// Whether its transaction knows what a row was before it writes it.
    pub(super) fn knows_before(&self, key: &SpaceKey) -> bool {
        self.of_transaction().any(|level| level.accesses().before.has(key))
    }

    /// Whether its transaction has written a row.
    pub(super) fn has_written_row(&self, key: &SpaceKey) -> bool {
        self.of_transaction().any(|level| level.accesses().written.find(key).is_some())
    }

    /// The rows that it has used itself, without those of the layer.
    pub fn used_rows(&self) -> UsedRows {
        let own = self.accesses();
        let is_row = |key: &&SpaceKey| key.0 != self.layer;
        let read = own.read.keys().filter(is_row).cloned().collect();
        let scanned = own.read.scans().into_iter().map(|scan| scan.space).collect();
        let written = own.written.keys().filter(is_row).map(|key| {
            let left = own.written.value(key).flatten();
            WrittenRow { key: key.clone(), before: own.before.value(key), left }
        });
        UsedRows { read, scanned, written: written.collect() }
    }
}
