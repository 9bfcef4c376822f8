//! Keys and values: byte strings that cost no allocation up to 23 bytes.
//!
//! Most keys and many values are short, and on the hot path an allocation costs more than all the
//! rest of a look-up. A [`SmallBytes`] is 24 bytes: up to 23 bytes inline, longer ones shared.
//!
//! This is the one file with unsafe code. An enum of an array and an `Arc` would need none, but it
//! is copied in odd pieces, and a processor that reads a word over two pieces just written waits:
//! that alone doubled the time of a transaction. So the string is a struct of three words, always
//! moved, compared and hashed as such. The last byte says what it is, and is never zero, so that
//! `Option<SmallBytes>` is as small.
#![expect(unsafe_code, reason = "three plain words instead of an enum; see above")]

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::sync::Arc;

/// The longest byte string that is kept inline.
pub const INLINE_MAX: usize = 23;

/// A byte string; cheap to clone. Equality, order and hash are those of its bytes.
#[repr(C)]
pub struct SmallBytes {
    head: Head,
    /// In memory order: inline bytes 16 to 22, then the tag. The tag of an inline string is its
    /// length and one; inline bytes past the length are zero.
    last: NonZeroU64,
}

/// The first two words: the first 16 inline bytes, or the pointer of an `Arc<[u8]>`.
#[repr(C)]
#[derive(Clone, Copy)]
union Head {
    inline: [u64; 2],
    shared: *const [u8],
}

/// The tag of shared strings.
const SHARED: u8 = INLINE_MAX as u8 + 2;

const fn tagged(tag: u8) -> NonZeroU64 {
    match NonZeroU64::new(u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 0, tag])) {
        Some(last) => last,
        None => panic!("a tag is never zero"),
    }
}

const _: () = assert!(size_of::<SmallBytes>() == 24 && size_of::<Option<SmallBytes>>() == 24);

// SAFETY: inline bytes are plain data, and the pointer is that of an `Arc<[u8]>`, which is `Send`.
unsafe impl Send for SmallBytes {}
// SAFETY: as above; nothing is changed through a shared reference but the `Arc`'s own count.
unsafe impl Sync for SmallBytes {}

impl SmallBytes {
    /// The empty string.
    pub const EMPTY: SmallBytes = SmallBytes { head: Head { inline: [0; 2] }, last: tagged(1) };

    /// A copy of `bytes`.
    #[inline]
    pub fn new(bytes: &[u8]) -> SmallBytes {
        if bytes.len() > INLINE_MAX {
            return SmallBytes::shared(bytes.into());
        }
        let mut all = [0; 24];
        all[..bytes.len()].copy_from_slice(bytes);
        all[INLINE_MAX] = bytes.len() as u8 + 1;
        let word = |at: usize| {
            let bytes = all[at..at + 8].try_into().expect("eight bytes of twenty-four");
            u64::from_ne_bytes(bytes)
        };
        let last = NonZeroU64::new(word(16)).expect("the tag is not zero");
        SmallBytes { head: Head { inline: [word(0), word(8)] }, last }
    }

    fn shared(bytes: Arc<[u8]>) -> SmallBytes {
        SmallBytes { head: Head { shared: Arc::into_raw(bytes) }, last: tagged(SHARED) }
    }

    #[inline]
    fn tag(&self) -> u8 {
        self.last.get().to_ne_bytes()[7]
    }

    #[inline]
    fn is_shared(&self) -> bool {
        self.tag() == SHARED
    }

    /// The shared bytes, without owning them.
    #[inline]
    fn as_shared(&self) -> Option<ManuallyDrop<Arc<[u8]>>> {
        if !self.is_shared() {
            return None;
        }
        // SAFETY: the tag says that the head is a pointer that came from `Arc::into_raw`, and
        // `self` keeps its count; `ManuallyDrop` does not give it back.
        Some(ManuallyDrop::new(unsafe { Arc::from_raw(self.head.shared) }))
    }

    /// The three words of an inline string: equal where the strings are.
    #[inline]
    fn words(&self) -> [u64; 3] {
        debug_assert!(!self.is_shared());
        // SAFETY: the tag says that the head is inline bytes.
        let [first, second] = unsafe { self.head.inline };
        [first, second, self.last.get()]
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        if self.is_shared() {
            // SAFETY: the tag says that the head points to the bytes of an `Arc` that `self` keeps.
            unsafe { &*self.head.shared }
        } else {
            // SAFETY: the struct is 24 bytes without padding, all written, and begins with its
            // inline bytes, 23 of them before the tag.
            let all = unsafe { &*std::ptr::from_ref(self).cast::<[u8; INLINE_MAX]>() };
            &all[..self.tag() as usize - 1]
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        if self.is_shared() { self.as_slice().len() } else { self.tag() as usize - 1 }
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

impl Clone for SmallBytes {
    #[inline]
    fn clone(&self) -> SmallBytes {
        if let Some(shared) = self.as_shared() {
            let _counted = ManuallyDrop::new(Arc::clone(&shared));
        }
        // Inline bytes are plain data; a shared pointer has just been counted once more.
        SmallBytes { head: self.head, last: self.last }
    }
}

impl Drop for SmallBytes {
    #[inline]
    fn drop(&mut self) {
        if let Some(shared) = self.as_shared() {
            drop(ManuallyDrop::into_inner(shared));
        }
    }
}

impl PartialEq for SmallBytes {
    #[inline]
    fn eq(&self, other: &SmallBytes) -> bool {
        if self.last != other.last {
            return false; // Another tag, or other last bytes; shared strings have none.
        }
        if self.is_shared() {
            return self.as_slice() == other.as_slice();
        }
        let (x, y) = (self.words(), other.words());
        x[0] == y[0] && x[1] == y[1]
    }
}

impl Eq for SmallBytes {}

impl Hash for SmallBytes {
    /// Inline strings are hashed as three words, whatever their length.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.is_shared() {
            state.write(self.as_slice());
            return;
        }
        let [first, second, third] = self.words();
        state.write_u64(first);
        state.write_u64(second);
        state.write_u64(third);
    }
}

impl Ord for SmallBytes {
    /// Inline strings are compared as three words: past their ends they are zero, and of two that
    /// are the same so far the last byte, which grows with the length, decides.
    #[inline]
    fn cmp(&self, other: &SmallBytes) -> Ordering {
        if self.is_shared() || other.is_shared() {
            return self.as_slice().cmp(other.as_slice());
        }
        let ([a, b, c], [x, y, z]) = (self.words(), other.words());
        let first = a.to_be().cmp(&x.to_be());
        first.then_with(|| b.to_be().cmp(&y.to_be())).then_with(|| c.to_be().cmp(&z.to_be()))
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
            SmallBytes::shared(bytes.into())
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
    use proptest::prelude::*;

    use super::*;

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
