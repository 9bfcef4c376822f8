//! Reading a segment: its frames in order, and what to think of the place where they end.

use crate::error::LogError;
use crate::format::frame::{self, Frame, MARK, MARK_BYTES, OWN_KINDS};
use crate::format::segment::{self, Header};
use crate::sequence::Sequence;

/// So many records after the one expected may be of the same batch.
const NEAR: u64 = 1 << 20;

/// How far the frames of a segment go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// The record expected after the last good one.
    pub next: Sequence,
    /// The checksum of the last good frame.
    pub previous: u32,
    /// Where the last good frame ends.
    pub end: usize,
    /// Where the first batch begins that no mark claims: everything before it was synced.
    pub batch: usize,
    /// What follows it.
    pub tail: SegmentTail,
    /// Where the tail is torn: the last of the whole records that follow the gap.
    pub goes_on_at: Option<Sequence>,
}

/// What follows the last good frame of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentTail {
    /// Nothing, or zeros.
    Clean,
    /// Something that was never finished: nobody claims it.
    Torn(&'static str),
    /// Something that a later mark claims to have been stable.
    Damaged(&'static str),
}

/// Goes through the frames of a segment, all its bytes with the header; `each` gets the records.
pub(crate) fn scan(
    bytes: &[u8],
    header: Header,
    mut each: impl FnMut(&Frame<'_>, usize) -> Result<(), LogError>,
) -> Result<Scanned, LogError> {
    let salt = header.salt();
    let (mut next, mut previous) = (header.first, header.previous);
    let mut end = segment::HEADER_BYTES;
    let mut batch = end;
    let what = loop {
        let rest = bytes.get(end..).unwrap_or_default();
        let frame = match frame::read(rest, salt) {
            None => break "its checksum is wrong",
            Some(frame) if frame.previous != previous => break "it does not follow its predecessor",
            Some(frame) if frame.sequence != next => break "it has another number",
            Some(frame) => frame,
        };
        if frame.kind < OWN_KINDS {
            each(&frame, end)?;
            next = next.next();
        } else if frame.kind == MARK {
            if frame.claim().is_some_and(|claimed| claimed >= next.before()) {
                batch = end;
            }
        } else {
            break "it is of a kind that no log holds";
        }
        (previous, end) = (frame.checksum, end + frame.bytes());
    };
    let rest = bytes.get(end..).unwrap_or_default();
    let tail = judge(rest, salt, next, what);
    let goes_on_at =
        matches!(tail, SegmentTail::Torn(_)).then(|| last_whole(rest, salt, next)).flatten();
    Ok(Scanned { next, previous, end, batch, tail, goes_on_at })
}

/// The last of the whole records after a gap. A number near the expected one makes it worth looking
/// whether the checksum is right.
fn last_whole(rest: &[u8], salt: u32, next: Sequence) -> Option<Sequence> {
    let records = rest.windows(frame::HEADER_BYTES).enumerate().filter_map(|(at, header)| {
        let sequence = frame::sequence_at(header);
        let near = sequence > next && sequence.0 - next.0 < NEAR && header[12] < OWN_KINDS;
        near.then(|| frame::read(&rest[at..], salt)).flatten().map(|frame| frame.sequence)
    });
    records.max()
}

/// Whether the bytes after the last good frame were ever promised: a mark that claims `next`
/// stands among them. Marks are looked for at every place, for nothing says where frames begin.
fn judge(rest: &[u8], salt: u32, next: Sequence, what: &'static str) -> SegmentTail {
    if rest.iter().all(|&byte| byte == 0) {
        return SegmentTail::Clean;
    }
    let is_marked = rest.windows(MARK_BYTES).any(|place| {
        let looks_so = place[12] == MARK && frame::word(&place[8..]) == 8;
        let mark = if looks_so { frame::read(place, salt) } else { None };
        mark.and_then(|mark| mark.claim()).is_some_and(|claimed| claimed >= next)
    });
    if is_marked { SegmentTail::Damaged(what) } else { SegmentTail::Torn(what) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;

    const HEADER: Header = Header { owner: 1, number: 1, first: Sequence(1), previous: 0 };

    /// Three batches of two records.
    fn segment() -> Vec<u8> {
        let mut bytes = HEADER.to_bytes().to_vec();
        let (mut previous, mut batch) = (0, Batch::after(Sequence(0)));
        for _ in 0..3 {
            let stable = batch.last();
            for value in [1, 2] {
                batch.append(value, |out| out.extend_from_slice(&[value; 9])).unwrap();
            }
            let (sealed, last) = batch.seal(stable, HEADER.salt(), previous);
            bytes.extend_from_slice(sealed);
            previous = last;
            batch.restart(batch.last());
        }
        bytes
    }

    fn tail_of(bytes: &[u8]) -> (u64, SegmentTail) {
        let scanned = scan(bytes, HEADER, |_, _| Ok(())).unwrap();
        (scanned.next.0, scanned.tail)
    }

    #[test]
    fn a_whole_segment_is_clean_with_and_without_zeros() {
        let mut bytes = segment();
        assert_eq!(tail_of(&bytes), (7, SegmentTail::Clean));
        bytes.resize(bytes.len() + 5000, 0);
        assert_eq!(tail_of(&bytes), (7, SegmentTail::Clean));
    }

    #[test]
    fn a_bad_byte_is_damage_in_all_batches_but_the_last() {
        let (whole, batch) = (segment(), (segment().len() - segment::HEADER_BYTES) / 3);
        for place in segment::HEADER_BYTES..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x40;
            let (next, tail) = tail_of(&bytes);
            let last = place >= segment::HEADER_BYTES + 2 * batch;
            assert!(next < 7, "byte {place} was not noticed");
            assert_eq!(matches!(tail, SegmentTail::Torn(_)), last, "byte {place}: {tail:?}");
            assert_eq!(matches!(tail, SegmentTail::Damaged(_)), !last, "byte {place}: {tail:?}");
        }
    }

    #[test]
    fn after_a_mark_a_bad_byte_is_damage_in_every_batch() {
        let whole = segment();
        let last = scan(&whole, HEADER, |_, _| Ok(())).unwrap();
        let mut mark = Batch::after(Sequence(6));
        let (mark, _) = mark.seal(Sequence(6), HEADER.salt(), last.previous);
        let marked = [&whole, mark].concat();
        assert_eq!(tail_of(&marked), (7, SegmentTail::Clean));
        for place in segment::HEADER_BYTES..whole.len() {
            let mut bytes = marked.clone();
            bytes[place] ^= 0x40;
            let (next, tail) = tail_of(&bytes);
            assert!(next < 7 && matches!(tail, SegmentTail::Damaged(_)), "byte {place}: {tail:?}");
        }
        for place in whole.len()..marked.len() {
            let mut bytes = marked.clone();
            bytes[place] ^= 0x40;
            let (next, tail) = tail_of(&bytes);
            assert!(next == 7 && matches!(tail, SegmentTail::Torn(_)), "byte {place}: {tail:?}");
        }
    }

    #[test]
    fn whole_records_after_a_gap_are_found() {
        let whole = segment();
        let batch = (whole.len() - segment::HEADER_BYTES) / 3;
        let goes_on_at = |place: usize| {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x40;
            scan(&bytes, HEADER, |_, _| Ok(())).unwrap().goes_on_at
        };
        // The first of the last batch's two records, and the second.
        assert_eq!(goes_on_at(whole.len() - batch + 40), Some(Sequence(6)));
        assert_eq!(goes_on_at(whole.len() - 1), None);
    }

    #[test]
    fn every_prefix_is_torn_or_clean_never_damaged() {
        let whole = segment();
        for length in segment::HEADER_BYTES..whole.len() {
            let (next, tail) = tail_of(&whole[..length]);
            assert!(next < 7 && !matches!(tail, SegmentTail::Damaged(_)), "prefix of {length}");
        }
    }
}
