//! What transactions have read, for whoever waits for a change of it.

use std::collections::BTreeSet;

use muesli_core::{Scan, SmallBytes, SpaceId};

/// What was read: keys and ranges of them.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadNotes {
    keys: BTreeSet<(SpaceId, SmallBytes)>,
    scans: Vec<Scan>,
}

impl ReadNotes {
    /// These were read as well.
    pub fn add(&mut self, mut keys: BTreeSet<(SpaceId, SmallBytes)>, scans: Vec<Scan>) {
        self.keys.append(&mut keys);
        for scan in scans {
            if !self.scans.contains(&scan) {
                self.scans.push(scan);
            }
        }
    }

    /// So was this.
    pub fn append(&mut self, other: ReadNotes) {
        self.add(other.keys, other.scans);
    }

    /// Whether all of that was read.
    pub fn covers(&self, other: &ReadNotes) -> bool {
        let scans = other.scans.iter().all(|scan| self.scans.contains(scan));
        scans && other.keys.is_subset(&self.keys)
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.scans.is_empty()
    }

    pub fn keys(&self) -> &BTreeSet<(SpaceId, SmallBytes)> {
        &self.keys
    }

    pub fn scans(&self) -> &[Scan] {
        &self.scans
    }
}
