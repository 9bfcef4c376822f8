//! Recorded logs, cut and bent at every place.

use std::collections::BTreeMap;

use muesli_log::repair::{self, End};
use muesli_log::{CheckpointWriter, LogError, MemoryDisk, Sequence};

use crate::shared::{SMALL, batch, payload, reopen};

/// Twelve batches of four records over several segments, the last of 3 stable after each.
fn recorded(close: bool) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let disk = MemoryDisk::new(1);
    let (mut writer, ..) = reopen(&disk).unwrap();
    for _ in 0..12 {
        writer.write(&mut batch(3, writer.stable(), 4)).unwrap();
    }
    if close {
        writer.close().unwrap();
    }
    let files = disk.files();
    let names: Vec<_> = files.keys().cloned().collect();
    assert!(names.len() > 3);
    (files, names)
}

fn is_prefix(records: &[(u64, u8, Vec<u8>)]) -> bool {
    let mut numbered = records.iter().zip(1..);
    numbered.all(|((sequence, _, bytes), at)| *sequence == at && *bytes == payload(3, at))
}

#[test]
fn every_prefix_of_the_last_segment_replays_to_a_prefix() {
    let (files, names) = recorded(false);
    let last = names.last().unwrap();
    let before = reopen(&MemoryDisk::with_files(1, {
        let mut files = files.clone();
        files.remove(last);
        files
    }));
    let before = before.unwrap().1.last;
    for length in 0..=files[last].len() {
        let mut files = files.clone();
        files.get_mut(last).unwrap().truncate(length);
        let (_, opened, kept) = reopen(&MemoryDisk::with_files(1, files)).unwrap();
        assert!(opened.last >= before && opened.last <= Sequence(48), "prefix of {length}");
        assert!(is_prefix(&kept.records) && kept.records.len() as u64 == opened.last.0);
    }
}

#[test]
fn every_torn_last_block_is_cut_and_what_was_stable_before_it_stays() {
    let (files, names) = recorded(false);
    let last = names.last().unwrap();
    // The last batch has not been acknowledged: any of its bytes may be missing.
    let whole = files[last].clone();
    let stable = Sequence(44);
    let mut begin = whole.len();
    for length in (0..whole.len()).rev() {
        let mut cut = files.clone();
        cut.get_mut(last).unwrap().truncate(length);
        if reopen(&MemoryDisk::with_files(1, cut)).unwrap().1.last < stable {
            break;
        }
        begin = length;
    }
    for from in begin..whole.len() {
        for fill in [0, 0xff] {
            let mut torn = files.clone();
            let bytes = torn.get_mut(last).unwrap();
            let to = (from + 64).min(bytes.len());
            bytes[from..to].fill(fill);
            let (_, opened, kept) = reopen(&MemoryDisk::with_files(1, torn)).unwrap();
            assert!(opened.last >= stable && is_prefix(&kept.records));
            let lost = opened.last < Sequence(48);
            assert!(!lost || fill == 0 || opened.cut.is_some(), "a cut is reported");
        }
    }
}

/// In a log that was closed, every record is claimed: no flipped bit goes unnoticed, and none
/// costs a record in silence.
#[test]
fn every_flipped_bit_of_a_closed_log_is_refused_or_harmless() {
    let (files, names) = recorded(true);
    let (mut refused, mut harmless) = (0, 0);
    for name in &names {
        for bit in 0..files[name].len() * 8 {
            let mut bent = files.clone();
            bent.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            match reopen(&MemoryDisk::with_files(1, bent)) {
                Err(LogError::Damaged { .. }) => refused += 1,
                Err(error) => panic!("bit {bit} of {name}: {error}"),
                Ok((_, opened, kept)) => {
                    // The closing mark itself: it claims what is there.
                    assert_eq!(opened.last, Sequence(48), "bit {bit} of {name}");
                    assert!(is_prefix(&kept.records) && opened.cut.is_some());
                    harmless += 1;
                }
            }
        }
    }
    assert_eq!(harmless, 29 * 8, "the closing mark has 29 bytes");
    assert!(refused > 10_000);
}

#[test]
fn a_missing_segment_is_named() {
    let (mut files, names) = recorded(true);
    files.remove(&names[1]);
    let refused = reopen(&MemoryDisk::with_files(1, files)).unwrap_err().to_string();
    assert!(refused.contains("are missing: the log goes on at segment-"), "{refused}");
}

#[test]
fn damage_is_inspected_and_cut_by_hand() {
    let (mut files, names) = recorded(true);
    files.get_mut(&names[2]).unwrap()[200] ^= 4;
    let disk = MemoryDisk::with_files(1, files);
    let refused = reopen(&disk).unwrap_err();
    let LogError::Damaged { sequence, offset, file, .. } = &refused else { panic!("{refused}") };
    let hint = format!("`muesli log truncate FOLDER --at {sequence}`");
    assert!(refused.to_string().contains(&hint), "{refused}");
    let inspection = repair::inspect(&disk, SMALL.owner).unwrap();
    let damaged = inspection.segments.iter().find(|segment| segment.file == *file).unwrap();
    assert_eq!(damaged.end, End::Damaged(*offset, *sequence));
    let whole = inspection.segments.iter().filter(|segment| segment.end == End::Clean).count();
    assert_eq!(whole, names.len() - 1);
    let too_late = repair::truncate(&disk, SMALL.owner, Sequence(sequence.0 + 1));
    assert!(matches!(too_late, Err(LogError::Damaged { .. })));
    let left = repair::truncate(&disk, SMALL.owner, *sequence).unwrap();
    let (_, opened, kept) = reopen(&disk).unwrap();
    assert_eq!((opened.last, left), (left, sequence.before()));
    assert!(is_prefix(&kept.records) && opened.cut.is_none());
}

#[test]
fn a_log_is_cut_at_any_record() {
    for at in 1..=49 {
        let disk = MemoryDisk::with_files(1, recorded(true).0);
        assert_eq!(repair::truncate(&disk, SMALL.owner, Sequence(at)).unwrap().0, at - 1);
        let (mut writer, opened, kept) = reopen(&disk).unwrap();
        assert_eq!((opened.last.0, kept.records.len() as u64), (at - 1, at - 1));
        writer.write(&mut batch(3, opened.last, 2)).unwrap();
        drop(writer);
        let (_, opened, kept) = reopen(&disk).unwrap();
        assert!(opened.last.0 == at + 1 && is_prefix(&kept.records));
    }
}

/// Records 41 to 83 with checkpoints of the first 40 and 80; records up to 40 are gone.
fn with_checkpoints() -> BTreeMap<String, Vec<u8>> {
    let disk = MemoryDisk::new(1);
    let (mut writer, ..) = reopen(&disk).unwrap();
    for _ in 0..2 {
        for _ in 0..8 {
            writer.write(&mut batch(3, writer.stable(), 5)).unwrap();
        }
        let covers = writer.stable();
        let mut checkpoint = CheckpointWriter::begin(disk.clone(), SMALL.owner, covers, 2).unwrap();
        checkpoint.piece(&[covers.0 as u8; 100]).unwrap();
        let published = checkpoint.finish().unwrap();
        writer.truncate(published.truncate).unwrap();
        // A new life begins a segment of its own, right behind the checkpoint.
        drop(writer);
        writer = reopen(&disk).unwrap().0;
    }
    writer.write(&mut batch(3, writer.stable(), 3)).unwrap();
    writer.close().unwrap();
    disk.files()
}

/// Cuts a log before a record; what a start finds then, `None` where it is not cut.
fn cut_at(files: &BTreeMap<String, Vec<u8>>, at: u64) -> Option<(u64, u64)> {
    let disk = MemoryDisk::with_files(1, files.clone());
    let may = repair::judge_cut(&disk, SMALL.owner, Sequence(at));
    let cut = repair::truncate(&disk, SMALL.owner, Sequence(at));
    assert_eq!(may.is_ok(), cut.is_ok(), "{at}: {may:?} {cut:?}");
    if cut.is_err() {
        let mut after = disk.files();
        after.retain(|name, _| files.contains_key(name));
        assert_eq!(&after, files, "{at}: nothing was changed");
        return None;
    }
    assert_eq!(cut.unwrap(), Sequence(at - 1));
    let (_, opened, _) = reopen(&disk).unwrap();
    assert_eq!(opened.last, Sequence(at - 1), "{at}");
    Some((opened.checkpoint.unwrap_or_default().0, opened.records))
}

#[test]
fn a_cut_leaves_a_checkpoint_to_begin_with_or_is_refused() {
    let files = with_checkpoints();
    for at in 1..=84 {
        let expected = match at {
            0..41 => None,
            41..81 => Some((40, at - 41)),
            _ => Some((80, at - 81)),
        };
        assert_eq!(cut_at(&files, at), expected, "{at}");
    }
    // Without the newer checkpoint, and with a record that cannot be read.
    let mut bent = files.clone();
    bent.retain(|name, _| !name.ends_with("80"));
    let sound = MemoryDisk::with_files(1, bent.clone());
    let segments = repair::inspect(&sound, SMALL.owner).unwrap().segments;
    let middle = segments.iter().find(|it| it.records.is_some_and(|(first, _)| first.0 > 50));
    let middle = middle.unwrap();
    let bad = middle.records.unwrap().0;
    bent.get_mut(&middle.file).unwrap()[60] ^= 0xff;
    for at in 41..=84 {
        let expected = (at <= bad.0).then(|| (40, at - 41));
        assert_eq!(cut_at(&bent, at), expected, "{at} of {bad}");
    }
}

/// The damage lies in records that a checkpoint holds, and those behind it follow in the same
/// segment: what has to be given up begins behind the checkpoint, and it stays.
#[test]
fn a_checkpoint_that_can_be_read_is_kept_where_the_damage_lies_before_its_end() {
    let disk = MemoryDisk::new(1);
    let (mut writer, ..) = reopen(&disk).unwrap();
    writer.write(&mut batch(3, writer.stable(), 4)).unwrap();
    let covers = writer.stable();
    let mut checkpoint = CheckpointWriter::begin(disk.clone(), SMALL.owner, covers, 2).unwrap();
    checkpoint.piece(&[9; 100]).unwrap();
    checkpoint.finish().unwrap();
    for _ in 0..4 {
        writer.write(&mut batch(3, writer.stable(), 2)).unwrap();
    }
    writer.close().unwrap();
    let mut files = disk.files();
    let first = files.keys().find(|name| name.starts_with("segment")).unwrap().clone();
    files.get_mut(&first).unwrap()[60] ^= 4;
    let disk = MemoryDisk::with_files(1, files);
    let refused = reopen(&disk).unwrap_err();
    let LogError::Damaged { sequence, cut, .. } = refused else { panic!("{refused}") };
    assert!(sequence <= covers, "record {sequence} of a checkpoint of {covers}");
    assert_eq!(cut, covers.next());
    let text = refused.to_string();
    let advice = format!(
        "give up record {cut} and everything after it (a checkpoint that can be read holds the \
         first {covers} records): `muesli log truncate FOLDER --at {cut}`"
    );
    assert!(text.contains(&advice), "{text}");
    // Where the damaged record is, the checkpoint would be lost with it.
    let worse = MemoryDisk::with_files(1, disk.files());
    repair::truncate(&worse, SMALL.owner, sequence).unwrap();
    assert_eq!(reopen(&worse).unwrap().1.checkpoint, None);
    assert_eq!(repair::truncate(&disk, SMALL.owner, cut).unwrap(), covers);
    let (mut writer, opened, kept) = reopen(&disk).unwrap();
    assert_eq!((opened.checkpoint, opened.last), (Some(covers), covers));
    assert_eq!(kept.pieces, [vec![9; 100]]);
    writer.write(&mut batch(3, opened.last, 2)).unwrap();
    drop(writer);
    assert_eq!(reopen(&disk).unwrap().1.last.0, covers.0 + 2);
}
