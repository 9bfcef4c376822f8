//! Listpacks: the number of bytes (4), the number of entries (2), the entries, and a byte of ones.
//! Each entry ends with its own length, in groups of seven bits.

use super::bytes::{Damage, LENGTH, PackedBytes, text};

const END: u8 = 0xff;
/// So many entries or more are not counted.
const UNCOUNTED: u16 = u16::MAX;

const OWN_LENGTH: Damage = "an entry does not end with its own length";
const FORM: Damage = "an entry has no known form";

/// How many entries there are, if that is known.
pub(super) fn begin(bytes: &mut PackedBytes) -> Result<Option<u64>, Damage> {
    let length = u32::from_le_bytes(bytes.array()?);
    if length as usize != bytes.len() {
        return Err(LENGTH);
    }
    let count = u16::from_le_bytes(bytes.array()?);
    Ok((count != UNCOUNTED).then_some(u64::from(count)))
}

/// The next entry; `None` at the end.
pub(super) fn next(bytes: &mut PackedBytes) -> Result<Option<Vec<u8>>, Damage> {
    let begin = bytes.at();
    let first = bytes.byte()?;
    if first == END {
        return Ok(None);
    }
    let entry = entry(bytes, first)?;
    let length = bytes.at() - begin;
    for group in (0..groups(length)).rev() {
        // The high bits come first, and all bytes but the first one have a one above.
        let is_first = group + 1 == groups(length);
        let expected = (length >> (7 * group) & 0x7f) as u8 | if is_first { 0 } else { 0x80 };
        if bytes.byte()? != expected {
            return Err(OWN_LENGTH);
        }
    }
    Ok(Some(entry))
}

/// How many bytes the length of an entry takes: Redis's own bounds, of which two are by one less
/// than seven bits have.
fn groups(length: usize) -> u32 {
    match length {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

fn entry(bytes: &mut PackedBytes, first: u8) -> Result<Vec<u8>, Damage> {
    let low = |bits: u8| usize::from(first & bits);
    let length = match first {
        0..=0x7f => return Ok(text(i64::from(first))),
        0x80..=0xbf => low(0x3f),
        0xc0..=0xdf => {
            let number = (low(0x1f) << 8 | usize::from(bytes.byte()?)) as i64;
            let is_negative = number >= 1 << 12;
            return Ok(text(if is_negative { number - (1 << 13) } else { number }));
        }
        0xe0..=0xef => low(0x0f) << 8 | usize::from(bytes.byte()?),
        0xf0 => u32::from_le_bytes(bytes.array()?) as usize,
        0xf1 => return Ok(text(i64::from(i16::from_le_bytes(bytes.array()?)))),
        0xf2 => return Ok(text(bytes.three_bytes()?)),
        0xf3 => return Ok(text(i64::from(i32::from_le_bytes(bytes.array()?)))),
        0xf4 => return Ok(text(i64::from_le_bytes(bytes.array()?))),
        _ => return Err(FORM),
    };
    bytes.take(length).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::super::PackedEncoding::Listpack;
    use super::super::tests::entries;

    fn listpack(entries: &[&[u8]], count: u16) -> Vec<u8> {
        let body = entries.concat();
        let length = (body.len() + 7) as u32;
        [&length.to_le_bytes()[..], &count.to_le_bytes(), &body, &[0xff]].concat()
    }

    #[test]
    fn entries_have_nine_forms() {
        let (middle, long) = ([b'm'; 300], [b'l'; 20_000]);
        let given = [
            &[127, 1][..],
            b"\x83abc\x04",
            &[0xdf, 0xff, 2],
            &[0xcf, 0xff, 2],
            &[&[0xe1, 0x2c][..], &middle, &[2, 0x80 | 46]].concat(),
            &[&[0xf0, 0x20, 0x4e, 0, 0][..], &long, &[1, 0x80 | 28, 0x80 | 37]].concat(),
            &[0xf1, 0x00, 0x80, 3],
            &[0xf2, 0x00, 0x00, 0x80, 4],
            &[0xf3, 0xff, 0xff, 0xff, 0x7f, 5],
            &[0xf4, 0, 0, 0, 0, 0, 0, 0, 0x80, 9],
        ];
        let expected = [
            "127".to_owned(),
            "abc".to_owned(),
            "-1".to_owned(),
            "4095".to_owned(),
            "m".repeat(300),
            "l".repeat(20_000),
            i16::MIN.to_string(),
            "-8388608".to_owned(),
            i32::MAX.to_string(),
            i64::MIN.to_string(),
        ];
        assert_eq!(entries(Listpack, &listpack(&given, 10)).unwrap(), expected);
        assert_eq!(entries(Listpack, &listpack(&given, u16::MAX)).unwrap(), expected);
        assert_eq!(entries(Listpack, &listpack(&[], 0)).unwrap(), [""; 0]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let error = |bytes: &[u8]| entries(Listpack, bytes).unwrap_err();
        assert!(error(&listpack(&[&[1, 1]], 2)).contains("as many entries"));
        assert!(error(&listpack(&[&[1, 1]], 0)).contains("as many entries"));
        assert!(error(&listpack(&[&[1, 2]], 1)).contains("own length, at byte 6 of the listpack"));
        assert!(error(&listpack(&[&[0xf5, 1]], 1)).contains("no known form"));
        assert!(error(&listpack(&[b"\x89abc\x04"], 1)).contains("ends within an entry"));
        assert!(error(&[8, 0, 0, 0, 0, 0, 0xff]).contains("as long as it says"));
        assert!(error(&listpack(&[&[0xff]], 0)).contains("after its end"));
        assert!(error(&[]).contains("ends within"));
    }
}
