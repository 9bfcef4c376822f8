//! Cuts: commands that are in the way of all others and do nothing. Where one is delivered, a site
//! has applied the same commits as every other site there.

use muesli_broadcast::epochs::RequestId;
use muesli_core::{Nanos, wire_struct};

use crate::certified::message::moment::CutBound;

/// How commits and cuts follow each other by counters, which all sites have alike wherever they
/// have delivered the same: those of commits before a cut are no larger than the cut's, and those
/// of commits behind it are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutOrder {
    /// The largest counter of a commit that took effect, whether it writes or only reads.
    decided: u64,
    /// The counter of the last cut.
    last: u64,
}

wire_struct!(CutOrder { decided: u64, last: u64 });

impl CutOrder {
    /// A commit takes effect at this counter.
    pub fn decide(&mut self, counter: u64) {
        self.decided = self.decided.max(counter);
    }

    /// A cut is delivered; its counter.
    pub fn cut(&mut self) -> u64 {
        assert!(self.last <= self.decided, "a cut at {}, of {}", self.last, self.decided);
        self.last = self.decided;
        self.last
    }

    /// In a replay: a cut was delivered that had this counter.
    pub fn replay(&mut self, counter: u64) {
        assert!(counter >= self.last, "a cut at {counter}, after one at {}", self.last);
        self.decide(counter);
        self.last = counter;
    }

    /// The counter of the last cut.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The largest counter of a commit that took effect: a cut with as large a one is behind all of
    /// them.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Whether a site can have come to it.
    pub fn is_possible(&self) -> bool {
        self.last <= self.decided && self.decided < u64::MAX
    }
}

/// The newest cut, for who may be stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReadableCut {
    /// How many commits were applied here.
    clock: u64,
    /// All that had been committed then is before it.
    fresh: Nanos,
    /// How many cuts this site had proposed with it.
    number: u64,
}

/// When a reader came: at which time, and after how many cuts that its site had proposed. Of what
/// happens at one time only the number says what came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderArrival {
    /// The time.
    pub at: Nanos,
    /// The cuts.
    proposed: u64,
}

/// What a site knows of cuts.
///
/// A cut that this site has proposed has all commits before it that anybody had been told of when
/// it was proposed. Of those of other sites it knows no such time; but they are behind its own that
/// were delivered before, and so have at least as much.
///
/// Invariant: what is kept is of this site's present, or before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SiteCuts {
    /// Where cuts are among commits.
    pub order: CutOrder,
    newest: Option<ReadableCut>,
    /// The one that this site has proposed and that is not delivered, and when that was.
    under_way: Option<(RequestId, Nanos)>,
    /// How many it has proposed in this incarnation.
    proposed: u64,
    /// The longest time for which somebody may use a cut.
    most: Nanos,
}

impl SiteCuts {
    /// Somebody comes at this time.
    pub fn arrival(&self, at: Nanos) -> ReaderArrival {
        ReaderArrival { at, proposed: self.proposed }
    }

    /// Whether somebody who came then can use the newest cut: the same for all that it reads,
    /// whenever it does.
    pub fn serves(&self, bound: &CutBound, came: ReaderArrival) -> bool {
        let Some(newest) = self.newest else { return false };
        // What was proposed since it came has all that its session, or another one, can have seen.
        let is_newer = newest.number > came.proposed;
        let has_seen = self.order.last >= bound.seen.counter();
        is_newer || has_seen && newest.fresh.0.saturating_add(bound.most.0) > came.at.0
    }

    /// Somebody may use a cut of this age.
    pub fn ask(&mut self, most: Nanos) {
        self.most = self.most.max(most);
    }

    /// Whether there is to be another one, as somebody has come who can use it: half of the time
    /// for which the newest one serves such as this is over.
    pub fn is_due(&self, most: Nanos, now: Nanos) -> bool {
        let is_old = |newest: ReadableCut| newest.fresh.0.saturating_add(most.0 / 2) <= now.0;
        self.under_way.is_none() && self.newest.is_none_or(is_old)
    }

    /// Whether one of this site is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// A cut of this site is proposed.
    pub fn propose(&mut self, request: RequestId, now: Nanos) {
        assert!(self.under_way.is_none(), "two cuts of a site are under way");
        self.under_way = Some((request, now));
        self.proposed += 1;
    }

    /// It is known no more whether this command is delivered.
    pub fn lose(&mut self, request: RequestId) {
        self.under_way.take_if(|(under_way, _)| *under_way == request);
    }

    /// What is known of the order is what others know who have delivered the same.
    pub fn restore(&mut self, order: CutOrder) {
        let SiteCuts { under_way, proposed, .. } = *self;
        *self = SiteCuts { order, under_way, proposed, ..SiteCuts::default() };
    }

    /// A cut is delivered, of whichever site, after so many commits; `counts_from`: what is taken
    /// for the time when it was proposed, if it is this site's.
    pub fn deliver(
        &mut self,
        request: RequestId,
        clock: u64,
        counts_from: impl FnOnce(Nanos) -> Nanos,
    ) {
        match self.under_way.take_if(|(under_way, _)| *under_way == request) {
            Some((_, proposed)) => {
                let fresh = counts_from(proposed);
                let before = self.newest.map_or(Nanos(0), |newest| newest.fresh);
                assert!(before <= fresh, "cuts of a site come in their order");
                // One at a time is under way, so it is the last that was proposed.
                self.newest = Some(ReadableCut { clock, fresh, number: self.proposed });
            }
            None => {
                self.newest.iter_mut().for_each(|newest| {
                    assert!(newest.clock <= clock, "{} commits, and then {clock}", newest.clock);
                    newest.clock = clock;
                });
            }
        }
    }

    /// How many commits were applied at the newest cut that is kept.
    pub fn clock(&self) -> Option<u64> {
        self.newest.map(|newest| newest.clock)
    }

    /// Nobody who comes now can use a cut that is so old.
    pub fn forget_old(&mut self, now: Nanos) {
        let most = self.most.0;
        if self.newest.is_some_and(|newest| newest.fresh.0.saturating_add(most) < now.0) {
            self.forget();
        }
    }

    /// Keeps no cut until somebody asks for one.
    pub fn forget(&mut self) {
        (self.newest, self.most) = (None, Nanos(0));
    }

    /// Checks what holds between steps, at a site that has applied so many commits.
    ///
    /// # Panics
    /// It does not.
    pub fn assert_invariants(&self, clock: u64) {
        let kept = self.newest.map_or(0, |newest| newest.clock);
        assert!(kept <= clock, "a cut behind {kept} commits, of {clock}");
        let CutOrder { decided, last } = self.order;
        assert!(last <= decided, "a cut at {last}, of {decided}");
        let number = self.newest.map_or(0, |newest| newest.number);
        assert!(number <= self.proposed, "cut {number} of {}", self.proposed);
    }
}

#[cfg(test)]
mod tests {
    use muesli_broadcast::epochs::MemberName;
    use muesli_core::{RepositoryId, Timestamp};

    use super::*;

    fn request(sequence: u64) -> RequestId {
        RequestId { member: MemberName(1), sequence }
    }

    fn bound(most: u64, seen: u64) -> CutBound {
        let seen = Timestamp::new(seen, RepositoryId(3));
        CutBound { most: Nanos(most), waits: true, seen }
    }

    #[test]
    fn a_cut_serves_as_long_as_it_is_fresh_and_behind_what_a_session_has_seen() {
        let mut cuts = SiteCuts::default();
        let first = cuts.arrival(Nanos(0));
        assert!(!cuts.serves(&bound(100, 0), first) && cuts.is_due(Nanos(100), Nanos(0)));
        cuts.ask(Nanos(100));
        cuts.propose(request(1), Nanos(10));
        assert!(!cuts.is_due(Nanos(100), Nanos(500)), "one at a time");
        cuts.order.decide(7);
        assert_eq!(cuts.order.cut(), 7);
        cuts.deliver(request(1), 4, |proposed| proposed);
        let at = |most, seen, since| cuts.serves(&bound(most, seen), cuts.arrival(Nanos(since)));
        assert_eq!([at(100, 7, 109), at(100, 7, 110), at(50, 0, 60)], [true, false, false]);
        assert!(!at(100, 8, 50) && !at(0, 0, 10), "nor who comes at that very time, but later");
        assert!(cuts.serves(&bound(0, 8), first), "proposed since it came");
        assert!(!cuts.is_due(Nanos(100), Nanos(59)) && cuts.is_due(Nanos(100), Nanos(60)));
        // Another site's is behind this one, and says nothing of the time.
        cuts.order.decide(9);
        cuts.order.cut();
        cuts.deliver(request(2), 6, |_| Nanos(1_000));
        assert_eq!((cuts.clock(), cuts.order.last()), (Some(6), 9));
        assert!(!cuts.serves(&bound(100, 0), cuts.arrival(Nanos(111))));
        cuts.assert_invariants(6);
        cuts.forget_old(Nanos(110));
        assert_eq!(cuts.clock(), Some(6));
        cuts.forget_old(Nanos(111));
        assert_eq!(cuts.clock(), None, "nobody can use it");
    }

    #[test]
    fn a_cut_that_is_lost_makes_room_for_another() {
        let mut cuts = SiteCuts::default();
        cuts.propose(request(1), Nanos(10));
        cuts.lose(request(2));
        assert!(!cuts.is_due(Nanos(1), Nanos(20)));
        cuts.lose(request(1));
        assert!(cuts.is_due(Nanos(1), Nanos(20)));
        cuts.deliver(request(1), 3, |proposed| proposed);
        assert_eq!(cuts.clock(), None, "nobody knows any more when it was proposed");
    }

    #[test]
    fn what_is_restored_has_no_cut_to_read_at() {
        let mut cuts = SiteCuts::default();
        cuts.ask(Nanos(5));
        cuts.propose(request(1), Nanos(1));
        cuts.deliver(request(1), 2, |proposed| proposed);
        let mut order = CutOrder::default();
        order.decide(5);
        order.decide(3);
        assert_eq!((order.cut(), order.last()), (5, 5));
        order.replay(8);
        cuts.restore(order);
        assert_eq!((cuts.order.cut(), cuts.clock()), (8, None));
        assert!(!cuts.serves(&bound(1_000, 0), cuts.arrival(Nanos(2))));
        let least = CutOrder { decided: 7, last: 8 };
        assert!(order.is_possible() && !least.is_possible());
    }

    #[test]
    #[should_panic(expected = "a cut at 5, of 3")]
    fn a_cut_behind_more_than_all_commits_is_noticed() {
        let order = CutOrder { decided: 3, last: 5 };
        SiteCuts { order, ..SiteCuts::default() }.assert_invariants(9);
    }

    #[test]
    #[should_panic(expected = "two cuts of a site")]
    fn one_cut_of_a_site_is_under_way() {
        let mut cuts = SiteCuts::default();
        cuts.propose(request(1), Nanos(1));
        cuts.propose(request(2), Nanos(2));
    }
}
