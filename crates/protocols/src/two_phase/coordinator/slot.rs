//! The place of a transaction at its coordinator.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::exceeded::Limit;
use muesli_core::limits::{check_size, range_bytes};
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::ranges::KeyRange;
use muesli_core::{
    Failure, Limits, LogPosition, Nanos, RepositoryId, SmallBytes, SpaceId, TxnOptions,
};

use super::asked::{MOVING, SnapshotMove};
use super::delays::Delays;
use crate::two_phase::Variant;
use crate::two_phase::message::Found;

/// What a transaction takes of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::two_phase) enum SlotPhase {
    /// Operations.
    Open,
    /// Its commit is under way, under this number: no further operations.
    Committing(u64),
    /// This level was undone, with all inside: none but those that begin it once more, or give it
    /// up.
    Undone(u32),
}

/// A transaction's place; reused, with its memory, by the next one.
///
/// Invariants: one that is free has no sets, and nothing delayed; a commit under way has no request
/// held back; what was undone is the level inside of those that are left; locks are asked for of
/// somebody; what is delayed is asked by numbers in order.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Slot<V: Variant> {
    pub generation: u32,
    pub running: bool,
    /// What it takes of its client.
    pub phase: SlotPhase,
    pub options: TxnOptions,
    /// The least snapshot it may get.
    pub base: V::Snapshot,
    /// Known from the first read on.
    pub snapshot: Option<V::Snapshot>,
    /// How often a repository has answered, where reads go out side by side.
    pub answers: u32,
    /// See [`Alone::since`](crate::two_phase::participant::one_phase::Alone::since).
    pub undisturbed_since: Option<u64>,
    /// A request is under way elsewhere that may change the snapshot; others wait for it.
    pub fixing: Option<u64>,
    /// Where its snapshot was moved to last, if that is a vector: answers that do not reach it are
    /// of before.
    pub moved_to: V::Snapshot,
    /// Its snapshot is on its way to a later one; until then it has none, and `fixing` is set.
    pub moving: Option<Box<SnapshotMove<V>>>,
    /// Requests that wait for the snapshot, in order.
    pub held: Vec<u64>,
    /// What must be stable before the client may hear of what it read here.
    pub gate: LogPosition,
    pub begun: Nanos,
    pub sets: TransactionSets,
    /// What is to be done at the commit.
    pub delays: Delays,
    /// The keys whose locks it has asked for, and of whom.
    pub locked: BTreeSet<(SpaceId, SmallBytes)>,
    pub locked_at: BTreeSet<RepositoryId>,
    /// What was read, where reads are made at no snapshot: it is what is read again.
    pub seen: BTreeMap<(SpaceId, SmallBytes), Found>,
    /// The ranges that were read, if reads are made at no snapshot.
    pub scanned: BTreeSet<KeyRange>,
    /// The bytes of these.
    pub scanned_bytes: usize,
}

impl<V: Variant> Slot<V> {
    pub fn empty() -> Slot<V> {
        Slot {
            generation: 0,
            running: false,
            phase: SlotPhase::Open,
            options: TxnOptions::default(),
            base: V::Snapshot::default(),
            snapshot: None,
            answers: 0,
            undisturbed_since: None,
            fixing: None,
            moved_to: V::Snapshot::default(),
            moving: None,
            held: Vec::new(),
            gate: LogPosition(0),
            begun: Nanos(0),
            sets: TransactionSets::default(),
            delays: Delays::default(),
            locked: BTreeSet::new(),
            locked_at: BTreeSet::new(),
            seen: BTreeMap::new(),
            scanned: BTreeSet::new(),
            scanned_bytes: 0,
        }
    }

    /// A transaction begins in it.
    #[inline]
    pub fn occupy(&mut self, options: TxnOptions, base: V::Snapshot, now: Nanos) {
        self.running = true;
        self.phase = SlotPhase::Open;
        self.options = options;
        self.base = base;
        self.snapshot = None;
        self.answers = 0;
        self.undisturbed_since = None;
        self.fixing = None;
        if V::POLICIES.reading.is_side_by_side() {
            self.moved_to = V::Snapshot::default();
        }
        self.held.clear();
        self.gate = LogPosition(0);
        self.begun = now;
    }

    /// Its transaction has ended.
    #[inline]
    pub fn vacate(&mut self) {
        self.running = false;
        self.generation = self.generation.wrapping_add(1);
        self.sets.clear();
        self.delays.clear();
        if V::POLICIES.reading.can_move() {
            self.moving = None;
        }
        if !V::POLICIES.reading.has_snapshots() {
            self.seen.clear();
            self.scanned.clear();
            self.scanned_bytes = 0;
        }
        if V::POLICIES.locking.may_lock_at_writes() {
            self.locked.clear();
            self.locked_at.clear();
        }
    }

    /// Notes a range that was read at no snapshot, once, unless there are more of them than a
    /// transaction may have: then none of it can be watched.
    pub fn note_scanned(&mut self, range: &KeyRange, limits: &Limits) {
        let most = limits.transaction_bytes;
        if self.scanned_bytes <= most && !self.scanned.contains(range) {
            self.scanned_bytes += range_bytes(range);
            self.scanned.insert(range.clone());
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        if !self.running {
            let sets = &self.sets;
            let has_sets = !sets.reads.is_empty() || !sets.scans.is_empty();
            assert!(!has_sets && sets.writes.is_empty(), "a free slot with sets");
            assert!(self.delays.is_empty(), "a free slot with something delayed");
            return;
        }
        self.sets.assert_invariants();
        self.delays.assert_invariants();
        assert_eq!(self.locked.is_empty(), self.locked_at.is_empty(), "keys, and where locked");
        let holds = self.phase != SlotPhase::Open && !self.held.is_empty();
        assert!(!holds, "{:?} are held back, and their transaction takes nothing", self.held);
        let is_moving = self.moving.is_some();
        assert!(!is_moving || self.snapshot.is_none(), "a snapshot that is there, and moves");
        assert_eq!(is_moving, self.fixing == Some(MOVING), "what fixes a snapshot that moves");
        let undone = match self.phase {
            SlotPhase::Undone(level) => level.checked_sub(1),
            SlotPhase::Open | SlotPhase::Committing(_) => None,
        };
        let depth = self.sets.depth();
        assert!(
            undone.is_none_or(|it| it == depth),
            "{depth} levels, {undone:?} outside of what is undone"
        );
        assert!(
            !V::POLICIES.reading.has_snapshots() || self.seen.is_empty() && self.scanned.is_empty(),
            "reads at a snapshot are not kept to repeat"
        );
    }

    /// The number of its commit, if that is under way.
    #[inline]
    pub fn committing(&self) -> Option<u64> {
        match self.phase {
            SlotPhase::Committing(sequence) => Some(sequence),
            SlotPhase::Open | SlotPhase::Undone(_) => None,
        }
    }

    /// What it reads at, or at least will.
    #[inline]
    pub fn reads_at(&self) -> &V::Snapshot {
        let moves = || self.moving.as_ref().map(|moving| &moving.from);
        self.snapshot.as_ref().or_else(moves).unwrap_or(&self.base)
    }
}

impl<V: Variant> Slot<V> {
    /// # Errors
    /// The transaction is too large to be sent.
    pub fn check_size(&self, limits: &Limits) -> Result<(), Failure> {
        let size = self.sets.bytes() + self.delays.bytes();
        check_size(Limit::Transaction, size, limits.transaction_bytes)
    }
}
