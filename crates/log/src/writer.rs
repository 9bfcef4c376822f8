//! The writer: puts batches into segments and syncs them, on whatever thread calls it.
//!
//! Preallocation: a sync that also has to make a new length stable costs the file system's journal
//! another write. So the segment is filled with zeros a step ahead, and most syncs find their
//! blocks there. Measured on the machine of the benchmarks, one batch of 16 records of 280 bytes
//! takes 0.34 to 0.41 ms to append to a growing file, 0.18 to 0.21 ms into zeros; room that was
//! only reserved (`fallocate`, a longer length) gains a tenth or nothing.

use std::collections::VecDeque;

use crate::batch::Batch;
use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::format::segment::{self, Header};
use crate::sequence::Sequence;

/// How a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whose log it is: a directory of another owner is refused.
    pub owner: u64,
    /// A segment that has grown to this many bytes is followed by another one. It may be longer
    /// by one batch.
    pub segment_bytes: u64,
    /// So many bytes of zeros are written ahead; 0 lets segments grow as they are written.
    pub preallocate_bytes: u64,
    /// So many bytes may wait for a sync before a [`Log`](crate::Log) calls itself congested.
    pub backlog_bytes: usize,
    /// So many checkpoints are kept, and the segments after the oldest of them; at least 1. With
    /// 2, a checkpoint that cannot be read any more is not the end.
    pub checkpoints: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            owner: 0,
            segment_bytes: 64 << 20,
            preallocate_bytes: 1 << 20,
            backlog_bytes: 64 << 20,
            checkpoints: 2,
        }
    }
}

/// A segment that is full, or was there when the log was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub number: u64,
    pub last: Sequence,
}

/// The segment that is written to.
#[derive(Debug)]
struct OpenSegment<F> {
    file: F,
    name: String,
    header: Header,
    /// Where the next batch goes.
    end: u64,
    /// Up to where zeros were written.
    filled: u64,
}

/// Writes a log. Made by [`open`](crate::open::open).
#[derive(Debug)]
pub struct Writer<D: Disk> {
    disk: D,
    options: Options,
    active: OpenSegment<D::File>,
    closed: VecDeque<Closed>,
    /// The checksum of the last frame.
    previous: u32,
    stable: Sequence,
    /// The last record written, stable or not.
    written: Sequence,
    failure: Option<LogError>,
    /// Kept as long as the log is written to.
    _lock: D::Lock,
}

impl<D: Disk> Writer<D> {
    /// Begins a new segment after `closed`, where the log is stable up to `stable`.
    pub(crate) fn begin(
        disk: D,
        lock: D::Lock,
        options: Options,
        closed: VecDeque<Closed>,
        number: u64,
        stable: Sequence,
        previous: u32,
    ) -> Result<Writer<D>, LogError> {
        let header = Header { owner: options.owner, number, first: stable.next(), previous };
        let active = begin_segment(&disk, header, options.preallocate_bytes)?;
        let (written, failure) = (stable, None);
        Ok(Writer {
            disk,
            options,
            active,
            closed,
            previous,
            stable,
            written,
            failure,
            _lock: lock,
        })
    }

    /// Writes and syncs a batch, which is empty afterwards. Returns what is stable now.
    ///
    /// # Errors
    /// The disk did. From then on every call gives the same error, and nothing more is stable.
    ///
    /// # Panics
    /// If the batch does not follow what was written before.
    pub fn write(&mut self, batch: &mut Batch) -> Result<Sequence, LogError> {
        self.write_unsynced(batch)?;
        self.sync()
    }

    /// Writes a batch, which is empty afterwards, and leaves it to the system when that reaches
    /// the disk. Returns what is stable.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_unsynced(&mut self, batch: &mut Batch) -> Result<Sequence, LogError> {
        self.check()?;
        if !batch.is_empty() {
            assert_eq!(batch.first(), self.written.next(), "a batch is missing");
            let done = self.try_write(batch);
            self.remember_failure(done)?;
        }
        Ok(self.stable)
    }

    /// Makes stable all that was written. Returns what is stable now.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn sync(&mut self) -> Result<Sequence, LogError> {
        self.check()?;
        if !self.is_synced() {
            let done = self.active.file.sync().map_err(LogError::io("sync", &self.active.name));
            self.remember_failure(done)?;
            self.stable = self.written;
        }
        Ok(self.stable)
    }

    /// Whether all that was written is stable.
    pub fn is_synced(&self) -> bool {
        self.stable == self.written
    }

    fn check(&self) -> Result<(), LogError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn remember_failure<T>(&mut self, done: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(error) = &done {
            self.failure = Some(error.clone());
        }
        done
    }

    fn try_write(&mut self, batch: &mut Batch) -> Result<(), LogError> {
        if self.active.end >= self.options.segment_bytes {
            self.try_rotate()?;
        }
        let (sealed, previous) = batch.seal(self.stable, self.active.header.salt(), self.previous);
        self.active.append(sealed, self.options.preallocate_bytes)?;
        (self.previous, self.written) = (previous, batch.last());
        batch.restart(self.written);
        Ok(())
    }

    /// Ends the active segment, where it has records, and begins the next one: what comes before
    /// can be [removed](Self::truncate). All that was written is stable then.
    ///
    /// # Errors
    /// The disk did; the log is failed then.
    pub fn rotate(&mut self) -> Result<Sequence, LogError> {
        self.check()?;
        if self.written >= self.active.header.first {
            let done = self.try_rotate();
            self.remember_failure(done)?;
        }
        self.sync()
    }

    /// Ends the active segment, all of which is stable then, and begins the next one.
    fn try_rotate(&mut self) -> Result<(), LogError> {
        self.active.trim()?;
        self.stable = self.written;
        let before = self.active.header;
        let (first, previous) = (self.stable.next(), self.previous);
        let header = Header { number: before.number + 1, first, previous, ..before };
        let next = begin_segment(&self.disk, header, self.options.preallocate_bytes)?;
        self.closed.push_back(Closed { number: before.number, last: self.stable });
        self.active = next;
        Ok(())
    }

    /// Removes the segments that hold nothing after `upto`, which a checkpoint covers. Returns how
    /// many went.
    ///
    /// # Errors
    /// The disk did; the log is failed then.
    pub fn truncate(&mut self, upto: Sequence) -> Result<usize, LogError> {
        self.check()?;
        let done = self.try_truncate(upto);
        self.remember_failure(done)
    }

    fn try_truncate(&mut self, upto: Sequence) -> Result<usize, LogError> {
        let mut removed = 0;
        while let Some(closed) = self.closed.pop_front_if(|closed| closed.last <= upto) {
            let name = segment::name(closed.number);
            self.disk.remove(&name).map_err(LogError::io("remove", &name))?;
            removed += 1;
        }
        if removed > 0 {
            self.disk.sync_directory().map_err(LogError::io("sync the directory of", ""))?;
        }
        Ok(removed)
    }

    /// Writes a mark, synced: from here on, damage to what was written before it is told from a
    /// batch that was never finished. A log does this after each pause.
    ///
    /// # Errors
    /// The disk did; the log is failed then.
    pub fn mark(&mut self) -> Result<(), LogError> {
        self.sync()?;
        let done = self.try_mark();
        self.remember_failure(done)
    }

    fn try_mark(&mut self) -> Result<(), LogError> {
        let mut empty = Batch::after(self.stable);
        let salt = self.active.header.salt();
        let (mark, previous) = empty.seal(self.stable, salt, self.previous);
        self.active.append(mark, self.options.preallocate_bytes)?;
        self.active.file.sync().map_err(LogError::io("sync", &self.active.name))?;
        self.previous = previous;
        Ok(())
    }

    /// Ends the log with a mark, so that damage to its last batch can be told from a torn one.
    ///
    /// # Errors
    /// The disk did. What was stable is.
    pub fn close(mut self) -> Result<Sequence, LogError> {
        self.sync()?;
        let mut empty = Batch::after(self.stable);
        let salt = self.active.header.salt();
        let (mark, _) = empty.seal(self.stable, salt, self.previous);
        self.active.append(mark, 0)?;
        self.active.trim()?;
        Ok(self.stable)
    }

    /// The last record that is stable.
    pub fn stable(&self) -> Sequence {
        self.stable
    }

    /// The last record that was written, stable or not.
    pub fn written(&self) -> Sequence {
        self.written
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.closed.len() + 1
    }

    /// The disk, for checkpoints beside the log.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// How the log is kept.
    pub fn options(&self) -> Options {
        self.options
    }
}

impl<F: DiskFile> OpenSegment<F> {
    /// Writes `bytes` where the segment ends, and zeros further ahead if those are used up. Zeros
    /// that are as many as these bytes or fewer would cost more than they save.
    fn append(&mut self, bytes: &[u8], ahead: u64) -> Result<(), LogError> {
        self.file.write_at(self.end, bytes).map_err(LogError::io("write to", &self.name))?;
        self.end += bytes.len() as u64;
        if self.end > self.filled {
            self.filled = self.end;
            if ahead > bytes.len() as u64 {
                self.fill(self.end + ahead)?;
            }
        }
        Ok(())
    }

    /// Writes zeros up to `upto`.
    fn fill(&mut self, upto: u64) -> Result<(), LogError> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        while self.filled < upto {
            let step = (upto - self.filled).min(ZEROS.len() as u64);
            let zeros = &ZEROS[..step as usize];
            let written = self.file.write_at(self.filled, zeros);
            written.map_err(LogError::io("preallocate", &self.name))?;
            self.filled += step;
        }
        Ok(())
    }

    /// Gives back the zeros, and makes all of it stable.
    fn trim(&mut self) -> Result<(), LogError> {
        self.file.set_len(self.end).map_err(LogError::io("shorten", &self.name))?;
        self.file.sync().map_err(LogError::io("sync", &self.name))
    }
}

/// Makes a segment, stable with its name.
fn begin_segment<D: Disk>(
    disk: &D,
    header: Header,
    ahead: u64,
) -> Result<OpenSegment<D::File>, LogError> {
    let name = segment::name(header.number);
    let file = disk.create(&name).map_err(LogError::io("create", &name))?;
    let end = segment::HEADER_BYTES as u64;
    let mut active = OpenSegment { file, name, header, end: 0, filled: 0 };
    active.append(&header.to_bytes(), ahead)?;
    assert_eq!(active.end, end, "a segment begins with its header");
    active.file.sync().map_err(LogError::io("sync", &active.name))?;
    disk.sync_directory().map_err(LogError::io("sync the directory of", &active.name))?;
    Ok(active)
}
