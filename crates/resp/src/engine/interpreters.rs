//! Interpreters, which are used again where that can be.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use muesli_scripts::Interpreter;

/// So many scripts can run at a time: each waits for commands, or for its next moment, and has its
/// memory meanwhile.
const RUNNING_MAX: usize = 128;
/// So many interpreters are kept that have nothing to do.
const IDLE_MAX: usize = 8;

/// The interpreters of a server.
#[derive(Debug, Default)]
pub(crate) struct Interpreters(Rc<Lending>);

#[derive(Debug, Default)]
struct Lending {
    idle: RefCell<Vec<Interpreter>>,
    lent: Cell<usize>,
    /// Those that were lent before this number was given are not kept.
    epoch: Cell<u64>,
}

/// An interpreter that is given back at its end.
#[derive(Debug)]
pub(crate) struct LentInterpreter {
    interpreter: Option<Interpreter>,
    lending: Rc<Lending>,
    epoch: u64,
    /// It has come to the end of its job.
    pub is_done: bool,
}

impl Interpreters {
    /// An interpreter.
    ///
    /// # Errors
    /// There are too many already, or the system has no memory for another one.
    pub fn lend(&self) -> Result<LentInterpreter, String> {
        let lending = &self.0;
        if lending.lent.get() == RUNNING_MAX {
            return Err(format!("LIMIT {RUNNING_MAX} scripts run already, try again later"));
        }
        let idle = lending.idle.borrow_mut().pop();
        let interpreter = match idle {
            Some(idle) => idle,
            None => Interpreter::new()
                .map_err(|error| format!("ERR the system has no memory for a script: {error}"))?,
        };
        lending.lent.set(lending.lent.get() + 1);
        let (interpreter, epoch) = (Some(interpreter), lending.epoch.get());
        Ok(LentInterpreter { interpreter, lending: lending.clone(), epoch, is_done: false })
    }

    /// Forgets those that have nothing to do, and those that have, once that is done.
    pub fn clear(&self) {
        self.0.epoch.set(self.0.epoch.get() + 1);
        let idle = self.0.idle.take();
        drop(idle);
    }

    /// Bytes of memory that those have which have nothing to do.
    pub fn memory(&self) -> usize {
        self.0.idle.borrow().iter().map(Interpreter::memory).sum()
    }
}

impl LentInterpreter {
    pub fn get(&mut self) -> &mut Interpreter {
        self.interpreter.as_mut().expect("it is there until it is given back")
    }
}

impl Drop for LentInterpreter {
    fn drop(&mut self) {
        self.lending.lent.set(self.lending.lent.get() - 1);
        let Some(interpreter) = self.interpreter.take() else { return };
        let mut idle = self.lending.idle.borrow_mut();
        let is_of_now = self.epoch == self.lending.epoch.get();
        if self.is_done && is_of_now && interpreter.is_reusable() && idle.len() < IDLE_MAX {
            idle.push(interpreter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_used_again_once_its_job_is_done() {
        let all = Interpreters::default();
        for (is_done, kept) in [(false, 0), (true, 1), (true, 1)] {
            let mut lent = all.lend().unwrap();
            lent.is_done = is_done;
            drop(lent);
            assert_eq!((all.0.idle.borrow().len(), all.0.lent.get()), (kept, 0));
        }
        let mut lent = all.lend().unwrap();
        lent.is_done = true;
        all.clear();
        drop(lent);
        assert_eq!(all.0.idle.borrow().len(), 0);
    }

    #[test]
    fn there_are_no_more_than_so_many() {
        let all = Interpreters::default();
        let lent: Vec<_> = (0..RUNNING_MAX).map(|_| all.lend().unwrap()).collect();
        assert!(all.lend().unwrap_err().starts_with("LIMIT"));
        drop(lent);
        assert!(all.lend().is_ok());
    }
}
