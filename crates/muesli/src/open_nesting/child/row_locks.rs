//! Open children that lock the rows which they use, and put back what they wrote.
//!
//! Such a child needs nobody who knows what its operation means: each row that it has read or
//! written has an abstract lock of its own, and so has each space that it has read a range of, for
//! the rows that are not there. Until its transaction ends nobody else who locks rows writes one
//! of them or sees one that it wrote, and so its compensation is what those were before.

use std::sync::LazyLock;

use muesli_core::{Catalog, Index, SmallBytes, SpaceId};
use xxhash_rust::xxh3::xxh3_128;

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

/// The name of a row's lock. Of a key that is too long for a name its hash stands there: two may
/// then be in each other's way that need not be.
fn row_lock((space, key): &SpaceKey, limit: usize) -> Vec<u8> {
    let mut id = [ROW, &space.0.to_be_bytes()].concat();
    match id.len() + key.len() <= limit {
        true => id.extend_from_slice(key.as_slice()),
        false => id.extend_from_slice(&xxh3_128(key.as_slice()).to_be_bytes()),
    }
    id
}

fn range_lock(space: SpaceId) -> Vec<u8> {
    [SPACE, &space.0.to_be_bytes()].concat()
}

fn range_mode(name: &str) -> LockMode {
    RANGES.mode(name).expect("the matrix has it")
}

/// The locks of these rows, each once in each mode.
fn locks_of(used: &UsedRows, catalog: Option<&Catalog>, limit: usize) -> Vec<(Vec<u8>, LockMode)> {
    let has_ranges = |space: SpaceId| {
        let found = catalog.and_then(|catalog| catalog.space(space));
        found.is_none_or(|space| space.options.index == Index::Ordered)
    };
    let is_written = |key: &SpaceKey| used.written.iter().any(|row| row.key == *key);
    let read = used.read.iter().filter(|key| !is_written(key));
    let mut locks: Vec<_> = read.map(|key| (row_lock(key, limit), LockMode::read())).collect();
    for row in &used.written {
        locks.push((row_lock(&row.key, limit), LockMode::write()));
    }
    let mut spaces: Vec<SpaceId> = used.written.iter().map(|row| row.key.0).collect();
    spaces.dedup(); // They are in the order of their keys.
    let changed = spaces.into_iter().filter(|space| has_ranges(*space));
    locks.extend(changed.map(|space| (range_lock(space), range_mode("write"))));
    locks.extend(used.scanned.iter().map(|space| (range_lock(*space), range_mode("scan"))));
    locks
}

impl OpenTx {
    /// The locks of the rows that its level has used, looked at but not taken.
    pub(super) fn row_locks(&self, used: &UsedRows) -> Vec<(Vec<u8>, LockMode)> {
        let limit = self.layer.nesting.limits.lock_bytes;
        let mut locks = locks_of(used, self.raw.catalog().as_deref(), limit);
        if !self.layer.nesting.holds(NestingSwitch::LockRanges) {
            locks.retain(|(id, _)| !id.starts_with(SPACE));
        }
        locks
    }

    /// The body of a child that locks rows has ended well: takes its locks, which are looked at in
    /// one round trip, and registers what is to be put back.
    ///
    /// # Errors
    /// A lock was refused, or it is over a limit; [`Error::Nesting`], the body has registered a
    /// compensation itself.
    pub(super) async fn lock_rows(&self, how: &ChildPlan) -> Result<(), Error> {
        if !how.locks_rows {
            return Ok(());
        }
        if self.handed().handlers.on_abort.is_some() || how.handlers.on_abort.is_some() {
            let text = "an open child that locks rows puts back what it wrote, and registers a \
                        compensation beside: leave out one of them";
            return Err(self.scope.level.blame(Error::Nesting(text.to_owned())));
        }
        let used = self.level.used_rows();
        let locks = self.row_locks(&used);
        self.layer.nesting.limits.check_scope(0, locks.len())?;
        let keys: Vec<SmallBytes> = locks.iter().map(|(id, _)| lock_key(id)).collect();
        let found = self.layer.nesting.rows.read_all(&self.raw, keys).await;
        pass_conflict(&self.raw, &self.tx);
        self.ahead.add(found?);
        for (id, mode) in locks {
            self.take(HeldLock { id, hold: false }, &mode).await?;
        }
        if !used.written.is_empty() {
            let rows: Vec<_> = used.written.into_iter().map(RowToPutBack::from).collect();
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
        let written = |key| WrittenRow { key, before: None, left: FoundDigest::of_value(None) };
        let used = UsedRows {
            read: [key(1, "a"), key(1, "b"), key(2, "a")].into(),
            scanned: [SpaceId(2)].into(),
            written: vec![written(key(1, "b")), written(key(1, "c"))],
        };
        let expected = [
            (row_lock(&key(1, "a"), 64), LockMode::read()),
            (row_lock(&key(2, "a"), 64), LockMode::read()),
            (row_lock(&key(1, "b"), 64), LockMode::write()),
            (row_lock(&key(1, "c"), 64), LockMode::write()),
            (range_lock(SpaceId(1)), range_mode("write")),
            (range_lock(SpaceId(2)), range_mode("scan")),
        ];
        assert_eq!(locks_of(&used, None, 64), expected);
        assert!(!range_mode("scan").goes_with(&range_mode("write")));
    }

    #[test]
    fn a_key_that_is_too_long_for_a_name_is_named_by_its_hash() {
        let long = "x".repeat(100);
        let name = row_lock(&key(1, &long), 64);
        assert!(name.len() <= 64 && name != row_lock(&key(1, &long[1..]), 64));
        assert_eq!(row_lock(&key(1, "ab"), 64), [ROW, &[0, 1], b"ab"].concat());
    }
}
