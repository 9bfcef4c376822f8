//! Values with values in them: options, lists, boxes, tuples.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Reader, Wire, WireError};

/// Appends the number of a list's elements.
///
/// # Panics
/// If there are more than four bytes can say.
#[inline]
pub fn encode_count(count: usize, out: &mut Vec<u8>) {
    u32::try_from(count).expect("limits are far below").encode(out);
}

/// Appends a list.
#[inline]
pub fn encode_list<T: Wire>(list: &[T], out: &mut Vec<u8>) {
    encode_count(list.len(), out);
    for element in list {
        element.encode(out);
    }
}

impl<T: Wire> Wire for Option<T> {
    const LEAST_BYTES: usize = 1;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Option<T>, WireError> {
        if bool::decode(input)? { T::decode(input).map(Some) } else { Ok(None) }
    }
}

impl<T: Wire, const N: usize> Wire for SmallVec<[T; N]>
where
    [T; N]: smallvec::Array<Item = T>,
{
    const LEAST_BYTES: usize = u32::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_list(self, out);
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<SmallVec<[T; N]>, WireError> {
        let count = input.count(T::LEAST_BYTES)?;
        (0..count).map(|_| T::decode(input)).collect()
    }
}

impl<T: Wire> Wire for Vec<T> {
    const LEAST_BYTES: usize = u32::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_list(self, out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Vec<T>, WireError> {
        let count = input.count(T::LEAST_BYTES)?;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(T::decode(input)?);
        }
        Ok(list)
    }
}

impl<T: Wire> Wire for Arc<[T]> {
    const LEAST_BYTES: usize = u32::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_list(self, out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Arc<[T]>, WireError> {
        Vec::decode(input).map(Arc::from)
    }
}

/// The keys with their values, in order; of a key that is there twice the last one counts.
impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    const LEAST_BYTES: usize = u32::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u32).encode(out);
        for (key, value) in self {
            key.encode(out);
            value.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<BTreeMap<K, V>, WireError> {
        Ok(Vec::<(K, V)>::decode(input)?.into_iter().collect())
    }
}

impl<T: Wire> Wire for Box<T> {
    const LEAST_BYTES: usize = T::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        T::encode(self, out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Box<T>, WireError> {
        T::decode(input).map(Box::new)
    }
}

impl<T: Wire> Wire for Arc<T> {
    const LEAST_BYTES: usize = T::LEAST_BYTES;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        T::encode(self, out);
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Arc<T>, WireError> {
        T::decode(input).map(Arc::new)
    }
}

macro_rules! tuples {
    ($(($($name:ident $place:tt),*)),*) => {$(
        #[allow(unused_variables, clippy::unused_unit, reason = "the empty one")]
        impl<$($name: Wire),*> Wire for ($($name,)*) {
            const LEAST_BYTES: usize = 0 $(+ $name::LEAST_BYTES)*;

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$place.encode(out);)*
            }

            #[inline]
            fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(($($name::decode(input)?,)*))
            }
        }
    )*};
}

tuples!((), (A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3));
