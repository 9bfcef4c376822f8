//! Ranges of typed keys.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use muesli_core::SmallBytes;

use crate::data::byte_range::Range;
use crate::data::key::{AsKey, Key, encoded, escape};

/// A range of keys of one type, and how it is read: ascending, without limit, unless told
/// otherwise. The space that reads it says which type; bounds may be of any form that
/// [names](AsKey) a key.
///
/// ```
/// use muesli::{Db, Error, KeyRange, Options, SpaceOptions};
///
/// # fn main() -> Result<(), Error> {
/// let db = Db::open(Options::default().space("people", SpaceOptions::default()))?;
/// let people = db.space("people")?.typed::<String, u32>();
/// db.blocking().transact(async move |tx| {
///     for (name, age) in [("ann", 30), ("anna", 20), ("bob", 40), ("cid", 50)] {
///         people.put(tx, name, &age).await?;
///     }
///     let names = |rows: Vec<(String, u32)>| -> Vec<String> {
///         rows.into_iter().map(|(name, _)| name).collect()
///     };
///     assert_eq!(names(people.range(tx, KeyRange::of("anna"..="bob")).await?), ["anna", "bob"]);
///     assert_eq!(names(people.range(tx, KeyRange::prefix("ann")).await?), ["ann", "anna"]);
///     assert_eq!(names(people.range(tx, KeyRange::all().reverse().limit(1)).await?), ["cid"]);
///     Ok::<_, Error>(())
/// })
/// # }
/// ```
pub struct KeyRange<K> {
    pub(crate) encoded: Range,
    keys: PhantomData<fn(K)>,
}

impl<K> Clone for KeyRange<K> {
    fn clone(&self) -> Self {
        KeyRange { encoded: self.encoded.clone(), keys: PhantomData }
    }
}

impl<K> fmt::Debug for KeyRange<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyRange").field(&self.encoded).finish()
    }
}

impl<K: Key> KeyRange<K> {
    /// All keys.
    pub fn all() -> KeyRange<K> {
        KeyRange::encoded(Range::all())
    }

    /// The keys within two bounds: `KeyRange::of(2..5)`, `KeyRange::of("ann"..)`.
    pub fn of<Q: AsKey<K>>(bounds: impl RangeBounds<Q>) -> KeyRange<K> {
        let bound = |bound: Bound<&Q>| bound.map(encoded::<K, Q>);
        let bounds = (bound(bounds.start_bound()), bound(bounds.end_bound()));
        KeyRange::encoded(Range::of::<SmallBytes>(bounds))
    }

    /// The keys that start with this: strings with some text, tuples with some parts.
    pub fn prefix<P: KeyPrefix<K> + ?Sized>(prefix: &P) -> KeyRange<K> {
        let mut bytes = Vec::with_capacity(24);
        prefix.encode_prefix(&mut bytes);
        KeyRange::encoded(Range::prefix(bytes))
    }

    /// A range of keys as they are stored.
    pub fn encoded(range: Range) -> KeyRange<K> {
        KeyRange { encoded: range, keys: PhantomData }
    }

    /// From the last key backwards.
    pub fn reverse(self) -> KeyRange<K> {
        KeyRange::encoded(self.encoded.reverse())
    }

    /// At most `limit` rows.
    pub fn limit(self, limit: usize) -> KeyRange<K> {
        KeyRange::encoded(self.encoded.limit(limit))
    }
}

/// What keys of type `K` can start with: some text or bytes for strings, the first parts for
/// tuples; and for a tuple of two also its first part and the [start](StartsWith) of the second.
pub trait KeyPrefix<K: Key> {
    /// Appends what the encodings of all such keys start with, and of no others.
    fn encode_prefix(&self, out: &mut Vec<u8>);
}

impl<K: Key, P: KeyPrefix<K> + ?Sized> KeyPrefix<K> for &P {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        (**self).encode_prefix(out);
    }
}

impl KeyPrefix<String> for str {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        escape(self.as_bytes(), out);
    }
}

impl KeyPrefix<String> for String {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        escape(self.as_bytes(), out);
    }
}

impl KeyPrefix<Vec<u8>> for [u8] {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        escape(self, out);
    }
}

impl KeyPrefix<Vec<u8>> for Vec<u8> {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        escape(self, out);
    }
}

/// The start of the second part of a tuple: `KeyRange::prefix(&(7, StartsWith("ann")))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartsWith<P>(pub P);

impl<A: Key, O: AsKey<A>, B: Key, P: KeyPrefix<B>> KeyPrefix<(A, B)> for (O, StartsWith<P>) {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        self.0.encode_key(out);
        self.1.0.encode_prefix(out);
    }
}

macro_rules! tuple_prefixes {
    ($($($part:ident $by:ident)+, $($rest:ident)+;)*) => {$(
        impl<$($part: Key, $by: AsKey<$part>,)+ $($rest: Key),+>
            KeyPrefix<($($part,)+ $($rest,)+)> for ($($by,)+)
        {
            #[expect(non_snake_case, reason = "the parts are named as their types")]
            fn encode_prefix(&self, out: &mut Vec<u8>) {
                let ($($by,)+) = self;
                $($by.encode_key(out);)+
            }
        }
    )*};
}

tuple_prefixes! {
    A O, B;
    A O, B C;
    A O, B C D;
    A O, B C D E;
    A O, B C D E F;
    A O B P, C;
    A O B P, C D;
    A O B P, C D E;
    A O B P, C D E F;
    A O B P C Q, D;
    A O B P C Q, D E;
    A O B P C Q, D E F;
    A O B P C Q D R, E;
    A O B P C Q D R, E F;
    A O B P C Q D R E S, F;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holds<K: Key>(range: &KeyRange<K>, key: &K) -> bool {
        let (key, Range { lo, hi, .. }) = (key.encoded(), &range.encoded);
        key >= *lo && hi.as_ref().is_none_or(|hi| key < *hi)
    }

    proptest! {
        #[test]
        fn bounds_are_those_of_the_values(a: i32, b: i32, key: i32) {
            prop_assert_eq!(holds(&KeyRange::of(a..b), &key), (a..b).contains(&key));
            prop_assert_eq!(holds(&KeyRange::of(a..=b), &key), (a..=b).contains(&key));
            prop_assert_eq!(holds(&KeyRange::of(a..), &key), key >= a);
            prop_assert_eq!(holds(&KeyRange::of(..b), &key), key < b);
            let after = (Bound::Excluded(a), Bound::Unbounded);
            prop_assert_eq!(holds(&KeyRange::of(after), &key), key > a);
        }

        #[test]
        fn bounds_of_strings_are_those_of_the_strings(
            a in "[a-c\0]{0,3}", b in "[a-c\0]{0,3}", key in "[a-c\0]{0,4}",
        ) {
            let (low, high, it) = (a.as_str(), b.as_str(), key.as_str());
            prop_assert_eq!(holds(&KeyRange::of(low..high), &key), (low..high).contains(&it));
            prop_assert_eq!(holds(&KeyRange::of(low..=high), &key), (low..=high).contains(&it));
        }

        #[test]
        fn a_prefix_holds_the_keys_that_start_so(
            prefix in "[ab\0]{0,3}", key in "[ab\0]{0,5}", number: u8, other in 0..2_u8,
        ) {
            let starts = key.starts_with(&prefix);
            prop_assert_eq!(holds(&KeyRange::prefix(prefix.as_str()), &key), starts);
            let bytes = key.clone().into_bytes();
            prop_assert_eq!(holds(&KeyRange::prefix(prefix.as_bytes()), &bytes), starts);
            let of = number.wrapping_add(other);
            let range = KeyRange::prefix(&(number, StartsWith(prefix.as_str())));
            prop_assert_eq!(holds(&range, &(of, key.clone())), other == 0 && starts);
            let range = KeyRange::prefix(&(prefix.as_str(), number));
            let whole = key == prefix && other == 0;
            prop_assert_eq!(holds(&range, &(key.clone(), of, 7_u64)), whole);
            let range = KeyRange::prefix(&(prefix.as_str(),));
            prop_assert_eq!(holds(&range, &(key.clone(), of)), key == prefix);
        }
    }
}
