//! What a repository keeps for time-warping: who has read what, and which versions are of the
//! past.

use std::collections::BTreeSet;

use muesli_core::parts::read_timestamps::ReadTimestamps;
use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, Nanos, SmallBytes, SpaceId, Timestamp};

use super::place::BARRED;
use super::{BumperPlace, BumperSwitch, Switches, TimeWarp, TimeWarpVote};
use crate::two_phase::{Key, PreparedKeys, Reader, ValidationResult, VariantState};

/// The reader of a read timestamp that belongs to nobody who could still ask.
const NOBODY: Reader = (u64::MAX, u64::MAX);

/// Read timestamps, and the versions that were put into the past.
///
/// Invariants, beside those of the read timestamps: versions of the past are kept only where flags
/// are compared, and read timestamps only where updates may lie in the past and reads leave some.
#[derive(Clone, Debug)]
pub struct ProtocolState {
    switches: Switches,
    read_timestamps: ReadTimestamps<Reader>,
    /// Kept only where flags are compared instead of places.
    warped: BTreeSet<(Timestamp, SpaceId, SmallBytes)>,
    /// Which versions at or below this are of the past was forgotten: each may be.
    warped_below: Timestamp,
    /// Deletions and read timestamps at or below this may be forgotten.
    low: Timestamp,
}

impl ProtocolState {
    fn keeps_read_timestamps(&self) -> bool {
        self.switches.time_warps() && self.switches.keeps(BumperSwitch::ReadTimestampsKept)
    }

    /// What a read at `snapshot` is stamped with.
    fn timestamp_of_read(&self, snapshot: Timestamp, committed: Timestamp) -> Timestamp {
        match (
            self.switches.keeps(BumperSwitch::ReadTimestampsReachSnapshot),
            self.switches.by_flags(),
        ) {
            (true, false) => snapshot,
            (true, true) => snapshot.max(committed),
            (false, _) => committed,
        }
    }

    /// Whether a reader at `snapshot` must wait for an update that read at `held` and voted
    /// `claim`: it ends above its proposal, or in the past, above what it read and above its lower
    /// bound.
    pub(super) fn blocks(&self, held: Timestamp, claim: TimeWarpVote, snapshot: Timestamp) -> bool {
        let may_warp =
            self.switches.time_warps() && self.switches.keeps(BumperSwitch::ReadsWaitForTimeWarped);
        claim.apply_order <= snapshot || may_warp && snapshot > held.max(claim.lower_bound)
    }

    /// Where an update is to be found by those who would overwrite what it read.
    fn of_update(&self, place: BumperPlace) -> Timestamp {
        if self.switches.by_flags() { place.apply_order } else { place.version }
    }
}

impl VariantState<TimeWarp> for ProtocolState {
    fn new(switches: &Switches, hash_seed: u64) -> ProtocolState {
        ProtocolState {
            switches: *switches,
            read_timestamps: ReadTimestamps::new(hash_seed),
            warped: BTreeSet::new(),
            warped_below: Timestamp::ZERO,
            low: Timestamp::ZERO,
        }
    }

    fn assert_invariants(&self) {
        self.read_timestamps.assert_invariants();
        assert!(
            self.keeps_read_timestamps() || self.read_timestamps.is_empty(),
            "read timestamps that nobody looks at"
        );
        assert!(self.switches.by_flags() || self.warped.is_empty(), "flags that nobody looks at");
    }

    fn note_read(
        &mut self,
        (space, key): Key<'_>,
        snapshot: &Timestamp,
        committed: &Timestamp,
        reader: Reader,
        _: Nanos,
    ) {
        if !self.keeps_read_timestamps() {
            return;
        }
        let at = self.timestamp_of_read(*snapshot, *committed);
        if self.switches.keeps(BumperSwitch::DistinctReaders) {
            self.read_timestamps.note(space, key, at, Some(reader));
            return;
        }
        // As printed: one pair, whose reader is forgotten when another does not raise the read
        // timestamp.
        match self.read_timestamps.read_timestamp_mut(space, key) {
            Some(timestamp_of_read) if at > timestamp_of_read.at => {
                (timestamp_of_read.at, timestamp_of_read.reader) = (at, Some(reader))
            }
            Some(timestamp_of_read) => timestamp_of_read.reader = None,
            None => self.read_timestamps.note(space, key, at, Some(reader)),
        }
    }

    fn is_kept_from(&self, _: Key<'_>, _: Reader, _: Nanos) -> bool {
        false
    }

    fn note_passed(&mut self, _: Reader) {}

    fn note_scan(
        &mut self,
        range: &KeyRange,
        snapshot: &Timestamp,
        committed: &Timestamp,
        reader: Reader,
    ) {
        if self.keeps_read_timestamps() {
            let at = self.timestamp_of_read(*snapshot, *committed);
            self.read_timestamps.note_page(range, at, reader);
        }
    }

    #[inline]
    fn newest(&self, _: Key<'_>, installed: Timestamp) -> Timestamp {
        installed
    }

    fn suffers_stale_reads(&self) -> bool {
        self.switches.time_warps()
    }

    fn note_missed(
        &self,
        (space, key): Key<'_>,
        at: Timestamp,
        validation: &mut ValidationResult,
    ) -> Result<(), Abort> {
        let warped = || at <= self.warped_below || self.warped.contains(&(at, space, key.clone()));
        if self.switches.by_flags() && warped() {
            return Err(Abort::StaleRead); // It would complete a triad whose pivot is of the past.
        }
        let earliest = self.switches.keeps(BumperSwitch::BeforeTheEarliest);
        let of_both = |missed: Timestamp| if earliest { missed.min(at) } else { missed.max(at) };
        validation.missed = Some(validation.missed.map_or(at, of_both));
        Ok(())
    }

    fn note_write(
        &self,
        (space, key): Key<'_>,
        head: Timestamp,
        reader: Reader,
        validation: &mut ValidationResult,
    ) {
        if !self.switches.time_warps() || !self.switches.keeps(BumperSwitch::Triads) {
            return;
        }
        let read = if self.switches.keeps(BumperSwitch::DistinctReaders) {
            self.read_timestamps.latest_of_others(space, key, reader)
        } else {
            let pair = self.read_timestamps.read_timestamp(space, key);
            let others = pair.filter(|it| it.reader != Some(reader));
            let ranges = self.read_timestamps.latest_of_ranges(space, key, reader);
            others.map_or(ranges, |it| it.at.max(ranges))
        };
        let lower_bound = if self.switches.by_flags() {
            // Whatever is above the snapshot bars the past as a whole.
            let barred = read >= validation.snapshot;
            if barred || head > validation.snapshot { BARRED } else { Timestamp::ZERO }
        } else {
            // An update may come whose snapshot is below the watermark, if its coordinator was
            // silent for longer than the lease: who read or deleted there may be forgotten.
            let low = if self.switches.keeps(BumperSwitch::LowerBoundsAtWatermark) {
                self.low
            } else {
                Timestamp::ZERO
            };
            read.max(head).max(low)
        };
        validation.lower_bound = validation.lower_bound.max(lower_bound);
        let is_above = self.switches.by_flags() || validation.lower_bound >= head;
        assert!(is_above, "an update may lie below the version {head} that it replaces");
    }

    fn note_prepared(&mut self, _: PreparedKeys<'_>, _: &TimeWarpVote) {}

    fn note_finished(&mut self, _: PreparedKeys<'_>) {}

    fn note_written(&mut self, (space, key): Key<'_>, place: &BumperPlace) {
        if !self.switches.by_flags() {
            // Readers of the version before lie below this one, which is a lower bound by itself.
            self.read_timestamps.forget(space, key);
        } else if place.version != place.apply_order {
            self.warped.insert((place.version, space, key.clone()));
        }
    }

    fn note_read_by(&mut self, (space, key): Key<'_>, place: &BumperPlace) {
        if self.keeps_read_timestamps()
            && self.switches.keeps(BumperSwitch::UpdatesSetReadTimestamps)
        {
            self.read_timestamps.note(space, key, self.of_update(*place), None);
        }
    }

    fn note_scanned_by(&mut self, range: &KeyRange, place: &BumperPlace) {
        if self.keeps_read_timestamps()
            && self.switches.keeps(BumperSwitch::UpdatesSetReadTimestamps)
        {
            self.read_timestamps.note_range(range, self.of_update(*place), NOBODY);
        }
    }

    fn restarted(&mut self, upper_bound: &Timestamp) {
        self.read_timestamps.raise_all(*upper_bound);
        self.warped_below = *upper_bound;
    }

    fn collect(&mut self, low: &Timestamp) {
        let low = *low;
        self.low = self.low.max(low);
        self.read_timestamps.raise_low(low);
        while self.warped.first().is_some_and(|(at, ..)| *at <= low) {
            self.warped.pop_first();
        }
        let first = self.warped.first().map_or(Timestamp::MAX, |(at, ..)| *at);
        assert!(first > low, "{first} lies in the past, below the watermark {low}");
    }
}
