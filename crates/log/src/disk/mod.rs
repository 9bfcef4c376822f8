//! What the log asks of a disk: one directory of files, written at offsets and synced.
//!
//! The contract is that of a POSIX file system, no more: what was written and not synced may be
//! lost in any part; a file that was created, renamed or removed may be again as it was until the
//! directory is synced; a sync that fails says nothing of what it wrote.

pub mod directory;
pub mod memory;
pub mod reading;

use std::io;

/// A directory. Clones are the same directory.
pub trait Disk: Clone + Send + 'static {
    /// A file open for reading and writing.
    type File: DiskFile;
    /// Held as long as the directory is in use; dropping it gives the directory back.
    type Lock: Send + 'static;

    /// Takes the directory for one user; `None` if it is taken.
    ///
    /// # Errors
    /// The lock file cannot be made.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;
    /// The names of all files, in no order.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes a new, empty file.
    ///
    /// # Errors
    /// It exists, or cannot be made.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Opens a file that exists.
    ///
    /// # Errors
    /// It does not exist, or cannot be opened.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Renames a file, over another one if that exists.
    ///
    /// # Errors
    /// It cannot be renamed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals stable.
    ///
    /// # Errors
    /// They may not be.
    fn sync_directory(&self) -> io::Result<()>;
}

/// An open file of a [`Disk`].
pub trait DiskFile: Send + 'static {
    /// Its length in bytes.
    ///
    /// # Errors
    /// It cannot be told.
    fn len(&self) -> io::Result<u64>;
    /// Whether it has no bytes.
    ///
    /// # Errors
    /// It cannot be told.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `buffer` from `offset` on, up to the end of the file; returns how much was read.
    ///
    /// # Errors
    /// It cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`; a gap before is filled with zeros.
    ///
    /// # Errors
    /// Some of it may not have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts or extends the file.
    ///
    /// # Errors
    /// It cannot be.
    fn set_len(&mut self, bytes: u64) -> io::Result<()>;
    /// Makes everything written to this file, and its length, stable.
    ///
    /// # Errors
    /// Nothing may be assumed of what was written since the last sync.
    fn sync(&mut self) -> io::Result<()>;
}

/// All of a file's bytes.
pub(crate) fn read_whole(file: &impl DiskFile, buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = usize::try_from(file.len()?).map_err(io::Error::other)?;
    buffer.resize(length, 0);
    let mut done = 0;
    while done < length {
        match file.read_at(done as u64, &mut buffer[done..])? {
            0 => break,
            read => done += read,
        }
    }
    buffer.truncate(done);
    Ok(())
}
