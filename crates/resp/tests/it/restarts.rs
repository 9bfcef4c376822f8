//! What was there is there again after a restart.

use muesli::Options;
use muesli_resp::RespOptions;

use crate::client::Server;

#[test]
fn a_durable_server_has_everything_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Server::with(Options::default().durable(folder.path()), &RespOptions::default());
    let server = start();
    server.client().play(
        "SET a 1 -> OK
         RPUSH l a b c -> 3
         HSET h f v -> 1
         ZADD z 1 m -> 1
         SADD s m -> 1
         SET old 1 PX 1 -> OK
         SELECT 5 -> OK
         SET b 2 -> OK",
    );
    drop(server);
    let server = start();
    server.client().play(
        "GET a -> 1
         LRANGE l 0 -1 -> [a b c]
         LPUSH l z -> 4
         HGETALL h -> [f v]
         ZRANGE z 0 -1 -> [m]
         SMEMBERS s -> [m]
         SADD other x -> 1
         SMEMBERS s -> [m]
         EXISTS old -> 0
         SELECT 5 -> OK
         GET b -> 2
         FLUSHALL -> OK",
    );
    drop(server);
    start().client().play("DBSIZE -> 0\nSET a 1 -> OK\nDBSIZE -> 1");
}

#[test]
fn counts_are_right_however_the_server_was_started_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for shared in [true, false, true, false] {
        let resp = RespOptions { shared, ..RespOptions::default() };
        let server = Server::with(Options::default().durable(folder.path()), &resp);
        let mut client = server.client();
        for at in count..count + 40 {
            client.ask(&format!("SADD s {at}"));
            client.ask(&format!("SET key:{at} 1"));
        }
        count += 40;
        client.play(&format!("SCARD s -> {count}\nDBSIZE -> {}", count + 1));
        let taken = client.ask(&format!("SPOP s {}", count - 1));
        assert_eq!(taken.split(' ').count(), count - 1);
        client.play("SCARD s -> 1");
        for at in 0..count {
            client.ask(&format!("SADD s {at}"));
        }
    }
}
