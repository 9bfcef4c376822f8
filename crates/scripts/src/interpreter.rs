//! An interpreter: Lua on a stack of its own, which stops wherever a script asks for something.

use std::fmt;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use crate::budget::Budget;
use crate::job::{ScriptEnd, ScriptInput, ScriptJob, ScriptStep};
use crate::running::serve;

/// The stack of an interpreter. Functions of Lua that are called by functions in C or Rust use it,
/// up to 200 of them in each of 16 coroutines within each other.
const STACK_BYTES: usize = 32 << 20;

/// An interpreter. It does one job at a time, and is on one thread.
pub struct Interpreter {
    coroutine: Coroutine<ScriptInput, ScriptStep, ()>,
    budget: Rc<Budget>,
    is_broken: bool,
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl Interpreter {
    /// An interpreter that has nothing to do yet.
    ///
    /// # Errors
    /// The system has no memory for its stack.
    pub fn new() -> io::Result<Interpreter> {
        let budget = Rc::new(Budget::new());
        let own = budget.clone();
        let stack = DefaultStack::new(STACK_BYTES)?;
        let coroutine = Coroutine::with_stack(stack, move |yielder, first| {
            serve(yielder, first, &own);
        });
        Ok(Interpreter { coroutine, budget, is_broken: false })
    }

    /// Begins a job.
    pub fn start(&mut self, job: ScriptJob) -> ScriptStep {
        self.resume(ScriptInput::Job(Box::new(job)))
    }

    /// Goes on with what was asked for.
    pub fn resume(&mut self, input: ScriptInput) -> ScriptStep {
        let failed = || {
            let text = "ERR the interpreter has failed at this script; nothing of it was done";
            ScriptStep::Done(ScriptEnd::Stopped(text.to_owned()))
        };
        if self.coroutine.done() {
            self.is_broken = true;
            return failed();
        }
        match self.coroutine.resume(input) {
            CoroutineResult::Yield(step) => {
                let stopped = matches!(step, ScriptStep::Done(ScriptEnd::Stopped(_)));
                self.is_broken |= stopped;
                step
            }
            CoroutineResult::Return(()) => {
                self.is_broken = true;
                failed()
            }
        }
    }

    /// The instructions that its last job has taken so far, and the time.
    pub fn taken(&self) -> (u64, Duration) {
        self.budget.taken()
    }

    /// Whether it can do another job: one that was stopped may have left anything behind.
    pub fn is_reusable(&self) -> bool {
        let most = self.budget.limits().memory_bytes / MEMORY_SHARE;
        !self.is_broken && self.budget.memory() < most
    }

    /// Bytes of memory that Lua had at the end of the last job.
    pub fn memory(&self) -> usize {
        self.budget.memory()
    }
}

/// One that has more than this share of the memory of a job after it is not used for another one.
const MEMORY_SHARE: usize = 4;

impl Drop for Interpreter {
    fn drop(&mut self) {
        // A script that waits ends where it is, so that its stack is left as it was entered.
        while self.coroutine.started() && !self.coroutine.done() {
            let _ = self.coroutine.resume(ScriptInput::End);
        }
    }
}
