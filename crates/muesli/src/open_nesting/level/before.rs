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
        assert!(from.0 <= self.before.steps.len(), "{from:?} is of a child that has ended");
        for step in self.before.steps.split_off(from.0).into_iter().rev() {
            match step {
                RowStep::Learnt(key) => {
                    let known = self.before.known.remove(&key);
                    assert!(known.is_some(), "{key:?} was learnt, and not known");
                }
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

#[cfg(test)]
mod tests {
    use super::super::reads::FoundDigest;
    use super::*;

    fn key(name: &str) -> SpaceKey {
        (SpaceId(1), name.into())
    }

    fn value(name: &str) -> Option<SmallBytes> {
        Some(name.into())
    }

    fn write(accesses: &mut Accesses, name: &str, left: &str) {
        accesses.note_write(&key(name));
        accesses.written.write(key(name), Some(FoundDigest::of_value(value(left).as_ref())));
    }

    #[test]
    fn what_a_closed_child_learnt_and_wrote_is_forgotten_with_it() {
        let mut accesses = Accesses::default();
        accesses.note_found(key("a"), value("1"));
        write(&mut accesses, "a", "2");
        let from = accesses.mark();
        accesses.note_found(key("b"), value("1"));
        write(&mut accesses, "a", "3");
        write(&mut accesses, "a", "4");
        write(&mut accesses, "b", "2");
        accesses.undo_to(from);
        assert_eq!(accesses.before.value(&key("a")), value("1"));
        assert!(!accesses.before.has(&key("b")), "it may be of another snapshot");
        let left = |name| accesses.written.value(&key(name));
        assert_eq!(left("a"), Some(Some(FoundDigest::of_value(value("2").as_ref()))));
        assert_eq!(left("b"), None);
        // Found by the next attempt.
        accesses.note_found(key("b"), value("5"));
        accesses.note_found(key("a"), value("9"));
        assert_eq!(accesses.before.value(&key("b")), value("5"));
        assert_eq!(accesses.before.value(&key("a")), value("1"), "what was found first counts");
        accesses.undo_to(ChildMark(0));
        assert!(!accesses.before.has(&key("a")) && accesses.written.is_empty());
    }

    #[test]
    #[should_panic(expected = "is of a child that has ended")]
    fn a_mark_that_is_not_reached_any_more_is_nobodys() {
        let mut accesses = Accesses::default();
        accesses.note_found(key("a"), None);
        let from = accesses.mark();
        accesses.undo_to(ChildMark(0));
        accesses.undo_to(from);
    }
}
