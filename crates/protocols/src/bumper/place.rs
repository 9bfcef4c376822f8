//! What votes tell of an update, and where they put it.
//!
//! An update has two timestamps. Its *turn* is when it is applied: the largest proposal, as in
//! SCORe (the paper's tsC). Its *version* is where it lies in the serial order, and what its
//! writes are tagged with (tsW): its turn, or, where it missed versions that others wrote, the
//! earliest of those, before whose writer it then lies.

use std::fmt;

use muesli_core::{Abort, Decision, Timestamp, wire_struct};

/// A vote of yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeWarpVote {
    /// The turn proposed.
    pub turn: Timestamp,
    /// The earliest version that it should have read and did not; [`Timestamp::MAX`] if none.
    pub missed: Timestamp,
    /// Where it may not lie, nor before: something that it writes was written or read there;
    /// [`Timestamp::MAX`] if it has delayed actions, which are of the present.
    pub floor: Timestamp,
    /// Where it may not lie in the past, nor after: others may run delayed actions there on what it
    /// changes by one; [`Timestamp::MAX`] if none.
    pub ceiling: Timestamp,
}

wire_struct!(TimeWarpVote {
    turn: Timestamp,
    missed: Timestamp,
    floor: Timestamp,
    ceiling: Timestamp
});

/// Where a committed update lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BumperPlace {
    /// When it is applied.
    pub turn: Timestamp,
    /// What its writes are tagged with.
    pub version: Timestamp,
}

wire_struct!(BumperPlace { turn: Timestamp, version: Timestamp });

/// A floor above all places of the past, by what was read and written there.
pub const BARRED: Timestamp = Timestamp(Timestamp::MAX.0 - 1);

impl TimeWarpVote {
    /// What the claims of two repositories come to.
    pub fn and(self, other: TimeWarpVote) -> TimeWarpVote {
        TimeWarpVote {
            turn: self.turn.max(other.turn),
            missed: self.missed.min(other.missed),
            floor: self.floor.max(other.floor),
            ceiling: self.ceiling.min(other.ceiling),
        }
    }

    /// The end of an update with this claim at all of its repositories together: it commits now if
    /// it missed nothing, and in the past if nobody has been there.
    pub fn decision(self) -> Decision<BumperPlace> {
        let TimeWarpVote { turn, missed, floor, ceiling } = self;
        if missed == Timestamp::MAX {
            Decision::Commit(BumperPlace { turn, version: turn })
        } else if missed > floor && missed < ceiling {
            Decision::Commit(BumperPlace { turn, version: missed })
        } else if floor == Timestamp::MAX {
            Decision::Abort(Abort::ActionsInThePast)
        } else {
            Decision::Abort(Abort::StaleRead)
        }
    }
}

impl From<Timestamp> for TimeWarpVote {
    fn from(turn: Timestamp) -> TimeWarpVote {
        let (missed, ceiling) = (Timestamp::MAX, Timestamp::MAX);
        TimeWarpVote { turn, missed, floor: Timestamp::ZERO, ceiling }
    }
}

impl From<TimeWarpVote> for Timestamp {
    fn from(claim: TimeWarpVote) -> Timestamp {
        claim.turn
    }
}

impl From<Timestamp> for BumperPlace {
    fn from(turn: Timestamp) -> BumperPlace {
        BumperPlace { turn, version: turn }
    }
}

impl From<BumperPlace> for Timestamp {
    fn from(place: BumperPlace) -> Timestamp {
        place.turn
    }
}

impl fmt::Display for TimeWarpVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.turn)?;
        if self.missed < Timestamp::MAX {
            write!(f, " missed {}", self.missed)?;
        }
        if self.floor > Timestamp::ZERO {
            write!(f, " above {}", self.floor)?;
        }
        if self.ceiling < Timestamp::MAX {
            write!(f, " below {}", self.ceiling)?;
        }
        Ok(())
    }
}

impl fmt::Display for BumperPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.turn)?;
        if self.version != self.turn {
            write!(f, " as {}", self.version)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(turn: u64, missed: u64, floor: u64) -> TimeWarpVote {
        let ceiling = Timestamp::MAX;
        TimeWarpVote {
            turn: Timestamp(turn),
            missed: Timestamp(missed),
            floor: Timestamp(floor),
            ceiling,
        }
    }

    #[test]
    fn the_past_is_open_above_the_floor_alone() {
        let commit = |turn, version| {
            Decision::Commit(BumperPlace { turn: Timestamp(turn), version: Timestamp(version) })
        };
        assert_eq!(claim(9, u64::MAX, 8).decision(), commit(9, 9));
        assert_eq!(claim(9, 5, 4).decision(), commit(9, 5));
        assert_eq!(claim(9, 5, 5).decision(), Decision::Abort(Abort::StaleRead));
        let in_the_past = Decision::Abort(Abort::ActionsInThePast);
        assert_eq!(claim(9, 5, 1).and(claim(9, u64::MAX, u64::MAX)).decision(), in_the_past);
        let below = |ceiling| TimeWarpVote { ceiling: Timestamp(ceiling), ..claim(9, 5, 4) };
        assert_eq!(below(6).decision(), commit(9, 5));
        assert_eq!(below(6).and(below(5)).decision(), Decision::Abort(Abort::StaleRead));
        assert_eq!(claim(7, 5, 2).and(claim(9, 6, 5)).decision(), claim(9, 5, 5).decision());
    }

    proptest! {
        #[test]
        fn claims_come_to_the_same_in_any_order(
            mut claims in prop::collection::vec((1u64..50, 1u64..50, 0u64..50), 1..6),
        ) {
            let all = |claims: &[(u64, u64, u64)]| {
                let claims = claims.iter().map(|&(turn, missed, floor)| claim(turn, missed, floor));
                claims.reduce(TimeWarpVote::and)
            };
            let forwards = all(&claims);
            claims.reverse();
            prop_assert_eq!(forwards, all(&claims));
        }
    }
}
