//! Keys and values: byte strings that cost no allocation up to 23 bytes.
//!
//! Most keys and many values are short, and on the hot path an allocation costs more than all the
//! rest of a look-up. A [`SmallBytes`] is 24 bytes: up to 23 bytes inline, longer ones shared.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The longest byte string that is kept inline.
pub const INLINE_MAX: usize = 23;

/// A byte string; cheap to clone. Equality, order and hash are those of its bytes.
#[derive(Clone)]
pub struct SmallBytes(Repr);

#[derive(Clone)]
enum Repr {
    /// Bytes past the length are zero, so that comparing the arrays compares the strings.
    Inline(Length, [u8; INLINE_MAX]),
    Shared(Arc<[u8]>),
}

/// 0 to 23, as a type with unused bit patterns: the compiler keeps the variant there, and the
/// `None` of an `Option<SmallBytes>` as well.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
enum Length {
    L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11,
    L12, L13, L14, L15, L16, L17, L18, L19, L20, L21, L22, L23,
}

#[rustfmt::skip]
const LENGTHS: [Length; INLINE_MAX + 1] = {
    use Length::*;
    [L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11,
     L12, L13, L14, L15, L16, L17, L18, L19, L20, L21, L22, L23]
};

const _: () = assert!(size_of::<SmallBytes>() == 24 && size_of::<Option<SmallBytes>>() == 24);

impl SmallBytes {
    /// The empty string.
    pub const EMPTY: SmallBytes = SmallBytes(Repr::Inline(Length::L0, [0; INLINE_MAX]));

    /// A copy of `bytes`.
    #[inline]
    pub fn new(bytes: &[u8]) -> SmallBytes {
        if bytes.len() <= INLINE_MAX {
            let mut array = [0; INLINE_MAX];
            array[..bytes.len()].copy_from_slice(bytes);
            SmallBytes(Repr::Inline(LENGTHS[bytes.len()], array))
        } else {
            SmallBytes(Repr::Shared(bytes.into()))
        }
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(length, array) => &array[..*length as usize],
            Repr::Shared(shared) => shared,
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline(length, _) => *length as usize,
            Repr::Shared(shared) => shared.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest byte string greater than this one: itself and a zero byte.
    pub fn successor(&self) -> SmallBytes {
        let mut bytes = Vec::with_capacity(self.len() + 1);
        bytes.extend_from_slice(self.as_slice());
        bytes.push(0);
        SmallBytes::from(bytes)
    }

    /// The end of the range of all strings that start with this one: the prefix with its last
    /// byte below 255 raised. `None` where no such byte exists, and the range is open.
    pub fn prefix_end(&self) -> Option<SmallBytes> {
        let mut bytes = self.as_slice().to_vec();
        while let Some(last) = bytes.pop() {
            if last < u8::MAX {
                bytes.push(last + 1);
                return Some(SmallBytes::from(bytes));
            }
        }
        None
    }
}

/// The array as three words, the last of which shares a byte with the second: comparing and
/// hashing words costs no call.
#[inline]
fn words(array: &[u8; INLINE_MAX]) -> [u64; 3] {
    let word = |at: usize| {
        u64::from_le_bytes(array[at..at + 8].try_into().expect("eight bytes of the array"))
    };
    [word(0), word(8), word(15)]
}

impl PartialEq for SmallBytes {
    #[inline]
    fn eq(&self, other: &SmallBytes) -> bool {
        match (&self.0, &other.0) {
            (Repr::Inline(a, x), Repr::Inline(b, y)) => {
                let (x, y) = (words(x), words(y));
                *a as u8 == *b as u8 && x[0] == y[0] && x[1] == y[1] && x[2] == y[2]
            }
            (Repr::Shared(x), Repr::Shared(y)) => x == y,
            _ => false,
        }
    }
}

impl Eq for SmallBytes {}

impl Hash for SmallBytes {
    /// Inline strings are hashed as three words, whatever their length.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Inline(length, a) => {
                let [first, second, third] = words(a);
                state.write_u64(first);
                state.write_u64(second);
                state.write_u64(third ^ u64::from(*length as u8));
            }
            Repr::Shared(shared) => state.write(shared),
        }
    }
}

impl Ord for SmallBytes {
    fn cmp(&self, other: &SmallBytes) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl PartialOrd for SmallBytes {
    fn partial_cmp(&self, other: &SmallBytes) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// For range look-ups only: the hash of a slice is not that of a `SmallBytes`.
impl Borrow<[u8]> for SmallBytes {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for SmallBytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<&[u8]> for SmallBytes {
    fn from(bytes: &[u8]) -> SmallBytes {
        SmallBytes::new(bytes)
    }
}

impl From<&str> for SmallBytes {
    fn from(text: &str) -> SmallBytes {
        SmallBytes::new(text.as_bytes())
    }
}

impl From<Vec<u8>> for SmallBytes {
    fn from(bytes: Vec<u8>) -> SmallBytes {
        if bytes.len() <= INLINE_MAX {
            SmallBytes::new(&bytes)
        } else {
            SmallBytes(Repr::Shared(bytes.into()))
        }
    }
}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_slice().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(bytes: &SmallBytes) -> u64 {
        use std::hash::BuildHasher;
        foldhash::fast::FixedState::with_seed(1).hash_one(bytes)
    }

    proptest! {
        #[test]
        fn behaves_as_the_slice_it_holds(
            a: Vec<u8>, b in prop::collection::vec(any::<u8>(), 0..30),
        ) {
            let (x, y) = (SmallBytes::new(&a), SmallBytes::from(b.clone()));
            prop_assert_eq!(x.as_slice(), &a[..]);
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x == y, a == b);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(hash(&x), hash(&SmallBytes::from(a.clone())));
            prop_assert!(x.successor() > x);
        }

        #[test]
        fn prefix_ranges_hold_exactly_the_strings_with_the_prefix(
            prefix in prop::collection::vec(prop::sample::select(vec![0u8, 7, 254, 255]), 0..4),
            text in prop::collection::vec(prop::sample::select(vec![0u8, 7, 8, 254, 255]), 0..6),
        ) {
            let (start, key) = (SmallBytes::new(&prefix), SmallBytes::new(&text));
            let inside = key >= start && start.prefix_end().is_none_or(|end| key < end);
            prop_assert_eq!(inside, text.starts_with(&prefix));
        }
    }

    #[test]
    fn zero_bytes_and_lengths_are_told_apart() {
        assert_ne!(SmallBytes::new(b"a"), SmallBytes::new(b"a\0"));
        assert_ne!(hash(&SmallBytes::new(b"a")), hash(&SmallBytes::new(b"a\0")));
    }
}
