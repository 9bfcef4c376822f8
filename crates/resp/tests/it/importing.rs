//! RDB files of Redis, imported and then read by a client; and what is refused.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use muesli::{Db, Options};
use muesli_rdb::RdbKind;
use muesli_resp::import::{CheckedRdb, RdbImport, RdbImported, RdbPhase, RdbProgress};

use crate::client::Server;
use crate::sample::{SampleKey, SampleValue};
use crate::writer::{RdbWriter, SampleEncoding};

const REDIS8: &[u8] = include_bytes!("../../../rdb/tests/data/redis8.rdb");

/// What comes of an import, and its phases.
fn imported(
    db: &Db,
    bytes: &[u8],
    import: RdbImport,
) -> (Result<RdbImported, String>, Vec<RdbPhase>) {
    let mut phases = Vec::new();
    let mut source = Cursor::new(bytes);
    let checked = CheckedRdb::check(&mut source, import, |it: RdbProgress| phases.push(it.phase));
    let done = checked.and_then(|it| it.import(db, |it| phases.push(it.phase)));
    phases.dedup();
    (done.map_err(|it| it.to_string()), phases)
}

fn import(db: &Db, bytes: &[u8]) -> Result<RdbImported, String> {
    imported(db, bytes, RdbImport::default()).0
}

fn replacing() -> RdbImport {
    RdbImport { replace: true, ..RdbImport::default() }
}

fn key(key: &str, value: SampleValue) -> SampleKey {
    SampleKey { database: 0, key: key.as_bytes().to_vec(), expires: None, value }
}

fn file(keys: &[SampleKey]) -> Vec<u8> {
    let mut writer = RdbWriter::new(12);
    keys.iter().for_each(|it| writer.key(it, SampleEncoding::BinaryScores));
    writer.finish()
}

fn texts(all: impl IntoIterator<Item = String>) -> Vec<Vec<u8>> {
    all.into_iter().map(String::into_bytes).collect()
}

#[test]
fn a_file_of_redis_is_there_for_its_clients() {
    let db = Db::open(Options::default()).unwrap();
    let (done, phases) = imported(&db, REDIS8, RdbImport::default());
    let done = done.unwrap();
    assert_eq!((done.version, done.redis.as_deref()), (12, Some("8.2.3")));
    let counts: Vec<_> = RdbKind::ALL.iter().map(|kind| done.keys[kind]).collect();
    assert_eq!(counts, [10, 3, 5, 2, 3]);
    assert_eq!((done.count(), done.expired, done.empty, done.libraries), (23, 0, 0, 0));
    assert_eq!(phases, [RdbPhase::Checking, RdbPhase::Writing, RdbPhase::Comparing]);
    let server = Server::serving(db);
    let mut client = server.client();
    client.play(
        "DBSIZE -> 21
         GET text -> plain text
         GET large -> 12345678901
         STRLEN compressed -> 600
         PEXPIRETIME expires -> 4102444800123
         TTL text -> -1
         LRANGE list 0 6 -> [a b 1 -5 300 70000 5000000000]
         LLEN longlist -> 40
         LRANGE plainlist 2 -1 -> [end]
         SCARD numbersht -> 6
         SISMEMBER numbers64 5000000000 -> 1
         ZRANGE sorted 0 2 WITHSCORES -> [least -inf one 1 two 2.5]
         ZRANGE sorted 3 -1 WITHSCORES -> [big 1.0000000000000001e+300 most inf]
         ZSCORE sortedsl b -> 2.25
         HGET hash n -> -7
         HLEN hashht -> 3
         SELECT 3 -> OK
         GET other -> database
         HGETALL h2 -> [x y]",
    );
}

#[test]
fn keys_of_any_length_are_built_in_parts() {
    let db = Db::open(Options::default()).unwrap();
    let names = |count: usize| texts((0..count).map(|it| format!("element:{it}")));
    let scored = names(12_000).into_iter().zip((0..).map(f64::from)).collect();
    let fields = names(12_000).into_iter().zip(names(12_000)).collect();
    let text: Vec<u8> = (0..3_000_000_u32).map(|it| (it % 251) as u8).collect();
    let values = [
        ("text", SampleValue::Text(text.clone())),
        ("list", SampleValue::List(names(30_000))),
        ("set", SampleValue::Set(names(30_000))),
        ("sorted", SampleValue::Sorted(scored)),
        ("hash", SampleValue::Hash(fields)),
        ("small", SampleValue::Text(b"1".to_vec())),
    ];
    let mut keys = values.map(|(name, value)| key(name, value));
    keys[1].expires = Some(4_102_444_800_000);
    let bytes = file(&keys);
    let done = import(&db, &bytes).unwrap();
    assert_eq!((done.count(), done.elements), (6, 2 + 2 * 30_000 + 2 * 12_000));
    // All of them once more, over those that are there.
    assert_eq!(imported(&db, &bytes, replacing()).0.unwrap(), done);
    let server = Server::serving(db);
    let mut client = server.client();
    client.play(
        "DBSIZE -> 6
         KEYS muesli:* -> []
         STRLEN text -> 3000000
         LLEN list -> 30000
         LINDEX list 29999 -> element:29999
         PEXPIRETIME list -> 4102444800000
         TTL set -> -1
         SCARD set -> 30000
         ZCARD sorted -> 12000
         ZRANGE sorted 11998 -1 -> [element:11998 element:11999]
         HLEN hash -> 12000
         HGET hash element:777 -> element:777
         GET small -> 1",
    );
    assert_eq!(client.ask_bytes(&["GET"], b"text"), text);
}

#[test]
fn what_has_expired_is_not_imported() {
    let db = Db::open(Options::default()).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let at = |name: &str, expires| SampleKey {
        expires: Some(expires),
        ..key(name, SampleValue::Text(b"1".to_vec()))
    };
    let empty = key("empty", SampleValue::List(Vec::new()));
    let done = import(&db, &file(&[at("old", 1_000), at("new", now + 60_000), empty])).unwrap();
    assert_eq!((done.count(), done.expired, done.empty), (1, 1, 1));
    Server::serving(db).client().play("KEYS * -> [new]");
}

#[test]
fn what_cannot_be_imported_changes_nothing() {
    let db = Db::open(Options::default()).unwrap();
    let one = || key("one", SampleValue::Text(b"1".to_vec()));
    let long = "m".repeat(65_001).into_bytes();
    let cases = [
        (
            file(&[one(), SampleKey { database: 16, ..one() }]),
            "keys in database 16; there are the databases 0 to 15",
        ),
        (
            file(&[one(), key("set", SampleValue::Set(vec![long.clone()]))]),
            "the key \"set\": a member of 65001 bytes is over the limit of 65000 bytes",
        ),
        (
            file(&[one(), key("list", SampleValue::List(vec![vec![b'i'; (16 << 20) + 1]]))]),
            "the key \"list\": an item of 16777217 bytes is over the limit of 16777216 bytes",
        ),
        (
            include_bytes!("../../../rdb/tests/data/stream7.rdb").to_vec(),
            "in the key \"stream\": streams are not supported",
        ),
        (
            include_bytes!("../../../rdb/tests/data/functions7.rdb").to_vec(),
            "the library of functions `mine`, which an import does not load; `--skip-functions`",
        ),
        (REDIS8[..REDIS8.len() - 30].to_vec(), "the file ends here, and is not complete"),
    ];
    for (bytes, why) in cases {
        let error = import(&db, &bytes).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let skipping = RdbImport { skip_functions: true, ..RdbImport::default() };
    let functions = include_bytes!("../../../rdb/tests/data/functions7.rdb");
    let server = Server::serving(db.clone());
    server.client().play("DBSIZE -> 0");
    let done = imported(&db, functions, skipping).0.unwrap();
    assert_eq!((done.count(), done.libraries), (1, 1));
    server.client().play("GET a -> b");
}

#[test]
fn keys_that_are_there_are_replaced_or_nothing_is_done() {
    let db = Db::open(Options::default()).unwrap();
    let server = Server::serving(db.clone());
    let mut client = server.client();
    client.play("SADD text member -> 1\nPEXPIRE text 100000 -> 1\nSET other 1 -> OK");
    let (done, phases) = imported(&db, REDIS8, RdbImport::default());
    let expected = "1 keys of the file are there already (\"text\"); `--replace` replaces them";
    assert_eq!(done.unwrap_err(), expected);
    assert_eq!(phases, [RdbPhase::Checking, RdbPhase::Looking]);
    client.play("DBSIZE -> 2");
    assert_eq!(imported(&db, REDIS8, replacing()).0.unwrap().count(), 23);
    client.play("GET text -> plain text\nTTL text -> -1\nGET other -> 1\nDBSIZE -> 22");
}

/// A file that can be read so often, and then half of it.
struct HalfReadable {
    file: Cursor<Vec<u8>>,
    whole: usize,
    rewound: usize,
}

impl HalfReadable {
    fn new(bytes: &[u8], whole: usize) -> HalfReadable {
        HalfReadable { file: Cursor::new(bytes.to_vec()), whole, rewound: 0 }
    }
}

impl Read for HalfReadable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_half = self.file.position() as usize > self.file.get_ref().len() / 2;
        if self.rewound > self.whole && is_half {
            return Err(io::Error::other("the disk is gone"));
        }
        self.file.read(buffer)
    }
}

impl Seek for HalfReadable {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.rewound += 1;
        self.file.seek(to)
    }
}

#[test]
fn an_import_that_is_cut_short_leaves_whole_keys_and_can_be_run_again() {
    let db = Db::open(Options::default()).unwrap();
    let items = texts((0..200_000).map(|it| format!("element:{it}")));
    let list = key("list", SampleValue::List(items));
    let bytes = file(&[key("small", SampleValue::Text(b"1".to_vec())), list]);
    let mut source = HalfReadable::new(&bytes, 1);
    let checked = CheckedRdb::check(&mut source, RdbImport::default(), |_| {}).unwrap();
    let server = Server::serving(db.clone());
    let mut client = server.client();
    let mut begun = 0;
    let error = checked.import(&db, |_| {
        // What was begun is of no use if the import ends here, and expires.
        let keys = client.ask("KEYS muesli:import:*");
        if keys != "[]" {
            let left = client.ask(&format!("PTTL {}", keys.trim_matches(['[', ']'])));
            let left: u32 = left.parse().unwrap();
            assert!((3_500_000..=3_600_000).contains(&left), "{left}");
            begun += 1;
        }
    });
    let error = error.unwrap_err().to_string();
    let expected = "the disk is gone; at least 1 of 2 keys were imported, each whole";
    assert!(error.contains(expected) && begun > 0, "{error}");
    client.play("GET small -> 1\nEXISTS list -> 0\nDBSIZE -> 1\nKEYS muesli:* -> []");
    assert_eq!(imported(&db, &bytes, replacing()).0.unwrap().count(), 2);
    client.play("LLEN list -> 200000\nTTL list -> -1");
}

#[test]
fn an_import_whose_comparing_is_cut_short_says_that_all_is_written() {
    let db = Db::open(Options::default()).unwrap();
    let keys = |it| key(&format!("key:{it}"), SampleValue::Text(vec![b'x'; 1_000]));
    let mut source = HalfReadable::new(&file(&(0..1_000).map(keys).collect::<Vec<_>>()), 2);
    let checked = CheckedRdb::check(&mut source, RdbImport::default(), |_| {}).unwrap();
    let error = checked.import(&db, |_| {}).unwrap_err().to_string();
    let expected = "all 1000 keys were written; comparing them with the file has stopped before";
    assert!(error.starts_with(expected) && error.contains("the disk is gone"), "{error}");
    Server::serving(db).client().play("DBSIZE -> 1000");
}

#[test]
fn a_client_that_writes_other_keys_does_not_stop_an_import() {
    let db = Db::open(Options::default()).unwrap();
    let server = Server::serving(db.clone());
    let (mut client, is_over) = (server.client(), AtomicBool::new(false));
    let keys = |it| key(&format!("key:{it}"), SampleValue::Text(b"1".to_vec()));
    let bytes = file(&(0..5_000).map(keys).collect::<Vec<_>>());
    let others = thread::scope(|threads| {
        let writes = threads.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(client.ask(&format!("SET other:{count} 1")), "OK");
                count += 1;
            }
            count
        });
        let done = imported(&db, &bytes, replacing()).0;
        is_over.store(true, Ordering::Relaxed);
        let others = writes.join().unwrap();
        assert_eq!(done.unwrap().count(), 5_000);
        others
    });
    assert!(others > 0);
    let mut client = server.client();
    client.play(&format!("DBSIZE -> {}", others + 5_000));
    client.play(&format!("DEL key:7 other:0 -> 2\nDBSIZE -> {}", others + 4_998));
}

#[test]
fn keys_of_other_databases_are_shown_with_these() {
    let db = Db::open(Options::default()).unwrap();
    let server = Server::serving(db.clone());
    let mut client = server.client();
    client.play("SELECT 3 -> OK\nRPUSH one a -> 1\nRPUSH none a -> 1");
    let of = |database, name: &str, value| SampleKey { database, ..key(name, value) };
    let text = |it: &str| SampleValue::Text(it.as_bytes().to_vec());
    // A collection without elements is not imported, and in nobody's way.
    let empty = of(3, "none", SampleValue::List(Vec::new()));
    let error = import(&db, &file(&[empty, of(0, "one", text("1")), of(3, "one", text("1"))]));
    let expected = "1 keys of the file are there already (\"one\" of database 3); `--replace`";
    assert!(error.as_ref().unwrap_err().starts_with(expected), "{error:?}");
    // Each of the two is different.
    let [one, other] = [0, 3].map(|it| of(it, "one", text("1")));
    let twice = [0, 3].map(|it| of(it, "one", text("2")));
    let error = imported(&db, &file(&[[one, other], twice].concat()), replacing()).0.unwrap_err();
    let expected = "2 of them are not as in the file (the key \"one\" has other bytes; \
                    the key \"one\" of database 3 has other bytes)";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_in_a_file_twice_is_noticed() {
    let db = Db::open(Options::default()).unwrap();
    let one = |text: &[u8]| key("one", SampleValue::Text(text.to_vec()));
    let error = import(&db, &file(&[one(b"1"), one(b"2")])).unwrap_err();
    assert!(error.starts_with("the key \"one\" was written by somebody else meanwhile, or is in"));
    assert!(error.contains("; at least 0 of 2 keys were imported, each whole, and not all of"));
    let error = imported(&db, &file(&[one(b"1"), one(b"2")]), replacing()).0.unwrap_err();
    assert!(error.contains("1 of them are not as in the file (the key \"one\" has other bytes)"));
    let twice = texts(["a", "b", "a"].map(str::to_owned));
    let error = import(&db, &file(&[key("set", SampleValue::Set(twice))])).unwrap_err();
    assert!(error.contains("the key \"set\" has more or fewer members"), "{error}");
}
