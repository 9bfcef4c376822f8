//! What transactions on counters did and were shown, as their roots record it.
//!
//! What delayed adds leave is told after the commit, by others, and is not recorded: that they were
//! made is.

use muesli_check::abstract_operations::AbstractOperation;

use super::open::PhaseWatcher;
use super::{CounterPhase, Counters};
use crate::nesting::roots::{RecordsRoots, RootCall, RootRecorder};

/// The phases of a transaction, as a root records them.
#[derive(Debug)]
pub(super) struct PhaseRecorder<'a> {
    pub(super) root: &'a RootCall<'a>,
    pub(super) phases: &'a [CounterPhase; 3],
    /// Which groups they are on.
    pub(super) groups: [usize; 3],
}

impl PhaseWatcher for PhaseRecorder<'_> {
    fn begin_attempt(&self) {
        self.root.begin_attempt();
    }

    fn done(&self, group: usize, shown: &[i64]) {
        let CounterPhase { counters, amount } = &self.phases[group];
        for (place, counter) in counters.iter().enumerate() {
            let counter = number(self.groups[group], *counter);
            self.root.did(match amount {
                Some(by) => AbstractOperation::Increase { counter, by: *by },
                None => AbstractOperation::Read { counter, value: shown[place] },
            });
        }
    }
}

/// The name of a counter of a group.
pub(super) fn name(group: usize, number: u64) -> String {
    format!("{group}/{number}")
}

/// A counter of a group, as one number.
pub(super) fn number(group: usize, counter: usize) -> u64 {
    (group as u64) << 32 | counter as u64
}

impl RecordsRoots for Counters {
    fn recorder(&self) -> &RootRecorder {
        &self.roots
    }

    /// Absent counters show zero.
    fn start(&self) -> Vec<AbstractOperation> {
        Vec::new()
    }

    fn object(&self, number: u64) -> String {
        name((number >> 32) as usize, number & u64::from(u32::MAX))
    }
}
