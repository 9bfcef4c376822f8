//! Files that are damaged or have what is not read: an error with its offset, and never a panic.

use muesli_rdb::RdbErrorKind;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::reading::read;
use crate::whole::{keys, written};
use crate::writer::{RdbWriter, listpack, ziplist};

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300), version in 1..13_u32) {
        let _ = read(&*bytes);
        let begun = [format!("REDIS{version:04}").as_bytes(), &bytes].concat();
        if let Err(error) = read(&*begun) {
            prop_assert!(error.offset <= begun.len() as u64);
        }
    }

    #[test]
    fn any_bytes_in_a_value_are_read_or_refused(
        number in 0..30_u8,
        packed in vec(prop_oneof![0..4_u8, any::<u8>(), 250..=255_u8], 0..60),
        is_ziplist in any::<bool>(),
    ) {
        let length = (packed.len() as u32 + 4).to_le_bytes();
        let packed = if is_ziplist { [&length[..], &packed].concat() } else { packed };
        let mut writer = RdbWriter::new(12);
        writer.bytes.extend([number, 1, b'k']);
        writer.string(&packed);
        let _ = read(&*writer.finish());
    }

    #[test]
    fn a_file_that_was_cut_short_is_refused(keys in keys(), cut in any::<prop::sample::Index>()) {
        let bytes = written(12, &keys);
        let cut = cut.index(bytes.len());
        let error = read(&bytes[..cut]).unwrap_err();
        prop_assert!(matches!(error.kind, RdbErrorKind::Ended | RdbErrorKind::NotRdb));
        prop_assert!(error.offset <= cut as u64);
    }

    #[test]
    fn a_file_with_another_byte_is_refused(
        keys in keys(),
        at in any::<prop::sample::Index>(),
        bits in 1..=255_u8,
    ) {
        let mut bytes = written(12, &keys);
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        // A version below 5 has no checksum, and what comes after the end is seen.
        prop_assert!(read(&*bytes).is_err());
    }

    #[test]
    fn a_file_with_several_other_bytes_makes_no_panic(
        keys in keys(),
        others in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = written(3, &keys);
        for (at, byte) in others {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&*bytes);
    }
}

/// The error of a file of version 12 with these bytes.
fn error(bytes: &[u8]) -> String {
    let mut writer = RdbWriter::new(12);
    writer.bytes.extend_from_slice(bytes);
    read(&*writer.finish()).unwrap_err().to_string()
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let expected = "at byte 9, in the key \"k\": streams are not supported";
    for number in [15, 19, 21] {
        assert_eq!(error(&[number, 1, b'k']), expected);
    }
    for number in 22..=25 {
        assert!(error(&[number, 1, b'k']).contains("hashes whose fields expire"));
    }
    // `ReJSON-RL`, version 3.
    let module = [0x81, 0x45, 0xe2, 0x52, 0x38, 0xd3, 0x7e, 0x44, 0x03];
    let of_key = error(&[&[7, 1, b'k'][..], &module].concat());
    assert!(of_key.contains("in the key \"k\": values of the module `"), "{of_key}");
    let beside = error(&[&[247][..], &module].concat());
    assert!(beside.starts_with("at byte 9: data of the module `"), "{beside}");
    assert!(error(&[6, 1, b'k']).contains("modules of Redis 4.0 before its release"));
    assert!(error(&[246]).contains("functions of Redis 7.0 before its release"));
    assert!(error(&[8, 1, b'k']).contains("values of the unknown type 8"));
    assert!(error(&[243]).contains("values of the unknown type 243"));
}

#[test]
fn what_is_damaged_is_told_with_its_offset_and_key() {
    let expected = "at byte 12, in the key \"k\": the file is damaged: it does not have as many \
                    entries as it says, at byte 8 of the listpack that begins here";
    let mut members = listpack(&[b"1".to_vec()]);
    members[4] = 2;
    let set = [&[20, 1, b'k', members.len() as u8][..], &members].concat();
    assert_eq!(error(&set), expected);
    let odd = ziplist(&[b"field".to_vec()]);
    let hash = [&[13, 1, b'k', odd.len() as u8][..], &odd].concat();
    assert!(error(&hash).contains("a field has no value"));
    let scored = ziplist(&[b"member".to_vec(), b"nan".to_vec()]);
    let sorted = [&[12, 1, b'k', scored.len() as u8][..], &scored].concat();
    assert!(error(&sorted).contains("a score is not a number"));
    assert!(error(&[18, 1, b'k', 1, 3]).contains("a node of a list is of no known kind"));
    assert!(error(&[253, 1, 0, 0, 0, 254, 1]).contains("an expiry is not followed by a key"));
    assert!(error(&[253, 1, 0, 0, 0]).contains("an expiry is not followed by a key"));
    let after = [RdbWriter::new(9).finish(), b"*1\r\n".to_vec()].concat();
    let after = read(&*after).unwrap_err();
    assert!(after.to_string().contains("an append-only file with an RDB preamble"), "{after}");
    for none in [&b""[..], b"REDIS", b"REDIS00x1 and more", b"*2\r\n$6\r\nSELECT\r\n"] {
        assert!(matches!(read(none).unwrap_err().kind, RdbErrorKind::NotRdb));
    }
}

#[test]
fn a_list_that_says_it_is_longer_than_all_memory_takes_none() {
    let mut writer = RdbWriter::new(12);
    writer.bytes.extend([2, 1, b'k']);
    writer.length(u64::MAX);
    writer.string(b"member");
    let error = read(&*writer.finish()).unwrap_err();
    assert!(!error.to_string().is_empty());
}
