//! Several servers for Redis clients, on one cluster.

use std::net::SocketAddr;

use muesli::Db;
use muesli::server::{self, RunningServer, ServerOptions};
use muesli_resp::{RespListener, RespOptions, RespServer};

use crate::client::Client;
use crate::transactions::transfers_keep_the_sum;

/// Clients wait at one server, and what they wait for comes by the other one.
fn who_waits_at_one_server_is_served_by_order([one, other]: &[SocketAddr; 2]) {
    let mut pusher = Client::connect(*other);
    for round in 0..5 {
        let mut waiting: Vec<_> = (0..4).map(|_| Client::connect(*one)).collect();
        for (at, client) in waiting.iter_mut().enumerate() {
            client.begin("BLPOP list 0");
            let blocked = format!("blocked_clients:{}\r", at + 1);
            while !Client::connect(*one).ask("INFO clients").contains(&blocked) {}
        }
        for (at, client) in waiting.iter_mut().enumerate() {
            pusher.play(&format!("RPUSH list {round}:{at} -> 1"));
            assert_eq!(client.reply(), format!("[list {round}:{at}]"));
        }
    }
}

/// Scripts are transactions over all servers, and libraries are at all of them.
#[cfg(feature = "scripts")]
fn scripts_and_functions(one: &mut Client, other: &mut Client, addresses: &[SocketAddr; 2]) {
    let code = |value| {
        format!("#!lua name=l\nredis.register_function('f', function() return {value} end)")
    };
    assert_eq!(one.ask_list(&["FUNCTION", "LOAD", &code(1)]), "l");
    other.play("FCALL f 0 -> 1");
    assert_eq!(other.ask_list(&["FUNCTION", "LOAD", "REPLACE", &code(2)]), "l");
    one.play("FCALL f 0 -> 2\nFUNCTION FLUSH -> OK");
    other.play("FCALL f 0 -> ERR Function not found");
    crate::scripts::updates_are_not_lost(addresses);
}

#[test]
fn members_serve_the_same_data() {
    let options = ServerOptions { listen: "127.0.0.1:0".to_owned(), ..server::options() };
    let native = RunningServer::start(options, 1).unwrap();
    let start = || {
        let db = Db::connect([native.address().to_string()]).unwrap();
        let options = RespOptions { shared: true, ..RespOptions::default() };
        let listener = RespListener::bind("127.0.0.1:0", &options).unwrap();
        RespServer::start(&db, listener, &options).map_err(|it| it.0).unwrap()
    };
    let both = [start(), start()];
    let [mut one, mut other] = both.each_ref().map(|it| Client::connect(it.address()));
    one.play("SET a 1 -> OK\nSADD s x y -> 2");
    other.play("GET a -> 1\nSADD s z -> 1");
    one.play("SCARD s -> 3\nDBSIZE -> 2");
    one.begin("BLPOP list 0");
    other.play("RPUSH list item -> 1");
    assert_eq!(one.reply(), "[list item]");
    who_waits_at_one_server_is_served_by_order(&both.each_ref().map(RespServer::address));
    one.play("WATCH a -> OK\nMULTI -> OK\nSET a 3 -> QUEUED");
    other.play("SET a 2 -> OK");
    one.play("EXEC -> nil\nGET a -> 2");
    #[cfg(feature = "scripts")]
    scripts_and_functions(&mut one, &mut other, &both.each_ref().map(RespServer::address));
    transfers_keep_the_sum(&both.each_ref().map(RespServer::address));
    both.into_iter().for_each(|it| it.stop().unwrap());
    native.stop().unwrap();
}
