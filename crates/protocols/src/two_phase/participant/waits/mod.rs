//! Who may wait for whom, where a vote waits for the end of another transaction.
//!
//! # The problem
//! A prepare that waits for a lock holds locks at other repositories meanwhile, so waits can form
//! a circle: at two replicas two transactions may come in two orders. Only
//! [`lock_wait`](muesli_core::Settings::lock_wait) ends such a circle, which is a long time.
//!
//! # The idea
//! Transactions have an order ([`rank`]): the older snapshot first, and ids where snapshots are
//! equal. A prepare waits if somebody older is in its way, and is refused at once if all who are
//! in its way are younger. Whoever is refused runs again at a newer snapshot, and then is rather
//! the one that may wait.
//!
//! A transaction that is decided is not waited for where that can be helped: what it read is free
//! from then on, stamped with its place; and whoever read what it writes knows what was missed.
//!
//! # Why there is no circle
//! Take the oldest of those that would wait for ever. When it looked for the last time somebody
//! older held a lock that it wants, and holds it still, or it would have looked again. That one is
//! not decided, and does not wait for ever: so it is decided some time. Where the lock is one for
//! writing and its holder decided, the wait is for its turn, which those before it in the queue may
//! delay; such waits are between blind writers alone, and `lock_wait` stays for them.
//!
//! With [`LockWaits::ForAll`] prepares wait in any order, and only `lock_wait` ends the circles;
//! the data grid behind Bumper's evaluation does that.
//!
//! [`prepares`] keeps prepares that wait for locks, [`reads`] reads that cannot be served yet.

pub(in crate::two_phase) mod prepares;
pub(in crate::two_phase) mod reads;
pub(in crate::two_phase) mod watches;

use muesli_core::parts::locks::{LockWord, Owner};
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, SmallBytes, SpaceId, Timestamp, TxnId};

use super::Participant;
use crate::two_phase::VariantState;
use crate::two_phase::message::Prepare;
use crate::two_phase::policy::{FamilySwitch, LockWaits};
use crate::two_phase::{Context, Snapshot, Time, ValidationResult, Variant};

/// Whether a transaction may prepare now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::two_phase) enum WaitCheck<S> {
    /// Nothing is in its way.
    Free(ValidationResult<S>),
    /// A lock is, and may go.
    Blocked,
    /// It cannot commit.
    Refused(Abort),
}

/// Why something that was read stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::two_phase) enum Conflict {
    /// Whoever writes this is prepared, and the end of that may be waited for.
    Blocked((SpaceId, Handle)),
    Refused(Abort),
}

impl From<Abort> for Conflict {
    fn from(reason: Abort) -> Conflict {
        Conflict::Refused(reason)
    }
}

/// What is in the way of a prepare.
#[derive(Clone, Copy, Debug)]
pub(in crate::two_phase) struct WaitState {
    blocked: bool,
    /// Whether it may wait until that is gone.
    may_wait: bool,
}

impl WaitState {
    /// What comes of it.
    pub fn check<S>(self, validation: ValidationResult<S>) -> WaitCheck<S> {
        match self {
            WaitState { blocked: false, .. } => WaitCheck::Free(validation),
            WaitState { may_wait: true, .. } => WaitCheck::Blocked,
            WaitState { may_wait: false, .. } => WaitCheck::Refused(Abort::Locked),
        }
    }
}

/// The place of a transaction in the order of who may wait for whom.
fn rank<V: Variant>(prepare: &Prepare<V>) -> (Timestamp, TxnId) {
    (prepare.snapshot.at(), prepare.txn)
}

impl<V: Variant> Participant<V> {
    /// Whether a prepare waits in one direction only.
    #[inline]
    pub(in crate::two_phase) fn orders_waits(&self) -> bool {
        V::POLICIES.waiting.may_order() && V::orders_waits(&self.protocol_switches)
    }

    /// Whether a prepare may wait for locks.
    #[inline]
    pub(in crate::two_phase) fn waits_for_locks(&self) -> bool {
        !V::POLICIES.waiting.may_refuse_all() || V::waits_for_locks(&self.protocol_switches)
    }

    /// That of a prepare which has met nobody.
    pub(in crate::two_phase) fn no_wait(&self) -> WaitState {
        let in_any_order = self.switches.lock_waits == LockWaits::ForAll || !self.orders_waits();
        WaitState { blocked: false, may_wait: self.waits_for_locks() && in_any_order }
    }

    /// A key that a prepare needs is locked.
    pub(in crate::two_phase) fn meet(
        &self,
        prepare: &Prepare<V>,
        (space, handle): (SpaceId, Handle),
        way: &mut WaitState,
    ) {
        way.blocked = true;
        if way.may_wait || !self.orders_waits() {
            return;
        }
        let first = |owner: Owner| self.goes_first(owner, prepare);
        let lock = self.versions(space).map_or_else(LockWord::default, |it| it.lock(handle));
        way.may_wait = match lock.exclusive_owner() {
            Some(owner) => first(owner),
            None if lock.is_delayed() => self.delayers(space, handle).any(first),
            None => {
                let shares = |holder: &Owner| self.table.get(*holder).shares(space, handle);
                self.table.owners().filter(shares).any(first)
            }
        };
    }

    /// A prepare is to change a key: who has scanned it?
    pub(in crate::two_phase) fn meet_ranges(
        &self,
        prepare: &Prepare<V>,
        (space, key): (SpaceId, &SmallBytes),
        way: &mut WaitState,
    ) {
        for owner in self.ranges.holders(space, key) {
            way.blocked = true;
            way.may_wait |= self.orders_waits() && self.goes_first(owner, prepare);
        }
    }

    /// The lock of a key, which may be unknown yet.
    pub(in crate::two_phase) fn lock_of(
        &mut self,
        (space, key): (SpaceId, &SmallBytes),
        cx: &Context<'_, V>,
    ) -> LockWord {
        let versions = self.space(space, cx);
        versions.find(key).map(|handle| versions.lock(handle)).unwrap_or_default()
    }

    fn goes_first(&self, owner: Owner, prepare: &Prepare<V>) -> bool {
        let holder = self.table.get(owner);
        holder.decided.is_some() || rank(&holder.prepare) < rank(prepare)
    }

    /// An update read a key, up to the version `seen`, that others are about to change. It misses
    /// that: if they are decided it is known what it misses, and goes into its standing. If not, it
    /// must wait, unless it changes the key too, and is refused if they commit. What it has seen it
    /// does not miss: another replica may have applied it before its turn has come here.
    pub(in crate::two_phase) fn check_missed(
        &self,
        (space, handle, key): (SpaceId, Handle, &SmallBytes),
        (lock, seen): (LockWord, Timestamp),
        validation: &mut ValidationResult<V::Snapshot>,
        is_written: &impl Fn() -> bool,
    ) -> Result<(), Conflict> {
        if !self.orders_waits() {
            return Err(Conflict::Blocked((space, handle)));
        }
        if is_written() {
            return Err(self.writer_at((space, handle)));
        }
        let alone = lock.exclusive_owner();
        let delayers = self.delayers(space, handle).filter(|_| alone.is_none());
        assert!(lock.is_for_writing(), "{key:?} is to be changed by nobody");
        for owner in alone.into_iter().chain(delayers) {
            let decided = self.table.get(owner).decided.as_ref();
            let place = decided.ok_or(Conflict::Blocked((space, handle)))?;
            let at = V::Time::version_of(place);
            if at > seen || !self.switches.keeps(FamilySwitch::SeenIsNotMissed) {
                self.protocol_state.note_missed((space, key), at, validation)?;
            }
        }
        Ok(())
    }

    /// A transaction was decided to commit at `place`: whoever will overwrite what it read finds
    /// its read timestamp there, and need not wait for its turn.
    pub(in crate::two_phase) fn free_what_it_read(
        &mut self,
        owner: Owner,
        place: &V::Place,
        cx: &Context<'_, V>,
    ) {
        let prepared = self.table.get_mut(owner);
        assert!(prepared.decided.is_some(), "{} is in doubt", prepared.prepare.txn);
        let (prepare, shared) = (prepared.prepare.clone(), std::mem::take(&mut prepared.shared));
        self.note_reads(&prepare, place);
        self.release_shared(&shared, cx);
        // What a delayed procedure reads stays as it is until its turn.
        if prepare.calls().is_empty() {
            self.ranges.release(owner);
        }
    }
}
