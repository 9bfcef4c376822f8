//! What the layer keeps in its space, so that whoever comes can go on with what a client left.
//!
//! | key | row | who writes it |
//! | --- | --- | --- |
//! | `s` scope | [`ScopeRow`]: what its open children handed to it | these, and who ends it |
//! | `e` scope | [`ScopeEnd`]; absent while it runs | its own commit, or who aborts it |
//! | `l` lock | the holders of an abstract lock | open children, and who ends a scope |
//! | `o` scope | [`OpenScopes`]: open children of it that have open children | these have |
//!
//! The end has a row of its own because a transaction reads what was there when it began: the row
//! of a scope changes with each open child, and the transaction whose scope it is could never
//! read it. The end is absent until somebody decides it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use muesli_core::SmallBytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// The scope that open children hand their locks and handlers to: one attempt of a transaction
/// that has open children. Drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScopeId(pub(super) u128);

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// How a scope ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ScopeEnd {
    /// Its transaction committed: commit handlers, then the locks go.
    Committed,
    /// Compensations, then the locks go.
    Aborted,
}

/// A handler's name and its arguments as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HandlerCall {
    pub name: String,
    pub arguments: Vec<u8>,
}

/// What an open child that has committed left to its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChildRecord {
    /// Counted within the scope, so that nobody runs the handlers of another one in its place.
    pub number: u64,
    pub on_abort: Option<HandlerCall>,
    pub on_commit: Option<HandlerCall>,
    /// The child's own scope, if it had open children itself: that is ended first.
    pub scope: Option<ScopeId>,
}

/// An abstract lock that a scope holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldLock {
    pub id: Vec<u8>,
    /// When the scope commits it passes to the scope above instead of being released.
    pub hold: bool,
}

/// What the open children of a scope left to it.
///
/// Invariants: numbers of records rise and are below `next_number`; a lock is named once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScopeRow {
    /// The scope that it is an open child of.
    pub parent: Option<ScopeId>,
    /// Changed by everybody who goes on with it: a scope whose row stays as it is makes no
    /// progress.
    pub progress: u64,
    pub next_number: u64,
    /// Those whose handlers are still to be run, in the order in which the children committed.
    pub records: Vec<ChildRecord>,
    pub locks: Vec<HeldLock>,
}

impl ScopeRow {
    /// Which record is to be worked on next: the newest one that has a compensation, or the oldest
    /// one that has a commit handler, or whose child has a scope that may have to be ended.
    pub fn next(&self, end: ScopeEnd) -> Option<usize> {
        let handler = |record: &ChildRecord| match end {
            ScopeEnd::Committed => record.on_commit.is_some(),
            ScopeEnd::Aborted => record.on_abort.is_some(),
        };
        let work = |record: &ChildRecord| handler(record) || record.scope.is_some();
        match end {
            ScopeEnd::Committed => self.records.iter().position(work),
            ScopeEnd::Aborted => self.records.iter().rposition(work),
        }
    }

    /// A lock is held from now on.
    pub fn hold(&mut self, lock: &HeldLock) {
        match self.locks.iter_mut().find(|held| held.id == lock.id) {
            Some(held) => held.hold |= lock.hold,
            None => self.locks.push(lock.clone()),
        }
    }

    /// A child has committed.
    pub fn push(&mut self, record: ChildRecord) {
        self.records.push(ChildRecord { number: self.next_number, ..record });
        self.next_number += 1;
        self.progress += 1;
        self.assert_invariants();
    }

    pub fn assert_invariants(&self) {
        let rise = self.records.is_sorted_by(|a, b| a.number < b.number);
        assert!(rise, "records are in the order of their numbers: {self:?}");
        let last = self.records.last().map_or(0, |record| record.number + 1);
        assert!(last <= self.next_number, "numbers are given out by the row: {self:?}");
        let names: BTreeSet<&[u8]> = self.locks.iter().map(|lock| &lock.id[..]).collect();
        assert_eq!(names.len(), self.locks.len(), "a lock is named once: {self:?}");
    }
}

/// The open children of a scope that have open children themselves, and have not ended; absent
/// where there are none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct OpenScopes(pub Vec<ScopeId>);

/// Rows that were read together, to be asked for by their keys.
#[derive(Debug, Default)]
pub(super) struct FoundRows(BTreeMap<SmallBytes, Option<SmallBytes>>);

impl FoundRows {
    /// Takes out what was found of a key.
    ///
    /// # Errors
    /// [`Error::Codec`]: the layer did not write it.
    pub fn take<T: DeserializeOwned>(&mut self, key: &SmallBytes) -> Result<KnownRow<T>, Error> {
        let Some(row) = self.0.remove(key) else { return Ok(KnownRow::NotRead) };
        Ok(KnownRow::Row(row.map(|row| decode(key, &row)).transpose()?))
    }

    /// Whether a key was read.
    pub fn has(&self, key: &SmallBytes) -> bool {
        self.0.contains_key(key)
    }

    /// What was found of a key that was read, which stays.
    ///
    /// # Errors
    /// [`Error::Codec`]: the layer did not write it.
    pub fn look<T: DeserializeOwned>(&self, key: &SmallBytes) -> Result<Option<T>, Error> {
        let row = self.0.get(key).expect("it is one of those that are read");
        row.as_ref().map(|row| decode(key, row)).transpose()
    }

    /// Adds others; of a key that is there in both what those say.
    pub fn append(&mut self, mut others: FoundRows) {
        self.0.append(&mut others.0);
    }

    /// The same as [`take`](Self::take), of a key that was read.
    ///
    /// # Errors
    /// As there.
    pub fn row<T: DeserializeOwned>(&mut self, key: &SmallBytes) -> Result<Option<T>, Error> {
        match self.take(key)? {
            KnownRow::Row(row) => Ok(row),
            KnownRow::NotRead => panic!("key `{key:?}` is one of those that are read"),
        }
    }
}

/// What is known of a row.
pub(super) enum KnownRow<T> {
    /// It was read, and is this; `None`: absent.
    Row(Option<T>),
    NotRead,
}

/// The rows of the layer in its space.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerRows {
    pub space: Space,
}

/// What a key begins with.
pub(super) const SCOPE: u8 = b's';
pub(super) const END: u8 = b'e';
pub(super) const LOCK: u8 = b'l';
pub(super) const OPEN: u8 = b'o';

fn key(kind: u8, parts: &[&[u8]]) -> SmallBytes {
    let mut key = vec![kind];
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key.into()
}

pub(super) fn scope_key(id: ScopeId) -> SmallBytes {
    key(SCOPE, &[&id.0.to_be_bytes()])
}

pub(super) fn end_key(id: ScopeId) -> SmallBytes {
    key(END, &[&id.0.to_be_bytes()])
}

pub(super) fn lock_key(id: &[u8]) -> SmallBytes {
    key(LOCK, &[id])
}

/// The open children of a scope that have open children themselves.
pub(super) fn open_key(id: ScopeId) -> SmallBytes {
    key(OPEN, &[&id.0.to_be_bytes()])
}

/// The last scope that a key names.
pub(super) fn scope_of(key: &SmallBytes) -> Result<ScopeId, Error> {
    let bytes = key.as_slice().last_chunk::<16>();
    let id = bytes.map(|bytes| ScopeId(u128::from_be_bytes(*bytes)));
    id.ok_or_else(|| Error::Codec(format!("open nesting, key `{key:?}`: no scope")))
}

/// # Errors
/// [`Error::Codec`]: the layer did not write it.
pub(super) fn decode<T: DeserializeOwned>(key: &SmallBytes, row: &SmallBytes) -> Result<T, Error> {
    postcard::from_bytes(row.as_slice()).map_err(|error| {
        Error::Codec(format!("open nesting, key `{key:?}`: this is no row of the layer: {error}"))
    })
}

pub(super) fn encode<T: Serialize>(row: &T) -> Result<Vec<u8>, Error> {
    postcard::to_stdvec(row).map_err(|error| Error::Codec(format!("open nesting: {error}")))
}

impl LayerRows {
    pub async fn read<T: DeserializeOwned>(
        &self,
        tx: &Tx,
        key: SmallBytes,
    ) -> Result<Option<T>, Error> {
        let row = tx.get(self.space, key.clone()).await?;
        row.map(|row| decode(&key, &row)).transpose()
    }

    pub async fn write<T: Serialize>(
        &self,
        tx: &Tx,
        key: SmallBytes,
        row: &T,
    ) -> Result<(), Error> {
        tx.put(self.space, key, encode(row)?).await
    }

    pub async fn delete(&self, tx: &Tx, key: SmallBytes) -> Result<(), Error> {
        tx.delete(self.space, key).await
    }

    /// Several rows at once, those that live elsewhere in parallel.
    pub async fn read_all(&self, tx: &Tx, keys: Vec<SmallBytes>) -> Result<FoundRows, Error> {
        let found = tx.get_many(self.space, keys.clone()).await?;
        Ok(FoundRows(keys.into_iter().zip(found).collect()))
    }

    /// Adds a scope to the open children of another one that have open children themselves, or
    /// takes it from them; `row` is those that there are.
    pub async fn change_open(
        &self,
        tx: &Tx,
        parent: ScopeId,
        row: OpenScopes,
        change: impl FnOnce(&mut Vec<ScopeId>),
    ) -> Result<(), Error> {
        let OpenScopes(mut scopes) = row;
        change(&mut scopes);
        match scopes.is_empty() {
            true => self.delete(tx, open_key(parent)).await,
            false => self.write(tx, open_key(parent), &OpenScopes(scopes)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(on_abort: bool, on_commit: bool, scope: bool) -> ChildRecord {
        let call = |name: &str| HandlerCall { name: name.to_owned(), arguments: Vec::new() };
        ChildRecord {
            number: 0,
            on_abort: on_abort.then(|| call("abort")),
            on_commit: on_commit.then(|| call("commit")),
            scope: scope.then_some(ScopeId(7)),
        }
    }

    #[test]
    fn compensations_are_newest_first_and_commit_handlers_oldest_first() {
        let mut row = ScopeRow::default();
        let kinds = [(false, true), (true, false), (true, true), (false, false)];
        kinds.into_iter().for_each(|(abort, commit)| row.push(record(abort, commit, false)));
        assert_eq!(
            (row.next(ScopeEnd::Aborted), row.next(ScopeEnd::Committed)),
            (Some(2), Some(0))
        );
        row.push(record(false, false, true));
        assert_eq!(row.next(ScopeEnd::Aborted), Some(4), "its scope is to be ended first");
        assert_eq!(ScopeRow::default().next(ScopeEnd::Aborted), None);
    }

    #[test]
    fn rows_of_others_are_refused_and_keys_name_their_scope() {
        let (key, id) = (scope_key(ScopeId(5)), ScopeId(u128::MAX - 3));
        assert!(matches!(decode::<ScopeRow>(&key, &"x".into()), Err(Error::Codec(_))));
        assert_eq!(scope_of(&end_key(id)), Ok(id));
        assert!(scope_of(&"o".into()).is_err());
    }
}
