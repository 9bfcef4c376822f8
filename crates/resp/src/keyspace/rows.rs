//! How Redis's keys and values are rows of a space.
//!
//! | row | value |
//! | --- | --- |
//! | `d`, number of a database | its generation |
//! | `k`, generation, hash of the key, key | header: type, expiry, a short string or an id |
//! | `c`, id, part, … | what is in rows: fields, members, items, pieces, counts |
//! | `n`, generation, stripe | a share of the number of its keys |
//! | `w`, generation, key | a mark: somebody watches the key |
//! | `x`, time, generation, key | the key expires then |
//! | `t`, id; `u`, generation | rows of these are of no use any more |
//! | `i`; `g` | the last instance; the last generation |
//! | `l`, name | a library of functions |
//! | `v` | a hash of all libraries, by which servers see that these have changed |
//!
//! Ids and generations are never used twice. Numbers in keys are of a form in which none begins
//! another one.

use muesli::SmallBytes;
use xxhash_rust::xxh3::xxh3_64;

/// How many databases a client can choose from.
pub(crate) const DATABASES: usize = 16;
/// Strings up to this length are in their header; longer ones are in pieces of this length.
pub(crate) const PIECE_BYTES: usize = 16 << 10;

/// What is in rows beside its header has an id.
pub(crate) type Id = u64;
/// All keys of a database, until it is flushed, have a generation.
pub(crate) type Generation = u32;

/// The kinds of rows.
pub(crate) mod tag {
    pub const DATABASE: u8 = b'd';
    pub const HEADER: u8 = b'k';
    pub const CONTENT: u8 = b'c';
    pub const COUNT: u8 = b'n';
    pub const MARK: u8 = b'w';
    pub const EXPIRY: u8 = b'x';
    pub const UNUSED_CONTENT: u8 = b't';
    pub const UNUSED_GENERATION: u8 = b'u';
    pub const INSTANCE: u8 = b'i';
    pub const LAST_GENERATION: u8 = b'g';
    /// A library of functions, by its name.
    #[cfg(feature = "scripts")]
    pub const LIBRARY: u8 = b'l';
    /// The version of all libraries.
    #[cfg(feature = "scripts")]
    pub const LIBRARIES: u8 = b'v';
}

/// The parts that content has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentPart {
    /// Shares of the number of members.
    Count = b'n' as isize,
    /// Fields and members, by their hash.
    Member = b'm' as isize,
    /// Members by score.
    Score = b's' as isize,
    /// Items of a list, by position.
    Item = b'i' as isize,
    /// The first and the last position of a list.
    Ends = b'e' as isize,
    /// Pieces of a string.
    Piece = b'p' as isize,
}

/// The bytes of a row's key, as they are put together.
pub(crate) struct RowKey(Vec<u8>);

impl RowKey {
    pub fn new(tag: u8) -> RowKey {
        let mut bytes = Vec::with_capacity(32);
        bytes.push(tag);
        RowKey(bytes)
    }

    pub fn content(id: Id, part: ContentPart) -> RowKey {
        RowKey::new(tag::CONTENT).number(id).byte(part as u8)
    }

    pub fn byte(mut self, byte: u8) -> RowKey {
        self.0.push(byte);
        self
    }

    /// A number in a form that is short where it is small, and in no order.
    pub fn number(mut self, number: u64) -> RowKey {
        if number < 0x80 {
            return self.byte(number as u8);
        }
        let bytes = number.to_be_bytes();
        let zeros = number.leading_zeros() as usize / 8;
        self.0.push(0x80 | (8 - zeros) as u8);
        self.0.extend_from_slice(&bytes[zeros..]);
        self
    }

    pub fn ordered(self, number: u64) -> RowKey {
        self.bytes(&number.to_be_bytes())
    }

    /// Where a member is, by its hash.
    pub fn hashed(self, member: &[u8]) -> RowKey {
        self.at_hash(hash(member)).bytes(member)
    }

    pub fn at_hash(self, hash: u32) -> RowKey {
        self.bytes(&hash.to_be_bytes())
    }

    pub fn bytes(mut self, bytes: &[u8]) -> RowKey {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn done(self) -> SmallBytes {
        SmallBytes::from(self.0)
    }
}

/// The number at the beginning of a row's key, as [`RowKey::number`] writes it, and what follows.
pub(crate) fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        return Some((u64::from(*first), rest));
    }
    let length = usize::from(first & 0x7f);
    let (number, rest) = (rest.get(..length)?, &rest[length..]);
    Some((number.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)), rest))
}

/// Where keys and members are, in an order of their own that iterations go by.
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

/// A score so that its bytes have its order.
pub(crate) fn score_bytes(score: f64) -> [u8; 8] {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
    (bits ^ flip).to_be_bytes()
}

/// The score of such bytes.
pub(crate) fn score_of(bytes: [u8; 8]) -> f64 {
    let bits = u64::from_be_bytes(bytes);
    let flip = if bits >> 63 == 1 { 1 << 63 } else { u64::MAX };
    f64::from_bits(bits ^ flip)
}

/// A position so that its bytes have its order.
pub(crate) fn position_bytes(position: i64) -> [u8; 8] {
    (position as u64 ^ 1 << 63).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back_and_none_begins_another(left: u64, right: u64) {
            let written = |number| RowKey::new(b'k').number(number).done();
            let (one, two) = (written(left), written(right));
            prop_assert_eq!(take_number(&one.as_slice()[1..]), Some((left, &[][..])));
            prop_assert_eq!(one.as_slice().starts_with(two.as_slice()), left == right);
        }

        #[test]
        fn scores_have_the_order_of_their_bytes(left: f64, right: f64) {
            prop_assume!(!left.is_nan() && !right.is_nan());
            let order = left.partial_cmp(&right).unwrap();
            prop_assert_eq!(score_bytes(left).cmp(&score_bytes(right)), order);
            prop_assert_eq!(score_of(score_bytes(left)), left);
        }

        #[test]
        fn positions_have_the_order_of_their_bytes(left: i64, right: i64) {
            prop_assert_eq!(position_bytes(left).cmp(&position_bytes(right)), left.cmp(&right));
        }
    }
}
