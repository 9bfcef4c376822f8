//! Open children that lock the rows which they use, and put back what they wrote.
//!
//! Such a child needs nobody who knows what its operation means: each row that it has read or
//! written has an abstract lock of its own, and so have the ranges of each space, for the rows that
//! are not there. Until its transaction ends nobody else who locks rows writes one
//! of them or sees one that it wrote, and so its compensation is what those were before.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use muesli_core::{Catalog, Index, SmallBytes, SpaceId};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::error::Error;
use crate::open_nesting::child::OpenTx;
use crate::open_nesting::handed::{ChildPlan, call, pass_conflict};
use crate::open_nesting::layer::NestingSwitch;
use crate::open_nesting::level::{SpaceKey, UsedRows};
use crate::open_nesting::locks::{CompatibilityMatrix, LockMode};
use crate::open_nesting::put_back::{PUT_BACK, RowToPutBack};
use crate::open_nesting::rows::{HeldLock, lock_key};

/// The lock on which rows a space has: those who read ranges go together, and those who write.
static RANGES: LazyLock<CompatibilityMatrix> = LazyLock::new(|| {
    let pairs = [("scan", "scan"), ("write", "write")];
    let matrix = CompatibilityMatrix::new("ranges of rows", &["scan", "write"], &pairs);
    matrix.expect("it has two modes")
});

/// What the name of a lock on a row begins with, and of one on a space's ranges.
const ROW: &[u8] = b"muesli/row";
const SPACE: &[u8] = b"muesli/space";

/// Of a row whose lock's name would be longer, its key's hash stands there: all clients name it so.
const NAME_MOST: usize = 200;

/// So many locks the ranges of a space have. Who writes takes one of them, by the key, and who
/// scans all: those who write to different keys seldom write the row of one lock.
const STRIPES: u8 = 8;

/// The name of a row's lock. Two of long keys may be in each other's way that need not be.
fn row_lock((space, key): &SpaceKey) -> Vec<u8> {
    let mut id = [ROW, &space.0.to_be_bytes()].concat();
    match id.len() + key.len() <= NAME_MOST {
        true => id.extend_from_slice(key.as_slice()),
        false => id.extend_from_slice(&xxh3_128(key.as_slice()).to_be_bytes()),
    }
    id
}

fn range_lock(space: SpaceId, stripe: u8) -> Vec<u8> {
    [SPACE, &space.0.to_be_bytes(), &[stripe]].concat()
}

/// The part of its space's ranges that a key is in.
fn stripe((_, key): &SpaceKey) -> u8 {
    (xxh3_64(key.as_slice()) % u64::from(STRIPES)) as u8
}

fn range_mode(name: &str) -> LockMode {
    RANGES.mode(name).expect("the matrix has it")
}

/// Whether ranges of a space are read: not where a catalog says that it has a hash index.
fn has_ranges(space: SpaceId, catalog: Option<&Catalog>) -> bool {
    let found = catalog.and_then(|catalog| catalog.space(space));
    found.is_none_or(|space| space.options.index == Index::Ordered)
}

/// The locks of these rows, each once in each mode.
///
/// # Errors
/// A range of a space that has a hash index: who writes there takes no lock on ranges.
fn locks_of(
    used: &UsedRows,
    catalog: Option<&Catalog>,
) -> Result<Vec<(Vec<u8>, LockMode)>, String> {
    if let Some(space) = used.scanned.iter().find(|space| !has_ranges(**space, catalog)) {
        return Err(format!(
            "an open child that locks rows reads a range of space number {}, whose index is no \
             ordered one: there, ranges have no locks",
            space.0
        ));
    }
    let written: BTreeSet<&SpaceKey> = used.written.iter().map(|row| &row.key).collect();
    let read = used.read.iter().filter(|key| !written.contains(key));
    let mut locks: Vec<_> = read.map(|key| (row_lock(key), LockMode::read())).collect();
    locks.extend(written.iter().map(|key| (row_lock(key), LockMode::write())));
    let changed = written.iter().filter(|key| has_ranges(key.0, catalog));
    let changed: BTreeSet<_> = changed.map(|key| (key.0, stripe(key))).collect();
    let range = |(space, stripe), mode| (range_lock(space, stripe), range_mode(mode));
    locks.extend(changed.into_iter().map(|at| range(at, "write")));
    let all = used.scanned.iter().flat_map(|space| (0..STRIPES).map(|stripe| (*space, stripe)));
    locks.extend(all.map(|at| range(at, "scan")));
    Ok(locks)
}

impl OpenTx {
    /// The locks of the rows that its level has used, looked at but not taken.
    ///
    /// # Errors
    /// [`Error::Nesting`]: some of them have none.
    pub(super) fn row_locks(&self, used: &UsedRows) -> Result<Vec<(Vec<u8>, LockMode)>, Error> {
        let locks = locks_of(used, self.raw.catalog().as_deref());
        let mut locks = locks.map_err(|text| self.scope.level.blame(Error::Nesting(text)))?;
        if !self.layer.nesting.holds(NestingSwitch::LockRanges) {
            locks.retain(|(id, _)| !id.starts_with(SPACE));
        }
        Ok(locks)
    }

    /// Of a child that locks rows: it registers no compensation itself.
    ///
    /// # Errors
    /// [`Error::Nesting`]: it has.
    pub(super) fn check_row_locks(&self, how: &ChildPlan) -> Result<(), Error> {
        let has_own = self.handed().handlers.on_abort.is_some() || how.handlers.on_abort.is_some();
        if !how.locks_rows || !has_own {
            return Ok(());
        }
        let text = "an open child that locks rows puts back what it wrote, and registers a \
                    compensation beside: leave out one of them";
        Err(self.scope.level.blame(Error::Nesting(text.to_owned())))
    }

    /// The body of a child that locks rows has ended well: takes its locks, which are looked at in
    /// one round trip, and registers what is to be put back.
    ///
    /// # Errors
    /// A lock was refused, or it is over a limit; [`Error::Nesting`].
    pub(super) async fn lock_rows(&self, how: &ChildPlan) -> Result<(), Error> {
        self.check_row_locks(how)?;
        if !how.locks_rows {
            return Ok(());
        }
        let used = self.level.used_rows();
        let locks = self.row_locks(&used)?;
        self.layer.nesting.limits.check_scope(0, locks.len())?;
        let keys: Vec<SmallBytes> = locks.iter().map(|(id, _)| lock_key(id)).collect();
        let found = self.layer.nesting.rows.read_all(&self.raw, keys).await;
        pass_conflict(&self.raw, &self.tx);
        self.ahead.add(found?);
        for (id, mode) in locks {
            self.take(HeldLock { id, hold: false }, &mode).await?;
        }
        if !used.written.is_empty() {
            let rows: Vec<_> = used.written.into_iter().map(RowToPutBack::new).collect();
            self.handed().handlers.on_abort = Some(call(PUT_BACK, &rows)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_nesting::level::{FoundDigest, WrittenRow};

    fn key(space: u16, name: &str) -> SpaceKey {
        (SpaceId(space), name.into())
    }

    #[test]
    fn each_row_and_each_range_has_a_lock_in_the_mode_that_it_was_used_in() {
        let left = Some(FoundDigest::of_value(None));
        let written = |key| WrittenRow { key, before: None, left };
        let used = UsedRows {
            read: [key(1, "a"), key(1, "b"), key(2, "a")].into(),
            scanned: [SpaceId(2)].into(),
            written: vec![written(key(1, "b")), written(key(1, "c"))],
        };
        let mut expected = vec![
            (row_lock(&key(1, "a")), LockMode::read()),
            (row_lock(&key(2, "a")), LockMode::read()),
            (row_lock(&key(1, "b")), LockMode::write()),
            (row_lock(&key(1, "c")), LockMode::write()),
        ];
        let stripes: BTreeSet<_> = ["b", "c"].map(|name| stripe(&key(1, name))).into();
        let changed = stripes.into_iter().map(|it| range_lock(SpaceId(1), it));
        expected.extend(changed.map(|id| (id, range_mode("write"))));
        let all = (0..STRIPES).map(|it| range_lock(SpaceId(2), it));
        expected.extend(all.map(|id| (id, range_mode("scan"))));
        assert_eq!(locks_of(&used, None), Ok(expected));
        assert!(!range_mode("scan").goes_with(&range_mode("write")));
    }

    #[test]
    fn a_key_that_is_too_long_for_a_name_is_named_by_its_hash() {
        let long = "x".repeat(1_000);
        let name = row_lock(&key(1, &long));
        assert!(name.len() <= NAME_MOST && name != row_lock(&key(1, &long[1..])));
        assert_eq!(row_lock(&key(1, "ab")), [ROW, &[0, 1], b"ab"].concat());
    }
}
