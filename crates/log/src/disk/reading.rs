//! A real directory of which nothing is changed: not its files, and not the times at which they
//! were written.
//!
//! Several may read it at once; whoever writes it has it alone, as with [`Directory`].
//!
//! [`Directory`]: crate::Directory

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::directory::{DirectoryLock, LOCK_FILE, names_in};
use crate::disk::{Disk, DiskFile};

/// A directory of the file system that is only read. What would change it fails.
#[derive(Clone, Debug)]
pub struct ReadingDirectory {
    path: Arc<PathBuf>,
}

/// A file of a [`ReadingDirectory`].
#[derive(Debug)]
pub struct ReadingFile(File);

impl ReadingDirectory {
    /// The directory at `path`.
    ///
    /// # Errors
    /// There is none.
    pub fn existing(path: &Path) -> io::Result<ReadingDirectory> {
        match fs::metadata(path)?.is_dir() {
            true => Ok(ReadingDirectory { path: Arc::new(path.to_owned()) }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "it was opened for reading only"))
}

impl Disk for ReadingDirectory {
    type File = ReadingFile;
    type Lock = DirectoryLock;

    /// Shares the directory with others that read it.
    fn lock(&self) -> io::Result<Option<DirectoryLock>> {
        let file = File::open(self.path.join(LOCK_FILE))?;
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(DirectoryLock::of(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn create(&self, _: &str) -> io::Result<ReadingFile> {
        refused()
    }

    fn open(&self, name: &str) -> io::Result<ReadingFile> {
        File::open(self.path.join(name)).map(ReadingFile)
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        refused()
    }

    fn sync_directory(&self) -> io::Result<()> {
        refused()
    }
}

impl DiskFile for ReadingFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.0, buffer, offset)
    }

    fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        refused()
    }

    fn set_len(&mut self, _: u64) -> io::Result<()> {
        refused()
    }

    fn sync(&mut self) -> io::Result<()> {
        refused()
    }
}
