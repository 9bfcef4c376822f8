//! The attempts of a body that is a task of asyncio.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;

use crate::bodies::attempts::Attempts;
use crate::bodies::running::Running;
use crate::database::Core;
use crate::tasks::operation::Operation;

/// The attempts of a body, which runs from the first one until [`end`](Self::end).
#[pyclass(frozen, module = "muesli._native")]
pub struct TaskAttempts {
    core: Core,
    attempts: Mutex<Attempts>,
    running: Running,
}

#[pymethods]
impl TaskAttempts {
    /// Of a body in this context; not within another one.
    #[new]
    fn new(py: Python<'_>, core: &Core) -> PyResult<TaskAttempts> {
        core.check()?;
        let attempts = Mutex::new(Attempts::begin());
        let running = Running::begin(py, core.shared())?;
        Ok(TaskAttempts { core: core.clone(), attempts, running })
    }

    /// Begins the transaction of the next one.
    fn begin(&self) -> PyResult<Operation> {
        let handle = self.attempts().handle(&self.core)?;
        Operation::begin_with(&self.core, handle)
    }

    /// Refuses to go on once the time is over.
    fn check(&self) -> PyResult<()> {
        self.attempts().check(&self.core)
    }

    /// How long to pause, in seconds, after a conflict; an error: no more are made.
    fn pause(&self, error: Bound<'_, PyAny>) -> PyResult<f64> {
        let pause = self.attempts().after_conflict(&self.core, PyErr::from_value(error))?;
        Ok(pause.as_secs_f64())
    }

    /// The body does not run any more.
    fn end(&self, py: Python<'_>) {
        self.running.end(py);
    }
}

impl TaskAttempts {
    /// The lock is held for moments, with the interpreter's lock held.
    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}
