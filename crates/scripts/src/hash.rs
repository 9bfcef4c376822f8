//! The hash that scripts are called by.

/// SHA-1 of these bytes, in small hexadecimal letters.
pub fn sha1_hex(bytes: &[u8]) -> String {
    sha1_smol::Sha1::from(bytes).hexdigest()
}
