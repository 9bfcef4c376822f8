//! A log that is read by several who change nothing, and by nobody who writes meanwhile.

use std::collections::BTreeMap;
use std::path::Path;

use muesli_log::disk::memory::Faults;
use muesli_log::{
    CheckpointWriter, Directory, Disk, LogError, MemoryDisk, Opened, ReadingDirectory, Sequence,
    open, read,
};

use crate::shared::{Kept, SMALL, batch, reopen};

/// A log on a disk with a checkpoint of some of its records, that ends in a batch which broke off.
fn write<D: Disk>(disk: &D) {
    let (mut writer, _) = open(disk.clone(), SMALL, &mut Kept::default()).unwrap();
    for _ in 0..6 {
        writer.write(&mut batch(1, writer.stable(), 4)).unwrap();
    }
    let covers = writer.stable();
    let mut checkpoint = CheckpointWriter::begin(disk.clone(), SMALL.owner, covers, 2).unwrap();
    checkpoint.piece(b"all so far").unwrap();
    writer.truncate(checkpoint.finish().unwrap().truncate).unwrap();
    for _ in 0..5 {
        writer.write(&mut batch(1, writer.stable(), 4)).unwrap();
    }
}

/// The bytes of all files of a folder.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect()
}

fn read_all(disk: &impl Disk) -> Result<(Opened, Kept), LogError> {
    let mut kept = Kept::default();
    let opened = read(disk, SMALL.owner, None, &mut kept)?;
    Ok((opened, kept))
}

#[test]
fn what_is_read_is_what_a_start_finds_and_nothing_changes() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Directory::create(dir.path()).unwrap();
    write(&disk);
    let mut there = files(dir.path());
    let (last, bytes) = there.iter_mut().rfind(|(name, _)| name.starts_with("segment")).unwrap();
    let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    bytes.truncate(bytes.len() - zeros - 3);
    std::fs::write(dir.path().join(last), &*bytes).unwrap();
    std::fs::write(dir.path().join("checkpoint-1.unfinished"), "half").unwrap();
    let there = files(dir.path());
    let reading = ReadingDirectory::existing(dir.path()).unwrap();
    let (opened, kept) = read_all(&reading).unwrap();
    assert!(opened.cut.is_some(), "{opened:?}");
    assert_eq!((opened.checkpoint, opened.last), (Some(Sequence(24)), Sequence(43)));
    assert_eq!(files(dir.path()), there);
    let mut found = Kept::default();
    let (_, again) = open(disk, SMALL, &mut found).unwrap();
    assert_eq!((again, found.records), (opened, kept.records));
    assert_ne!(files(dir.path()), there, "a start cuts what broke off");
}

#[test]
fn readers_share_a_directory_and_keep_writers_out() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Directory::create(dir.path()).unwrap();
    write(&disk);
    let reading = ReadingDirectory::existing(dir.path()).unwrap();
    let (one, other) = (reading.lock().unwrap(), reading.lock().unwrap());
    assert!(one.is_some() && other.is_some());
    let refused = open(disk.clone(), SMALL, &mut Kept::default()).unwrap_err();
    assert!(matches!(refused, LogError::InUse { .. }), "{refused}");
    drop((one, other));
    let (writer, _) = open(disk, SMALL, &mut Kept::default()).unwrap();
    assert!(matches!(read_all(&reading), Err(LogError::InUse { .. })));
    drop(writer);
    assert!(read_all(&reading).is_ok());
}

#[test]
fn nothing_is_changed_through_a_directory_that_is_read() {
    let dir = tempfile::tempdir().unwrap();
    write(&Directory::create(dir.path()).unwrap());
    let there = files(dir.path());
    let reading = ReadingDirectory::existing(dir.path()).unwrap();
    let refused = open(reading.clone(), SMALL, &mut Kept::default()).unwrap_err();
    assert!(refused.to_string().contains("it was opened for reading only"), "{refused}");
    let name = there.keys().find(|name| name.starts_with("checkpoint")).unwrap();
    assert!(reading.create("new").is_err() && reading.remove(name).is_err());
    assert!(reading.rename(name, "new").is_err() && reading.sync_directory().is_err());
    assert_eq!(files(dir.path()), there);
    assert!(ReadingDirectory::existing(&dir.path().join(name)).is_err());
}

/// With one checkpoint kept, the one before goes only when the new one could be read back.
#[test]
fn a_checkpoint_that_is_to_be_alone_is_read_back_first() {
    let disk = MemoryDisk::new(3);
    write(&disk);
    let (mut writer, ..) = reopen(&disk).unwrap();
    writer.write(&mut batch(1, writer.stable(), 4)).unwrap();
    let begin = || CheckpointWriter::begin(disk.clone(), SMALL.owner, Sequence(48), 1).unwrap();
    let names = || disk.files().into_keys().filter(|name| name.starts_with("checkpoint")).count();
    let mut checkpoint = begin();
    checkpoint.piece(b"all so far").unwrap();
    // To write the last of it, sync, rename and sync the directory: then it is opened.
    disk.set_faults(Faults { all_fail_from: Some(5), ..Faults::default() });
    assert!(checkpoint.finish().is_err());
    disk.set_faults(Faults::default());
    assert_eq!(names(), 2);
    let mut checkpoint = begin();
    checkpoint.piece(b"all so far").unwrap();
    assert_eq!(writer.rotate().unwrap(), Sequence(48));
    assert_eq!(checkpoint.finish().unwrap().truncate, Sequence(48));
    writer.truncate(Sequence(48)).unwrap();
    assert_eq!((names(), writer.segments()), (1, 1));
    assert_eq!(writer.rotate().unwrap(), Sequence(48));
    assert_eq!(writer.segments(), 1, "an empty segment is not followed by another one");
}
