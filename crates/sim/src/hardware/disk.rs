//! The disk of a node: an append-only log with group commit.
//!
//! Records are appended at once and become *stable* by a sync. One sync of a disk is under way at
//! a time; it covers everything appended before it began, and the next covers all that came
//! meanwhile, so that batches grow with load. Where the "disk" stands for replicas elsewhere, many
//! batches are on their way at once ([`DiskSpeed::at_once`]). A crash keeps every stable record,
//! and of the others a prefix that the seed chooses: the operating system may have written some of
//! them on its own account, but the log is read up to the first gap, so there is never one.

use std::collections::VecDeque;

use crate::hardware::costs::Costs;
use crate::latency::Latency;
use crate::random::Random;
use crate::time::{Span, VirtualTime};

/// How fast a disk is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskSpeed {
    /// A sync, whatever it writes.
    pub sync: Latency,
    /// Bytes a second of what a sync writes; zero means without limit.
    pub bandwidth: u64,
    /// So many syncs may be under way at a time; they end in the order in which they began.
    pub at_once: usize,
}

impl Default for DiskSpeed {
    /// A local solid-state disk: a sync takes what was measured, half of them longer, and writes
    /// 1 GB a second.
    fn default() -> Self {
        let sync =
            Latency::LogNormal { median: Costs::measured().sync, partitions_per_repository: 1.3 };
        DiskSpeed { sync, bandwidth: 1_000_000_000, at_once: 1 }
    }
}

/// A checkpoint on a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// How many records of the log it stands for.
    pub covers: usize,
    /// Its pieces, in order.
    pub pieces: Vec<Vec<u8>>,
}

/// One node's log of records `R`, and the checkpoint beside it.
#[derive(Debug)]
pub struct Disk<R> {
    /// Those after the checkpoint.
    records: Vec<R>,
    checkpoint: Option<StoredCheckpoint>,
    /// How many records were appended and not lost.
    appended: usize,
    /// Whether the records themselves are kept, and not only their number.
    keeps: bool,
    /// How many records are stable.
    stable: usize,
    /// How many records each sync under way will have made stable, and when the last of them ends.
    syncing: VecDeque<usize>,
    ends_at: VirtualTime,
    /// Bytes appended since the last sync began, and when the last of them was.
    unsynced_bytes: u64,
    appended_at: VirtualTime,
    speed: DiskSpeed,
    slowdown: u64,
    random: Random,
}

impl<R> Disk<R> {
    /// An empty disk. Chances are drawn from `random`.
    pub fn new(speed: DiskSpeed, random: Random) -> Self {
        Disk {
            records: Vec::new(),
            checkpoint: None,
            appended: 0,
            keeps: true,
            stable: 0,
            syncing: VecDeque::new(),
            ends_at: VirtualTime::ZERO,
            unsynced_bytes: 0,
            appended_at: VirtualTime::ZERO,
            speed,
            slowdown: 1,
            random,
        }
    }

    /// From now on only the number of records is kept: enough where nobody will read them, and
    /// much less memory. Such a disk must not crash.
    pub fn keep_nothing(&mut self) {
        self.keeps = false;
        self.records.clear();
    }

    /// Appends a record of `bytes` bytes at `now`.
    pub fn append(&mut self, now: VirtualTime, record: R, bytes: u64) {
        self.appended += 1;
        if self.keeps {
            self.records.push(record);
        }
        self.unsynced_bytes += bytes;
        self.appended_at = self.appended_at.max(now);
    }

    /// Begins a sync if one more may be under way and something was appended since the last began.
    /// Returns when it ends, which is when to call [`finish_sync`](Self::finish_sync).
    pub fn start_sync(&mut self, now: VirtualTime) -> Option<VirtualTime> {
        let begun = self.syncing.back().copied().unwrap_or(self.stable);
        if self.syncing.len() >= self.speed.at_once.max(1) || begun == self.appended {
            return None;
        }
        self.syncing.push_back(self.appended);
        let bytes = std::mem::take(&mut self.unsynced_bytes).saturating_mul(1_000_000_000);
        let writing = Span::from_nanos(bytes.checked_div(self.speed.bandwidth).unwrap_or(0));
        let length = (self.speed.sync.draw(&mut self.random) + writing).times(self.slowdown);
        self.ends_at = self.ends_at.max(now.max(self.appended_at) + length);
        Some(self.ends_at)
    }

    /// Ends the sync that began first. Returns how many records are stable now.
    pub fn finish_sync(&mut self) -> usize {
        self.stable = self.syncing.pop_front().unwrap_or(self.stable);
        self.stable
    }

    /// How many records are stable.
    pub fn stable(&self) -> usize {
        self.stable
    }

    /// Whether everything appended is stable.
    pub fn is_settled(&self) -> bool {
        self.stable == self.appended
    }

    /// The power fails: keeps the stable records and perhaps some that followed them.
    ///
    /// # Panics
    /// If the disk was told to keep nothing.
    pub fn crash(&mut self) {
        assert!(self.keeps, "a disk that keeps nothing has nothing to come back with");
        let waiting = (self.appended - self.stable) as u64;
        // Nothing and everything are the cases that find faults, so they are not left to luck.
        let kept = match self.random.below(4) {
            0 => 0,
            1 => waiting,
            _ => self.random.between(0, waiting),
        };
        self.stable += kept as usize;
        let dropped = self.dropped();
        self.records.truncate(self.stable - dropped);
        self.appended = self.stable;
        self.syncing.clear();
        (self.ends_at, self.unsynced_bytes) = (VirtualTime::ZERO, 0);
    }

    /// The disk is replaced by an empty one. Its node must have [crashed](Self::crash).
    pub fn lose(&mut self) {
        self.records.clear();
        self.checkpoint = None;
        (self.appended, self.stable) = (0, 0);
    }

    /// From now on a sync takes `factor` times as long; 1 is the usual speed.
    pub fn slow_down(&mut self, factor: u64) {
        self.slowdown = factor.max(1);
    }

    /// Publishes a checkpoint, whole, and drops the records that it stands for.
    ///
    /// # Panics
    /// If these are not all stable, or were dropped before.
    pub fn publish(&mut self, checkpoint: StoredCheckpoint) -> usize {
        assert!(checkpoint.covers <= self.stable, "a checkpoint of records that may be lost");
        let drops = checkpoint.covers - self.dropped();
        if self.keeps {
            drop(self.records.drain(..drops));
        }
        self.checkpoint = Some(checkpoint);
        drops
    }

    /// How many records were dropped for the checkpoint.
    fn dropped(&self) -> usize {
        self.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.covers)
    }

    /// The checkpoint, if there is one.
    pub fn checkpoint(&self) -> Option<&StoredCheckpoint> {
        self.checkpoint.as_ref()
    }

    /// The records after the checkpoint, oldest first; after a crash, those that survived it.
    pub fn records(&self) -> &[R] {
        &self.records
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Seed;

    fn disk_of(seed: u64, at_once: usize) -> Disk<u32> {
        let sync = Latency::Constant(Span::from_nanos(100));
        let speed = DiskSpeed { sync, bandwidth: 1_000_000_000, at_once };
        Disk::new(speed, Seed::new(seed).stream())
    }

    fn disk(seed: u64) -> Disk<u32> {
        disk_of(seed, 1)
    }

    fn at(nanos: u64) -> VirtualTime {
        VirtualTime::from_nanos(nanos)
    }

    #[test]
    fn one_sync_covers_all_that_waited() {
        let mut disk = disk(1);
        disk.append(at(0), 1, 0);
        assert_eq!(disk.start_sync(at(0)), Some(at(100)));
        disk.append(at(10), 2, 20);
        disk.append(at(20), 3, 20);
        assert_eq!(disk.start_sync(at(20)), None);
        assert_eq!(disk.finish_sync(), 1);
        assert_eq!(disk.start_sync(at(100)), Some(at(240)));
        assert_eq!(disk.finish_sync(), 3);
        assert!(disk.is_settled());
        assert_eq!(disk.start_sync(at(240)), None);
    }

    #[test]
    fn replicas_take_batches_while_others_are_under_way() {
        let mut disk = disk_of(1, 2);
        disk.append(at(0), 1, 50);
        assert_eq!(disk.start_sync(at(0)), Some(at(150)));
        assert_eq!(disk.start_sync(at(5)), None, "nothing has come since");
        disk.append(at(10), 2, 0);
        assert_eq!(disk.start_sync(at(10)), Some(at(150)), "in their order");
        disk.append(at(20), 3, 0);
        assert_eq!(disk.start_sync(at(20)), None, "two at a time");
        assert_eq!((disk.finish_sync(), disk.finish_sync()), (1, 2));
        assert_eq!(disk.start_sync(at(150)), Some(at(250)));
        assert_eq!(disk.finish_sync(), 3);
        assert!(disk.is_settled());
    }

    #[test]
    fn a_slow_disk_takes_longer() {
        let mut disk = disk(1);
        disk.slow_down(30);
        disk.append(at(5), 1, 0);
        assert_eq!(disk.start_sync(at(0)), Some(at(3_005)));
    }

    #[test]
    fn crashes_keep_between_nothing_and_everything_that_was_not_stable() {
        let survivors = (0..200).map(|seed| {
            let mut disk = disk(seed);
            (0..4).for_each(|record| disk.append(at(0), record, 1));
            disk.crash();
            disk.records().len()
        });
        let survivors: std::collections::BTreeSet<usize> = survivors.collect();
        assert_eq!(survivors, (0..=4).collect());
    }

    proptest! {
        /// Whatever happens, the log is a prefix of what was appended, with all that was stable.
        #[test]
        fn stable_records_survive_without_gaps(
            seed: u64,
            at_once in 1..4_usize,
            steps in prop::collection::vec(0..8_u8, 1..200),
        ) {
            let (mut disk, mut model, mut synced) = (disk_of(seed, at_once), Vec::new(), 0);
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        disk.crash();
                        model.truncate(disk.records().len());
                        prop_assert!(disk.is_settled());
                    }
                    1 | 2 => drop(disk.start_sync(at(number as u64))),
                    3 => synced = disk.finish_sync(),
                    _ => {
                        disk.append(at(number as u64), number as u32, 1);
                        model.push(number as u32);
                    }
                }
                prop_assert!(disk.records().len() >= synced && disk.stable() >= synced);
                prop_assert_eq!(disk.records(), &model[..]);
            }
        }
    }
}
