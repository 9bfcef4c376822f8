//! How much the partitions of a node hold, counted a bounded step at a time.

use std::collections::BTreeMap;

use crate::wire_struct;

/// At most so many slots of stores are looked at in a step. A step counts no more partitions.
pub const SIZE_STEP_SLOTS: u32 = 4_096;

/// Where counting goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeCursor {
    /// Which of the node's repositories, counted from 0.
    pub repository: u16,
    /// The space.
    pub space: u16,
    /// The slot of its store.
    pub slot: u32,
}

wire_struct!(SizeCursor { repository: u16, space: u16, slot: u32 });

/// What was counted of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionSize {
    /// The partition.
    pub partition: u16,
    /// Its rows.
    pub rows: u64,
    /// Bytes of their keys and newest values.
    pub bytes: u64,
}

wire_struct!(PartitionSize { partition: u16, rows: u64, bytes: u64 });

/// A step of counting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizePage {
    /// The partitions that were met, by their numbers.
    pub sizes: Vec<PartitionSize>,
    /// Where to go on; `None`: all has been counted.
    pub next: Option<SizeCursor>,
}

wire_struct!(SizePage { sizes: Vec<PartitionSize>, next: Option<SizeCursor> });

/// Sizes as they are added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionSizes(BTreeMap<u16, (u64, u64)>);

impl PartitionSizes {
    /// Adds a row of so many bytes.
    pub fn add(&mut self, partition: u16, bytes: u64) {
        let (rows, all) = self.0.entry(partition).or_default();
        (*rows, *all) = (*rows + 1, *all + bytes);
    }

    /// All of them, by the numbers of the partitions.
    pub fn into_list(self) -> Vec<PartitionSize> {
        let size = |(partition, (rows, bytes))| PartitionSize { partition, rows, bytes };
        self.0.into_iter().map(size).collect()
    }
}
