//! What the scripts of a transaction have taken: where it is run again, they go on counting.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use muesli_scripts::ScriptLimits;

use super::running::{RunningMark, RunningScript, RunningScripts};

/// In so many attempts of a transaction its scripts let others go on whenever they pause: then
/// these may be in the way again and again.
const PAUSING_ATTEMPTS: u32 = 3;
/// In further ones they let others go on after so long.
const PAUSE_AT_LEAST: Duration = Duration::from_secs(1);

/// What scripts have taken in a transaction.
#[derive(Debug)]
pub(crate) struct ScriptsTaken {
    instructions: Cell<u64>,
    time: Cell<Duration>,
    attempts: Cell<u32>,
    /// When they let others go on last.
    paused: Cell<Instant>,
    /// The script that runs, or was the last one that did: until the transaction has ended it may
    /// run again.
    mark: RefCell<Option<RunningMark>>,
    /// Scripts that were ended, and are to end in further attempts as well: whether each is a
    /// function, and its name.
    killed: RefCell<BTreeSet<(bool, String)>>,
}

impl Default for ScriptsTaken {
    fn default() -> ScriptsTaken {
        ScriptsTaken {
            instructions: Cell::default(),
            time: Cell::default(),
            attempts: Cell::default(),
            paused: Cell::new(Instant::now()),
            mark: RefCell::default(),
            killed: RefCell::default(),
        }
    }
}

impl ScriptsTaken {
    pub fn add(&self, (instructions, time): (u64, Duration)) {
        self.instructions.set(self.instructions.get().saturating_add(instructions));
        self.time.set(self.time.get() + time);
    }

    /// An attempt of the transaction begins.
    pub fn begin_attempt(&self) {
        self.attempts.set(self.attempts.get() + 1);
    }

    /// Whether scripts let others go on, now that one pauses.
    pub fn pauses_between(&self) -> bool {
        let pauses = self.attempts.get() <= PAUSING_ATTEMPTS
            || self.paused.get().elapsed() >= PAUSE_AT_LEAST;
        if pauses {
            self.paused.set(Instant::now());
        }
        pauses
    }

    /// A script or function of this name runs from now on, by the command of these words.
    pub fn begin(
        &self,
        all: &RunningScripts,
        (name, is_function): (&str, bool),
        command: impl FnOnce() -> Vec<Vec<u8>>,
    ) -> Rc<RunningScript> {
        let mut mark = self.mark.borrow_mut();
        let since = mark.as_ref().map_or_else(Instant::now, |it| it.script.since);
        if let Some(RunningMark { script, .. }) = &*mark {
            if script.name == name && script.is_function == is_function {
                return script.clone();
            }
            if script.is_killed() {
                self.killed.borrow_mut().insert((script.is_function, script.name.clone()));
            }
        }
        let begun = all.begin((name, is_function), command(), since);
        let script = begun.script.clone();
        if self.killed.borrow().contains(&(is_function, name.to_owned())) {
            script.kill();
        }
        *mark = Some(begun);
        script
    }

    /// What is left of these limits.
    pub fn left(&self, limits: ScriptLimits) -> ScriptLimits {
        ScriptLimits {
            instructions: limits.instructions.saturating_sub(self.instructions.get()),
            time: limits.time.saturating_sub(self.time.get()),
            ..limits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_was_ended_ends_in_each_attempt_of_its_transaction() {
        let (all, taken) = (RunningScripts::default(), ScriptsTaken::default());
        let begin = |name: &str| taken.begin(&all, (name, false), Vec::new);
        let since = begin("a").since;
        assert!(!begin("a").is_killed() && all.kill(false) && !all.kill(true));
        assert!(begin("a").is_killed() && !begin("b").is_killed());
        taken.begin_attempt();
        assert!(begin("a").is_killed() && !begin("b").is_killed());
        assert!(!taken.begin(&all, ("a", true), Vec::new).is_killed());
        // It is there until the transaction has ended.
        assert!(all.first().is_some_and(|it| it.since == since));
        drop(taken);
        assert!(all.first().is_none());
    }

    #[test]
    fn scripts_of_later_attempts_pause_less_often_and_still_do() {
        let taken = ScriptsTaken::default();
        for _ in 0..PAUSING_ATTEMPTS {
            taken.begin_attempt();
            assert!(taken.pauses_between() && taken.pauses_between());
        }
        taken.begin_attempt();
        assert!(!taken.pauses_between());
        taken.paused.set(Instant::now() - PAUSE_AT_LEAST);
        assert!(taken.pauses_between() && !taken.pauses_between());
    }
}
