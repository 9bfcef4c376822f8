//! Units: what belongs together is placed together.
//!
//! A *unit* is a value of the application, a warehouse or a user, and a space says by which leading
//! parts of its keys they belong to one. All spaces of a *domain* go by one map from units to
//! partitions, so rows of one unit lie together whatever table they are of, and a row has a place
//! before it exists. Units that the map does not name are dealt to partitions by a hash that never
//! changes. The map is data with an epoch, like everything that says where keys are.

use std::fmt;
use std::sync::Arc;

use crate::bytes::SmallBytes;
use crate::wire::{Reader, Wire, WireError};
use crate::wire_struct;

/// A part of a key, as far as it must be known where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitPart {
    /// So many bytes: a number.
    Fixed(u8),
    /// Text or a byte string, which has an end of its own.
    Text,
}

/// Units that follow each other, and their partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitRange {
    /// The first of them, as keys have it.
    pub first: SmallBytes,
    /// The last of them.
    pub last: SmallBytes,
    /// The partition that they are in.
    pub partition: u16,
}

wire_struct!(UnitRange { first: SmallBytes, last: SmallBytes, partition: u16 });

/// Which partition each unit of a domain is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitMap {
    /// Grows with each change.
    pub epoch: u64,
    /// Those that are not dealt by the hash: in order, and apart from each other.
    ranges: Vec<UnitRange>,
}

wire_struct!(UnitMap { epoch: u64, ranges: Vec<UnitRange> });

impl UnitMap {
    /// A map with these ranges; neighbours of one partition need not have been joined.
    pub fn new(epoch: u64, mut ranges: Vec<UnitRange>) -> UnitMap {
        ranges.sort_by(|one, other| one.first.cmp(&other.first));
        UnitMap { epoch, ranges }
    }

    /// A map of single units.
    pub fn of_units(epoch: u64, units: impl IntoIterator<Item = (SmallBytes, u16)>) -> UnitMap {
        let range = |(unit, partition): (SmallBytes, u16)| {
            let (first, last) = (unit.clone(), unit);
            UnitRange { first, last, partition }
        };
        UnitMap::new(epoch, units.into_iter().map(range).collect())
    }

    /// All that it names.
    pub fn ranges(&self) -> &[UnitRange] {
        &self.ranges
    }

    /// Whether each unit has one partition, of so many.
    pub fn is_sound(&self, partitions: usize) -> bool {
        let sound = |range: &UnitRange| {
            range.first <= range.last && usize::from(range.partition) < partitions
        };
        let apart = self.ranges.windows(2).all(|pair| pair[0].last < pair[1].first);
        apart && self.ranges.iter().all(sound)
    }

    /// The partition that it names for a unit.
    pub fn partition(&self, unit: &[u8]) -> Option<u16> {
        let behind = self.ranges.partition_point(|range| range.first.as_slice() <= unit);
        let range = &self.ranges[behind.checked_sub(1)?];
        (unit <= range.last.as_slice()).then_some(range.partition)
    }
}

/// By which unit the keys of a space are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// The name of what they are.
    pub domain: String,
    /// The leading parts of a key that are its unit.
    pub parts: Vec<UnitPart>,
    /// Where units are; the same for all spaces of a domain.
    pub map: Arc<UnitMap>,
}

impl Units {
    /// Units of a domain that are dealt by the hash.
    pub fn new(domain: &str, parts: &[UnitPart]) -> Units {
        Units { domain: domain.to_owned(), parts: parts.to_vec(), map: Arc::default() }
    }

    /// The same, placed by a map.
    #[must_use]
    pub fn placed(self, map: Arc<UnitMap>) -> Units {
        Units { map, ..self }
    }

    /// The unit that a key belongs to: its leading parts, or all of a key that is shorter.
    pub fn unit_of<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let mut end = 0;
        for part in &self.parts {
            end += match part {
                UnitPart::Fixed(bytes) => usize::from(*bytes),
                UnitPart::Text => text_bytes(key.get(end..).unwrap_or_default()),
            };
        }
        key.get(..end).unwrap_or(key)
    }

    /// The unit that all keys of `[lo, hi)` belong to, if there is one.
    pub(super) fn unit_of_range<'k>(
        &self,
        lo: &'k SmallBytes,
        hi: Option<&SmallBytes>,
    ) -> Option<&'k [u8]> {
        let unit = self.unit_of(lo.as_slice());
        let is_whole = self.is_whole(unit);
        let end = SmallBytes::new(unit).prefix_end();
        let within = match (hi, end) {
            (_, None) => true,
            (Some(hi), Some(end)) => *hi <= end,
            (None, Some(_)) => false,
        };
        (is_whole && within).then_some(unit)
    }

    /// Whether these bytes are all parts of a unit.
    fn is_whole(&self, unit: &[u8]) -> bool {
        let mut left = unit;
        for part in &self.parts {
            let bytes = match part {
                UnitPart::Fixed(bytes) => usize::from(*bytes),
                UnitPart::Text if !left.windows(2).any(|pair| pair == [0, 0]) => return false,
                UnitPart::Text => text_bytes(left),
            };
            let Some(rest) = left.get(bytes..) else { return false };
            left = rest;
        }
        left.is_empty()
    }
}

/// How long a byte string at the front of a key is, its end included. Zeroes within it are followed
/// by another byte than zero.
fn text_bytes(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (0, Some(0)) => return at + 2,
            (0, _) => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.map.ranges.len();
        write!(f, "by units `{}` of {} parts, {named} placed", self.domain, self.parts.len())
    }
}

impl Wire for UnitPart {
    const LEAST_BYTES: usize = 1;

    /// A number's width, or 0 for text.
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            UnitPart::Fixed(bytes) => bytes.encode(out),
            UnitPart::Text => 0_u8.encode(out),
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<UnitPart, WireError> {
        Ok(match u8::decode(input)? {
            0 => UnitPart::Text,
            bytes => UnitPart::Fixed(bytes),
        })
    }
}

impl Wire for Units {
    const LEAST_BYTES: usize = 2 * u32::LEAST_BYTES + UnitMap::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        self.domain.encode(out);
        self.parts.encode(out);
        self.map.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Units, WireError> {
        let (domain, parts) = (Wire::decode(input)?, Wire::decode(input)?);
        Ok(Units { domain, parts, map: Arc::new(Wire::decode(input)?) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(bytes: &[u8]) -> SmallBytes {
        SmallBytes::new(bytes)
    }

    #[test]
    fn a_unit_is_the_leading_parts_of_a_key() {
        let numbers = Units::new("warehouse", &[UnitPart::Fixed(4)]);
        assert_eq!(numbers.unit_of(&[0, 0, 0, 7, 3]), [0, 0, 0, 7]);
        assert_eq!(numbers.unit_of(&[0, 0]), [0, 0]);
        let names = Units::new("user", &[UnitPart::Text, UnitPart::Fixed(1)]);
        assert_eq!(names.unit_of(b"a\0\xffb\0\0\x05rest"), b"a\0\xffb\0\0\x05");
        assert_eq!(names.unit_of(b"ab"), b"ab");
    }

    #[test]
    fn a_range_of_one_unit_is_known_by_its_ends() {
        let units = Units::new("warehouse", &[UnitPart::Fixed(2)]);
        let of = |lo: &[u8], hi: Option<&[u8]>| {
            units.unit_of_range(&key(lo), hi.map(key).as_ref()).map(<[u8]>::to_vec)
        };
        assert_eq!(of(&[0, 7, 1], Some(&[0, 7, 9])), Some(vec![0, 7]));
        assert_eq!(of(&[0, 7], Some(&[0, 8])), Some(vec![0, 7]));
        assert_eq!(of(&[0, 7], Some(&[0, 8, 0])), None);
        assert_eq!(of(&[0], Some(&[0, 1])), None);
        assert_eq!(of(&[0, 7], None), None);
        assert_eq!(of(&[255, 255], None), Some(vec![255, 255]));
    }

    #[test]
    fn maps_name_units_by_ranges_and_nothing_twice() {
        let range = |first: u8, last: u8, partition| UnitRange {
            first: key(&[first]),
            last: key(&[last]),
            partition,
        };
        let map = UnitMap::new(3, vec![range(5, 9, 1), range(1, 3, 0)]);
        assert!(map.is_sound(2) && !map.is_sound(1));
        let of = |unit: u8| map.partition(&[unit]);
        assert_eq!(
            [of(0), of(1), of(3), of(4), of(9), of(10)].map(|it| it.map_or(9, |it| it)),
            [9, 0, 0, 9, 1, 9]
        );
        assert!(!UnitMap::new(0, vec![range(1, 5, 0), range(5, 9, 0)]).is_sound(2));
        assert!(!UnitMap::new(0, vec![range(5, 1, 0)]).is_sound(2));
    }

    proptest! {
        #[test]
        fn units_and_ranges_of_any_bytes_are_prefixes(
            bytes: Vec<u8>, hi: Vec<u8>, widths in prop::collection::vec(0u8..4, 0..4),
        ) {
            let part = |bytes: &u8| match bytes { 0 => UnitPart::Text, it => UnitPart::Fixed(*it) };
            let units = Units::new("any", &widths.iter().map(part).collect::<Vec<_>>());
            prop_assert!(bytes.starts_with(units.unit_of(&bytes)));
            let (lo, hi) = (key(&bytes), key(&hi));
            if let Some(unit) = units.unit_of_range(&lo, Some(&hi)) && lo < hi {
                prop_assert_eq!(units.unit_of(lo.as_slice()), unit);
            }
            let mut out = Vec::new();
            units.encode(&mut out);
            prop_assert_eq!(Units::decode_all(&out), Ok(units));
        }
    }
}
