//! Commands and their replies, family by family.

use crate::client::Server;

#[test]
fn strings() {
    Server::start().client().play(
        r#"
        SET a 1 -> OK
        GET a -> 1
        SET a 2 NX -> nil
        SET a 3 XX GET -> 1
        GETSET a x -> 3
        APPEND a yz -> 3
        STRLEN a -> 3
        GETRANGE a 1 -1 -> yz
        SETRANGE a 5 q -> 6
        GETDEL a -> xyz  q
        GET a -> nil
        MSET a 1 b 2 -> OK
        MSETNX b 3 c 4 -> 0
        MGET a b c -> [1 2 nil]
        INCRBY a 41 -> 42
        DECR a -> 41
        INCRBYFLOAT a 0.1 -> 41.1
        INCR a -> ERR value is not an integer or out of range
        SETRANGE a -1 x -> ERR offset is out of range
        SET a 1 EX 0 -> ERR invalid expire time in 'set' command
        SET a 1 EX 10 PX 10 -> ERR syntax error
        SET a ohmytext -> OK
        SET b mynewtext -> OK
        LCS a b -> mytext
        LCS a b LEN -> 6
        SUBSTR a 0 1 -> oh
        "#
        .replace("xyz  q", "xyz\0\0q")
        .as_str(),
    );
}

#[test]
fn long_strings_are_in_pieces_and_look_as_short_ones() {
    let server = Server::start();
    let mut client = server.client();
    let long: String = (0..50_000).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    client.send(format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n{long}\r\n", long.len()));
    assert_eq!(client.reply(), "OK");
    assert_eq!(client.ask("GET a"), long);
    assert_eq!(client.ask("STRLEN a"), "50000");
    assert_eq!(client.ask("GETRANGE a 16380 16390"), long[16380..=16390]);
    client.play(
        "SETRANGE a 16382 ---- -> 50000
         APPEND a end -> 50003
         GETRANGE a -4 -1 -> bend
         SETBIT a 800000 1 -> 0
         STRLEN a -> 100001
         BITCOUNT a 60000 -1 -> 1
         RENAME a b -> OK
         COPY b c -> 1
         DEL b -> 1
         STRLEN c -> 100001",
    );
    let expected = format!("{}----{}", &long[16380..16382], &long[16386..16390]);
    assert_eq!(client.ask("GETRANGE c 16380 16389"), expected);
}

#[test]
fn bits() {
    Server::start().client().play(
        "SETBIT a 7 1 -> 0
         GETBIT a 7 -> 1
         GETBIT a 100 -> 0
         SETBIT a 7 2 -> ERR bit is not an integer or out of range
         SET b foobar -> OK
         BITCOUNT b -> 26
         BITCOUNT b 1 1 -> 6
         BITCOUNT b 5 30 BIT -> 17
         BITPOS b 1 -> 1
         BITPOS b 0 0 -1 -> 0
         BITOP AND d a b -> 6
         BITOP NOT d a b -> ERR BITOP NOT must be called with a single source key.
         BITFIELD f SET i8 0 -1 GET u8 0 INCRBY u8 0 1 -> [0 255 0]
         BITFIELD f OVERFLOW SAT INCRBY i8 0 200 OVERFLOW FAIL INCRBY i8 0 1 -> [127 nil]
         BITFIELD_RO f GET i8 0 -> [127]",
    );
}

#[test]
fn hashes() {
    Server::start().client().play(
        "HSET h a 1 b 2 -> 2
         HSET h a 3 -> 0
         HGET h a -> 3
         HMGET h a c -> [3 nil]
         HLEN h -> 2
         HINCRBY h a 4 -> 7
         HINCRBYFLOAT h b 0.5 -> 2.5
         HSETNX h a 9 -> 0
         HEXISTS h c -> 0
         HSTRLEN h b -> 3
         HDEL h a c -> 1
         HGETALL h -> [b 2.5]
         HDEL h b -> 1
         EXISTS h -> 0
         HSET h a -> ERR wrong number of arguments for 'hset' command
         SET h 1 -> OK
         HGET h a -> WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn lists() {
    Server::start().client().play(
        "RPUSH l a b c -> 3
         LPUSH l z -> 4
         LRANGE l 0 -1 -> [z a b c]
         LINDEX l -1 -> c
         LINSERT l BEFORE b x -> 5
         LINSERT l AFTER z y -> 6
         LRANGE l 0 -1 -> [z y a x b c]
         LSET l 0 a -> OK
         LREM l -1 a -> 1
         LRANGE l 0 -1 -> [a y x b c]
         LREM l 0 x -> 1
         LPOS l b -> 2
         LTRIM l 1 2 -> OK
         LRANGE l 0 -1 -> [y b]
         LMOVE l m LEFT RIGHT -> y
         RPOPLPUSH l m -> b
         EXISTS l -> 0
         LRANGE m 0 -1 -> [b y]
         LMPOP 2 l m LEFT COUNT 5 -> [m [b y]]
         LPOP m -> nil
         LPUSHX m a -> 0
         LSET m 0 a -> ERR no such key",
    );
}

#[test]
fn sets() {
    Server::start().client().play(
        "SADD s a b c -> 3
         SADD s a -> 0
         SCARD s -> 3
         SISMEMBER s a -> 1
         SMISMEMBER s a x -> [1 0]
         SREM s a x -> 1
         SADD t c d -> 2
         SINTER s t -> [c]
         SINTERCARD 2 s t -> 1
         SDIFF s t -> [b]
         SUNIONSTORE u s t -> 3
         SCARD u -> 3
         SMOVE s t b -> 1
         SPOP s -> c
         EXISTS s -> 0
         SINTERSTORE u s t -> 0
         EXISTS u -> 0
         SINTERCARD 0 s -> ERR numkeys should be greater than 0",
    );
}

#[test]
fn sorted_sets() {
    Server::start().client().play(
        "ZADD z 1 a 2 b 3 c -> 3
         ZADD z XX CH 5 a 9 q -> 1
         ZRANGE z 0 -1 WITHSCORES -> [b 2 c 3 a 5]
         ZADD z GT 1 a -> 0
         ZINCRBY z 1.5 b -> 3.5
         ZSCORE z b -> 3.5
         ZRANK z a -> 2
         ZREVRANK z a -> 0
         ZCOUNT z (3 +inf -> 2
         ZRANGEBYSCORE z -inf +inf LIMIT 1 1 -> [b]
         ZRANGE z +inf (3 BYSCORE REV -> [a b]
         ZPOPMIN z -> [c 3]
         ZADD y 1 a 1 b 1 c -> 3
         ZRANGEBYLEX y [b + -> [b c]
         ZLEXCOUNT y - (c -> 2
         ZUNIONSTORE u 2 z y WEIGHTS 1 10 -> 3
         ZRANGE u 0 -1 WITHSCORES -> [c 10 b 13.5 a 15]
         ZINTER 2 z y WITHSCORES -> [b 4.5 a 6]
         ZDIFF 2 y z -> [c]
         ZREMRANGEBYRANK u 0 0 -> 1
         ZMPOP 1 u MAX -> [u [[a 15]]]
         ZREM u b -> 1
         EXISTS u -> 0
         ZADD z NX XX 1 a -> ERR XX and NX options at the same time are not compatible
         ZRANGEBYSCORE z x 1 -> ERR min or max is not a float",
    );
}

#[test]
fn keys_of_any_type() {
    Server::start().client().play(
        "SET a 1 -> OK
         RPUSH l x y -> 2
         TYPE l -> list
         TYPE none -> none
         EXISTS a l none -> 2
         RENAME l m -> OK
         LRANGE m 0 -1 -> [x y]
         RENAMENX a m -> 0
         COPY m n -> 1
         RPUSH n z -> 3
         LLEN m -> 2
         DBSIZE -> 3
         MOVE a 1 -> 1
         SELECT 1 -> OK
         GET a -> 1
         SWAPDB 0 1 -> OK
         LLEN m -> 2
         FLUSHDB -> OK
         DBSIZE -> 0
         SELECT 0 -> OK
         GET a -> 1
         FLUSHALL -> OK
         KEYS * -> []
         RANDOMKEY -> nil
         RPUSH s 3 1 2 -> 3
         SORT s DESC -> [3 2 1]
         SORT s LIMIT 0 2 STORE t -> 2
         LRANGE t 0 -1 -> [1 2]
         SELECT 16 -> ERR DB index is out of range",
    );
}

#[test]
fn values_go_out_as_bytes_and_come_back() {
    let server = Server::start();
    let mut client = server.client();
    client.play(
        "SET string text -> OK
         RPUSH list a b -> 2
         SADD set a -> 1
         HSET hash f v -> 1
         ZADD sorted 1.5 a -> 1",
    );
    for key in ["string", "list", "set", "hash", "sorted"] {
        let dumped = client.ask_bytes(&["DUMP", key], &[]);
        assert_eq!(client.ask_bytes(&["RESTORE", "other", "5000"], &dumped), b"OK");
        let busy = b"BUSYKEY Target key name already exists.";
        assert_eq!(client.ask_bytes(&["RESTORE", "other", "0"], &dumped), busy);
        assert_eq!(client.ask("TYPE other"), client.ask(&format!("TYPE {key}")));
        assert_eq!(client.ask_bytes(&["DUMP", "other"], &[]), dumped);
        assert_eq!(client.ask("TTL other"), "5");
        client.play("DEL other -> 1");
    }
    client.play("RESTORE other 0 abc -> ERR DUMP payload version or checksum are wrong");
}

#[test]
fn expiry() {
    Server::start().client().play(
        "SET a 1 EX 100 -> OK
         TTL a -> 100
         PERSIST a -> 1
         TTL a -> -1
         TTL none -> -2
         EXPIRE a 50 XX -> 0
         EXPIRE a 50 NX -> 1
         EXPIRE a 40 GT -> 0
         EXPIRE a 40 LT -> 1
         EXPIREAT a 4102444800 -> 1
         EXPIRETIME a -> 4102444800
         SET a 2 KEEPTTL -> OK
         EXPIRETIME a -> 4102444800
         GETEX a PERSIST -> 2
         TTL a -> -1
         EXPIRE a -1 -> 1
         EXISTS a -> 0
         SET a 1 PXAT 1 -> OK
         GET a -> nil
         SET a 1 PXAT 1 -> OK
         RPUSH a x -> 1
         TTL a -> -1
         EXPIRE a 1 NX GT -> ERR NX and XX, GT or LT options at the same time are not compatible",
    );
}

#[test]
fn iterations_return_what_was_there_all_the_time() {
    let server = Server::start();
    let mut client = server.client();
    for at in 0..500 {
        client.ask(&format!("SET key:{at} {at}"));
        client.ask(&format!("SADD members {at}"));
    }
    for command in ["SCAN", "SSCAN members"] {
        let (mut cursor, mut found, mut round) = ("0".to_owned(), Vec::new(), 0);
        loop {
            let reply = client.ask(&format!("{command} {cursor} COUNT 20"));
            let (next, all) = reply[1..reply.len() - 2].split_once(" [").unwrap();
            found.extend(all.split(' ').filter(|it| !it.is_empty()).map(str::to_owned));
            client.ask(&format!("SET other:{round} 1"));
            client.ask(&format!("DEL other:{}", round - 1));
            (cursor, round) = (next.to_owned(), round + 1);
            if cursor == "0" {
                break;
            }
        }
        for at in 0..500 {
            let name = if command == "SCAN" { format!("key:{at}") } else { at.to_string() };
            assert!(found.contains(&name), "{command} {name}");
        }
        assert!(round > 10, "{command} took {round} pages");
    }
}

#[test]
fn numbers_at_the_ends_of_what_there_is() {
    let server = Server::start();
    let mut client = server.client();
    client.play(
        "BITFIELD f GET i2 #9223372036854775807 -> ERR bit offset is not an integer or out of range
         BITFIELD f GET u8 9223372036854775807 -> ERR bit offset is not an integer or out of range
         BITFIELD f GET u8 4294967289 -> ERR bit offset is not an integer or out of range
         BITFIELD f GET u8 4294967288 -> [0]
         ZADD z 0x0p2000 m -> 1
         ZSCORE z m -> 0
         ZADD z 1 new 0x1p2000 old -> ERR value is not a valid float
         ZADD z 1e400 new -> ERR value is not a valid float
         ZADD z inf m -> 0
         ZADD z INCR -inf m -> ERR resulting score is not a number (NaN)
         ZRANGE z 0 -1 WITHSCORES -> [m inf]
         SET a 1 PXAT 4102444800500 -> OK
         EXPIRETIME a -> 4102444801
         PEXPIRETIME a -> 4102444800500",
    );
    let members: Vec<_> = (0..1_100).map(|it| it.to_string()).collect();
    client.ask(&format!("SADD s {}", members.join(" ")));
    for count in ["9223372036854775807", "2000", "1100", "551", "550", "1"] {
        let found = client.ask(&format!("SRANDMEMBER s {count}"));
        let mut found: Vec<_> = found[1..found.len() - 1].split(' ').collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), count.parse::<usize>().unwrap().min(1_100));
    }
}

#[test]
fn a_random_key_is_found_behind_many_that_have_expired() {
    let server = Server::start();
    let mut client = server.client();
    client.play("MULTI -> OK");
    for at in 0..1_000 {
        client.play(&format!("SET over:{at} 1 PXAT 1 -> QUEUED"));
    }
    client.play("SET key 1 -> QUEUED");
    (0..20).for_each(|_| client.play("RANDOMKEY -> QUEUED"));
    let found = client.ask("EXEC");
    assert!(found.ends_with(&(" key".repeat(20) + "]")), "{}", &found[found.len() - 100..]);
}

#[test]
fn bits_of_long_strings_are_combined_piece_by_piece() {
    let server = Server::start();
    let mut client = server.client();
    let bytes = |seed: usize, length: usize| -> Vec<u8> {
        (0..length).map(|at| (at * seed / 7 % 251) as u8).collect()
    };
    let (long, short) = (bytes(3, (2 << 20) + 77), bytes(5, (1 << 20) + 5));
    assert_eq!(client.ask_bytes(&["SET", "long"], &long), b"OK");
    assert_eq!(client.ask_bytes(&["SET", "short"], &short), b"OK");
    for (operation, combined) in
        [("AND", (|a, b| a & b) as fn(u8, u8) -> u8), ("OR", |a, b| a | b), ("XOR", |a, b| a ^ b)]
    {
        let of = |at: usize| short.get(at).copied().unwrap_or(0);
        let expected: Vec<_> = (0..long.len()).map(|at| combined(long[at], of(at))).collect();
        client.play(&format!("BITOP {operation} combined short long -> 2097229"));
        assert!(client.ask_bytes(&["GET", "combined"], &[]) == expected);
    }
    client.play("BITOP AND combined none long -> 2097229\nBITCOUNT combined -> 0");
    client.play("BITOP NOT long long -> 2097229");
    let expected: Vec<u8> = long.iter().map(|it| !it).collect();
    assert!(client.ask_bytes(&["GET", "long"], &[]) == expected);
}
