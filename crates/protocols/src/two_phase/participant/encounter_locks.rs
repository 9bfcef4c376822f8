//! Locks that are taken with each write, while the transaction runs (encounter time).
//!
//! # The problem
//! The data grid below GMU locks a key when it is written, not when the commit prepares: a client
//! meets a conflict at its write, and waits there. A protocol that buffers writes and locks at the
//! commit holds locks for a shorter time, and would look better than what it stands for.
//!
//! # The idea
//! A write asks all replicas of its key for the lock ([`Message::Lock`]), and its client waits
//! until all have it. A replica grants it when it is free, in the order in which it was asked, and
//! refuses after [`lock_wait`](muesli_core::Settings::lock_wait): that bounds every wait, those in
//! a circle too. The prepare takes the locks over. A transaction that ends without one gives them
//! back ([`Message::Unlock`]).
//!
//! # Why it is safe
//! Nothing rests on these locks: a prepare takes what it finds free and waits for the rest, as
//! without them. So they live in memory alone, and go after
//! [`in_doubt_after`](muesli_core::Settings::in_doubt_after) in which nothing was heard of their
//! transaction: its coordinator is dead, or a message was lost.

use std::collections::BTreeMap;

use muesli_core::limits::read_bytes;
use muesli_core::parts::locks::Owner;
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, Address, Nanos, Settings, SpaceId};

use super::Participant;
use super::prepare::NO_HANDLE;
use crate::two_phase::message::{Few, LockRequest, Message};
use crate::two_phase::{Context, Variant};

/// Owns all locks of transactions that have not prepared: a number that no prepared one has.
pub(super) const RUNNING: Owner = Owner((1 << 30) - 1);
/// Running transactions hold locks of so many bytes of keys at a repository, with
/// [16](muesli_core::limits::ENTRY_BYTES) for each, and at least of those of one transaction.
const LOCKS_BYTES_MAX: usize = 128 << 20;

/// What a running transaction has locked here.
#[derive(Clone, Debug)]
struct HeldLocks {
    keys: Few<(SpaceId, Handle)>,
    /// What these count.
    bytes: usize,
    /// Unless more is heard of it.
    until: Nanos,
}

/// A request that waits for its lock.
#[derive(Clone, Debug)]
struct WaitingLock<V: Variant> {
    from: Address,
    asked: LockRequest<V>,
    deadline: Nanos,
}

/// The locks of running transactions.
///
/// Invariants: whoever is listed holds a lock, no key is held twice, `bytes` is what all of them
/// count, and nobody waits under a number that was not given out.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct EncounterLocks<V: Variant> {
    held: BTreeMap<V::Reader, HeldLocks>,
    /// What all that is held counts.
    bytes: usize,
    /// In the order in which they came.
    waiting: BTreeMap<u64, WaitingLock<V>>,
    arrivals: u64,
}

impl<V: Variant> Default for EncounterLocks<V> {
    fn default() -> EncounterLocks<V> {
        EncounterLocks { held: BTreeMap::new(), bytes: 0, waiting: BTreeMap::new(), arrivals: 0 }
    }
}

impl<V: Variant> EncounterLocks<V> {
    /// Whether nobody holds or wants any.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    /// Whether a running transaction holds the lock of a key.
    #[inline]
    pub fn has(&self, reader: V::Reader, key: (SpaceId, Handle)) -> bool {
        self.held.get(&reader).is_some_and(|held| held.keys.contains(&key))
    }

    /// Whether a request waits.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a lock is held.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// The keys that are locked.
    pub fn keys(&self) -> impl Iterator<Item = (SpaceId, Handle)> + '_ {
        self.held.values().flat_map(|held| held.keys.iter().copied())
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let bytes: usize = self.held.values().map(|held| held.bytes).sum();
        assert_eq!(self.bytes, bytes, "bytes of locks of running transactions");
        for (reader, held) in &self.held {
            assert!(!held.keys.is_empty(), "{reader:?} is kept for no lock");
            assert!(held.bytes > 0, "the locks of {reader:?} count nothing");
        }
        let (mut keys, locks): (Vec<_>, usize) = (self.keys().collect(), self.keys().count());
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), locks, "keys that running transactions hold");
        let last = self.waiting.last_key_value().map_or(0, |(arrival, _)| *arrival);
        assert!(last <= self.arrivals, "request {last} waits, of {}", self.arrivals);
    }

    /// When the first wait is over.
    pub fn first_deadline(&self) -> Option<Nanos> {
        self.waiting.values().map(|waiting| waiting.deadline).min()
    }

    /// How many running transactions hold locks, and how many requests wait.
    pub fn counts(&self) -> (usize, usize) {
        (self.held.len(), self.waiting.len())
    }

    /// Whether no further request may wait, of so many bytes.
    fn too_many_wait(&self, asked: usize, settings: &Settings) -> bool {
        let bytes: usize = self.waiting.values().map(|it| read_bytes(&it.asked.key)).sum();
        let is_much = bytes > 0 && bytes.saturating_add(asked) > settings.limits.transaction_bytes;
        is_much || self.waiting.len() >= settings.lock_waiters_max
    }

    /// Why a transaction gets no further lock, if it does not: whoever asks for ever more of them
    /// would have them all kept. The limit of memory is none of these reasons: the write may be a
    /// delete, which a request does not say, and a prepare that adds something is refused anyway.
    fn is_full(&self, reader: V::Reader, asked: usize, settings: &Settings) -> Option<Abort> {
        let held = self.held.get(&reader).map_or(0, |held| held.bytes);
        let most = LOCKS_BYTES_MAX.max(settings.limits.transaction_bytes);
        let all = self.bytes.saturating_add(asked) > most;
        let one = settings.limits.judge_transaction(held.saturating_add(asked));
        one.or_else(|| all.then_some(Abort::Overloaded))
    }
}

impl<V: Variant> Participant<V> {
    /// How many running transactions hold locks here, and how many of their requests wait.
    pub fn encounter_locks(&self) -> (usize, usize) {
        self.encounters.counts()
    }

    pub(in crate::two_phase) fn on_lock(
        &mut self,
        from: Address,
        asked: LockRequest<V>,
        cx: &mut Context<'_, V>,
    ) {
        let again = |it: &WaitingLock<V>| it.from == from && it.asked.request == asked.request;
        if !V::POLICIES.locking.may_lock_at_writes() || self.encounters.waiting.values().any(again)
        {
            return;
        }
        let bytes = read_bytes(&asked.key);
        if let Some(refused) = self.encounters.is_full(asked.reader, bytes, cx.settings) {
            return self.answer_lock(from, &asked, Some(refused), cx);
        }
        if self.try_encounter(&asked, cx) {
            return self.answer_lock(from, &asked, None, cx);
        }
        if self.encounters.too_many_wait(bytes, cx.settings) {
            return self.answer_lock(from, &asked, Some(Abort::Overloaded), cx);
        }
        let deadline = cx.now() + cx.settings.lock_wait;
        self.encounters.arrivals += 1;
        let arrival = self.encounters.arrivals;
        self.encounters.waiting.insert(arrival, WaitingLock { from, asked, deadline });
        let waiting = self.encounters.waiting.len();
        assert!(waiting <= cx.settings.lock_waiters_max, "{waiting} requests wait for locks");
        self.set_lock_timer(cx);
    }

    /// Takes a lock for a running transaction if it is free, or its own already.
    fn try_encounter(&mut self, asked: &LockRequest<V>, cx: &mut Context<'_, V>) -> bool {
        let versions = self.space(asked.space, cx);
        let handle = versions.find_or_create(NO_HANDLE, &asked.key);
        let key = (asked.space, handle);
        let taken = versions.lock_mut(handle).try_exclusive(RUNNING);
        if !taken && !self.encounters.has(asked.reader, key) {
            return false;
        }
        let until = cx.now() + cx.settings.in_doubt_after;
        let none = || HeldLocks { keys: Few::new(), bytes: 0, until };
        let held = self.encounters.held.entry(asked.reader).or_insert_with(none);
        held.until = until;
        if taken {
            assert!(!held.keys.contains(&key), "a key that was free and held");
            held.keys.push(key);
            held.bytes += read_bytes(&asked.key);
            self.encounters.bytes += read_bytes(&asked.key);
        }
        self.set_sweep_timer(cx);
        true
    }

    fn answer_lock(
        &self,
        to: Address,
        asked: &LockRequest<V>,
        refused: Option<Abort>,
        cx: &mut Context<'_, V>,
    ) {
        cx.send(to, Message::Locked { request: asked.request, refused });
    }

    /// A running transaction has ended here without a prepare.
    pub(in crate::two_phase) fn on_unlock(&mut self, reader: V::Reader, cx: &mut Context<'_, V>) {
        self.encounters.waiting.retain(|_, waiting| waiting.asked.reader != reader);
        if self.release_encounter(reader, cx) {
            self.after_release(cx);
        }
    }

    /// Gives back what a running transaction has locked; whether that was anything.
    pub(in crate::two_phase) fn release_encounter(
        &mut self,
        reader: V::Reader,
        cx: &Context<'_, V>,
    ) -> bool {
        let Some(held) = self.encounters.held.remove(&reader) else { return false };
        assert!(held.bytes <= self.encounters.bytes, "locks of {reader:?} were not counted");
        self.encounters.bytes -= held.bytes;
        for (space, handle) in held.keys {
            let versions = self.space(space, cx);
            versions.lock_mut(handle).release_exclusive(RUNNING);
            versions.remove_if_unused(handle);
        }
        true
    }

    /// A prepare takes over the lock of a key that a running transaction has: its own, or in a
    /// replay whoever's.
    pub(in crate::two_phase) fn take_over(&mut self, key: (SpaceId, Handle), cx: &Context<'_, V>) {
        let versions = self.space(key.0, cx);
        if versions.lock(key.1).exclusive_owner() != Some(RUNNING) {
            return;
        }
        versions.lock_mut(key.1).release_exclusive(RUNNING);
        let bytes = read_bytes(versions.key(key.1));
        assert!(
            bytes <= self.encounters.bytes,
            "the lock of a running transaction was not counted"
        );
        self.encounters.bytes -= bytes;
        for held in self.encounters.held.values_mut() {
            let before = held.keys.len();
            held.keys.retain(|other| *other != key);
            held.bytes -= bytes * (before - held.keys.len());
        }
        self.encounters.held.retain(|_, held| !held.keys.is_empty());
    }

    /// Locks are free: whoever waits for one looks again.
    pub(in crate::two_phase) fn retry_waiting_locks(&mut self, cx: &mut Context<'_, V>) {
        let arrivals: Vec<_> = self.encounters.waiting.keys().copied().collect();
        for arrival in arrivals {
            let asked = self.encounters.waiting[&arrival].asked.clone();
            if self.try_encounter(&asked, cx) {
                let waiting = self.encounters.waiting.remove(&arrival).expect("just seen");
                self.answer_lock(waiting.from, &asked, None, cx);
            }
        }
    }

    /// Refuses those that have waited for too long.
    pub(in crate::two_phase) fn refuse_late_locks(&mut self, cx: &mut Context<'_, V>) {
        let now = cx.now();
        let late = self.encounters.waiting.extract_if(.., |_, waiting| waiting.deadline <= now);
        let late: Vec<_> = late.collect();
        for (_, waiting) in late {
            self.answer_lock(waiting.from, &waiting.asked, Some(Abort::Locked), cx);
        }
    }

    /// Gives back the locks of transactions that nothing was heard of for too long.
    pub(in crate::two_phase) fn release_silent(&mut self, cx: &mut Context<'_, V>) {
        let now = cx.now();
        let silent = self.encounters.held.iter().filter(|(_, held)| held.until <= now);
        let silent: Vec<_> = silent.map(|(reader, _)| *reader).collect();
        for reader in &silent {
            self.release_encounter(*reader, cx);
        }
        if !silent.is_empty() {
            self.after_release(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Catalog, Effects, NodeId, RepositoryId};

    use super::*;
    use crate::repeatable_read::{NewestVersions, Switches};

    const SPACE: SpaceId = SpaceId(0);

    fn held(key: Handle) -> HeldLocks {
        HeldLocks { keys: [(SPACE, key)].into_iter().collect(), bytes: 8, until: Nanos(1) }
    }

    #[test]
    #[should_panic(expected = "keys that running transactions hold")]
    fn a_key_that_two_hold_is_noticed() {
        let all = [((1, 1), held(Handle::NONE)), ((1, 2), held(Handle::NONE))];
        let (held, bytes) = (all.into_iter().collect(), 16);
        let locks = EncounterLocks::<NewestVersions> { held, bytes, ..EncounterLocks::default() };
        locks.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "request 3 waits, of 2")]
    fn a_request_that_nobody_made_is_noticed() {
        let asked = LockRequest { request: 1, reader: (1, 1), space: SPACE, key: "key".into() };
        let from = Address::coordinator(NodeId(1));
        let waiting = BTreeMap::from([(3, WaitingLock { from, asked, deadline: Nanos(1) })]);
        let none = EncounterLocks::<NewestVersions>::default();
        EncounterLocks { waiting, arrivals: 2, ..none }.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "the lock of a running transaction was not counted")]
    fn a_lock_that_was_not_counted_is_noticed() {
        let nodes = [NodeId(0)];
        let catalog = Catalog::new(&nodes, 1, &nodes).expect("it can be");
        let (settings, id) = (Settings::default(), RepositoryId(0));
        let me = Address::repository(NodeId(0), id);
        let effects = &mut Effects::default();
        let cx = Context { me, catalog: &catalog, settings: &settings, effects };
        let switches = Switches::default();
        let mut participant: Participant<NewestVersions> =
            muesli_core::Participant::new(id, &settings, &switches);
        let versions = participant.space(SPACE, &cx);
        let handle = versions.find_or_create(NO_HANDLE, &"key".into());
        assert!(versions.lock_mut(handle).try_exclusive(RUNNING));
        participant.take_over((SPACE, handle), &cx);
    }
}
