//! Limits, with Redis's own texts.

use muesli::{Limits, Options};
use muesli_resp::{RespListener, RespOptions, RespStartError, RespUsers, UserRole};

use crate::client::{Client, Server};

#[test]
fn too_many_clients_are_told_so() {
    let server =
        Server::with(Options::default(), &RespOptions { clients_max: 2, ..RespOptions::default() });
    let (mut first, mut second) = (server.client(), server.client());
    first.play("PING -> PONG");
    second.play("PING -> PONG");
    assert_eq!(server.client().reply(), "ERR max number of clients reached");
    first.play("CONFIG SET maxclients 3 -> OK");
    server.client().play("PING -> PONG");
}

#[test]
fn what_is_longer_than_the_database_allows_is_refused_and_nothing_else() {
    let limits = Limits {
        key_bytes: 1 << 10,
        value_bytes: 64 << 10,
        transaction_bytes: 256 << 10,
        ..Limits::default()
    };
    let server = Server::with(Options { limits, ..Options::default() }, &RespOptions::default());
    let mut client = server.client();
    let (key, value) = ("k".repeat(2 << 10), "v".repeat(40 << 10));
    client.send(format!("SET a 1\r\nSET {key} 1\r\nSET b 2\r\n"));
    assert_eq!(client.reply(), "OK");
    assert!(client.reply().starts_with("LIMIT "));
    assert_eq!(client.reply(), "OK");
    // Each of these has room in a transaction, and all together have none.
    for at in 0..20 {
        client.begin(&format!("SET long:{at} {value}"));
    }
    (0..20).for_each(|_| assert_eq!(client.reply(), "OK"));
    client.play("MGET a b -> [1 2]\nSTRLEN long:19 -> 40960");
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let server = Server::start();
    let (mut other, mut listener) = (server.client(), server.client());
    other.play(r#"CONFIG SET client-output-buffer-limit "pubsub 1mb 0 0" -> OK"#);
    listener.play("SUBSCRIBE news -> [subscribe news 1]");
    let message = "m".repeat(60 << 10);
    // Sockets hold some of it; then it waits here, and is too much.
    while other.ask(&format!("PUBLISH news {message}")) == "1" {}
    other.play("PUBSUB NUMSUB news -> [news 0]");
    while !listener.reply().contains("closed") {}
}

#[test]
fn requests_are_bounded() {
    let server = Server::start();
    let mut client = server.client();
    client.play("CONFIG SET proto-max-bulk-len 1mb -> OK");
    let mut other = server.client();
    other.send("*2\r\n$4\r\nECHO\r\n$2000000\r\n");
    assert_eq!(other.reply(), "ERR Protocol error: invalid bulk length");
    let mut other = server.client();
    other.send("*2000000\r\n");
    assert_eq!(other.reply(), "ERR Protocol error: invalid multibulk length");
    client.play("PING -> PONG");
}

#[test]
fn other_machines_connect_where_users_are_asked_for_or_it_is_all_the_same() {
    let bind = |address: &str, has_users: bool, insecure: bool| {
        let users = has_users.then(|| {
            let line = RespUsers::line("ann", UserRole::Read, b"secret").unwrap();
            RespUsers::parse(&line, "users").unwrap()
        });
        let options = RespOptions { users, insecure, ..RespOptions::default() };
        RespListener::bind(address, &options).map(|it| it.warning().unwrap_or("none"))
    };
    let refused = bind("0.0.0.0:0", false, false).unwrap_err();
    assert!(matches!(refused, RespStartError::NotLoopback(_)));
    assert!(refused.to_string().contains("`--users FILE`"), "{refused}");
    assert!(bind("0.0.0.0:0", false, true).unwrap().contains("can do everything"));
    assert!(bind("0.0.0.0:0", true, false).unwrap().contains("in the clear"));
    assert_eq!(bind("0.0.0.0:0", true, true).unwrap(), "none");
    for (has_users, insecure) in [(false, false), (true, false), (false, true), (true, true)] {
        assert_eq!(bind("127.0.0.1:0", has_users, insecure).unwrap(), "none");
    }
    assert!(matches!(bind("nowhere", false, false), Err(RespStartError::Listen { .. })));
}

#[test]
fn what_waits_for_exec_is_bounded() {
    let server = Server::start();
    server.client().play("CONFIG SET client-query-buffer-limit 1mb -> OK");
    let (mut client, value) = (server.client(), vec![b'v'; 300 << 10]);
    client.play("MULTI -> OK");
    for _ in 0..3 {
        assert_eq!(client.ask_bytes(&["SET", "a"], &value), b"QUEUED");
    }
    let full = b"ERR Protocol error: the query buffer of this client is full";
    assert_eq!(client.ask_bytes(&["SET", "a"], &value), full);
    assert_eq!(client.reply(), "closed");
}

#[test]
fn a_pipeline_of_long_replies_is_answered_in_order() {
    let server = Server::start();
    let mut client = server.client();
    let value = vec![b'v'; 300 << 10];
    assert_eq!(client.ask_bytes(&["SET", "a"], &value), b"OK");
    client.send("GET a\r\nINCR count\r\n".repeat(100));
    for at in 1..=100 {
        assert_eq!(client.reply().len(), value.len());
        assert_eq!(client.reply(), at.to_string());
    }
}

#[test]
fn replies_are_bounded_where_a_short_command_can_ask_for_any_length() {
    let server = Server::start();
    let mut client = server.client();
    client.play("CONFIG SET proto-max-bulk-len 1mb -> OK\nSADD s a -> 1\nHSET h f a -> 1");
    assert_eq!(client.ask_bytes(&["SET", "a"], &vec![b'v'; 600 << 10]), b"OK");
    assert_eq!(client.ask_bytes(&["SADD", "long"], &vec![b'm'; 60_000]), b"1");
    assert_eq!(client.ask_bytes(&["HSET", "h", "g"], &vec![b'v'; 600 << 10]), b"1");
    let refused = "LIMIT the replies to a command or transaction may have 1048576 bytes \
                   (`proto-max-bulk-len`); nothing was changed";
    client.play(&format!(
        "MGET a a a -> {refused}
         HMGET h g g f -> {refused}
         SRANDMEMBER long -1000 -> {refused}
         SRANDMEMBER s -3 -> [a a a]
         MULTI -> OK
         SET b 1 -> QUEUED
         GET a -> QUEUED
         GET a -> QUEUED
         GET a -> QUEUED
         EXEC -> {refused}
         EXISTS b -> 0"
    ));
    assert!(client.ask("MGET a a").len() > 1 << 20);
}

#[test]
fn what_takes_most_of_a_collection_needs_no_large_transaction() {
    let limits = Limits {
        key_bytes: 1 << 10,
        value_bytes: 64 << 10,
        transaction_bytes: 256 << 10,
        ..Limits::default()
    };
    let server = Server::with(Options { limits, ..Options::default() }, &RespOptions::default());
    let mut client = server.client();
    let fill = |client: &mut Client| {
        for from in (0..20_000).step_by(1_000) {
            let items: Vec<_> = (from..from + 1_000).map(|it| it.to_string()).collect();
            let scored: Vec<_> = items.iter().map(|it| format!("{it} {it}")).collect();
            client.ask(&format!("RPUSH l {}", items.join(" ")));
            client.ask(&format!("ZADD z {}", scored.join(" ")));
        }
        client.play("LLEN l -> 20000\nZCARD z -> 20000");
    };
    fill(&mut client);
    client.play(
        "EXPIRE l 1000 -> 1
         LTRIM l 10 13 -> OK
         LRANGE l 0 -1 -> [10 11 12 13]
         TTL l -> 1000
         RPUSH l x -> 5
         LPUSH l y -> 6
         LPOP l -> y
         ZREMRANGEBYRANK z 0 -1 -> 20000
         EXISTS z -> 0
         LTRIM l 1 0 -> OK",
    );
    fill(&mut client);
    let popped = client.ask("RPOP l 19998");
    assert!(popped.starts_with("[19999 19998 ") && popped.ends_with(" 3 2]"));
    client.play("LRANGE l 0 -1 -> [0 1]\nDEL l -> 1");
    assert!(client.ask("ZPOPMIN z 30000").starts_with("[0 0 1 1 2 2 "));
    client.play("ZCARD z -> 0\nDBSIZE -> 0");
}

#[test]
fn over_its_memory_a_server_takes_nothing_more_whatever_comes_before_it() {
    let server = Server::start();
    let mut client = server.client();
    client.play("SET a 1 -> OK\nCONFIG SET maxmemory 1 -> OK");
    client.send("GET a\r\nSET a 2\r\nGET a\r\n");
    assert_eq!(client.reply(), "1");
    assert_eq!(client.reply(), "OOM command not allowed when used memory > 'maxmemory'.");
    assert_eq!(client.reply(), "1");
}
