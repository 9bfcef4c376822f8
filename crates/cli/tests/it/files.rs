//! A server at the system's limit of open files: connections stop before the log does.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muesli::{Connect, Db, SpaceOptions};
use muesli_cluster::lifecycle::visit::Visit;

const WITHIN: Duration = Duration::from_secs(20);

/// A server that may have so many files open, and where it listens.
fn start(files: usize, data: &str) -> (Child, String, Vec<String>) {
    let program = env!("CARGO_BIN_EXE_muesli");
    let start = format!(
        "ulimit -n {files}; exec {program} start --listen 127.0.0.1:0 --data-dir {data} \
         --log-segment-bytes 65536 --hello-within-ms 60000"
    );
    let mut command = Command::new("sh");
    let mut server = command.args(["-c", &start]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut printed = Vec::new();
    let address = loop {
        let line = lines.next().expect("it says where it listens");
        printed.push(line.clone());
        if let Some((_, rest)) = line.split_once("listens on ") {
            break rest.split(';').next().unwrap().to_owned();
        }
    };
    (server, address, printed)
}

#[test]
fn connections_without_end_do_not_keep_the_log_from_its_next_file() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (mut server, address, printed) = start(64, data.to_str().unwrap());
    let message = printed.iter().find(|line| line.contains("ulimit -n"));
    assert!(message.is_some_and(|line| line.contains("is 64")), "{printed:?}");
    let db = Db::connect_with(Connect { addresses: vec![address.clone()], ..Connect::default() });
    let db = db.unwrap();
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let crowd: Vec<_> = (0..300).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    assert!(crowd.len() > 100, "{} came", crowd.len());
    // A dozen files of the log, one after the other, while everything is taken.
    for round in 0..40u8 {
        let written = db
            .blocking()
            .transact(async move |tx| tx.put(space, vec![round], vec![round; 20_000]).await);
        assert_eq!(written, Ok(()), "round {round}: {:?}", server.try_wait());
    }
    assert!(std::fs::read_dir(data.join("log")).unwrap().count() > 8);
    assert!(Visit::begin_as_admin(&address, WITHIN, None).is_ok());
    assert!(server.try_wait().unwrap().is_none(), "the server has ended");
    drop(crowd);
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn with_too_few_files_a_server_says_so_and_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let start = format!(
        "ulimit -n 24; exec {} start --listen 127.0.0.1:0 --data-dir {}",
        env!("CARGO_BIN_EXE_muesli"),
        data.display()
    );
    let output = Command::new("sh").args(["-c", &start]).output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{why}");
    assert!(why.contains("`ulimit -n`) is 24"), "{why}");
}
