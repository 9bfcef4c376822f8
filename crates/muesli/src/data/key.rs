//! Typed keys: encodings whose byte order is the order of the values.
//!
//! Unsigned integers are big-endian; signed ones have their sign bit flipped. Strings and byte
//! strings end with `00 00` and carry `00` as `00 ff`, so that they can stand before others in a
//! tuple and still order as they do alone. Tuples, arrays and structs are their parts, one after
//! the other.
//!
//! A type of one's own becomes a key by [`derive_key!`](crate::derive_key), from the keys that it
//! is made of. A borrowed form of a key does wherever a key is asked for ([`AsKey`]):
//!
//! ```
//! use muesli::{Db, Error, Options, SpaceOptions, derive_key};
//!
//! #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
//! struct Customer(String);
//! derive_key!(Customer(String));
//!
//! #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
//! struct Order {
//!     customer: Customer,
//!     number: u32,
//! }
//! derive_key!(Order { customer, number });
//!
//! # fn main() -> Result<(), Error> {
//! let db = Db::open(Options::default().space("s", SpaceOptions::default()))?;
//! let totals = db.space("s")?.typed::<(String, u32), i64>();
//! let orders = db.space("s")?.typed::<Order, i64>();
//! db.blocking().transact(async move |tx| {
//!     totals.put(tx, &("ann", 7), &100).await?; // No `String` is made.
//!     let order = Order { customer: Customer("ann".to_owned()), number: 7 };
//!     assert_eq!(orders.get(tx, &order).await?, Some(100)); // The same parts, the same key.
//!     Ok::<_, Error>(())
//! })
//! # }
//! ```

use muesli_core::SmallBytes;

use crate::error::Error;

/// A key type with an encoding that keeps its order: it is encoded as [`AsKey`] says of it itself.
pub trait Key: AsKey<Self> + Sized {
    /// Takes a value off the front of `bytes`.
    ///
    /// # Errors
    /// [`Error::Codec`] where the bytes are no such encoding.
    fn decode(bytes: &mut &[u8]) -> Result<Self, Error>;

    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>) {
        self.encode_key(out);
    }

    /// The encoding alone.
    ///
    /// It has an end of its own, so a longer string's encoding does not start with it: keys that
    /// start with some text are a [`KeyRange::prefix`](crate::KeyRange::prefix).
    fn encoded(&self) -> SmallBytes {
        encoded(self)
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

/// What a key of type `K` can be asked for by: itself, or a form that borrows, as `str` for
/// [`String`], a slice for `Vec<u8>`, and tuples and arrays of such forms. It is encoded as the key
/// that it stands for.
pub trait AsKey<K> {
    /// Appends the encoding of the key.
    fn encode_key(&self, out: &mut Vec<u8>);
}

impl<K, T: AsKey<K> + ?Sized> AsKey<K> for &T {
    #[inline]
    fn encode_key(&self, out: &mut Vec<u8>) {
        (**self).encode_key(out);
    }
}

/// The encoding of a key by any of its forms.
pub fn encoded<K, Q: AsKey<K> + ?Sized>(key: &Q) -> SmallBytes {
    let mut out = Vec::with_capacity(24);
    key.encode_key(&mut out);
    out.into()
}

/// Makes a type a [`Key`] from its parts, which are keys, in the order that is told: the same in
/// which the type compares them. A newtype names its part's type, a struct its fields.
///
/// ```
/// use muesli::{Key, derive_key};
///
/// #[derive(Debug, PartialEq)]
/// struct Celsius(i16);
/// derive_key!(Celsius(i16));
///
/// #[derive(Debug, PartialEq)]
/// struct Reading {
///     at: u64,
///     measured: Celsius,
/// }
/// derive_key!(Reading { at, measured });
///
/// let reading = Reading { at: 1, measured: Celsius(-5) };
/// assert_eq!(Reading::decoded(reading.encoded().as_slice()), Ok(reading));
/// ```
#[macro_export]
macro_rules! derive_key {
    ($name:ident($part:ty $(,)?)) => {
        impl $crate::key::AsKey<$name> for $name {
            fn encode_key(&self, out: &mut ::std::vec::Vec<u8>) {
                <$part as $crate::Key>::encode(&self.0, out);
            }
        }

        impl $crate::Key for $name {
            fn decode(bytes: &mut &[u8]) -> ::std::result::Result<Self, $crate::Error> {
                <$part as $crate::Key>::decode(bytes).map($name)
            }
        }
    };
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::key::AsKey<$name> for $name {
            fn encode_key(&self, out: &mut ::std::vec::Vec<u8>) {
                $($crate::Key::encode(&self.$field, out);)+
            }
        }

        impl $crate::Key for $name {
            fn decode(bytes: &mut &[u8]) -> ::std::result::Result<Self, $crate::Error> {
                ::std::result::Result::Ok($name { $($field: $crate::Key::decode(bytes)?),+ })
            }
        }
    };
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
        impl AsKey<$unsigned> for $unsigned {
            fn encode_key(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }

        impl Key for $unsigned {
            fn decode(bytes: &mut &[u8]) -> Result<Self, Error> {
                Ok(<$unsigned>::from_be_bytes(take(bytes)?))
            }
        }

        impl AsKey<$signed> for $signed {
            fn encode_key(&self, out: &mut Vec<u8>) {
                ((*self as $unsigned) ^ (1 << (<$unsigned>::BITS - 1))).encode_key(out);
            }
        }

        impl Key for $signed {
            fn decode(bytes: &mut &[u8]) -> Result<Self, Error> {
                Ok((<$unsigned>::decode(bytes)? ^ (1 << (<$unsigned>::BITS - 1))) as $signed)
            }
        }
    )*};
}

integer_keys! { u8, i8; u16, i16; u32, i32; u64, i64; u128, i128 }

impl AsKey<bool> for bool {
    fn encode_key(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl Key for bool {
    fn decode(bytes: &mut &[u8]) -> Result<bool, Error> {
        match u8::decode(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(codec("a truth value is neither 0 nor 1")),
        }
    }
}

/// The bytes of a string without its end: what all strings that start so start with.
pub(super) fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(u8::MAX);
        }
    }
}

impl AsKey<Vec<u8>> for [u8] {
    fn encode_key(&self, out: &mut Vec<u8>) {
        escape(self, out);
        out.extend_from_slice(&[0, 0]);
    }
}

impl AsKey<Vec<u8>> for Vec<u8> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.as_slice().encode_key(out);
    }
}

impl Key for Vec<u8> {
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

impl AsKey<String> for str {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.as_bytes().encode_key(out);
    }
}

impl AsKey<String> for String {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.as_str().encode_key(out);
    }
}

impl Key for String {
    fn decode(bytes: &mut &[u8]) -> Result<String, Error> {
        String::from_utf8(Vec::decode(bytes)?).map_err(|_| codec("a string is not UTF-8"))
    }
}

impl<K, T: AsKey<K>, const N: usize> AsKey<[K; N]> for [T; N] {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|part| part.encode_key(out));
    }
}

impl<K: Key, const N: usize> Key for [K; N] {
    fn decode(bytes: &mut &[u8]) -> Result<[K; N], Error> {
        let parts: Result<Vec<K>, Error> = (0..N).map(|_| K::decode(bytes)).collect();
        parts?.try_into().map_err(|_| codec("as many parts as were asked for"))
    }
}

macro_rules! tuple_keys {
    ($($($part:ident $by:ident)+;)*) => {$(
        impl<$($part, $by: AsKey<$part>),+> AsKey<($($part,)+)> for ($($by,)+) {
            #[expect(non_snake_case, reason = "the parts are named as their types")]
            fn encode_key(&self, out: &mut Vec<u8>) {
                let ($($by,)+) = self;
                $($by.encode_key(out);)+
            }
        }

        impl<$($part: Key),+> Key for ($($part,)+) {
            fn decode(bytes: &mut &[u8]) -> Result<Self, Error> {
                Ok(($($part::decode(bytes)?,)+))
            }
        }
    )*};
}

tuple_keys! {
    A O; A O B P; A O B P C Q; A O B P C Q D R; A O B P C Q D R E S; A O B P C Q D R E S F T;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Number(i64);
    crate::derive_key!(Number(i64));

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Line {
        order: Number,
        name: String,
    }
    crate::derive_key!(Line { order, name });

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
            p: (Vec<u8>, u8), q: (Vec<u8>, u8), s: [i16; 3], t: [i16; 3],
        ) {
            keeps_order(s, t)?;
            let pair = |x: &String, y: &String, of: [i16; 3]| {
                [(x.clone(), of[0]), (y.clone(), of[1])]
            };
            keeps_order(pair(&a.1, &b.1, s), pair(&b.1, &a.1, t))?;
            let line = |order, name: &String| Line { order: Number(order), name: name.clone() };
            keeps_order(line(a.0, &a.1), line(b.0, &b.1))?;
            keeps_order(a.clone(), b.clone())?;
            keeps_order((a.1, a.0 as i8), (b.1, b.0 as i8))?;
            keeps_order(x, y)?;
            keeps_order(p, q)?;
        }

        /// A borrowed form is encoded as what it stands for.
        #[test]
        fn forms_that_borrow_are_encoded_as_their_keys(a: String, b: Vec<u8>, c: u32) {
            prop_assert_eq!(encoded::<String, str>(&a), a.encoded());
            prop_assert_eq!(encoded::<Vec<u8>, [u8]>(&b), b.encoded());
            let by = (a.as_str(), b.as_slice(), &c);
            let by = encoded::<(String, Vec<u8>, u32), _>(&by);
            prop_assert_eq!(by, (a.clone(), b, c).encoded());
            let two = encoded::<[String; 2], _>(&[a.as_str(), "x"]);
            prop_assert_eq!(two, [a, "x".to_owned()].encoded());
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            let _ = <(String, u64, bool)>::decoded(&bytes);
            let _ = <(Vec<u8>, i128)>::decoded(&bytes);
            let _ = <[Line; 2]>::decoded(&bytes);
        }
    }
}
