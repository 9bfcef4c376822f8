//! A damaged log: what the start says can be typed, and does what it says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use muesli::{Connect, Db, SpaceOptions};
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::{muesli, output_text};

const KEYS: u32 = 60;

/// What the command says, which ends with this status.
fn output_of(status: i32, arguments: &[&str]) -> String {
    let output = muesli(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", output_text(&output));
    output_text(&output)
}

/// A server on a folder, and a client of it.
fn start(data: &str) -> (Child, Db) {
    let options = ["start", "--listen", "127.0.0.1:0", "--data-dir", data];
    let options = [&options[..], &["--log-segment-bytes", "65536"]].concat();
    let mut server = muesli(&options).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.filter_map(|line| {
        let (_, rest) = line.split_once("listens on ")?;
        rest.split(';').next().map(str::to_owned)
    });
    let addresses = address.take(1).collect();
    let db = Db::connect_with(Connect { addresses, ..Connect::default() }).unwrap();
    (server, db)
}

fn stop((mut server, db): (Child, Db)) {
    drop(db);
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// Which of the keys are there, each with its value.
fn keys_of(db: &Db) -> Vec<u32> {
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let is_there = |key: &u32| {
        let key = *key;
        let get =
            db.blocking().transact(async move |tx| tx.get(space, key.to_be_bytes().to_vec()).await);
        let value = get.unwrap();
        assert!(value.as_ref().is_none_or(|it| it.as_slice() == [key as u8; 5_000]), "key {key}");
        value.is_some()
    };
    (0..KEYS).filter(is_there).collect()
}

/// Flips a bit in the middle of the first segment.
fn damage(data: &Path) {
    let mut segments: Vec<_> = fs::read_dir(data.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("segment"))
        .collect();
    segments.sort();
    assert!(segments.len() > 2, "{segments:?}");
    let mut bytes = fs::read(&segments[0]).unwrap();
    bytes[30_000] ^= 4;
    fs::write(&segments[0], bytes).unwrap();
}

fn files(data: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let all = fs::read_dir(data.join("log")).unwrap().map(Result::unwrap);
    let mut all: Vec<_> =
        all.map(|file| (file.file_name(), fs::read(file.path()).unwrap())).collect();
    all.sort();
    all
}

#[test]
fn a_damaged_log_is_looked_at_and_cut_as_the_start_advises() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let data = folder.to_str().unwrap();
    let running = start(data);
    let space = running.1.create_space("s", SpaceOptions::default()).unwrap();
    for key in 0..KEYS {
        let written = running.1.blocking().transact(async move |tx| {
            tx.put(space, key.to_be_bytes().to_vec(), vec![key as u8; 5_000]).await
        });
        written.unwrap();
    }
    for command in [&["inspect", data][..], &["truncate", data, "--at", "5", "--yes"]] {
        let refused = output_of(2, &[&["log"], command].concat());
        assert!(refused.contains("is in use"), "{refused}");
    }
    stop(running);
    let whole = output_of(0, &["log", "inspect", data]);
    assert!(whole.contains("records 1 to ") && !whole.contains("damaged"), "{whole}");
    damage(&folder);
    let refused = output_of(2, &["start", "--listen", "127.0.0.1:0", "--data-dir", data]);
    let (_, advice) = refused.split_once("`muesli log truncate FOLDER --at ").expect(&refused);
    let at = advice.split('`').next().unwrap();
    let damaged = output_of(1, &["log", "inspect", data]);
    assert!(damaged.contains(&format!("record {at} was promised")), "{damaged}");
    // Not without being sure of it, and not where nothing would be left or nothing is.
    let before = files(&folder);
    let asked = output_of(2, &["log", "truncate", data, "--at", at]);
    assert!(asked.contains(&format!("lost: records {at} to ")), "{asked}");
    assert!(asked.contains("nothing was changed") && asked.contains("--yes"), "{asked}");
    let refused = output_of(2, &["log", "truncate", data, "--at", "1000000", "--yes"]);
    assert!(refused.contains("allowed are records 1 to "), "{refused}");
    assert_eq!(files(&folder), before);
    let cut = output_of(0, &["log", "truncate", data, "--at", at, "--yes"]);
    let left = at.parse::<u64>().unwrap() - 1;
    assert!(cut.contains(&format!("ends after record {left} now")), "{cut}");
    assert_eq!(output_of(0, &["log", "inspect", data]).matches("segment-").count(), 1);
    let running = start(data);
    let found = keys_of(&running.1);
    assert!(!found.is_empty() && found.len() < KEYS as usize / 2, "{found:?}");
    assert_eq!(found, (0..found.len() as u32).collect::<Vec<_>>());
    stop(running);
}

#[test]
fn a_folder_that_is_no_servers_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("none");
    let refused = output_of(2, &["log", "inspect", folder.to_str().unwrap()]);
    assert!(refused.contains("is no folder of a server"), "{refused}");
    assert!(!folder.exists());
    let help = output_of(0, &["log", "--help"]);
    assert!(help.contains("Copy the folder away") && help.contains("--yes"), "{help}");
}
