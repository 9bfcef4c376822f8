//! Timestamp leases: what a client may have seen is on its disk before it sees it.
//!
//! A client carries the largest timestamp that it has seen (the thesis on Granola calls it
//! `highTS`) in each request, so that what it does lies after that. A client that is ended and
//! starts again has lost it. With a timestamp lease (Cowling, section 5.2.2, last part) its file
//! names a timestamp, the *end* of the lease, and no answer with a larger one is taken before a
//! new lease that covers it is written and synced. So a client that starts again lies after all
//! that it had seen if it begins at the end of the lease, whatever the clocks say. A lease goes
//! ahead of what is seen, so that there is one write for many answers.
//!
//! What is compared is not the answer's own timestamp, but the largest that its sender knows to be
//! issued, which members say to clients with every message
//! ([`issuance`](muesli_core::issuance)): nothing that a message tells lies above it.
//!
//! The file holds a header, as `small_files` has it (`MuesTsLe`, and the version
//! [`formats::LEASE`]), the cluster and the end. A file of the same name with the ending `.lock` is
//! locked for as long as a client uses the lease; one with the ending `.new` is the next lease as
//! it is being written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use muesli_core::wire::Wire;
use muesli_core::{RepositoryId, Timestamp, wire_struct};
use thiserror::Error;

use crate::formats;
use crate::storage::small_files::{self, FileLock, Format, UnfitFile};
use crate::wire::ids::ClusterId;

const FORMAT: Format = Format { magic: b"MuesTsLe", version: formats::LEASE };

/// Why a timestamp lease cannot be used.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// The system refused.
    #[error("the timestamp lease {path} cannot be read or written: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// Another client uses it.
    #[error(
        "the timestamp lease {path} is in use: another client holds {path}.lock; nothing was \
         changed. Close that client, or give each client a file of its own"
    )]
    InUse {
        /// The file.
        path: String,
    },
    /// The file is not what was written.
    #[error(
        "the timestamp lease {path} is damaged: {why}; nothing was changed. What this client had \
         seen before is not known any more. Put back the file as it was; or, to go on without \
         knowing (the client may then miss what it had seen or written itself), remove it"
    )]
    Damaged {
        /// The file.
        path: String,
        /// How.
        why: String,
    },
    /// The file is of another version.
    #[error(
        "{path} is of version {found} of a timestamp lease, and this program ({}) reads version \
         {reads}. Nothing is damaged and nothing was changed: keep the file, and use a program \
         that reads version {found} (docs/running/compatibility.md)",
        formats::PROGRAM
    )]
    Version {
        /// The file.
        path: String,
        /// The version that was found.
        found: u32,
        /// The version that is read here.
        reads: u32,
    },
    /// The lease is of another cluster's timestamps.
    #[error(
        "the timestamp lease {path} is of cluster {before}, not of {now}; nothing was changed. \
         Connect to cluster {before}, or give another file"
    )]
    Cluster {
        /// The file.
        path: String,
        /// Whose it is.
        before: u64,
        /// What was connected to.
        now: u64,
    },
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    cluster: ClusterId,
    end: Timestamp,
}

wire_struct!(Lease { cluster: ClusterId, end: Timestamp });

/// The lease of a client, locked for as long as this is there.
#[derive(Debug)]
pub(crate) struct TimestampLease {
    path: PathBuf,
    cluster: ClusterId,
    /// A new lease goes so many steps beyond what it has to cover.
    ahead: u64,
    /// As the file on the disk says, or at most that.
    end: Timestamp,
    /// The largest timestamp that the client may have seen, in this life or an earlier one.
    seen: Timestamp,
    _lock: FileLock,
}

impl TimestampLease {
    /// The lease in the file at `path`, of a client of this cluster. Where there is no file, the
    /// client has seen nothing, and a lease that says so is written.
    ///
    /// # Errors
    /// The file is in use, damaged, of another version or of another cluster, or the system
    /// refuses; then nothing was changed.
    pub fn open(path: &Path, cluster: ClusterId, ahead: u64) -> Result<TimestampLease, LeaseError> {
        let io_error = |error| io_error(path, error);
        muesli_log::disk::directory::create_synced(small_files::folder_of(path))
            .map_err(io_error)?;
        let lock = small_files::lock(&small_files::beside(path, ".lock")).map_err(io_error)?;
        let in_use = || LeaseError::InUse { path: path.display().to_string() };
        let lock = lock.ok_or_else(in_use)?;
        let found = read(path)?;
        if let Some(before) = found.filter(|found| found.cluster != cluster) {
            let (path, before) = (path.display().to_string(), before.cluster.0);
            return Err(LeaseError::Cluster { path, before, now: cluster.0 });
        }
        let end = found.map_or(Timestamp::ZERO, |found| found.end);
        let path = path.to_owned();
        let mut lease = TimestampLease { path, cluster, ahead, end, seen: end, _lock: lock };
        if found.is_none() {
            lease.write(end)?;
        }
        Ok(lease)
    }

    /// Where it ends: nothing that the client has seen lies above.
    pub fn end(&self) -> Timestamp {
        self.end
    }

    /// The client is about to see `at`, or less: when this returns, a lease that covers it is on
    /// the disk.
    ///
    /// # Errors
    /// None could be written: nothing of what lies above the end may be seen.
    pub fn cover(&mut self, at: Timestamp) -> Result<(), LeaseError> {
        if at > self.end {
            let end = at.after(self.ahead, RepositoryId(0)).max(at).min(Timestamp::FARTHEST);
            self.write(end.max(at))?;
        }
        self.seen = self.seen.max(at);
        Ok(())
    }

    /// The client ends in an orderly way: what it has seen is known, so the lease need not go
    /// ahead of that, and the next start need not wait until servers have come so far.
    ///
    /// # Errors
    /// The system refused; the longer lease or the shorter one is there, and both are right.
    pub fn give_back(&mut self) -> Result<(), LeaseError> {
        if self.seen < self.end { self.write(self.seen) } else { Ok(()) }
    }

    fn write(&mut self, end: Timestamp) -> Result<(), LeaseError> {
        let lease = Lease { cluster: self.cluster, end };
        let written = small_files::replace(&self.path, &FORMAT.file(&lease));
        written.map_err(|error| io_error(&self.path, error))?;
        self.end = end;
        Ok(())
    }
}

fn read(path: &Path) -> Result<Option<Lease>, LeaseError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(path, error)),
    };
    let shown = path.display().to_string();
    let damaged = |why: String| LeaseError::Damaged { path: shown.clone(), why };
    let body = FORMAT.body(&bytes).map_err(|unfit| match unfit {
        UnfitFile::Version(found) => {
            LeaseError::Version { path: shown.clone(), found, reads: formats::LEASE }
        }
        UnfitFile::Damaged(why) => damaged(why.to_owned()),
    })?;
    let lease = Lease::decode_all(body).map_err(|why| damaged(why.to_string()))?;
    if lease.end > Timestamp::FARTHEST {
        return Err(damaged("its end is no timestamp that a server may issue".to_owned()));
    }
    Ok(Some(lease))
}

fn io_error(path: &Path, error: io::Error) -> LeaseError {
    LeaseError::Io { path: path.display().to_string(), error }
}

/// A lease as the golden files have it.
#[cfg(test)]
pub(crate) fn golden() -> Vec<u8> {
    FORMAT.file(&Lease { cluster: ClusterId(1), end: Timestamp::new(2, RepositoryId(3)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: ClusterId = ClusterId(1);

    fn at(counter: u64) -> Timestamp {
        Timestamp::new(counter, RepositoryId(7))
    }

    fn open(path: &Path) -> Result<TimestampLease, LeaseError> {
        TimestampLease::open(path, OURS, 100)
    }

    fn refused(path: &Path) -> String {
        open(path).unwrap_err().to_string()
    }

    /// What a client that is ended now, in the middle of whatever it does, finds when it starts
    /// again.
    fn on_disk(path: &Path) -> Timestamp {
        read(path).unwrap().expect("a lease").end
    }

    #[test]
    fn what_is_covered_is_on_the_disk_and_a_range_is_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below/lease");
        let mut lease = open(&path).unwrap();
        assert_eq!((lease.end(), on_disk(&path)), (Timestamp::ZERO, Timestamp::ZERO));
        let (mut ends, mut before) = (0, Timestamp::ZERO);
        for counter in 1..=1_000 {
            lease.cover(at(counter)).unwrap();
            lease.cover(at(counter / 2)).unwrap();
            let end = on_disk(&path);
            assert!(end >= at(counter) && end >= before && end == lease.end());
            ends += u32::from(end != before);
            before = end;
        }
        assert_eq!(ends, 10, "one write for each range");
        drop(lease);
        let again = open(&path).unwrap();
        assert!(again.end() >= at(1_000), "after a crash, the lease begins at its end");
        assert_eq!(again.end(), before);
    }

    #[test]
    fn a_lease_that_is_given_back_ends_where_the_client_has_seen_and_never_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let mut lease = open(&path).unwrap();
        lease.cover(at(5)).unwrap();
        lease.give_back().unwrap();
        drop(lease);
        assert_eq!(on_disk(&path), at(5));
        // Its next life has seen less itself, but begins where this one ended.
        let mut lease = open(&path).unwrap();
        lease.cover(at(3)).unwrap();
        lease.give_back().unwrap();
        assert_eq!(on_disk(&path), at(5));
    }

    #[test]
    fn a_write_that_fails_covers_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let mut lease = open(&path).unwrap();
        lease.cover(at(5)).unwrap();
        let before = lease.end();
        fs::create_dir(dir.path().join("lease.new")).unwrap();
        let error = lease.cover(at(1_000)).unwrap_err().to_string();
        assert!(error.contains("lease cannot be read or written"), "{error}");
        assert_eq!((lease.end(), on_disk(&path)), (before, before));
        assert!(lease.cover(before).is_ok(), "what is covered already");
        fs::remove_dir(dir.path().join("lease.new")).unwrap();
        lease.cover(at(1_000)).unwrap();
        assert!(on_disk(&path) >= at(1_000));
    }

    #[test]
    fn a_lease_is_of_one_client_at_a_time_and_of_one_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let lease = open(&path).unwrap();
        let error = refused(&path);
        assert!(error.contains("is in use") && error.contains("file of its own"), "{error}");
        drop(lease);
        assert!(open(&path).is_ok());
        let other = TimestampLease::open(&path, ClusterId(9), 100).unwrap_err().to_string();
        assert!(other.contains("of cluster 1, not of 9"), "{other}");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed_and_nothing_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        open(&path).unwrap().cover(at(5)).unwrap();
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let error = open(&path).unwrap_err();
            let is_version = matches!(error, LeaseError::Version { .. });
            assert_eq!(is_version, (64..96).contains(&bit), "bit {bit}: {error}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let error = refused(&path);
            assert!(error.contains("is damaged") && error.contains("remove it"), "{error}");
        }
        fs::write(&path, &whole).unwrap();
        assert!(open(&path).is_ok());
        let newer = Format { version: formats::LEASE + 1, ..FORMAT };
        fs::write(&path, newer.file(&Lease { cluster: OURS, end: at(1) })).unwrap();
        let error = refused(&path);
        assert!(error.contains("version 2 of a timestamp lease"), "{error}");
        assert!(error.contains("reads version 1") && !error.contains("remove"), "{error}");
        fs::write(&path, FORMAT.file(&Lease { cluster: OURS, end: Timestamp::MAX })).unwrap();
        assert!(refused(&path).contains("no timestamp that a server may issue"));
    }

    #[test]
    fn a_lease_reaches_as_far_as_timestamps_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let mut lease = open(&path).unwrap();
        lease.cover(Timestamp(Timestamp::FARTHEST.0 - 1)).unwrap();
        assert_eq!(lease.end(), Timestamp::FARTHEST);
        lease.cover(Timestamp::FARTHEST).unwrap();
        assert_eq!(on_disk(&path), Timestamp::FARTHEST);
    }
}
