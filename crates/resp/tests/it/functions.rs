//! `FUNCTION` and `FCALL`: libraries are data.

use muesli::Options;
use muesli_resp::RespOptions;

use crate::client::{Client, Server};

const COUNTER: &str = "#!lua name=counter\n\
    redis.register_function('add', function(keys, args) \
    return redis.call('incrby', keys[1], args[1]) end)\n\
    redis.register_function{function_name='read', callback=function(keys) \
    return redis.call('get', keys[1]) end, flags={'no-writes'}, description='reads'}";

fn load(client: &mut Client, code: &str) -> String {
    client.ask_list(&["FUNCTION", "LOAD", code])
}

#[test]
fn functions_are_loaded_listed_called_and_deleted() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(load(&mut client, COUNTER), "counter");
    let mut other = server.client();
    other.play(
        "FCALL add 1 a 5 -> 5
         FCALL ADD 1 a 5 -> 10
         FCALL_RO read 1 a -> 10
         FCALL_RO add 1 a 1 -> ERR Can not execute a script with write flag using *_ro command.
         FCALL none 0 -> ERR Function not found
         FCALL add x -> ERR Bad number of keys provided
         FCALL add 3 a -> ERR Number of keys can't be greater than number of args
         FUNCTION LIST -> [[library_name counter engine LUA functions [[name add description nil \
         flags []] [name read description reads flags [no-writes]]]]]
         FUNCTION LIST LIBRARYNAME x* -> []
         FUNCTION STATS -> [running_script nil engines [LUA [libraries_count 1 functions_count 2]]]
         FLUSHALL -> OK
         FCALL add 1 a 1 -> 1
         FUNCTION KILL -> NOTBUSY No scripts in execution right now.
         FUNCTION DELETE other -> ERR Library not found
         FUNCTION DELETE counter -> OK
         FCALL add 1 a 5 -> ERR Function not found
         FUNCTION LIST -> []",
    );
    assert_eq!(load(&mut client, COUNTER), "counter");
    assert_eq!(load(&mut client, COUNTER), "ERR Library 'counter' already exists");
    let taken = "#!lua name=other\nredis.register_function('ADD', function() end)";
    assert_eq!(load(&mut client, taken), "ERR Function ADD already exists");
    let words = ["FUNCTION", "LOAD", "REPLACE", &COUNTER.replace("incrby", "decrby")];
    assert_eq!(client.ask_list(&words), "counter");
    other.play("FCALL add 1 a 5 -> -4\nFUNCTION FLUSH -> OK\nFUNCTION LIST -> []");
}

#[test]
fn libraries_are_dumped_and_restored() {
    let server = Server::start();
    let mut client = server.client();
    load(&mut client, COUNTER);
    let dump = client.ask_bytes(&["FUNCTION", "DUMP"], b"");
    let restore = |client: &mut Client, policy: &str| {
        let mut words: Vec<&[u8]> = vec![b"FUNCTION", b"RESTORE", &dump];
        words.extend((!policy.is_empty()).then_some(policy.as_bytes()));
        client.ask_all(&words)
    };
    assert_eq!(restore(&mut client, ""), "ERR Library counter already exists");
    assert_eq!(restore(&mut client, "REPLACE"), "OK");
    client.play("FUNCTION FLUSH -> OK");
    let taken = "#!lua name=other\nredis.register_function('add', function() return 1 end)";
    load(&mut client, taken);
    assert_eq!(restore(&mut client, "REPLACE"), "ERR Function add already exists");
    assert_eq!(restore(&mut client, "WRONG").split(' ').nth(1), Some("Wrong"));
    assert_eq!(restore(&mut client, "FLUSH"), "OK");
    client.play(
        "FCALL add 1 a 5 -> 5
         FUNCTION RESTORE abc -> ERR DUMP payload version or checksum are wrong",
    );
}

#[test]
fn a_function_that_fails_has_done_nothing() {
    let server = Server::start();
    let mut client = server.client();
    let code = "#!lua name=l\nredis.register_function('f', function(keys) \
                redis.call('set', keys[1], 1) error('no') end)";
    load(&mut client, code);
    let reply = client.ask("FCALL f 1 a");
    assert_eq!(reply, "ERR user_function:2: no script: f, on @user_function:2.");
    client.play("EXISTS a -> 0");
}

#[test]
fn functions_in_transactions_are_those_of_their_moment() {
    let server = Server::start();
    let mut client = server.client();
    client.play("MULTI -> OK");
    assert_eq!(load(&mut client, COUNTER), "QUEUED");
    client.play(
        "FCALL add 1 a 5 -> QUEUED
         FUNCTION FLUSH -> QUEUED
         FCALL add 1 a 5 -> QUEUED
         EXEC -> [counter 5 OK ERR Function not found]
         GET a -> 5",
    );
}

#[test]
fn libraries_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Server::with(Options::default().durable(folder.path()), &RespOptions::default());
    let server = start();
    load(&mut server.client(), COUNTER);
    server.client().play("FCALL add 1 a 5 -> 5");
    drop(server);
    let server = start();
    server.client().play("FCALL add 1 a 5 -> 10\nFUNCTION DELETE counter -> OK");
    drop(server);
    start().client().play("FCALL add 1 a 5 -> ERR Function not found\nFUNCTION LIST -> []");
}
