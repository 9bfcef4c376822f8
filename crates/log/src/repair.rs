//! What to do about a log that is damaged: look at it, and cut it.
//!
//! Cutting gives up records that had been promised. It is for whoever has no replica to restore
//! from, has copied the directory away, and knows that.

use crate::checkpoint;
use crate::disk::{Disk, DiskFile, read_whole};
use crate::error::LogError;
use crate::format::scan::{Scanned, SegmentTail, scan};
use crate::format::segment;
use crate::open::{self, FoundFiles};
use crate::sequence::Sequence;

/// What a directory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Its segments, in order.
    pub segments: Vec<SegmentReport>,
    /// Its checkpoints by what they cover, newest first, and what is wrong with them.
    pub checkpoints: Vec<(Sequence, Option<String>)>,
}

/// What a segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its file.
    pub file: String,
    /// Its length in bytes, zeros at its end included.
    pub bytes: u64,
    /// Its first and its last readable record; `None` if it has none.
    pub records: Option<(Sequence, Sequence)>,
    /// What follows these.
    pub end: End,
}

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it should.
    Clean,
    /// In something that was never promised, from this byte on: the next start cuts it.
    Torn(u64),
    /// In something that was promised and cannot be read, from this byte on, where this record is
    /// expected: a start refuses it.
    Damaged(u64, Sequence),
    /// Its header cannot be read, and so none of it.
    NoHeader,
}

/// Looks at everything in a directory, of whatever owner, and changes nothing.
///
/// # Errors
/// It is in use, or cannot be read.
pub fn inspect<D: Disk>(disk: &D, owner: u64) -> Result<Inspection, LogError> {
    let _lock = open::lock(disk)?;
    let found = open::find_segments(disk, owner)?;
    let mut segments = Vec::with_capacity(found.len());
    for (at, segment) in found.iter().enumerate() {
        let following = found.get(at + 1);
        segments.push(look(segment, following.map(|next| next.header.map(|h| h.first)))?);
    }
    let mut there = checkpoint::list(disk)?;
    there.sort_unstable_by(|a, b| b.cmp(a));
    let checkpoints = there.into_iter().map(|covers| {
        let wrong = checkpoint::read(disk, owner, covers, |_| Ok(())).err();
        (covers, wrong.map(|error| error.to_string()))
    });
    let checkpoints = checkpoints.collect();
    Ok(Inspection { segments, checkpoints })
}

/// `following` is the first record of the next segment, if there is one and it can be read.
fn look<F: DiskFile>(
    segment: &FoundFiles<F>,
    following: Option<Option<Sequence>>,
) -> Result<SegmentReport, LogError> {
    let bytes = segment.file.len().map_err(LogError::io("read", &segment.name))?;
    let file = segment.name.clone();
    let Some((scanned, _)) = frames(segment, Sequence(u64::MAX))? else {
        let is_torn = following.is_none() && open::is_torn_start(segment)?;
        let end = if is_torn { End::Torn(0) } else { End::NoHeader };
        return Ok(SegmentReport { file, bytes, records: None, end });
    };
    let (at, next) = (scanned.end as u64, scanned.next);
    let goes_on = following.flatten().is_some_and(|first| first > next);
    let end = match (scanned.tail, following) {
        (SegmentTail::Damaged(_), _) => End::Damaged(at, next),
        (_, Some(_)) if goes_on => End::Damaged(at, next),
        (SegmentTail::Torn(_), None) => End::Torn(at),
        (SegmentTail::Torn(_), Some(_)) | (SegmentTail::Clean, _) => End::Clean,
    };
    let first = segment.header.map_or(next, |header| header.first);
    let records = (first < next).then_some((first, next.before()));
    Ok(SegmentReport { file, bytes, records, end })
}

/// The frames of a segment and the place of record `at`, if that is in it; `None` without header.
fn frames<F: DiskFile>(
    segment: &FoundFiles<F>,
    at: Sequence,
) -> Result<Option<(Scanned, Option<usize>)>, LogError> {
    let Some(header) = segment.header else { return Ok(None) };
    let (mut bytes, mut place) = (Vec::new(), None);
    read_whole(&segment.file, &mut bytes).map_err(LogError::io("read", &segment.name))?;
    let scanned = scan(&bytes, header, |frame, offset| {
        if frame.sequence == at {
            place = Some(offset);
        }
        Ok(())
    })?;
    Ok(Some((scanned, place)))
}

/// Whether the log can be cut before record `at`: a start finds a checkpoint, or the first record,
/// and from there all records up to `at`.
///
/// # Errors
/// It is in use or cannot be read, or what is left would be no log: what comes before `at` is
/// damaged or missing.
pub fn judge_cut<D: Disk>(disk: &D, owner: u64, at: Sequence) -> Result<(), LogError> {
    let _lock = open::lock(disk)?;
    judge(disk, owner, at, &open::find_segments(disk, owner)?)
}

fn judge<D: Disk>(
    disk: &D,
    owner: u64,
    at: Sequence,
    segments: &[FoundFiles<D::File>],
) -> Result<(), LogError> {
    let can_be_read = |it: &Sequence| checkpoint::read(disk, owner, *it, |_| Ok(())).is_ok();
    let mut covered = checkpoint::list(disk)?;
    covered.retain(|covers| *covers < at);
    covered.sort_unstable();
    let base = covered.into_iter().rev().find(can_be_read).unwrap_or(Sequence(0));
    let mut next = base.next();
    // Without a checkpoint a log is one from the first record on, even an empty one.
    let beginning = segments.first().and_then(|it| Some((it.header?.first, it.name.clone())));
    if let Some((first, file)) = beginning.filter(|(first, _)| base == Sequence(0) && *first > next)
    {
        return Err(LogError::Missing { from: next, to: first.before(), file });
    }
    for segment in segments {
        if next >= at {
            break;
        }
        let file = segment.name.clone();
        let what = "and it comes before the record to cut at";
        let Some((scanned, _)) = frames(segment, at)? else {
            return Err(damaged(file, 0, next, what));
        };
        let first = segment.header.map_or(next, |header| header.first);
        if first > next {
            return Err(LogError::Missing { from: next, to: first.before(), file });
        }
        next = next.max(scanned.next);
        if next < at && !matches!(scanned.tail, SegmentTail::Clean) && scanned.next == next {
            return Err(damaged(file, scanned.end as u64, next, what));
        }
    }
    if next < at {
        let file = segments.last().map_or_else(String::new, |segment| segment.name.clone());
        return Err(damaged(file, 0, next, "and the log ends before the record to cut at"));
    }
    Ok(())
}

/// All records before this one can be read.
fn damaged(file: String, offset: u64, sequence: Sequence, what: &'static str) -> LogError {
    LogError::Damaged { file, offset, sequence, cut: sequence, what }
}

/// Cuts the log before record `at`, which is lost with all that follow, and with the checkpoints
/// that hold it. Returns the last record left.
///
/// # Errors
/// As [`judge_cut`], and nothing was changed; or it cannot be written.
pub fn truncate<D: Disk>(disk: &D, owner: u64, at: Sequence) -> Result<Sequence, LogError> {
    let _lock = open::lock(disk)?;
    let segments = open::find_segments(disk, owner)?;
    judge(disk, owner, at, &segments)?;
    // A checkpoint of what was cut would bring it back, in part.
    remove_checkpoints_after(disk, at.before())?;
    // From the last segment to the first: at any moment the directory holds a log.
    for mut segment in segments.into_iter().rev() {
        let scanned = match segment.header.filter(|header| header.first < at) {
            Some(_) => frames(&segment, at)?,
            None => None,
        };
        // One that ends before that is covered by the checkpoint that is left.
        let Some((scanned, place)) = scanned.filter(|(scanned, _)| scanned.next >= at) else {
            disk.remove(&segment.name).map_err(LogError::io("remove", &segment.name))?;
            continue;
        };
        let end = place.unwrap_or(scanned.end).max(segment::HEADER_BYTES) as u64;
        segment.file.set_len(end).map_err(LogError::io("shorten", &segment.name))?;
        segment.file.sync().map_err(LogError::io("sync", &segment.name))?;
        break;
    }
    disk.sync_directory().map_err(LogError::io("sync the directory of", ""))?;
    Ok(at.before())
}

fn remove_checkpoints_after<D: Disk>(disk: &D, left: Sequence) -> Result<(), LogError> {
    for covers in checkpoint::list(disk)?.into_iter().filter(|covers| *covers > left) {
        let name = checkpoint::name(covers);
        disk.remove(&name).map_err(LogError::io("remove", &name))?;
    }
    Ok(())
}
