//! `muesli start --resp`: Redis clients of a server that is killed, and of one beside a native one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use redis::Commands;
use rustix::process::{Pid, Signal, kill_process};

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
