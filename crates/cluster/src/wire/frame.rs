//! Frames: how a stream of bytes is cut into pieces that can be trusted to be whole.
//!
//! A frame is a header of 16 bytes and a body:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0 to 2 | `Mue` |
//! | 3 | the version of the format, [`VERSION`] |
//! | 4 | the [`FrameKind`] |
//! | 5 to 7 | zero |
//! | 8 to 11 | the length of the body, little-endian |
//! | 12 to 15 | CRC-32 of bytes 0 to 11 and the body |
//!
//! [`next`] reads the first frame of a buffer and is a pure function of it, so that it can be
//! called again when more has come; it copies nothing. A body longer than the receiver's limit is
//! refused by its header alone, before any room is made for it.

use thiserror::Error;

use crate::formats;

/// The version of frames and of what is in them.
pub const VERSION: u8 = formats::WIRE;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;

const MAGIC: [u8; 3] = *b"Mue";

/// What a frame's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The first frame of whoever dialled: who it is.
    Hello,
    /// The answer of whoever was dialled: who that is, and the map of the cluster.
    Welcome,
    /// Why the connection is closed now.
    Refusal,
    /// Messages of the protocol, one after the other; between a client and a server, behind what
    /// their sender proves for all of them ([`Proof`](muesli_core::issuance::Proof)).
    Messages,
    /// The sender is alive, and says how much it has taken and kept: an [`Alive`](super::progress).
    Alive,
    /// A message between drivers.
    Control,
    /// A server asks who dialled to prove the cluster's secret.
    Challenge,
    /// The answer to that.
    Proof,
}

impl FrameKind {
    fn number(self) -> u8 {
        match self {
            FrameKind::Hello => 1,
            FrameKind::Welcome => 2,
            FrameKind::Refusal => 3,
            FrameKind::Messages => 4,
            FrameKind::Alive => 5,
            FrameKind::Control => 6,
            FrameKind::Challenge => 7,
            FrameKind::Proof => 8,
        }
    }

    fn from_number(number: u8) -> Option<FrameKind> {
        Some(match number {
            1 => FrameKind::Hello,
            2 => FrameKind::Welcome,
            3 => FrameKind::Refusal,
            4 => FrameKind::Messages,
            5 => FrameKind::Alive,
            6 => FrameKind::Control,
            7 => FrameKind::Challenge,
            8 => FrameKind::Proof,
            _ => return None,
        })
    }
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFrame<'a> {
    /// What it is.
    pub kind: FrameKind,
    /// Its body.
    pub body: &'a [u8],
}

impl WireFrame<'_> {
    /// How many bytes of the stream it takes.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }
}

/// Why bytes are no frame. The stream is of no use from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// It does not begin as a frame does.
    #[error("this is not the Muesli protocol")]
    Foreign,
    /// Another version.
    #[error(
        "version {0} of the protocol is not spoken here, version {VERSION} is: run one version of \
         the program everywhere (docs/running/compatibility.md)"
    )]
    Version(u8),
    /// A kind that there is not.
    #[error("there is no frame of kind {0}")]
    Kind(u8),
    /// A body over the limit.
    #[error("a frame of {bytes} bytes is over the limit of {limit} bytes")]
    TooLong {
        /// As its header says.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The checksum is another one.
    #[error("a frame arrived damaged: its checksum does not match")]
    Damaged,
}

/// Reads the first frame of `buffer`, whose body may have `most` bytes. `None`: more must come.
///
/// # Errors
/// The buffer does not begin with a frame. Any bytes may be given.
pub fn next(buffer: &[u8], most: usize) -> Result<Option<WireFrame<'_>>, FrameError> {
    let known = buffer.len().min(MAGIC.len());
    if buffer[..known] != MAGIC[..known] {
        return Err(FrameError::Foreign);
    }
    if let Some(&version) = buffer.get(3)
        && version != VERSION
    {
        return Err(FrameError::Version(version));
    }
    let Some((header, rest)) = buffer.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let kind = FrameKind::from_number(header[4]).ok_or(FrameError::Kind(header[4]))?;
    if header[5..8] != [0; 3] {
        return Err(FrameError::Damaged);
    }
    let bytes = word(header, 8) as usize;
    if bytes > most {
        return Err(FrameError::TooLong { bytes, limit: most });
    }
    let Some(body) = rest.get(..bytes) else { return Ok(None) };
    if checksum(&header[..12], body) != word(header, 12) {
        return Err(FrameError::Damaged);
    }
    Ok(Some(WireFrame { kind, body }))
}

/// How many bytes the frame has in all that `buffer` begins with, if its header is there.
pub fn announced(buffer: &[u8]) -> Option<usize> {
    let header = buffer.first_chunk::<HEADER_BYTES>()?;
    Some(HEADER_BYTES + word(header, 8) as usize)
}

/// Begins a frame at the end of `out`; its body is appended next. Answers where it began, for
/// [`end`].
pub fn begin(kind: FrameKind, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind.number(), 0, 0, 0]);
    out.extend_from_slice(&[0; 8]);
    start
}

/// Ends the frame that began at `start`: its body is what was appended since.
///
/// # Panics
/// If the body is longer than four bytes can say; limits are far below.
pub fn end(start: usize, out: &mut [u8]) {
    let (header, body) = out[start..].split_at_mut(HEADER_BYTES);
    let bytes = u32::try_from(body.len()).expect("limits are far below");
    header[8..12].copy_from_slice(&bytes.to_le_bytes());
    let sum = checksum(&header[..12], body);
    header[12..].copy_from_slice(&sum.to_le_bytes());
}

/// A frame of its own with this body.
pub fn framed(kind: FrameKind, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let start = begin(kind, &mut out);
    out.extend_from_slice(body);
    end(start, &mut out);
    out
}

fn word(header: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"))
}

fn checksum(header: &[u8], body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(header);
    sum.update(body);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 1 << 10;

    fn frame(kind: FrameKind, body: &[u8]) -> Vec<u8> {
        let mut out = vec![9; 3];
        let start = begin(kind, &mut out);
        out.extend_from_slice(body);
        end(start, &mut out);
        out.split_off(3)
    }

    fn kind() -> impl Strategy<Value = FrameKind> {
        (1u8..9).prop_map(|number| FrameKind::from_number(number).unwrap())
    }

    fn body() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..50)
    }

    proptest! {
        #[test]
        fn frames_come_back_whole_however_they_are_cut(
            parts in prop::collection::vec((kind(), body()), 1..5),
            cut: prop::sample::Index,
        ) {
            let frames = parts.iter().flat_map(|(kind, body)| frame(*kind, body));
            let stream: Vec<u8> = frames.collect();
            let cut = cut.index(stream.len() + 1);
            let (mut at, mut read) = (0, Vec::new());
            for arrived in [cut, stream.len()] {
                while let Some(found) = next(&stream[at..arrived], MOST).unwrap() {
                    at += found.bytes();
                    read.push((found.kind, found.body.to_vec()));
                }
            }
            prop_assert_eq!(read, parts);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = next(&bytes, MOST);
        }

        #[test]
        fn a_flipped_bit_is_noticed(
            body in prop::collection::vec(any::<u8>(), 0..50), bit: prop::sample::Index,
        ) {
            let mut bytes = frame(FrameKind::Messages, &body);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            // A longer length waits for bytes that never come; all else is an error at once.
            prop_assert!(!matches!(next(&bytes, MOST), Ok(Some(_))));
        }
    }

    #[test]
    fn what_is_wrong_is_said_as_early_as_it_is_known() {
        assert_eq!(next(b"GET / HTTP/1.1", MOST), Err(FrameError::Foreign));
        assert_eq!(next(b"Mx", MOST), Err(FrameError::Foreign));
        assert_eq!(next(b"Mue\x07", MOST), Err(FrameError::Version(7)));
        let mut long = frame(FrameKind::Messages, &[]);
        long[8..12].copy_from_slice(&(MOST as u32 + 1).to_le_bytes());
        let error = FrameError::TooLong { bytes: MOST + 1, limit: MOST };
        assert_eq!(next(&long, MOST), Err(error));
        long[4] = 0;
        assert_eq!(next(&long, MOST), Err(FrameError::Kind(0)));
    }
}
