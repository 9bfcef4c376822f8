//! Bytes of messages and records, between processes and on disks.
//!
//! The problem: what comes over a wire or from a disk may be anything, and it is read on the
//! hottest path there is. The idea: fixed layouts, written by hand. Numbers are little-endian and
//! as wide as their type; byte strings and lists have their length before them in four bytes; an
//! enum has its variant's number in one. [`Wire::encode`] appends to a buffer that the caller
//! reuses; [`Wire::decode`] reads from borrowed bytes through a [`Reader`].
//!
//! Why any bytes are safe to decode: each read checks what is left first; a list's length is
//! believed only as far as the bytes that are left could hold so many elements
//! ([`Wire::LEAST_BYTES`] each), so memory stays within a constant factor of the input; nothing
//! nests, so the stack does not grow with the input.

mod containers;

use thiserror::Error;

use crate::bytes::SmallBytes;
use crate::ids::{NodeId, OpId, RepositoryId, SpaceId, Timestamp, TxnId};
use crate::time::Nanos;

pub use containers::{encode_count, encode_list};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes end too early.
    #[error("{wanted} more bytes were expected at byte {at}, and there are {left}")]
    Short {
        /// Where, counted from the start of the input.
        at: usize,
        /// How many bytes were to be read next.
        wanted: usize,
        /// How many there are.
        left: usize,
    },
    /// A list says that it has more elements than its bytes could hold.
    #[error("a list of {count} elements at byte {at} cannot fit into {left} bytes")]
    List {
        /// Where its elements begin.
        at: usize,
        /// How many elements it says it has.
        count: usize,
        /// How many bytes there are.
        left: usize,
    },
    /// A number that names no variant.
    #[error("{found} names no {what} at byte {at}")]
    Variant {
        /// Of what.
        what: &'static str,
        /// Where.
        at: usize,
        /// The number.
        found: u64,
    },
    /// A name that is no text.
    #[error("the text that ends at byte {at} is not UTF-8")]
    Text {
        /// Where it ends.
        at: usize,
    },
    /// Bytes are left over.
    #[error("{left} bytes are left over at byte {at}")]
    Long {
        /// Where the value ended.
        at: usize,
        /// How many bytes follow.
        left: usize,
    },
}

/// Bytes being read.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A value with a fixed layout of bytes: what `encode` appends, `decode` reads back.
pub trait Wire: Sized {
    /// No encoding is shorter, in bytes; at least 1, so that lists are bounded by their bytes.
    const LEAST_BYTES: usize;

    /// Appends the value to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are no such value. Any bytes may be given.
    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError>;

    /// The value that `bytes` are, all of them.
    ///
    /// # Errors
    /// The bytes are no such value, or more than that.
    fn decode_all(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Reader::new(bytes);
        let value = Self::decode(&mut input)?;
        input.finish()?;
        Ok(value)
    }
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    #[inline]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let left = self.left();
        if count > left {
            return Err(WireError::Short { at: self.at, wanted: count, left });
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("so many were taken"))
    }

    /// A byte string with its length before it.
    ///
    /// # Errors
    /// There are fewer bytes than it says.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let count = u32::decode(self)? as usize;
        self.take(count)
    }

    /// The number of a list's elements, each of at least `least` bytes.
    ///
    /// # Errors
    /// There are fewer bytes than so many elements need.
    pub fn count(&mut self, least: usize) -> Result<usize, WireError> {
        let count = u32::decode(self)? as usize;
        let (at, left) = (self.at, self.left());
        if count > left / least.max(1) {
            return Err(WireError::List { at, count, left });
        }
        Ok(count)
    }

    /// The number of a variant of `what`, which has `variants` of them.
    ///
    /// # Errors
    /// There is no such variant.
    #[inline]
    pub fn variant(&mut self, what: &'static str, variants: u8) -> Result<u8, WireError> {
        let at = self.at;
        let found = u8::decode(self)?;
        if found < variants { Ok(found) } else { Err(WireError::no_variant(what, at, found)) }
    }

    /// That nothing is left.
    ///
    /// # Errors
    /// Something is.
    pub fn finish(&self) -> Result<(), WireError> {
        match self.left() {
            0 => Ok(()),
            left => Err(WireError::Long { at: self.at, left }),
        }
    }
}

impl WireError {
    /// The byte at `at` names no variant of `what`.
    pub fn no_variant(what: &'static str, at: usize, found: u8) -> WireError {
        WireError::Variant { what, at, found: u64::from(found) }
    }
}

/// Appends a byte string with its length before it.
///
/// # Panics
/// If it is longer than four bytes can say; limits on keys and values are far below.
#[inline]
pub fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    encode_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            const LEAST_BYTES: usize = size_of::<$number>();

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
                input.array().map(<$number>::from_le_bytes)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

macro_rules! newtypes {
    ($($name:ident($number:ty)),*) => {$(
        impl Wire for $name {
            const LEAST_BYTES: usize = <$number>::LEAST_BYTES;

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }

            #[inline]
            fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
                <$number>::decode(input).map($name)
            }
        }
    )*};
}

newtypes!(NodeId(u32), RepositoryId(u16), SpaceId(u16), OpId(u64), Timestamp(u64), Nanos(u64));

/// A struct, as its fields one after the other.
#[macro_export]
macro_rules! wire_struct {
    ($name:ident $(<$parameter:ident: $bound:path>)? { $($field:ident: $kind:ty),* $(,)? }) => {
        impl $(<$parameter: $bound>)? $crate::wire::Wire for $name $(<$parameter>)? {
            const LEAST_BYTES: usize = 0 $(+ <$kind as $crate::wire::Wire>::LEAST_BYTES)*;

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $($crate::wire::Wire::encode(&self.$field, out);)*
            }

            #[inline]
            fn decode(
                input: &mut $crate::wire::Reader<'_>,
            ) -> Result<Self, $crate::wire::WireError> {
                Ok($name { $($field: <$kind as $crate::wire::Wire>::decode(input)?),* })
            }
        }
    };
}

/// How many bytes something takes.
pub fn encoded_bytes(it: &impl Wire) -> usize {
    let mut bytes = Vec::new();
    it.encode(&mut bytes);
    bytes.len()
}

/// Implements [`Wire`] for an enum: each variant with its number, which is its first byte, and then
/// its fields. Those without names are given one here. `name` gives the variant's name, for traces.
#[macro_export]
macro_rules! wire_enum {
    ($name:ident $(<$parameter:ident: $bound:path>)?, $what:literal {
        $($number:literal => $variant:ident
            $(($($place:ident: $inner:ty),* $(,)?))?
            $({ $($field:ident: $kind:ty),* $(,)? })?
        ,)+
    }) => {
        impl $(<$parameter: $bound>)? $name $(<$parameter>)? {
            /// The name of its kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $($name::$variant { .. } => stringify!($variant),)+
                }
            }
        }

        impl $(<$parameter: $bound>)? $crate::wire::Wire for $name $(<$parameter>)? {
            const LEAST_BYTES: usize = 1;

            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant $(($($place),*))? $({ $($field),* })? => {
                        out.push($number);
                        $($($crate::wire::Wire::encode($place, out);)*)?
                        $($($crate::wire::Wire::encode($field, out);)*)?
                    })+
                }
            }

            fn decode(
                input: &mut $crate::wire::Reader<'_>,
            ) -> Result<Self, $crate::wire::WireError> {
                let at = input.position();
                match <u8 as $crate::wire::Wire>::decode(input)? {
                    $($number => Ok($name::$variant
                        $(($(<$inner as $crate::wire::Wire>::decode(input)?),*))?
                        $({ $($field: <$kind as $crate::wire::Wire>::decode(input)?),* })?
                    ),)+
                    other => Err($crate::wire::WireError::no_variant($what, at, other)),
                }
            }
        }
    };
}

wire_struct!(TxnId { node: NodeId, incarnation: u32, sequence: u64 });

impl Wire for bool {
    const LEAST_BYTES: usize = 1;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<bool, WireError> {
        input.variant("truth value", 2).map(|found| found == 1)
    }
}

impl Wire for SmallBytes {
    const LEAST_BYTES: usize = u32::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self.as_slice(), out);
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<SmallBytes, WireError> {
        input.bytes().map(SmallBytes::new)
    }
}

impl Wire for String {
    const LEAST_BYTES: usize = u32::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self.as_bytes(), out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<String, WireError> {
        let text = std::str::from_utf8(input.bytes()?);
        text.map(str::to_owned).map_err(|_| WireError::Text { at: input.position() })
    }
}

#[cfg(test)]
mod tests;
