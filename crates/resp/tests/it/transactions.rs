//! `MULTI`, `EXEC` and what is watched.

use std::thread;

use crate::client::{Client, Server};

#[test]
fn commands_are_queued_and_run_together() {
    Server::start().client().play(
        "MULTI -> OK
         SET a 1 -> QUEUED
         LPUSH a x -> QUEUED
         SELECT 1 -> QUEUED
         SET b 2 -> QUEUED
         PING -> QUEUED
         BLPOP none 0 -> QUEUED
         EXEC -> [OK WRONGTYPE Operation against a key holding the wrong kind of value OK OK PONG \
         nil]
         GET b -> 2
         SELECT 0 -> OK
         GET a -> 1
         GET b -> nil
         MULTI -> OK
         MULTI -> ERR MULTI calls can not be nested
         SET a 2 -> QUEUED
         DISCARD -> OK
         GET a -> 1
         MULTI -> OK
         NONE -> ERR unknown command 'NONE', with args beginning with:
         SET a 2 -> QUEUED
         EXEC -> EXECABORT Transaction discarded because of previous errors.
         EXEC -> ERR EXEC without MULTI
         DISCARD -> ERR DISCARD without MULTI",
    );
}

/// Watches a key, lets another client do something, and runs a transaction.
fn runs_after(server: &Server, prepared: &str, change: &str) -> bool {
    let (mut client, mut other) = (server.client(), server.client());
    other.ask("FLUSHALL");
    prepared.split(';').for_each(|command| drop(other.ask(command.trim())));
    client.play("WATCH key -> OK");
    change.split(';').for_each(|command| drop(other.ask(command.trim())));
    client.play("MULTI -> OK\nSET done 1 -> QUEUED");
    let ran = client.ask("EXEC");
    assert_eq!(other.ask("EXISTS done"), if ran == "nil" { "0" } else { "1" });
    ran != "nil"
}

#[test]
fn every_change_of_a_watched_key_is_noticed() {
    let server = Server::start();
    for (prepared, change) in [
        ("PING", "SET key 1"),
        ("SET key 1", "SET key 1"),
        ("SET key 1", "DEL key"),
        ("SET key 1", "APPEND key x"),
        ("SET key 1", "EXPIRE key 100"),
        ("SET key 1", "SETBIT key 1 1"),
        ("SET key 1", "RENAME key other"),
        ("SET other 1", "RENAME other key"),
        ("SET key 1", "MOVE key 3"),
        ("SET key 1", "FLUSHDB"),
        ("SET key 1", "FLUSHALL"),
        ("SET key 1", "SWAPDB 0 1"),
        ("SET key 1", "FLUSHALL; SET key 1"),
        ("PING", "FLUSHALL; SET key 1"),
        ("SADD key a b", "SADD key c"),
        ("SADD key a b", "SREM key b"),
        ("SADD key a b", "SMOVE key other a"),
        ("HSET key a 1", "HINCRBY key a 1"),
        ("HSET key a 1", "HDEL key a"),
        ("ZADD key 1 a", "ZADD key 2 a"),
        ("ZADD key 1 a 2 b", "ZPOPMIN key"),
        ("RPUSH key a b", "LPOP key"),
        ("RPUSH key a b", "LSET key 0 x"),
        ("RPUSH key a b", "LTRIM key 1 1"),
        ("RPUSH other a b", "LMOVE other key LEFT LEFT"),
        ("RPUSH other a b", "SORT other ALPHA STORE key"),
        ("SET key 1", "PEXPIRE key 1; PEXPIRE key 0"),
        ("SET key 1", "SET key 2; SET key 1"),
    ] {
        assert!(!runs_after(&server, prepared, change), "{prepared}, then {change}");
    }
}

#[test]
fn what_is_no_change_of_a_watched_key_is_let_pass() {
    let server = Server::start();
    for (prepared, change) in [
        ("SET key 1", "GET key"),
        ("SET key 1", "SET other 1"),
        ("SET key 1", "SET key 2 NX"),
        ("SADD key a", "SADD key a"),
        ("SET key 1 PXAT 1", "GET key"),
        ("PING", "FLUSHALL"),
        ("PING", "DEL key"),
        ("RPUSH key a", "LREM key 0 x"),
    ] {
        assert!(runs_after(&server, prepared, change), "{prepared}, then {change}");
    }
}

#[test]
fn a_watch_ends_with_the_transaction_and_with_unwatch() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    for end in ["UNWATCH", "MULTI\r\nDISCARD", "MULTI\r\nEXEC"] {
        client.play("WATCH key -> OK");
        client.begin(end);
        (0..end.lines().count()).for_each(|_| drop(client.reply()));
        other.play("SET key 1 -> OK");
        client.play("MULTI -> OK\nPING -> QUEUED\nEXEC -> [PONG]");
    }
}

const ACCOUNTS: usize = 8;
const DEPOSIT: i64 = 100;

/// Moves money between accounts, so often.
fn transfers(client: &mut Client, seed: u64, count: usize) {
    let mut state = seed;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut done = 0;
    while done < count {
        let (from, to) = (random(ACCOUNTS), random(ACCOUNTS));
        let amount = random(10) as i64;
        assert_eq!(client.ask(&format!("WATCH account:{from} account:{to}")), "OK");
        let left: i64 = client.ask(&format!("GET account:{from}")).parse().unwrap();
        let there: i64 = client.ask(&format!("GET account:{to}")).parse().unwrap();
        if from == to || left < amount {
            client.play("UNWATCH -> OK");
            continue;
        }
        client.play("MULTI -> OK");
        client.ask(&format!("SET account:{from} {}", left - amount));
        client.ask(&format!("SET account:{to} {}", there + amount));
        done += usize::from(client.ask("EXEC") != "nil");
    }
}

fn sum(client: &mut Client) -> i64 {
    let names: Vec<_> = (0..ACCOUNTS).map(|it| format!("account:{it}")).collect();
    let all = client.ask(&format!("MGET {}", names.join(" ")));
    all[1..all.len() - 1].split(' ').map(|it| it.parse::<i64>().unwrap()).sum()
}

/// Transfers by several clients, of these servers in turn; nothing is lost and nothing comes.
pub fn transfers_keep_the_sum(addresses: &[std::net::SocketAddr]) {
    let mut client = Client::connect(addresses[0]);
    for account in 0..ACCOUNTS {
        client.ask(&format!("SET account:{account} {DEPOSIT}"));
    }
    thread::scope(|scope| {
        for seed in 0..4 {
            let address = addresses[seed % addresses.len()];
            scope.spawn(move || transfers(&mut Client::connect(address), seed as u64 + 1, 100));
        }
        for _ in 0..50 {
            assert_eq!(sum(&mut client), ACCOUNTS as i64 * DEPOSIT);
        }
    });
    assert_eq!(sum(&mut client), ACCOUNTS as i64 * DEPOSIT);
}

#[test]
fn transfers_of_several_clients_keep_the_sum() {
    let server = Server::start();
    transfers_keep_the_sum(&[server.address()]);
}
