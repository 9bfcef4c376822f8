//! Checkpoints: files that hold the state after some record, in pieces.
//!
//! A checkpoint is written under another name, synced, and renamed: it is there whole or not at
//! all. It is a segment of its own kind: a header whose `first` is the record after those that it
//! covers, frames of pieces numbered from 1, and a last frame. What the pieces hold is up to
//! whoever writes them. Once it is there, the segments that it covers may go.

pub mod streaming;

use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::format::frame::{self, END, PAYLOAD_MAX, PIECE};
use crate::format::segment::{self, Header};
use crate::sequence::Sequence;

/// What every unfinished checkpoint is called.
const UNFINISHED: &str = ".unfinished";
/// After so many bytes a checkpoint is synced in between, so that its last sync, and those of the
/// log beside it, do not have to wait for all of it.
const SYNC_EVERY_BYTES: u64 = 8 << 20;
/// Pieces are gathered up to so many bytes before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// A checkpoint that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The last record that it covers.
    pub covers: Sequence,
    /// How long its file is.
    pub bytes: u64,
    /// The last record that the oldest checkpoint kept covers: the log may be
    /// [truncated](crate::Writer::truncate) up to there.
    pub truncate: Sequence,
}

/// Writes a checkpoint, on the thread that calls it.
#[derive(Debug)]
pub struct CheckpointWriter<D: Disk> {
    disk: D,
    file: D::File,
    name: String,
    header: Header,
    /// Sealed frames that were not written yet.
    gathered: Vec<u8>,
    written: u64,
    synced: u64,
    pieces: u64,
    previous: u32,
    keep: usize,
}

impl<D: Disk> CheckpointWriter<D> {
    /// Begins a checkpoint that covers the records up to `covers`, of which `keep` are to be kept.
    ///
    /// # Errors
    /// The disk did.
    pub fn begin(
        disk: D,
        owner: u64,
        covers: Sequence,
        keep: usize,
    ) -> Result<CheckpointWriter<D>, LogError> {
        let name = format!("{}{UNFINISHED}", name(covers));
        match disk.remove(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LogError::io("remove", &name)(error));
            }
            _ => {}
        }
        let file = disk.create(&name).map_err(LogError::io("create", &name))?;
        let header = Header { owner, number: covers.0, first: covers.next(), previous: 0 };
        let gathered = header.to_bytes().to_vec();
        let (written, synced, pieces) = (0, 0, 0);
        let keep = keep.max(1);
        Ok(CheckpointWriter {
            disk,
            file,
            name,
            header,
            gathered,
            written,
            synced,
            pieces,
            previous: 0,
            keep,
        })
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// The disk did, or the piece is too long. The checkpoint is of no use then.
    pub fn piece(&mut self, piece: &[u8]) -> Result<(), LogError> {
        if piece.len() > PAYLOAD_MAX {
            return Err(LogError::TooLong { bytes: piece.len(), max: PAYLOAD_MAX });
        }
        self.pieces += 1;
        self.frame(PIECE, self.pieces, piece);
        if self.gathered.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn frame(&mut self, kind: u8, number: u64, payload: &[u8]) {
        let start = self.gathered.len();
        frame::open(&mut self.gathered, kind, Sequence(number), |out| {
            out.extend_from_slice(payload);
        });
        let salt = self.header.salt();
        self.previous = frame::seal(&mut self.gathered[start..], salt, self.previous);
    }

    fn flush(&mut self) -> Result<(), LogError> {
        let done = self.file.write_at(self.written, &self.gathered);
        done.map_err(LogError::io("write to", &self.name))?;
        self.written += self.gathered.len() as u64;
        self.gathered.clear();
        if self.written - self.synced >= SYNC_EVERY_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.synced = self.written;
        self.file.sync().map_err(LogError::io("sync", &self.name))
    }

    /// Publishes the checkpoint and removes those that are older than the ones to keep. One that is
    /// to be alone is read back before.
    ///
    /// # Errors
    /// The disk did. The checkpoint may be there or not.
    pub fn finish(mut self) -> Result<Published, LogError> {
        self.frame(END, self.pieces + 1, &[]);
        self.flush()?;
        self.sync()?;
        let covers = Sequence(self.header.number);
        let last = name(covers);
        self.disk.rename(&self.name, &last).map_err(LogError::io("rename", &self.name))?;
        self.disk.sync_directory().map_err(LogError::io("sync the directory of", &last))?;
        if self.keep == 1 {
            read(&self.disk, self.header.owner, covers, |_| Ok(()))?;
        }
        let truncate = self.drop_older()?;
        Ok(Published { covers, bytes: self.written, truncate })
    }

    /// Gives the checkpoint up.
    pub fn abandon(self) {
        // If this fails, the next start does it.
        let _ = self.disk.remove(&self.name);
    }

    fn drop_older(&self) -> Result<Sequence, LogError> {
        let mut there = list(&self.disk)?;
        there.sort_by(|a, b| b.cmp(a));
        for old in there.iter().skip(self.keep) {
            let name = name(*old);
            self.disk.remove(&name).map_err(LogError::io("remove", &name))?;
        }
        // Not synced: an old checkpoint that is there again does no harm.
        let oldest = there.get(self.keep - 1).copied();
        Ok(oldest.unwrap_or_default())
    }
}

/// The name of the checkpoint that covers the records up to `covers`.
pub fn name(covers: Sequence) -> String {
    format!("checkpoint-{:020}", covers.0)
}

/// The checkpoints there are, by what they cover, in no order.
///
/// # Errors
/// The disk did.
pub(crate) fn list<D: Disk>(disk: &D) -> Result<Vec<Sequence>, LogError> {
    let names = disk.list().map_err(LogError::io("list", ""))?;
    let numbers = names.iter().filter_map(|name| segment::digits_after(name, "checkpoint-"));
    Ok(numbers.map(Sequence).collect())
}

/// Removes what a checkpoint that was never finished left behind.
pub(crate) fn remove_unfinished<D: Disk>(disk: &D) -> Result<(), LogError> {
    let names = disk.list().map_err(LogError::io("list", ""))?;
    for name in names.iter().filter(|name| name.ends_with(UNFINISHED)) {
        disk.remove(name).map_err(LogError::io("remove", name))?;
    }
    Ok(())
}

/// Gives out the pieces of a checkpoint, all of which was found right before the first one.
///
/// # Errors
/// It cannot be read, is of another owner, or is damaged; or `each` refused a piece.
pub(crate) fn read<D: Disk>(
    disk: &D,
    owner: u64,
    covers: Sequence,
    mut each: impl FnMut(CheckpointStep<'_>) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let name = name(covers);
    let file = disk.open(&name).map_err(LogError::io("open", &name))?;
    let bad = |what: &str| LogError::Foreign { file: name.clone(), what: what.to_owned() };
    let mut head = [0; segment::HEADER_BYTES];
    let read = file.read_at(0, &mut head).map_err(LogError::io("read", &name))?;
    let header = match Header::read(&head[..read]) {
        Ok(header) => header,
        Err(segment::BadHeader::Foreign(what)) => return Err(bad(&what)),
        Err(segment::BadHeader::Torn) => return Err(bad("its header is damaged")),
    };
    header.check_owner(owner, &name)?;
    // It is gone through twice.
    let of = 2 * file.len().map_err(LogError::io("read", &name))?;
    let (mut bytes, mut reported) = (0, 0);
    let mut pass = |piece: &[u8], is_given: bool| {
        bytes += piece.len() as u64;
        if bytes >= reported + TELL_EVERY_BYTES {
            reported = bytes;
            each(CheckpointStep::Progress { bytes, of })?;
        }
        if is_given { each(CheckpointStep::Piece(piece)) } else { Ok(()) }
    };
    let wrong = Pieces::of(&file, &name, header).go_through(|piece| pass(piece, false))?;
    if let Some((offset, piece)) = wrong {
        let what = format!("its checksums are wrong at byte {offset}, where piece {piece} is");
        return Err(bad(&what));
    }
    if header.number != covers.0 {
        return Err(bad(&format!("its header says that it covers {} records", header.number)));
    }
    Pieces::of(&file, &name, header).go_through(|piece| pass(piece, true)).map(drop)
}

/// What comes of reading a checkpoint.
pub(crate) enum CheckpointStep<'a> {
    /// The next piece.
    Piece(&'a [u8]),
    /// So many bytes of so many were gone through.
    Progress {
        /// So far.
        bytes: u64,
        /// In all.
        of: u64,
    },
}

/// How often it is told how far the reading has come.
const TELL_EVERY_BYTES: u64 = 64 << 20;

/// The frames of a checkpoint, read a part of the file at a time.
struct Pieces<'a, F> {
    file: &'a F,
    name: &'a str,
    header: Header,
    /// Where the next part is.
    offset: u64,
    buffer: Vec<u8>,
    /// Up to here the buffer was gone through.
    done: usize,
}

/// So many bytes of a checkpoint are read at a time.
const READ_BYTES: usize = 1 << 20;

impl<'a, F: DiskFile> Pieces<'a, F> {
    fn of(file: &'a F, name: &'a str, header: Header) -> Pieces<'a, F> {
        let offset = segment::HEADER_BYTES as u64;
        Pieces { file, name, header, offset, buffer: Vec::new(), done: 0 }
    }

    /// Gives out the pieces, up to the end; where the first frame is that is none of it, and its
    /// number, if one is.
    fn go_through(
        mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), LogError>,
    ) -> Result<Option<(u64, u64)>, LogError> {
        let (salt, mut previous, mut number) = (self.header.salt(), 0, 1);
        loop {
            if !self.have(frame::HEADER_BYTES)? {
                return Ok(self.wrong(number));
            }
            let length = frame::word(&self.buffer[self.done + 8..]) as usize;
            if length > PAYLOAD_MAX || !self.have(frame::HEADER_BYTES + length)? {
                return Ok(self.wrong(number));
            }
            let Some(frame) = frame::read(&self.buffer[self.done..], salt) else {
                return Ok(self.wrong(number));
            };
            if frame.previous != previous || frame.sequence.0 != number {
                return Ok(self.wrong(number));
            }
            match frame.kind {
                PIECE => each(frame.payload)?,
                END => return Ok(None),
                _ => return Ok(self.wrong(number)),
            }
            (previous, number) = (frame.checksum, number + 1);
            self.done += frame::HEADER_BYTES + length;
        }
    }

    /// The frame of this number, which comes next, is none of the checkpoint.
    fn wrong(&self, number: u64) -> Option<(u64, u64)> {
        Some((self.offset - (self.buffer.len() - self.done) as u64, number))
    }

    /// Reads on until `bytes` bytes are there; false if the file ends before.
    fn have(&mut self, bytes: usize) -> Result<bool, LogError> {
        while self.buffer.len() - self.done < bytes {
            self.buffer.drain(..self.done);
            self.done = 0;
            let before = self.buffer.len();
            self.buffer.resize(before + READ_BYTES, 0);
            let read = self.file.read_at(self.offset, &mut self.buffer[before..]);
            let read = read.map_err(LogError::io("read", self.name))?;
            self.buffer.truncate(before + read);
            self.offset += read as u64;
            if read == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
