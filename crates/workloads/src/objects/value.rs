//! What an object holds: which one it is, how often it was updated, and who last wrote it unread.

use muesli::{Error, SmallBytes};

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredObject {
    /// Which one it is.
    pub number: u64,
    /// How many updates have read and written it since it was loaded or written unread.
    pub updates: u64,
    /// Its last write that did not read it; `None`: it was loaded.
    pub blind: Option<BlindWrite>,
}

/// A write that did not read what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlindWrite {
    /// Who wrote.
    pub client: u32,
    /// The number of the transaction among the client's.
    pub transaction: u64,
}

/// The bytes of an object before those that fill it.
pub(super) const HEADER_BYTES: u64 = 28;

/// Stands for the client of objects that were loaded.
const NO_CLIENT: u32 = u32::MAX;

impl StoredObject {
    /// As it is loaded.
    pub fn first(number: u64) -> StoredObject {
        StoredObject { number, updates: 0, blind: None }
    }

    /// After one more update that has read it.
    pub fn updated(self) -> StoredObject {
        StoredObject { updates: self.updates + 1, ..self }
    }

    /// After a write that has not.
    pub fn written(number: u64, write: BlindWrite) -> StoredObject {
        StoredObject { number, updates: 0, blind: Some(write) }
    }

    /// The object as a value of so many bytes.
    pub fn encode(&self, bytes: usize) -> SmallBytes {
        let none = BlindWrite { client: NO_CLIENT, transaction: 0 };
        let BlindWrite { client, transaction } = self.blind.unwrap_or(none);
        let mut value = Vec::with_capacity(bytes);
        value.extend_from_slice(&self.number.to_le_bytes());
        value.extend_from_slice(&self.updates.to_le_bytes());
        value.extend_from_slice(&transaction.to_le_bytes());
        value.extend_from_slice(&client.to_le_bytes());
        assert_eq!(value.len() as u64, HEADER_BYTES);
        value.resize(bytes, filling(self.number));
        SmallBytes::from(value)
    }

    /// The object that was read, of so many bytes.
    ///
    /// # Errors
    /// It is no object, or is filled as another one.
    pub fn decode(value: Option<&SmallBytes>, bytes: usize) -> Result<StoredObject, Error> {
        let wrong = |what: &str| Error::Codec(format!("an object {what}"));
        let value = value.ok_or_else(|| wrong("is missing"))?.as_slice();
        if value.len() != bytes || value.len() < HEADER_BYTES as usize {
            return Err(wrong("is of the wrong length"));
        }
        let (header, rest) = value.split_at(HEADER_BYTES as usize);
        let (parts, client) = header.as_chunks::<8>();
        let [number, updates, transaction] = [0, 1, 2].map(|at| u64::from_le_bytes(parts[at]));
        let client = client.try_into().map(u32::from_le_bytes).unwrap_or(NO_CLIENT);
        let fill = filling(number);
        // Without a way out of the loop it is done in wide words.
        if rest.iter().fold(0, |differs, byte| differs | (byte ^ fill)) != 0 {
            return Err(wrong("is filled as another one"));
        }
        let write = BlindWrite { client, transaction };
        Ok(StoredObject { number, updates, blind: (client != NO_CLIENT).then_some(write) })
    }
}

/// The byte that an object is filled with.
fn filling(number: u64) -> u8 {
    (number % 251) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn objects_come_back_and_damage_is_noticed(
            number: u64, updates in 0..u64::MAX, transaction: u64, client in 0..NO_CLIENT,
            blind: bool, bytes in 30usize..100, at: usize,
        ) {
            let blind = blind.then_some(BlindWrite { client, transaction });
            let object = StoredObject { number, updates, blind };
            let value = object.encode(bytes);
            prop_assert_eq!(value.len(), bytes);
            prop_assert_eq!(StoredObject::decode(Some(&value), bytes), Ok(object));
            prop_assert_eq!(object.updated().updates, updates + 1);
            let mut damaged = value.as_slice().to_vec();
            let at = HEADER_BYTES as usize + at % (bytes - HEADER_BYTES as usize);
            damaged[at] ^= 1;
            prop_assert!(StoredObject::decode(Some(&damaged.into()), bytes).is_err());
            prop_assert!(StoredObject::decode(Some(&value), bytes + 1).is_err());
            prop_assert!(StoredObject::decode(None, bytes).is_err());
        }
    }
}
