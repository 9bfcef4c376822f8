//! Time as vectors: a repository's commit log, its queue, and the numbers that it gives.

use std::fmt;

use muesli_core::judgement::ensure;
use muesli_core::parts::commit_log::{CommitLog, sees};
use muesli_core::parts::commit_queue::CommitQueue;
use muesli_core::parts::locks::{LockWord, Owner};
use muesli_core::parts::vector_clock::{Number, VectorClock};
use muesli_core::parts::versions::{Handle, Version, Versions};
use muesli_core::parts::votes::Votes;
use muesli_core::parts::watermark::Bound;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Decision, Rejection, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};

use super::snapshot::{judge_vector, reach_of};
use super::{CommitVector, GmuSwitch, Reads, Switches, VectorVote, Vectors};
use crate::two_phase::{self, Key, NotServed, Reading, Time, TwoPhase, ValidationResult};

type Context<'a> = muesli_core::Context<'a, TwoPhase<Vectors>>;

/// A place in the queue: the number at this repository; where two are alike, as they never are
/// under the protocol as it should be, the transaction decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuePosition {
    number: Number,
    txn: TxnId,
}

impl fmt::Display for QueuePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

/// The commit log, the queue, and the last number given.
///
/// Invariants, beside those of the two: no number that is queued is above the last one that was
/// prepared, and all that was collected is below what readers may still read at.
#[derive(Clone, Debug)]
pub struct VectorTime {
    me: RepositoryId,
    switches: Switches,
    log: CommitLog,
    queue: CommitQueue<Owner, QueuePosition>,
    /// The paper's LastPrepSC: the largest counter proposed or final here.
    last_prepared: u64,
    /// No clock that is not at or above this is read at.
    low: VectorClock,
}

impl VectorTime {
    /// How many commits the log keeps.
    pub fn logged(&self) -> usize {
        self.log.len()
    }

    fn most_recent(&self) -> &VectorClock {
        if self.switches.keeps(GmuSwitch::Pointwise) {
            self.log.most_recent()
        } else {
            self.log.last()
        }
    }

    fn apply_order(&self, txn: TxnId, vector: &VectorClock) -> QueuePosition {
        QueuePosition { number: vector.get(self.me), txn }
    }

    /// The vote of a transaction known by `txn` that depends on `clock`.
    fn ballot(&mut self, clock: &VectorClock, txn: TxnId, writes: bool) -> VectorVote {
        let known = clock.get(self.me).counter;
        self.last_prepared = self.last_prepared.max(known).saturating_add(1);
        let unique = self.switches.keeps(GmuSwitch::UniqueNumbers);
        let by = if unique { txn } else { TxnId::default() };
        let mut vector = clock.clone();
        if self.switches.keeps(GmuSwitch::MergeVotes) {
            vector.join(self.most_recent());
        }
        assert!(self.last_prepared > known, "{txn} is given a number that it depends on");
        vector.set(self.me, Number { counter: self.last_prepared, by });
        VectorVote { txn, vector, writes, unique }
    }

    /// Whether a commit with this number or a smaller one is still to be applied here. Whoever is
    /// given a number has voted here and stands in the queue, below it, until that is applied. A
    /// client may name any other number in what its transaction depends on, and whoever reads what
    /// that wrote would wait for it for ever: it is enough that all smaller ones are applied, and
    /// that none is given any more ([`serve`](Time::serve)).
    fn is_awaited(&self, number: Number) -> bool {
        let knows = self.switches.keeps(GmuSwitch::UniqueNumbers)
            && self.switches.keeps(GmuSwitch::WaitsForQueued);
        !knows || self.queue.first().is_some_and(|first| first.number <= number)
    }

    /// Whether a read at `snapshot` sees the version `at` of a key.
    fn sees(&self, space: SpaceId, key: &SmallBytes, at: Timestamp, snapshot: &Reads) -> bool {
        if !self.switches.keeps(GmuSwitch::FilterByVectors) {
            return at.counter() <= snapshot.clock.get(self.me).counter;
        }
        let writer = self.log.writer_of(space, key, at.counter());
        writer.is_none_or(|vector| sees(&snapshot.clock, &snapshot.answered, vector))
    }
}

/// Whether a vector can be one of a log of so many repositories.
fn judge_logged_vector(vector: &VectorClock, repositories: usize) -> Result<(), Rejection> {
    ensure(vector.len() <= repositories, Rejection::Range)?;
    ensure(vector.largest_counter() <= Timestamp::LOGGED_MOST.counter(), Rejection::Range)
}

impl Time<Vectors> for VectorTime {
    fn new(id: RepositoryId, switches: &Switches) -> VectorTime {
        VectorTime {
            me: id,
            switches: *switches,
            log: CommitLog::new(id),
            queue: CommitQueue::default(),
            last_prepared: 0,
            low: VectorClock::default(),
        }
    }

    fn bounds_of(_: &VectorVote) -> Option<(Timestamp, Timestamp)> {
        None
    }

    fn collectable(&self, low: Timestamp) -> Timestamp {
        low
    }

    fn fits(switches: &Switches, known: &Reads, at: &Reads) -> bool {
        !switches.keeps(GmuSwitch::FitsSideBySide) || known.fits(at)
    }

    fn committed(&self) -> Reads {
        Reads::from_clock(self.most_recent().clone())
    }

    fn newest(&self) -> Reads {
        self.committed()
    }

    fn observe(&mut self, _newest: &Reads, _cx: &mut Context<'_>) {}

    /// The paper's getV up to the choice of the version, after the wait.
    fn serve(
        &mut self,
        reading: &Reading<Vectors>,
        _cx: &mut Context<'_>,
    ) -> Result<Reads, NotServed> {
        let mut snapshot = reading.snapshot.clone();
        if reading.first {
            snapshot.clock.join(&self.low);
        } else if self.switches.family.keeps(two_phase::FamilySwitch::RefusesOldReads)
            && !self.low.is_within(&snapshot.clock)
        {
            return Err(NotServed::TooOld);
        }
        let waits = self.switches.keeps(GmuSwitch::ReadsWait)
            && (self.switches.keeps(GmuSwitch::LocalReadsWait) || !reading.here);
        let needs = snapshot.clock.get(self.me);
        if waits && self.most_recent().get(self.me) < needs {
            if self.is_awaited(needs) {
                return Err(NotServed::Blocked);
            }
            self.last_prepared = self.last_prepared.max(needs.counter);
        }
        if !snapshot.answered.contains(&self.me) {
            let visible = if self.switches.keeps(GmuSwitch::Pointwise) {
                self.log.visible_to(&snapshot.clock, &snapshot.answered)
            } else {
                self.log.last_visible_to(&snapshot.clock, &snapshot.answered)
            };
            snapshot.clock.join(&visible);
            snapshot.mark(self.me);
            assert!(reading.snapshot.clock.is_within(&snapshot.clock), "a snapshot that falls");
        }
        assert!(snapshot.answered.contains(&self.me), "a read that was answered by nobody");
        Ok(snapshot)
    }

    /// Locks are of no concern to reads: what is not applied is not visible.
    fn blocks(&self, _state: &(), _holder: (&Reads, &VectorVote), _snapshot: &Reads) -> bool {
        false
    }

    fn read<'v>(
        &self,
        versions: &'v Versions,
        space: SpaceId,
        key: &SmallBytes,
        snapshot: &Reads,
    ) -> Option<(Handle, LockWord, Version<'v>)> {
        let handle = versions.find(key)?;
        Some((handle, versions.lock(handle), self.version(versions, space, handle, snapshot)))
    }

    /// What was collected is visible to all: only the repository's own number can bound it.
    fn seen_until(&self, snapshot: &Reads) -> Timestamp {
        let next = snapshot.clock.get(self.me).counter.saturating_add(1);
        Timestamp(Timestamp::new(next, RepositoryId(0)).0 - 1)
    }

    fn version<'v>(
        &self,
        versions: &'v Versions,
        space: SpaceId,
        handle: Handle,
        snapshot: &Reads,
    ) -> Version<'v> {
        let key = versions.key(handle);
        let mut all = versions.above(handle, Timestamp::ZERO);
        match all.find(|&at| self.sees(space, key, at, snapshot)) {
            Some(at) => versions.at(handle, at),
            None => versions.at(handle, Timestamp::ZERO),
        }
    }

    fn reached(&self, snapshot: &Reads) -> u64 {
        snapshot.clock.get(self.me).counter
    }

    fn is_too_old(&self, snapshot: &Reads) -> bool {
        !self.low.is_within(&snapshot.clock)
    }

    /// A version that is visible at the snapshot was seen, or found collected. What this log knows
    /// no writer of is visible to all at or above the watermark.
    fn is_current(
        &self,
        (space, key): Key<'_>,
        newest: Timestamp,
        read: Timestamp,
        snapshot: &Reads,
    ) -> bool {
        if self.switches.keeps(GmuSwitch::ExactValidation) {
            newest == read
                || self.switches.family.keeps(two_phase::FamilySwitch::JudgedBySnapshot)
                    && self.sees(space, key, newest, snapshot)
        } else {
            newest.counter() <= snapshot.clock.get(self.me).counter
        }
    }

    fn is_phantom(
        &self,
        (space, key): Key<'_>,
        newest: Timestamp,
        snapshot: &Reads,
        seen: impl FnOnce() -> Option<Timestamp>,
    ) -> bool {
        let unseen = newest != Timestamp::ZERO && seen() != Some(newest);
        unseen
            && !(self.switches.family.keeps(two_phase::FamilySwitch::JudgedBySnapshot)
                && self.sees(space, key, newest, snapshot))
    }

    fn yes(&mut self, txn: TxnId, writes: bool, validation: ValidationResult<Reads>) -> VectorVote {
        self.ballot(&validation.snapshot.clock, txn, writes)
    }

    fn enter(&mut self, txn: TxnId, yes: &VectorVote, owner: Owner) {
        let apply_order = self.apply_order(txn, &yes.vector);
        self.last_prepared = self.last_prepared.max(apply_order.number.counter);
        self.queue.propose(apply_order, owner);
    }

    fn enter_decided(&mut self, txn: TxnId, place: &CommitVector, owner: Owner) {
        let apply_order = self.apply_order(txn, &place.vector);
        self.last_prepared = self.last_prepared.max(apply_order.number.counter);
        self.queue.enter_ready(apply_order, owner);
    }

    fn withdraw(&mut self, txn: TxnId, yes: &VectorVote, owner: Owner) {
        self.queue.remove(self.apply_order(txn, &yes.vector), owner);
    }

    fn decided(&mut self, txn: TxnId, yes: &VectorVote, place: &CommitVector, owner: Owner) {
        let (proposed, apply_order) =
            (self.apply_order(txn, &yes.vector), self.apply_order(txn, &place.vector));
        assert!(
            apply_order >= proposed,
            "{txn} is decided at {apply_order}, below its proposal {proposed}"
        );
        self.last_prepared = self.last_prepared.max(apply_order.number.counter);
        self.queue.decide(proposed, owner, apply_order);
    }

    fn next_ready(&mut self) -> Option<Owner> {
        let next = if self.switches.family.keeps(two_phase::FamilySwitch::OrderedQueue) {
            self.queue.pop_ready()
        } else {
            self.queue.pop_any_ready()
        };
        next.map(|(_, owner)| owner)
    }

    fn applied<'k>(
        &mut self,
        place: &CommitVector,
        keys: impl Iterator<Item = (SpaceId, &'k SmallBytes)>,
    ) {
        let keys = keys.map(|(space, key)| (space, key.clone())).collect();
        self.last_prepared = self.last_prepared.max(place.vector.get(self.me).counter);
        self.log.add(place.vector.clone(), keys);
    }

    fn pass(&mut self, at: Timestamp) {
        unreachable!("no key came from elsewhere, where it was deleted at {at}");
    }

    fn rest(&mut self) {}

    /// Only past an empty queue, and only where nothing is logged. What is in a vector is waited
    /// for, so it must not be lost with this node's memory: a vote is stable before it is said,
    /// and a commit in one step would be read before it is.
    fn yes_alone(
        &mut self,
        validation: &ValidationResult<Reads>,
        logging: bool,
    ) -> Option<VectorVote> {
        if logging || !self.queue.is_empty() {
            return None;
        }
        let next = self.last_prepared.max(validation.snapshot.clock.get(self.me).counter);
        let next = next.saturating_add(2);
        let by = Number::local(next, self.me).by;
        Some(self.ballot(&validation.snapshot.clock, by, true))
    }

    fn applied_alone(&mut self, _place: &CommitVector) {}

    fn decide(
        _switches: &Switches,
        votes: &Votes<RepositoryId, VectorVote>,
    ) -> Decision<CommitVector> {
        assert!(votes.is_complete(), "votes decide once all are there");
        Decision::Commit(CommitVector::from_votes(votes))
    }

    fn decide_alone(&self, _switches: &Switches, yes: VectorVote) -> Decision<CommitVector> {
        Decision::Commit(CommitVector::from_ballots(&[(self.me, &yes)]))
    }

    fn version_of(place: &CommitVector) -> Timestamp {
        place.version()
    }

    fn known_by(place: &CommitVector) -> Reads {
        Reads::from_clock(place.vector.clone())
    }

    fn judge_yes(txn: TxnId, yes: &VectorVote, repositories: usize) -> Result<(), Rejection> {
        ensure(yes.txn == txn, Rejection::Range)?;
        judge_vector(&yes.vector, repositories).map(|_| ())
    }

    fn judge_place(place: &CommitVector, repositories: usize) -> Result<Timestamp, Rejection> {
        let reach = judge_vector(&place.vector, repositories)?;
        ensure(reach_of(place.counter) <= reach, Rejection::Range)?;
        Ok(reach)
    }

    fn judge_logged_yes(
        txn: TxnId,
        writes: bool,
        yes: &VectorVote,
        repositories: usize,
    ) -> Result<(), Rejection> {
        ensure(yes.txn == txn && yes.writes == writes, Rejection::Range)?;
        judge_logged_vector(&yes.vector, repositories)
    }

    /// Whoever was alone has one number, here and in its versions.
    fn judge_logged_place(
        &self,
        place: &CommitVector,
        alone: bool,
        repositories: usize,
    ) -> Result<(), Rejection> {
        let here = place.vector.get(self.me).counter;
        ensure(!alone || here == place.counter, Rejection::Range)?;
        ensure(place.counter <= place.vector.largest_counter(), Rejection::Range)?;
        judge_logged_vector(&place.vector, repositories)
    }

    fn judge_restored(&self, repositories: usize) -> Result<(), Rejection> {
        ensure(self.last_prepared <= Timestamp::LOGGED_MOST.counter(), Rejection::Range)?;
        judge_logged_vector(self.log.most_recent(), repositories)
    }

    /// A place is above the vote in every entry, and has its own number where the transaction
    /// writes.
    fn can_decide(&self, txn: TxnId, yes: &VectorVote, place: &CommitVector) -> bool {
        let (proposed, apply_order) =
            (self.apply_order(txn, &yes.vector), self.apply_order(txn, &place.vector));
        let is_free =
            apply_order == proposed || apply_order > proposed && !self.queue.is_taken(apply_order);
        let numbered = !yes.writes || apply_order.number.counter == place.counter;
        is_free && numbered && (!yes.unique || yes.vector.is_within(&place.vector))
    }

    /// A coordinator numbers a commit one above the largest vote.
    fn issued(&self) -> Timestamp {
        let known = self.log.most_recent().largest_counter().max(self.last_prepared);
        reach_of(known.saturating_add(1))
    }

    fn low(&self) -> Reads {
        Reads::from_clock(self.low.clone())
    }

    /// Versions with the number collected last may be of others too, which are not visible to
    /// everybody yet; so it stops one before.
    fn collect(&mut self, low: &Reads) -> Timestamp {
        self.low.join(&low.clock);
        let to = self.log.collect(&self.low);
        Timestamp::new(to.counter.saturating_sub(1), RepositoryId(0))
    }

    fn replay_upper_bound(&mut self, _at: Timestamp) {}

    fn encode(&self, bytes: usize) -> Vec<Vec<u8>> {
        let mut head = Vec::new();
        self.last_prepared.encode(&mut head);
        self.log.encode(head, bytes)
    }

    fn restore(&mut self, input: &mut Reader<'_>) -> Result<(), WireError> {
        self.last_prepared = self.last_prepared.max(u64::decode(input)?);
        self.log.restore(input)
    }

    fn queued(&self) -> impl Iterator<Item = (Owner, bool)> {
        self.queue.queued().map(|(_, owner, ready)| (owner, ready))
    }

    fn assert_invariants(&self) {
        self.queue.assert_invariants();
        self.log.assert_invariants();
        self.low.assert_invariants();
        for (apply_order, ..) in self.queue.queued() {
            let number = apply_order.number.counter;
            assert!(number <= self.last_prepared, "{number} is queued, and may be given again");
        }
        let (collected, low) = (self.log.collected_to(), self.low.get(self.me));
        assert!(collected <= low, "{collected} was collected, and is read at {low}");
    }

    fn can_enter(&self, txn: TxnId, yes: &VectorVote, decided: Option<&CommitVector>) -> bool {
        let proposed = self.apply_order(txn, &yes.vector);
        let apply_order = decided.map_or(proposed, |place| self.apply_order(txn, &place.vector));
        apply_order >= proposed && !self.queue.is_taken(apply_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time() -> VectorTime {
        let mut time = <VectorTime as Time<Vectors>>::new(RepositoryId(0), &Switches::default());
        let mut vector = VectorClock::default();
        vector.set(RepositoryId(0), Number { counter: 5, by: TxnId::default() });
        time.log.add(vector, Vec::new());
        Time::<Vectors>::assert_invariants(&time);
        time
    }

    #[test]
    #[should_panic(expected = "5 was collected, and is read at 0")]
    fn what_is_collected_above_the_watermark_is_noticed() {
        let mut time = time();
        let most_recent = time.log.most_recent().clone();
        time.log.collect(&most_recent);
        Time::<Vectors>::assert_invariants(&time);
    }

    #[test]
    #[should_panic(expected = "7 is queued, and may be given again")]
    fn a_number_that_may_be_given_again_is_noticed() {
        let mut time = time();
        let txn = TxnId::default();
        time.queue.propose(QueuePosition { number: Number { counter: 7, by: txn }, txn }, Owner(0));
        Time::<Vectors>::assert_invariants(&time);
    }
}
