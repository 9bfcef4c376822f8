//! Whatever the power does, a log comes back with all that was stable and nothing that was not
//! appended, in order.

use muesli_log::disk::memory::Faults;
use muesli_log::{CheckpointWriter, LogError, MemoryDisk, Sequence};
use proptest::prelude::*;

use crate::shared::{Kept, SMALL, batch, payload, reopen};

/// How a life of the log ends.
#[derive(Clone, Copy, Debug)]
enum Death {
    PowerOff(u64),
    SyncFails(u64),
    Full(u64),
    Kill,
    Close,
}

fn deaths() -> impl Strategy<Value = Death> {
    prop_oneof![
        4 => (1..60_u64).prop_map(Death::PowerOff),
        2 => (1..20_u64).prop_map(Death::SyncFails),
        1 => (1500..6000_u64).prop_map(Death::Full),
        1 => Just(Death::Kill),
        1 => Just(Death::Close),
    ]
}

/// What must be true of the log: `acknowledged` records at least, all as in `model`.
struct Model {
    /// Which life appended each record, from number 1.
    incarnations: Vec<u8>,
    acknowledged: usize,
    /// What the newest checkpoint published covers.
    covered: usize,
}

impl Model {
    fn check(&mut self, kept: &Kept, from: Option<Sequence>, last: Sequence) {
        let from = from.map_or(0, |covers| covers.0);
        let last = last.0 as usize;
        assert!(last >= self.acknowledged, "{last} records of {} promised", self.acknowledged);
        assert!(last <= self.incarnations.len(), "records that nobody appended");
        assert_eq!(kept.records.len(), last - from as usize);
        for (at, (sequence, _, bytes)) in kept.records.iter().enumerate() {
            assert_eq!(*sequence, from + at as u64 + 1);
            let incarnation = self.incarnations[*sequence as usize - 1];
            assert_eq!(bytes, &payload(incarnation, *sequence), "record {sequence}");
        }
        // What was seen at a start counts as promised: others have been told of it by now.
        self.incarnations.truncate(last);
        self.acknowledged = last;
    }

    /// One life: opens, checks, appends, perhaps makes a checkpoint, dies.
    fn live(
        &mut self,
        disk: &MemoryDisk,
        incarnation: u8,
        batches: &[(u64, bool)],
        death: Death,
        piece: bool,
    ) {
        let opened = reopen(disk);
        let (mut writer, opened, kept) = match opened {
            Ok(opened) => opened,
            Err(LogError::Io { .. }) => return, // The disk failed before the log was open.
            Err(error) => panic!("{error}"),
        };
        self.check(&kept, opened.checkpoint, opened.last);
        for &(records, syncs) in batches {
            let mut batch = batch(incarnation, writer.written(), records);
            self.incarnations.extend(std::iter::repeat_n(incarnation, records as usize));
            let written = match syncs {
                true => writer.write(&mut batch),
                false => writer.write_unsynced(&mut batch),
            };
            match written {
                Ok(stable) => {
                    assert!(!syncs || stable.0 as usize == self.incarnations.len());
                    self.acknowledged = stable.0 as usize;
                }
                Err(error) => {
                    let again = writer.write(&mut batch).expect_err("a failed log stays failed");
                    assert_eq!(again.to_string(), error.to_string());
                    return;
                }
            }
        }
        if piece && writer.is_synced() {
            let covers = writer.stable();
            let done = CheckpointWriter::begin(disk.clone(), SMALL.owner, covers, 2)
                .and_then(|mut it| it.piece(b"all so far").and_then(|()| it.finish()));
            if let Ok(done) = done {
                self.covered = covers.0 as usize;
                let _ = writer.truncate(done.truncate);
            }
        }
        if matches!(death, Death::Close) {
            let _ = writer.close();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn all_that_was_stable_survives(
        seed: u64,
        incarnations in prop::collection::vec(
            (
                prop::collection::vec((1..12_u64, prop::bool::weighted(0.7)), 0..12),
                deaths(),
                any::<bool>(),
                any::<bool>(),
            ),
            1..7,
        ),
    ) {
        let mut disk = MemoryDisk::new(seed);
        let mut model = Model { incarnations: Vec::new(), acknowledged: 0, covered: 0 };
        for (incarnation, (batches, death, piece, power)) in incarnations.iter().enumerate() {
            disk.set_faults(match *death {
                Death::PowerOff(at) => Faults { power_off_at: Some(at), ..Faults::default() },
                Death::SyncFails(at) => Faults { sync_fails_at: Some(at), ..Faults::default() },
                Death::Full(bytes) => Faults { capacity: Some(bytes), ..Faults::default() },
                Death::Kill | Death::Close => Faults::default(),
            });
            model.live(&disk, incarnation as u8, batches, *death, *piece);
            // A process that dies leaves the disk as it is, with pages that a failed sync forgot.
            if *power || matches!(death, Death::PowerOff(_)) {
                disk = disk.after_power_loss();
            } else {
                disk.set_faults(Faults::default());
            }
        }
        let (_, opened, kept) = reopen(&disk).expect("a disk without faults");
        model.check(&kept, opened.checkpoint, opened.last);
        prop_assert!(opened.checkpoint.unwrap_or_default().0 as usize >= model.covered);
        // A second start finds the same.
        let (_, again, _) = reopen(&disk.after_power_loss()).expect("a disk without faults");
        prop_assert_eq!(again.last, opened.last);
    }
}

#[test]
fn a_failed_sync_is_not_tried_again_and_what_was_read_after_it_is_stable() {
    for seed in 0..64 {
        let disk = MemoryDisk::new(seed);
        let (mut writer, ..) = reopen(&disk).unwrap();
        writer.write(&mut batch(1, Sequence(0), 3)).unwrap();
        disk.set_faults(Faults { sync_fails_at: Some(1), ..Faults::default() });
        let mut second = batch(1, Sequence(3), 3);
        assert!(writer.write(&mut second).is_err() && writer.stable() == Sequence(3));
        drop(writer);
        // The system shows the second batch, and the disk may not have it.
        let (writer, opened, _) = reopen(&disk).unwrap();
        assert_eq!(opened.last, Sequence(6));
        drop(writer);
        let (_, opened, _) = reopen(&disk.after_power_loss()).unwrap();
        assert_eq!(opened.last, Sequence(6), "seed {seed}");
    }
}

/// Batches that were only written are stable with the next one that is synced, and are written once
/// more at the next start where a sync has failed.
#[test]
fn what_was_only_written_is_stable_with_the_next_sync() {
    for seed in 0..64 {
        let disk = MemoryDisk::new(seed);
        let (mut writer, ..) = reopen(&disk).unwrap();
        writer.write_unsynced(&mut batch(1, Sequence(0), 3)).unwrap();
        assert_eq!((writer.stable(), writer.written()), (Sequence(0), Sequence(3)));
        assert_eq!(writer.sync().unwrap(), Sequence(3));
        for from in [3, 6] {
            writer.write_unsynced(&mut batch(1, Sequence(from), 3)).unwrap();
        }
        disk.set_faults(Faults { sync_fails_at: Some(1), ..Faults::default() });
        assert!(writer.sync().is_err() && writer.stable() == Sequence(3));
        drop(writer);
        let (writer, opened, _) = reopen(&disk).unwrap();
        assert_eq!(opened.last, Sequence(9), "the system shows them");
        drop(writer);
        let (_, opened, _) = reopen(&disk.after_power_loss()).unwrap();
        assert_eq!(opened.last, Sequence(9), "seed {seed}");
    }
}

#[test]
fn a_second_log_in_a_directory_is_refused() {
    let disk = MemoryDisk::new(1);
    let (writer, ..) = reopen(&disk).unwrap();
    assert!(matches!(reopen(&disk), Err(LogError::InUse { .. })));
    drop(writer);
    assert!(reopen(&disk).is_ok());
}

#[test]
fn the_log_of_another_owner_is_refused() {
    let disk = MemoryDisk::new(1);
    drop(reopen(&disk).unwrap());
    let other = muesli_log::Options { owner: 8, ..SMALL };
    let refused = muesli_log::open(disk, other, &mut Kept::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "segment-00000000000000000001 is not of this log: its owner is 0x7, and this is 0x8"
    );
}

#[test]
fn a_bad_checkpoint_falls_back_to_the_one_before() {
    let disk = MemoryDisk::new(1);
    let (mut writer, ..) = reopen(&disk).unwrap();
    for covers in [40, 80] {
        for _ in 0..8 {
            writer.write(&mut batch(1, writer.stable(), 5)).unwrap();
        }
        assert_eq!(writer.stable(), Sequence(covers));
        let begun = CheckpointWriter::begin(disk.clone(), SMALL.owner, writer.stable(), 2);
        let mut checkpoint = begun.unwrap();
        checkpoint.piece(&[covers as u8; 3000]).unwrap();
        checkpoint.piece(b"more").unwrap();
        let published = checkpoint.finish().unwrap();
        writer.truncate(published.truncate).unwrap();
    }
    assert!(writer.segments() < 16, "the segments before the first checkpoint went");
    drop(writer);
    let (_, opened, kept) = reopen(&disk).unwrap();
    assert_eq!((opened.checkpoint, opened.records), (Some(Sequence(80)), 0));
    assert_eq!(kept.pieces, [vec![80; 3000], b"more".to_vec()]);
    let mut files = disk.files();
    files.get_mut("checkpoint-00000000000000000080").unwrap()[2000] ^= 1;
    let (_, opened, kept) = reopen(&MemoryDisk::with_files(1, files)).unwrap();
    assert_eq!((opened.checkpoint, opened.records), (Some(Sequence(40)), 40));
    assert_eq!(kept.pieces[0], vec![40; 3000]);
    assert_eq!(kept.records.len(), 40);
    assert!(opened.unusable[0].1.contains("its checksums are wrong"), "{:?}", opened.unusable);
    assert_eq!(kept.progress.last().map(|last| last.records), Some(40));
}
