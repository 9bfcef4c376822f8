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
    let (mut runner, mut client) = (server.client(), server.client());
    client.play("CONFIG SET script-time-limit 300 -> OK");
    let code = "redis.call('set', 'a', 1) while true do redis.call('get', 'a') end";
    runner.begin_list(&["EVAL", code, "0"]);
    while !client.ask("FUNCTION STATS").contains("duration_ms") {}
    drop(runner);
    let since = Instant::now();
    while client.ask("FUNCTION STATS").contains("duration_ms") {
        assert!(since.elapsed().as_secs() < 30, "it goes on");
    }
    client.play("EXISTS a -> 0\nSCRIPT KILL -> NOTBUSY No scripts in execution right now.");
}

/// What the scripts of the next test have said as they began and ended.
static BEGINS_AND_ENDS: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

#[test]
fn many_scripts_run_beside_each_other() {
    let script_notice = |line: &str| BEGINS_AND_ENDS.lock().unwrap().push(line.to_owned());
    let resp = RespOptions { script_notice, ..RespOptions::default() };
    let server = Server::with(muesli::Options::default(), &resp);
    let mut runners: Vec<_> = (0..20).map(|_| server.client()).collect();
    let code = "redis.log(3, 'begins') for i = 1, 5000000 do end redis.log(3, 'ends') \
                redis.call('incr', KEYS[1]) return 'done'";
    for (at, runner) in runners.iter_mut().enumerate() {
        runner.begin_list(&["EVAL", code, "1", &format!("key:{at}")]);
    }
    for runner in &mut runners {
        assert_eq!(runner.reply(), "done");
    }
    server.client().play("DBSIZE -> 20");
    let lines = BEGINS_AND_ENDS.lock().unwrap();
    let before_an_end = lines.iter().take_while(|it| it.ends_with("begins")).count();
    assert!(before_an_end > 1, "one ran after the other: {lines:?}");
}

#[test]
fn each_script_of_a_pipeline_has_limits_of_its_own() {
    let server = Server::start();
    let mut client = server.client();
    client.play("CONFIG SET script-instructions-limit 1500000 -> OK");
    let code = "for i = 1, 500000 do end redis.call('incr', 'a') return 'done'";
    for _ in 0..5 {
        client.begin_list(&["EVAL", code, "0"]);
        client.begin("GET none");
    }
    for _ in 0..5 {
        assert_eq!((client.reply(), client.reply()), ("done".to_owned(), "nil".to_owned()));
    }
    client.play("GET a -> 5");
}

#[test]
fn scripts_where_there_is_no_memory_left() {
    let server = Server::start();
    let mut client = server.client();
    client.play("SET a 1 -> OK\nCONFIG SET maxmemory 1 -> OK");
    let set = "return redis.call('set', 'a', 2)";
    let reply = eval(&mut client, set, "0");
    assert!(reply.starts_with("OOM command not allowed"), "{reply}");
    let reply = eval(&mut client, &format!("#!lua\n{set}"), "0");
    assert!(reply.starts_with("OOM allow-oom flag is not set"), "{reply}");
    assert_eq!(eval(&mut client, "return redis.call('get', 'a')", "0"), "1");
    let reply = client.ask_list(&["FUNCTION", "LOAD", "#!lua name=l\n"]);
    assert!(reply.starts_with("OOM command not allowed"), "{reply}");
    assert_eq!(eval(&mut client, &format!("#!lua flags=allow-oom\n{set}"), "0"), "OK");
    client.play("CONFIG SET maxmemory 0 -> OK\nGET a -> 2");
}

#[test]
fn codes_of_errors_that_scripts_answer_have_a_bound() {
    let server = Server::start();
    let mut client = server.client();
    for code in ["MINE_1", "mi-ne", "a:b", &"L".repeat(32), &"L".repeat(33)] {
        let script = format!("return {{err = '{code} text'}}");
        assert_eq!(eval(&mut client, &script, "0"), format!("{code} text"));
    }
    for at in 0..200 {
        eval(&mut client, "return {err = ARGV[1]}", &format!("0 CODE{at}"));
    }
    let info = client.ask("INFO errorstats");
    assert!(info.contains("errorstat_MINE_1:count=1"), "{info}");
    assert!(info.contains(&format!("errorstat_{}:count=1", "L".repeat(32))), "{info}");
    assert!(info.contains("errorstat_ERR:count=3"), "{info}");
    assert_eq!(info.matches("errorstat_").count(), 128, "{info}");
}

#[test]
fn what_is_told_after_the_commit_has_a_bound() {
    let server = Server::start();
    let mut client = server.client();
    let code = "local s = string.rep('x', 1e6) for i = 1, 100 do redis.call('publish', 'c', s) end";
    let reply = eval(&mut client, code, "0");
    assert!(reply.starts_with("LIMIT the messages and events"), "{reply}");
    client.play("CONFIG SET notify-keyspace-events KA -> OK");
    let key = "x".repeat(50_000);
    let code = "for i = 1, 1000 do redis.call('set', KEYS[1], i) redis.call('del', KEYS[1]) end";
    let reply = eval(&mut client, code, &format!("1 {key}"));
    assert!(reply.starts_with("LIMIT the messages and events"), "{reply}");
    // Those of scripts beside each other count together.
    let code = "local s = string.rep('x', 1e6) for i = 1, 9 do redis.call('publish', 'c', s) end \
                redis.call('ping') return 'fine'";
    client.play("MULTI -> OK");
    for _ in 0..3 {
        assert_eq!(eval(&mut client, code, "0"), "QUEUED");
    }
    let reply = client.ask("EXEC");
    assert!(reply.starts_with("[fine LIMIT the messages"), "{reply}");
    // A key that is pushed to again and again is told once.
    let code = "for i = 1, 2000 do redis.call('lpush', KEYS[1], i) end return 'fine'";
    client.play("CONFIG SET notify-keyspace-events '' -> OK");
    assert_eq!(eval(&mut client, code, &format!("1 {key}")), "fine");
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
