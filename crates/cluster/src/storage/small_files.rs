//! Small files that are written anew as a whole: a header that names the format and its version,
//! a body, and a checksum over both.
//!
//! | bytes | what |
//! | --- | --- |
//! | 0 to 7 | the magic of the kind of file, such as `MuesFile` |
//! | 8 to 11 | the version of the format, little-endian |
//! | 12 to 15 | the length of the body, little-endian |
//! | 16 to 19 | CRC-32 of bytes 0 to 15 and the body |
//!
//! A new file is written beside the old one, synced, and put in its place by a rename; then the
//! folder is synced. A crash leaves the old file or the new one, whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use muesli_core::wire::Wire;

pub(crate) const HEADER_BYTES: usize = 20;

/// A kind of small file: how it begins, and the version that this program reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub magic: &'static [u8; 8],
    pub version: u32,
}

/// Why the bytes of a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnfitFile {
    /// Of another version.
    Version(u32),
    /// Not what was written.
    Damaged(&'static str),
}

impl Format {
    /// The bytes of a file that holds this value.
    pub fn file(self, value: &impl Wire) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        value.encode(&mut bytes);
        let length = u32::try_from(bytes.len() - HEADER_BYTES).expect("a map has far fewer bytes");
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        let sum = checksum(&bytes);
        bytes[16..20].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The body of a file's bytes. The version is looked at before the checksum: another version
    /// may have its checksum elsewhere.
    ///
    /// # Errors
    /// They are no such file, or one of another version.
    pub fn body(self, bytes: &[u8]) -> Result<&[u8], UnfitFile> {
        let header =
            bytes.get(..HEADER_BYTES).ok_or(UnfitFile::Damaged("it ends in its header"))?;
        if header[..8] != *self.magic {
            return Err(UnfitFile::Damaged("it does not begin as such a file does"));
        }
        let word =
            |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        if word(8) != self.version {
            return Err(UnfitFile::Version(word(8)));
        }
        let body = &bytes[HEADER_BYTES..];
        if body.len() as u64 != u64::from(word(12)) {
            return Err(UnfitFile::Damaged("it has another length than it says"));
        }
        if checksum(bytes) != word(16) {
            return Err(UnfitFile::Damaged("its checksum does not match"));
        }
        Ok(body)
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..16]);
    sum.update(&bytes[HEADER_BYTES..]);
    sum.finalize()
}

/// Puts a file with these bytes at `path`, in the place of the one that is there; when this
/// returns it is on the disk.
///
/// # Errors
/// The system refused. The old file is still there, or the new one is.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = beside(path, ".new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(folder_of(path))?.sync_all()
}

/// A file that is locked for as long as this is there.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl Drop for FileLock {
    /// A process that is begun by another thread has all open files for a moment, and what is
    /// closed here alone stays locked until then.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Locks the file at `path`, made if it is not there, until what is returned is dropped; `None`:
/// somebody else has locked it, in this process or another one.
///
/// # Errors
/// The system refused.
pub(crate) fn lock(path: &Path) -> io::Result<Option<FileLock>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(FileLock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Shares the lock of the file at `path`, which is there, with others that read what it guards,
/// until what is returned is dropped. Changes nothing. `None`: somebody has it alone.
///
/// # Errors
/// The system refused, or there is no such file.
pub(crate) fn share(path: &Path) -> io::Result<Option<FileLock>> {
    let file = File::open(path)?;
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(FileLock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The file of the same name with an ending more.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The folder that holds a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_read_share_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert_eq!(share(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(lock(&path).unwrap().expect("nobody has it"));
        let (one, other) = (share(&path).unwrap(), share(&path).unwrap());
        assert!(one.is_some() && other.is_some() && lock(&path).unwrap().is_none());
        drop((one, other));
        let alone = lock(&path).unwrap();
        assert!(alone.is_some() && share(&path).unwrap().is_none());
    }

    #[test]
    fn a_lock_is_given_back_though_a_copy_of_its_file_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = lock(&path).unwrap().expect("nobody has it");
        let copy = first.0.try_clone().unwrap(); // As a process has it that is being begun.
        assert!(lock(&path).unwrap().is_none());
        drop(first);
        assert!(lock(&path).unwrap().is_some());
        drop(copy);
    }
}
