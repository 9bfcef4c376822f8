//! The rules of GMU.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use crate::two_phase;

breakable! {
    /// What GMU keeps to beside its family's rules. Each protects it alone.
    enum GmuSwitch {
        /// A read waits until the repository has applied everything that its reader depends on.
        ReadsWait = "reads_wait",
        /// So does a read on the coordinator's own node; as printed, only remote ones do.
        LocalReadsWait = "local_reads_wait",
        /// A version is visible if its writer's whole vector is, as far as the reader has read; as
        /// printed, by its number at this repository alone.
        FilterByVectors = "filter_by_vectors",
        /// What is visible, and what was committed last, are pointwise maxima; else the vector of
        /// the last commit in the log's order.
        Pointwise = "pointwise",
        /// A read is current if its version is the newest one; as printed, if the newest one's
        /// number is not above the reader's entry.
        ExactValidation = "exact_validation",
        /// A final number is above every owner's and nobody else's; as printed, it is the largest
        /// proposed, and ties go by transaction.
        UniqueNumbers = "unique_numbers",
        /// A vote has all that was committed at the repository, so that the commit vector does.
        MergeVotes = "merge_votes",
        /// A read waits for a number while a commit is queued below it. Otherwise it waits until
        /// that number was applied, which never is one that a client has made up.
        WaitsForQueued = "waits_for_queued",
        /// Of first reads made side by side, those count alone that would have been the same one
        /// after the other.
        FitsSideBySide = "fits_side_by_side",
    }
}

/// What the paper prints differently: corrections of this implementation are left out.
const PRINTED: [GmuSwitch; 5] = [
    GmuSwitch::LocalReadsWait,
    GmuSwitch::FilterByVectors,
    GmuSwitch::Pointwise,
    GmuSwitch::ExactValidation,
    GmuSwitch::UniqueNumbers,
];

/// What a user chooses. The default is the protocol as it should be; what the paper prints is
/// [`Switches::printed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The family's choices.
    pub family: two_phase::Switches,
    broken: Broken<GmuSwitch>,
}

impl Switches {
    /// The algorithm as the paper prints it.
    pub fn printed() -> Switches {
        PRINTED.into_iter().fold(Switches::default(), Sabotage::without)
    }

    /// The same with other choices of the family.
    #[must_use]
    pub fn with_family(self, family: two_phase::Switches) -> Switches {
        Switches { family, ..self }
    }

    /// Whether a rule holds.
    #[inline]
    pub(super) fn keeps(&self, switch: GmuSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<GmuSwitch> for Switches {
    fn set(&mut self, switch: GmuSwitch, holds: bool) {
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
