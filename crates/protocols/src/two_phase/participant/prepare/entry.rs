//! What a transaction takes that nothing stands against: its locks, and its place in the queue.

use std::sync::Arc;

use muesli_core::parts::locks::Owner;
use muesli_core::parts::versions::Handle;
use muesli_core::{Nanos, SmallBytes, SpaceId};

use super::{NO_HANDLE, Participant};
use crate::two_phase::VariantState;
use crate::two_phase::message::{Few, Prepare};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::table::{LockedWrite, Prepared};
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant, shown_votes};

/// A key read is compared with at most so many keys written.
const COMPARED_MAX: usize = 4;

/// What a checkpoint knows of a prepared transaction.
#[derive(Debug)]
pub(in crate::two_phase) struct Restored<'a, V: Variant> {
    /// Keys that it read and has locks on.
    pub shared: &'a [(SpaceId, SmallBytes)],
    /// Where it lies, if it is decided.
    pub decided: Option<&'a V::Place>,
}

impl<V: Variant> Participant<V> {
    /// Takes the locks and the place in the queue of a transaction that nothing stands against. Of
    /// one from a checkpoint more is known.
    pub(in crate::two_phase) fn enter_prepared(
        &mut self,
        prepare: Arc<Prepare<V>>,
        yes: V::Yes,
        since: Nanos,
        restored: Option<Restored<'_, V>>,
        cx: &Context<'_, V>,
    ) {
        let owner = self.table.next_owner();
        assert!(prepare.participants.contains(&self.id), "{} is prepared elsewhere", prepare.txn);
        let mut writes = Few::with_capacity(prepare.writes.len());
        for (space, key, value) in &prepare.writes {
            let versions = self.space(*space, cx);
            let handle = versions.find_or_create(NO_HANDLE, key);
            if V::POLICIES.locking.may_lock_at_writes() {
                self.take_over((*space, handle), cx);
            }
            self.lock_for_writing(owner, (*space, handle), cx);
            writes.push(LockedWrite { space: *space, handle, value: value.clone() });
        }
        let shared = match &restored {
            Some(Restored { shared, .. }) => {
                self.share(shared.iter().map(|(space, key)| (*space, key)), cx)
            }
            None => self.lock_what_it_read(&prepare, cx),
        };
        if V::POLICIES.deciding.may_have_validators() {
            self.protocol_state.note_prepared(prepare.prepared_keys(), &yes);
        }
        let locks_scans = self.switches.keeps(FamilySwitch::ValidateScans);
        if locks_scans && !self.has_intervals() {
            for range in &prepare.scans {
                self.ranges.lock(owner, range.clone());
            }
        }
        match restored.and_then(|it| it.decided) {
            Some(place) => self.time.enter_decided(prepare.txn, place, owner),
            None => self.time.enter(prepare.txn, &yes, owner),
        }
        assert!(shared.len() <= prepare.reads.len(), "{} shares what others read", prepare.txn);
        let delayed = self.enter_delayed(&prepare, owner, cx);
        let calls = self.enter_calls(&prepare, owner, cx);
        let decided = None;
        let about = shown_votes::about(self.id, &prepare, cx);
        let bytes = prepare.held_bytes();
        self.note_moved(bytes);
        let prepared =
            Prepared { prepare, yes, decided, since, writes, delayed, calls, shared, about, bytes };
        assert_eq!(self.table.insert(prepared), owner, "who has the locks of what was prepared");
    }

    /// Marks a key that a transaction is about to write; alone, unless several may be.
    #[inline]
    fn lock_for_writing(
        &mut self,
        owner: Owner,
        (space, handle): (SpaceId, Handle),
        cx: &Context<'_, V>,
    ) {
        let has_intervals = self.has_intervals();
        let lock = self.space(space, cx).lock_mut(handle);
        let taken = if has_intervals {
            let taken = lock.try_delayed();
            self.delayers.entry((space, handle)).or_default().push(owner);
            taken
        } else {
            lock.try_exclusive(owner)
        };
        assert!(taken, "prepared over a lock");
    }

    /// Shares the locks of what a transaction read. Where others have one for writing, they are
    /// decided, and it is known that it missed what they write: it needs none then, and gets none
    /// when they are through.
    fn lock_what_it_read(
        &mut self,
        prepare: &Prepare<V>,
        cx: &Context<'_, V>,
    ) -> Few<(SpaceId, Handle)> {
        if self.has_intervals() || !self.switches.keeps(FamilySwitch::LockReads) {
            return Few::new();
        }
        // Most write few keys, and those that they read: comparing is less than a look-up.
        let few = &prepare.writes[..prepare.writes.len().min(COMPARED_MAX)];
        let reads = prepare.reads.iter().map(|(space, key, _)| (*space, key));
        let others = reads.filter(|(space, key)| {
            !few.iter().any(|(other, written, _)| other == space && written == *key)
        });
        self.share(others, cx)
    }

    /// Shares the locks of those keys that nobody will write, the transaction itself included.
    fn share<'k>(
        &mut self,
        keys: impl Iterator<Item = (SpaceId, &'k SmallBytes)>,
        cx: &Context<'_, V>,
    ) -> Few<(SpaceId, Handle)> {
        let mut shared = Few::new();
        shared.reserve(keys.size_hint().1.unwrap_or_default());
        for (space, key) in keys {
            let versions = self.space(space, cx);
            let handle = versions.find_or_create(NO_HANDLE, key);
            if versions.lock_mut(handle).try_shared() {
                shared.push((space, handle));
            }
        }
        shared
    }
}
