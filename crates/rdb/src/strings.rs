//! Lengths and strings, as they are in a file.

use std::io::Read;

use crate::error::{RdbError, RdbErrorKind};
use crate::input::RdbInput;
use crate::lzf;

/// Longest string that is read, as Redis has it by default: 512 MiB.
pub const STRING_BYTES_MAX: usize = 512 << 20;

/// What is where a length can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthOrEncoding {
    Length(u64),
    /// The string is not as it is, but encoded in this way.
    Encoding(u8),
}

const INT8: u8 = 0;
const INT16: u8 = 1;
const INT32: u8 = 2;
const LZF: u8 = 3;

impl<R: Read> RdbInput<R> {
    fn length_or_encoding(&mut self) -> Result<LengthOrEncoding, RdbError> {
        const FOUR_BYTES: u8 = 0x80;
        const EIGHT_BYTES: u8 = 0x81;
        let offset = self.offset();
        let first = self.byte()?;
        let low = u64::from(first & 0x3f);
        Ok(match (first >> 6, first) {
            (0, _) => LengthOrEncoding::Length(low),
            (1, _) => LengthOrEncoding::Length(low << 8 | u64::from(self.byte()?)),
            (3, _) => LengthOrEncoding::Encoding(first & 0x3f),
            (_, FOUR_BYTES) => {
                LengthOrEncoding::Length(u64::from(u32::from_be_bytes(self.array()?)))
            }
            (_, EIGHT_BYTES) => LengthOrEncoding::Length(u64::from_be_bytes(self.array()?)),
            _ => return Err(RdbErrorKind::Damaged("a length has no known form").at(offset)),
        })
    }

    /// A length, or a number in the same form.
    pub fn length(&mut self) -> Result<u64, RdbError> {
        let offset = self.offset();
        match self.length_or_encoding()? {
            LengthOrEncoding::Length(length) => Ok(length),
            LengthOrEncoding::Encoding(_) => {
                Err(RdbErrorKind::Damaged("an encoding is where a length should be").at(offset))
            }
        }
    }

    fn string_length(&self, length: u64) -> Result<usize, RdbError> {
        let within = usize::try_from(length).ok().filter(|it| *it <= STRING_BYTES_MAX);
        within.ok_or_else(|| self.error(RdbErrorKind::TooLong(length)))
    }

    /// A string, whichever its form.
    pub fn string(&mut self) -> Result<Vec<u8>, RdbError> {
        let offset = self.offset();
        let number = match self.length_or_encoding()? {
            LengthOrEncoding::Length(length) => {
                let length = self.string_length(length)?;
                return self.bytes(length);
            }
            LengthOrEncoding::Encoding(INT8) => i32::from(i8::from_le_bytes(self.array()?)),
            LengthOrEncoding::Encoding(INT16) => i32::from(i16::from_le_bytes(self.array()?)),
            LengthOrEncoding::Encoding(INT32) => i32::from_le_bytes(self.array()?),
            LengthOrEncoding::Encoding(LZF) => {
                let compressed = self.length()?;
                let compressed = self.string_length(compressed)?;
                let length = self.length()?;
                let length = self.string_length(length)?;
                let compressed = self.bytes(compressed)?;
                let wrong = RdbErrorKind::Damaged("a compressed string cannot be decompressed");
                return lzf::decompress(&compressed, length).ok_or_else(|| wrong.at(offset));
            }
            LengthOrEncoding::Encoding(_) => {
                return Err(RdbErrorKind::Damaged("a string has no known encoding").at(offset));
            }
        };
        Ok(number.to_string().into_bytes())
    }

    /// A score as text, which is how the first versions have it.
    pub fn text_score(&mut self) -> Result<f64, RdbError> {
        const NOT_A_NUMBER: u8 = 253;
        const INFINITE: u8 = 254;
        const MINUS_INFINITE: u8 = 255;
        let offset = self.offset();
        let found = match self.byte()? {
            NOT_A_NUMBER => None,
            INFINITE => Some(f64::INFINITY),
            MINUS_INFINITE => Some(f64::NEG_INFINITY),
            length => score_of(&self.bytes(usize::from(length))?),
        };
        found.ok_or_else(|| RdbErrorKind::Damaged(NO_SCORE).at(offset))
    }

    /// A score in eight bytes.
    pub fn binary_score(&mut self) -> Result<f64, RdbError> {
        let offset = self.offset();
        let score = f64::from_le_bytes(self.array()?);
        let wrong = RdbErrorKind::Damaged(NO_SCORE);
        if score.is_nan() { Err(wrong.at(offset)) } else { Ok(score) }
    }
}

/// What is said of a score that is no number.
pub(crate) const NO_SCORE: &str = "a score is not a number";

/// The score that a text is, if it is one.
pub(crate) fn score_of(text: &[u8]) -> Option<f64> {
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!score.is_nan()).then_some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(bytes: &[u8]) -> Result<Vec<u8>, RdbError> {
        let mut input = RdbInput::new(bytes);
        let string = input.string()?;
        assert!(input.is_at_end()?, "{bytes:?}");
        Ok(string)
    }

    #[test]
    fn lengths_have_four_forms() {
        for (bytes, length) in [
            (&[0x3f][..], 63),
            (&[0x40, 64], 64),
            (&[0x7f, 0xff], 16_383),
            (&[0x80, 0, 1, 0, 0], 65_536),
            (&[0x81, 0, 0, 0, 1, 0, 0, 0, 0], 1 << 32),
        ] {
            assert_eq!(RdbInput::new(bytes).length().unwrap(), length);
        }
        for bytes in [&[0x82, 0, 0, 0, 0][..], &[0xc0, 1], &[0x80, 0], &[]] {
            assert!(RdbInput::new(bytes).length().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn strings_are_bytes_numbers_or_compressed() {
        assert_eq!(string(b"\x03abc").unwrap(), b"abc");
        assert_eq!(string(b"\x00").unwrap(), b"");
        assert_eq!(string(&[0xc0, 0x85]).unwrap(), b"-123");
        assert_eq!(string(&[0xc1, 0x39, 0x30]).unwrap(), b"12345");
        assert_eq!(string(&[0xc2, 0, 0, 0, 0x80]).unwrap(), b"-2147483648");
        assert_eq!(string(&[0xc3, 4, 6, 0, b'a', 3 << 5, 0]).unwrap(), b"aaaaaa");
    }

    #[test]
    fn strings_that_make_no_sense_are_refused() {
        for (bytes, why) in [
            (&b"\x03ab"[..], "at byte 3: the file ends here"),
            (&[0xc4, 0], "at byte 0: the file is damaged: a string has no known encoding"),
            (&[0xc3, 2, 9, 0, b'a'], "at byte 0: the file is damaged: a compressed string"),
            (&[0x80, 0x20, 0, 0, 1], "over the limit of 536870912 bytes"),
            (&[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0], "over the limit"),
            (&[0xc3, 2, 0x80, 0xff, 0, 0, 0, 0, b'a'], "over the limit"),
        ] {
            let error = string(bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn scores_are_texts_or_doubles() {
        let text = |bytes: &[u8]| RdbInput::new(bytes).text_score();
        assert_eq!(text(b"\x031.5").unwrap(), 1.5);
        assert_eq!(text(b"\x05-2e10").unwrap(), -2e10);
        assert_eq!(text(&[254]).unwrap(), f64::INFINITY);
        assert_eq!(text(&[255]).unwrap(), f64::NEG_INFINITY);
        for bytes in [&[253][..], b"\x03abc", b"\x03nan", b"\x00", b"\x02\xff\xff"] {
            assert!(text(bytes).is_err(), "{bytes:?}");
        }
        let bytes = |score: f64| score.to_le_bytes();
        assert_eq!(RdbInput::new(&bytes(-0.5)[..]).binary_score().unwrap(), -0.5);
        assert!(RdbInput::new(&bytes(f64::NAN)[..]).binary_score().is_err());
    }
}
