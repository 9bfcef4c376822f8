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
    /// The locks that they took and that it still holds, in the order of the children.
    taken: Vec<(u64, TakenLock)>,
    /// How often a descendant committed, or may have.
    touches: u64,
    /// What open children did from there on is to be undone: a closed child within which they ran
    /// has been.
    undone: Option<ScopeMark>,
    /// Transactions of its own or of descendants of which it is not known how they ended.
    uncertain: usize,
    /// Why it cannot commit: it is to be aborted and run again.
    doom: Option<Error>,
    /// The scope whose lock kept its transaction from going on, and what was said of it.
    refused: Option<(ScopeId, Error)>,
    /// Locks that parts asked for, which are to be looked at.
    asked: Vec<(Vec<u8>, LockMode)>,
    /// And those of the rows that it uses.
    asked_for_rows: bool,
    /// When its transaction is to be run again where nothing changes that it waits for.
    alarm: Option<Nanos>,
    /// How long it was in each phase, in nanoseconds.
    phases: [u64; PHASES],
}

/// A lock that an open child took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TakenLock {
    pub id: Vec<u8>,
    /// In which modes.
    pub modes: u32,
    /// When its scope commits, it passes to the scope above.
    pub hold: bool,
}

/// What a scope is left with of a lock that children took which are undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftLock {
    pub id: Vec<u8>,
    /// None: it does not hold it any more.
    pub modes: u32,
    pub hold: bool,
}

/// How far a scope was at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScopeMark {
    /// Open children that had committed: the number of the next one's record.
    pub children: u64,
    touches: u64,
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
        self.known().touches > 0
    }

    /// How far it is.
    pub fn mark(&self) -> ScopeMark {
        let known = self.known();
        ScopeMark { children: known.children, touches: known.touches }
    }

    /// A closed child was undone that began there: what open children did within it is to be.
    pub fn note_undone(&self, from: ScopeMark) {
        let mut known = self.known();
        if known.touches > from.touches {
            let earlier = known.undone.unwrap_or(from);
            known.undone = Some(from.min(earlier));
        }
    }

    /// From where on what open children did is to be undone.
    pub fn undone(&self) -> Option<ScopeMark> {
        self.known().undone
    }

    /// The locks that children from a mark on took, as they are without those.
    pub fn without_from(&self, from: ScopeMark) -> Vec<LeftLock> {
        let known = self.known();
        let mut left: Vec<LeftLock> = Vec::new();
        for (_, gone) in known.taken.iter().filter(|(number, _)| *number >= from.children) {
            if left.iter().any(|lock| lock.id == gone.id) {
                continue;
            }
            let before = |it: &&(u64, TakenLock)| it.0 < from.children && it.1.id == gone.id;
            let (mut modes, mut hold) = (0, false);
            for (_, lock) in known.taken.iter().filter(before) {
                modes |= lock.modes;
                hold |= lock.hold;
            }
            left.push(LeftLock { id: gone.id.clone(), modes, hold });
        }
        left
    }

    /// What open children did from a mark on has been undone.
    pub fn forget_from(&self, from: ScopeMark) {
        let mut known = self.known();
        assert_eq!(known.undone, Some(from), "what is undone was to be");
        known.taken.retain(|(number, _)| *number < from.children);
        known.undone = None;
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

    /// The locks that it is to hand to its parent when it commits, in all modes in which it holds
    /// them.
    pub fn held(&self) -> Vec<TakenLock> {
        let known = self.known();
        let mut held: Vec<TakenLock> = Vec::new();
        for (_, lock) in &known.taken {
            match held.iter_mut().find(|it| it.id == lock.id) {
                Some(same) => {
                    same.modes |= lock.modes;
                    same.hold |= lock.hold;
                }
                None => held.push(lock.clone()),
            }
        }
        held.retain(|lock| lock.hold);
        held
    }

    /// An open child committed, with these locks.
    pub fn child_committed(&self, taken: Vec<TakenLock>) {
        {
            let mut known = self.known();
            assert_eq!(known.undone, None, "what was undone is compensated before it goes on");
            let number = known.children;
            known.taken.extend(taken.into_iter().map(|lock| (number, lock)));
            known.children += 1;
        }
        self.touch();
    }

    /// It may have left rows, and those that it is within.
    pub fn touch(&self) {
        self.chain().for_each(|scope| scope.known().touches += 1);
    }

    /// Why nothing more is to be done in it: a mistake of the program, or a lock that was refused.
    ///
    /// # Errors
    /// That.
    pub fn check(&self) -> Result<(), Error> {
        let doom = self.level.fault().or_else(|| self.known().doom.clone());
        doom.map_or(Ok(()), Err)
    }

    /// Its transaction is to be run again at this time, whatever it waits for.
    pub fn wake_at(&self, at: Option<Nanos>) {
        self.known().alarm = at;
    }

    pub fn alarm(&self) -> Option<Nanos> {
        self.known().alarm
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
        let holds = |scope: &NestingScope| !scope.known().taken.is_empty();
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

    /// A part asks for the locks of the rows that it uses. Which part has used which is not known:
    /// all those of the transaction.
    pub fn ask_for_rows(&self) {
        self.known().asked_for_rows = true;
    }

    /// Whether a part has, once.
    pub fn take_asked_for_rows(&self) -> bool {
        std::mem::take(&mut self.known().asked_for_rows)
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

#[cfg(test)]
mod tests {
    use muesli_core::SpaceId;

    use super::*;

    fn scope() -> Arc<NestingScope> {
        NestingScope::new(ScopeId(1), NestingLevel::new(SpaceId(9), None), None)
    }

    fn lock(id: &str, modes: u32, hold: bool) -> TakenLock {
        TakenLock { id: id.into(), modes, hold }
    }

    #[test]
    fn what_undone_children_took_goes_and_what_earlier_ones_took_stays() {
        let scope = scope();
        scope.child_committed(vec![lock("a", 1, false), lock("b", 1, true)]);
        let from = scope.mark();
        scope.child_committed(vec![lock("a", 2, true), lock("c", 1, true)]);
        scope.child_committed(vec![lock("c", 2, false)]);
        let left = |id: &str, modes| LeftLock { id: id.into(), modes, hold: false };
        assert_eq!(scope.without_from(from), [left("a", 1), left("c", 0)]);
        let held = [lock("a", 3, true), lock("b", 1, true), lock("c", 3, true)];
        assert_eq!(scope.held(), held, "in all modes");
        scope.note_undone(from);
        scope.forget_from(from);
        assert_eq!((scope.held(), scope.children()), (vec![lock("b", 1, true)], 3));
        assert_eq!(scope.without_from(from), []);
    }

    #[test]
    fn the_outermost_that_is_undone_counts_and_nothing_where_nothing_was_done() {
        let scope = scope();
        let outer = scope.mark();
        scope.note_undone(outer);
        assert_eq!(scope.undone(), None);
        scope.child_committed(Vec::new());
        let inner = scope.mark();
        scope.touch(); // By a child of a child.
        scope.note_undone(inner);
        scope.note_undone(outer);
        scope.note_undone(inner);
        assert_eq!(scope.undone(), Some(outer));
    }
}
