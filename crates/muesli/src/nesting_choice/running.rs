//! A transaction whose nesting model is chosen, from its beginning to its end.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use muesli_core::{Nanos, client};

use super::observation::{AttemptSeen, NestingObservation};
use super::policy::ChoicePolicy;
use super::pooled::exchange::RowExchange;
use super::pooled::member::PoolMember;
use super::pooled::reports;
use super::{ChoiceDecision, ChoiceState, DECISIONS_KEPT, NestingChoice, NestingModel};
use crate::error::Error;

impl ChoiceState {
    /// A transaction begins; nodes that choose together are given different shares.
    fn begin(&mut self, models: &[NestingModel], now: Nanos, share: Option<u32>) -> NestingModel {
        let member = share.map(PoolMember::new);
        let policy = self.policy.get_or_insert_with(|| ChoicePolicy::new(models, now, member));
        let model = policy.begin(now);
        self.note_decision();
        model
    }

    fn attempt(&mut self, now: Nanos) -> Option<NestingModel> {
        let model = self.policy.as_mut()?.attempt(now);
        self.note_decision();
        Some(model)
    }

    fn observe(&mut self, now: Nanos, model: NestingModel, seen: &NestingObservation) {
        if let Some(policy) = &mut self.policy {
            policy.observe(now, model, seen);
        }
        self.note_decision();
    }

    fn ended(&mut self, now: Option<Nanos>, is_committed: bool) {
        if let Some(policy) = &mut self.policy {
            // Dropped on another thread, it has ended whenever the next one begins or ends.
            policy.ended(now.unwrap_or(policy.counted()), is_committed);
        }
        self.note_decision();
    }

    pub(super) fn note_decision(&mut self) {
        let Some(decided) = self.policy.as_mut().and_then(ChoicePolicy::take_decided) else {
            return;
        };
        self.made += 1;
        if self.decisions.len() == DECISIONS_KEPT {
            self.decisions.remove(0);
        }
        self.decisions.push(ChoiceDecision::new(&decided));
    }
}

/// A handle whose transactions may be of a choice.
pub(crate) trait ChoosingHandle {
    fn choice(&self) -> Option<&NestingChoice>;
    fn database(&self) -> u64;
    /// Who runs exchanges; `None`: nothing is exchanged here.
    fn exchanges(&self) -> Option<Box<dyn RowExchange>>;
}

/// The choice for a transaction that runs.
#[derive(Debug)]
pub(crate) struct Choosing {
    choice: NestingChoice,
    database: u64,
    /// A [`NestingModel`].
    model: AtomicU8,
    /// It is not known any more that it runs.
    is_over: AtomicBool,
    /// It has no open children in any case, and what others do as was chosen is in its way.
    only_observes: bool,
    attempt: Mutex<RunningAttempt>,
}

/// An attempt that runs.
#[derive(Debug)]
struct RunningAttempt {
    begun: Nanos,
    seen: AttemptSeen,
}

/// A part of a transaction whose model is chosen, as child or not, from its beginning to its end.
pub(crate) struct PartRun {
    choosing: Arc<Choosing>,
    level: u32,
    is_open: bool,
}

impl PartRun {
    /// It ended well.
    pub fn ended_well(&self) {
        self.choosing.attempt().seen.part_ended_well();
    }

    /// The whole attempt is in vain, as is found within it.
    pub fn conflict(&self) {
        self.choosing.attempt().seen.conflict_in_part(self.level);
    }

    /// It alone is undone, and run again.
    pub fn undone_alone(&self) {
        self.choosing.attempt().seen.undone_alone(self.level);
    }

    /// The time, where it is of interest when something began.
    pub fn begun(part: Option<&PartRun>) -> Option<Nanos> {
        part.and_then(|part| part.choosing.now())
    }

    /// What children need besides their bodies was asked of the database since `begun`.
    pub fn sub_commit_since(part: Option<&PartRun>, begun: Option<Nanos>) {
        let Some(PartRun { choosing, .. }) = part else { return };
        if let (Some(begun), Some(now)) = (begun, choosing.now()) {
            choosing.sub_commits(Duration::from_nanos(now.0.saturating_sub(begun.0)));
        }
    }
}

impl Drop for PartRun {
    fn drop(&mut self) {
        if !self.is_open {
            self.choosing.attempt().seen.part_is_over();
        }
    }
}

const MODELS: [NestingModel; 3] = [NestingModel::Flat, NestingModel::Closed, NestingModel::Open];

impl Choosing {
    /// A transaction of a database begins, if it is one of a choice, and may be run as these, the
    /// simplest first.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin(
        db: &impl ChoosingHandle,
        models: &[NestingModel],
    ) -> Result<Option<Arc<Choosing>>, Error> {
        Choosing::begin_as(db, models, false)
    }

    /// The same of one whose children are closed ones in any case: how long it takes counts for the
    /// choice of the others.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin_observing(
        db: &impl ChoosingHandle,
        models: &[NestingModel],
    ) -> Result<Option<Arc<Choosing>>, Error> {
        Choosing::begin_as(db, models, true)
    }

    fn begin_as(
        db: &impl ChoosingHandle,
        models: &[NestingModel],
        only_observes: bool,
    ) -> Result<Option<Arc<Choosing>>, Error> {
        let Some(choice) = db.choice() else { return Ok(None) };
        let database = db.database();
        let look = client::with(database, |engine| {
            let share = || (engine.random() >> u32::BITS) as u32;
            (engine.now(), choice.begins_pooling().then(share))
        });
        let (now, share) = look.ok_or(Error::Closed)?;
        let model = AtomicU8::new(choice.state().begin(models, now, share) as u8);
        let (choice, is_over) = (choice.clone(), AtomicBool::new(false));
        let attempt = Mutex::new(RunningAttempt { begun: now, seen: AttemptSeen::default() });
        reports::begin(&choice, database, || db.exchanges());
        let choosing = Choosing { choice, database, model, is_over, only_observes, attempt };
        Ok(Some(Arc::new(choosing)))
    }

    fn attempt(&self) -> MutexGuard<'_, RunningAttempt> {
        self.attempt.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn now(&self) -> Option<Nanos> {
        client::with(self.database, |engine| engine.now())
    }

    /// A part of the transaction begins, or a closed child, if its model is chosen.
    pub fn part(choosing: Option<&Arc<Choosing>>) -> Option<PartRun> {
        let choosing = choosing?.clone();
        let level = choosing.attempt().seen.part_begins();
        Some(PartRun { choosing, level, is_open: false })
    }

    /// The same of an open child.
    pub fn open_child(choosing: Option<&Arc<Choosing>>) -> Option<PartRun> {
        let choosing = choosing?.clone();
        let level = choosing.attempt().seen.open_child_begins();
        Some(PartRun { choosing, level, is_open: true })
    }

    /// An abstract lock was refused, which ends the attempt or that of an open child.
    pub fn refused(&self) {
        self.attempt().seen.refused();
    }

    /// Children took so long besides their bodies.
    pub fn sub_commits(&self, took: Duration) {
        self.attempt().seen.sub_commits(took);
    }

    /// An attempt is over: what was observed of it.
    fn end_attempt(&self, now: Nanos, is_lost: bool) {
        let observed = {
            let mut attempt = self.attempt();
            let took = Duration::from_nanos(now.0.saturating_sub(attempt.begun.0));
            attempt.begun = now;
            attempt.seen.end(is_lost.then_some(took))
        };
        if !self.only_observes {
            self.choice.state().observe(now, self.model(), &observed);
        }
    }

    /// Its attempt was in vain, and another one begins, which may be run as another one than those
    /// before.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin_attempt(&self) -> Result<(), Error> {
        let now = self.now().ok_or(Error::Closed)?;
        if self.is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.end_attempt(now, true);
        if let Some(model) = self.choice.state().attempt(now) {
            self.model.store(model as u8, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How its attempt is run.
    pub fn model(&self) -> NestingModel {
        if self.only_observes {
            return NestingModel::Closed;
        }
        MODELS[usize::from(self.model.load(Ordering::Relaxed))]
    }

    /// It committed.
    pub fn committed(&self) {
        if let Some(now) = self.now().filter(|_| !self.is_over.load(Ordering::Relaxed)) {
            self.end_attempt(now, false);
        }
        self.end(true);
    }

    /// It waits until something changes: that is no time that it takes.
    pub fn sleeps(&self) {
        self.end(false);
    }

    fn end(&self, is_committed: bool) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.choice.state().ended(self.now(), is_committed);
    }

    /// A child was to be undone alone that is none: from now on all are children.
    pub fn undoes(&self) {
        debug_assert!(!self.only_observes, "its children are closed ones");
        let mut state = self.choice.state();
        if !std::mem::replace(&mut state.undoes, true) {
            state.policy = state.policy.take().map(ChoicePolicy::without_flat);
        }
        self.model.store(NestingModel::Closed as u8, Ordering::Relaxed);
    }
}

impl Drop for Choosing {
    fn drop(&mut self) {
        self.end(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, Options, Tx};

    #[test]
    fn nothing_is_kept_of_transactions_that_have_ended() {
        let db = Db::open(Options::default()).unwrap();
        let choice = NestingChoice::new();
        let db = db.choosing(&choice);
        let blocking = db.blocking();
        for fails in [false, true] {
            let body = async move |_: &Tx| if fails { Err(Error::Closed) } else { Ok(()) };
            let _ = blocking.transact(body);
            let _ = crate::blocking::block_on(db.transact(body));
            let _ = crate::blocking::block_on(db.with_checkpoints().transact(body));
        }
        drop((blocking, db));
        assert_eq!(Arc::strong_count(&choice.inner), 1);
        assert_eq!(choice.state().policy.as_ref().unwrap().meter.running, 0);
    }
}
