//! Ziplists: the number of bytes (4), where the last entry is (4), the number of entries (2), the
//! entries, and a byte of ones. Each entry begins with the length of the one before.

use super::bytes::{Damage, ENDED, LENGTH, PackedBytes, text};

const END: u8 = 0xff;
/// The length of the entry before is in four further bytes.
const LONG_BEFORE: u8 = 0xfe;
/// So many entries or more are not counted.
const UNCOUNTED: u16 = u16::MAX;

const BEFORE: Damage = "an entry does not say how long the one before it is";
const FORM: Damage = "an entry has no known form";

/// How many entries there are, if that is known.
pub(super) fn begin(bytes: &mut PackedBytes) -> Result<Option<u64>, Damage> {
    let length = u32::from_le_bytes(bytes.array()?);
    if length as usize != bytes.len() {
        return Err(LENGTH);
    }
    bytes.take(4)?;
    let count = u16::from_le_bytes(bytes.array()?);
    Ok((count != UNCOUNTED).then_some(u64::from(count)))
}

/// The next entry, after one of this length; `None` at the end.
pub(super) fn next(bytes: &mut PackedBytes, before: &mut usize) -> Result<Option<Vec<u8>>, Damage> {
    let begin = bytes.at();
    let stored = match bytes.byte()? {
        END => return Ok(None),
        LONG_BEFORE => u32::from_le_bytes(bytes.array()?) as usize,
        short => usize::from(short),
    };
    if stored != *before {
        return Err(BEFORE);
    }
    let entry = entry(bytes)?;
    *before = bytes.at() - begin;
    Ok(Some(entry))
}

fn entry(bytes: &mut PackedBytes) -> Result<Vec<u8>, Damage> {
    let first = bytes.byte()?;
    let low = usize::from(first & 0x3f);
    let length = match first >> 6 {
        0 => low,
        1 => low << 8 | usize::from(bytes.byte()?),
        2 if low == 0 => u32::from_be_bytes(bytes.array()?) as usize,
        2 => return Err(FORM),
        _ => return number(bytes, first).map(text),
    };
    bytes.take(length).map(<[u8]>::to_vec).map_err(|_| ENDED)
}

fn number(bytes: &mut PackedBytes, first: u8) -> Result<i64, Damage> {
    Ok(match first {
        0xc0 => i64::from(i16::from_le_bytes(bytes.array()?)),
        0xd0 => i64::from(i32::from_le_bytes(bytes.array()?)),
        0xe0 => i64::from_le_bytes(bytes.array()?),
        0xf0 => bytes.three_bytes()?,
        0xfe => i64::from(i8::from_le_bytes(bytes.array()?)),
        0xf1..=0xfd => i64::from(first & 0x0f) - 1,
        _ => return Err(FORM),
    })
}

#[cfg(test)]
mod tests {
    use super::super::PackedEncoding::Ziplist;
    use super::super::tests::entries;

    /// A ziplist of entries that are given without the length of the one before.
    fn ziplist(given: &[&[u8]], count: u16) -> Vec<u8> {
        let (mut body, mut before) = (Vec::new(), 0);
        for entry in given {
            let begin = body.len();
            match u8::try_from(before).ok().filter(|it| *it < 0xfe) {
                Some(short) => body.push(short),
                None => {
                    body.push(0xfe);
                    body.extend((before as u32).to_le_bytes());
                }
            }
            body.extend_from_slice(entry);
            before = body.len() - begin;
        }
        let length = (body.len() + 11) as u32;
        let head = [&length.to_le_bytes()[..], &[0; 4], &count.to_le_bytes()].concat();
        [&head[..], &body, &[0xff]].concat()
    }

    #[test]
    fn entries_have_nine_forms() {
        let (middle, long) = ([b'm'; 300], [b'l'; 20_000]);
        let given = [
            &b"\x03abc"[..],
            &[&[0x41, 0x2c][..], &middle].concat(),
            &[&[0x80, 0, 0, 0x4e, 0x20][..], &long].concat(),
            &[0xc0, 0x00, 0x80],
            &[0xd0, 0xff, 0xff, 0xff, 0x7f],
            &[0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80],
            &[0xf0, 0x00, 0x00, 0x80],
            &[0xfe, 0x85],
            &[0xf1],
            &[0xfd],
        ];
        let expected = [
            "abc".to_owned(),
            "m".repeat(300),
            "l".repeat(20_000),
            i16::MIN.to_string(),
            i32::MAX.to_string(),
            i64::MIN.to_string(),
            "-8388608".to_owned(),
            "-123".to_owned(),
            "0".to_owned(),
            "12".to_owned(),
        ];
        assert_eq!(entries(Ziplist, &ziplist(&given, 10)).unwrap(), expected);
        assert_eq!(entries(Ziplist, &ziplist(&given, u16::MAX)).unwrap(), expected);
        assert_eq!(entries(Ziplist, &ziplist(&[], 0)).unwrap(), [""; 0]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = ziplist(&[b"\x03abc", &[0xf1]], 2);
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            entries(Ziplist, &bytes).unwrap_err()
        };
        assert!(changed(0, 9).contains("it is not as long as it says, at byte 4 of the ziplist"));
        assert!(changed(8, 1).contains("as many entries"));
        assert!(changed(8, 3).contains("as many entries"));
        assert!(changed(11, 9).contains("ends within an entry, at byte 10"));
        assert!(changed(11, 0x81).contains("no known form"));
        assert!(changed(15, 7).contains("how long the one before"));
        assert!(changed(16, 0xc8).contains("no known form"));
        assert!(changed(15, 0xff).contains("as many entries"));
        assert!(entries(Ziplist, &[]).is_err());
        let mut after = ziplist(&[&[0xf1]], 1);
        after.push(0xff);
        after[0] += 1;
        assert!(entries(Ziplist, &after).unwrap_err().contains("after its end"));
    }
}
