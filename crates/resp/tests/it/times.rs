//! How often commands were given, and how long they took.

use crate::client::Server;

/// The numbers of a line of `INFO`, by their names.
fn numbers_of(info: &str, line: &str) -> Vec<(String, f64)> {
    let found = info.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'));
    let numbers = found.unwrap_or_else(|| panic!("{line} is not in {info}")).trim_end().split(',');
    let number = |it: &str| {
        let (name, number) = it.split_once('=').unwrap();
        (name.to_owned(), number.parse().unwrap())
    };
    numbers.map(number).collect()
}

fn number(info: &str, line: &str, name: &str) -> f64 {
    numbers_of(info, line).into_iter().find(|(it, _)| it == name).unwrap().1
}

#[test]
fn commands_are_counted_with_their_times() {
    let server = Server::start();
    let mut client = server.client();
    client.play(
        "SET a 1 -> OK
         GET a -> 1
         GET a -> 1
         LPUSH a x -> WRONGTYPE Operation against a key holding the wrong kind of value
         GET -> ERR wrong number of arguments for 'get' command
         MULTI -> OK
         GET a -> QUEUED
         PING -> QUEUED
         EXEC -> [1 PONG]
         MULTI -> OK
         CONFIG SET nothing 1 -> QUEUED
         EXEC -> [ERR Unknown option or number of arguments for CONFIG SET - 'nothing']
         BLPOP none 2 -> nil",
    );
    let info = client.ask("INFO commandstats");
    let counts = |line: &str| {
        ["calls", "failed_calls", "rejected_calls"].map(|name| number(&info, line, name))
    };
    assert_eq!(counts("cmdstat_get"), [3.0, 0.0, 1.0]);
    assert_eq!(counts("cmdstat_lpush"), [1.0, 1.0, 0.0]);
    assert_eq!(counts("cmdstat_exec"), [2.0, 0.0, 0.0]);
    assert_eq!(counts("cmdstat_config"), [1.0, 1.0, 0.0]);
    assert_eq!(counts("cmdstat_ping"), [1.0, 0.0, 0.0]);
    assert!(number(&info, "cmdstat_get", "usec") > 0.0);
    // What it has waited is not its own time.
    let waited = number(&info, "cmdstat_blpop", "usec");
    assert!(waited < 1_000_000.0, "{waited}");
    let all = client.ask("INFO all");
    let percentiles = numbers_of(&all, "latency_percentiles_usec_get");
    assert!(percentiles.iter().map(|it| &*it.0).eq(["p50", "p99", "p99.9"]), "{percentiles:?}");
    assert!(percentiles.is_sorted_by(|a, b| a.1 <= b.1) && percentiles[0].1 > 0.0);
    assert!(!client.ask("INFO").contains("cmdstat_"), "it is not among what is told at first");
    let steps = client.ask("LATENCY HISTOGRAM get none");
    assert!(steps.contains("get") && steps.contains("calls 3"), "{steps}");
    assert!(client.ask("LATENCY HISTOGRAM").contains("lpush"));
    client.play("CONFIG RESETSTAT -> OK");
    assert!(!client.ask("LATENCY HISTOGRAM").contains("lpush"));
}

#[test]
fn pipelines_are_counted_command_by_command() {
    let server = Server::start();
    let mut client = server.client();
    client.send("SET a 1\r\nGET a\r\n".repeat(500));
    for _ in 0..500 {
        assert_eq!((client.reply(), client.reply()), ("OK".to_owned(), "1".to_owned()));
    }
    let info = client.ask("INFO commandstats");
    assert_eq!(number(&info, "cmdstat_set", "calls"), 500.0);
    assert_eq!(number(&info, "cmdstat_get", "calls"), 500.0);
}

#[test]
fn slow_commands_are_kept_without_passwords() {
    let server = Server::start();
    let mut client = server.client();
    client.play(
        "CONFIG SET slowlog-log-slower-than -1 -> OK
         SLOWLOG RESET -> OK
         SLOWLOG LEN -> 0
         SLOWLOG GET -> []
         SLOWLOG GET -2 -> ERR count should be greater than or equal to -1
         SLOWLOG GET x -> ERR count should be greater than or equal to -1
         CONFIG SET slowlog-max-len 10001 -> ERR CONFIG SET failed (possibly related to argument \
         'slowlog-max-len') - argument must be between 0 and 10000 inclusive",
    );
    let name = "n".repeat(1_000);
    assert_eq!(client.ask(&format!("CLIENT SETNAME {name}")), "OK");
    client.play(
        "CONFIG SET slowlog-max-len 4 slowlog-log-slower-than 0 -> OK
         ACL SETUSER bob >secret -> ERR users are those of the file that the server was \
         started with (`--users`)
         MULTI -> OK
         SET a 1 -> QUEUED
         GET a -> QUEUED
         EXEC -> [OK 1]
         AUTH default secret -> OK
         SLOWLOG LEN -> 4",
    );
    let slow = client.ask("SLOWLOG GET -1");
    assert!(slow.contains("[SET a 1 ... (and 1 more commands)]"), "{slow}");
    assert!(!slow.contains("secret") && !slow.contains("EXEC"), "{slow}");
    assert!(slow.contains(&format!("{}... (872 more bytes)]", "n".repeat(128))), "{slow}");
    client.play(
        "CONFIG SET slowlog-log-slower-than -1 -> OK
         SLOWLOG RESET -> OK
         GET a -> 1
         SLOWLOG LEN -> 0",
    );
}
