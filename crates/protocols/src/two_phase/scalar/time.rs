//! What the family's machines ask of a clock of timestamps.

use muesli_core::judgement::{ensure, has_capacity, in_range};
use muesli_core::parts::clock::{PROPOSAL_STEP, ScalarClock};
use muesli_core::parts::commit_queue::CommitQueue;
use muesli_core::parts::locks::{LockWord, Owner};
use muesli_core::parts::versions::{Handle, Version, Versions};
use muesli_core::parts::votes::Votes;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Decision, Rejection, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};

use super::{REACH_MAX, Scalar, ScalarTime};
use crate::two_phase::policy::{FamilySwitch, TreeSwitch};
use crate::two_phase::time::{NotServed, Reading, Time};
use crate::two_phase::{Context, Key, ValidationResult, Variant};

/// Where versions are looked for in a read at `snapshot`.
#[inline]
fn seen_at<V: Variant>(snapshot: Timestamp) -> Timestamp {
    if V::POLICIES.reading.has_snapshots() { snapshot } else { Timestamp::MAX }
}

impl<V: Scalar> Time<V> for ScalarTime {
    fn new(id: RepositoryId, switches: &V::Switches) -> ScalarTime {
        ScalarTime {
            id,
            switches: V::switches(switches),
            clock: ScalarClock::new(id),
            upper_bound: Timestamp::ZERO,
            low: Timestamp::ZERO,
            queue: CommitQueue::default(),
            choice: V::tree(switches),
            reach: 0,
        }
    }

    fn bounds_of(yes: &V::Yes) -> Option<(Timestamp, Timestamp)> {
        Some(((*yes).into(), V::reads_hold_until(*yes)))
    }

    /// A timestamp is fixed by the first read, and the others are asked at it.
    #[inline]
    fn fits(_: &V::Switches, _: &Timestamp, _: &Timestamp) -> bool {
        true
    }

    #[inline]
    fn committed(&self) -> Timestamp {
        self.clock.committed()
    }

    fn newest(&self) -> Timestamp {
        self.clock.reserved()
    }

    /// An idle repository must follow, or what it tells of itself would hold back everybody's
    /// garbage collection. It goes by what it committed: after a restart it has promised more than
    /// others may ever tell.
    fn observe(&mut self, newest: &Timestamp, cx: &mut Context<'_, V>) {
        if *newest > self.clock.committed() && self.queue.is_empty() {
            // Whoever fails to serve what it then has committed needs an upper bound first.
            let _ = self.at(*newest, true, cx);
        }
    }

    #[inline(always)]
    fn serve(
        &mut self,
        reading: &Reading<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<Timestamp, NotServed> {
        self.at(reading.snapshot, reading.first, cx)
    }

    #[inline]
    fn collectable(&self, low: Timestamp) -> Timestamp {
        let in_doubt = self.queue.first().filter(|_| self.has_intervals::<V>());
        in_doubt.map_or(low, |first| low.min(Timestamp(first.0 - 1)))
    }

    #[inline]
    fn blocks(
        &self,
        protocol_state: &V::ProtocolState,
        (held, yes): (&Timestamp, &V::Yes),
        snapshot: &Timestamp,
    ) -> bool {
        let inside = if !self.keeps::<V>(TreeSwitch::StampedByLeaf) {
            held.after(1, self.id) <= *snapshot
        } else if self.switches.keeps(FamilySwitch::WaitsByProposal) {
            <V as Scalar>::blocks(protocol_state, *held, *yes, *snapshot)
        } else {
            self.clock.committed() < *snapshot
        };
        V::POLICIES.reading.has_snapshots()
            && self.switches.keeps(FamilySwitch::ReadsWait)
            && inside
    }

    #[inline(always)]
    fn read<'v>(
        &self,
        versions: &'v Versions,
        _space: SpaceId,
        key: &SmallBytes,
        snapshot: &Timestamp,
    ) -> Option<(Handle, LockWord, Version<'v>)> {
        versions.read(key, seen_at::<V>(*snapshot))
    }

    #[inline]
    fn seen_until(&self, snapshot: &Timestamp) -> Timestamp {
        seen_at::<V>(*snapshot)
    }

    #[inline]
    fn version<'v>(
        &self,
        versions: &'v Versions,
        _space: SpaceId,
        handle: Handle,
        snapshot: &Timestamp,
    ) -> Version<'v> {
        versions.at(handle, seen_at::<V>(*snapshot))
    }

    fn reached(&self, snapshot: &Timestamp) -> u64 {
        snapshot.0
    }

    #[inline]
    fn is_too_old(&self, snapshot: &Timestamp) -> bool {
        *snapshot < self.low
    }

    /// A reader at a snapshot has seen every version at or below it, at whichever replica: so what
    /// lies there is not missed, though the reader may have found it collected, or replaced by
    /// nothing at a replica that has collected less.
    #[inline]
    fn is_current(
        &self,
        _key: Key<'_>,
        newest: Timestamp,
        read: Timestamp,
        snapshot: &Timestamp,
    ) -> bool {
        // Where reads are forwarded, what is below the snapshot is taken on trust only where
        // nothing is there: a deletion, which may have been collected. (Of the only copy not that
        // either: see `may_differ` of the participant.)
        let is_deletion = || read == Timestamp::ZERO || newest == Timestamp::ZERO;
        let is_exact = V::POLICIES.reading.is_forwarded()
            && self.switches.keeps(FamilySwitch::ComparesExactly);
        let is_seen = !is_exact || is_deletion();
        let by_snapshot = self.switches.keeps(FamilySwitch::JudgedBySnapshot);
        newest == read || by_snapshot && is_seen && newest <= *snapshot
    }

    #[inline]
    fn is_phantom(
        &self,
        _key: Key<'_>,
        newest: Timestamp,
        snapshot: &Timestamp,
        _seen: impl FnOnce() -> Option<Timestamp>,
    ) -> bool {
        newest > *snapshot
    }

    fn yes(
        &mut self,
        _: TxnId,
        _writes: bool,
        mut validation: ValidationResult<Timestamp>,
    ) -> V::Yes {
        // Reads raised the clock when they were served; a blind write was never here before.
        if self.switches.keeps(FamilySwitch::ReadsRaise) {
            self.clock.reserve(validation.snapshot);
        }
        if self.has_intervals::<V>() {
            self.clock.reserve(validation.lower_bound);
        }
        self.assert_missed_above_snapshot::<V>(&validation);
        let before = self.clock.reserved();
        let is_late = self.switches.keeps(FamilySwitch::ProposalsPassClock)
            && self.switches.keeps(FamilySwitch::ProposesUnderLocks);
        let proposal = match self.keeps::<V>(TreeSwitch::ProposalsPassSnapshots) {
            true if !is_late => validation.snapshot.after(PROPOSAL_STEP, self.id),
            true => self.clock.propose(),
            false => self.clock.step_above(),
        };
        assert!(proposal > before || !is_late, "{proposal} is proposed, at or below {before}");
        assert!(!self.queue.is_taken(proposal), "{proposal} is proposed twice");
        validation.reach = self.has_intervals::<V>().then_some(self.reach);
        <V as Scalar>::yes(proposal, &validation)
    }

    fn enter(&mut self, _txn: TxnId, yes: &V::Yes, owner: Owner) {
        self.clock.reserve((*yes).into());
        self.queue.propose((*yes).into(), owner);
    }

    fn enter_decided(&mut self, txn: TxnId, place: &V::Place, owner: Owner) {
        let at = (*place).into();
        assert!(V::version(*place) <= at, "{txn} writes versions above its turn {at}");
        self.clock.reserve(at);
        self.queue.enter_ready(at, owner);
    }

    fn withdraw(&mut self, _txn: TxnId, yes: &V::Yes, owner: Owner) {
        if self.has_intervals::<V>() && V::reads_hold_until(*yes) < Timestamp::MAX {
            self.note_refused((*yes).into());
        }
        self.queue.remove((*yes).into(), owner);
    }

    fn decided(&mut self, txn: TxnId, yes: &V::Yes, place: &V::Place, owner: Owner) {
        let (proposed, at): (Timestamp, Timestamp) = ((*yes).into(), (*place).into());
        assert!(at >= proposed, "{txn} is decided at {at}, below its proposal {proposed}");
        assert!(V::version(*place) <= at, "{txn} writes versions above its turn {at}");
        if self.keeps::<V>(TreeSwitch::ClocksPassEnds) {
            self.clock.reserve(at);
        }
        if self.has_intervals::<V>() {
            self.note_reach(at.counter() - proposed.counter());
        }
        self.queue.decide(proposed, owner, at);
    }

    fn next_ready(&mut self) -> Option<Owner> {
        let next = if V::POLICIES.order.queues() && self.switches.keeps(FamilySwitch::OrderedQueue)
        {
            self.queue.pop_ready()
        } else {
            self.queue.pop_any_ready()
        };
        next.map(|(_, owner)| owner)
    }

    #[inline]
    fn applied<'k>(
        &mut self,
        place: &V::Place,
        _keys: impl Iterator<Item = (SpaceId, &'k SmallBytes)>,
    ) {
        if self.keeps::<V>(TreeSwitch::ClocksPassEnds) {
            self.clock.apply((*place).into());
        }
    }

    fn pass(&mut self, at: Timestamp) {
        self.clock.apply(at);
    }

    #[inline]
    fn rest(&mut self) {
        if self.queue.is_empty() || !self.switches.keeps(FamilySwitch::CatchUpWhenIdle) {
            self.clock.catch_up();
        }
    }

    /// It goes below whatever is queued if there is room, and past it if not: what is queued
    /// shares no key with it, and may come to lie before it, because whoever reads a queued
    /// transaction's key at a later snapshot waits for that transaction, whatever was applied
    /// since. By the paper's waiting rule, which goes by what was applied, it would have to queue.
    #[inline(always)]
    fn yes_alone(
        &mut self,
        validation: &ValidationResult<Timestamp>,
        _logging: bool,
    ) -> Option<V::Yes> {
        self.assert_missed_above_snapshot::<V>(validation);
        self.clock.serve(validation.snapshot);
        if self.has_intervals::<V>() {
            self.clock.reserve(validation.lower_bound);
        }
        let free_below = self.clock.free_below(self.queue.first());
        // Somebody queued may have been decided, and have left its read timestamp on what is
        // written.
        let at = match free_below.filter(|at| *at > validation.lower_bound) {
            Some(at) => at,
            None if self.switches.keeps(FamilySwitch::WaitsByProposal) => self.clock.step_above(),
            None => return None,
        };
        Some(<V as Scalar>::yes(at, validation))
    }

    #[inline]
    fn applied_alone(&mut self, place: &V::Place) {
        self.low = self.low.max(V::version(*place));
    }

    fn decide(_switches: &V::Switches, votes: &Votes<RepositoryId, V::Yes>) -> Decision<V::Place> {
        <V as Scalar>::decide(votes)
    }

    #[inline]
    fn decide_alone(&self, _switches: &V::Switches, yes: V::Yes) -> Decision<V::Place> {
        <V as Scalar>::decide_alone(yes)
    }

    #[inline]
    fn version_of(place: &V::Place) -> Timestamp {
        V::version(*place)
    }

    fn known_by(place: &V::Place) -> Timestamp {
        (*place).into()
    }

    fn judge_yes(_txn: TxnId, yes: &V::Yes, _repositories: usize) -> Result<(), Rejection> {
        in_range((*yes).into())?;
        ensure(V::can_be(*yes), Rejection::Range)?;
        // What the votes of all come to is tagged with no later version than one of them alone.
        match <V as Scalar>::decide_alone(*yes) {
            Decision::Commit(place) => {
                let at: Timestamp = place.into();
                ensure(V::version(place) <= at, Rejection::Range)
            }
            Decision::Abort(_) => Ok(()),
        }
    }

    fn judge_place(place: &V::Place, _repositories: usize) -> Result<Timestamp, Rejection> {
        let at = (*place).into();
        ensure(V::version(*place) <= at, Rejection::Range)?;
        in_range(at).map(|()| at)
    }

    fn judge_logged_yes(
        _: TxnId,
        _writes: bool,
        yes: &V::Yes,
        _repositories: usize,
    ) -> Result<(), Rejection> {
        ensure(V::can_be(*yes), Rejection::Range)?;
        has_capacity((*yes).into())
    }

    fn judge_logged_place(
        &self,
        place: &V::Place,
        _alone: bool,
        _repositories: usize,
    ) -> Result<(), Rejection> {
        let at = (*place).into();
        ensure(V::version(*place) <= at, Rejection::Range)?;
        has_capacity(at)
    }

    fn judge_restored(&self, _repositories: usize) -> Result<(), Rejection> {
        has_capacity(self.clock.reserved().max(self.upper_bound))
    }

    fn can_decide(&self, _txn: TxnId, yes: &V::Yes, place: &V::Place) -> bool {
        let (proposed, at): (Timestamp, Timestamp) = ((*yes).into(), (*place).into());
        let is_free = at == proposed || at > proposed && !self.queue.is_taken(at);
        is_free && V::may_decide(*yes, *place)
    }

    fn issued(&self) -> Timestamp {
        self.clock.reserved()
    }

    fn low(&self) -> Timestamp {
        self.low
    }

    fn collect(&mut self, low: &Timestamp) -> Timestamp {
        self.low = self.low.max(*low);
        self.low
    }

    fn replay_upper_bound(&mut self, at: Timestamp) {
        self.upper_bound = self.upper_bound.max(at);
        self.clock.serve(at);
    }

    fn encode(&self, _bytes: usize) -> Vec<Vec<u8>> {
        let (known, mut out) = (self.clock.known(), Vec::new());
        known.iter().chain([&self.upper_bound]).for_each(|at| at.encode(&mut out));
        vec![out]
    }

    fn restore(&mut self, input: &mut Reader<'_>) -> Result<(), WireError> {
        let mut known = [Timestamp::ZERO; 4];
        for at in &mut known {
            *at = Timestamp::decode(input)?;
        }
        let upper_bound = Timestamp::decode(input)?;
        self.clock.learn(known);
        // Snapshots up to it may have been served since.
        self.clock.serve(upper_bound);
        self.upper_bound = self.upper_bound.max(upper_bound);
        Ok(())
    }

    fn queued(&self) -> impl Iterator<Item = (Owner, bool)> {
        self.queue.queued().map(|(_, owner, ready)| (owner, ready))
    }

    fn assert_invariants(&self) {
        self.clock.assert_invariants();
        self.queue.assert_invariants();
        assert!(self.reach <= REACH_MAX, "nobody counts on {} steps", self.reach);
        let last = self.queue.queued().last().map_or(Timestamp::ZERO, |(at, ..)| at);
        let passes = self.keeps::<V>(TreeSwitch::ClocksPassEnds);
        assert!(!passes || last <= self.clock.reserved(), "{last} may be proposed again");
    }

    fn can_enter(&self, _txn: TxnId, yes: &V::Yes, decided: Option<&V::Place>) -> bool {
        let proposed: Timestamp = (*yes).into();
        let at = decided.map_or(proposed, |place| (*place).into());
        at >= proposed && !self.queue.is_taken(at)
    }
}
