//! One script, ended at each call that it makes of the disk: by a disk that is gone from there on,
//! by a process that dies, by power that fails.

use muesli_log::disk::memory::Faults;
use muesli_log::{CheckpointWriter, LogError, MemoryDisk, Sequence};

use crate::shared::{Kept, SMALL, batch, payload, reopen};

/// So much of the script is behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// Records that were stable, as was answered.
    stable: u64,
    /// Records that were handed to the disk.
    written: u64,
    /// What the newest checkpoint covers that was published.
    covered: u64,
}

/// Opens, writes, takes checkpoints of which one stands alone, begins segments, and closes.
fn script(disk: &MemoryDisk, done: &mut Done) -> Result<(), LogError> {
    let (mut writer, ..) = reopen(disk)?;
    for round in 0..3 {
        for records in [3, 1, 9] {
            done.written += records;
            done.stable = writer.write(&mut batch(1, writer.written(), records))?.0;
        }
        done.written += 2;
        writer.write_unsynced(&mut batch(1, writer.written(), 2))?;
        done.stable = writer.rotate()?.0;
        let (covers, keep) = (writer.stable(), if round == 1 { 1 } else { 2 });
        let mut checkpoint = CheckpointWriter::begin(disk.clone(), SMALL.owner, covers, keep)?;
        checkpoint.piece(&covers.0.to_le_bytes())?;
        checkpoint.piece(&[7; 1_000])?;
        let published = checkpoint.finish()?;
        done.covered = covers.0;
        writer.truncate(published.truncate)?;
    }
    writer.mark()?;
    done.stable = writer.close()?.0;
    Ok(())
}

/// Nothing answered is lost, and nothing is there in part or that nobody wrote.
fn judge(disk: &MemoryDisk, done: Done, what: &str) {
    let (_, opened, Kept { pieces, records, .. }) =
        reopen(disk).unwrap_or_else(|error| panic!("{what}: {done:?}: {error}"));
    let (last, covers) = (opened.last.0, opened.checkpoint.unwrap_or_default().0);
    assert!((done.stable..=done.written).contains(&last), "{what}: {last} of {done:?}");
    assert!(covers >= done.covered, "{what}: a checkpoint of {covers}, of {done:?}");
    if covers > 0 {
        assert_eq!(pieces, [covers.to_le_bytes().to_vec(), vec![7; 1_000]], "{what}");
    }
    let numbers: Vec<_> = records.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (covers + 1..=last).collect::<Vec<_>>(), "{what}");
    assert!(records.iter().all(|(number, _, bytes)| *bytes == payload(1, *number)), "{what}");
}

#[test]
fn a_disk_that_is_gone_from_any_call_on_loses_nothing_answered() {
    let whole = MemoryDisk::new(0);
    script(&whole, &mut Done::default()).unwrap();
    let calls = whole.calls();
    assert!(calls > 100, "{calls} calls are no script");
    for call in 1..=calls {
        let (disk, mut done) = (MemoryDisk::new(call), Done::default());
        disk.set_faults(Faults { all_fail_from: Some(call), ..Faults::default() });
        let ended = script(&disk, &mut done);
        // To remove what an earlier checkpoint has left may fail: the next start does it.
        assert!(ended.is_err() || done.stable == 45, "call {call}: {done:?}");
        judge(&disk.after_kill(), done, &format!("killed at call {call}"));
        for chance in 0..4 {
            let what = format!("power lost at call {call}, chance {chance}");
            judge(&disk.after_power_loss(), done, &what);
        }
    }
}

/// The disk as it is behind each change of it, with what was not synced since lost, or there in
/// part: by chance, and so often.
#[test]
fn every_image_of_the_disk_opens_with_all_that_was_answered() {
    let whole = MemoryDisk::new(0);
    script(&whole, &mut Done::default()).unwrap();
    let changes = whole.changes();
    for change in 1..=changes + 1 {
        let (disk, mut done) = (MemoryDisk::new(change), Done::default());
        disk.set_faults(Faults { power_off_at: Some(change), ..Faults::default() });
        assert_eq!(script(&disk, &mut done).is_ok(), change > changes, "change {change}");
        for chance in 0..24 {
            let left = disk.after_power_loss();
            judge(&left, done, &format!("change {change}, chance {chance}"));
            // What a start has mended is as good after another loss of power.
            let again = left.after_power_loss();
            judge(&again, done, &format!("change {change}, chance {chance}, once more"));
        }
    }
}

/// A start of a log that is whole, and the next one, fail at each call that they make.
#[test]
fn a_start_that_fails_at_any_call_changes_nothing_that_was_answered() {
    let disk = MemoryDisk::new(9);
    let mut done = Done::default();
    script(&disk, &mut done).unwrap();
    let left = disk.after_kill();
    reopen(&left).unwrap();
    for call in 1..=left.calls() {
        let left = disk.after_kill();
        left.set_faults(Faults { all_fail_from: Some(call), ..Faults::default() });
        assert!(reopen(&left).is_err(), "call {call}");
        judge(&left.after_power_loss(), done, &format!("a start failed at call {call}"));
    }
    assert_eq!(done.stable, 45);
    assert_eq!(reopen(&left).unwrap().1.last, Sequence(45));
}
