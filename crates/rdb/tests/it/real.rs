//! Files that Redis has written, and what it had then.

use std::collections::BTreeMap;

use muesli_rdb::RdbErrorKind;

use crate::reading::{ReadFile, read};
use crate::sample::{SampleKey, SampleValue};

fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|it| it.as_bytes().to_vec()).collect()
}

/// The elements of a set or hash, or of a sorted set by its members, in an order of their own.
fn in_order(value: SampleValue) -> SampleValue {
    match value {
        SampleValue::Set(mut all) => {
            all.sort();
            SampleValue::Set(all)
        }
        SampleValue::Hash(mut all) => {
            all.sort();
            SampleValue::Hash(all)
        }
        SampleValue::Sorted(mut all) => {
            all.sort_by(|a, b| a.0.cmp(&b.0));
            SampleValue::Sorted(all)
        }
        other @ (SampleValue::Text(_) | SampleValue::List(_)) => other,
    }
}

/// What the files have that were made by the same commands.
fn expected() -> BTreeMap<(u64, String), SampleValue> {
    let text = |it: &[u8]| SampleValue::Text(it.to_vec());
    let list = |all: &[&str]| SampleValue::List(texts(all));
    let set = |all: &[&str]| in_order(SampleValue::Set(texts(all)));
    let sorted = |all: &[(&str, f64)]| {
        let all = all.iter().map(|(member, score)| (member.as_bytes().to_vec(), *score));
        in_order(SampleValue::Sorted(all.collect()))
    };
    let hash = |all: &[(&str, &str)]| {
        let pair = |it: &(&str, &str)| (it.0.as_bytes().to_vec(), it.1.as_bytes().to_vec());
        in_order(SampleValue::Hash(all.iter().map(pair).collect()))
    };
    let long: Vec<_> =
        (1..=40).map(|it| format!("item:{it}:{}", it.to_string().repeat(150))).collect();
    let long: Vec<_> = long.iter().map(String::as_str).collect();
    let (infinite, wide) = (f64::INFINITY, "x".repeat(100));
    let all = [
        (0, "text", text(b"plain text")),
        (0, "small", text(b"12")),
        (0, "negative", text(b"-300")),
        (0, "middle", text(b"70000")),
        (0, "large", text(b"12345678901")),
        (0, "empty", text(b"")),
        (0, "compressed", text("abc".repeat(200).as_bytes())),
        (0, "bytes", text(b"\x01\xff")), // The shell has taken the line's end away.
        (0, "expires", text(b"later")),
        (0, "list", list(&["a", "b", "1", "-5", "300", "70000", "5000000000", &wide])),
        (0, "longlist", list(&long)),
        (0, "numbers16", set(&["1", "2", "-3"])),
        (0, "numbers32", set(&["1", "70000"])),
        (0, "numbers64", set(&["1", "5000000000"])),
        (0, "numbersht", set(&["1", "2", "3", "4", "5", "6"])),
        (0, "members", set(&["a", "b", "c", "1"])),
        (
            0,
            "sorted",
            sorted(&[
                ("one", 1.0),
                ("two", 2.5),
                ("least", -infinite),
                ("most", infinite),
                ("big", 1e300),
            ]),
        ),
        (0, "sortedsl", sorted(&[("a", 1.0), ("b", 2.25), ("c", -3e-5), ("d", infinite)])),
        (0, "hash", hash(&[("f", "v"), ("g", "1"), ("n", "-7")])),
        (0, "hashht", hash(&[("a", "1"), ("b", "2"), ("c", "3")])),
        (3, "other", text(b"database")),
        (3, "h2", hash(&[("x", "y")])),
    ];
    all.into_iter().map(|(database, key, value)| ((database, key.to_owned()), value)).collect()
}

fn by_key(file: ReadFile) -> BTreeMap<(u64, String), SampleValue> {
    let key = |it: SampleKey| {
        let expires = (it.key == b"expires").then_some(4_102_444_800_123);
        assert_eq!(it.expires, expires);
        ((it.database, String::from_utf8(it.key).unwrap()), in_order(it.value))
    };
    file.keys.into_iter().map(key).collect()
}

#[test]
fn a_file_of_redis_6_is_read() {
    let file = read(&include_bytes!("../data/redis6.rdb")[..]).unwrap();
    assert_eq!(file.version, 9);
    assert_eq!(file.aux[0], ("redis-ver".to_owned(), "6.2.14".to_owned()));
    assert_eq!(by_key(file), expected());
}

#[test]
fn files_of_redis_7_and_8_are_read() {
    for (bytes, version, redis) in [
        (&include_bytes!("../data/redis7.rdb")[..], 10, "7.0.15"),
        (include_bytes!("../data/redis8.rdb"), 12, "8.2.3"),
    ] {
        let file = read(bytes).unwrap();
        assert_eq!(file.version, version);
        assert_eq!(file.aux[0], ("redis-ver".to_owned(), redis.to_owned()));
        let mut expected = expected();
        // An item of it is a node of its own.
        let plain = texts(&["short", &"long".repeat(30), "end"]);
        expected.insert((0, "plainlist".to_owned()), SampleValue::List(plain));
        assert_eq!(by_key(file), expected);
    }
}

#[test]
fn functions_are_read_and_what_else_there_is_refused() {
    let file = read(&include_bytes!("../data/functions7.rdb")[..]).unwrap();
    assert!(file.libraries[0].starts_with(b"#!lua name=mine\n"));
    assert_eq!(file.keys.len(), 1);
    for bytes in [&include_bytes!("../data/stream6.rdb")[..], include_bytes!("../data/stream7.rdb")]
    {
        let error = read(bytes).unwrap_err();
        assert_eq!(error.key.as_deref(), Some(&b"stream"[..]));
        assert!(matches!(error.kind, RdbErrorKind::Unsupported(what) if what == "streams"));
    }
    let fields = read(&include_bytes!("../data/fields8.rdb")[..]).unwrap_err().to_string();
    assert!(fields.contains("in the key \"h\": hashes whose fields expire"), "{fields}");
    let valkey = read(&include_bytes!("../data/valkey9.rdb")[..]).unwrap_err().to_string();
    assert!(valkey.contains("of Valkey 9 or newer"), "{valkey}");
}
