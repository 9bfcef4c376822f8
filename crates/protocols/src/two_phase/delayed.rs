//! Delayed actions (Diegues and Romano, section IV-C): changes of keys that the transaction does
//! not look at, done when its turn has come.
//!
//! # The idea
//! Two transactions that add to one counter conflict only because each reads it first. An action
//! that is named instead of done takes part in the vote with a lock of its own mode, which such
//! actions share with each other and with nobody else. A transaction that has been decided is
//! applied in its turn, at every replica; there its actions are run, on what the one before left.
//!
//! # Why it is safe
//! From its vote on the key is closed to readers of later snapshots and to writers, and when its
//! turn has come everything before it is applied: the newest version is what it finds, everywhere.
//! So a transaction lies where its turn is, with its actions, and must not lie in the past: its
//! floor is as high as can be. Turns are the same at all replicas, and actions are functions of
//! what they are given, so replicas stay alike, through crashes too: the log has the actions and
//! the decisions, and replaying it runs them again from the same state.
//!
//! # Where it ends
//! Whoever uses a key that it has a delayed action on *strays*: it is aborted and run again with
//! its actions done at once, as reads and writes. A key that it has used before is no reason to
//! start again: there its action is done at once.
//!
//! # Beyond the paper
//! A transaction whose keys have no other delayed actions under way when it votes may lie in the
//! past all the same ([`DelayedInThePast`]), below what it proposes: its actions are then run as it
//! is decided, on what was there when it voted. Whoever delays an action on such a key later has a
//! later proposal: it lies above, is not applied before this one is decided, and runs on what it
//! left. Its locks stay until its turn.
//!
//! Deviation: an action has one key and cannot reach for others; there is nothing to find out about
//! at the commit. Who must lie in the past and has delayed actions is aborted, as in the paper, but
//! delays them again when it runs again: it then reads what it missed.

use muesli_core::contract::known_action;
use muesli_core::parts::locks::{KeyRange, LockWord, Owner};
use muesli_core::parts::transaction::check_size;
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, Action, Failure, Later, SmallBytes, SpaceId, Timestamp, Txn};

use super::coordinator::{self, Coordinator};
use super::message::Prepare;
use super::participant::{Context, Participant};
use super::prepare::NO_HANDLE;
use super::slot::Slot;
use super::table::{DelayedWrite, Prepared};
use super::waits::Way;
use super::{DelayedInThePast, Standing, Time, Variant};

impl<V: Variant> Slot<V> {
    /// Whether the transaction has a delayed action on a key.
    pub(super) fn is_delayed(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.delayed.iter().any(|(other, delayed, _)| *other == space && delayed == key)
    }

    /// Whether it has one on a key of a range.
    pub(super) fn is_delayed_in(&self, range: &KeyRange) -> bool {
        self.delayed.iter().any(|(space, key, _)| range.contains(*space, key))
    }

    /// Whether it has read, scanned or written a key.
    fn has_used(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.sets.own(space, key).is_some()
            || self.sets.version_read(space, key).is_some()
            || self.sets.scans.iter().any(|range| range.contains(space, key))
    }
}

impl<V: Variant> Coordinator<V> {
    pub(super) fn on_later(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        action: &Action,
        cx: &coordinator::Context<'_, V>,
    ) -> Result<Later, Failure> {
        let delays = V::delays_actions(&self.rules);
        let slot = self.open(txn)?;
        if slot.options.read_only {
            return Err(Failure::ReadOnly);
        }
        let run = known_action(action, cx.settings)?;
        check_size("a key", key.len(), cx.settings.limits.key_bytes)?;
        check_size("an argument", action.argument.len(), cx.settings.limits.value_bytes)?;
        if !delays || slot.options.eager || slot.has_used(space, key) {
            return Ok(Later::Now(run));
        }
        let bytes: usize =
            slot.delayed.iter().map(|(_, key, it)| key.len() + it.argument.len()).sum();
        let size = bytes + key.len() + action.argument.len();
        check_size("a transaction", size, cx.settings.limits.transaction_bytes)?;
        slot.delayed.push((space, key.clone(), action.clone()));
        Ok(Later::Deferred)
    }

    /// The transaction uses a key that it has a delayed action on: it ends.
    pub(super) fn stray(&mut self, txn: Txn, cx: &mut coordinator::Context<'_, V>) -> Failure {
        let failure = Failure::Aborted(Abort::Strayed);
        self.abort(txn, &failure, cx);
        failure
    }
}

impl<V: Variant> Participant<V> {
    /// Whether a lock keeps readers and those who validate away.
    #[inline]
    pub(super) fn is_closed(&self, lock: LockWord) -> bool {
        lock.is_exclusive() || self.rules.delayed_excludes && lock.is_delayed()
    }

    /// Who has delayed actions on a key.
    pub(super) fn delayers(
        &self,
        space: SpaceId,
        handle: Handle,
    ) -> impl Iterator<Item = Owner> + '_ {
        self.delayers.get(&(space, handle)).into_iter().flatten().copied()
    }

    /// Whether the delayed actions of a transaction may have their locks; who has them is met.
    pub(super) fn check_delayed(
        &mut self,
        prepare: &Prepare<V>,
        standing: &mut Standing<V::Snapshot>,
        way: &mut Way,
        cx: &Context<'_, V>,
    ) -> Result<(), Abort> {
        if prepare.delayed.is_empty() {
            return Ok(());
        }
        let known =
            |(_, _, action): &(_, _, Action)| cx.settings.actions.get(&action.name).is_some();
        if uses_what_it_delays(prepare) || !prepare.delayed.iter().all(known) {
            return Err(Abort::Strayed); // Done at once, actions are done where they are known.
        }
        for (space, key, _) in &prepare.delayed {
            self.meet_ranges(prepare, (*space, key), way);
            let versions = self.space(*space, cx);
            let found = versions.find(key);
            let head = found.map_or(Timestamp::ZERO, |handle| versions.newest(handle).at);
            if let Some(handle) = found.filter(|&handle| !is_open(versions.lock(handle))) {
                self.meet(prepare, (*space, handle), way);
            }
            let is_alone = found.is_none_or(|it| self.delayers(*space, it).next().is_none());
            match V::delayed_in_the_past(&self.protocol_rules) {
                DelayedInThePast::Safely | DelayedInThePast::AboveProposals if !is_alone => {
                    standing.floor = Timestamp::MAX;
                }
                DelayedInThePast::Never => standing.floor = Timestamp::MAX,
                DelayedInThePast::AboveProposals => {}
                DelayedInThePast::Safely | DelayedInThePast::BesideOthers => {
                    standing.below_proposal = true;
                }
            }
            V::note_write(&self.keeper, (*space, key), head, prepare.reader, standing);
        }
        Ok(())
    }

    /// Whether the locks of delayed actions are free, or held for others.
    pub(super) fn delayed_are_open(&mut self, prepare: &Prepare<V>, cx: &Context<'_, V>) -> bool {
        prepare.delayed.iter().all(|(space, key, _)| {
            let versions = self.space(*space, cx);
            let lock = versions.find(key).map(|handle| versions.lock(handle)).unwrap_or_default();
            is_open(lock)
        })
    }

    /// Takes the locks of delayed actions; one for each, though some may have one key.
    pub(super) fn enter_delayed(
        &mut self,
        prepare: &Prepare<V>,
        owner: Owner,
        cx: &Context<'_, V>,
    ) -> Vec<DelayedWrite> {
        let mut delayed = Vec::with_capacity(prepare.delayed.len());
        for (space, key, action) in &prepare.delayed {
            let versions = self.space(*space, cx);
            let handle = versions.find_or_create(NO_HANDLE, key);
            let taken = versions.lock_mut(handle).try_delayed();
            assert!(taken, "delayed over a lock");
            self.delayers.entry((*space, handle)).or_default().push(owner);
            delayed.push(DelayedWrite { space: *space, handle, action: action.clone() });
        }
        delayed
    }

    /// A transaction was decided to lie in the past: its actions are run now, on what was there
    /// when it voted, before those of anybody who voted after it. Its locks stay until its turn.
    pub(super) fn run_delayed_in_the_past(
        &mut self,
        owner: Owner,
        place: &V::Place,
        cx: &mut Context<'_, V>,
    ) {
        if V::lies_in_the_past(place) {
            let prepared = self.table.get(owner).clone();
            self.run_delayed(&prepared, V::Time::version_of(place), cx);
        }
    }

    /// The turn of a transaction has come: its actions are run, those on one key one after the
    /// other, on the newest versions.
    pub(super) fn run_delayed(
        &mut self,
        prepared: &Prepared<V>,
        at: Timestamp,
        cx: &mut Context<'_, V>,
    ) {
        let mut left: Vec<(SpaceId, Handle, Option<SmallBytes>)> = Vec::new();
        for DelayedWrite { space, handle, action } in &prepared.delayed {
            let run = cx.settings.actions.get(&action.name);
            let known = left.iter().position(|(s, h, _)| (s, h) == (space, handle));
            let old = match known {
                Some(place) => left[place].2.clone(),
                None => self.space(*space, cx).newest(*handle).value.cloned(),
            };
            // A node that has forgotten the function since its vote leaves the value as it is.
            let new = run.map_or_else(|| old.clone(), |run| run(old.as_ref(), &action.argument));
            match known {
                Some(place) => left[place].2 = new,
                None => left.push((*space, *handle, new)),
            }
        }
        cx.effects.work.installed += left.len() as u64;
        for (space, handle, new) in left {
            self.space(space, cx);
            let versions = self.versions(space).expect("made above");
            // A checkpoint may have it already, and so has whoever lies in the past; what was found
            // then is not there any more.
            if versions.newest(handle).at >= at {
                continue;
            }
            if let Some(recorder) = &mut cx.effects.recorder {
                let (found, key) = (versions.newest(handle), versions.key(handle));
                let (txn, found) = (prepared.prepare.txn, (found.at, found.value));
                recorder.executed(txn, (space, key), found, new.as_ref());
            }
            self.space(space, cx).install(handle, new, at);
        }
    }

    /// Gives back the locks of delayed actions.
    pub(super) fn release_delayed(
        &mut self,
        owner: Owner,
        prepared: &Prepared<V>,
        cx: &Context<'_, V>,
    ) {
        for &DelayedWrite { space, handle, .. } in &prepared.delayed {
            let versions = self.space(space, cx);
            versions.lock_mut(handle).release_delayed();
            versions.remove_if_unused(handle);
            if let Some(owners) = self.delayers.get_mut(&(space, handle)) {
                owners.retain(|other| *other != owner);
                if owners.is_empty() {
                    self.delayers.remove(&(space, handle));
                }
            }
        }
    }
}

/// Whether a delayed action may have its lock.
fn is_open(lock: LockWord) -> bool {
    lock.is_free() || lock.is_delayed()
}

/// Whether a transaction reads or writes a key that it has a delayed action on. Coordinators see to
/// it that none does; bytes may say so.
pub(super) fn uses_what_it_delays<V: Variant>(prepare: &Prepare<V>) -> bool {
    let used = |space: SpaceId, key: &SmallBytes| {
        prepare.reads.iter().any(|(other, read, _)| *other == space && read == key)
            || prepare.writes.iter().any(|(other, written, _)| *other == space && written == key)
    };
    prepare.delayed.iter().any(|(space, key, _)| used(*space, key))
}
