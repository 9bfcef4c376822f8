//! The rules of hierarchical validation by timestamps.

use crate::sabotage::{Broken, Sabotage, breakable};
use crate::two_phase;

breakable! {
    /// What the protocol keeps to beside its family's rules.
    enum HierarchySwitch {
        /// Who writes what an undecided update has read is put above the interval of that read.
        WritersAboveIntervals = "writers_above_intervals",
    }
}

/// What a user chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The family's choices.
    pub family: two_phase::Switches,
    broken: Broken<HierarchySwitch>,
}

impl Switches {
    /// Whether a rule holds: it does, unless a test broke it.
    #[inline]
    pub(super) fn keeps(&self, switch: HierarchySwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<HierarchySwitch> for Switches {
    fn set(&mut self, switch: HierarchySwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}

impl AsRef<two_phase::Switches> for Switches {
    #[inline]
    fn as_ref(&self) -> &two_phase::Switches {
        &self.family
    }
}

#[cfg(feature = "sabotage")]
impl Sabotage<two_phase::FamilySwitch> for Switches {
    fn set(&mut self, switch: two_phase::FamilySwitch, holds: bool) {
        self.family.set(switch, holds);
    }
}
