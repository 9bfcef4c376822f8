//! `EVAL` and its kin: scripts as parts of serializable transactions.

use std::thread;

use redis::Script;

use crate::client::{Client, Server};

/// The reply to a script with these words behind it.
pub fn eval(client: &mut Client, code: &str, behind: &str) -> String {
    let mut words: Vec<&str> = vec!["EVAL", code];
    words.extend(behind.split_ascii_whitespace());
    client.ask_list(&words)
}

#[test]
fn scripts_are_run_by_code_and_by_hash() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(eval(&mut client, "return redis.call('set', KEYS[1], ARGV[1])", "1 a 5"), "OK");
    assert_eq!(eval(&mut client, "return redis.call('incrby', KEYS[1], ARGV[1])", "1 a 5"), "10");
    assert_eq!(eval(&mut client, "return {KEYS, ARGV}", "2 a b c"), "[[a b] [c]]");
    let sha = client.ask_list(&["SCRIPT", "LOAD", "return redis.call('get', KEYS[1])"]);
    let mut other = server.client();
    assert_eq!(other.ask(&format!("EVALSHA {sha} 1 a")), "10");
    assert_eq!(other.ask(&format!("EVALSHA_RO {} 1 a", sha.to_uppercase())), "10");
    assert_eq!(other.ask(&format!("SCRIPT EXISTS {sha} abc {}", sha.to_uppercase())), "[1 0 1]");
    other.play(
        "SCRIPT FLUSH -> OK
         EVALSHA abc 0 -> NOSCRIPT No matching script. Please use EVAL.
         EVAL \"return 1\" 2 a -> ERR Number of keys can't be greater than number of args
         EVAL \"return 1\" -1 -> ERR Number of keys can't be negative
         EVAL \"return 1\" x -> ERR value is not an integer or out of range
         EVAL \"return 1\" -> ERR wrong number of arguments for 'eval' command
         EVAL \"#!lua flags=x\\nreturn 1\" 0 -> ERR Unexpected flag in script shebang: x
         SCRIPT LOAD \"return (\" -> ERR Error compiling script (new function): user_script:1: \
         unexpected symbol near '<eof>'
         SCRIPT KILL -> NOTBUSY No scripts in execution right now.
         SCRIPT DEBUG YES -> ERR scripts are not debugged by this server
         SCRIPT NONE -> ERR unknown subcommand or wrong number of arguments for 'NONE'. Try SCRIPT \
         HELP.
         COMMAND GETKEYS EVAL x 2 a b c -> [a b]",
    );
    assert_eq!(
        other.ask(&format!("EVALSHA {sha} 1 a")),
        "NOSCRIPT No matching script. Please use EVAL."
    );
}

#[test]
fn scripts_that_are_flushed_are_not_known_and_end_what_they_do() {
    let server = Server::start();
    let (mut runner, mut client) = (server.client(), server.client());
    runner.begin_list(&["EVAL", "for i = 1, 30000000 do end return redis.call('incr', 'a')", "0"]);
    while !client.ask("FUNCTION STATS").contains("duration_ms") {}
    let sha = client.ask_list(&["SCRIPT", "LOAD", "return 1"]);
    assert_eq!(client.ask(&format!("SCRIPT EXISTS {sha}")), "[1]");
    assert!(client.ask("INFO memory").contains("number_of_cached_scripts:1"));
    client.play(
        "SCRIPT FLUSH ASYNC -> OK
         SCRIPT FLUSH NOW -> ERR SCRIPT FLUSH only support SYNC|ASYNC option",
    );
    assert_eq!(client.ask(&format!("SCRIPT EXISTS {sha}")), "[0]");
    assert!(client.ask("INFO memory").contains("number_of_cached_scripts:0"));
    assert!(client.ask(&format!("EVALSHA {sha} 0")).starts_with("NOSCRIPT"));
    assert_eq!(runner.reply(), "1");
}

#[test]
fn a_script_that_fails_has_done_nothing() {
    let server = Server::start();
    let mut client = server.client();
    client.play("SET a 1 -> OK\nSADD s x -> 1");
    for end in ["error('no')", "redis.call('incr', 's')", "redis.call('none')", "return x"] {
        let code = format!(
            "redis.call('set', 'a', 2) redis.call('rpush', 'l', 1) redis.call('sadd', 's', 'y') \
             {end}"
        );
        let reply = eval(&mut client, &code, "0");
        assert!(reply.contains("on @user_script:1."), "{reply}");
        client.play("GET a -> 1\nEXISTS l -> 0\nSMEMBERS s -> [x]\nDBSIZE -> 2");
    }
    // What a script answers is no failure, and what it has caught is none.
    let code = "redis.call('set', 'a', 2) return redis.error_reply('MINE no')";
    assert_eq!(eval(&mut client, code, "0"), "MINE no");
    let code = "redis.pcall('incr', 's') redis.call('incr', 'a') return redis.call('get', 'a')";
    assert_eq!(eval(&mut client, code, "0"), "3");
    // Beside others in a transaction, it alone is undone.
    client.play("MULTI -> OK\nSET b 1 -> QUEUED");
    let code = "redis.call('set', 'b', 2) redis.call('set', 'c', 2) error('no', 0)";
    assert_eq!(eval(&mut client, code, "0"), "QUEUED");
    let code = "redis.call('incr', 'b') return redis.call('get', 'b')";
    assert_eq!(eval(&mut client, code, "0"), "QUEUED");
    let reply = client.ask("EXEC");
    assert!(reply.starts_with("[OK ERR no script: ") && reply.ends_with(" 2]"), "{reply}");
    client.play("GET b -> 2\nEXISTS c -> 0");
}

#[test]
fn scripts_call_what_they_may() {
    let server = Server::start();
    let mut client = server.client();
    for (command, expected) in [
        ("'subscribe', 'a'", "ERR This Redis command is not allowed from script"),
        ("'blpop', 'a', 0", "ERR This Redis command is not allowed from script"),
        ("'multi'", "ERR This Redis command is not allowed from script"),
        ("'eval', 'return 1', 0", "ERR This Redis command is not allowed from script"),
        ("'config', 'get', 'a'", "ERR This Redis command is not allowed from script"),
        ("'none'", "ERR Unknown Redis command called from script"),
        ("'get'", "ERR Wrong number of args calling Redis command from script"),
        ("'select', 99", "ERR DB index is out of range"),
    ] {
        let code = format!("return redis.pcall({command})");
        assert_eq!(eval(&mut client, &code, "0"), expected);
    }
    for (code, expected) in [
        ("return redis.call('ping')", "PONG"),
        ("return redis.call('echo', 'a')", "a"),
        ("return #redis.call('time')", "2"),
        ("return redis.acl_check_cmd('get', 'a')", "1"),
        ("return redis.pcall('get', 'a')", "nil"),
        ("redis.call('select', 3) redis.call('set', 'a', 'three')", "nil"),
        ("return redis.call('blmpop', 0, 1, 'none', 'LEFT')", "nil"),
        ("return string.find(redis.call('info', 'server'), 'redis_version') ~= nil", "1"),
        ("redis.call('zadd', 'z', 1.5, 'a') return redis.call('zscore', 'z', 'a')", "1.5"),
        (
            "redis.call('sadd', 'set', 'c', 'a', 'b') return redis.call('sort', 'set', 'by', '_')",
            "[a b c]",
        ),
    ] {
        assert_eq!(eval(&mut client, code, "0"), expected, "{code}");
    }
    client.play("GET a -> nil\nSELECT 3 -> OK\nGET a -> three");
}

#[test]
fn scripts_that_only_read_write_nothing() {
    let server = Server::start();
    let mut client = server.client();
    client.play("SET a 1 -> OK");
    let refused = "ERR Write commands are not allowed from read-only scripts.";
    for words in [
        ["EVAL_RO", "return redis.call('set', 'a', 2)"],
        ["EVAL_RO", "return redis.call('publish', 'a', 2)"],
        ["EVAL", "#!lua flags=no-writes\nreturn redis.call('set', 'a', 2)"],
    ] {
        let reply = client.ask_list(&[words[0], words[1], "0"]);
        assert!(reply.starts_with(refused), "{reply}");
    }
    let code = "#!lua\nreturn redis.call('get', 'a')";
    let expected = "ERR Can not execute a script with write flag using *_ro command.";
    assert_eq!(client.ask_list(&["EVAL_RO", code, "0"]), expected);
    let code = "return redis.call('get', KEYS[1])";
    assert_eq!(client.ask_list(&["EVAL_RO", code, "1", "a"]), "1");
}

#[test]
fn messages_of_scripts_come_once_they_have_committed() {
    let server = Server::start();
    let (mut client, mut listener) = (server.client(), server.client());
    assert_eq!(listener.ask("SUBSCRIBE news"), "[subscribe news 1]");
    let code = "redis.call('publish', 'news', 'lost') error('no')";
    assert!(eval(&mut client, code, "0").starts_with("ERR"));
    assert_eq!(eval(&mut client, "return redis.call('publish', 'news', 'kept')", "0"), "1");
    assert_eq!(listener.reply(), "[message news kept]");
}

#[test]
fn who_waits_gets_what_a_script_pushes() {
    let server = Server::start();
    let (mut client, mut waiter) = (server.client(), server.client());
    waiter.begin("BLPOP list 0");
    while !client.ask("INFO clients").contains("blocked_clients:1") {}
    let code = "redis.call('rpush', 'list', 'a') return redis.call('rpush', 'list', 'b')";
    assert_eq!(eval(&mut client, code, "0"), "2");
    assert_eq!(waiter.reply(), "[list a]");
}

#[test]
fn replies_are_of_the_version_of_the_client() {
    let server = Server::start();
    let mut client = server.client();
    let (map, set) = ("return {map={a=1}}", "return {set={a=true}}");
    let from_hash = "redis.call('hset', 'h', 'f', 'v') redis.setresp(3) \
                     return redis.call('hgetall', 'h')";
    for (version, expected) in [("2", ["[a 1]", "[a]", "[f v]"]), ("3", ["{a 1}", "[a]", "{f v}"])]
    {
        client.ask(&format!("HELLO {version}"));
        assert_eq!([map, set, from_hash].map(|code| eval(&mut client, code, "0")), expected);
        assert_eq!(eval(&mut client, "return {double=1.5}", "0"), "1.5");
        assert_eq!(eval(&mut client, "return {big_number='123'}", "0"), "123");
    }
}

/// Adds one by reading and writing, so often, by each of several clients.
pub fn updates_are_not_lost(addresses: &[std::net::SocketAddr]) {
    const CLIENTS: usize = 4;
    const COUNT: usize = 200;
    let code = "local n = tonumber(redis.call('get', KEYS[1]) or '0') \
                redis.call('set', KEYS[1], n + 1) redis.call('rpush', KEYS[2], n) return n + 1";
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let address = addresses[number % addresses.len()];
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for _ in 0..COUNT {
                    let reply = eval(&mut client, code, "2 counter log");
                    assert!(reply.parse::<usize>().is_ok(), "{reply}");
                }
            });
        }
    });
    let mut client = Client::connect(addresses[0]);
    let expected: Vec<_> = (0..CLIENTS * COUNT).map(|it| it.to_string()).collect();
    client.play(&format!("GET counter -> {}", CLIENTS * COUNT));
    assert_eq!(client.ask("LRANGE log 0 -1"), format!("[{}]", expected.join(" ")));
}

#[test]
fn scripts_that_read_and_write_lose_no_update() {
    let server = Server::start();
    updates_are_not_lost(&[server.address()]);
}

#[test]
fn a_watched_key_that_a_script_changes_is_noticed() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.play("WATCH a -> OK\nMULTI -> OK\nSET b 1 -> QUEUED");
    assert_eq!(eval(&mut other, "return redis.call('set', 'a', 1)", "0"), "OK");
    client.play("EXEC -> nil");
}

#[test]
fn the_crate_redis_runs_scripts() -> redis::RedisResult<()> {
    let server = Server::start();
    let mut client = redis::Client::open(format!("redis://{}/", server.address()))?;
    let script = Script::new("return redis.call('incrby', KEYS[1], ARGV[1]) + #ARGV");
    let mut connection = client.get_connection()?;
    for expected in [6, 11] {
        let found: i64 = script.key("a").arg(5).invoke(&mut connection)?;
        assert_eq!(found, expected);
        let _: () = redis::cmd("SCRIPT").arg("FLUSH").query(&mut client)?;
    }
    Ok(())
}
