//! A disk that misbehaves when it is told to, for tests of real processes.
//!
//! Killing a process loses nothing of what it has written: the system still has it. So every
//! second write is kept back here until the next sync, and a kill becomes a loss of power: what
//! was not synced is there in part. Beside that, a file says how the disk is to misbehave; it is
//! looked at before every write and sync, so that a running server's disk can be made slow, or
//! fail, and be well again:
//!
//! | the file holds | the disk |
//! | --- | --- |
//! | nothing, or is not there | is well |
//! | `slow N` | takes N milliseconds longer for each sync |
//! | `fail` | refuses every sync |
//! | `full` | has no room for further writes |
//! | `hang` | ends no sync before the file says something else |
//! | `record` | if it says so as it is opened: keeps nothing back, and writes down all changes |
//!
//! What is written down is in a file of the same name with `.record` behind it (`disk_record`). A
//! file beside it says how wrong the server's clock is (see `clock`).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use muesli_log::{Disk, DiskFile};

use crate::storage::disk_record::{DiskChange, DiskRecord};
use crate::storage::small_files::beside;

/// How a disk misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Not at all.
    None,
    /// Each sync takes so much longer.
    Slow(Duration),
    /// Syncs fail.
    Fail,
    /// Writes find no room.
    Full,
    /// Syncs do not end.
    Hang,
}

/// A sync that hangs looks so often whether it may end.
const HANGS_FOR: Duration = Duration::from_millis(2);

impl Trouble {
    /// What a file says; anything else than what there is means none.
    pub fn parse(text: &str) -> Trouble {
        let mut words = text.split_whitespace();
        match (words.next(), words.next().and_then(|word| word.parse().ok())) {
            (Some("slow"), Some(ms)) => Trouble::Slow(Duration::from_millis(ms)),
            (Some("fail"), _) => Trouble::Fail,
            (Some("full"), _) => Trouble::Full,
            (Some("hang"), _) => Trouble::Hang,
            _ => Trouble::None,
        }
    }
}

/// A disk with a file that says how it misbehaves.
#[derive(Clone, Debug)]
pub(crate) struct Troubled<D> {
    disk: D,
    trouble_file: Arc<PathBuf>,
    record: Option<DiskRecord>,
}

impl<D> Troubled<D> {
    pub fn new(disk: D, trouble_file: PathBuf) -> Troubled<D> {
        let records = std::fs::read(&trouble_file).is_ok_and(|text| text.starts_with(b"record"));
        let record = records.then(|| DiskRecord::open(&beside(&trouble_file, ".record")).ok());
        Troubled { disk, trouble_file: Arc::new(trouble_file), record: record.flatten() }
    }

    fn file<F>(&self, name: &str, file: F) -> TroubledFile<F> {
        TroubledFile {
            file,
            name: name.to_owned(),
            trouble_file: self.trouble_file.clone(),
            kept_back: Vec::new(),
            writes: 0,
            record: self.record.clone(),
        }
    }
}

/// Makes a change, which is recorded if changes are.
fn make<T>(
    record: Option<&DiskRecord>,
    change: DiskChange<'_>,
    made: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    match record {
        Some(record) => record.make(change, made),
        None => made(),
    }
}

impl<D: Disk> Disk for Troubled<D> {
    type File = TroubledFile<D::File>;
    type Lock = D::Lock;

    fn lock(&self) -> io::Result<Option<D::Lock>> {
        self.disk.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        let record = self.record.as_ref();
        let created = make(record, DiskChange::Create(name), || self.disk.create(name));
        Ok(self.file(name, created?))
    }

    fn open(&self, name: &str) -> io::Result<Self::File> {
        Ok(self.file(name, self.disk.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let change = DiskChange::Rename(from, to);
        make(self.record.as_ref(), change, || self.disk.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        make(self.record.as_ref(), DiskChange::Remove(name), || self.disk.remove(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        make(self.record.as_ref(), DiskChange::SyncDirectory, || self.disk.sync_directory())
    }
}

/// A file of such a disk.
#[derive(Debug)]
pub(crate) struct TroubledFile<F> {
    file: F,
    name: String,
    trouble_file: Arc<PathBuf>,
    record: Option<DiskRecord>,
    /// Written since the last sync, and lost with the process.
    kept_back: Vec<(u64, Vec<u8>)>,
    writes: u64,
}

impl<F: DiskFile> TroubledFile<F> {
    fn write_kept_back(&mut self) -> io::Result<()> {
        for (offset, bytes) in std::mem::take(&mut self.kept_back) {
            self.file.write_at(offset, &bytes)?;
        }
        Ok(())
    }

    fn trouble(&self) -> Trouble {
        std::fs::read_to_string(&*self.trouble_file)
            .map_or(Trouble::None, |text| Trouble::parse(&text))
    }
}

impl<F: DiskFile> DiskFile for TroubledFile<F> {
    fn len(&self) -> io::Result<u64> {
        let ends = self.kept_back.iter().map(|(offset, bytes)| offset + bytes.len() as u64);
        Ok(self.file.len()?.max(ends.max().unwrap_or(0)))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.kept_back.is_empty() {
            return self.file.read_at(offset, buffer);
        }
        Err(io::Error::other("files are read before they are written, or after a sync"))
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(record) = &self.record {
            let change = DiskChange::Write(&self.name, offset, bytes);
            return record.make(change, || self.file.write_at(offset, bytes));
        }
        if self.trouble() == Trouble::Full {
            // What fits is written before the end is noticed, as on a disk.
            self.file.write_at(offset, &bytes[..bytes.len() / 2])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.writes += 1;
        if self.writes.is_multiple_of(2) {
            self.kept_back.push((offset, bytes.to_vec()));
            return Ok(());
        }
        // What is kept back was written earlier, and does not go over this.
        let over = offset..offset + bytes.len() as u64;
        let apart =
            |(at, kept): &(u64, Vec<u8>)| at + kept.len() as u64 <= over.start || over.end <= *at;
        if !self.kept_back.iter().all(apart) {
            self.write_kept_back()?;
        }
        self.file.write_at(offset, bytes)
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        self.write_kept_back()?;
        let change = DiskChange::SetLength(&self.name, bytes);
        make(self.record.as_ref(), change, || self.file.set_len(bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        while self.trouble() == Trouble::Hang {
            std::thread::sleep(HANGS_FOR);
        }
        match self.trouble() {
            Trouble::None | Trouble::Full | Trouble::Hang => {}
            Trouble::Slow(by) => std::thread::sleep(by),
            Trouble::Fail => return Err(io::Error::other("the sync was made to fail")),
        }
        self.write_kept_back()?;
        make(self.record.as_ref(), DiskChange::Sync(&self.name), || self.file.sync())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_synced_is_lost_in_part() {
        let dir = tempfile::tempdir().unwrap();
        let disk = muesli_log::Directory::create(dir.path()).unwrap();
        let mut file = Troubled::new(disk, dir.path().join("trouble")).create("a").unwrap();
        for word in 0..3 {
            file.write_at(word * 4, b"word").unwrap();
        }
        assert_eq!(file.len().unwrap(), 12);
        let there = || std::fs::read(dir.path().join("a")).unwrap();
        assert_eq!(there(), b"word\0\0\0\0word");
        file.write_at(12, b"last").unwrap();
        file.write_at(4, b"over").unwrap();
        assert_eq!(there(), b"wordoverwordlast");
        file.write_at(16, b"more").unwrap();
        file.sync().unwrap();
        assert_eq!(there(), b"wordoverwordlastmore");
        file.write_at(20, b"gone").unwrap();
        file.write_at(24, b"gone").unwrap();
        drop(file);
        assert_eq!(there(), b"wordoverwordlastmoregone");
    }

    #[test]
    fn a_disk_misbehaves_as_its_file_says_and_is_well_again() {
        let dir = tempfile::tempdir().unwrap();
        let trouble_file = dir.path().join("trouble");
        let disk = muesli_log::Directory::create(&dir.path().join("disk")).unwrap();
        let disk = Troubled::new(disk, trouble_file.clone());
        let mut file = disk.create("a").unwrap();
        file.write_at(0, b"1234").unwrap();
        file.sync().unwrap();
        std::fs::write(&trouble_file, "full").unwrap();
        assert_eq!(file.write_at(4, b"5678").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.len().unwrap(), 6);
        std::fs::write(&trouble_file, "fail").unwrap();
        assert!(file.sync().is_err());
        std::fs::write(&trouble_file, "slow 1").unwrap();
        file.sync().unwrap();
        std::fs::remove_file(&trouble_file).unwrap();
        file.write_at(4, b"5678").unwrap();
        file.sync().unwrap();
        std::fs::write(&trouble_file, "hang").unwrap();
        file.write_at(8, b"9012").unwrap();
        let (synced, waits) = std::sync::mpsc::channel();
        let hangs = std::thread::spawn(move || synced.send(file.sync()).unwrap());
        assert!(waits.recv_timeout(Duration::from_millis(20)).is_err(), "the sync hangs");
        std::fs::write(&trouble_file, "").unwrap();
        waits.recv().unwrap().unwrap();
        hangs.join().unwrap();
        assert_eq!(Trouble::parse("slow"), Trouble::None);
        assert_eq!(Trouble::parse("slow 250\n"), Trouble::Slow(Duration::from_millis(250)));
    }
}
