//! Time as one timestamp: SCORe's way, and that of all who build upon it.
//!
//! [`Scalar`] is where protocols with such a time depart from SCORe; [`ScalarTime`] is the clock
//! and queue of a repository, and `time` what the family's machines ask of it.

mod time;

use muesli_core::parts::clock::ScalarClock;
use muesli_core::parts::commit_queue::CommitQueue;
use muesli_core::parts::locks::Owner;
use muesli_core::parts::votes::Votes;
use muesli_core::{Abort, Decision, RepositoryId, Timestamp};

use super::message::Record;
use super::policy::{FamilySwitch, TreeChoice, TreeSwitch};
use super::time::NotServed;
use super::{Context, Switches, ValidationResult, Variant};

/// A protocol of the family whose snapshots are timestamps, by where it departs from SCORe.
pub trait Scalar:
    Variant<
        Snapshot = Timestamp,
        Time = ScalarTime,
        Yes: Copy + From<Timestamp> + Into<Timestamp>,
        Place: Copy + From<Timestamp> + Into<Timestamp>,
    >
{
    /// Whether a read at `snapshot` must wait for the end of a transaction that read at `held` and
    /// voted `yes`: it may come to lie inside the snapshot.
    #[inline]
    fn blocks(
        _state: &Self::ProtocolState,
        _held: Timestamp,
        yes: Self::Yes,
        snapshot: Timestamp,
    ) -> bool {
        yes.into() <= snapshot
    }

    /// The vote of a transaction that nothing stands against, proposed at `proposal`.
    #[inline]
    fn yes(proposal: Timestamp, _validation: &ValidationResult<Timestamp>) -> Self::Yes {
        proposal.into()
    }

    /// What the votes of all decide: the largest proposal is final.
    fn decide(votes: &Votes<RepositoryId, Self::Yes>) -> Decision<Self::Place> {
        assert!(votes.is_complete(), "votes decide once all are there");
        let proposals = votes.so_far().map(|yes| (*yes).into());
        let at = proposals.max().unwrap_or(Timestamp::ZERO);
        let is_late = |yes: &Self::Yes| Self::reads_hold_until(*yes) < at;
        match votes.so_far().any(is_late) {
            true => Decision::Abort(Abort::StaleRead),
            false => Decision::Commit(at.into()),
        }
    }

    /// What the vote of a repository decides that nobody else takes part with.
    #[inline]
    fn decide_alone(yes: Self::Yes) -> Decision<Self::Place> {
        let proposal: Timestamp = yes.into();
        Decision::Commit(proposal.into())
    }

    /// Up to where what the voter has shown stays the newest, if nothing else sees to that.
    #[inline]
    fn reads_hold_until(_yes: Self::Yes) -> Timestamp {
        Timestamp::MAX
    }

    /// The version that the writes of a transaction install.
    #[inline]
    fn version(place: Self::Place) -> Timestamp {
        place.into()
    }

    /// Whether there can be such a vote.
    fn can_be(_yes: Self::Yes) -> bool {
        true
    }

    /// Whether votes that this one is among can decide this place, which is not below its turn.
    fn may_decide(_yes: Self::Yes, _place: Self::Place) -> bool {
        true
    }
}

/// Of what is known of others' clocks one part of so many is forgotten with each decision.
const REACH_FORGOTTEN: u64 = 1_024;
/// Nobody counts on clocks that are further apart: writers that meet undecided reads push clocks
/// that far ahead.
const REACH_MAX: u64 = 1 << 17;
/// What is known of others' clocks grows by so many steps, or to its double, at once.
const REACH_STEP: u64 = 1_024;

/// The clock and queue of a repository.
///
/// Invariants, beside those of the two: whatever is queued stands at or below what the clock has
/// promised, so that everything proposed from now on comes after it; and `reach` is at most
/// [`REACH_MAX`].
#[derive(Clone, Debug)]
pub struct ScalarTime {
    id: RepositoryId,
    switches: Switches,
    clock: ScalarClock,
    /// No snapshot above this may be served before a higher upper bound is stable.
    upper_bound: Timestamp,
    /// No snapshot below this is served.
    low: Timestamp,
    queue: CommitQueue<Owner>,
    choice: TreeChoice,
    /// How many steps above what was proposed here decided transactions have lately come to lie, or
    /// those that were refused may have: the most, which is forgotten by and by.
    reach: u64,
}

impl ScalarTime {
    #[inline(always)]
    fn at<V: Scalar>(
        &mut self,
        snapshot: Timestamp,
        first: bool,
        cx: &mut Context<'_, V>,
    ) -> Result<Timestamp, NotServed> {
        // A first read is free to begin at the watermark, so it is never too old.
        let at = if first { self.first_at::<V>(snapshot).max(self.low) } else { snapshot };
        if !V::POLICIES.reading.has_snapshots() {
            return Ok(at);
        }
        if at < self.low && self.switches.keeps(FamilySwitch::RefusesOldReads) {
            return Err(NotServed::TooOld);
        }
        let raises = self.keeps::<V>(TreeSwitch::ReadsRaiseClocks);
        if raises && self.switches.keeps(FamilySwitch::ReadsRaise) {
            if !self.keeps::<V>(TreeSwitch::ProposalsPassSnapshots) {
                self.clock.serve(Timestamp::new(at.counter().saturating_sub(1), self.id));
                return Ok(at);
            }
            self.clock.serve(at);
            if at > self.clock.committed() {
                self.clock.observe(at);
                if self.queue.is_empty() || !self.switches.keeps(FamilySwitch::CatchUpWhenIdle) {
                    self.clock.catch_up();
                }
            }
            if cx.settings.logging && at > self.upper_bound {
                self.raise_upper_bound(at, cx);
            }
        }
        Ok(at)
    }

    /// Whether a rule of validation by a tree holds.
    #[inline(always)]
    fn keeps<V: Scalar>(&self, switch: TreeSwitch) -> bool {
        !V::POLICIES.deciding.may_have_validators() || self.choice.keeps(switch)
    }

    /// Whether votes tell intervals, and nothing is locked.
    #[inline(always)]
    fn has_intervals<V: Scalar>(&self) -> bool {
        V::POLICIES.locking.may_have_intervals() && self.choice.has_intervals()
    }

    /// What a first read that wants at least `snapshot` is served at.
    #[inline(always)]
    fn first_at<V: Scalar>(&self, snapshot: Timestamp) -> Timestamp {
        if !self.keeps::<V>(TreeSwitch::SnapshotsByClocks) {
            return snapshot.max(self.clock.reserved()); // To see the newest version.
        }
        if !self.keeps::<V>(TreeSwitch::ProposalsPassSnapshots) {
            return snapshot.max(self.clock.reserved().after(1, self.id)); // The next value.
        }
        snapshot.max(self.clock.committed())
    }

    /// A transaction lies so many steps above what was proposed here.
    fn note_reach(&mut self, steps: u64) {
        let left = self.reach - self.reach / REACH_FORGOTTEN;
        self.reach = left.max(steps).min(REACH_MAX);
        assert!(self.reach >= steps.min(REACH_MAX), "clocks are {steps} apart");
        assert!(self.reach <= REACH_MAX, "nobody counts on {} steps", self.reach);
    }

    /// A transaction that was proposed at `proposed` has been refused, perhaps because others
    /// proposed it too late for what it had read: how late is not said. While it was undecided this
    /// clock has moved on, and theirs have as well.
    fn note_refused(&mut self, proposed: Timestamp) {
        let moved = self.clock.reserved().counter().saturating_sub(proposed.counter());
        self.note_reach(moved.min(2 * self.reach + REACH_STEP));
    }

    fn raise_upper_bound<V: Scalar>(&mut self, at: Timestamp, cx: &mut Context<'_, V>) {
        assert!(at > self.upper_bound, "a ceiling is raised for what is above it");
        self.upper_bound = upper_bound_above(at, cx.settings.pace.upper_bound_steps, self.id);
        let at = self.upper_bound;
        cx.log(|| Record::UpperBound { at });
    }
}

impl ScalarTime {
    /// An update that lies in the past lies where the first version was written that it missed, and
    /// its reads are right only above its snapshot.
    #[inline(always)]
    fn assert_missed_above_snapshot<V: Scalar>(&self, validation: &ValidationResult) {
        let switches = &self.switches;
        if V::POLICIES.installing.may_time_warp()
            && switches.keeps(FamilySwitch::JudgedBySnapshot)
            && switches.keeps(FamilySwitch::SeenIsNotMissed)
        {
            let above = validation.missed.is_none_or(|at| at > validation.snapshot);
            assert!(above, "an update at {} missed {:?}", validation.snapshot, validation.missed);
        }
    }
}

/// The bound that a repository logs before it serves `at`: so many steps above it.
fn upper_bound_above(at: Timestamp, steps: u64, id: RepositoryId) -> Timestamp {
    let upper_bound = at.after(steps, id);
    assert!(upper_bound > at, "{at} is served above the ceiling {upper_bound}");
    upper_bound
}

/// Inside an `impl Variant`: a snapshot, a vote and a place are a timestamp each.
macro_rules! goes_by_timestamps {
    () => {
        type Snapshot = muesli_core::Timestamp;
        type Yes = muesli_core::Timestamp;
        type Place = muesli_core::Timestamp;
        type Time = $crate::two_phase::ScalarTime;
    };
}

pub(crate) use goes_by_timestamps;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::Leaves;
    use crate::two_phase::time::Time;

    /// It is not told how late the others proposed: the clock of this leaf has moved by 10,000.
    #[test]
    fn refusals_lengthen_intervals_by_and_by() {
        let mut time = <ScalarTime as Time<Leaves>>::new(RepositoryId(0), &Default::default());
        time.clock.reserve(Timestamp::new(10_010, RepositoryId(0)));
        let known = [(); 4].map(|()| {
            time.note_refused(Timestamp::new(10, RepositoryId(0)));
            time.reach
        });
        assert_eq!(known, [1_024, 3_072, 7_168, 10_000]);
    }

    #[test]
    fn what_is_served_lies_below_the_bound_that_is_logged() {
        let at = Timestamp::new(7, RepositoryId(3));
        assert_eq!(upper_bound_above(at, 2, RepositoryId(1)), Timestamp::new(9, RepositoryId(1)));
    }

    #[test]
    #[should_panic(expected = "is served above the ceiling")]
    fn a_bound_of_no_steps_is_none() {
        upper_bound_above(Timestamp::new(7, RepositoryId(3)), 0, RepositoryId(1));
    }
}
