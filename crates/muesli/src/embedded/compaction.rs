//! A durable database is made as short as it can be while it is used: each loop takes a checkpoint
//! that stands alone, and lets go what it covers.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use super::LoopInbox;
use super::running::Loops;
use crate::database::compacted::Compacted;
use crate::error::Error;

impl Loops {
    /// Has all loops compact what they keep, and waits for it.
    pub(super) fn compact_all(&self) -> Result<Compacted, Error> {
        let closed = || self.closing.failure().map_or(Error::Closed, storage_error);
        let threads = self.threads.lock().unwrap_or_else(|broken| broken.into_inner());
        if self.is_inside(&threads) {
            let what = "a database is compacted by a thread that can wait, and not on a loop";
            return Err(Error::Options(what.to_owned()));
        }
        drop(threads);
        let path = match self.storage().as_ref() {
            Some(storage) if storage.reads_only() => return Err(Error::ReadOnly),
            Some(storage) => storage.path().to_owned(),
            None if self.lasts => return Err(closed()),
            None => {
                let what = "the database is in memory: there are no files to be compacted";
                return Err(Error::Options(what.to_owned()));
            }
        };
        let before = bytes_in(&path).map_err(storage_error)?;
        let waits: Vec<Receiver<()>> = self.inboxes.iter().map(|inbox| inbox.compact()).collect();
        for wait in waits {
            wait.recv().map_err(|_| closed())?;
        }
        let after = bytes_in(&path).map_err(storage_error)?;
        Ok(Compacted { before, after })
    }
}

impl LoopInbox {
    /// Asks the loop to compact what it keeps.
    fn compact(&self) -> Receiver<()> {
        let (waiter, wait) = channel();
        let mut compactions = self.compactions.lock().unwrap_or_else(|it| it.into_inner());
        compactions.push(waiter);
        drop(compactions);
        self.signal.raise_attention();
        if self.is_shut() {
            self.forget_compactions(); // It came after the loop had looked for the last time.
        }
        wait
    }

    /// Nobody compacts any more.
    pub(super) fn forget_compactions(&self) {
        self.compactions.lock().unwrap_or_else(|it| it.into_inner()).clear();
    }
}

fn storage_error(error: impl std::fmt::Display) -> Error {
    Error::Storage(error.to_string())
}

/// The bytes of all files in a folder and those below. What goes meanwhile counts nothing.
fn bytes_in(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let about = match entry.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        bytes += if about.is_dir() { bytes_in(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}
