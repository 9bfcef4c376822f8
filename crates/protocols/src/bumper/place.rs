//! What votes tell of an update, and where they put it.
//!
//! An update has two timestamps. Its *turn* is when it is applied: the largest proposal, as in
//! SCORe (the paper's tsC). Its *version* is where it lies in the serial order, and what its
//! writes are tagged with (tsW): its turn, or, where it missed versions that others wrote, the
//! earliest of those, before whose writer it then lies.

use std::fmt;

use muesli_core::{Abort, Decision, Timestamp, wire_struct};

use crate::two_phase::CommitPlace;

/// A vote of yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeWarpVote {
    /// The turn proposed.
    pub apply_order: Timestamp,
    /// The earliest version that it should have read and did not; [`Timestamp::MAX`] if none.
    pub missed: Timestamp,
    /// Where it may not lie, nor before: something that it writes was written or read there;
    /// [`Timestamp::MAX`] if it has delayed actions, which are of the present.
    pub lower_bound: Timestamp,
    /// Where it may not lie in the past, nor after: others may run delayed actions there on what it
    /// changes by one; [`Timestamp::MAX`] if none.
    pub upper_bound: Timestamp,
}

wire_struct!(TimeWarpVote {
    apply_order: Timestamp,
    missed: Timestamp,
    lower_bound: Timestamp,
    upper_bound: Timestamp
});

/// Where a committed update lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BumperPlace {
    /// When it is applied.
    pub apply_order: Timestamp,
    /// What its writes are tagged with.
    pub version: Timestamp,
}

wire_struct!(BumperPlace { apply_order: Timestamp, version: Timestamp });

impl CommitPlace for BumperPlace {
    #[inline]
    fn is_time_warped(&self) -> bool {
        self.version != self.apply_order
    }
}

/// A lower bound above all places of the past, by what was read and written there.
pub const BARRED: Timestamp = Timestamp(Timestamp::MAX.0 - 1);

impl TimeWarpVote {
    /// What the claims of two repositories come to.
    pub fn and(self, other: TimeWarpVote) -> TimeWarpVote {
        TimeWarpVote {
            apply_order: self.apply_order.max(other.apply_order),
            missed: self.missed.min(other.missed),
            lower_bound: self.lower_bound.max(other.lower_bound),
            upper_bound: self.upper_bound.min(other.upper_bound),
        }
    }

    /// The end of an update with this claim at all of its repositories together: it commits now if
    /// it missed nothing, and in the past if nobody has been there.
    pub fn decision(self) -> Decision<BumperPlace> {
        let TimeWarpVote { apply_order, missed, lower_bound, upper_bound } = self;
        if missed == Timestamp::MAX {
            Decision::Commit(BumperPlace { apply_order, version: apply_order })
        } else if missed > lower_bound && missed < upper_bound {
            Decision::Commit(BumperPlace { apply_order, version: missed })
        } else if lower_bound == Timestamp::MAX {
            Decision::Abort(Abort::TimeWarpedActions)
        } else {
            Decision::Abort(Abort::StaleRead)
        }
    }
}

impl From<Timestamp> for TimeWarpVote {
    fn from(apply_order: Timestamp) -> TimeWarpVote {
        let (missed, upper_bound) = (Timestamp::MAX, Timestamp::MAX);
        TimeWarpVote { apply_order, missed, lower_bound: Timestamp::ZERO, upper_bound }
    }
}

impl From<TimeWarpVote> for Timestamp {
    fn from(claim: TimeWarpVote) -> Timestamp {
        claim.apply_order
    }
}

impl From<Timestamp> for BumperPlace {
    fn from(apply_order: Timestamp) -> BumperPlace {
        BumperPlace { apply_order, version: apply_order }
    }
}

impl From<BumperPlace> for Timestamp {
    fn from(place: BumperPlace) -> Timestamp {
        place.apply_order
    }
}

impl fmt::Display for TimeWarpVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.apply_order)?;
        if self.missed < Timestamp::MAX {
            write!(f, " missed {}", self.missed)?;
        }
        if self.lower_bound > Timestamp::ZERO {
            write!(f, " above {}", self.lower_bound)?;
        }
        if self.upper_bound < Timestamp::MAX {
            write!(f, " below {}", self.upper_bound)?;
        }
        Ok(())
    }
}

impl fmt::Display for BumperPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.apply_order)?;
        if self.version != self.apply_order {
            write!(f, " as {}", self.version)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(apply_order: u64, missed: u64, lower_bound: u64) -> TimeWarpVote {
        let upper_bound = Timestamp::MAX;
        TimeWarpVote {
            apply_order: Timestamp(apply_order),
            missed: Timestamp(missed),
            lower_bound: Timestamp(lower_bound),
            upper_bound,
        }
    }

    #[test]
    fn the_past_is_open_above_the_floor_alone() {
        let commit = |apply_order, version| {
            Decision::Commit(BumperPlace {
                apply_order: Timestamp(apply_order),
                version: Timestamp(version),
            })
        };
        assert_eq!(claim(9, u64::MAX, 8).decision(), commit(9, 9));
        assert_eq!(claim(9, 5, 4).decision(), commit(9, 5));
        assert_eq!(claim(9, 5, 5).decision(), Decision::Abort(Abort::StaleRead));
        let time_warped = Decision::Abort(Abort::TimeWarpedActions);
        assert_eq!(claim(9, 5, 1).and(claim(9, u64::MAX, u64::MAX)).decision(), time_warped);
        let below =
            |upper_bound| TimeWarpVote { upper_bound: Timestamp(upper_bound), ..claim(9, 5, 4) };
        assert_eq!(below(6).decision(), commit(9, 5));
        assert_eq!(below(6).and(below(5)).decision(), Decision::Abort(Abort::StaleRead));
        assert_eq!(claim(7, 5, 2).and(claim(9, 6, 5)).decision(), claim(9, 5, 5).decision());
    }

    proptest! {
        #[test]
        fn votes_come_to_the_same_in_any_order(
            mut votes in prop::collection::vec((1u64..50, 1u64..50, 0u64..50), 1..6),
        ) {
            let all = |votes: &[(u64, u64, u64)]| {
                let votes = votes.iter();
                let votes = votes.map(|&(order, missed, bound)| claim(order, missed, bound));
                votes.reduce(TimeWarpVote::and)
            };
            let forwards = all(&votes);
            votes.reverse();
            prop_assert_eq!(forwards, all(&votes));
        }
    }
}
