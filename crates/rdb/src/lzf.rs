//! LZF, by which Redis compresses strings: bytes as they are, and copies of bytes before.

/// Bytes that were compressed, of which there are so many; `None` where they make no sense.
///
/// A byte below 32 says that so many bytes and one more are as they are. Others are of a copy: of
/// three bits its length less two (7: a byte follows that is added), then the low bits and a
/// byte of its distance less one.
pub(crate) fn decompress(input: &[u8], length: usize) -> Option<Vec<u8>> {
    // A block of three bytes is of 264 at most: no more than that is taken for any input.
    const EACH_MAX: usize = 264;
    let mut output = Vec::with_capacity(length.min(input.len().saturating_mul(EACH_MAX)));
    let mut rest = input;
    while let Some((&control, after)) = rest.split_first() {
        let high = usize::from(control >> 5);
        if high == 0 {
            let (literal, after) = after.split_at_checked(usize::from(control) + 1)?;
            output.extend_from_slice(literal);
            rest = after;
        } else {
            let (more, after) = match high {
                7 => after.split_first().map(|(more, after)| (usize::from(*more), after))?,
                _ => (0, after),
            };
            let (low, after) = after.split_first()?;
            let distance = (usize::from(control & 31) << 8 | usize::from(*low)) + 1;
            let begin = output.len().checked_sub(distance)?;
            copy(&mut output, begin, high + more + 2);
            rest = after;
        }
        if output.len() > length {
            return None;
        }
    }
    (output.len() == length).then_some(output)
}

/// Copies so many bytes from there on to the end: also such as are copied by this.
fn copy(output: &mut Vec<u8>, begin: usize, count: usize) {
    let end = output.len();
    if begin + count <= end {
        output.extend_from_within(begin..begin + count);
        return;
    }
    for at in begin..begin + count {
        output.push(output[at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_read() {
        assert_eq!(decompress(&[2, b'a', b'b', b'c'], 3).unwrap(), b"abc");
        // Three bytes of distance 3; then nine more of distance 1, which overlap.
        let input = [2, b'a', b'b', b'c', 1 << 5, 2, 7 << 5, 0, 0];
        assert_eq!(decompress(&input, 15).unwrap(), b"abcabcccccccccc");
        assert_eq!(decompress(&[], 0).unwrap(), b"");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (input, length) in [
            (&[2, b'a', b'b'][..], 3),  // A literal that ends too early.
            (&[0, b'a', 1 << 5], 4),    // A copy without its distance.
            (&[0, b'a', 7 << 5, 1], 4), // And without its length.
            (&[0, b'a', 1 << 5, 1], 4), // From before the first byte.
            (&[0, b'a', 1 << 5, 0], 3), // Longer than it should be.
            (&[0, b'a', 1 << 5, 0], 5), // And shorter.
            (&[], 1),
        ] {
            assert_eq!(decompress(input, length), None, "{input:?}");
        }
    }
}
