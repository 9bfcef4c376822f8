//! How rows of the copies are written: their keys, and numbers in them.

use muesli::SmallBytes;

/// A key of a copy: what kind of row it is, and its number among those.
pub(super) fn key(home: u32, kind: u8, number: u32) -> SmallBytes {
    let mut key = Vec::with_capacity(9);
    key.extend_from_slice(&home.to_be_bytes());
    key.push(kind);
    key.extend_from_slice(&number.to_be_bytes());
    key.into()
}

/// A whole number that was written as eight bytes.
///
/// # Errors
/// It is not there, or is something else.
pub(super) fn number(value: Option<&SmallBytes>, what: &str) -> Result<i64, muesli::Error> {
    let number = value.and_then(|value| value.as_slice().try_into().ok().map(i64::from_le_bytes));
    number.ok_or_else(|| muesli::Error::Codec(format!("{what} is no number: {value:?}")))
}

/// A number as eight bytes, as [`muesli::Action::add`] knows it.
pub(super) fn eight_bytes(number: i64) -> SmallBytes {
    SmallBytes::new(&number.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        assert_eq!(number(Some(&eight_bytes(-7)), "it"), Ok(-7));
        assert!(number(None, "it").is_err() && number(Some(&SmallBytes::new(&[1])), "it").is_err());
    }
}
