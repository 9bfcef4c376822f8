//! Clients that wait for something.

use std::time::{Duration, Instant};

use crate::client::{Client, Server};

/// Waits until so many clients of the server wait.
fn until_blocked(other: &mut Client, count: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while !other.ask("INFO clients").contains(&format!("blocked_clients:{count}\r")) {
        assert!(Instant::now() < until, "{}", other.ask("INFO clients"));
    }
}

#[test]
fn who_waits_is_served_by_order_of_arrival() {
    let server = Server::start();
    let mut other = server.client();
    let mut waiting: Vec<_> = (0..3).map(|_| server.client()).collect();
    for (at, client) in waiting.iter_mut().enumerate() {
        client.begin("BLPOP first second 0");
        until_blocked(&mut other, at + 1);
    }
    other.play("RPUSH second a b -> 2\nEXISTS second -> 0\nRPUSH first c -> 1");
    assert_eq!(waiting[0].reply(), "[second a]");
    assert_eq!(waiting[1].reply(), "[second b]");
    assert_eq!(waiting[2].reply(), "[first c]");
}

#[test]
fn every_way_to_get_something_wakes() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    for (wait, give, expected) in [
        ("BRPOP k 0", "LPUSH k a", "[k a]"),
        ("BLMOVE k l LEFT RIGHT 0", "RPUSH k a", "a"),
        ("BRPOPLPUSH k l 0", "RPUSH k a", "a"),
        ("BLMPOP 0 1 k LEFT COUNT 2", "RPUSH k a b c", "[k [a b]]"),
        ("BZPOPMIN k 0", "ZADD k 2 b 1 a", "[k a 1]"),
        ("BZPOPMAX k 0", "ZADD k 2 b 1 a", "[k b 2]"),
        ("BZMPOP 0 1 k MAX", "ZADD k 1 a", "[k [[a 1]]]"),
        ("BLPOP k 0", "MULTI; RPUSH k a; EXEC", "[k a]"),
        ("BLPOP k 0", "RPUSH other a; RENAME other k", "[k a]"),
        ("BLPOP k 0", "RPUSH other b a; SORT other ALPHA STORE k", "[k a]"),
        ("BLPOP k 0", "SELECT 1; RPUSH k a; SWAPDB 0 1; SELECT 0", "[k a]"),
    ] {
        other.ask("FLUSHALL");
        client.begin(wait);
        until_blocked(&mut other, 1);
        give.split(';').for_each(|command| drop(other.ask(command.trim())));
        assert_eq!(client.reply(), expected, "{wait} after {give}");
    }
}

#[test]
fn waits_end_by_time_and_by_command() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.play(
        "BLPOP k 0.01 -> nil
         BLMOVE k l LEFT LEFT 0.01 -> nil
         BLPOP k x -> ERR timeout is not a float or out of range
         BLPOP k -1 -> ERR timeout is negative",
    );
    let id = client.ask("CLIENT ID");
    for (how, expected) in
        [("TIMEOUT", "nil"), ("ERROR", "UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    {
        client.begin("BLPOP k 0");
        until_blocked(&mut other, 1);
        assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id} {how}")), "1");
        assert_eq!(client.reply(), expected);
    }
    client.begin("BLPOP k 0");
    until_blocked(&mut other, 1);
    drop(client);
    until_blocked(&mut other, 0);
    other.play("RPUSH k a -> 1\nLLEN k -> 1");
}

#[test]
fn who_waits_is_served_before_the_next_command_of_the_pusher() {
    let server = Server::start();
    let (mut first, mut second, mut other) = (server.client(), server.client(), server.client());
    for _ in 0..20 {
        first.begin("BLPOP k l 0");
        until_blocked(&mut other, 1);
        second.begin("BLPOP l k 0");
        until_blocked(&mut other, 2);
        // All of these come at once.
        other.send("RPUSH k a b c\r\nLLEN k\r\nLPOP k\r\nBLPOP k 0.001\r\n");
        assert_eq!([other.reply(), other.reply()], ["3", "1"]);
        assert_eq!([other.reply(), other.reply()], ["c", "nil"]);
        assert_eq!([first.reply(), second.reply()], ["[k a]", "[k b]"]);
        first.begin("BLPOP k 0");
        until_blocked(&mut other, 1);
        other.send("MULTI\r\nRPUSH k a\r\nEXEC\r\nLPOP k\r\n");
        assert_eq!([other.reply(), other.reply()], ["OK", "QUEUED"]);
        assert_eq!([other.reply(), other.reply()], ["[1]", "nil"]);
        assert_eq!(first.reply(), "[k a]");
    }
}

#[test]
fn who_waits_for_another_type_is_not_in_the_way() {
    let server = Server::start();
    let (mut lists, mut scores, mut other) = (server.client(), server.client(), server.client());
    lists.begin("BLPOP k 0");
    until_blocked(&mut other, 1);
    scores.begin("BZPOPMIN k 5");
    until_blocked(&mut other, 2);
    other.play("ZADD k 1 m -> 1");
    assert_eq!(scores.reply(), "[k m 1]");
    other.play("RPUSH k a -> 1");
    assert_eq!(lists.reply(), "[k a]");
}

#[test]
fn a_client_that_ends_its_connection_while_it_waits_takes_nothing() {
    let server = Server::start();
    let mut other = server.client();
    // More behind it than is read.
    for behind in [0, 1_100, 20_000] {
        let mut client = server.client();
        client.send("BLPOP k 0\r\n".to_owned() + &"PING\r\n".repeat(behind));
        until_blocked(&mut other, 1);
        drop(client);
        until_blocked(&mut other, 0);
        other.play("RPUSH k a -> 1\nLPOP k -> a");
    }
}
