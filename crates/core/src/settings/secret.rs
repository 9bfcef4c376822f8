//! The cluster's secret: what members share and strangers do not know.
//!
//! The secret itself is never sent. What it is good for is a [`Tag`]: 16 bytes of HMAC-SHA-256 over
//! a purpose and some bytes. Who can make the tag knows the secret; a tag made for one purpose is
//! of no use for another. Connections are proven with it (a challenge is answered by its tag), and
//! values that a client carries between servers can be marked as issued by a member.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use crate::wire::{Reader, Wire, WireError};

/// Fewest bytes of a secret.
pub const SECRET_BYTES_MIN: usize = 16;
/// Most bytes of a secret.
pub const SECRET_BYTES_MAX: usize = 4096;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// A secret that all members of a cluster share. It is never shown, also not by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<[u8]>);

/// Proof that whoever made it knew the secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub [u8; TAG_BYTES]);

/// A secret that is too short or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a secret of {bytes} bytes: a cluster's secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} \
     bytes, such as the output of `openssl rand -hex 32`"
)]
pub struct UnfitSecret {
    /// How long it is.
    pub bytes: usize,
}

impl Secret {
    /// The secret of these bytes.
    ///
    /// # Errors
    /// There are too few of them, or too many.
    pub fn new(bytes: &[u8]) -> Result<Secret, UnfitSecret> {
        match bytes.len() {
            SECRET_BYTES_MIN..=SECRET_BYTES_MAX => Ok(Secret(bytes.into())),
            bytes => Err(UnfitSecret { bytes }),
        }
    }

    /// The tag of `bytes` for a purpose.
    ///
    /// # Panics
    /// If the purpose is longer than 255 bytes; purposes are constants.
    pub fn tag(&self, purpose: &str, bytes: &[u8]) -> Tag {
        let whole = self.mac(purpose, bytes).finalize().into_bytes();
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&whole[..TAG_BYTES]);
        Tag(tag)
    }

    /// Whether `tag` is that of `bytes` for this purpose. Takes as long whatever the answer is.
    ///
    /// # Panics
    /// As [`tag`](Self::tag).
    pub fn verify(&self, purpose: &str, bytes: &[u8], tag: &Tag) -> bool {
        self.mac(purpose, bytes).verify_truncated_left(&tag.0).is_ok()
    }

    fn mac(&self, purpose: &str, bytes: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut mac = mac.expect("HMAC takes keys of any length");
        // The length before the purpose: no purpose with bytes is another one with others.
        let length = u8::try_from(purpose.len()).expect("purposes are short constants");
        mac.update(&[length]);
        mac.update(purpose.as_bytes());
        mac.update(bytes);
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

impl Wire for Tag {
    const LEAST_BYTES: usize = TAG_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Tag, WireError> {
        input.array().map(Tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> Secret {
        Secret::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn a_tag_holds_for_its_secret_purpose_and_bytes_alone() {
        let tag = secret(1).tag("a", b"bytes");
        assert!(secret(1).verify("a", b"bytes", &tag));
        assert!(!secret(2).verify("a", b"bytes", &tag));
        assert!(!secret(1).verify("b", b"bytes", &tag));
        assert!(!secret(1).verify("a", b"bytez", &tag));
        assert!(!secret(1).verify("ab", b"ytes", &secret(1).tag("a", b"bytes")));
        for bit in 0..TAG_BYTES * 8 {
            let mut bent = tag;
            bent.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!secret(1).verify("a", b"bytes", &bent), "bit {bit}");
        }
        let mut bytes = Vec::new();
        tag.encode(&mut bytes);
        assert_eq!(Tag::decode_all(&bytes), Ok(tag));
    }

    #[test]
    fn tags_are_hmac_sha_256() {
        // printf '\1abytes' | openssl dgst -sha256 -mac HMAC -macopt hexkey:01…01 (32 bytes).
        let tag = secret(1).tag("a", b"bytes");
        assert_eq!(tag.0, EXPECTED);
    }

    const EXPECTED: [u8; TAG_BYTES] = [
        0xd1, 0x14, 0x26, 0xcd, 0xd7, 0x3d, 0xd9, 0x5f, 0xf6, 0xa3, 0x97, 0xa5, 0x62, 0x17, 0x7f,
        0x10,
    ];

    #[test]
    fn secrets_are_not_shown_and_have_a_length() {
        assert_eq!(format!("{:?}", secret(7)), "Secret(…)");
        assert_eq!(Secret::new(&[1; 15]), Err(UnfitSecret { bytes: 15 }));
        assert!(Secret::new(&[1; SECRET_BYTES_MAX + 1]).is_err());
    }
}
