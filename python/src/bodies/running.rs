//! Bodies that run: within one no other transaction of the same database begins.
//!
//! They are known by a variable of the context, which threads have each for itself, and which the
//! tasks and threads of asyncio inherit: so a body of either kind is known in calls of either kind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::database::OpenDatabase;
use crate::errors::misuse;

/// A body that runs, or has run: tasks that it has started know it for longer than that.
#[pyclass(frozen, module = "muesli._native")]
pub struct RunningBody {
    database: Weak<OpenDatabase>,
    active: AtomicBool,
}

impl RunningBody {
    fn is_of(&self, database: &Arc<OpenDatabase>) -> bool {
        let is_active = self.active.load(Ordering::Relaxed);
        is_active && std::ptr::eq(self.database.as_ptr(), Arc::as_ptr(database))
    }
}

/// The variable of the context: a tuple of bodies.
fn bodies(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static BODIES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let variable = BODIES.get_or_try_init(py, || {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        Ok::<_, PyErr>(class.call1(("muesli_bodies",))?.unbind())
    })?;
    Ok(variable.bind(py))
}

/// The bodies that run here; refuses to begin another transaction within one of this database: it
/// would not see what the body wrote, and might wait for the body's own.
fn others<'py>(py: Python<'py>, database: &Arc<OpenDatabase>) -> PyResult<Bound<'py, PyTuple>> {
    let none = PyTuple::empty(py);
    let known = bodies(py)?.call_method1(intern!(py, "get"), (none,))?.cast_into::<PyTuple>()?;
    let is_of = |body: Bound<'_, PyAny>| {
        body.cast::<RunningBody>().is_ok_and(|body| body.get().is_of(database))
    };
    match known.iter().any(is_of) {
        false => Ok(known),
        true => Err(misuse(
            "a transaction's body runs here, and no other transaction of the same database begins \
             within it: use the body's own, and pass it to the functions that it calls",
        )),
    }
}

/// Refuses to begin another transaction within a body.
pub fn refuse_within_body(py: Python<'_>, database: &Arc<OpenDatabase>) -> PyResult<()> {
    others(py, database).map(drop)
}

/// A body runs in this context, until this is dropped.
pub struct Running {
    body: Py<RunningBody>,
    token: Py<PyAny>,
}

impl Running {
    /// One begins to run.
    pub fn begin(py: Python<'_>, database: &Arc<OpenDatabase>) -> PyResult<Running> {
        let others = others(py, database)?;
        let active = AtomicBool::new(true);
        let body = Bound::new(py, RunningBody { database: Arc::downgrade(database), active })?;
        let first = std::iter::once(body.clone().into_any());
        let all = PyTuple::new(py, first.chain(others.iter()).collect::<Vec<_>>())?;
        let token = bodies(py)?.call_method1(intern!(py, "set"), (all,))?;
        Ok(Running { body: body.unbind(), token: token.unbind() })
    }

    /// It is over, in the context where it began.
    pub fn end(&self, py: Python<'_>) {
        self.body.get().active.store(false, Ordering::Relaxed);
        // Another context keeps it as one that has run.
        let _ = bodies(py).and_then(|it| it.call_method1(intern!(py, "reset"), (&self.token,)));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.body.get().active.store(false, Ordering::Relaxed);
    }
}
