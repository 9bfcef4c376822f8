//! What interactive transactions look at: keys and ranges, a page of them for each request, and at
//! their end whether ranges are as they were seen.
//!
//! The parts of a request are about different partitions of one space, whose keys lie between each
//! other. So a range is walked once for all of them, and the page counts every entry that is
//! progress at, whoever wants it: how long a repository is busy with a request does not depend on
//! how the keys are dealt to partitions.

use std::collections::BTreeMap;

use muesli_core::parts::transaction::TransactionSets;
use muesli_core::ranges::KeyRange;
use muesli_core::{Catalog, Limits, SmallBytes, SpaceId, Timestamp};

use super::read_set::note_read;
use crate::granola::message::{FoundVersion, Part, Request, SeenRange, Task};
use crate::granola::participant::Participant;
use crate::sight::Sight;

/// Rows of a partition, in ascending order.
type Rows = Vec<(SmallBytes, FoundVersion)>;

/// Of each partition the newest version that a range holds, and how many keys.
pub(in super::super) type RangeContent = BTreeMap<u16, (Timestamp, u64)>;

/// What the parts of a request have progress at so far: one page is for all of them.
#[derive(Debug, Default)]
pub(in super::super) struct ReadProgress {
    entries: usize,
    bytes: usize,
    /// The last scan, for the other parts that ask for the same.
    scan: Option<StoreScan>,
    /// By range: of each partition the newest version, and how many keys it holds.
    ranges: BTreeMap<KeyRange, RangeContent>,
}

/// What a scan found.
#[derive(Debug)]
struct StoreScan {
    task: Task,
    rows: BTreeMap<u16, Rows>,
    /// The last key that was progress at, if the range has more.
    seen_to: Option<SmallBytes>,
}

impl ReadProgress {
    /// Whether the page is full. The first entry is always progress at.
    fn is_full(&self, limits: &Limits) -> bool {
        self.entries >= limits.page_rows || self.bytes >= limits.page_bytes
    }
}

impl Participant {
    /// Reads keys, or the first ones, where more would be too much for one answer.
    pub(in super::super) fn read_keys(
        &self,
        keys: &[(SpaceId, SmallBytes)],
        progress: &mut ReadProgress,
        sets: &mut TransactionSets,
        cx: Sight<'_>,
    ) -> Vec<FoundVersion> {
        let limits = &cx.settings.limits;
        let mut all = Vec::with_capacity(keys.len().min(limits.page_rows));
        for (space, key) in keys {
            if progress.is_full(limits) {
                break;
            }
            let found = self.found(*space, key);
            let (handle, _) = self.newest(*space, key);
            progress.entries += 1;
            progress.bytes += found.value.as_ref().map_or(0, SmallBytes::len);
            note_read(sets, *space, key.clone(), handle, found.version);
            all.push(found);
        }
        assert!(all.len() <= limits.page_rows, "a page of {} keys", all.len());
        all
    }

    /// The rows of a part that scans, and the last key that was progress at, if the range has more.
    pub(in super::super) fn read_range(
        &self,
        (request, part): (&Request, &Part),
        progress: &mut ReadProgress,
        sets: &mut TransactionSets,
        cx: Sight<'_>,
    ) -> (Rows, Option<SmallBytes>) {
        let is_known = progress.scan.as_ref().is_some_and(|scan| scan.task == part.task);
        if !is_known && let Task::Scan { range, .. } = &part.task {
            sets.scans.push(range.clone());
            let scan = self.scan_for_all((request, &part.task), progress, cx);
            progress.scan = Some(scan);
        }
        let Some(scan) = &mut progress.scan else { return (Rows::new(), None) };
        (scan.rows.remove(&part.partition).unwrap_or_default(), scan.seen_to.clone())
    }

    /// Scans for all parts of a request that ask for the same.
    fn scan_for_all(
        &self,
        (request, task): (&Request, &Task),
        progress: &mut ReadProgress,
        cx: Sight<'_>,
    ) -> StoreScan {
        let mut scan = StoreScan { task: task.clone(), rows: BTreeMap::new(), seen_to: None };
        let Task::Scan { range, reverse, limit } = task else { return scan };
        let Some(store) = self.spaces.get(range.space) else { return scan };
        let same = request.parts.iter().filter(|part| part.task == *task);
        let held = same.filter(|part| part.is_held_by(self.id, cx.catalog));
        scan.rows = held.map(|part| (part.partition, Rows::new())).collect();
        let mut entries = store.range(&range.lo, range.hi.as_ref());
        let (mut last, mut live) = (None, 0);
        loop {
            let next = if *reverse { entries.next_back() } else { entries.next() };
            let Some((key, handle)) = next else {
                last = None;
                break;
            };
            let is_enough = live >= *limit || progress.is_full(&cx.settings.limits);
            if is_enough && last.is_some() {
                break;
            }
            last = Some(key);
            progress.entries += 1;
            let Some(rows) = scan.rows.get_mut(&cx.catalog.partition(range.space, key)) else {
                continue;
            };
            let version = store.newest(handle);
            live += u64::from(version.value.is_some());
            progress.bytes += key.len() + version.value.map_or(0, SmallBytes::len);
            let (value, collected) = (version.value.cloned(), Timestamp::ZERO);
            rows.push((key.clone(), FoundVersion { version: version.at, value, collected }));
        }
        scan.seen_to = last.cloned();
        if *reverse {
            scan.rows.values_mut().for_each(|rows| rows.reverse());
        }
        self.add_collected(&range.seen(*reverse, scan.seen_to.as_ref()), &mut scan.rows, cx);
        scan
    }

    /// For histories: the collected deletions of what was seen of a range, where nothing is now.
    fn add_collected(&self, seen: &KeyRange, all: &mut BTreeMap<u16, Rows>, cx: Sight<'_>) {
        let Some(store) = self.spaces.get(seen.space) else { return };
        let mut noted: BTreeMap<u16, Rows> = BTreeMap::new();
        for (key, collected) in store.collected_in(&seen.lo, seen.hi.as_ref(), Timestamp::MAX) {
            let partition = cx.catalog.partition(seen.space, key);
            let Some(rows) = all.get(&partition) else { continue };
            if rows.binary_search_by(|row| row.0.cmp(key)).is_err() {
                let found = FoundVersion { version: Timestamp::ZERO, value: None, collected };
                noted.entry(partition).or_default().push((key.clone(), found));
            }
        }
        for (partition, noted) in noted {
            let Some(rows) = all.get_mut(&partition) else { continue };
            rows.extend(noted);
            rows.sort_by(|one, other| one.0.cmp(&other.0));
        }
    }

    /// Whether a range is as it was seen. Nothing later is in it, so whatever is there now was
    /// there then; and as many keys are, so that none was deleted and its tombstone removed since.
    pub(in super::super) fn is_unchanged(
        &self,
        (request, partition): (&Request, u16),
        seen: &SeenRange,
        progress: &mut ReadProgress,
        cx: Sight<'_>,
    ) -> bool {
        let Some(store) = self.spaces.get(seen.range.space) else { return seen.live == 0 };
        if request.parts.len() > 1 {
            // The other parts have most likely seen the same pages.
            let range = progress.ranges.entry(seen.range.clone());
            let range = range.or_insert_with(|| {
                let mut steps = u64::MAX;
                self.walk_range(&seen.range, &mut steps, cx.catalog).unwrap_or_default()
            });
            return seen.is_what_is_there(range.get(&partition));
        }
        let entries = store.range(&seen.range.lo, seen.range.hi.as_ref());
        let of = |key: &SmallBytes| cx.catalog.partition(seen.range.space, key);
        let mut live = 0;
        for (_, handle) in entries.filter(|(key, _)| of(key) == partition) {
            let version = store.newest(handle);
            if version.at > seen.at {
                return false;
            }
            live += u64::from(version.value.is_some());
        }
        live == seen.live
    }

    /// What a range holds now, by partition; nothing: it has more entries than steps are left.
    pub(in super::super) fn walk_range(
        &self,
        range: &KeyRange,
        steps: &mut u64,
        catalog: &Catalog,
    ) -> Option<RangeContent> {
        let mut all = RangeContent::new();
        let Some(store) = self.spaces.get(range.space) else { return Some(all) };
        for (key, handle) in store.range(&range.lo, range.hi.as_ref()) {
            *steps = steps.checked_sub(1)?;
            let of = catalog.partition(range.space, key);
            let (version, (newest, live)) = (store.newest(handle), all.entry(of).or_default());
            *newest = version.at.max(*newest);
            *live += u64::from(version.value.is_some());
        }
        Some(all)
    }
}

impl SeenRange {
    /// Whether its partition holds of it now what it did then.
    pub(in super::super) fn is_what_is_there(&self, now: Option<&(Timestamp, u64)>) -> bool {
        let (newest, live) = now.copied().unwrap_or_default();
        newest <= self.at && live == self.live
    }
}
