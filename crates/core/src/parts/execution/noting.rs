//! What a procedure has read, for its validation and for histories.

use std::collections::BTreeMap;

use super::Execution;
use crate::bytes::SmallBytes;
use crate::ids::{RepositoryId, SpaceId, Timestamp};
use crate::parts::transaction::ReadEntry;
use crate::parts::versions::{Handle, Version};
use crate::ranges::KeyRange;
use crate::recorder::value_hash;

impl Execution<'_> {
    pub(super) fn note_read(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        handle: Option<Handle>,
        version: Timestamp,
    ) {
        self.sets.reads.push(ReadEntry {
            space,
            repository: RepositoryId(self.partition),
            handle: handle.unwrap_or(Handle::NONE),
            key: key.clone(),
            version,
        });
    }

    /// Notes a range as far as it was seen.
    pub(super) fn note_scan(&mut self, seen: KeyRange, rows: &[(SmallBytes, Version<'_>)]) {
        if self.recording {
            self.record_scan(&seen, rows);
        }
        self.sets.scans.push(seen);
    }

    fn record_scan(&mut self, seen: &KeyRange, rows: &[(SmallBytes, Version<'_>)]) {
        let KeyRange { space, lo, hi } = seen;
        let mine = |key: &SmallBytes| self.is_readable(self.catalog.partition(*space, key));
        let store = self.spaces.get(*space).into_iter();
        let absent = store.flat_map(|it| it.collected_in(lo, hi.as_ref(), Timestamp::MAX));
        let absent = absent.filter(|(key, _)| mine(key));
        let absent = absent.map(|(key, at)| (key.clone(), (at, None)));
        let mut noted: BTreeMap<_, (Timestamp, Option<&SmallBytes>)> = absent.collect();
        noted.extend(rows.iter().map(|(key, found)| (key.clone(), (found.at, found.value))));
        noted.retain(|key, _| seen.contains(*space, key) && self.sets.own(*space, key).is_none());
        let mut partitions = self.catalog.partitions_of_range(*space, lo, hi.as_ref());
        let is_whole = partitions.all(|partition| self.is_readable(partition));
        let operations = &mut self.sets.operations;
        if is_whole {
            let row = |(key, (at, value)): (_, (_, Option<&SmallBytes>))| {
                (key, at, value.map(value_hash))
            };
            let rows: Vec<_> = noted.into_iter().map(row).collect();
            operations.scan(*space, lo, hi.as_ref(), rows.into_iter());
        } else {
            // The range goes on elsewhere, where this procedure does not see it.
            for (key, (at, value)) in noted {
                operations.read(*space, &key, at, value);
            }
        }
    }
}
