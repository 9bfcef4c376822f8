//! What the client of a scope knows of it, beside the rows.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};

use muesli_core::Nanos;

use super::layer::counts::{NestingPhase, PHASES};
use super::level::NestingLevel;
use super::locks::LockMode;
use super::rows::ScopeId;
use crate::error::Error;

/// A scope while its transaction runs: one attempt of it.
#[derive(Debug)]
pub(super) struct NestingScope {
    pub id: ScopeId,
    pub parent: Option<Arc<NestingScope>>,
    pub level: Arc<NestingLevel>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Open children that committed.
    children: u64,
    /// Whether they took locks.
    locks: bool,
    /// Locks that it is to hand to its parent when it commits.
    held: Vec<Vec<u8>>,
    /// Whether a descendant may have committed.
    touched: bool,
    /// Transactions of its own or of descendants of which it is not known how they ended.
    uncertain: usize,
    /// Why it cannot commit: it is to be aborted and run again.
    doom: Option<Error>,
    /// The scope whose lock kept its transaction from going on, and what was said of it.
    refused: Option<(ScopeId, Error)>,
    /// Locks that parts asked for, which are to be looked at.
    asked: Vec<(Vec<u8>, LockMode)>,
    /// How long it was in each phase, in nanoseconds.
    phases: [u64; PHASES],
}

impl NestingScope {
    pub fn new(
        id: ScopeId,
        level: NestingLevel,
        parent: Option<&Arc<NestingScope>>,
    ) -> Arc<NestingScope> {
        let known = Mutex::default();
        Arc::new(NestingScope { id, parent: parent.cloned(), level: Arc::new(level), known })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Itself and those that it is within, from inside outwards.
    pub fn chain(&self) -> impl Iterator<Item = &NestingScope> {
        std::iter::successors(Some(self), |scope| scope.parent.as_deref())
    }

    pub fn chain_ids(&self) -> Vec<ScopeId> {
        self.chain().map(|scope| scope.id).collect()
    }

    pub fn children(&self) -> u64 {
        self.known().children
    }

    pub fn is_touched(&self) -> bool {
        self.known().touched
    }

    /// Whether all that was begun for it has an end that is known.
    pub fn is_certain(&self) -> bool {
        self.known().uncertain == 0
    }

    /// Whether all has that was begun within its transaction, which is under way itself.
    pub fn is_certain_within(&self) -> bool {
        self.known().uncertain <= 1
    }

    /// It was in a phase from then until then.
    pub fn took(&self, phase: NestingPhase, from: Nanos, to: Nanos) {
        self.known().phases[phase as usize] += to.0.saturating_sub(from.0);
    }

    /// How long it was in each phase.
    pub fn phases(&self) -> [u64; PHASES] {
        self.known().phases
    }

    pub fn held(&self) -> Vec<Vec<u8>> {
        self.known().held.clone()
    }

    /// An open child committed, with these locks, of which some are to be handed on.
    pub fn child_committed(&self, locks: bool, held: Vec<Vec<u8>>) {
        {
            let mut known = self.known();
            known.children += 1;
            known.locks |= locks;
            known.held.extend(held);
        }
        self.touch();
    }

    /// It may have left rows, and those that it is within.
    pub fn touch(&self) {
        self.chain().for_each(|scope| scope.known().touched = true);
    }

    /// Why nothing more is to be done in it: a mistake of the program, or a lock that was refused.
    ///
    /// # Errors
    /// That.
    pub fn check(&self) -> Result<(), Error> {
        let doom = self.level.fault().or_else(|| self.known().doom.clone());
        doom.map_or(Ok(()), Err)
    }

    pub fn doom(&self, why: &Error) {
        self.known().doom.get_or_insert_with(|| why.clone());
    }

    pub fn doomed(&self) -> Option<Error> {
        self.known().doom.clone()
    }

    /// A lock was refused. The innermost scope that holds locks is aborted, so that two that wait
    /// for each other's do not do so for ever; whether there is one.
    pub fn doom_holder(&self, why: &Error) -> bool {
        let holds = |scope: &NestingScope| scope.known().locks;
        if !self.chain().any(holds) {
            return false;
        }
        for scope in self.chain() {
            scope.doom(why);
            if holds(scope) {
                break;
            }
        }
        true
    }

    /// A part asks for a lock in this mode.
    pub fn ask_for(&self, id: &[u8], mode: &LockMode) {
        let mut known = self.known();
        if !known.asked.iter().any(|(asked, of)| asked == id && of == mode) {
            known.asked.push((id.to_vec(), mode.clone()));
        }
    }

    /// The locks that parts asked for, once.
    pub fn take_asked(&self) -> Vec<(Vec<u8>, LockMode)> {
        std::mem::take(&mut self.known().asked)
    }

    pub fn refuse(&self, holder: ScopeId, error: &Error) {
        self.known().refused.get_or_insert_with(|| (holder, error.clone()));
    }

    pub fn refused(&self) -> Option<(ScopeId, Error)> {
        self.known().refused.clone()
    }
}

/// A transaction of a scope that is under way: until its end is known, the scope is uncertain, for
/// ever if nobody learns of it.
pub(super) struct InFlight {
    scope: Arc<NestingScope>,
    /// Whether it is an open child, which may leave something to its scope.
    is_child: bool,
    /// Whether its commit was asked for; before, it has not committed.
    asked: Cell<bool>,
    over: bool,
}

impl InFlight {
    /// The open child whose own scope this is.
    pub fn of_child(scope: &Arc<NestingScope>) -> InFlight {
        InFlight::new(scope, true)
    }

    /// The outermost transaction.
    pub fn of_root(scope: &Arc<NestingScope>) -> InFlight {
        InFlight::new(scope, false)
    }

    fn new(scope: &Arc<NestingScope>, is_child: bool) -> InFlight {
        scope.chain().for_each(|scope| scope.known().uncertain += 1);
        InFlight { scope: scope.clone(), is_child, asked: Cell::new(false), over: false }
    }

    /// Its commit is about to be asked for.
    pub fn ask(&self) {
        self.asked.set(true);
    }

    /// It is known how it ended.
    pub fn over(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.over = true;
        self.scope.chain().for_each(|scope| {
            let mut known = scope.known();
            assert!(known.uncertain > 0, "it was counted when it began");
            known.uncertain -= 1;
        });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        match (self.over, self.asked.get()) {
            (true, _) => {}
            (false, false) => self.end(),
            (false, true) if self.is_child => self.scope.touch(),
            (false, true) => {}
        }
    }
}
