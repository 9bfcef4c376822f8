//! What a participant promises of itself, checked over all that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::SpaceId;
use muesli_core::parts::locks::{LockWord, Owner};
use muesli_core::parts::versions::Handle;

use super::Participant;
use super::whereabouts::rebuilding::Rebuild;
use crate::two_phase::Variant;
use crate::two_phase::VariantState;
use crate::two_phase::policy::TreeSwitch;
use crate::two_phase::table::Prepared;
use crate::two_phase::time::{Snapshot, Time};

/// A key by its entry.
type Key = (SpaceId, Handle);

/// Who has the locks of keys, as prepared and running transactions say.
#[derive(Default)]
struct LockHolders {
    /// For writing.
    writers: BTreeMap<Key, Owner>,
    /// For reading, and how many.
    readers: BTreeMap<Key, u32>,
    /// For delayed actions, one for each of these; under intervals for writing.
    delayers: BTreeMap<Key, Vec<Owner>>,
}

impl LockHolders {
    fn writes(&mut self, key: Key, owner: Owner) {
        assert!(self.writers.insert(key, owner).is_none(), "two hold the lock of {key:?}");
    }

    fn add<V: Variant>(&mut self, owner: Owner, prepared: &Prepared<V>, has_intervals: bool) {
        for write in &prepared.writes {
            let key = (write.space, write.handle);
            match has_intervals {
                true => self.delayers.entry(key).or_default().push(owner),
                false => self.writes(key, owner),
            }
        }
        for key in &prepared.shared {
            *self.readers.entry(*key).or_default() += 1;
        }
        for delayed in &prepared.delayed {
            self.delayers.entry((delayed.space, delayed.handle)).or_default().push(owner);
        }
        for call in &prepared.calls {
            for key in &call.keys {
                match call.steady {
                    true => self.delayers.entry(*key).or_default().push(owner),
                    false => self.writes(*key, owner),
                }
            }
        }
    }
}

impl<V: Variant> Participant<V> {
    /// Checks the invariants of the participant and of its parts.
    ///
    /// # Panics
    /// One of them does not hold.
    pub(super) fn check_invariants(&self) {
        self.table.assert_invariants();
        self.spaces.assert_invariants();
        self.assert_whereabouts();
        self.time.assert_invariants();
        self.encounters.assert_invariants();
        self.waiting_reads.assert_invariants();
        self.watches.assert_invariants();
        self.waiting_prepares.assert_invariants();
        self.protocol_state.assert_invariants();
        self.assert_as_printed();
        if self.keeps(TreeSwitch::LocksHaveOwners) {
            self.assert_locks();
        }
        self.assert_queue();
        self.assert_waits();
        self.assert_finishing();
    }

    /// What went is not here, and somebody tells where it went.
    fn assert_whereabouts(&self) {
        self.whereabouts.assert_invariants();
        if self.replaying {
            return; // What a checkpoint has of later may be elsewhere by then.
        }
        self.whereabouts.rebuild.iter().for_each(Rebuild::assert_invariants);
        for (space, pointers) in self.whereabouts.pointers.iter() {
            for (key, _) in (0..pointers.slots()).filter_map(|slot| pointers.newest_in(slot)) {
                let versions = self.versions(space);
                let value = versions.and_then(|it| it.newest(it.find(key)?).value);
                assert!(value.is_none(), "{key:?} went, and is here");
            }
        }
        let sends = !self.whereabouts.has_news() || self.sweep_timer_set;
        assert!(sends, "nobody tells where keys went");
    }

    /// Locks are held by those who say so.
    fn assert_locks(&self) {
        let mut holders = LockHolders::default();
        for owner in self.table.owners() {
            holders.add(owner, self.table.get(owner), self.has_intervals());
        }
        for key in self.encounters.keys() {
            holders.writes(key, super::encounter_locks::RUNNING);
        }
        for (key, owners) in &self.delayers {
            let (mut listed, mut known) = (owners.clone(), holders.delayers.remove(key));
            listed.sort_unstable();
            known.iter_mut().for_each(|known| known.sort_unstable());
            assert_eq!(Some(&listed), known.as_ref(), "who has delayed actions on {key:?}");
            let held = self.held_lock(*key).delayers() as usize;
            assert_eq!(held, listed.len(), "how many have delayed actions on {key:?}");
        }
        assert!(holders.delayers.is_empty(), "delayed and not listed: {:?}", holders.delayers);
        for (key, owner) in &holders.writers {
            let holder = self.held_lock(*key).exclusive_owner();
            assert_eq!(holder, Some(*owner), "who has the lock of {key:?}");
        }
        for (key, readers) in &holders.readers {
            let sharers = self.held_lock(*key).sharers();
            assert_eq!(sharers, *readers, "how many share the lock of {key:?}");
        }
        let locked = self.spaces.iter().map(|(_, versions)| versions.locked()).sum::<usize>();
        let known = holders.writers.len() + holders.readers.len() + self.delayers.len();
        assert_eq!(locked, known, "keys that are locked");
        let prepared: BTreeSet<Owner> = self.table.owners().collect();
        let mut ranges = self.ranges.owners();
        assert!(ranges.all(|owner| prepared.contains(&owner)), "a range is locked for nobody");
    }

    fn held_lock(&self, (space, handle): Key) -> LockWord {
        self.versions(space).expect("a space with locks").lock(handle)
    }

    /// The queue has what is prepared, but for the one whose turn it is in a replay.
    fn assert_queue(&self) {
        let mut queued: BTreeMap<Owner, bool> = self.time.queued().collect();
        if let Some(owner) = self.stalled {
            assert!(
                queued.insert(owner, true).is_none(),
                "{owner:?} has its turn and waits for it"
            );
        }
        for owner in self.table.owners() {
            let prepared = self.table.get(owner);
            let (txn, ready) = (prepared.prepare.txn, queued.remove(&owner));
            assert_eq!(ready, Some(prepared.decided.is_some()), "whether {txn} waits for its turn");
        }
        assert!(queued.is_empty(), "queued and not prepared: {queued:?}");
        let mut in_order = self.time.queued().map(|(_, ready)| ready);
        let is_first = match V::POLICIES.order.queues() {
            true => in_order.next() == Some(true),
            false => in_order.any(|ready| ready),
        };
        assert!(self.replaying || !is_first, "what has its turn was not applied");
        let (unneeded, low) = (self.unneeded, self.time.low().at());
        assert!(
            unneeded <= low,
            "versions up to {unneeded} are not kept, snapshots from {low} are"
        );
    }

    /// Somebody looks after those that wait.
    fn assert_waits(&self) {
        for txn in self.waiting_prepares.transactions() {
            assert!(self.table.owner(txn).is_none(), "{txn} waits for locks that it has");
        }
        let waits_for_lock = !self.waiting_prepares.is_empty() || self.encounters.waits();
        assert!(!waits_for_lock || self.lock_timer_set, "nobody ends the waits for locks");
        let sweeps = !self.waiting_reads.is_empty() || self.encounters.holds() || self.is_watched();
        assert!(!sweeps || self.sweep_timer_set, "nobody looks after reads and running locks");
        self.acknowledgements.assert_invariants(self.sweep_timer_set);
        if let Some(asking) = &self.asking {
            asking.assert_invariants(self.id);
        }
    }

    /// Votes are gathered of those that are in doubt.
    fn assert_finishing(&self) {
        for (txn, finishing) in &self.finishing {
            let owner = self.table.owner(*txn).expect("whose votes are gathered is prepared");
            let prepared = self.table.get(owner);
            assert!(prepared.decided.is_none(), "{txn} is decided, and its votes are gathered");
            finishing.assert_invariants(&prepared.prepare.participants, self.id);
        }
    }
}
