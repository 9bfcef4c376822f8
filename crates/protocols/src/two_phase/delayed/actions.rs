//! The turns of delayed actions, at a participant: their locks, and their runs.
//!
//! Why it is safe is told in [`delayed`](super). An action that panics, that would leave
//! too much, or that a node has forgotten, leaves the key as it is, on every replica alike, and
//! says so to whoever asked what it gave; users' own are tried when their transaction votes, which
//! it cannot do where they panic.

use std::collections::BTreeSet;

use muesli_core::actions::run_limited;
use muesli_core::parts::locks::{LockWord, Owner};
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, Action, Gave, SmallBytes, SpaceId, Timestamp};

use crate::two_phase::message::{Answers, Prepare, Writes};
use crate::two_phase::participant::Participant;
use crate::two_phase::participant::prepare::NO_HANDLE;
use crate::two_phase::participant::waits::WaitState;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::table::{DelayedWrite, Prepared};
use crate::two_phase::{
    CommitPlace, Context, DelayedTimeWarp, Time, ValidationResult, Variant, VariantState,
};

impl<V: Variant> Participant<V> {
    /// Whether a lock keeps readers and those who validate away.
    #[inline]
    pub(in crate::two_phase) fn is_closed(&self, lock: LockWord) -> bool {
        lock.is_exclusive()
            || self.switches.keeps(FamilySwitch::DelayedExcludes) && lock.is_delayed()
    }

    /// Who has delayed actions on a key.
    pub(in crate::two_phase) fn delayers(
        &self,
        space: SpaceId,
        handle: Handle,
    ) -> impl Iterator<Item = Owner> + '_ {
        self.delayers.get(&(space, handle)).into_iter().flatten().copied()
    }

    /// Whether the delayed actions of a transaction may have their locks; who has them is met.
    pub(in crate::two_phase) fn check_delayed(
        &mut self,
        prepare: &Prepare<V>,
        validation: &mut ValidationResult<V::Snapshot>,
        way: &mut WaitState,
        cx: &Context<'_, V>,
    ) -> Result<(), Abort> {
        if !prepare.delays() {
            return Ok(());
        }
        let known =
            |(_, _, action): &(_, _, Action)| cx.settings.actions.get(&action.name).is_some();
        if contradicts_itself(prepare) || !prepare.delayed.iter().all(known) {
            // Done at once, actions are done where they are known.
            return Err(Abort::FootprintViolation);
        }
        if prepare.result_bytes() > cx.settings.limits.value_bytes as u64 {
            // Done at once, what they leave is judged as any value.
            return Err(Abort::FootprintViolation);
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
            match V::delayed_time_warp(&self.protocol_switches) {
                DelayedTimeWarp::Safely | DelayedTimeWarp::AboveProposals if !is_alone => {
                    validation.lower_bound = Timestamp::MAX;
                }
                DelayedTimeWarp::Never => validation.lower_bound = Timestamp::MAX,
                DelayedTimeWarp::AboveProposals => {}
                DelayedTimeWarp::Safely | DelayedTimeWarp::BesideOthers => {
                    validation.below_proposal = true;
                }
            }
            self.protocol_state.note_write((*space, key), head, prepare.reader, validation);
        }
        self.check_calls(prepare, validation, way, cx)
    }

    /// Takes the locks of delayed actions; one for each, though some may have one key.
    pub(in crate::two_phase) fn enter_delayed(
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
    pub(in crate::two_phase) fn run_delayed_time_warped(
        &mut self,
        owner: Owner,
        place: &V::Place,
        cx: &mut Context<'_, V>,
    ) {
        if place.is_time_warped() {
            let is_decided = self.table.get(owner).decided.is_some();
            assert!(is_decided, "actions are run of what is in doubt");
            let prepared = self.table.get(owner).clone();
            let answers = self.run_actions(&prepared, V::Time::version_of(place), cx);
            self.tell(&prepared.prepare, Writes::new(), answers, cx);
        }
    }

    /// The turn of a transaction has come: what it has delayed is run. Where the log has what came
    /// of that, it is `logged`.
    pub(in crate::two_phase) fn run_delayed(
        &mut self,
        prepared: &Prepared<V>,
        at: Timestamp,
        logged: Option<(Writes, Answers)>,
        cx: &mut Context<'_, V>,
    ) {
        let prepare = &prepared.prepare;
        let mut answers = self.run_actions(prepared, at, cx);
        let was_logged = logged.is_some();
        let (writes, others) = logged.unwrap_or_else(|| self.run_calls(prepare, cx));
        self.install_called(&writes, at, cx);
        if was_logged {
            self.table.keep_answers(prepare.txn, others);
        } else if !self.table.has_answers(prepare.txn) {
            // Whoever lies in the past has told already.
            answers.extend(others);
            self.tell(prepare, writes, answers, cx);
        }
    }

    /// Runs actions, those on one key one after the other, on the newest versions; what those gave
    /// that are asked.
    fn run_actions(
        &mut self,
        prepared: &Prepared<V>,
        at: Timestamp,
        cx: &mut Context<'_, V>,
    ) -> Answers {
        let most = prepared.prepare.result_bytes();
        let mut left: Vec<(SpaceId, Handle, Option<SmallBytes>)> = Vec::new();
        let mut answers = Answers::new();
        for (count, DelayedWrite { space, handle, action }) in prepared.delayed.iter().enumerate() {
            let known = left.iter().position(|(s, h, _)| (s, h) == (space, handle));
            let old = match known {
                Some(place) => left[place].2.clone(),
                None => self.space(*space, cx).newest(*handle).value.cloned(),
            };
            let ran = match cx.settings.actions.get(&action.name) {
                Some(run) => run_limited(run, old.as_ref(), action, most),
                None => Err("this node has forgotten the action since its vote".to_owned()),
            };
            // One that cannot be run leaves the value as it is.
            let (new, gave) = match ran {
                Ok(new) => (new.clone(), Gave::Value(new)),
                Err(reason) => (old, Gave::nothing(&reason)),
            };
            answers.extend(prepared.prepare.number_of(count).map(|number| (number, gave)));
            match known {
                Some(place) => left[place].2 = new,
                None => left.push((*space, *handle, new)),
            }
        }
        let (locked, asked) = (prepared.delayed.len(), prepared.prepare.delayed.len());
        assert_eq!(locked, asked, "delayed actions that have their locks");
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
                let version = versions.recorded(key, found.at);
                let (txn, found) = (prepared.prepare.txn, (version, found.value));
                recorder.executed(txn, (space, key), found, new.as_ref());
            }
            self.note_moved(new.as_ref().map_or(0, SmallBytes::len));
            self.space(space, cx).install(handle, new, at);
        }
        answers
    }

    /// Gives back the locks of delayed actions.
    pub(in crate::two_phase) fn release_delayed(
        &mut self,
        owner: Owner,
        prepared: &Prepared<V>,
        cx: &Context<'_, V>,
    ) {
        for &DelayedWrite { space, handle, .. } in &prepared.delayed {
            let versions = self.space(space, cx);
            versions.lock_mut(handle).release_delayed();
            versions.remove_if_unused(handle);
            self.forget_delayer(owner, (space, handle));
        }
    }

    /// A transaction has given back what it had of a key.
    pub(in crate::two_phase) fn forget_delayer(&mut self, owner: Owner, key: (SpaceId, Handle)) {
        let owners = self.delayers.get_mut(&key).expect("a key with delayed actions");
        let place = owners.iter().position(|other| *other == owner);
        assert!(place.is_some(), "{owner:?} has no delayed action on {key:?}");
        place.map(|place| owners.remove(place));
        if owners.is_empty() {
            self.delayers.remove(&key);
        }
    }
}

/// Whether a delayed action may have its lock.
pub(in crate::two_phase) fn is_open(lock: LockWord) -> bool {
    lock.is_free() || lock.is_delayed()
}

/// Whether a transaction uses a key that it has delayed something on, or has delayed two things
/// that cannot be told apart. Coordinators see to it that none does; bytes may say so.
pub(in crate::two_phase) fn contradicts_itself<V: Variant>(prepare: &Prepare<V>) -> bool {
    let read = || prepare.reads.iter().map(|(space, key, _)| (*space, key));
    let written = || prepare.writes.iter().map(|(space, key, _)| (*space, key));
    let delayed = |(space, key): (SpaceId, &SmallBytes)| {
        prepare.delayed.iter().any(|(other, it, _)| *other == space && it == key)
    };
    if read().chain(written()).any(delayed) {
        return true;
    }
    let mut keys: BTreeSet<_> =
        prepare.delayed.iter().map(|(space, key, _)| (*space, key)).collect();
    prepare.calls().iter().any(|call| {
        read().any(|(space, key)| call.has(space, key))
            || written().any(|(space, key)| call.sees(space, key))
            || call.keys.iter().any(|(space, key)| !keys.insert((*space, key)))
    })
}
