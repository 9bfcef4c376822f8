//! How often commands were given, and how long they took.

use crate::client::Server;

/// The numbers of a line of `INFO`, by their names.
fn told(info: &str, line: &str) -> Vec<(String, f64)> {
    let found = info.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'));
    let numbers = found.unwrap_or_else(|| panic!("{line} is not in {info}")).trim_end().split(',');
    let number = |it: &str| {
        let (name, number) = it.split_once('=').unwrap();
        (name.to_owned(), number.parse().unwrap())
    };
    numbers.map(number).collect()
}

fn number(info: &str, line: &str, name: &str) -> f64 {
    told(info, line).into_iter().find(|(it, _)| it == name).unwrap().1
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
         BLPOP none 0.05 -> nil",
    );
    let info = client.ask("INFO commandstats");
    let counts = |line: &str| {
        ["calls", "failed_calls", "rejected_calls"].map(|name| number(&info, line, name))
    };
    assert_eq!(counts("cmdstat_get"), [3.0, 0.0, 1.0]);
    assert_eq!(counts("cmdstat_lpush"), [1.0, 1.0, 0.0]);
    assert_eq!(counts("cmdstat_exec"), [1.0, 0.0, 0.0]);
    assert_eq!(counts("cmdstat_ping"), [1.0, 0.0, 0.0]);
    assert!(number(&info, "cmdstat_get", "usec") > 0.0);
    // What it has waited is not its own time.
    let waited = number(&info, "cmdstat_blpop", "usec");
    assert!(waited < 50_000.0, "{waited}");
    let all = client.ask("INFO all");
    let percentiles = told(&all, "latency_percentiles_usec_get");
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
    client.send(&"SET a 1\r\nGET a\r\n".repeat(500));
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
        "SLOWLOG LEN -> 0
         SLOWLOG GET -> []
         SLOWLOG GET -2 -> ERR count should be greater than or equal to -1
         SLOWLOG GET x -> ERR value is not an integer or out of range
         CONFIG SET slowlog-max-len 10001 -> ERR CONFIG SET failed (possibly related to argument \
         'slowlog-max-len') - argument must be between 0 and 10000 inclusive
         CLIENT SETNAME me -> OK
         CONFIG SET slowlog-max-len 3 slowlog-log-slower-than 0 -> OK
         AUTH default secret -> OK
         SET a 1 -> OK
         SLOWLOG LEN -> 3",
    );
    let slow = client.ask("SLOWLOG GET -1");
    assert!(slow.contains("[auth (redacted)]") && !slow.contains("secret"), "{slow}");
    assert!(slow.contains("[SET a 1]") && slow.contains(" me]"), "{slow}");
    client.play(
        "CONFIG SET slowlog-log-slower-than -1 -> OK
         SLOWLOG RESET -> OK
         GET a -> 1
         SLOWLOG LEN -> 0",
    );
}
