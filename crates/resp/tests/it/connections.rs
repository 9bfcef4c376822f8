//! Connections, what clients say of themselves, channels.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::client::Server;

#[test]
fn what_clients_send_first_is_answered() {
    let server = Server::start();
    let mut client = server.client();
    client.play(
        "CLIENT SETNAME me -> OK
         CLIENT GETNAME -> me
         CLIENT SETNAME a\\ b -> ERR wrong number of arguments for 'client|setname' command
         CLIENT SETINFO LIB-NAME test -> OK
         CLIENT SETINFO x y -> ERR Unrecognized option 'x'
         CLIENT NO-EVICT on -> OK
         CLIENT MAINT_NOTIFICATIONS ON -> ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try \
         CLIENT HELP.
         SELECT 3 -> OK
         ECHO hello -> hello
         AUTH default any -> OK
         AUTH other any -> WRONGPASS invalid username-password pair or user is disabled.
         HELLO 4 -> NOPROTO unsupported protocol version
         CONFIG GET save -> [save ]
         CONFIG GET appendonly -> [appendonly no]
         SAVE -> ERR this server keeps everything in memory: there is nowhere to save it
         CLUSTER INFO -> ERR This instance has cluster support disabled
         WAIT 0 0 -> 0
         NONE a b -> ERR unknown command 'NONE', with args beginning with: 'a' 'b'
         GET -> ERR wrong number of arguments for 'get' command
         COMMAND GETKEYS MSET a 1 b 2 -> [a b]",
    );
    assert!(client.ask("HELLO 3 AUTH default p SETNAME you").starts_with("{server redis version"));
    client.play(
        "HGETALL none -> {}
         GET none -> nil
         ZADD z 1.5 a -> 1
         ZSCORE z a -> 1.5
         RESET -> RESET
         CLIENT GETNAME -> nil
         QUIT -> OK",
    );
    assert_eq!(client.reply(), "closed");
    let mut client = server.client();
    let info = client.ask("INFO");
    for line in ["redis_version:7.0.15", "redis_mode:standalone", "loading:0"] {
        assert!(info.contains(line), "{info}");
    }
    let count = client.ask("COMMAND COUNT");
    assert!(count.parse::<usize>().unwrap() > 150, "{count}");
}

#[test]
fn pipelines_are_answered_in_order() {
    let server = Server::start();
    let mut client = server.client();
    let mut sent = String::new();
    for at in 0..1_000 {
        sent += &format!("INCR a\r\nLPUSH a {at}\r\nPING\r\n");
    }
    client.send(sent);
    for at in 1..=1_000 {
        assert_eq!(client.reply(), at.to_string());
        assert!(client.reply().starts_with("WRONGTYPE"));
        assert_eq!(client.reply(), "PONG");
    }
}

#[test]
fn messages_go_to_those_who_listen() {
    let server = Server::start();
    let (mut listener, mut other) = (server.client(), server.client());
    listener.play("SUBSCRIBE news -> [subscribe news 1]\nPSUBSCRIBE n* -> [psubscribe n* 2]");
    listener.play(
        "GET a -> ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
         RESET are allowed in this context\nPING -> [pong ]",
    );
    other.play(
        "PUBLISH news hello -> 2
         PUBLISH other x -> 0
         PUBSUB CHANNELS -> [news]
         PUBSUB NUMSUB news x -> [news 1 x 0]
         PUBSUB NUMPAT -> 1",
    );
    assert_eq!(listener.reply(), "[message news hello]");
    assert_eq!(listener.reply(), "[pmessage n* news hello]");
    listener.play("UNSUBSCRIBE -> [unsubscribe news 1]\nPUNSUBSCRIBE n* -> [punsubscribe n* 0]");
    listener.play("GET a -> nil");
    drop(listener);
    other.play("PUBLISH news hello -> 0");
}

#[test]
fn what_is_no_request_ends_the_connection_after_what_came_before() {
    let server = Server::start();
    let mut client = server.client();
    client.send("SET a 1\r\n*1\r\nfoo\r\n");
    assert_eq!(client.reply(), "OK");
    assert_eq!(client.reply(), "ERR Protocol error: expected '$', got 'f'");
    assert_eq!(client.reply(), "closed");
    server.client().play("GET a -> 1");
}

#[test]
fn commands_that_come_together_with_the_end_of_the_connection_are_run() {
    let server = Server::start();
    for (sent, expected) in [
        ("SET a 1\r\nPING\r\n", "+OK\r\n+PONG\r\n".to_owned()),
        ("RPUSH k a\r\nBLPOP k 0\r\n", ":1\r\n*2\r\n$1\r\nk\r\n$1\r\na\r\n".to_owned()),
        (&"PING\r\n".repeat(3_000), "+PONG\r\n".repeat(3_000)),
    ] {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        socket.write_all(sent.as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let mut found = String::new();
        socket.read_to_string(&mut found).unwrap();
        assert_eq!(found, expected);
    }
    server.client().play("GET a -> 1");
}

#[test]
fn web_pages_give_no_commands() {
    let server = Server::start();
    for first in ["POST / HTTP/1.1", "post x", "GET / HTTP/1.1\r\nHost: localhost:6379"] {
        let mut client = server.client();
        client.send(format!("{first}\r\nSET a 1\r\n"));
        let answered = [client.reply(), client.reply()];
        assert!(answered.contains(&"closed".to_owned()), "{answered:?}");
        server.client().play("GET a -> nil");
    }
}
