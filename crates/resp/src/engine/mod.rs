//! What a server has for scripts: interpreters, the scripts that it knows, those that run, and the
//! libraries as it has read them last. It knows no keys and runs no commands.

mod cache;
mod interpreters;
mod libraries;
mod running;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use muesli_scripts::ScriptLimits;

pub(crate) use cache::{CachedScript, ScriptCache};
pub(crate) use interpreters::{Interpreters, LentInterpreter};
pub(crate) use libraries::{Library, LibrarySet, dumped, undumped};
use running::RunningMark;
pub(crate) use running::{RunningScript, RunningScripts};

/// What scripts have taken in a transaction: a transaction that is run again goes on counting.
#[derive(Debug, Default)]
pub(crate) struct ScriptsTaken {
    instructions: Cell<u64>,
    time: Cell<Duration>,
    attempts: Cell<u32>,
    /// The script that the last attempt did not come to the end of.
    unfinished: RefCell<Option<RunningMark>>,
}

/// In so many attempts of a transaction its scripts let others go on between: then these may be in
/// the way again and again.
const POLITE_ATTEMPTS: u32 = 3;

impl ScriptsTaken {
    pub fn add(&self, (instructions, time): (u64, Duration)) {
        self.instructions.set(self.instructions.get().saturating_add(instructions));
        self.time.set(self.time.get() + time);
    }

    /// An attempt of the transaction begins.
    pub fn begin_attempt(&self) {
        self.attempts.set(self.attempts.get() + 1);
    }

    /// Whether scripts let others go on between.
    pub fn is_polite(&self) -> bool {
        self.attempts.get() <= POLITE_ATTEMPTS
    }

    /// A script of this name runs: the one that an attempt before did not come to the end of, or
    /// what is made.
    pub fn mark(&self, name: &str, made: impl FnOnce() -> RunningMark) -> RunningMark {
        let before = self.unfinished.borrow_mut().take();
        before.filter(|it| it.script.name == name).unwrap_or_else(made)
    }

    /// The attempt ends before the script has.
    pub fn keep(&self, mark: RunningMark) {
        *self.unfinished.borrow_mut() = Some(mark);
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

/// What a server has for scripts.
pub(crate) struct ScriptEngine {
    pub cache: ScriptCache,
    pub interpreters: Interpreters,
    pub running: RunningScripts,
    pub limits: Cell<ScriptLimits>,
    /// The libraries as they were read last, and the hash of all of them.
    pub libraries: RefCell<(u64, Rc<LibrarySet>)>,
    /// Where what scripts have for the log goes, from this level on.
    pub notice: fn(&str),
    pub log_level: Cell<u8>,
}

impl ScriptEngine {
    pub fn new(notice: fn(&str)) -> ScriptEngine {
        ScriptEngine {
            cache: ScriptCache::default(),
            interpreters: Interpreters::default(),
            running: RunningScripts::default(),
            limits: Cell::default(),
            libraries: RefCell::default(),
            notice,
            log_level: Cell::new(2),
        }
    }

    /// What a script has for the log.
    pub fn log(&self, level: u8, text: &[u8]) {
        if level >= self.log_level.get() {
            (self.notice)(&format!("redis.log: {}", String::from_utf8_lossy(text)));
        }
    }
}
