//! The scripts that run, and those of them that are to end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// A script or function that runs.
#[derive(Debug)]
pub(crate) struct RunningScript {
    /// Its hash, or the function's name.
    pub name: String,
    /// The command that it was called by.
    pub command: Vec<Vec<u8>>,
    /// When its transaction has begun to run scripts.
    pub since: Instant,
    pub is_function: bool,
    is_killed: Cell<bool>,
}

impl RunningScript {
    /// What is answered where it is in the way.
    pub fn busy_text(&self) -> &'static str {
        match self.is_function {
            true => {
                "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN \
                 NOSAVE."
            }
            false => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                 NOSAVE."
            }
        }
    }

    /// It is to end.
    pub fn kill(&self) {
        self.is_killed.set(true);
    }

    pub fn is_killed(&self) -> bool {
        self.is_killed.get()
    }
}

/// The scripts that run, in the order in which they have begun.
#[derive(Debug, Default)]
pub(crate) struct RunningScripts(Rc<RefCell<Vec<Rc<RunningScript>>>>);

/// A script is in the list for as long as this is there.
#[derive(Debug)]
pub(crate) struct RunningMark {
    pub script: Rc<RunningScript>,
    all: Rc<RefCell<Vec<Rc<RunningScript>>>>,
}

impl RunningScripts {
    /// A script runs, of a transaction that has run scripts since then.
    pub fn begin(
        &self,
        (name, is_function): (&str, bool),
        command: Vec<Vec<u8>>,
        since: Instant,
    ) -> RunningMark {
        let (name, is_killed) = (name.to_owned(), Cell::new(false));
        let script = Rc::new(RunningScript { name, command, since, is_function, is_killed });
        self.0.borrow_mut().push(script.clone());
        RunningMark { script, all: self.0.clone() }
    }

    /// Ends all scripts, or all functions; whether there are any.
    pub fn kill(&self, functions: bool) -> bool {
        let all = self.0.borrow();
        let chosen = all.iter().filter(|it| it.is_function == functions);
        chosen.inspect(|it| it.kill()).count() > 0
    }

    /// The one that has run for the longest time.
    pub fn first(&self) -> Option<Rc<RunningScript>> {
        self.0.borrow().first().cloned()
    }
}

impl Drop for RunningMark {
    fn drop(&mut self) {
        self.all.borrow_mut().retain(|it| !Rc::ptr_eq(it, &self.script));
    }
}
