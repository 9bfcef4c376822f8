//! A real directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};

/// The name of the lock file; it holds nothing and stays when the lock is given back.
pub const LOCK_FILE: &str = "lock";

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct Directory {
    path: Arc<PathBuf>,
}

impl Directory {
    /// The directory at `path`, made if it is not there.
    ///
    /// # Errors
    /// It is not there and cannot be made.
    pub fn create(path: &Path) -> io::Result<Directory> {
        create_synced(path)?;
        Ok(Directory { path: Arc::new(path.to_owned()) })
    }

    /// The directory at `path`.
    ///
    /// # Errors
    /// There is none.
    pub fn existing(path: &Path) -> io::Result<Directory> {
        if fs::metadata(path)?.is_dir() {
            Ok(Directory { path: Arc::new(path.to_owned()) })
        } else {
            Err(io::Error::from(io::ErrorKind::NotADirectory))
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes the directory at `path` with all directories above it, each stable in the one that holds
/// it. One that is there is synced into its parent too: whoever made it may not have lived to do
/// that.
///
/// # Errors
/// One of them cannot be made or synced.
pub fn create_synced(path: &Path) -> io::Result<()> {
    create_each(path, &mut |parent| File::open(parent)?.sync_all())
}

/// Makes a directory and those above it, from the first that is missing down; `sync` gets the
/// parent of each one that was made, and that of `path` in any case.
fn create_each(path: &Path, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let missing: Vec<_> = path.ancestors().take_while(|above| !above.exists()).collect();
    for made in missing.iter().rev() {
        match fs::create_dir(made) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && made.is_dir() => {}
            done => done?,
        }
        made.parent().map_or(Ok(()), &mut *sync)?;
    }
    match path.parent() {
        Some(parent) if missing.is_empty() && path.is_dir() => sync(parent),
        Some(_) if missing.is_empty() => Err(io::ErrorKind::NotADirectory.into()),
        _ => Ok(()),
    }
}

/// A directory that is taken for as long as this is there.
#[derive(Debug)]
pub struct DirectoryLock(File);

impl DirectoryLock {
    /// Of a file that was locked.
    pub(super) fn of(file: File) -> DirectoryLock {
        DirectoryLock(file)
    }
}

impl Drop for DirectoryLock {
    /// A process that is begun by another thread has all open files for a moment, and what is
    /// closed here alone stays locked until then.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Disk for Directory {
    type File = File;
    type Lock = DirectoryLock;

    fn lock(&self) -> io::Result<Option<DirectoryLock>> {
        let path = self.path.join(LOCK_FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(DirectoryLock::of(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().create_new(true).read(true).write(true).open(self.path.join(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&*self.path)?.sync_all()
    }
}

impl DiskFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        File::set_len(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The names of the files in a directory.
pub(super) fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.extend(entry?.file_name().into_string().ok()); // Others are not ours.
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_that_is_made_is_synced_into_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let synced = |path: &Path| {
            let mut synced = Vec::new();
            let made = create_each(path, &mut |parent| {
                synced.push(parent.strip_prefix(&root).unwrap().display().to_string());
                Ok(())
            });
            made.map(|()| synced)
        };
        assert_eq!(synced(&root.join("a/b/c")).unwrap(), ["", "a", "a/b"]);
        assert!(root.join("a/b/c").is_dir());
        assert_eq!(synced(&root.join("a/b/c")).unwrap(), ["a/b"]);
        assert_eq!(synced(&root.join("a/d")).unwrap(), ["a"]);
        fs::write(root.join("file"), "").unwrap();
        assert!(synced(&root.join("file")).is_err());
        assert!(synced(&root.join("file/below")).is_err());
    }
}
