//! Scripts whose transactions meet others, and are run again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use muesli::Options;
use muesli_resp::RespOptions;

use crate::client::{Client, Server};
use crate::scripts::eval;

/// Does something while another client changes the key `met` all the time.
fn while_met<T>(server: &Server, work: impl FnOnce(&mut Client) -> T) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = server.client();
            while !is_done.load(Ordering::Relaxed) {
                other.ask("INCR met");
            }
        });
        let mut client = server.client();
        while client.ask("EXISTS met") == "0" {}
        let found = work(&mut client);
        is_done.store(true, Ordering::Relaxed);
        found
    })
}

/// Lines of the first test here, one for each attempt.
static ATTEMPTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn a_script_that_is_run_again_publishes_once() {
    let script_notice = |line: &str| ATTEMPTS.lock().unwrap().push(line.to_owned());
    let resp = RespOptions { script_notice, ..RespOptions::default() };
    let server = Server::with(Options::default(), &resp);
    let mut listener = server.client();
    assert_eq!(listener.ask("SUBSCRIBE news"), "[subscribe news 1]");
    let code = "redis.log(3, 'an attempt') redis.call('publish', 'news', 'once') \
                redis.call('incr', 'met') redis.call('incr', 'runs') \
                for i = 1, 5000000 do end return 'done'";
    let reply = while_met(&server, |client| eval(client, code, "0"));
    assert_eq!(reply, "done");
    assert!(ATTEMPTS.lock().unwrap().len() > 1, "nothing was met");
    server.client().play("GET runs -> 1\nPUBLISH news end -> 1");
    assert_eq!(listener.reply(), "[message news once]");
    assert_eq!(listener.reply(), "[message news end]");
}

#[test]
fn the_limits_of_a_script_are_of_all_its_attempts() {
    let server = Server::start();
    // One attempt takes about 5,000,000.
    server.client().play("CONFIG SET script-instructions-limit 12000000 -> OK");
    let code = "redis.call('incr', 'met') for i = 1, 5000000 do end return 'done'";
    let reply = while_met(&server, |client| eval(client, code, "0"));
    assert!(reply.contains("script-instructions-limit"), "{reply}");
    assert_eq!(eval(&mut server.client(), code, "0"), "done");
}
