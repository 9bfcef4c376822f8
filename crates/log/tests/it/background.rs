//! The log and its checkpoints beside a loop, on a real directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use muesli_log::checkpoint::streaming::Offered;
use muesli_log::disk::memory::Faults;
use muesli_log::{CheckpointStream, Directory, Log, LogError, MemoryDisk, Options, Sequence, open};

use crate::shared::{Kept, SMALL, payload, reopen};

fn append(log: &mut Log, records: u64) {
    for _ in 0..records {
        let bytes = payload(1, log.appended().0 + 1);
        log.append(2, |out| out.extend_from_slice(&bytes)).unwrap();
    }
}

#[test]
fn a_log_on_a_real_directory_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let options = Options { segment_bytes: 20_000, preallocate_bytes: 4096, ..SMALL };
    let disk = Directory::create(&path).unwrap();
    let (writer, _) = open(disk.clone(), options, &mut Kept::default()).unwrap();
    let woken = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&woken);
    let mut log = Log::start(writer, move || {
        counter.fetch_add(1, Ordering::SeqCst);
    })
    .unwrap();
    for _ in 0..50 {
        append(&mut log, 20);
        log.flush().unwrap();
    }
    assert_eq!(log.sync().unwrap(), Sequence(1000));
    assert!(log.failure().is_none());
    let mut checkpoint =
        CheckpointStream::start(disk.clone(), options.owner, log.stable(), 1).unwrap();
    for number in 0..40_u8 {
        let mut piece = vec![number; 3000];
        loop {
            match checkpoint.offer(piece) {
                Offered::Taken => break,
                Offered::Full(again) => piece = again,
                Offered::Failed => panic!("{:?}", checkpoint.outcome()),
            }
        }
    }
    let published = checkpoint.wait().unwrap();
    assert_eq!(published.truncate, Sequence(1000));
    log.truncate(published.truncate);
    append(&mut log, 5);
    assert!(open(disk.clone(), options, &mut Kept::default()).is_err(), "it is in use");
    assert_eq!(log.close().unwrap(), Sequence(1005));
    assert!(woken.load(Ordering::SeqCst) > 0);
    let mut kept = Kept::default();
    let (_, opened) = open(disk, options, &mut kept).unwrap();
    assert_eq!((opened.last, opened.records, opened.cut), (Sequence(1005), 5, None));
    assert_eq!(kept.pieces.len(), 40);
    let segments = std::fs::read_dir(&path).unwrap();
    let names = segments.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.filter(|name| name.starts_with("segment")).count() <= 3);
}

#[test]
fn a_log_that_fails_says_so_and_promises_nothing_more() {
    let disk = MemoryDisk::new(5);
    let (writer, ..) = reopen(&disk).unwrap();
    let mut log = Log::start(writer, || {}).unwrap();
    append(&mut log, 5);
    assert_eq!(log.sync().unwrap(), Sequence(5));
    disk.set_faults(Faults { capacity: Some(0), ..Faults::default() });
    append(&mut log, 50);
    let failed = log.sync().unwrap_err();
    assert!(matches!(failed, LogError::Io { .. }), "{failed}");
    assert_eq!(log.stable(), Sequence(5));
    disk.set_faults(Faults::default());
    append(&mut log, 1);
    assert_eq!(log.flush().unwrap_err().to_string(), failed.to_string());
    assert_eq!(log.close().unwrap_err().to_string(), failed.to_string());
}

#[test]
fn a_checkpoint_that_is_given_up_leaves_nothing() {
    let disk = MemoryDisk::new(5);
    let mut stream = CheckpointStream::start(disk.clone(), 7, Sequence(1), 1).unwrap();
    assert_eq!(stream.offer(vec![1; 100]), Offered::Taken);
    drop(stream);
    let (_, opened, _) = reopen(&disk).unwrap();
    assert_eq!(opened.checkpoint, None);
}

#[test]
fn a_log_with_more_waiting_than_allowed_is_congested() {
    let disk = MemoryDisk::new(5);
    let options = Options { backlog_bytes: 100, ..SMALL };
    let (writer, _) = open(disk, options, &mut Kept::default()).unwrap();
    let mut log = Log::start(writer, || {}).unwrap();
    log.append(1, |out| out.resize(out.len() + 10_000, 1)).unwrap();
    // The thread may have written it before anybody looks; it never has at the hand-over.
    assert!(log.flush().unwrap());
    log.sync().unwrap();
    assert!(!log.flush().unwrap());
}

/// What is handed over to be written alone is on the disk when that is asked for, or at the close.
#[test]
fn records_that_are_only_written_become_stable_when_that_is_asked_for() {
    let disk = MemoryDisk::new(3);
    let (writer, ..) = reopen(&disk).unwrap();
    let mut log = Log::start(writer, || {}).unwrap();
    append(&mut log, 5);
    log.write().unwrap();
    append(&mut log, 5);
    log.write().unwrap();
    assert_eq!((log.stable(), log.syncs()), (Sequence(0), 0));
    log.flush().unwrap();
    assert_eq!((log.sync().unwrap(), log.syncs()), (Sequence(10), 1));
    append(&mut log, 5);
    log.write().unwrap();
    assert_eq!(log.close().unwrap(), Sequence(15));
    let (_, opened, _) = reopen(&disk.after_power_loss()).unwrap();
    assert_eq!((opened.last, opened.cut), (Sequence(15), None));
}

#[test]
fn a_checkpoint_that_is_given_up_leaves_nothing_behind() {
    let disk = MemoryDisk::new(3);
    let mut checkpoint = CheckpointStream::start(disk.clone(), 7, Sequence(0), 1).unwrap();
    assert_eq!(checkpoint.offer(vec![1; 10]), Offered::Taken);
    checkpoint.abandon();
    assert!(disk.files().is_empty(), "{:?}", disk.files().keys());
}
