//! How much a run has taken, and whether it is to stop.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::job::ScriptLimits;

/// After so long others may go on for a moment.
const PAUSE_AFTER: Duration = Duration::from_millis(2);

/// What a run is to do after it has taken something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetVerdict {
    Goes,
    Pauses,
    Stops,
}

/// How much a run has taken.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Cell<ScriptLimits>,
    instructions: Cell<u64>,
    /// How long it ran, without what it does now.
    spent: Cell<Duration>,
    /// Since when it runs.
    resumed: Cell<Instant>,
    /// Since when it has not let others go on: commands that it calls do not.
    paused: Cell<Instant>,
    stopped: RefCell<Option<String>>,
    /// Bytes of memory that Lua had at the end of the last run.
    memory: Cell<usize>,
}

impl Budget {
    pub fn new() -> Budget {
        Budget {
            limits: Cell::default(),
            instructions: Cell::new(0),
            spent: Cell::new(Duration::ZERO),
            resumed: Cell::new(Instant::now()),
            paused: Cell::new(Instant::now()),
            stopped: RefCell::default(),
            memory: Cell::new(0),
        }
    }

    /// A run begins.
    pub fn begin(&self, limits: ScriptLimits) {
        self.limits.set(limits);
        self.instructions.set(0);
        self.spent.set(Duration::ZERO);
        self.resumed.set(Instant::now());
        self.paused.set(Instant::now());
        *self.stopped.borrow_mut() = None;
    }

    pub fn limits(&self) -> ScriptLimits {
        self.limits.get()
    }

    pub fn memory(&self) -> usize {
        self.memory.get()
    }

    /// A run has ended, and Lua has so many bytes of memory.
    pub fn end(&self, memory: usize) {
        self.memory.set(memory);
        self.suspend();
    }

    /// It waits for something.
    pub fn suspend(&self) {
        self.spent.set(self.spent.get() + self.resumed.get().elapsed());
    }

    /// It goes on.
    pub fn resume(&self) {
        self.resumed.set(Instant::now());
    }

    /// Others have gone on.
    pub fn has_paused(&self) {
        self.paused.set(Instant::now());
    }

    /// The instructions that it has taken, and the time.
    pub fn taken(&self) -> (u64, Duration) {
        (self.instructions.get(), self.spent.get())
    }

    /// It has taken so many instructions, or as much as these.
    pub fn charge(&self, instructions: u64) -> BudgetVerdict {
        if self.is_stopped() {
            return BudgetVerdict::Stops;
        }
        let limits = self.limits.get();
        self.instructions.set(self.instructions.get().saturating_add(instructions));
        if self.instructions.get() > limits.instructions {
            self.stop(
                "LIMIT the script has run more instructions than it may \
                 (`script-instructions-limit`); nothing of it was done"
                    .to_owned(),
            );
            return BudgetVerdict::Stops;
        }
        if self.spent.get() + self.resumed.get().elapsed() > limits.time {
            self.stop(
                "LIMIT the script has run longer than it may (`script-time-limit`); nothing of it \
                 was done"
                    .to_owned(),
            );
            return BudgetVerdict::Stops;
        }
        match self.paused.get().elapsed() > PAUSE_AFTER {
            true => BudgetVerdict::Pauses,
            false => BudgetVerdict::Goes,
        }
    }

    /// It is to stop, for the first reason that is given.
    pub fn stop(&self, reason: String) {
        self.stopped.borrow_mut().get_or_insert(reason);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.borrow().is_some()
    }

    /// Why it is to stop.
    pub fn reason(&self) -> Option<String> {
        self.stopped.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stops_at_its_limits_and_for_the_first_reason() {
        let budget = Budget::new();
        budget.begin(ScriptLimits { instructions: 10, ..ScriptLimits::default() });
        assert_eq!(budget.charge(10), BudgetVerdict::Goes);
        assert_eq!(budget.charge(1), BudgetVerdict::Stops);
        budget.stop("another reason".to_owned());
        assert!(budget.reason().unwrap().contains("instructions"));
        budget.begin(ScriptLimits { time: Duration::ZERO, ..ScriptLimits::default() });
        assert_eq!(budget.charge(1), BudgetVerdict::Stops);
        assert!(budget.reason().unwrap().contains("longer"));
    }
}
