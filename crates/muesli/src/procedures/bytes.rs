//! Byte strings among typed arguments and answers.

use std::fmt;

use muesli_core::SmallBytes;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A byte string that serde writes as one, not as a list of numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub SmallBytes);

impl<T: Into<SmallBytes>> From<T> for Bytes {
    fn from(bytes: T) -> Bytes {
        Bytes(bytes.into())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0.as_slice())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        deserializer.deserialize_bytes(AnyBytes)
    }
}

struct AnyBytes;

impl<'de> Visitor<'de> for AnyBytes {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a byte string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes(SmallBytes::new(bytes)))
    }

    /// Formats that know lists only.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Bytes, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            bytes.push(byte);
        }
        Ok(Bytes(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>, rest: u16) {
            let value = (Bytes::from(bytes.clone()), rest);
            let encoded = postcard::to_stdvec(&value).unwrap();
            prop_assert_eq!(encoded.len(), postcard::to_stdvec(&(bytes, rest)).unwrap().len());
            prop_assert_eq!(postcard::from_bytes::<(Bytes, u16)>(&encoded).unwrap(), value);
        }
    }
}
