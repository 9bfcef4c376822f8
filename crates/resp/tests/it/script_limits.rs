//! Scripts that take too much, or too long.

use std::time::Instant;

use muesli_resp::RespOptions;

use crate::client::Server;
use crate::scripts::eval;

const FOR_EVER: &str = "redis.call('set', 'a', 1) while true do pcall(redis.call, 'incr', 'b') end";

#[test]
fn a_script_ends_at_its_limits_and_has_done_nothing() {
    let server = Server::start();
    let mut client = server.client();
    client.play(
        "CONFIG SET script-instructions-limit 100000 -> OK
         CONFIG SET script-instructions-limit 0 -> ERR CONFIG SET failed (possibly related to \
         argument 'script-instructions-limit') - argument must be a whole number above 0",
    );
    let reply = eval(&mut client, FOR_EVER, "0");
    assert!(reply.starts_with("LIMIT") && reply.contains("script-instructions-limit"), "{reply}");
    client.play("CONFIG SET script-instructions-limit 1000000000 script-time-limit 20 -> OK");
    let reply = eval(&mut client, FOR_EVER, "0");
    assert!(reply.starts_with("LIMIT") && reply.contains("script-time-limit"), "{reply}");
    client.play("CONFIG SET script-time-limit 10000 script-memory-limit 4mb -> OK");
    let reply = eval(&mut client, "local t = {} while true do t[#t + 1] = {} end", "0");
    assert!(reply.contains("not enough memory"), "{reply}");
    client.play("EXISTS a b -> 0\nSET a 1 -> OK");
    assert_eq!(eval(&mut client, "return redis.call('get', 'a')", "0"), "1");
}

#[test]
fn others_are_served_while_a_script_runs_and_can_end_it() {
    let server = Server::start();
    server.client().play("SET a 1 -> OK");
    let for_ever = "redis.call('set', 'a', 2) while true do redis.pcall('get', 'b') end";
    for (kill, other_kill, call) in [
        ("SCRIPT KILL", "FUNCTION KILL", ["EVAL", for_ever, "0"]),
        ("FUNCTION KILL", "SCRIPT KILL", ["FCALL", "f", "0"]),
    ] {
        let (mut runner, mut client) = (server.client(), server.client());
        let code = format!("#!lua name=l\nredis.register_function('f', function() {for_ever} end)");
        client.ask_list(&["FUNCTION", "LOAD", "REPLACE", &code]);
        runner.begin_list(&call);
        while !client.ask("FUNCTION STATS").contains("duration_ms") {}
        client.play("SET c 1 -> OK\nGET a -> 1");
        assert!(client.ask(other_kill).starts_with("BUSY"));
        assert_eq!(client.ask(kill), "OK");
        assert_eq!(runner.reply(), "ERR Script killed by user with SCRIPT KILL...");
        client.play("GET a -> 1\nDEL c -> 1");
        assert!(client.ask(kill).starts_with("NOTBUSY"));
    }
}

#[test]
fn others_are_refused_while_a_script_runs_where_that_is_asked_for() {
    let server = Server::start();
    let (mut runner, mut client) = (server.client(), server.client());
    client.play(
        "CONFIG SET lua-time-limit 1 -> OK
         CONFIG GET busy-reply-threshold -> [busy-reply-threshold 1]",
    );
    runner.begin_list(&["EVAL", "while true do end", "0"]);
    while !client.ask("GET a").starts_with("BUSY") {}
    client.play("SCRIPT KILL -> OK");
    assert!(runner.reply().starts_with("ERR Script killed"));
    client.play("GET a -> nil");
}

#[test]
fn what_a_client_leaves_behind_ends() {
    let server = Server::start();
    let mut runner = server.client();
    runner.begin_list(&["EVAL", "while true do redis.call('get', 'a') end", "0"]);
    let mut client = server.client();
    client.ask("CONFIG SET script-time-limit 200");
    drop(runner);
    client.ask("SCRIPT KILL");
    let since = Instant::now();
    while client.ask("FUNCTION STATS").contains("duration_ms") {
        assert!(since.elapsed().as_secs() < 30, "it goes on");
    }
}

#[test]
fn many_scripts_run_beside_each_other() {
    let server = Server::start();
    let mut runners: Vec<_> = (0..20).map(|_| server.client()).collect();
    let code = "for i = 1, 300000 do end redis.call('incr', KEYS[1]) return 'done'";
    for (at, runner) in runners.iter_mut().enumerate() {
        runner.begin_list(&["EVAL", code, "1", &format!("key:{at}")]);
    }
    for runner in &mut runners {
        assert_eq!(runner.reply(), "done");
    }
    server.client().play("DBSIZE -> 20");
}

/// What scripts have for the log in this test.
static LINES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

#[test]
fn lines_for_the_log_go_where_they_are_to() {
    let script_notice = |line: &str| LINES.lock().unwrap().push(line.to_owned());
    let resp = RespOptions { script_notice, ..RespOptions::default() };
    let server = Server::with(muesli::Options::default(), &resp);
    let mut client = server.client();
    let code = "redis.log(redis.LOG_WARNING, 'seen', 5) redis.log(redis.LOG_DEBUG, 'unseen')";
    assert_eq!(eval(&mut client, code, "0"), "nil");
    client.play("CONFIG SET loglevel debug -> OK");
    assert_eq!(eval(&mut client, code, "0"), "nil");
    let lines = ["seen 5", "seen 5", "unseen"].map(|it| format!("redis.log: {it}"));
    assert_eq!(*LINES.lock().unwrap(), lines);
}
