//! The first phase at a participant: locks, validation, proposal; and the one step that does all
//! of it where a transaction has no other participant.

use std::sync::Arc;

use muesli_core::parts::locks::KeyRange;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, Address, Nanos, SmallBytes, SpaceId, Timestamp, TxnId};

use super::message::{Prepare, Record, Vote};
use super::participant::{Context, LOCK_TIMER, Participant};
use super::table::{LockedWrite, Prepared};

pub(super) const NO_HANDLE: Handle = Handle::NONE;

/// A prepare that waits for locks, until its deadline.
#[derive(Clone, Debug)]
pub(super) struct WaitingPrepare {
    pub from: Address,
    pub prepare: Arc<Prepare>,
    pub deadline: Nanos,
}

/// Whether a transaction may prepare now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// Nothing is in its way.
    Free,
    /// A lock is, and may go.
    Blocked,
    /// It cannot commit.
    Refused(Abort),
}

impl Participant {
    pub(super) fn on_prepare(
        &mut self,
        from: Address,
        prepare: Arc<Prepare>,
        cx: &mut Context<'_>,
    ) {
        let txn = prepare.txn;
        if !self.table.is_current(txn, prepare.settled_below) {
            return; // Late: everybody knows how it ended.
        }
        if let Some(vote) = self.table.standing(txn) {
            self.vote(from, txn, vote, cx); // Repeated: the answer was lost, or is on its way.
            return;
        }
        if self.waiting_prepares.values().any(|waiting| waiting.prepare.txn == txn) {
            return;
        }
        match self.check(&prepare, cx) {
            Check::Blocked => self.wait_for_locks(from, prepare, cx),
            Check::Refused(reason) => self.vote_no(from, txn, reason, cx),
            Check::Free => self.vote_yes(from, prepare, cx),
        }
    }

    fn vote_yes(&mut self, from: Address, prepare: Arc<Prepare>, cx: &mut Context<'_>) {
        // Reads raised the clock when they were served; a blind write was never here before.
        if self.rules.reads_raise {
            self.clock.promise(prepare.snapshot);
        }
        let (txn, at) = (prepare.txn, self.clock.propose());
        cx.log(|| Record::Prepared { prepare: prepare.clone(), at });
        self.enter_prepared(prepare, at, cx.now(), cx);
        self.set_sweep_timer(cx);
        self.vote(from, txn, Vote::Yes(at), cx);
    }

    fn vote_no(&mut self, from: Address, txn: TxnId, reason: Abort, cx: &mut Context<'_>) {
        self.refuse(txn, reason, cx);
        self.vote(from, txn, Vote::No(reason), cx);
    }

    /// Looks, and changes nothing.
    fn check(&mut self, prepare: &Prepare, cx: &mut Context<'_>) -> Check {
        cx.effects.work.validated += (prepare.reads.len() + prepare.writes.len()) as u64;
        if prepare.snapshot < self.low && !(prepare.reads.is_empty() && prepare.scans.is_empty()) {
            return Check::Refused(Abort::SnapshotTooOld); // What proves it stale may be collected.
        }
        let mut blocked = false;
        for (space, key, version) in &prepare.reads {
            if let Err(reason) = self.check_read(*space, NO_HANDLE, key, *version, cx) {
                return Check::Refused(reason);
            }
        }
        for range in &prepare.scans {
            if let Err(reason) = self.check_scan(range, prepare.snapshot, cx) {
                return Check::Refused(reason);
            }
        }
        for (space, key, _) in &prepare.writes {
            let versions = self.space(*space, cx);
            let locked = versions.find(key).is_some_and(|handle| !versions.lock(handle).is_free());
            blocked |= locked || self.ranges.blocks(None, *space, key);
        }
        if blocked { Check::Blocked } else { Check::Free }
    }

    /// Whether a read version is still the newest, and nobody is about to replace it.
    #[inline(always)]
    fn check_read(
        &mut self,
        space: SpaceId,
        handle: Handle,
        key: &SmallBytes,
        version: Timestamp,
        cx: &Context<'_>,
    ) -> Result<(), Abort> {
        let rules = self.rules;
        let versions = self.space(space, cx);
        let Some((_, newest, lock)) = versions.look(handle, key) else {
            let stale = rules.validate && version != Timestamp::ZERO;
            return if stale { Err(Abort::StaleRead) } else { Ok(()) };
        };
        if rules.validate && newest != version {
            return Err(Abort::StaleRead);
        }
        if rules.lock_reads && lock.is_exclusive() {
            return Err(Abort::Locked);
        }
        Ok(())
    }

    /// Whether a scanned range is still as it was at `snapshot`, and nobody is about to change it.
    fn check_scan(
        &mut self,
        range: &KeyRange,
        snapshot: Timestamp,
        cx: &mut Context<'_>,
    ) -> Result<(), Abort> {
        if !self.rules.validate_scans {
            return Ok(());
        }
        let mut seen = 0;
        let versions = self.space(range.space, cx);
        for (_, handle) in versions.range(&range.lo, range.hi.as_ref()) {
            seen += 1;
            if versions.newest(handle).at > snapshot {
                return Err(Abort::Phantom);
            }
            if versions.lock(handle).is_exclusive() {
                return Err(Abort::Locked);
            }
        }
        cx.effects.work.validated += seen;
        Ok(())
    }

    /// Takes the locks and the place in the queue of a transaction that nothing stands against.
    pub(super) fn enter_prepared(
        &mut self,
        prepare: Arc<Prepare>,
        at: Timestamp,
        since: Nanos,
        cx: &Context<'_>,
    ) {
        let owner = self.table.next_owner();
        let mut writes = Vec::with_capacity(prepare.writes.len());
        for (space, key, value) in &prepare.writes {
            let versions = self.space(*space, cx);
            let handle = versions.find_or_create(NO_HANDLE, key);
            let taken = versions.lock_mut(handle).try_exclusive(owner);
            assert!(taken, "prepared over a lock");
            writes.push(LockedWrite { space: *space, handle, value: value.clone() });
        }
        let mut shared = Vec::new();
        if self.rules.lock_reads {
            shared.reserve(prepare.reads.len());
            for (space, key, _) in &prepare.reads {
                let versions = self.space(*space, cx);
                let handle = versions.find_or_create(NO_HANDLE, key);
                if versions.lock_mut(handle).try_shared() {
                    shared.push((*space, handle)); // Otherwise it is locked for our own write.
                }
            }
        }
        if self.rules.validate_scans {
            for range in &prepare.scans {
                self.ranges.lock(owner, range.clone());
            }
        }
        self.clock.promise(at);
        self.queue.propose(at, owner);
        let prepared = Prepared { prepare, proposed: at, decided: false, since, writes, shared };
        assert_eq!(self.table.insert(prepared), owner);
    }

    fn wait_for_locks(&mut self, from: Address, prepare: Arc<Prepare>, cx: &mut Context<'_>) {
        if self.waiting_prepares.len() >= cx.settings.lock_waiters_max {
            self.vote_no(from, prepare.txn, Abort::Overloaded, cx);
            return;
        }
        let deadline = cx.now() + cx.settings.lock_wait;
        self.arrivals += 1;
        self.waiting_prepares.insert(self.arrivals, WaitingPrepare { from, prepare, deadline });
        self.set_lock_timer(cx);
    }

    fn set_lock_timer(&mut self, cx: &mut Context<'_>) {
        if !self.lock_timer_set {
            self.lock_timer_set = true;
            cx.set_timer(LOCK_TIMER, cx.settings.lock_wait);
        }
    }

    pub(super) fn retry_waiting_prepares(&mut self, cx: &mut Context<'_>) {
        let arrivals: Vec<_> = self.waiting_prepares.keys().copied().collect();
        for arrival in arrivals {
            let Some(waiting) = self.waiting_prepares.remove(&arrival) else { continue };
            match self.check(&waiting.prepare, cx) {
                Check::Blocked => {
                    self.waiting_prepares.insert(arrival, waiting);
                }
                Check::Refused(reason) => {
                    self.vote_no(waiting.from, waiting.prepare.txn, reason, cx);
                }
                Check::Free => self.vote_yes(waiting.from, waiting.prepare, cx),
            }
        }
    }

    pub(super) fn on_lock_timeout(&mut self, cx: &mut Context<'_>) {
        self.lock_timer_set = false;
        let now = cx.now();
        let expired: Vec<_> = self
            .waiting_prepares
            .iter()
            .filter(|(_, waiting)| waiting.deadline <= now)
            .map(|(arrival, _)| *arrival)
            .collect();
        for arrival in expired {
            if let Some(waiting) = self.waiting_prepares.remove(&arrival) {
                self.vote_no(waiting.from, waiting.prepare.txn, Abort::Locked, cx);
            }
        }
        if !self.waiting_prepares.is_empty() {
            self.set_lock_timer(cx);
        }
    }

    /// A transaction that was decided need not wait for locks any more.
    pub(super) fn forget_waiting(&mut self, txn: TxnId) -> bool {
        let before = self.waiting_prepares.len();
        if before > 0 {
            self.waiting_prepares.retain(|_, waiting| waiting.prepare.txn != txn);
        }
        self.waiting_prepares.len() < before
    }

    /// Both phases in one step, for a transaction that this repository alone takes part in.
    /// `None`: it must take the long way, to wait for locks.
    ///
    /// It goes below whatever is queued if there is room, and past it if not: what is queued
    /// shares no key with it, and may come to lie before it, because whoever reads a queued
    /// transaction's key at a later snapshot waits for that transaction, whatever was applied
    /// since. By the paper's waiting rule, which goes by what was applied, it would have to queue.
    #[inline(always)]
    pub(super) fn commit_here(
        &mut self,
        sets: &mut TransactionSets,
        snapshot: Timestamp,
        cx: &mut Context<'_>,
    ) -> Option<Result<Timestamp, Abort>> {
        cx.effects.work.validated += (sets.reads.len() + sets.writes.len()) as u64;
        if snapshot < self.low && !(sets.reads.is_empty() && sets.scans.is_empty()) {
            return Some(Err(Abort::SnapshotTooOld));
        }
        for read in &sets.reads {
            let checked = self.check_read(read.space, read.handle, &read.key, read.version, cx);
            if let Err(reason) = checked {
                return Some(Err(reason));
            }
        }
        for range in &sets.scans {
            if let Err(reason) = self.check_scan(range, snapshot, cx) {
                return Some(Err(reason));
            }
        }
        for write in &mut sets.writes {
            if !self.ranges.is_empty() && self.ranges.blocks(None, write.space, &write.key) {
                return None;
            }
            let versions = self.space(write.space, cx);
            match versions.look(write.handle, &write.key) {
                Some((_, _, lock)) if !lock.is_free() => return None,
                Some((handle, ..)) => write.handle = handle,
                None => write.handle = NO_HANDLE,
            }
        }
        self.clock.serve(snapshot);
        let at = match self.clock.room_below(self.queue.first()) {
            Some(at) => at,
            None if self.rules.waits_by_proposal => self.clock.step_past(),
            None => return None,
        };
        self.install_here(sets, at, cx);
        Some(Ok(at))
    }

    #[inline(always)]
    fn install_here(&mut self, sets: &mut TransactionSets, at: Timestamp, cx: &mut Context<'_>) {
        cx.log(|| {
            let write = |w: &muesli_core::parts::transaction::WriteEntry| {
                (w.space, w.key.clone(), w.value.clone())
            };
            Record::Committed { at, writes: sets.writes.iter().map(write).collect() }
        });
        cx.effects.work.installed += sets.writes.len() as u64;
        for write in &mut sets.writes {
            let versions = self.space(write.space, cx);
            let handle = match write.handle {
                NO_HANDLE => versions.find_or_create(NO_HANDLE, &write.key),
                handle => handle,
            };
            versions.install(handle, write.value.take(), at);
        }
        self.clock.apply(at);
        if self.queue.is_empty() {
            self.clock.catch_up();
        }
        self.count_step();
    }
}
