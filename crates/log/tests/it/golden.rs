//! Golden files of the log's format: what this version writes, byte by byte, and what it reads.
//!
//! If this fails, bytes have changed under the same version: raise
//! `muesli_log::format::segment::VERSION`, say so in `docs/running/compatibility.md`, and write
//! the new
//! version's files with `UPDATE_GOLDENFILES=1 cargo test -p muesli-log --test it golden`.

use std::path::{Path, PathBuf};

use muesli_log::format::segment;
use muesli_log::{Batch, CheckpointWriter, Directory, Options, Sequence, checkpoint, open};

use crate::shared::Kept;

const OWNER: u64 = 0x0123_4567_89ab_cdef;

fn options() -> Options {
    Options { owner: OWNER, preallocate_bytes: 0, ..Options::default() }
}

/// Writes two batches, a mark after a pause, and a checkpoint of the first record.
fn write(path: &Path) {
    let disk = Directory::create(path).unwrap();
    let (mut writer, _) = open(disk.clone(), options(), &mut Kept::default()).unwrap();
    let mut batch = Batch::after(Sequence(0));
    batch.append(1, |out| out.extend_from_slice(b"first")).unwrap();
    writer.write(&mut batch).unwrap();
    batch.append(1, |out| out.extend_from_slice(b"second")).unwrap();
    batch.append(7, |_| {}).unwrap();
    writer.write(&mut batch).unwrap();
    writer.mark().unwrap();
    let mut taken = CheckpointWriter::begin(disk, OWNER, Sequence(1), 2).unwrap();
    taken.piece(b"a piece").unwrap();
    taken.piece(b"another").unwrap();
    taken.finish().unwrap();
}

fn folder() -> PathBuf {
    let version = format!("log-{}", segment::VERSION);
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(version)
}

#[test]
fn this_version_writes_and_reads_the_bytes_that_it_did() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let names = [segment::name(1), checkpoint::name(Sequence(1))];
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::create_dir_all(folder()).unwrap();
        for name in &names {
            std::fs::copy(dir.path().join(name), folder().join(name)).unwrap();
        }
    }
    for name in &names {
        let was = std::fs::read(folder().join(name)).unwrap_or_default();
        let now = std::fs::read(dir.path().join(name)).unwrap();
        assert!(was == now, "{name} has other bytes: see the top of this file");
    }
    let copied = tempfile::tempdir().unwrap();
    for name in &names {
        std::fs::copy(folder().join(name), copied.path().join(name)).unwrap();
    }
    let mut held = Kept::default();
    let disk = Directory::existing(copied.path()).unwrap();
    open(disk, options(), &mut held).unwrap();
    let pieces = vec![b"a piece".to_vec(), b"another".to_vec()];
    let records = vec![(2, 1, b"second".to_vec()), (3, 7, Vec::new())];
    assert_eq!((held.pieces, held.records), (pieces, records));
}

#[test]
fn another_version_is_named_with_the_one_that_is_read() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let path = dir.path().join(segment::name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8..12].copy_from_slice(&9u32.to_le_bytes());
    let head = bytes.len().min(44);
    let sum = crc32c::crc32c(&bytes[..head]);
    bytes[44..48].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let disk = Directory::existing(dir.path()).unwrap();
    let error = open(disk, options(), &mut Kept::default()).unwrap_err().to_string();
    assert!(error.contains("version 9") && error.contains("version 1"), "{error}");
    assert!(error.contains("Nothing is damaged"), "{error}");
}
