//! The clock of a node: skewed, drifting, never running backwards.
//!
//! A node reads a monotonic clock whose start is its own affair, as a process does. Against
//! virtual time it is ahead by a skew, runs fast or slow by a drift, and may leap forward. It is a
//! line of pieces, each from a moment on, at a rate of its own.
//!
//! Since it never runs backwards, what a node noted by its own clock can be put back into virtual
//! time ([`LocalClock::virtual_at`]), which histories need: whether one transaction ended before
//! another began must not depend on whose clock said so.

use muesli_core::Nanos;

use crate::time::{Span, VirtualTime};

/// One node's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalClock {
    /// Beside the others, because it is looked at in every turn.
    newest: ClockPiece,
    /// In order of their starts.
    earlier: Vec<ClockPiece>,
}

/// How much faster than virtual time a clock runs, in parts per million; negative is slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift(i32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockPiece {
    start: VirtualTime,
    local_start: u64,
    drift: Drift,
}

const MILLION: i64 = 1_000_000;

impl Drift {
    /// The strongest drift either way: half as fast, or half as fast again.
    pub const STRONGEST: i32 = 500_000;

    /// A drift, brought within the strongest.
    pub fn new(parts_per_million: i32) -> Self {
        Drift(parts_per_million.clamp(-Self::STRONGEST, Self::STRONGEST))
    }

    /// Parts per million.
    pub fn parts_per_million(self) -> i32 {
        self.0
    }

    fn rate(self) -> u64 {
        (MILLION + i64::from(self.0)) as u64
    }
}

impl ClockPiece {
    fn local(&self, now: VirtualTime) -> u64 {
        self.local_start.saturating_add(scaled(now.since(self.start).as_nanos(), self.drift.rate()))
    }

    /// When this piece, going on for ever, shows `local`, which is not before its start.
    fn virtual_at(&self, local: Nanos) -> VirtualTime {
        let shown = u128::from(local.0 - self.local_start) * MILLION as u128;
        let nanos = shown.div_ceil(u128::from(self.drift.rate()));
        self.start + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// `nanos` at a rate of `rate` millionths, rounded down.
fn scaled(nanos: u64, rate: u64) -> u64 {
    if rate == MILLION as u64 {
        return nanos;
    }
    let scaled = u128::from(nanos) * u128::from(rate) / MILLION as u128;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl Default for LocalClock {
    fn default() -> Self {
        LocalClock::new(Span::ZERO, Drift(0))
    }
}

impl LocalClock {
    /// A clock that is `ahead` at the start of the world.
    pub fn new(ahead: Span, drift: Drift) -> Self {
        let start = VirtualTime::ZERO;
        let newest = ClockPiece { start, local_start: ahead.as_nanos(), drift };
        LocalClock { newest, earlier: Vec::new() }
    }

    /// What the clock shows.
    #[inline]
    pub fn local(&self, now: VirtualTime) -> Nanos {
        Nanos(self.newest.local(now))
    }

    /// What the clock showed then.
    pub fn shown_at(&self, then: VirtualTime) -> Nanos {
        let pieces = self.earlier.iter().chain([&self.newest]);
        let piece = pieces.take_while(|piece| piece.start <= then).last();
        Nanos(piece.unwrap_or(&self.newest).local(then))
    }

    /// When `length`, measured by this clock from now on, will be over.
    #[inline]
    pub fn after(&self, now: VirtualTime, length: Nanos) -> VirtualTime {
        let rate = self.newest.drift.rate();
        if rate == MILLION as u64 {
            return now + Span::from_nanos(length.0);
        }
        let nanos = (u128::from(length.0) * MILLION as u128).div_ceil(u128::from(rate));
        now + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The clock leaps forward by `leap` and runs at `drift` from `now` on, or from its last change
    /// on if that is later.
    pub fn adjust(&mut self, now: VirtualTime, leap: Span, drift: Drift) {
        let now = now.max(self.newest.start);
        let local_start = self.newest.local(now).saturating_add(leap.as_nanos());
        let earlier =
            std::mem::replace(&mut self.newest, ClockPiece { start: now, local_start, drift });
        self.earlier.push(earlier);
    }

    /// Whether [`virtual_at`](Self::virtual_at) is exact, because the clock never drifted.
    pub fn is_exact(&self) -> bool {
        self.earlier.iter().chain([&self.newest]).all(|piece| piece.drift == Drift(0))
    }

    /// When the clock first showed `local` or more. Exact to the nanosecond without drift; with
    /// it, never late.
    pub fn virtual_at(&self, local: Nanos) -> VirtualTime {
        if local.0 >= self.newest.local_start {
            return self.newest.virtual_at(local);
        }
        let following = self.earlier.partition_point(|piece| piece.local_start <= local.0);
        let Some(piece) = self.earlier[..following].last() else { return VirtualTime::ZERO };
        // A leap may have shown it before the piece came there.
        piece.virtual_at(local).min(self.earlier.get(following).unwrap_or(&self.newest).start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> VirtualTime {
        VirtualTime::from_nanos(nanos)
    }

    type Changes = Vec<(u64, u64, i32)>;

    fn changed(changes: &Changes) -> (LocalClock, u64) {
        let (mut clock, mut now) = (LocalClock::new(Span::from_nanos(7), Drift(0)), 0);
        for (gap, leap, drift) in changes {
            now += gap;
            clock.adjust(at(now), Span::from_nanos(*leap), Drift::new(*drift));
        }
        (clock, now)
    }

    fn changes() -> impl Strategy<Value = Changes> {
        prop::collection::vec((0..1_000_000_u64, 0..1_000_u64, -600_000..600_000), 0..6)
    }

    #[test]
    fn leaps_and_drifts_add_up() {
        let mut clock = LocalClock::new(Span::from_nanos(500), Drift(0));
        assert_eq!(clock.local(at(1_000)), Nanos(1_500));
        clock.adjust(at(1_000), Span::from_nanos(100), Drift::new(500_000));
        assert_eq!(clock.local(at(1_000)), Nanos(1_600));
        assert_eq!(clock.local(at(1_200)), Nanos(1_900));
        assert_eq!(clock.after(at(1_200), Nanos(300)), at(1_400));
        assert_eq!(clock.virtual_at(Nanos(1_550)), at(1_000));
    }

    proptest! {
        #[test]
        fn never_runs_backwards(changes in changes(), first in 0..9_000_u64, more in 0..9_000_u64) {
            let (clock, now) = changed(&changes);
            prop_assert!(clock.local(at(now + first)) <= clock.local(at(now + first + more)));
        }

        #[test]
        fn is_put_back_into_virtual_time(changes in changes(), wait in 0..9_000_000_u64) {
            let (clock, now) = changed(&changes);
            let moment = at(now + wait);
            let back = clock.virtual_at(clock.local(moment));
            prop_assert!(back <= moment && moment.since(back) <= Span::from_nanos(2));
        }

        #[test]
        fn a_length_is_over_when_the_clock_says_so(
            changes in changes(), length in 0..9_000_000_u64,
        ) {
            let (clock, now) = changed(&changes);
            let over = clock.after(at(now), Nanos(length));
            prop_assert!(clock.local(over) >= clock.local(at(now)) + Nanos(length) - Nanos(1));
        }
    }
}
