//! The rules of Bumper.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use crate::two_phase;

breakable! {
    /// What Bumper keeps to beside its family's rules. Each protects it alone, except for
    /// [`BumperSwitch::LowerBoundsAtWatermark`].
    enum BumperSwitch {
        /// The first condition of that.
        AloneTimeWarped = "alone_in_the_past",
        /// The second one: it lies below what it proposed where it has them.
        BelowProposals = "below_proposals",
        /// Reads leave read timestamps.
        ReadTimestampsKept = "read_timestamps_kept",
        /// An update that must lie in the past aborts where somebody has read there what it writes.
        Triads = "triads",
        /// It lies before the *earliest* of the versions that it missed.
        BeforeTheEarliest = "before_the_earliest",
        /// A read waits for a lock whose holder may yet lie in the past. Broken, it waits for
        /// holders proposed inside its snapshot only, as SCORe's do.
        ReadsWaitForTimeWarped = "reads_wait_for_the_past",
        /// Correction 1: read timestamps tell readers apart. Broken, a key has one pair of read
        /// timestamp and reader, and a transaction that read the key itself hides who read it
        /// before.
        DistinctReaders = "distinct_readers",
        /// Correction 2: a read timestamp is at least the reader's snapshot. Broken, it is the
        /// repository's clock.
        ReadTimestampsReachSnapshot = "read_timestamps_reach_snapshot",
        /// Correction 3: updates that commit leave read timestamps on what they read with where
        /// they lie.
        UpdatesSetReadTimestamps = "updates_set_read_timestamps",
        /// Nobody writes at or below the watermark, where deletions and read timestamps may be
        /// forgotten. Alone it matters only for keys that an update writes at a repository where it
        /// read nothing: where it read, a snapshot below the watermark is refused, and what it
        /// missed lies above its snapshot (the family's `judged_by_snapshot`).
        LowerBoundsAtWatermark = "lower_bounds_at_watermark",
    }
}

/// The corrections of this implementation, which the paper does not have.
const CORRECTIONS: [BumperSwitch; 3] = [
    BumperSwitch::DistinctReaders,
    BumperSwitch::ReadTimestampsReachSnapshot,
    BumperSwitch::UpdatesSetReadTimestamps,
];

/// Which updates may be time-warped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TimeWarping {
    /// None: an update whose read is stale aborts.
    Off,
    /// Those whose serialization timestamp fits: timestamps are compared, which is exact.
    #[default]
    ByTimestamps,
    /// As printed: a read timestamp at or above an update's snapshot keeps it from committing
    /// earlier, wherever it would lie, and who missed a time-warped version aborts.
    ByFlags,
}

/// Which actions are delayed until the commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Delaying {
    /// None.
    Off,
    /// Those that need not be done before the commit. As in the paper, their transaction aborts if
    /// it missed something.
    #[default]
    Applied,
    /// The same, and their transaction may be time-warped where nobody else has any on their keys.
    TimeWarped,
}

/// What a user chooses. The default is both mechanisms, corrected; what the paper prints is
/// [`Switches::printed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The family's choices.
    pub family: two_phase::Switches,
    pub(super) time_warping: TimeWarping,
    pub(super) delaying: Delaying,
    broken: Broken<BumperSwitch>,
}

impl Switches {
    /// Time-warping alone.
    pub fn time_warping() -> Switches {
        Switches { delaying: Delaying::Off, ..Switches::default() }
    }

    /// Delayed actions alone.
    pub fn delaying() -> Switches {
        Switches { time_warping: TimeWarping::Off, ..Switches::default() }
    }

    /// Both, for one transaction too.
    pub fn reconciled() -> Switches {
        Switches { delaying: Delaying::TimeWarped, ..Switches::default() }
    }

    /// Both, and prepares wait for whatever lock they meet.
    pub fn waiting() -> Switches {
        Switches { family: two_phase::Switches::waiting(), ..Switches::default() }
    }

    /// As the paper prints it. It is not serializable.
    pub fn printed() -> Switches {
        let printed = Switches { time_warping: TimeWarping::ByFlags, ..Switches::default() };
        CORRECTIONS.into_iter().fold(printed, Sabotage::without)
    }

    /// Whether an update whose read is stale may commit before its turn.
    #[inline]
    pub(super) fn time_warps(&self) -> bool {
        self.time_warping != TimeWarping::Off
    }

    /// Whether that is decided as the paper prints it.
    #[inline]
    pub(super) fn by_flags(&self) -> bool {
        self.time_warping == TimeWarping::ByFlags
    }

    /// The same with other choices of the family.
    #[must_use]
    pub fn with_family(self, family: two_phase::Switches) -> Switches {
        Switches { family, ..self }
    }

    /// Whether a rule holds.
    #[inline]
    pub(super) fn keeps(&self, switch: BumperSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<BumperSwitch> for Switches {
    fn set(&mut self, switch: BumperSwitch, holds: bool) {
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
