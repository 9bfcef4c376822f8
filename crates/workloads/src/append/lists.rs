//! How lists are stored: the key of each, and its elements as bytes.

use muesli::{Error, SmallBytes, Space, Tx};

/// The key of a list.
pub(super) fn key_of(key: u64) -> SmallBytes {
    SmallBytes::from(&*key.to_string())
}

/// A list, as a transaction sees it.
pub(super) async fn read(tx: &Tx, space: Space, key: u64) -> Result<Vec<u64>, Error> {
    decode(tx.get(space, key_of(key)).await?.as_ref())
}

/// A list as the value of its key.
pub(super) fn encode(list: &[u64]) -> Vec<u8> {
    list.iter().flat_map(|element| element.to_le_bytes()).collect()
}

/// The list that a value is; none is empty.
///
/// # Errors
/// It is no list.
pub(super) fn decode(value: Option<&SmallBytes>) -> Result<Vec<u64>, Error> {
    let Some(value) = value else { return Ok(Vec::new()) };
    match value.as_slice().as_chunks::<8>() {
        (elements, []) => Ok(elements.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()),
        _ => Err(Error::Codec(format!("a list of {} bytes", value.len()))),
    }
}
