//! The scalar clock of a repository: what it committed, what it promised not to go below, and
//! what it has heard of.

use crate::ids::{RepositoryId, Timestamp};

/// How far apart the proposals of one repository stand at least. The room between them is for
/// transactions that commit at one repository alone, and need not queue behind pending ones.
pub const PROPOSAL_STEP: u64 = 64;

/// Scalar clock.
///
/// Invariants: `committed`, `served` and `observed` are at or below `reserved`, and none ever
/// falls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarClock {
    repository: RepositoryId,
    committed: Timestamp,
    served: Timestamp,
    reserved: Timestamp,
    observed: Timestamp,
}

impl ScalarClock {
    /// A clock at zero.
    pub fn new(repository: RepositoryId) -> ScalarClock {
        let zero = Timestamp::ZERO;
        ScalarClock { repository, committed: zero, served: zero, reserved: zero, observed: zero }
    }

    /// What it knows: committed, served, promised, heard.
    pub fn known(&self) -> [Timestamp; 4] {
        [self.committed, self.served, self.reserved, self.observed]
    }

    /// Learns what another clock of this repository [knew](Self::known).
    pub fn learn(&mut self, [committed, served, reserved, observed]: [Timestamp; 4]) {
        self.apply(committed);
        self.serve(served);
        self.reserve(reserved);
        self.observe(observed);
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let reserved = self.reserved;
        assert!(self.committed <= reserved, "committed at {}", self.committed);
        assert!(self.served <= reserved, "served at {}, promised {reserved}", self.served);
        assert!(self.observed <= reserved, "heard of {}, promised {reserved}", self.observed);
    }

    /// The timestamp of the last transaction applied here (SCORe: commitId).
    #[inline]
    pub fn committed(&self) -> Timestamp {
        self.committed
    }

    /// The largest timestamp served, proposed or decided here (SCORe: nextId, less one).
    #[inline]
    pub fn reserved(&self) -> Timestamp {
        self.reserved
    }

    /// The largest snapshot that was read here.
    #[inline]
    pub fn served(&self) -> Timestamp {
        self.served
    }

    /// A read at `snapshot` is served: everything proposed from now on is later.
    #[inline]
    pub fn serve(&mut self, snapshot: Timestamp) {
        self.served = self.served.max(snapshot);
        self.reserved = self.reserved.max(snapshot);
    }

    /// A timestamp of this repository above everything served, proposed or decided here.
    #[inline]
    pub fn propose(&mut self) -> Timestamp {
        self.reserved = self.reserved.after(PROPOSAL_STEP, self.repository);
        self.reserved
    }

    /// Everything proposed from now on is later than `at`.
    #[inline]
    pub fn reserve(&mut self, at: Timestamp) {
        self.reserved = self.reserved.max(at);
    }

    /// The smallest timestamp of this repository above all that was committed or served here, if
    /// it is below `first`, the smallest one still queued.
    ///
    /// A transaction may commit there at once if it touched this repository alone and conflicts
    /// with nothing queued: no snapshot already served can see it, every queued transaction will
    /// be later, and those that were proposed later than it but committed nowhere yet do not mind
    /// an order among transactions that share no key.
    #[inline]
    pub fn free_below(&mut self, first: Option<Timestamp>) -> Option<Timestamp> {
        let at = self.committed.max(self.served).after(1, self.repository);
        match first {
            None => Some(self.step_above()),
            Some(first) if at < first => Some(at),
            Some(_) => None,
        }
    }

    /// A timestamp of this repository above everything served, proposed or decided here, with no
    /// room left for others below it.
    #[inline]
    pub fn step_above(&mut self) -> Timestamp {
        self.reserved = self.reserved.after(1, self.repository);
        self.reserved
    }

    /// The transaction at `at` was applied.
    #[inline]
    pub fn apply(&mut self, at: Timestamp) {
        self.committed = self.committed.max(at);
        self.reserved = self.reserved.max(at);
    }

    /// A timestamp committed or served elsewhere was heard of (SCORe: maxSeenId).
    #[inline]
    pub fn observe(&mut self, at: Timestamp) {
        self.observed = self.observed.max(at);
        self.reserved = self.reserved.max(at);
    }

    /// With nothing queued, what was heard of counts as committed: there is nothing here that
    /// could still come before it.
    #[inline]
    pub fn catch_up(&mut self) {
        self.committed = self.committed.max(self.observed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOME: RepositoryId = RepositoryId(3);

    #[test]
    fn proposals_pass_what_was_served() {
        let mut clock = ScalarClock::new(HOME);
        clock.serve(Timestamp::new(100, RepositoryId(9)));
        let first = clock.propose();
        assert!(first > Timestamp::new(100, RepositoryId(9)));
        assert!(clock.propose() > first);
    }

    #[test]
    fn room_is_above_served_and_committed_and_below_the_queue() {
        let mut clock = ScalarClock::new(HOME);
        let pending = clock.propose();
        let local = clock.free_below(Some(pending)).unwrap();
        assert!(local < pending);
        clock.apply(local);
        assert!(clock.free_below(Some(pending)).unwrap() > local);
        clock.serve(pending);
        assert_eq!(clock.free_below(Some(pending)), None);
        assert!(clock.free_below(None).unwrap() > pending);
    }

    #[test]
    fn catching_up_takes_what_was_heard() {
        let mut clock = ScalarClock::new(HOME);
        clock.observe(Timestamp(70_000));
        assert_eq!(clock.committed(), Timestamp::ZERO);
        clock.catch_up();
        assert_eq!(clock.committed(), Timestamp(70_000));
        assert!(clock.propose() > Timestamp(70_000));
    }

    proptest! {
        #[test]
        fn never_proposes_at_or_below_anything_known(
            steps in prop::collection::vec((0u8..5, 0u64..1_000_000), 1..60),
        ) {
            let mut clock = ScalarClock::new(HOME);
            let mut largest = Timestamp::ZERO;
            for (what, number) in steps {
                let at = Timestamp(number);
                match what {
                    0 => clock.serve(at),
                    1 => clock.reserve(at),
                    2 => clock.observe(at),
                    3 => clock.apply(at),
                    _ => {
                        let proposed = clock.propose();
                        prop_assert!(proposed > largest);
                        prop_assert_eq!(proposed.repository(), HOME);
                        largest = proposed;
                        continue;
                    }
                }
                largest = largest.max(at);
                prop_assert!(clock.committed() <= clock.reserved());
                prop_assert!(clock.served() <= clock.reserved());
            }
        }
    }
}
