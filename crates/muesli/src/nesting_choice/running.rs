//! A transaction whose nesting model is chosen, from its beginning to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use muesli_core::{Nanos, client};

use super::policy::ChoicePolicy;
use super::{ChoiceDecision, ChoiceState, DECISIONS_KEPT, NestingChoice, NestingModel};
use crate::error::Error;

impl ChoiceState {
    fn begin(&mut self, models: &[NestingModel], now: Nanos) -> NestingModel {
        let undoes = self.undoes;
        let policy = self.policy.get_or_insert_with(|| {
            let may_be = |it: &NestingModel| !undoes || *it != NestingModel::Flat;
            let models: Vec<_> = models.iter().copied().filter(may_be).collect();
            ChoicePolicy::new(&models, now)
        });
        let model = policy.begin(now);
        self.note_decision();
        model
    }

    fn attempt(&mut self, now: Nanos) -> Option<NestingModel> {
        let model = self.policy.as_mut()?.attempt(now);
        self.note_decision();
        Some(model)
    }

    fn ended(&mut self, now: Option<Nanos>, is_committed: bool) {
        if let Some(policy) = &mut self.policy {
            // Dropped on another thread, it has ended whenever the next one begins or ends.
            policy.ended(now.unwrap_or(policy.counted()), is_committed);
        }
        self.note_decision();
    }

    fn note_decision(&mut self) {
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

/// The choice for a transaction that runs.
#[derive(Debug)]
pub(crate) struct Choosing {
    choice: NestingChoice,
    database: u64,
    /// A [`NestingModel`].
    model: AtomicU8,
    /// It is not known any more that it runs.
    is_over: AtomicBool,
}

const MODELS: [NestingModel; 3] = [NestingModel::Flat, NestingModel::Closed, NestingModel::Open];

impl Choosing {
    /// A transaction of a database begins, if it is one of a choice, and may be run as these, the
    /// simplest first.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin(
        choice: Option<&NestingChoice>,
        database: u64,
        models: &[NestingModel],
    ) -> Result<Option<Arc<Choosing>>, Error> {
        let Some(choice) = choice else { return Ok(None) };
        let now = client::with(database, |engine| engine.now()).ok_or(Error::Closed)?;
        let model = AtomicU8::new(choice.state().begin(models, now) as u8);
        let (choice, is_over) = (choice.clone(), AtomicBool::new(false));
        Ok(Some(Arc::new(Choosing { choice, database, model, is_over })))
    }

    /// Another attempt of it begins, which may be run as another one than those before.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin_attempt(&self) -> Result<(), Error> {
        let now = client::with(self.database, |engine| engine.now()).ok_or(Error::Closed)?;
        if !self.is_over.load(Ordering::Relaxed)
            && let Some(model) = self.choice.state().attempt(now)
        {
            self.model.store(model as u8, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How its attempt is run.
    pub fn model(&self) -> NestingModel {
        MODELS[usize::from(self.model.load(Ordering::Relaxed))]
    }

    /// It committed.
    pub fn committed(&self) {
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
        let now = client::with(self.database, |engine| engine.now());
        self.choice.state().ended(now, is_committed);
    }

    /// A child was to be undone alone that is none: from now on all are children.
    pub fn undoes(&self) {
        let mut state = self.choice.state();
        if !std::mem::replace(&mut state.undoes, true) {
            state.policy = None; // It is made anew, without flat ones.
        }
        self.model.store(NestingModel::Closed as u8, Ordering::Relaxed);
    }
}

impl Drop for Choosing {
    fn drop(&mut self) {
        self.end(false);
    }
}
