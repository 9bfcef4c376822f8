//! Segments: the files of a log, by number, each with a header that says where it stands.

use crate::error::LogError;
use crate::format::frame::word;
use crate::sequence::Sequence;

/// Bytes of a segment's header.
pub const HEADER_BYTES: usize = 48;
const MAGIC: &[u8; 8] = b"MUESLOG\n";
/// The version of everything that this crate writes.
pub const VERSION: u32 = 1;

/// The head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whose log it is.
    pub owner: u64,
    /// Which segment it is, from 1; numbers are never used twice.
    pub number: u64,
    /// The number of its first record.
    pub first: Sequence,
    /// The checksum of the last frame before it.
    pub previous: u32,
}

/// Why a header cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// It was never written whole.
    Torn,
    /// It is whole, and of something else.
    Foreign(String),
}

impl Header {
    /// Its bytes: magic, version, owner, number, first, previous, checksum.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.owner.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.number.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.previous.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..44]);
        bytes[44..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header at the head of a file.
    ///
    /// # Errors
    /// It is not whole, or of another version.
    pub fn read(bytes: &[u8]) -> Result<Header, BadHeader> {
        let bytes = bytes.get(..HEADER_BYTES).ok_or(BadHeader::Torn)?;
        if crc32c::crc32c(&bytes[..44]) != word(&bytes[44..]) || &bytes[..8] != MAGIC {
            return Err(BadHeader::Torn);
        }
        let version = word(&bytes[8..]);
        if version != VERSION {
            let what = format!(
                "it is of version {version} of the log's format, and this program reads version \
                 {VERSION}. Nothing is damaged: keep the directory, and open it with a program \
                 that reads version {version}"
            );
            return Err(BadHeader::Foreign(what));
        }
        let number = |at: usize| {
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes of a header"))
        };
        Ok(Header {
            owner: number(12),
            number: number(20),
            first: Sequence(number(28)),
            previous: word(&bytes[36..]),
        })
    }

    /// The salt of the segment's frames: no other segment has it, but by a chance of 1 in 2^32.
    pub fn salt(self) -> u32 {
        crc32c::crc32c_append(0x6d75_6573, &self.to_bytes())
    }

    /// Whether it belongs to `owner`, who reads `file`.
    ///
    /// # Errors
    /// It does not.
    pub fn check_owner(self, owner: u64, file: &str) -> Result<(), LogError> {
        if self.owner == owner {
            return Ok(());
        }
        let what = format!("its owner is {:#x}, and this is {owner:#x}", self.owner);
        Err(LogError::Foreign { file: file.to_owned(), what })
    }
}

/// The name of segment `number`.
pub fn name(number: u64) -> String {
    format!("segment-{number:020}")
}

/// The number in a segment's name; `None` for other files.
pub fn number_in(name: &str) -> Option<u64> {
    digits_after(name, "segment-")
}

/// The number that follows `prefix` in a name, with all its zeros.
pub(crate) fn digits_after(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_names_come_back() {
        let header = Header { owner: 7, number: 12, first: Sequence(900), previous: 0xdead };
        assert_eq!(Header::read(&header.to_bytes()), Ok(header));
        assert_eq!(number_in(&name(u64::MAX)), Some(u64::MAX));
        assert_eq!(number_in("segment-1"), None);
        assert_eq!(number_in("checkpoint-00000000000000000001"), None);
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let header = Header { owner: 7, number: 12, first: Sequence(900), previous: 0xdead };
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = header.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::read(&bytes), Err(BadHeader::Torn), "bit {bit}");
        }
    }
}
