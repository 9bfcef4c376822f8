//! What the clock was a while ago, for transactions that may be stale: a member notes what it is
//! where a barrier of its own is delivered, and when it had proposed that. All that anybody was
//! answered by then is below.
//!
//! Versions are kept of the newest such clock, as long as somebody who asks as before may be told
//! of it, and of each that was told lately.

use std::collections::VecDeque;

use muesli_core::Nanos;

/// What the clock was where a barrier was delivered.
#[derive(Clone, Copy, Debug)]
struct FreshClock {
    /// When the barrier was proposed.
    since: Nanos,
    clock: u64,
}

/// The clocks that this member may tell of, or has told of.
///
/// Invariant: clocks rise, and the newest one is the largest.
#[derive(Clone, Debug, Default)]
pub struct FreshClocks {
    newest: Option<FreshClock>,
    /// The longest time that anybody has asked for, since the newest one was of use.
    longest: Nanos,
    /// What was told, and until when somebody may come with it.
    given: VecDeque<(Nanos, u64)>,
}

impl FreshClocks {
    /// A barrier that was proposed then is delivered, and the clock is this.
    pub fn observe(&mut self, since: Nanos, clock: u64) {
        if self.newest.is_none_or(|it| it.since <= since) {
            assert!(self.newest.is_none_or(|it| it.clock <= clock), "the clock goes back");
            self.newest = Some(FreshClock { since, clock });
        }
    }

    /// Somebody asks for a clock that is so old at most; the newest one, if it is.
    pub fn find(&mut self, most: Nanos, now: Nanos) -> Option<u64> {
        self.longest = self.longest.max(most);
        self.newest.filter(|it| it.since + most >= now).map(|it| it.clock)
    }

    /// Whether one that is so old at most is there.
    pub fn has(&self, most: Nanos, now: Nanos) -> bool {
        self.newest.is_some_and(|it| it.since + most >= now)
    }

    /// Somebody is told of this clock, and may come with it until then.
    pub fn tell(&mut self, clock: u64, until: Nanos) {
        let place = self.given.partition_point(|(_, given)| *given < clock);
        match self.given.get_mut(place).filter(|(_, given)| *given == clock) {
            Some((known, _)) => *known = until.max(*known),
            None => self.given.insert(place, (until, clock)),
        }
        assert!(self.given.iter().is_sorted_by_key(|(_, given)| given), "{clock} out of order");
    }

    /// The smallest clock of which versions are to be kept; what is of no use any more goes.
    pub fn oldest(&mut self, now: Nanos) -> Option<u64> {
        while self.given.front().is_some_and(|(until, _)| *until < now) {
            self.given.pop_front();
        }
        if !self.has(self.longest, now) {
            (self.newest, self.longest) = (None, Nanos(0));
        }
        let given = self.given.front().map(|(_, clock)| *clock);
        assert!(given.is_some() || self.given.is_empty(), "clocks, and none that is the smallest");
        given.into_iter().chain(self.newest.map(|it| it.clock)).min()
    }

    /// Nothing is kept for them any more.
    pub fn clear(&mut self) {
        *self = FreshClocks::default();
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self, forgotten: u64, clock: u64) {
        assert!(
            self.given.iter().is_sorted_by_key(|(_, given)| given),
            "clocks rise: {:?}",
            self.given
        );
        let given = self.given.iter().map(|(_, clock)| *clock);
        let all = given.chain(self.newest.map(|it| it.clock));
        let mut all = all.map(|it| (forgotten..=clock).contains(&it));
        assert!(all.all(|it| it), "{self:?} between {forgotten} and {clock}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    #[test]
    fn a_clock_is_as_old_as_its_barriers_proposal() {
        let mut clocks = FreshClocks::default();
        assert_eq!(clocks.find(MS(50), MS(10)), None);
        clocks.observe(MS(10), 7);
        assert_eq!(clocks.find(MS(50), MS(60)), Some(7));
        assert_eq!(clocks.find(MS(50), MS(61)), None);
        // One that was proposed earlier and is delivered later says nothing new.
        clocks.observe(MS(5), 9);
        assert_eq!(clocks.find(MS(50), MS(60)), Some(7));
        clocks.assert_invariants(7, 9);
    }

    #[test]
    fn versions_are_kept_as_long_as_somebody_may_come_with_their_clock() {
        let mut clocks = FreshClocks::default();
        clocks.observe(MS(10), 7);
        assert_eq!(clocks.find(MS(50), MS(20)), Some(7));
        clocks.tell(7, MS(120));
        clocks.observe(MS(30), 12);
        assert_eq!(clocks.find(MS(50), MS(40)), Some(12));
        clocks.tell(12, MS(140));
        clocks.tell(12, MS(130));
        assert_eq!(clocks.oldest(MS(80)), Some(7), "it was told");
        assert_eq!(clocks.oldest(MS(121)), Some(12), "this one, too");
        assert!(!clocks.has(MS(500), MS(121)), "nobody asks for one that is so old");
        assert_eq!(clocks.oldest(MS(141)), None);
        clocks.tell(15, MS(160));
        clocks.tell(13, MS(150));
        assert_eq!(clocks.oldest(MS(145)), Some(13));
        clocks.observe(MS(150), 20);
        clocks.clear();
        assert_eq!(clocks.oldest(MS(150)), None);
    }
}
