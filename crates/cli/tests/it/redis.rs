//! `muesli start --resp`: Redis clients of a server that is killed, and of one beside a native one;
//! `muesli import redis`, and what they have of it then.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use redis::Commands;
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::{muesli, output_text};

/// A server, killed when it is dropped.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    /// Starts a server, and waits until it serves Redis clients.
    fn start(folder: &Path, further: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muesli"))
            .args(["start", "--resp", "127.0.0.1:0", "--data-dir"])
            .arg(folder)
            .args(further)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("Redis clients on")).unwrap();
        let words: Vec<_> = line.split(' ').collect();
        let at = words.iter().position(|word| *word == "on").unwrap();
        let address = words[at + 1].trim_end_matches(';').to_owned();
        thread::spawn(move || lines.for_each(drop));
        Served { child, address }
    }

    fn client(&self) -> redis::Connection {
        let client = redis::Client::open(format!("redis://{}/", self.address)).unwrap();
        client.get_connection().unwrap()
    }

    fn signal(&mut self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Counts up, and pushes each number to a list with it in one transaction, until the server is
/// gone; the last number that was acknowledged.
fn count_up(mut client: redis::Connection, name: String) -> i64 {
    let mut acknowledged = 0;
    loop {
        let next = acknowledged + 1;
        let done: redis::RedisResult<()> = redis::pipe()
            .atomic()
            .set(format!("count:{name}"), next)
            .ignore()
            .rpush(format!("list:{name}"), next)
            .ignore()
            .query(&mut client);
        match done {
            Ok(()) => acknowledged = next,
            Err(_) => return acknowledged,
        }
    }
}

#[test]
fn a_server_that_is_killed_has_all_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let mut served = Served::start(folder.path(), &[]);
        let clients: Vec<_> = (0..4)
            .map(|number| {
                let client = served.client();
                thread::spawn(move || count_up(client, format!("{round}:{number}")))
            })
            .collect();
        let mut watcher = served.client();
        let enough = |watcher: &mut redis::Connection, number: usize| {
            watcher.llen::<_, i64>(format!("list:{round}:{number}")).unwrap() >= 20
        };
        while !(0..4).all(|number| enough(&mut watcher, number)) {}
        served.signal(Signal::KILL);
        let last: Vec<_> = clients.into_iter().map(|it| it.join().unwrap()).collect();
        let served = Served::start(folder.path(), &[]);
        let mut client = served.client();
        for (number, last) in last.into_iter().enumerate() {
            let count: i64 = client.get(format!("count:{round}:{number}")).unwrap();
            let list: Vec<i64> = client.lrange(format!("list:{round}:{number}"), 0, -1).unwrap();
            // What was under way is there whole, or not at all.
            assert!(count == last || count == last + 1, "{count} of {last}");
            assert_eq!(list, (1..=count).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_server_of_native_clients_serves_redis_clients_as_well() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..2 {
        let mut served = Served::start(folder.path(), &["--listen", "127.0.0.1:0"]);
        let mut client = served.client();
        let count: i64 = client.incr("starts", 1).unwrap();
        assert_eq!(count, round + 1);
        served.signal(Signal::TERM);
    }
}

/// A file of Redis 8.2, which the tests of `muesli-rdb` say more of.
const REDIS8: &[u8] = include_bytes!("../../../rdb/tests/data/redis8.rdb");
const STREAM: &[u8] = include_bytes!("../../../rdb/tests/data/stream7.rdb");

/// Runs `muesli import redis`, which ends with this status; what it says.
fn imported(status: i32, arguments: &[&str]) -> String {
    let output = muesli(&[&["import", "redis"], arguments].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", output_text(&output));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_file_of_redis_is_imported_into_a_folder_and_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (data, file, stream) = (path("data"), path("dump.rdb"), path("stream.rdb"));
    std::fs::write(&file, REDIS8).unwrap();
    std::fs::write(&stream, STREAM).unwrap();
    let refused = imported(2, &[&stream, "--db", &data]);
    let expected = "nothing was imported: at byte 85, in the key \"stream\": streams are not";
    assert!(refused.contains(expected), "{refused}");
    assert!(!Path::new(&data).exists());
    let done = imported(0, &[&file, "--db", &data]);
    assert!(done.contains("dump.rdb: RDB version 12 of Redis 8.2.3"), "{done}");
    let expected = "imported 23 keys (10 strings, 3 lists, 5 sets, 2 sorted sets, 3 hashes) with ";
    assert!(done.contains(expected) && done.contains("all keys are as there"), "{done}");
    let nowhere = imported(2, &[&file]);
    assert!(nowhere.contains("--db") && nowhere.contains("--connect"), "{nowhere}");
    let again = imported(2, &[&file, "--db", &data]);
    assert!(again.contains("23 keys of the file are there already"), "{again}");
    imported(0, &[&file, "--db", &data, "--replace"]);
    let served = Served::start(Path::new(&data), &[]);
    let mut client = served.client();
    let list: Vec<String> = client.lrange("list", 0, 2).unwrap();
    assert_eq!(list, ["a", "b", "1"]);
    let (score, field): (f64, String) =
        (client.zscore("sorted", "big").unwrap(), client.hget("hash", "f").unwrap());
    assert_eq!((score, &*field), (1e300, "v"));
    let expires: i64 = redis::cmd("PEXPIRETIME").arg("expires").query(&mut client).unwrap();
    assert_eq!(expires, 4_102_444_800_123);
}

#[test]
fn keys_of_redis_are_imported_into_a_server_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("dump.rdb"));
    std::fs::write(&file, REDIS8).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_muesli"))
        .args(["start", "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let after = |line: &str, before: &str| {
        let rest = line.split_once(before).map(|it| it.1.to_owned());
        rest.and_then(|it| it.split([' ', ';']).next().map(str::to_owned))
    };
    let (mut native, mut resp) = (None, None);
    for line in lines {
        native = native.or_else(|| after(&line, "listens on "));
        resp = resp.or_else(|| after(&line, "Redis clients on "));
        if native.is_some() && resp.is_some() {
            break;
        }
    }
    let served = Served { child, address: resp.unwrap() };
    let file = file.display().to_string();
    imported(0, &[&file, "--connect", &native.unwrap()]);
    let mut client = served.client();
    let text: String = client.get("text").unwrap();
    assert_eq!(text, "plain text");
    let count: usize = client.scard("numbersht").unwrap();
    assert_eq!(count, 6);
}

#[test]
fn the_data_of_a_redis_that_runs_are_imported() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data").display().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://:secret@{}", listener.local_addr().unwrap());
    let redis = thread::spawn(move || {
        let mut connection = listener.accept().unwrap().0;
        let mark = "m".repeat(40);
        let synced = format!("+FULLRESYNC 0 0\r\n\n$EOF:{mark}\r\n");
        let file = [synced.as_bytes(), REDIS8, mark.as_bytes()].concat();
        let mut asked = Vec::new();
        for (command, answer) in [("AUTH", &b"+OK\r\n"[..]), ("eof", b"+OK\r\n"), ("-1", &file)] {
            while !asked.windows(command.len()).any(|it| it == command.as_bytes()) {
                let mut some = [0; 100];
                let count = connection.read(&mut some).unwrap();
                assert!(count > 0, "the connection has ended before {command}");
                asked.extend_from_slice(&some[..count]);
            }
            connection.write_all(answer).unwrap();
        }
    });
    let done = imported(0, &[&url, "--db", &data]);
    redis.join().unwrap();
    assert!(done.contains("imported 23 keys") && !done.contains("secret"), "{done}");
    let refused = imported(2, &["rediss://127.0.0.1", "--db", &data]);
    assert!(refused.contains("`rediss://` is not supported"), "{refused}");
    for wrong in ["Valkey://:secret@127.0.0.1", "redis://user:secret"] {
        let refused = imported(2, &[wrong, "--db", &data]);
        assert!(!refused.contains("secret"), "{refused}");
    }
    let output = muesli(&["import", "valkey://:secret@127.0.0.1"]).output().unwrap();
    let text = output_text(&output);
    assert!(text.contains("`muesli import redis") && !text.contains("secret"), "{text}");
}

#[test]
fn data_of_redis_for_which_no_temporary_file_can_be_made_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (data, nowhere) = (dir.path().join("data"), dir.path().join("nowhere"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://:secret@{}", listener.local_addr().unwrap());
    let mut command = muesli(&["import", "redis", &url, "--db", &data.display().to_string()]);
    let text = output_text(&command.env("TMPDIR", &nowhere).output().unwrap());
    let expected = format!("cannot write to the temporary folder {}", nowhere.display());
    assert!(text.contains(&expected) && !text.contains("secret"), "{text}");
}
