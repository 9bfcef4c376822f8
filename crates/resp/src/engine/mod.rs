//! What a server has for scripts: interpreters, the scripts that it knows, those that run, and the
//! libraries as it has read them last. It knows no keys and runs no commands.

mod cache;
mod interpreters;
mod libraries;
mod running;
mod taken;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use muesli_scripts::ScriptLimits;

pub(crate) use cache::{CachedScript, ScriptCache};
pub(crate) use interpreters::{Interpreters, LentInterpreter};
pub(crate) use libraries::{Library, LibrarySet, dumped, parse_dump};
pub(crate) use running::{RunningScript, RunningScripts};
pub(crate) use taken::ScriptsTaken;

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
