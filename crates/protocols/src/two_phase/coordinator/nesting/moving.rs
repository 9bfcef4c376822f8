//! The snapshot of a transaction that runs moves to a later one.
//!
//! # The problem
//! A read finds a version above the transaction's snapshot. To read below it would make the
//! transaction one of the past, which can commit nothing (or, under TFA, is not to be had). To run
//! it again throws away what it has done, of which most may be as right at the present.
//!
//! # The idea
//! The repository answers at a snapshot of its present, `to`. All that the transaction has read,
//! at all levels, is *looked at* there: its versions are read once more, at `to`, by reads like any
//! other. What is the same version belongs to `to`; if all is, the transaction goes on as if it
//! had read everything there (TFA's transactional forwarding, Turcu 2015, section 3.1). Otherwise
//! the outermost level with a read that has changed is undone, with all inside of it (N-TFA,
//! chapter 4): what is left was found unchanged, so that the snapshot moves all the same, and the
//! level's body is run again there. Where that is the transaction itself, it aborts.
//!
//! # Why it is safe
//! After a move the transaction is in the state of one that has read the same keys at `to`: each
//! look raised a clock and waited for locks as that read would have. So whatever holds of a
//! transaction that began at `to` holds of it. A level that is undone leaves no read, and its
//! writes were seen by nobody else.
//!
//! # Vectors
//! Where a snapshot is a vector, the repository begins a new one with its present, and each look
//! takes in what those before it have shown, as first reads do; `to` grows until all have
//! answered. It is the snapshot of a transaction that reads the same keys now.
//!
//! # What waits
//! While the snapshot moves the transaction has none, and whatever it asks for is held, as before
//! its first read. What was asked for before, and is answered at the old snapshot, is asked for
//! again.
//!
//! # Deviations
//! A range that was scanned is not looked at once more: the outermost level with a scan counts as
//! changed. While a scan is under way, a move aborts the transaction.

use std::collections::BTreeSet;

use muesli_core::parts::watermark::Bound;
use muesli_core::{Abort, Answer, Failure, Here, OpId, Timestamp, Txn};

use crate::two_phase::coordinator::Coordinator;
use crate::two_phase::coordinator::asked::{
    Asked, AskedKeys, Groups, MOVING, OperationKind, PendingRequest, Queued, ReadVersions,
    SnapshotMove, WaitingOperation,
};
use crate::two_phase::coordinator::pages::first_pages;
use crate::two_phase::coordinator::slot::Slot;
use crate::two_phase::message::ReadReply;
use crate::two_phase::policy::{FamilySwitch, Switches};
use crate::two_phase::time::Snapshot;
use crate::two_phase::{Context, Time, TwoPhase, Variant};

/// Of which levels what was read is looked at once more: of all, unless a test broke that.
#[derive(Clone, Copy)]
struct LevelsLookedAt {
    /// Those outside of the innermost one.
    outer: bool,
    /// The transaction's own, where that is not the innermost one.
    own: bool,
}

impl LevelsLookedAt {
    const ALL: LevelsLookedAt = LevelsLookedAt { outer: true, own: true };

    fn by(switches: &Switches) -> LevelsLookedAt {
        LevelsLookedAt {
            outer: switches.keeps(FamilySwitch::MovesAllLevels),
            own: switches.keeps(FamilySwitch::MovesOwnLevel),
        }
    }

    fn has(self, level: u32, innermost: u32) -> bool {
        level == innermost || self.outer && (self.own || level > 0)
    }
}

impl<V: Variant> Slot<V> {
    /// Whether what it has read can be looked at once more.
    pub fn can_look_again(&self) -> bool {
        V::POLICIES.reading.can_move() && self.snapshot.is_some() && !self.sets.reads.is_empty()
    }

    /// It reads on at what it read at before its snapshot began to move.
    pub fn stay(&mut self) {
        if let Some(moving) = self.moving.take() {
            self.snapshot = Some(moving.from);
        }
    }

    /// The keys whose versions are to be looked at: those of levels that no scan undoes anyway.
    fn keys_to_look_at(&self, looks: LevelsLookedAt) -> AskedKeys {
        let scanned = self.sets.level_of_first_scan();
        let until = scanned.map_or(self.sets.reads.len(), |level| match level {
            0 => 0,
            level => self.sets.reads_outside(level),
        });
        let innermost = self.sets.depth();
        let is_asked = |place: &usize| looks.has(self.sets.level_of_read(*place), innermost);
        let reads = (0..until).filter(is_asked).map(|place| &self.sets.reads[place]);
        let keys: BTreeSet<_> = reads.map(|read| (read.space, read.key.clone())).collect();
        keys.into_iter().enumerate().map(|(place, (space, key))| (place, space, key)).collect()
    }

    /// The levels with a read that is not at the new snapshot what it was at the old one: the
    /// outermost and the innermost of them. (What lies below the old snapshot is what was read, by
    /// another replica, which has not collected as much. A vector does not tell: there only the
    /// version that was read is the same.)
    fn changed(&self, versions: &ReadVersions, from: &V::Snapshot) -> Option<(u32, u32)> {
        let has_changed = |place: &usize| {
            let read = &self.sets.reads[*place];
            let found = versions.found.get(&(read.space, read.key.clone()));
            let is_vector = V::POLICIES.reading.is_side_by_side();
            let is_above =
                |found: &Timestamp| is_vector || *found > from.at() || *found == Timestamp::ZERO;
            found.is_some_and(|found| *found != read.version && is_above(found))
        };
        let changed = || (0..self.sets.reads.len()).filter(has_changed);
        let (first, last) = (changed().next(), changed().next_back());
        let level = |place| self.sets.level_of_read(place);
        first.zip(last).map(|(first, last)| (level(first), level(last)))
    }
}

impl<V: Variant> Coordinator<V> {
    /// Where every read is forwarded to the present that it finds, a transaction need not ask for
    /// one: it begins at what its node has heard of, so that several repositories are asked at
    /// once. TFA begins all so (Turcu 2015, section 3.1); one that asks a single repository has its
    /// present in the same round trip.
    pub(in crate::two_phase) fn begin_at_own_clock(&mut self, txn: Txn) {
        let observed = self.observed.clone();
        if let Some(slot) = self.slot(txn).filter(|slot| slot.fixing.is_none()) {
            let mut start = slot.base.clone();
            start.join(&observed);
            slot.learn(start);
        }
    }

    /// Whether an operation looks at what was read.
    pub(in crate::two_phase) fn looks_again(&self, op: OpId) -> bool {
        V::POLICIES.reading.can_move()
            && self
                .operations
                .get(op.0)
                .is_some_and(|it| matches!(it.kind, OperationKind::Versions(_)))
    }

    /// Whether an answer is of the past: the transaction's snapshot has moved since, or moves. A
    /// vector grows meanwhile, too: it has moved if it was moved beyond the answer.
    pub(in crate::two_phase) fn has_moved(&mut self, txn: Txn, answered: &V::Snapshot) -> bool {
        let is_vector = V::POLICIES.reading.is_side_by_side();
        self.slot(txn).is_some_and(|slot| match &slot.snapshot {
            Some(_) if is_vector => !answered.reaches(&slot.moved_to),
            Some(known) => !answered.reaches(known),
            None => slot.moving.is_some(),
        })
    }

    /// Whether keys were read at a later snapshot than the transaction's, and it is to move there.
    /// Where reads go out side by side one may be later by chance: it moves there as well, if it
    /// may move at all; others ask once more.
    pub(in crate::two_phase) fn is_ahead(&mut self, txn: Txn, answered: &V::Snapshot) -> bool {
        let suffered = V::POLICIES.installing.may_time_warp() && self.tolerates_stale_reads;
        let is_vector = V::POLICIES.reading.is_side_by_side();
        V::POLICIES.reading.can_move()
            && self.slot(txn).is_some_and(|slot| {
                let is_beyond = |known: &V::Snapshot| answered.is_ahead_of(known);
                slot.snapshot.as_ref().is_some_and(is_beyond)
                    && (!is_vector || slot.forwards(suffered))
            })
    }

    /// Keys were read at a later snapshot: the transaction is to move there.
    pub(in crate::two_phase) fn forward(
        &mut self,
        txn: Txn,
        to: V::Snapshot,
        aside: (PendingRequest, ReadReply<V>),
        here: &Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        let is_scan = |(_, it): (u64, &WaitingOperation)| {
            it.txn == txn && matches!(it.kind, OperationKind::Scan(_))
        };
        if self.operations.iter().any(is_scan) {
            return self.abort(txn, &Failure::Aborted(Abort::StaleRead), cx);
        }
        // Versions may be gone that tell what has changed since.
        let aged = self.aged;
        if self.slot(txn).is_some_and(|slot| slot.begun < aged) {
            return self.abort(txn, &Failure::Aborted(Abort::SnapshotTooOld), cx);
        }
        let switches = V::switches(&self.switches);
        let Some(slot) = self.slot(txn) else { return };
        let keys = match switches.keeps(FamilySwitch::MovesValidated) {
            true => slot.keys_to_look_at(LevelsLookedAt::by(&switches)),
            false => AskedKeys::new(),
        };
        slot.begin_move(Some(to), Some(aside));
        if keys.is_empty() {
            return self.settle_move(txn, &ReadVersions::default(), cx);
        }
        let groups = self.by_reads(txn, keys, here, cx);
        let (first, queued) = first_pages(groups, &cx.settings.limits);
        let groups = first.into_iter().map(|(to, keys)| (to, Asked::Keys(keys)));
        self.ask(txn, (OperationKind::Versions(ReadVersions::default()), queued), groups, cx);
    }

    /// Keys by the repository at which they are looked at: where keys move, the one at which each
    /// was read, which knows whether it has moved since.
    fn by_reads(
        &self,
        txn: Txn,
        keys: AskedKeys,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> Groups {
        if !V::keys_move(cx.catalog) {
            return self.by_replica(keys, false, here, cx);
        }
        let last_reads = self.slots[txn.slot as usize].sets.last_reads();
        self.by_place(keys, false, |(_, space, key)| {
            last_reads.find(*space, key).expect("what is looked at was read").repository
        })
    }

    /// What was read is looked at before the innermost level is merged: at one repository first,
    /// whose present the others are then asked for.
    pub(in crate::two_phase) fn look_before_merge(
        &mut self,
        txn: Txn,
        here: &Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> OpId {
        let slot = self.slot(txn).expect("a transaction whose level ends");
        let keys = slot.keys_to_look_at(LevelsLookedAt::ALL);
        slot.begin_move(None, None);
        let groups = self.by_reads(txn, keys, here, cx);
        let (first, mut queued) = first_pages(groups, &cx.settings.limits);
        let mut first = first.into_iter();
        let one: Vec<_> = first.next().into_iter().collect();
        let others: Queued = first.chain(queued.drain(..)).collect();
        let versions = ReadVersions { merges: true, ..ReadVersions::default() };
        let one = one.into_iter().map(|(to, keys)| (to, Asked::Keys(keys)));
        self.ask(txn, (OperationKind::Versions(versions), others), one, cx)
    }

    /// A repository has looked at what was read there.
    pub(in crate::two_phase) fn on_versions(
        &mut self,
        reply: ReadReply<V>,
        cx: &mut Context<'_, V>,
    ) {
        if self.requests.get(reply.request).is_none_or(|request| request.held) {
            return;
        }
        let Some(request) = self.requests.remove(reply.request) else { return };
        let Some(operation) = self.operations.get_mut(request.op.0) else { return };
        let txn = operation.txn;
        self.observed.join(&reply.committed);
        let Some(at) = reply.snapshot else {
            return self.abort(txn, &Failure::Aborted(Abort::SnapshotTooOld), cx);
        };
        self.observed.join(&at);
        let Some(slot) = self.slot(txn) else { return };
        let moving = slot.moving.as_mut().expect("what was read is looked at for a move");
        let is_first = moving.to.is_none();
        let mut to = moving.to.get_or_insert_with(|| at.clone()).clone();
        let fits = match V::POLICIES.reading.is_side_by_side() {
            true => V::Time::fits(&self.switches, &to, &at),
            false => at == to,
        };
        if !fits {
            // Nobody was asked for that, or others have shown what it does not know of.
            return self.issue(txn, reply.request, request, cx);
        }
        to.learn(&at);
        if let Some(moving) = self.slot(txn).and_then(|slot| slot.moving.as_mut()) {
            moving.to = Some(to);
        }
        let Asked::Keys(mut keys) = request.asked else { return };
        let rest: AskedKeys = keys.drain(reply.found.len().min(keys.len())..).collect();
        assert_eq!(keys.len(), reply.found.len(), "keys that were looked at");
        let operation = self.operations.get_mut(request.op.0).expect("found above");
        let OperationKind::Versions(versions) = &mut operation.kind else { return };
        for ((_, space, key), found) in keys.into_iter().zip(reply.found) {
            versions.found.insert((space, key), found.version);
        }
        if is_first {
            for (to, keys) in std::mem::take(&mut operation.queued) {
                self.ask_more((txn, request.op), (to, Asked::Keys(keys)), cx);
            }
        }
        match rest.is_empty() {
            true => self.count_answer(request.op, cx),
            false => self.ask_more((txn, request.op), (request.to, Asked::Keys(rest)), cx),
        }
    }

    /// All that was read has been looked at.
    pub(in crate::two_phase) fn finish_move(
        &mut self,
        txn: Txn,
        op: OpId,
        versions: ReadVersions,
        cx: &mut Context<'_, V>,
    ) {
        let merges = versions.merges;
        if !merges {
            return self.settle_move(txn, &versions, cx);
        }
        let (level, to) = self.outcome_of_move(txn, &versions);
        let switches = V::switches(&self.switches);
        match level {
            None => {
                let Some(slot) = self.slot(txn) else { return };
                slot.end_move(to);
                slot.merge(switches);
                cx.complete(op, Ok(Answer::Ended));
            }
            Some(level) => {
                let failure = match level {
                    0 => Failure::Aborted(Abort::StaleRead),
                    level => Failure::PartialAbort { level },
                };
                self.undo_moved(txn, level, to, cx);
                cx.complete(op, Err(failure));
            }
        }
    }

    /// The level that is undone, if one is, and the snapshot that the rest moves to.
    fn outcome_of_move(&mut self, txn: Txn, versions: &ReadVersions) -> (Option<u32>, V::Snapshot) {
        let switches = V::switches(&self.switches);
        let slot = self.slot(txn).expect("a transaction whose snapshot moves");
        let moving = slot.moving.as_ref().expect("its snapshot moves");
        let to = moving.to.clone().expect("it is known where to");
        let changed = slot.changed(versions, &moving.from);
        let changed = changed.map(|(outermost, innermost)| {
            if switches.keeps(FamilySwitch::UndoesOutermost) { outermost } else { innermost }
        });
        let scanned = slot.sets.level_of_first_scan();
        (changed.into_iter().chain(scanned).min(), to)
    }

    fn settle_move(&mut self, txn: Txn, versions: &ReadVersions, cx: &mut Context<'_, V>) {
        let (level, to) = self.outcome_of_move(txn, versions);
        if let Some(level) = level {
            return self.undo_moved(txn, level, to, cx);
        }
        let Some(slot) = self.slot(txn) else { return };
        let aside = slot.end_move(to);
        cx.effects.maintenance.snapshots_moved += 1;
        self.issue_held(txn, cx);
        if let Some((request, reply)) = aside {
            self.take_keys(txn, request, reply, cx);
        }
    }

    /// A level has changed: it is undone, and the rest of the transaction moves.
    fn undo_moved(&mut self, txn: Txn, level: u32, to: V::Snapshot, cx: &mut Context<'_, V>) {
        if level == 0 {
            return self.abort(txn, &Failure::Aborted(Abort::StaleRead), cx);
        }
        if let Some(slot) = self.slot(txn) {
            slot.end_move(to);
        }
        self.undo(txn, level, cx);
    }
}

impl<V: Variant> Slot<V> {
    fn begin_move(
        &mut self,
        to: Option<V::Snapshot>,
        aside: Option<(PendingRequest, ReadReply<V>)>,
    ) {
        let from = self.snapshot.take().expect("a snapshot that can move");
        assert!(self.moving.is_none() && self.fixing.is_none(), "a snapshot that moves twice");
        let ahead = to.as_ref().is_none_or(|to| !from.reaches(to));
        assert!(ahead, "a snapshot of {from} moves to {to:?}");
        // Until then nothing is read, and others are told that nothing will be below this. (What is
        // on its way was asked for at an earlier vector, and is judged by that.)
        let to = to.map(|mut to| {
            to.join(&from);
            to
        });
        self.fixing = Some(MOVING);
        self.moving = Some(Box::new(SnapshotMove { from, to, aside }));
    }

    /// It has moved; what was read there already.
    fn end_move(&mut self, to: V::Snapshot) -> Option<(PendingRequest, ReadReply<V>)> {
        let moving = self.moving.take().expect("a snapshot that moves");
        if V::POLICIES.reading.is_side_by_side() {
            // What was asked for before is asked for again, also where it was found to be too old.
            self.moved_to = to.as_lower_bound();
            self.answers = self.answers.wrapping_add(1);
        }
        self.snapshot = Some(to);
        self.fixing = None;
        self.undisturbed_since = None;
        moving.aside
    }
}
