//! Whole files, of keys in all encodings.

use muesli_rdb::{RdbErrorKind, VERSIONS};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::reading::read;
use crate::sample::{SampleKey, SampleValue};
use crate::writer::{ENCODINGS, RdbWriter, SampleEncoding};

/// Strings of all forms: numbers, short and long ones, runs.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i64>().prop_map(|it| it.to_string().into_bytes()),
        (-9000..9000_i64).prop_map(|it| it.to_string().into_bytes()),
        (-20..20_i64).prop_map(|it| it.to_string().into_bytes()),
        vec(any::<u8>(), 0..12),
        vec(any::<u8>(), 60..70),
        (any::<u8>(), 0..700_usize).prop_map(|(byte, count)| vec![byte; count]),
        (any::<u8>(), 16_300..16_500_usize).prop_map(|(byte, count)| vec![byte; count]),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE];
    prop_oneof![
        any::<f64>().prop_filter("a number", |it| !it.is_nan()),
        (-1000..1000_i32).prop_map(f64::from),
        prop::sample::select(special.to_vec()),
    ]
}

fn value() -> impl Strategy<Value = SampleValue> {
    let numbers = vec(any::<i64>().prop_map(|it| it.to_string().into_bytes()), 0..8);
    prop_oneof![
        text().prop_map(SampleValue::Text),
        vec(text(), 0..8).prop_map(SampleValue::List),
        vec(text(), 0..8).prop_map(SampleValue::Set),
        numbers.prop_map(SampleValue::Set),
        vec((text(), score()), 0..8).prop_map(SampleValue::Sorted),
        vec((text(), text()), 0..8).prop_map(SampleValue::Hash),
    ]
}

pub fn keys() -> impl Strategy<Value = Vec<(SampleKey, SampleEncoding)>> {
    let expires =
        prop::option::of(prop_oneof![0..1_u64 << 62, (0..1_u64 << 31).prop_map(|s| s * 1000)]);
    let key = (0..16_u64, text(), expires, value());
    let key =
        key.prop_map(|(database, key, expires, value)| SampleKey { database, key, expires, value });
    vec((key, prop::sample::select(ENCODINGS.to_vec())), 0..6)
}

pub fn written(version: u32, keys: &[(SampleKey, SampleEncoding)]) -> Vec<u8> {
    let mut writer = RdbWriter::new(version);
    keys.iter().for_each(|(key, encoding)| writer.key(key, *encoding));
    writer.finish()
}

proptest! {
    #[test]
    fn keys_come_back(keys in keys()) {
        let file = read(&*written(12, &keys)).unwrap();
        let expected: Vec<_> = keys.into_iter().map(|it| it.0).collect();
        prop_assert_eq!(file.keys, expected);
    }
}

#[test]
fn each_type_comes_back_in_each_of_its_encodings() {
    let texts = ["a", "7", "-300", "70000", "x\u{ff}", ""].map(|it| it.as_bytes().to_vec());
    let long = vec![b'l'; 300];
    let all: Vec<_> = texts.iter().cloned().chain([long]).collect();
    let values = [
        SampleValue::Text(b"text".to_vec()),
        SampleValue::List(all.clone()),
        SampleValue::Set(all.clone()),
        SampleValue::Set(vec![b"5".to_vec(), b"-70000".to_vec()]),
        SampleValue::Sorted(all.iter().cloned().zip([0.5, -1.0, 3.0]).collect()),
        SampleValue::Hash(all.iter().cloned().zip(all.clone()).collect()),
    ];
    for value in values {
        for encoding in ENCODINGS {
            let (database, expires) = (0, Some(1_700_000_000_123));
            let key = SampleKey { database, key: b"key".to_vec(), expires, value: value.clone() };
            let file = read(&*written(12, &[(key.clone(), encoding)])).unwrap();
            assert_eq!(file.keys, [key], "{encoding:?}");
        }
    }
}

#[test]
fn what_is_about_the_file_and_not_about_values_is_read() {
    let mut writer = RdbWriter::new(11);
    writer.aux("redis-ver", "7.2.4");
    writer.bytes.extend([254, 2, 251, 1, 0]); // Database 2; how many keys it has.
    writer.bytes.extend([244, 1, 1, 0]); // A slot of a cluster.
    writer.bytes.extend([248, 0x41, 0x00, 0, 1, b'a', 1, b'b']); // How long `a` was idle.
    writer.bytes.extend([249, 5, 0, 1, b'c', 1, b'd']); // How often `c` is used.
    writer.bytes.push(245);
    writer.string(b"#!lua name=mine\n");
    let file = read(&*writer.finish()).unwrap();
    assert_eq!(file.version, 11);
    assert_eq!(file.aux, [("redis-ver".to_owned(), "7.2.4".to_owned())]);
    assert_eq!(file.libraries, [b"#!lua name=mine\n"]);
    let key = |key: &[u8], text: &[u8]| SampleKey {
        database: 2,
        key: key.to_vec(),
        expires: None,
        value: SampleValue::Text(text.to_vec()),
    };
    assert_eq!(file.keys, [key(b"a", b"b"), key(b"c", b"d")]);
}

#[test]
fn each_version_is_read_and_no_other() {
    for version in VERSIONS {
        let mut bytes = written(version, &[]);
        if version < 5 {
            bytes.truncate(bytes.len() - 8);
        }
        assert_eq!(read(&*bytes).unwrap().version, version);
    }
    for version in [0, 13, 9999] {
        let error = read(&*written(version, &[])).unwrap_err();
        assert!(matches!(error.kind, RdbErrorKind::Version(it) if it == version));
        assert!(error.to_string().contains("versions 1 to 12 are"), "{error}");
    }
}

#[test]
fn checksums_are_compared_unless_they_are_off() {
    let mut bytes = written(9, &[]);
    let at = bytes.len() - 8;
    bytes[at..].fill(0);
    assert_eq!(read(&*bytes).unwrap().version, 9);
    bytes[at] = 1;
    let error = read(&*bytes).unwrap_err();
    assert_eq!(error.offset, at as u64);
    assert!(error.to_string().contains("its checksum is 0000000000000001"), "{error}");
}
