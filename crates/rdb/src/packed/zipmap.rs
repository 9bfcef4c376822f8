//! Zipmaps, hashes of Redis before 2.6: how many fields there are (1), the fields, each with its
//! length and that of its value before it and unused bytes after it, and a byte of ones.

use super::bytes::{Damage, PackedBytes};

const END: u8 = 0xff;
/// The length is in four further bytes; or, of fields, they are not counted.
const LONG: u8 = 0xfe;

const NO_VALUE: Damage = "a field has no value";

/// How many fields and values there are, if that is known.
pub(super) fn begin(bytes: &mut PackedBytes) -> Result<Option<u64>, Damage> {
    let count = bytes.byte()?;
    Ok((count < LONG).then_some(2 * u64::from(count)))
}

/// The next field, or its value; `None` at the end.
pub(super) fn next(
    bytes: &mut PackedBytes,
    is_value: &mut bool,
) -> Result<Option<Vec<u8>>, Damage> {
    let length = match bytes.byte()? {
        END if *is_value => return Err(NO_VALUE),
        END => return Ok(None),
        LONG => u32::from_le_bytes(bytes.array()?) as usize,
        short => usize::from(short),
    };
    let unused = if *is_value { usize::from(bytes.byte()?) } else { 0 };
    let entry = bytes.take(length)?.to_vec();
    bytes.take(unused)?;
    *is_value = !*is_value;
    Ok(Some(entry))
}

#[cfg(test)]
mod tests {
    use super::super::PackedEncoding::Zipmap;
    use super::super::tests::entries;

    #[test]
    fn fields_and_values_come_one_after_the_other() {
        let small = b"\x02\x01a\x02\x00xy\x01b\x01\x03z...\xff";
        assert_eq!(entries(Zipmap, small).unwrap(), ["a", "xy", "b", "z"]);
        let long = [&b"\xfe\x01a\xfe\x2c\x01\x00\x00\x00"[..], &[b'v'; 300], b"\xff"].concat();
        assert_eq!(entries(Zipmap, &long).unwrap(), ["a".to_owned(), "v".repeat(300)]);
        assert_eq!(entries(Zipmap, b"\x00\xff").unwrap(), [""; 0]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let error = |bytes: &[u8]| entries(Zipmap, bytes).unwrap_err();
        assert!(error(b"\x01\x01a\xff").contains("no value"));
        assert!(error(b"\x02\x01a\x01\x00x\xff").contains("as many entries"));
        assert!(error(b"\x01\x05a\xff").contains("ends within"));
        assert!(error(b"\x01\x01a\x01\x09x\xff").contains("ends within"));
        assert!(error(b"\x00\xff\xff").contains("after its end"));
        assert!(error(b"").contains("ends within"));
    }
}
