//! Delayed procedures, at a participant: code over several keys, run in the transaction's turn.
//!
//! # The problem
//! The paper lets a delayed action have an over-approximated set of keys, and aborts its
//! transaction if it reaches for others (section IV-C). But what it reaches for is known when it
//! runs; that is when its turn has come, and then the transaction is decided, and parts of it are
//! applied.
//!
//! # The idea
//! The vote is the last moment at which a transaction can abort. So a procedure is *tried* when its
//! transaction votes, on the newest versions, and run in its turn. If the trial goes wrong (a key
//! that was not declared or lives elsewhere, too many steps, a panic, a refusal) the vote is no,
//! the coordinator is told why, and the transaction is run again with its procedures done at once.
//! If it goes well the run must go as well, and it does, because it is the same run:
//!
//! * All keys declared are locked *exclusively* from the vote to the turn, and ranges declared as a
//!   scan locks them. A lock is had only when whoever had it before is applied. So in the turn the
//!   procedure finds what it found in its trial, and it is a function of that.
//! * A *steady* procedure is one of which it was declared that what it touches, and that it comes
//!   to its end, does not depend on what it finds. Its keys are locked as those of delayed actions
//!   are, shared with such: many of them are under way on one key, none aborts another. The trial
//!   runs on what may be something else than what the turn will find, and that is enough, by the
//!   declaration. One that was declared wrongly and goes wrong in its turn changes nothing there,
//!   at every replica alike, and gives [`Gave::Nothing`] with the reason. So no mistake of a
//!   user's can have replicas differ, or a node stop, or a key changed that is not locked.
//!
//! # Replaying
//! A procedure's writes depend on several keys, and a checkpoint may have some of them as they were
//! before the turn and others as they were after. So the turn logs what was written
//! ([`Record::Ran`](crate::two_phase::Record::Ran)), right behind the decision that made it the
//! turn, and a replay takes it from there: it holds the queue until that record comes. Where the
//! log ends before it, no checkpoint has seen anything of the turn, and the run is made when the
//! replay is over.

use std::collections::BTreeMap;

use muesli_core::actions::{check_growth, run_limited};
use muesli_core::exceeded::Limit;
use muesli_core::limits::{check_size, writes_bytes};
use muesli_core::parts::execution::Execution;
use muesli_core::parts::locator::Static;
use muesli_core::parts::locks::Owner;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::versions::Handle;
use muesli_core::procedure::ProcedureId;
use muesli_core::{Abort, DelayedCall, Gave, SmallBytes, SpaceId, Stop, Timestamp};

use super::actions::is_open;
use crate::two_phase::message::{Answers, Prepare, Writes};
use crate::two_phase::participant::Participant;
use crate::two_phase::participant::prepare::NO_HANDLE;
use crate::two_phase::participant::waits::WaitState;
use crate::two_phase::table::{LockedCall, Prepared};
use crate::two_phase::{Context, ValidationResult, Variant};

impl<V: Variant> Participant<V> {
    /// Whether delayed procedures may have their locks; who has them is met.
    pub(in crate::two_phase) fn check_calls(
        &mut self,
        prepare: &Prepare<V>,
        validation: &mut ValidationResult<V::Snapshot>,
        way: &mut WaitState,
        cx: &Context<'_, V>,
    ) -> Result<(), Abort> {
        for call in prepare.calls() {
            validation.lower_bound = Timestamp::MAX;
            if !Static.holds(self.id, call.partition, cx.catalog) {
                return Err(Abort::FootprintViolation);
            }
            for (space, key) in &call.keys {
                self.meet_ranges(prepare, (*space, key), way);
                let versions = self.space(*space, cx);
                let found = versions.find(key);
                let closed = |&handle: &Handle| {
                    let lock = versions.lock(handle);
                    !(lock.is_free() || call.steady && is_open(lock))
                };
                if let Some(handle) = found.filter(closed) {
                    self.meet(prepare, (*space, handle), way);
                }
            }
            for range in &call.ranges {
                let versions = self.space(range.space, cx);
                let all = versions.range(&range.lo, range.hi.as_ref());
                let written =
                    |(_, handle): &(&SmallBytes, Handle)| versions.lock(*handle).is_for_writing();
                let written: Vec<_> = all.filter(written).map(|(_, handle)| handle).collect();
                for handle in written {
                    self.meet(prepare, (range.space, handle), way);
                }
            }
        }
        Ok(())
    }

    /// Takes the locks of delayed procedures.
    pub(in crate::two_phase) fn enter_calls(
        &mut self,
        prepare: &Prepare<V>,
        owner: Owner,
        cx: &Context<'_, V>,
    ) -> Vec<LockedCall> {
        let mut locked = Vec::with_capacity(prepare.calls().len());
        for call in prepare.calls() {
            let mut keys = Vec::with_capacity(call.keys.len());
            for (space, key) in &call.keys {
                let versions = self.space(*space, cx);
                let handle = versions.find_or_create(NO_HANDLE, key);
                let lock = versions.lock_mut(handle);
                let taken =
                    if call.steady { lock.try_delayed() } else { lock.try_exclusive(owner) };
                assert!(taken, "delayed over a lock");
                if call.steady {
                    self.delayers.entry((*space, handle)).or_default().push(owner);
                }
                keys.push((*space, handle));
            }
            for range in &call.ranges {
                self.ranges.lock(owner, range.clone());
            }
            assert_eq!(keys.len(), call.keys.len(), "keys of a procedure that are locked");
            locked.push(LockedCall { keys, steady: call.steady });
        }
        locked
    }

    /// Tries everything that may go wrong in the turn of a transaction that has its way free.
    ///
    /// # Errors
    /// Something does, as this text says.
    pub(in crate::two_phase) fn try_delayed(
        &mut self,
        prepare: &Prepare<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<(), String> {
        self.try_actions(prepare, cx)?;
        let mut written = Written::default();
        for call in prepare.calls() {
            let mut sets = TransactionSets::default();
            let ran = self.execute(call, &mut sets, cx);
            ran.map_err(|stop| reason(&call.procedure, stop))?;
            written.add(call.partition, writes_bytes(&writes_of(&mut sets)), cx)?;
        }
        Ok(())
    }

    /// Tries actions that may fail, and those that may leave more than they are given: users' own
    /// and those of numbers on what is there now; those that append with all others that are under
    /// way on their keys.
    fn try_actions(&mut self, prepare: &Prepare<V>, cx: &Context<'_, V>) -> Result<(), String> {
        let (known, most) = (&cx.settings.actions, prepare.result_bytes());
        let mut sizes: BTreeMap<(SpaceId, &SmallBytes), usize> = BTreeMap::new();
        let may_fail = |name| known.grows(name) || known.may_fail(name);
        let tried = prepare.delayed.iter().filter(|(.., action)| may_fail(&action.name));
        for (space, key, action) in tried {
            let versions = self.space(*space, cx);
            let handle = versions.find(key);
            let old = handle.and_then(|it| versions.newest(it).value.cloned());
            if known.may_fail(&action.name) {
                let run = known.get(&action.name).expect("looked for before");
                run_limited(run, old.as_ref(), action, most)?;
                continue;
            }
            let size = sizes.entry((*space, key)).or_insert_with(|| {
                let under_way = handle.map_or(0, |handle| self.under_way_on((*space, handle), cx));
                old.map_or(0, |old| old.len()) + under_way
            });
            *size += action.argument.len();
            check_growth(action, *size, most.max(action.argument.len() as u64))?;
        }
        Ok(())
    }

    /// How many bytes actions that are under way may append to a key.
    fn under_way_on(&self, key: (SpaceId, Handle), cx: &Context<'_, V>) -> usize {
        let mut owners: Vec<_> = self.delayers(key.0, key.1).collect();
        owners.sort_unstable();
        owners.dedup();
        let all = owners.into_iter().flat_map(|owner| &self.table.get(owner).delayed);
        let appended = all.filter(|it| {
            (it.space, it.handle) == key && cx.settings.actions.grows(&it.action.name)
        });
        appended.map(|it| it.action.argument.len()).sum()
    }

    /// Runs procedures on the newest versions: what they wrote, and what those gave that are asked.
    pub(in crate::two_phase) fn run_calls(
        &mut self,
        prepare: &Prepare<V>,
        cx: &mut Context<'_, V>,
    ) -> (Writes, Answers) {
        let (mut writes, mut answers) = (Writes::new(), Answers::new());
        let mut written = Written::default();
        for (count, call) in prepare.calls().iter().enumerate() {
            let mut sets = TransactionSets::default();
            let ran = self.execute(call, &mut sets, cx);
            let mut wrote = writes_of(&mut sets);
            let size = writes_bytes(&wrote);
            let ran = ran.map_err(|stop| reason(&call.procedure, stop));
            let fits = ran.and_then(|answer| {
                written.add(call.partition, size, cx)?;
                Ok(answer)
            });
            let gave = match fits {
                Ok(answer) => {
                    writes.append(&mut wrote);
                    if let Some(recorder) = &mut cx.effects.recorder {
                        recorder.called(prepare.txn, &sets.operations);
                    }
                    Gave::Value(Some(answer))
                }
                Err(reason) => Gave::nothing(&reason),
            };
            let number = prepare.number_of(prepare.delayed.len() + count);
            answers.extend(number.map(|number| (number, gave)));
        }
        assert!(answers.len() <= prepare.calls().len(), "answers that nobody gave");
        (writes, answers)
    }

    fn execute(
        &self,
        call: &DelayedCall,
        sets: &mut TransactionSets,
        cx: &mut Context<'_, V>,
    ) -> Result<SmallBytes, Stop> {
        let recording = cx.effects.recorder.is_some();
        let (catalog, settings) = (cx.catalog, cx.settings);
        let mut run = Execution::new(catalog, settings, &self.spaces, sets, recording);
        let neighbours = |partition| Static.are_colocated(partition, call.partition, catalog);
        let ran = run.call_delayed(call, &neighbours);
        cx.effects.work.reads += sets.reads.len() as u64;
        ran
    }

    /// Installs what procedures wrote.
    pub(in crate::two_phase) fn install_called(
        &mut self,
        writes: &Writes,
        at: Timestamp,
        cx: &mut Context<'_, V>,
    ) {
        cx.effects.work.installed += writes.len() as u64;
        self.note_moved(writes_bytes(writes));
        for (space, key, value) in writes {
            let versions = self.space(*space, cx);
            let handle = versions.find_or_create(NO_HANDLE, key);
            if versions.newest(handle).at < at {
                versions.install(handle, value.clone(), at);
            }
        }
    }

    /// Gives back the locks of delayed procedures.
    pub(in crate::two_phase) fn release_calls(
        &mut self,
        owner: Owner,
        prepared: &Prepared<V>,
        cx: &Context<'_, V>,
    ) {
        for call in &prepared.calls {
            for &(space, handle) in &call.keys {
                let versions = self.space(space, cx);
                if !call.steady {
                    versions.lock_mut(handle).release_exclusive(owner);
                    versions.remove_if_unused(handle);
                    continue;
                }
                versions.lock_mut(handle).release_delayed();
                versions.remove_if_unused(handle);
                self.forget_delayer(owner, (space, handle));
            }
        }
    }
}

/// What a procedure wrote, taken out of its sets.
fn writes_of(sets: &mut TransactionSets) -> Writes {
    sets.writes.drain(..).map(|write| (write.space, write.key, write.value)).collect()
}

/// What the procedures of a transaction have written at a repository, which is one record. All
/// copies of a key must come to the same, and may hold other keys beside it: so those partitions
/// that are on the same repositories have an equal share, of which each repository holds as many
/// as there are replicas.
#[derive(Default)]
struct Written(Vec<(u16, usize)>);

impl Written {
    /// Adds what one of a partition has written.
    ///
    /// # Errors
    /// It is too much, and is not counted.
    fn add<V: Variant>(
        &mut self,
        partition: u16,
        bytes: usize,
        cx: &Context<'_, V>,
    ) -> Result<(), String> {
        let known =
            self.0.iter().position(|(it, _)| Static.are_colocated(*it, partition, cx.catalog));
        let before = known.map_or(0, |place| self.0[place].1);
        let share = cx.settings.limits.transaction_bytes / usize::from(cx.catalog.replicas.max(1));
        let judged = check_size(Limit::Transaction, before + bytes, share);
        judged.map_err(|failure| format!("delayed procedures: {failure}"))?;
        match known {
            Some(place) => self.0[place].1 += bytes,
            None => self.0.push((partition, bytes)),
        }
        Ok(())
    }
}

fn reason(id: &ProcedureId, stop: Stop) -> String {
    match stop {
        Stop::Refused(why) => {
            format!("procedure {id} refused: {}", String::from_utf8_lossy(why.as_slice()))
        }
        Stop::Faulty(text) => text,
    }
}
