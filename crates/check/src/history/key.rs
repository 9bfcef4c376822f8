//! Keys as text: UTF-8 as it stands, other bytes as `\x` followed by hex digits.

use std::borrow::Cow;

const HEX_PREFIX: &str = "\\x";

/// The text of a key. Text that itself starts with `\x` is written in hex, so it stays unique.
pub(crate) fn show_key(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.starts_with(HEX_PREFIX) => Cow::Borrowed(text),
        _ => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Cow::Owned(format!("{HEX_PREFIX}{hex}"))
        }
    }
}

/// The bytes of a key from its text; the error says what a key may look like.
pub(crate) fn parse_key(text: &str) -> Result<Cow<'_, [u8]>, String> {
    let Some(hex) = text.strip_prefix(HEX_PREFIX) else {
        return Ok(Cow::Borrowed(text.as_bytes()));
    };
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[a, b]| Some(digit(*a)? << 4 | digit(*b)?)).collect();
    match bytes {
        Some(bytes) if rest.is_empty() => Ok(Cow::Owned(bytes)),
        _ => Err(format!("key `{text}` starts with \\x but is not pairs of hex digits")),
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_survives_its_text(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let text = show_key(&bytes).into_owned();
            let back = parse_key(&text).unwrap();
            prop_assert_eq!(back.as_ref(), bytes.as_slice());
        }
    }

    #[test]
    fn a_literal_prefix_is_escaped_and_bad_hex_is_refused() {
        assert_eq!(show_key(b"\\xy"), "\\x5c7879");
        assert!(parse_key("\\xyz").unwrap_err().contains("hex digits"));
        assert!(parse_key("\\x123").is_err());
    }
}
