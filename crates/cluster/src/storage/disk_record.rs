//! All changes of a disk in their order, for tests that open it as it was after each of them.
//!
//! ```text
//! kind u8 | name | other name | number u64 | bytes
//! ```
//!
//! Names and bytes have their length u32 before them. Kinds: 1 creates a file, 2 writes bytes at an
//! offset, 3 sets a length, 4 syncs, 5 renames, 6 removes, 7 syncs the directory. What failed is
//! there as well: it may have been done in part.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A change of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskChange<'a> {
    Create(&'a str),
    Write(&'a str, u64, &'a [u8]),
    SetLength(&'a str, u64),
    Sync(&'a str),
    Rename(&'a str, &'a str),
    Remove(&'a str),
    SyncDirectory,
}

impl DiskChange<'_> {
    fn bytes(self) -> Vec<u8> {
        let (kind, name, other, number, bytes): (u8, &str, &str, u64, &[u8]) = match self {
            DiskChange::Create(name) => (1, name, "", 0, &[]),
            DiskChange::Write(name, offset, bytes) => (2, name, "", offset, bytes),
            DiskChange::SetLength(name, length) => (3, name, "", length, &[]),
            DiskChange::Sync(name) => (4, name, "", 0, &[]),
            DiskChange::Rename(from, to) => (5, from, to, 0, &[]),
            DiskChange::Remove(name) => (6, name, "", 0, &[]),
            DiskChange::SyncDirectory => (7, "", "", 0, &[]),
        };
        let mut out = vec![kind];
        let mut put = |bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        put(name.as_bytes());
        put(other.as_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
        out
    }
}

/// Where changes are recorded. Clones record in the same order.
#[derive(Clone, Debug)]
pub(crate) struct DiskRecord(Arc<Mutex<File>>);

impl DiskRecord {
    /// A record in this file, which is made if it is not there.
    pub fn open(path: &Path) -> io::Result<DiskRecord> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(DiskRecord(Arc::new(Mutex::new(file))))
    }

    /// Records a change, and makes it: nothing comes in between.
    pub fn make<T>(
        &self,
        change: DiskChange<'_>,
        made: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&change.bytes())?;
        made()
    }
}
