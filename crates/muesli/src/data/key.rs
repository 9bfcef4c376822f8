//! Typed keys: encodings whose byte order is the order of the values.
//!
//! Unsigned integers are big-endian; signed ones have their sign bit flipped. Strings and byte
//! strings end with `00 00` and carry `00` as `00 ff`, so that they can stand before others in a
//! tuple and still order as they do alone. Tuples are their parts, one after the other.

use muesli_core::SmallBytes;

use crate::error::Error;

/// A key type with an encoding that keeps its order.
pub trait Key: Sized {
    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes a value off the front of `bytes`.
    ///
    /// # Errors
    /// [`Error::Codec`] where the bytes are no such encoding.
    fn decode(bytes: &mut &[u8]) -> Result<Self, Error>;

    /// The encoding alone.
    fn encoded(&self) -> SmallBytes {
        let mut out = Vec::with_capacity(24);
        self.encode(&mut out);
        out.into()
    }

    /// The value of an encoding.
    ///
    /// # Errors
    /// [`Error::Codec`] where the bytes are no such encoding, or go on after it.
    fn decoded(mut bytes: &[u8]) -> Result<Self, Error> {
        let key = Self::decode(&mut bytes)?;
        if bytes.is_empty() { Ok(key) } else { Err(codec("bytes after the end of the key")) }
    }
}

fn codec(reason: &str) -> Error {
    Error::Codec(reason.to_owned())
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Error> {
    let (head, rest) = bytes.split_first_chunk().ok_or_else(|| codec("the key is too short"))?;
    *bytes = rest;
    Ok(*head)
}

macro_rules! integer_keys {
    ($($unsigned:ty, $signed:ty);* $(;)?) => {$(
        impl Key for $unsigned {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, Error> {
                Ok(<$unsigned>::from_be_bytes(take(bytes)?))
            }
        }

        impl Key for $signed {
            fn encode(&self, out: &mut Vec<u8>) {
                ((*self as $unsigned) ^ (1 << (<$unsigned>::BITS - 1))).encode(out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, Error> {
                Ok((<$unsigned>::decode(bytes)? ^ (1 << (<$unsigned>::BITS - 1))) as $signed)
            }
        }
    )*};
}

integer_keys! { u8, i8; u16, i16; u32, i32; u64, i64; u128, i128 }

impl Key for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(bytes: &mut &[u8]) -> Result<bool, Error> {
        match u8::decode(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(codec("a truth value is neither 0 nor 1")),
        }
    }
}

impl Key for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        for &byte in self {
            out.push(byte);
            if byte == 0 {
                out.push(u8::MAX);
            }
        }
        out.extend_from_slice(&[0, 0]);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Vec<u8>, Error> {
        let mut decoded = Vec::new();
        loop {
            match u8::decode(bytes)? {
                0 => match u8::decode(bytes)? {
                    0 => return Ok(decoded),
                    u8::MAX => decoded.push(0),
                    _ => return Err(codec("a byte string is not ended as it should be")),
                },
                byte => decoded.push(byte),
            }
        }
    }
}

impl Key for String {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_bytes().to_vec().encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<String, Error> {
        String::from_utf8(Vec::decode(bytes)?).map_err(|_| codec("a string is not UTF-8"))
    }
}

/// As many keys, one after the other.
impl<K: Key, const N: usize> Key for [K; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|key| key.encode(out));
    }

    fn decode(bytes: &mut &[u8]) -> Result<[K; N], Error> {
        let keys = (0..N).map(|_| K::decode(bytes)).collect::<Result<Vec<K>, Error>>()?;
        Ok(keys.try_into().unwrap_or_else(|_| unreachable!("there are N of them")))
    }
}

macro_rules! tuple_keys {
    ($($($part:ident)+;)*) => {$(
        impl<$($part: Key),+> Key for ($($part,)+) {
            #[expect(non_snake_case, reason = "the parts are named as their types")]
            fn encode(&self, out: &mut Vec<u8>) {
                let ($($part,)+) = self;
                $($part.encode(out);)+
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, Error> {
                Ok(($($part::decode(bytes)?,)+))
            }
        }
    )*};
}

tuple_keys! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keeps_order<K: Key + Ord + Clone + std::fmt::Debug>(
        a: K,
        b: K,
    ) -> Result<(), TestCaseError> {
        prop_assert_eq!(a.encoded().cmp(&b.encoded()), a.cmp(&b));
        prop_assert_eq!(K::decoded(a.encoded().as_slice()).unwrap(), a);
        Ok(())
    }

    proptest! {
        #[test]
        fn encodings_keep_order_and_come_back(
            a: (i64, String, Vec<u8>), b: (i64, String, Vec<u8>), x: (u32, bool), y: (u32, bool),
            p: (Vec<u8>, u8), q: (Vec<u8>, u8),
        ) {
            keeps_order(a.clone(), b.clone())?;
            keeps_order((a.1, a.0 as i8), (b.1, b.0 as i8))?;
            keeps_order(x, y)?;
            keeps_order(p.clone(), q.clone())?;
            keeps_order([p.0, vec![p.1]], [q.0, vec![q.1]])?;
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            let _ = <(String, u64, bool)>::decoded(&bytes);
            let _ = <(Vec<u8>, i128)>::decoded(&bytes);
        }
    }
}
