//! What a durable database keeps, and when that is on the disk.

use std::path::PathBuf;
use std::time::Duration;

/// An embedded database whose data last: where its files are, and how they are kept.
///
/// The files are those of a server: a log with checkpoints for each loop. So `muesli start` serves
/// what an embedded database has left in a folder, and an embedded database opens what a server of
/// one process has left there, if protocol, repositories and loops are the same.
///
/// ```
/// use std::time::Duration;
///
/// use muesli::{Db, Durable, Error, Options, SpaceOptions, SyncPolicy};
///
/// # fn main() -> Result<(), Error> {
/// # let folder = std::env::temp_dir().join(format!("muesli-durable-{}", std::process::id()));
/// let sync = SyncPolicy::Every(Duration::from_millis(10));
/// let durable = Durable { sync, ..Durable::at(&folder) };
/// let options = Options { durable: Some(durable), ..Options::default() };
/// let db = Db::open(options.space("notes", SpaceOptions::default()))?;
/// let notes = db.space("notes")?;
/// db.blocking().transact(async move |tx| tx.put(notes, "a", "b").await)?;
/// db.close();
///
/// let db = Db::open(Options::default().durable(&folder))?;
/// let notes = db.space("notes")?; // Spaces are kept, too.
/// let found = db.blocking().transact(async move |tx| tx.get(notes, "a").await)?;
/// assert_eq!(found, Some("b".into()));
/// # drop(db);
/// # std::fs::remove_dir_all(folder).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Durable {
    /// The folder, made if it is not there. One process at a time can use it.
    pub path: PathBuf,
    /// When commits are on the disk.
    pub sync: SyncPolicy,
    /// A file of a log that has grown to so many bytes is followed by another one; 65536 (64 KiB)
    /// to 4294967296 (4 GiB).
    pub segment_bytes: u64,
    /// When a log has grown by so many bytes of records, a checkpoint begins, and what it covers is
    /// removed from the log; 0: never.
    pub checkpoint_bytes: u64,
    /// With more bytes than this waiting for the disk, a loop takes no new work.
    pub backlog_bytes: usize,
    /// Nothing of the folder is changed, not a byte: it is opened as it was left, others may read
    /// it meanwhile, nobody may open it otherwise, and whatever would write is refused with
    /// [`Error::ReadOnly`](crate::Error::ReadOnly). A database must be there.
    pub read_only: bool,
    /// Where what is found at the opening is reported, a line each: how many records, and whether
    /// the last of them broke off.
    pub notice: fn(&str),
    /// For tests: a file that says how the disk is to misbehave.
    #[doc(hidden)]
    pub trouble: Option<PathBuf>,
}

impl Durable {
    /// The files in this folder, as they are kept usually: a commit is answered once it is on the
    /// disk.
    pub fn at(path: impl Into<PathBuf>) -> Durable {
        Durable {
            path: path.into(),
            sync: SyncPolicy::Always,
            segment_bytes: 64 << 20,
            checkpoint_bytes: 256 << 20,
            backlog_bytes: 64 << 20,
            read_only: false,
            notice: |_| {},
            trouble: None,
        }
    }
}

/// When the commits of a durable database are on the disk, and so what a crash can lose.
///
/// Whatever is lost, it is the newest of each loop: what is there of a loop's commits is all of
/// them up to one. No transaction is there in part under any of these: what the parts of one say to
/// each other waits for the disk always. So a transaction over several repositories takes about as
/// long under each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// A commit is answered once it is on the disk, as are those that are asked for meanwhile, by
    /// one sync. A crash loses nothing that was answered.
    #[default]
    Always,
    /// A commit is answered at once, and synced within so long. A loss of power, or a crash of the
    /// system, loses what was committed in that time and during the sync after it. A process that
    /// is killed loses what was committed in the last milliseconds.
    Every(Duration),
    /// A commit is answered at once, and the system is left to write it: the log is synced only
    /// where something is said to another repository, by checkpoints, as a file is full, and when
    /// the database is closed. A loss of power loses what was committed since then. A process that
    /// is killed loses what was committed in the last milliseconds.
    Never,
}

impl SyncPolicy {
    /// Whether commits are answered before they are on the disk.
    pub(crate) fn answers_at_once(self) -> bool {
        self != SyncPolicy::Always
    }
}
