//! Start-up: the newest checkpoint that can be read, the records after it, and a log that goes on.

use std::collections::VecDeque;

use crate::checkpoint::{self, CheckpointStep};
use crate::disk::directory::LOCK_FILE;
use crate::disk::{Disk, DiskFile, read_whole};
use crate::error::LogError;
use crate::format::scan::{Scanned, SegmentTail, scan};
use crate::format::segment::{self, BadHeader, Header};
use crate::sequence::Sequence;
use crate::writer::{Closed, Options, Writer};

/// Who gets what the log holds. An `Err` ends the start with [`LogError::Refused`].
pub trait Replay {
    /// A piece of the checkpoint; the pieces come first, in the order they were written.
    ///
    /// # Errors
    /// It cannot be understood.
    fn piece(&mut self, piece: &[u8]) -> Result<(), String>;
    /// A record after the checkpoint, in order.
    ///
    /// # Errors
    /// It cannot be understood.
    fn record(&mut self, sequence: Sequence, kind: u8, payload: &[u8]) -> Result<(), String>;
    /// How far it has come; called once in a while.
    fn progress(&mut self, progress: Progress) {
        let _ = progress;
    }
    /// So much of the work of reading the checkpoint is done, of so much.
    fn checkpoint_progress(&mut self, bytes: u64, of: u64) {
        let _ = (bytes, of);
    }
}

/// How far a start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of checkpoint and segments gone through.
    pub bytes: u64,
    /// Bytes that there are.
    pub of: u64,
    /// Records replayed.
    pub records: u64,
}

/// What a start found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// What the checkpoint used covers.
    pub checkpoint: Option<Sequence>,
    /// Newer checkpoints that could not be used, and why.
    pub unusable: Vec<(String, String)>,
    /// How many records were replayed.
    pub records: u64,
    /// The last record there is.
    pub last: Sequence,
    /// The torn tail that was cut, if there was one.
    pub cut: Option<Cut>,
}

/// A tail that was cut: the last batch, which no mark claims. It was being written when the process
/// or its power ended, and nobody was told of it; or it was synced, and damaged before the log's
/// next mark, which follows within milliseconds. The two cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment that ended in it.
    pub file: String,
    /// Where it began.
    pub offset: u64,
    /// How many bytes were there, zeros at the end not counted.
    pub bytes: u64,
    /// Why it was not taken for a record.
    pub what: &'static str,
    /// The last of the whole records behind the place where it breaks off, if there are any.
    pub goes_on_at: Option<Sequence>,
}

/// A segment that was found.
#[derive(Debug)]
pub(crate) struct FoundFiles<F> {
    pub name: String,
    pub number: u64,
    /// `None`: torn.
    pub header: Option<Header>,
    pub file: F,
}

/// Opens the log in a directory, replays it, and goes on in a new segment.
///
/// # Errors
/// See [`LogError`]. Nothing that was stable has been changed.
pub fn open<D: Disk>(
    disk: D,
    options: Options,
    replay: &mut impl Replay,
) -> Result<(Writer<D>, Opened), LogError> {
    let lock = lock(&disk)?;
    checkpoint::remove_unfinished(&disk)?;
    let mut found = find_segments(&disk, options.owner)?;
    let mut opened = restore(&disk, options.owner, None, replay)?;
    let number = found.last().map_or(0, |last| last.number) + 1;
    if let Some(torn) = take_torn_start(&mut found)? {
        disk.remove(&torn.name).map_err(LogError::io("remove", &torn.name))?;
    }
    let covered = opened.checkpoint.unwrap_or_default();
    let (mut closed, found) = skip_covered(found, covered);
    let (gone_through, previous) = go_through(found, true, &mut opened, replay)?;
    closed.extend(drop_empty(&disk, gone_through)?);
    let writer = Writer::begin(disk, lock, options, closed, number, opened.last, previous)?;
    Ok((writer, opened))
}

/// Replays the log in a directory, of this owner, and changes nothing: what a start would cut is
/// [told](Opened::cut), and stays. It begins with the newest checkpoint that can be read, or with
/// the one that covers the records up to `from`.
///
/// # Errors
/// See [`LogError`].
pub fn read<D: Disk>(
    disk: &D,
    owner: u64,
    from: Option<Sequence>,
    replay: &mut impl Replay,
) -> Result<Opened, LogError> {
    let _lock = lock(disk)?;
    let mut found = find_segments(disk, owner)?;
    let mut opened = restore(disk, owner, from, replay)?;
    take_torn_start(&mut found)?;
    let (_, found) = skip_covered(found, opened.checkpoint.unwrap_or_default());
    go_through(found, false, &mut opened, replay)?;
    Ok(opened)
}

/// Segments that were gone through, and whether each is empty.
type GoneThrough = Vec<(Closed, bool)>;

/// Replays what segments hold behind the checkpoint that was opened, and notes what that was; with
/// the checksum of the last frame. Where the log is not to go on, what it ends in is not mended.
fn go_through<F: DiskFile>(
    mut found: Vec<FoundFiles<F>>,
    mends: bool,
    opened: &mut Opened,
    replay: &mut impl Replay,
) -> Result<(GoneThrough, u32), LogError> {
    let covered = opened.checkpoint.unwrap_or_default();
    let mut going = Going::new(&found, covered, mends, replay)?;
    for at in 0..found.len() {
        going.segment(&mut found, at)?;
    }
    let Going { next, previous, records, cut, closed, .. } = going;
    (opened.records, opened.cut, opened.last) = (records, cut, next.before().max(covered));
    Ok((closed, previous))
}

/// Takes the directory.
pub(crate) fn lock<D: Disk>(disk: &D) -> Result<D::Lock, LogError> {
    let lock = disk.lock().map_err(LogError::io("lock", LOCK_FILE))?;
    lock.ok_or_else(|| LogError::InUse { file: LOCK_FILE.to_owned() })
}

/// All segments in the order of their numbers, with their headers.
pub(crate) fn find_segments<D: Disk>(
    disk: &D,
    owner: u64,
) -> Result<Vec<FoundFiles<D::File>>, LogError> {
    let names = disk.list().map_err(LogError::io("list", ""))?;
    let mut numbers: Vec<_> = names.iter().filter_map(|name| segment::number_in(name)).collect();
    numbers.sort_unstable();
    let mut found = Vec::with_capacity(numbers.len());
    for number in numbers {
        let name = segment::name(number);
        let file = disk.open(&name).map_err(LogError::io("open", &name))?;
        let mut head = [0; segment::HEADER_BYTES];
        let read = file.read_at(0, &mut head).map_err(LogError::io("read", &name))?;
        let header = match Header::read(&head[..read]) {
            Ok(header) => Some(header),
            Err(BadHeader::Torn) => None,
            Err(BadHeader::Foreign(what)) => return Err(LogError::Foreign { file: name, what }),
        };
        if let Some(header) = header {
            header.check_owner(owner, &name)?;
            if header.number != number {
                let what = format!("its header says that it is segment {}", header.number);
                return Err(LogError::Foreign { file: name, what });
            }
        }
        found.push(FoundFiles { name, number, header, file });
    }
    Ok(found)
}

/// Gives out the newest checkpoint that can be read, or the one that covers the records up to
/// `from`.
fn restore<D: Disk>(
    disk: &D,
    owner: u64,
    from: Option<Sequence>,
    replay: &mut impl Replay,
) -> Result<Opened, LogError> {
    let mut opened = Opened::default();
    let mut there = checkpoint::list(disk)?;
    there.retain(|covers| from.is_none_or(|from| *covers == from));
    there.sort_unstable_by(|a, b| b.cmp(a));
    for covers in there {
        let file = checkpoint::name(covers);
        let refused = |reason| LogError::Refused { file: file.clone(), sequence: covers, reason };
        let each = |step: CheckpointStep<'_>| match step {
            CheckpointStep::Piece(piece) => replay.piece(piece).map_err(refused),
            CheckpointStep::Progress { bytes, of } => {
                replay.checkpoint_progress(bytes, of);
                Ok(())
            }
        };
        match checkpoint::read(disk, owner, covers, each) {
            Ok(_) => {
                opened.checkpoint = Some(covers);
                return Ok(opened);
            }
            Err(error @ LogError::Refused { .. }) => return Err(error),
            Err(error) => opened.unusable.push((file, error.to_string())),
        }
    }
    Ok(opened)
}

/// The last segment may have been made and not finished when the power failed: it holds nothing,
/// and is taken out.
fn take_torn_start<F: DiskFile>(
    found: &mut Vec<FoundFiles<F>>,
) -> Result<Option<FoundFiles<F>>, LogError> {
    let Some(torn) = found.pop_if(|last| last.header.is_none()) else { return Ok(None) };
    if !is_torn_start(&torn)? {
        found.push(torn);
        return Ok(None);
    }
    Ok(Some(torn))
}

/// Whether a last segment without a header may have been made and not finished. A header that was
/// synced and damaged since looks the same; but frames may follow only one that was synced.
pub(crate) fn is_torn_start<F: DiskFile>(last: &FoundFiles<F>) -> Result<bool, LogError> {
    let mut bytes = Vec::new();
    read_whole(&last.file, &mut bytes).map_err(LogError::io("read", &last.name))?;
    Ok(bytes.iter().skip(segment::HEADER_BYTES).all(|&byte| byte == 0))
}

/// Leaves out the segments that the checkpoint covers whole: they are not even read.
fn skip_covered<F>(
    mut found: Vec<FoundFiles<F>>,
    covered: Sequence,
) -> (VecDeque<Closed>, Vec<FoundFiles<F>>) {
    let starts_covered =
        |next: &FoundFiles<F>| next.header.is_some_and(|header| header.first <= covered.next());
    let skipped = found.iter().skip(1).take_while(|next| starts_covered(next)).count();
    let rest = found.split_off(skipped);
    let closed = found.iter().map(|segment| Closed { number: segment.number, last: covered });
    (closed.collect(), rest)
}

/// Segments without records are of no more use.
fn drop_empty<D: Disk>(disk: &D, closed: GoneThrough) -> Result<VecDeque<Closed>, LogError> {
    let mut kept = VecDeque::new();
    for (closed, empty) in closed {
        if empty {
            let name = segment::name(closed.number);
            disk.remove(&name).map_err(LogError::io("remove", &name))?;
        } else {
            kept.push_back(closed);
        }
    }
    Ok(kept)
}

/// A replay under way, segment by segment.
struct Going<'a, R> {
    replay: &'a mut R,
    /// Records up to here are in the checkpoint.
    covered: Sequence,
    next: Sequence,
    previous: u32,
    records: u64,
    bytes: u64,
    of: u64,
    buffer: Vec<u8>,
    closed: GoneThrough,
    cut: Option<Cut>,
    /// Whether the log is to go on, and so what it ends in is mended.
    mends: bool,
}

/// Progress is told after so many records.
const PROGRESS_EVERY: u64 = 4096;

impl<'a, R: Replay> Going<'a, R> {
    fn new<F: DiskFile>(
        found: &[FoundFiles<F>],
        covered: Sequence,
        mends: bool,
        replay: &'a mut R,
    ) -> Result<Going<'a, R>, LogError> {
        let mut of = 0;
        for segment in found {
            of += segment.file.len().map_err(LogError::io("read", &segment.name))?;
        }
        let head = found.first().and_then(|first| first.header);
        let next = head.map_or(covered.next(), |header| header.first);
        let previous = head.map_or(0, |header| header.previous);
        if next > covered.next() {
            let file = found[0].name.clone();
            return Err(LogError::Missing { from: covered.next(), to: next.before(), file });
        }
        Ok(Going {
            replay,
            covered,
            next,
            previous,
            records: 0,
            bytes: 0,
            of,
            buffer: Vec::new(),
            closed: Vec::new(),
            cut: None,
            mends,
        })
    }

    /// Goes through the segment with this place among `found`.
    fn segment<F: DiskFile>(
        &mut self,
        found: &mut [FoundFiles<F>],
        at: usize,
    ) -> Result<(), LogError> {
        let following = found.get(at + 1).map(|next| next.header.map(|header| header.first));
        let after_a_gap =
            found.get(at + 1).filter(|next| next.number > found[at].number + 1).map(|next| {
                (next.name.clone(), next.header.map_or(Sequence(0), |header| header.first))
            });
        let segment = &mut found[at];
        let name = segment.name.clone();
        let behind_checkpoint = self.covered.next();
        let damaged = |offset: usize, sequence: Sequence, what| LogError::Damaged {
            file: name.clone(),
            offset: offset as u64,
            sequence,
            cut: sequence.max(behind_checkpoint),
            what,
        };
        let Some(header) = segment.header else {
            return Err(damaged(0, self.next, "the segment's header is damaged"));
        };
        if header.first != self.next || header.previous != self.previous {
            let (from, to) = (self.next, header.first.before());
            return Err(LogError::Missing { from, to, file: name });
        }
        let scanned = self.read(segment, header)?;
        match (following, scanned.tail) {
            (None, SegmentTail::Damaged(what)) => {
                return Err(damaged(scanned.end, scanned.next, what));
            }
            (None, tail) => self.end(segment, scanned, tail)?,
            (Some(first), _) if first.is_none_or(|first| first == scanned.next) => {}
            (Some(_), SegmentTail::Torn(what) | SegmentTail::Damaged(what)) => {
                return Err(damaged(scanned.end, scanned.next, what));
            }
            (Some(_), SegmentTail::Clean) => {
                return Err(match after_a_gap {
                    Some((file, first)) => {
                        LogError::Missing { from: scanned.next, to: first.before(), file }
                    }
                    None => damaged(scanned.end, scanned.next, "the segment ends too early"),
                });
            }
        }
        let closed = Closed { number: header.number, last: scanned.next.before() };
        let empty = scanned.next == header.first;
        self.closed.push((closed, empty));
        if !empty {
            (self.next, self.previous) = (scanned.next, scanned.previous);
        }
        Ok(())
    }

    /// Replays the records of a segment.
    fn read<F: DiskFile>(
        &mut self,
        segment: &FoundFiles<F>,
        header: Header,
    ) -> Result<Scanned, LogError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = read_whole(&segment.file, &mut buffer);
        read.map_err(LogError::io("read", &segment.name))?;
        let scanned = scan(&buffer, header, |frame, end| {
            if frame.sequence <= self.covered {
                return Ok(());
            }
            let done = self.replay.record(frame.sequence, frame.kind, frame.payload);
            let (file, sequence) = (segment.name.clone(), frame.sequence);
            done.map_err(|reason| {
                let reason = format!("{reason} (at byte {end})");
                LogError::Refused { file, sequence, reason }
            })?;
            self.records += 1;
            if self.records.is_multiple_of(PROGRESS_EVERY) {
                self.tell(end as u64);
            }
            Ok(())
        })?;
        self.bytes += buffer.len() as u64;
        self.buffer = buffer;
        self.tell(0);
        Ok(scanned)
    }

    fn tell(&mut self, further: u64) {
        let bytes = self.bytes + further;
        self.replay.progress(Progress { bytes, of: self.of, records: self.records });
    }

    /// The log ends in this segment: what is torn is cut, and what was read is made stable, where
    /// the log is to go on. A process may have died between its write and its sync; and if a sync
    /// failed, the system may hold pages for clean that are not on the disk, so the last batch is
    /// written once more.
    fn end<F: DiskFile>(
        &mut self,
        segment: &mut FoundFiles<F>,
        scanned: Scanned,
        tail: SegmentTail,
    ) -> Result<(), LogError> {
        if let SegmentTail::Torn(what) = tail {
            let rest = &self.buffer[scanned.end..];
            let zeros = rest.iter().rev().take_while(|&&byte| byte == 0).count();
            let bytes = (rest.len() - zeros) as u64;
            let (file, offset) = (segment.name.clone(), scanned.end as u64);
            let goes_on_at = scanned.goes_on_at;
            self.cut = Some(Cut { file, offset, bytes, what, goes_on_at });
        }
        if !self.mends {
            return Ok(());
        }
        let (file, last) = (&mut segment.file, &self.buffer[scanned.batch..scanned.end]);
        let rewritten = file.write_at(scanned.batch as u64, last);
        rewritten.map_err(LogError::io("write to", &segment.name))?;
        file.set_len(scanned.end as u64).map_err(LogError::io("shorten", &segment.name))?;
        file.sync().map_err(LogError::io("sync", &segment.name))
    }
}
