//! A disk in memory that fails as disks do, by a seed.
//!
//! What was written and not synced survives a loss of power sector by sector, by chance; creations,
//! renames and removals survive up to a chosen one. Syncs can be made to fail, after which what
//! they should have written is forgotten, as an operating system does; the disk can be full; the
//! power can go off at any operation.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

/// What the disk writes whole or not at all.
pub const SECTOR: usize = 512;

/// What is to go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The power goes off at this change (from 1): it may be done in part, and nothing after it.
    pub power_off_at: Option<u64>,
    /// This sync (from 1), of a file or the directory, fails.
    pub sync_fails_at: Option<u64>,
    /// All files together hold at most so many bytes.
    pub capacity: Option<u64>,
    /// From this call on (from 1) nothing works any more: reads, writes, whatever is asked.
    pub all_fail_from: Option<u64>,
}

/// A directory in memory. Clones are the same directory.
#[derive(Clone, Debug)]
pub struct MemoryDisk {
    state: Arc<Mutex<DiskState>>,
}

/// A file of a [`MemoryDisk`].
#[derive(Clone, Debug)]
pub struct MemoryFile {
    state: Arc<Mutex<DiskState>>,
    number: usize,
}

/// Holds a [`MemoryDisk`].
#[derive(Debug)]
pub struct MemoryLock(Arc<AtomicBool>);

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct DiskState {
    files: Vec<Contents>,
    names: BTreeMap<String, usize>,
    stable_names: BTreeMap<String, usize>,
    /// Since the directory was last synced.
    renamed: Vec<Renamed>,
    locked: Arc<AtomicBool>,
    faults: Faults,
    calls: u64,
    changes: u64,
    syncs: u64,
    chance: u64,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    now: Vec<u8>,
    stable: Vec<u8>,
    /// Sectors that differ, as far as the operating system knows.
    dirty: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
enum Renamed {
    Made(String, usize),
    Gone(String),
    Moved(String, String),
}

impl MemoryDisk {
    /// An empty disk; what survives a loss of power is drawn from `seed`.
    pub fn new(seed: u64) -> MemoryDisk {
        MemoryDisk::holding(seed, BTreeMap::new())
    }

    fn holding(seed: u64, files: BTreeMap<String, Vec<u8>>) -> MemoryDisk {
        let mut names = BTreeMap::new();
        let mut contents = Vec::new();
        for (name, bytes) in files {
            names.insert(name, contents.len());
            let (stable, dirty) = (bytes.clone(), BTreeSet::new());
            contents.push(Contents { now: bytes, stable, dirty });
        }
        let state = DiskState {
            files: contents,
            stable_names: names.clone(),
            names,
            renamed: Vec::new(),
            locked: Arc::default(),
            faults: Faults::default(),
            calls: 0,
            changes: 0,
            syncs: 0,
            chance: seed,
        };
        MemoryDisk { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this goes wrong; calls, changes and syncs are counted from here.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.state();
        (state.faults, state.calls, state.changes, state.syncs) = (faults, 0, 0, 0);
    }

    /// How many calls there were, of whatever kind.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How many changes there were: writes, lengths, syncs, creations, renames, removals.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// The disk as it is after a loss of power now.
    pub fn after_power_loss(&self) -> MemoryDisk {
        let mut state = self.state();
        let survivors = state.survivors();
        MemoryDisk::holding(state.draw(u64::MAX), survivors)
    }

    /// The disk as it is after the process that uses it dies: the system has all that was written.
    pub fn after_kill(&self) -> MemoryDisk {
        let mut state = self.state();
        let now = |number: &usize| state.files[*number].now.clone();
        let files = state.names.iter().map(|(name, number)| (name.clone(), now(number))).collect();
        MemoryDisk::holding(state.draw(u64::MAX), files)
    }

    /// The files with their bytes.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let bytes = |number: &usize| state.files[*number].now.clone();
        state.names.iter().map(|(name, number)| (name.clone(), bytes(number))).collect()
    }

    /// A disk that holds just these files.
    pub fn with_files(seed: u64, files: BTreeMap<String, Vec<u8>>) -> MemoryDisk {
        MemoryDisk::holding(seed, files)
    }
}

impl DiskState {
    /// A number below `below`, by splitmix64.
    fn draw(&mut self, below: u64) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// Counts a call.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        match self.faults.all_fail_from {
            Some(fails) if self.calls >= fails => Err(io::Error::other("the disk is gone")),
            _ => Ok(()),
        }
    }

    /// Counts a change.
    fn change(&mut self) -> io::Result<()> {
        self.call()?;
        self.changes += 1;
        match self.faults.power_off_at {
            Some(off) if self.changes >= off => Err(io::Error::other("the power is off")),
            _ => Ok(()),
        }
    }

    /// Counts a sync; an error if it is to fail.
    fn sync(&mut self) -> io::Result<()> {
        self.change()?;
        self.syncs += 1;
        match self.faults.sync_fails_at {
            Some(fails) if self.syncs == fails => Err(io::Error::other("input/output error")),
            _ => Ok(()),
        }
    }

    fn survivors(&mut self) -> BTreeMap<String, Vec<u8>> {
        let kept = self.draw(self.renamed.len() as u64 + 1) as usize;
        let mut names = self.stable_names.clone();
        for renamed in &self.renamed[..kept] {
            renamed.apply(&mut names);
        }
        // None and all of the sectors are the cases that find faults: not left to luck.
        let mode = self.draw(4);
        let mut files = BTreeMap::new();
        for (name, number) in names {
            let mut contents = self.files[number].clone();
            for sector in std::mem::take(&mut contents.dirty) {
                if mode == 1 || (mode > 1 && self.draw(2) == 0) {
                    contents.settle(sector);
                }
            }
            if contents.now.len() < contents.stable.len() && self.draw(2) == 0 {
                contents.stable.truncate(contents.now.len());
            }
            files.insert(name, contents.stable);
        }
        files
    }

    fn bytes_left(&self) -> Option<u64> {
        let used: u64 = self.names.values().map(|&at| self.files[at].now.len() as u64).sum();
        self.faults.capacity.map(|capacity| capacity.saturating_sub(used))
    }

    fn rename(&mut self, renamed: Renamed) {
        renamed.apply(&mut self.names);
        self.renamed.push(renamed);
    }
}

impl Renamed {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Renamed::Made(name, number) => {
                names.insert(name.clone(), *number);
            }
            Renamed::Gone(name) => {
                names.remove(name);
            }
            Renamed::Moved(from, to) => {
                if let Some(number) = names.remove(from) {
                    names.insert(to.clone(), number);
                }
            }
        }
    }
}

impl Contents {
    fn mark(&mut self, from: usize, to: usize) {
        self.dirty.extend(from / SECTOR..to.div_ceil(SECTOR));
    }

    /// Makes a sector stable.
    fn settle(&mut self, sector: usize) {
        let from = sector * SECTOR;
        let to = (from + SECTOR).min(self.now.len());
        if from >= to {
            return;
        }
        if self.stable.len() < to {
            self.stable.resize(to, 0);
        }
        self.stable[from..to].copy_from_slice(&self.now[from..to]);
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;
    type Lock = MemoryLock;

    fn lock(&self) -> io::Result<Option<MemoryLock>> {
        let locked = Arc::clone(&self.state().locked);
        let taken = locked.swap(true, Ordering::SeqCst);
        Ok((!taken).then_some(MemoryLock(locked)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.call()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let mut state = self.state();
        state.change()?;
        if state.names.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let number = state.files.len();
        state.files.push(Contents::default());
        state.rename(Renamed::Made(name.to_owned(), number));
        Ok(MemoryFile { state: Arc::clone(&self.state), number })
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let mut state = self.state();
        state.call()?;
        let number = state.names.get(name).copied();
        let number = number.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        drop(state);
        Ok(MemoryFile { state: Arc::clone(&self.state), number })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.rename(Renamed::Moved(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        state.change()?;
        state.rename(Renamed::Gone(name.to_owned()));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        state.sync()?;
        state.renamed.clear();
        state.stable_names = state.names.clone();
        Ok(())
    }
}

impl MemoryFile {
    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.state();
        state.call()?;
        Ok(state.files[self.number].now.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        state.call()?;
        let bytes = &state.files[self.number].now;
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let bytes_left = state.bytes_left();
        let done = state.change();
        let contents = &mut state.files[self.number];
        let (from, mut to) = (offset as usize, offset as usize + bytes.len());
        let growth = to.saturating_sub(contents.now.len()) as u64;
        let full = bytes_left.is_some_and(|bytes_left| growth > bytes_left);
        if let Some(bytes_left) = bytes_left.filter(|_| full) {
            to = (contents.now.len() + bytes_left as usize).max(from);
        }
        if contents.now.len() < to {
            contents.now.resize(to, 0);
        }
        contents.now[from..to].copy_from_slice(&bytes[..to - from]);
        contents.mark(from, to);
        if full { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { done }
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let contents = &mut state.files[self.number];
        let before = contents.now.len();
        contents.now.resize(bytes as usize, 0);
        contents.mark(before.min(bytes as usize), before.max(bytes as usize));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.state();
        let done = state.sync();
        let kept: Vec<bool> = (0..64).map(|_| state.draw(2) == 0).collect();
        let contents = &mut state.files[self.number];
        if done.is_err() {
            // The pages count as clean now, whatever reached the disk.
            for (at, sector) in std::mem::take(&mut contents.dirty).into_iter().enumerate() {
                if kept[at % kept.len()] {
                    contents.settle(sector);
                }
            }
            return done;
        }
        for sector in std::mem::take(&mut contents.dirty) {
            contents.settle(sector);
        }
        let length = contents.now.len();
        contents.stable.resize(length, 0);
        Ok(())
    }
}
