//! Finds the last read of a key, for those who look for many.

use super::transaction::{ReadEntry, SEARCHED_LINEARLY, TransactionSets};
use crate::bytes::SmallBytes;
use crate::ids::SpaceId;

/// The reads of a transaction, to be looked up by their keys.
///
/// Invariant: the places are of all reads, in the order of their keys, those of the same key in the
/// order of the reads; or there are none, as few reads are searched from the end.
#[derive(Debug)]
pub struct LastReads<'a> {
    reads: &'a [ReadEntry],
    places: Vec<u32>,
}

impl TransactionSets {
    /// The reads by their keys, as of now.
    pub fn last_reads(&self) -> LastReads<'_> {
        let reads = &self.reads[..];
        let mut places = Vec::new();
        if reads.len() > SEARCHED_LINEARLY {
            places.extend(0..reads.len() as u32);
            places.sort_by_key(|place| key_of(&reads[*place as usize]));
        }
        LastReads { reads, places }
    }
}

impl<'a> LastReads<'a> {
    /// The last read of a key.
    pub fn find(&self, space: SpaceId, key: &SmallBytes) -> Option<&'a ReadEntry> {
        if self.places.is_empty() {
            return self.reads.iter().rev().find(|read| key_of(read) == (space, key));
        }
        assert_eq!(self.places.len(), self.reads.len(), "places of reads");
        let read = |place: &u32| &self.reads[*place as usize];
        let after = self.places.partition_point(|place| key_of(read(place)) <= (space, key));
        let last = self.places[..after].last().map(read);
        last.filter(|last| key_of(last) == (space, key))
    }
}

fn key_of(read: &ReadEntry) -> (SpaceId, &SmallBytes) {
    (read.space, &read.key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::{RepositoryId, Timestamp};
    use crate::parts::versions::Handle;

    proptest! {
        #[test]
        fn the_last_read_of_a_key_is_found(keys in prop::collection::vec(0u8..40, 0..80)) {
            let read = |(place, key): (usize, &u8)| ReadEntry {
                space: SpaceId(u16::from(key % 2)),
                repository: RepositoryId(0),
                handle: Handle::NONE,
                key: SmallBytes::new(&[key / 2]),
                version: Timestamp(place as u64 + 1),
            };
            let reads = keys.iter().enumerate().map(read).collect();
            let sets = TransactionSets { reads, ..TransactionSets::default() };
            let found = sets.last_reads();
            for key in 0..41u8 {
                let version = keys.iter().rposition(|it| *it == key).map(|it| it as u64 + 1);
                let read = found.find(SpaceId(u16::from(key % 2)), &SmallBytes::new(&[key / 2]));
                prop_assert_eq!(read.map(|read| read.version.0), version);
            }
        }
    }
}
