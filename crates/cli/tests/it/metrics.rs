//! `muesli start --metrics`: what a monitoring system reads of a server, alone, with Redis clients,
//! and of one that waits for others; and `muesli admin status --watch`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::commands::{muesli, status, text};

/// A server, killed when it is dropped.
struct ScrapedServer {
    child: Child,
    /// Where its numbers are asked for.
    metrics: String,
    /// The other addresses that it has told, in order.
    addresses: Vec<String>,
}

impl ScrapedServer {
    /// Starts a server in memory, and waits until it tells where its numbers are.
    fn start(further: &[&str]) -> ScrapedServer {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muesli"))
            .args(["start", "--durability", "memory", "--metrics", "127.0.0.1:0"])
            .args(further)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map(Result::unwrap);
        let (mut addresses, mut metrics) = (Vec::new(), None);
        while metrics.is_none() {
            let line = lines.next().expect("it tells where its numbers are");
            if let Some((_, rest)) = line.split_once("http://") {
                metrics = Some(rest.trim_end_matches("/metrics").to_owned());
            } else if let Some((_, rest)) = line.split_once(" on ") {
                addresses.push(rest.split(';').next().unwrap().to_owned());
            }
        }
        thread::spawn(move || lines.for_each(drop));
        ScrapedServer { child, metrics: metrics.unwrap(), addresses }
    }

    /// What is answered to these bytes.
    fn ask(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: muesli\r\n\r\n"))
    }

    /// The number of this metric, whatever its labels.
    fn number(&self, name: &str) -> u64 {
        let all = self.get("/metrics");
        let line = all
            .lines()
            .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
        let line = line.unwrap_or_else(|| panic!("{name} is not in\n{all}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for ScrapedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_lone_server_says_its_numbers_and_that_it_is_ready() {
    let server = ScrapedServer::start(&["--listen", "127.0.0.1:0"]);
    assert!(server.get("/health").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(server.get("/ready").ends_with("\r\n\r\nok\n"));
    assert_eq!(server.number("muesli_ready"), 1);
    let before = server.number("muesli_versions_installed");
    let address = &server.addresses[0];
    let put = muesli(&["shell", "--connect", address, "-c", "create notes; put a b"]);
    assert_eq!(status(&put), 0, "{}", text(&put.stderr));
    assert!(server.number("muesli_versions_installed") > before, "a commit was counted");
    let all = server.get("/metrics");
    for line in all.lines().filter(|line| line.starts_with("muesli_")) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(all.contains(&format!("# TYPE {name} ")), "{name} has no type");
        assert!(all.contains(&format!("# HELP {name} ")), "{name} is not described");
    }
    let watched =
        muesli(&["admin", "status", "--connect", address, "--watch", "0.2", "--times", "2"]);
    assert_eq!(status(&watched), 0, "{}", text(&watched.stderr));
    let printed = text(&watched.stdout);
    assert_eq!(printed.matches("versions-installed").count(), 2, "{printed}");
    assert!(printed.contains("/s)"), "the second look has rates: {printed}");
}

#[test]
fn what_is_no_such_question_is_refused() {
    let server = ScrapedServer::start(&["--listen", "127.0.0.1:0"]);
    assert!(server.get("/").starts_with("HTTP/1.1 404 "));
    assert!(server.ask("PUT /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(server.ask("*1\r\n$4\r\nPING\r\n").starts_with("HTTP/1.1 400 "));
    let head = server.ask("HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "no body: {head}");
    // Connections that say nothing are in nobody's way but so many, and are closed in the end.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&server.metrics).unwrap()).collect();
    let begun = Instant::now();
    let answered = |it: String| it.starts_with("HTTP/1.1 200 ");
    let ask = || {
        let mut stream = TcpStream::connect(&server.metrics).ok()?;
        stream.write_all(b"GET /health HTTP/1.1\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    while !ask().is_some_and(answered) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody is answered any more");
        thread::sleep(Duration::from_millis(200));
    }
    drop(silent);
}

#[test]
fn numbers_of_redis_clients_are_there_with_and_without_a_port_of_its_own() {
    for further in
        [&["--resp", "127.0.0.1:0"][..], &["--resp", "127.0.0.1:0", "--listen", "127.0.0.1:0"]]
    {
        let server = ScrapedServer::start(further);
        let begun = Instant::now();
        // Beside a native server its port opens a moment later.
        while !server.get("/ready").starts_with("HTTP/1.1 200 ") {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.get("/ready"));
            thread::sleep(Duration::from_millis(50));
        }
        let before = server.number("muesli_redis_total_commands_processed");
        let address = server.addresses.last().unwrap();
        let client = redis::Client::open(format!("redis://{address}/")).unwrap();
        let mut client = client.get_connection().unwrap();
        redis::cmd("SET").arg("a").arg("b").exec(&mut client).unwrap();
        let after = server.number("muesli_redis_total_commands_processed");
        assert!(after > before + 1, "{before}, {after}");
        assert_eq!(server.number("muesli_redis_connected_clients"), 2, "this one, and who asks");
    }
}

#[test]
fn a_server_that_waits_for_others_is_alive_and_not_ready() {
    // The other one is not there: nobody listens on the last port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = free.local_addr().unwrap().to_string();
    drop(free);
    let servers = format!("{own},127.0.0.1:1");
    let server = ScrapedServer::start(&[
        "--listen",
        &own,
        "--servers",
        &servers,
        "--node",
        "0",
        "--repositories",
        "2",
    ]);
    assert!(server.get("/health").starts_with("HTTP/1.1 200 "), "{}", server.get("/health"));
    let ready = server.get("/ready");
    assert!(ready.starts_with("HTTP/1.1 503 "), "{ready}");
    assert!(ready.contains("node 0 has not met all others"), "{ready}");
}
