//! Frames: how records stand in a file.
//!
//! ```text
//! checksum u32 | previous u32 | length u32 | kind u8 | sequence u64 | payload
//! ```
//!
//! All numbers are little-endian. The checksum (CRC-32C) covers everything after itself and
//! begins with a salt of the file's own; `previous` is the checksum of the frame before, in this
//! file or the one before it. Kind 0 is no frame: a file may end in zeros.

use crate::sequence::Sequence;

/// Bytes of a frame before its payload.
pub const HEADER_BYTES: usize = 21;
/// The longest payload: more than the largest transaction takes.
pub const PAYLOAD_MAX: usize = 128 << 20;
/// Kinds from here on are the log's own; records have kinds from 1 to this, less one.
pub const OWN_KINDS: u8 = 240;
/// A mark: its payload is the sequence number up to which the log was stable when it was written,
/// and its own sequence number is that of the next record.
pub const MARK: u8 = 255;
/// The end of a checkpoint.
pub const END: u8 = 254;
/// A piece of a checkpoint.
pub const PIECE: u8 = 253;
/// Bytes of a mark.
pub const MARK_BYTES: usize = HEADER_BYTES + 8;

/// A frame that was read, and is what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The checksum of the frame before.
    pub previous: u32,
    /// What it is.
    pub kind: u8,
    /// Its number.
    pub sequence: Sequence,
    /// What it holds.
    pub payload: &'a [u8],
    /// Its own checksum.
    pub checksum: u32,
}

impl Frame<'_> {
    /// Bytes in the file.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }

    /// What a mark claims to be stable; `None` for other frames.
    pub fn claim(&self) -> Option<Sequence> {
        let claimed = self.payload.try_into().ok().map(u64::from_le_bytes);
        claimed.filter(|_| self.kind == MARK).map(Sequence)
    }
}

/// Appends a frame without checksums, to be [sealed](seal) later. `payload` writes the payload.
pub(crate) fn open(
    out: &mut Vec<u8>,
    kind: u8,
    sequence: Sequence,
    payload: impl FnOnce(&mut Vec<u8>),
) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 12]);
    out.push(kind);
    out.extend_from_slice(&sequence.0.to_le_bytes());
    payload(out);
    let length = out.len() - start - HEADER_BYTES;
    // Longer ones are refused by whoever appends; they are taken back before they are sealed.
    let length_bytes = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    out[start + 8..start + 12].copy_from_slice(&length_bytes);
    length
}

/// Puts the checksums into all frames of `bytes`, which were made by [`open`]. Returns the last
/// checksum.
pub(crate) fn seal(bytes: &mut [u8], salt: u32, mut previous: u32) -> u32 {
    let mut rest = bytes;
    while rest.len() >= HEADER_BYTES {
        let length = HEADER_BYTES + word(&rest[8..]) as usize;
        let (frame, others) = rest.split_at_mut(length);
        frame[4..8].copy_from_slice(&previous.to_le_bytes());
        previous = crc32c::crc32c_append(salt, &frame[4..]);
        frame[..4].copy_from_slice(&previous.to_le_bytes());
        rest = others;
    }
    previous
}

/// The frame at the head of `bytes`, if there is one and its checksum is right.
pub fn read(bytes: &[u8], salt: u32) -> Option<Frame<'_>> {
    let header = bytes.get(..HEADER_BYTES)?;
    let (kind, length) = (header[12], word(&header[8..]) as usize);
    if kind == 0 || length > PAYLOAD_MAX {
        return None;
    }
    let frame = bytes.get(..HEADER_BYTES + length)?;
    let checksum = crc32c::crc32c_append(salt, &frame[4..]);
    if checksum != word(header) {
        return None;
    }
    Some(Frame {
        previous: word(&header[4..]),
        kind,
        sequence: sequence_at(header),
        payload: &frame[HEADER_BYTES..],
        checksum,
    })
}

/// The sequence number that a header claims, whatever it is worth.
pub(crate) fn sequence_at(header: &[u8]) -> Sequence {
    Sequence(u64::from_le_bytes(header[13..21].try_into().expect("eight bytes")))
}

/// A little-endian number at the head of `bytes`.
pub(crate) fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_come_back_chained(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
            salt: u32,
        ) {
            let mut bytes = Vec::new();
            for (at, payload) in payloads.iter().enumerate() {
                open(&mut bytes, 7, Sequence(at as u64), |out| out.extend_from_slice(payload));
            }
            let last = seal(&mut bytes, salt, 99);
            let (mut rest, mut previous) = (&bytes[..], 99);
            for (at, payload) in payloads.iter().enumerate() {
                let frame = read(rest, salt).expect("a sealed frame");
                prop_assert_eq!((frame.previous, frame.sequence.0), (previous, at as u64));
                prop_assert_eq!(frame.payload, &payload[..]);
                previous = frame.checksum;
                rest = &rest[frame.bytes()..];
            }
            prop_assert!(rest.is_empty() && previous == last);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, salt: u32) {
            prop_assert!(read(&bytes, salt).is_none_or(|frame| frame.bytes() <= bytes.len()));
        }

        #[test]
        fn a_flipped_bit_is_noticed(
            payload in prop::collection::vec(any::<u8>(), 0..60), salt: u32, at: usize,
        ) {
            let mut bytes = Vec::new();
            open(&mut bytes, 7, Sequence(5), |out| out.extend_from_slice(&payload));
            seal(&mut bytes, salt, 1);
            let bit = at % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(read(&bytes, salt), None);
        }
    }
}
