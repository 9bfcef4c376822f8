//! Databases in folders that nobody has opened: how they are to be opened, and whether all of them
//! is as it was written.

use std::path::{Path, PathBuf};

use muesli_cluster::storage::stopped::stored::StoredDatabase;
use muesli_cluster::storage::stopped::verify::{VerifiedLoop, verify};
use muesli_core::Settings;

use crate::database::handle::Db;
use crate::durable::Durable;
use crate::error::Error;
use crate::options::Options;

impl Options {
    /// The options with which the database in a folder is opened as it is: its protocol, its loops
    /// and repositories, and its spaces. Nothing is changed.
    ///
    /// ```
    /// # use muesli::{Db, Durable, Error, Options, SpaceOptions};
    /// # fn main() -> Result<(), Error> {
    /// # let folder = std::env::temp_dir().join(format!("muesli-stored-{}", std::process::id()));
    /// let made = Options { repositories: 3, protocol: "gmu".to_owned(), ..Options::default() };
    /// let made = made.durable(&folder).space("notes", SpaceOptions::default());
    /// Db::open(made)?.close();
    ///
    /// let options = Options::stored(&folder)?;
    /// assert_eq!((options.repositories, &*options.protocol), (3, "gmu"));
    /// let durable = Durable { read_only: true, ..Durable::at(&folder) };
    /// let db = Db::open(Options { durable: Some(durable), ..options })?;
    /// let notes = db.space("notes")?;
    /// let refused = db.blocking().transact(async move |tx| tx.put(notes, "a", "b").await);
    /// assert_eq!(refused, Err(Error::ReadOnly));
    /// # drop(db);
    /// # std::fs::remove_dir_all(folder).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`]: there is no database, somebody has it open to write, or it is one of
    /// servers in groups or with a tree of validators.
    pub fn stored(path: impl Into<PathBuf>) -> Result<Options, Error> {
        let path = path.into();
        let stored = StoredDatabase::look(&path).map_err(storage_error)?;
        let StoredDatabase { protocol, loops, masters, repositories, replicas, .. } = stored;
        Ok(Options {
            protocol,
            loops,
            masters,
            repositories,
            replicas,
            partitions_per_repository: stored.partitions_per_repository,
            spaces: stored.spaces,
            durable: Some(Durable::at(path)),
            ..Options::default()
        })
    }
}

impl Db {
    /// Looks whether all that is in a folder is as it was written: each record and each piece of
    /// each checkpoint is read and decoded, and all of it is replayed in memory. Nothing is
    /// changed, and others may read the folder meanwhile. Memory is taken by one segment of a log,
    /// and by one loop's data at a time.
    ///
    /// What is damaged is told by [`VerifiedLoop::faults`]. `options` have the actions and the
    /// procedures that transactions of the database call, as when it is opened.
    ///
    /// # Errors
    /// [`Error::Storage`]: there is no database, or somebody has it open to write.
    pub fn verify(path: impl AsRef<Path>, options: &Options) -> Result<Vec<VerifiedLoop>, Error> {
        let Options { limits, actions, procedures, .. } = options;
        let (actions, procedures) = (actions.clone(), procedures.clone());
        let settings = Settings { limits: *limits, actions, procedures, ..Settings::default() };
        verify(path.as_ref(), &settings).map_err(storage_error)
    }
}

fn storage_error(error: impl std::fmt::Display) -> Error {
    Error::Storage(error.to_string())
}
