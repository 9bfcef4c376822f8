//! Operations that asyncio's tasks await.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::task::{Context, Waker};

use muesli::blocking::{PolledInState, StateEntry};
use muesli::{Class, Db, Error, SmallBytes, Transaction};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::callers::DatabaseCaller;
use crate::database::{Core, FragmentParts, fragments_of};
use crate::errors::{misuse, raised, runs_again};
use crate::forks::ForkedProcess;
use crate::open_transaction::OpenTransaction;
use crate::tasks::transaction::TaskTransaction;
use crate::tasks::wakers::OperationWaker;
use crate::values::scan::Scan;
use crate::values::space::Space;

/// What an operation answers.
pub enum OperationAnswer {
    Nothing,
    Value(Option<SmallBytes>),
    Values(Vec<Option<SmallBytes>>),
    Rows(Vec<(SmallBytes, SmallBytes)>),
    Begun(Box<Transaction>),
    Results(Vec<SmallBytes>),
}

/// What Python is given of an answer.
pub enum AnswerDecoder {
    /// Where a value is, it is one of this space; an absent one is this object.
    Value(Py<Space>, Py<PyAny>),
    Values(Py<Space>),
    Page(Py<Scan>),
    Other,
}

/// An operation that is under way.
pub type OperationFuture = Pin<Box<dyn Future<Output = Result<OperationAnswer, Error>> + Send>>;

struct OperationState {
    future: Option<OperationFuture>,
    answer: Option<Result<OperationAnswer, Error>>,
    /// Held by who is to wake it, and by nobody else: where it is gone, nobody does.
    waker: Weak<OperationWaker>,
    caller: DatabaseCaller,
}

impl OperationState {
    /// Ends what has not ended, in the state of the loop that it is of.
    fn end(&mut self) {
        let begun = self.answer.take_if(|it| matches!(it, Ok(OperationAnswer::Begun(_))));
        let ended = (self.future.take(), begun);
        match self.caller.process().is_current() {
            // Its loop is in the other process, which ends it.
            false => std::mem::forget(ended),
            true if ended.0.is_none() && ended.1.is_none() => {}
            true => self.caller.end_in_state(|| drop(ended)),
        }
    }
}

impl Drop for OperationState {
    fn drop(&mut self) {
        self.end();
    }
}

/// An operation: it is polled until it is done, and then has an answer.
#[pyclass(frozen, module = "muesli._native")]
pub struct Operation {
    state: Mutex<OperationState>,
    entry: StateEntry,
    decoder: AnswerDecoder,
    process: ForkedProcess,
    conflict: AtomicBool,
}

#[pymethods]
impl Operation {
    /// Begins a transaction.
    #[staticmethod]
    fn begin(core: &Core) -> PyResult<Operation> {
        Operation::begin_with(core, core.db().clone())
    }

    /// Runs a one-round transaction.
    #[staticmethod]
    fn invoke(core: &Core, fragments: Vec<FragmentParts>) -> PyResult<Operation> {
        core.check()?;
        let (db, fragments) = (core.db().clone(), fragments_of(fragments));
        let invoke = async move {
            let invoked = db.invoke(Class::Auto, fragments).await?;
            Ok(OperationAnswer::Results(invoked.results))
        };
        Ok(Operation::new(core.caller(), AnswerDecoder::Other, Box::pin(invoke)))
    }

    /// Goes on with it; whether it is done. `None`: not now, as the loop takes no new work.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        self.process.check()?;
        let mut state = self.state()?;
        let OperationState { future, waker, caller, .. } = &mut *state;
        let Some(running) = future else { return Ok(Some(true)) };
        let fresh = OperationWaker::new();
        *waker = Arc::downgrade(&fresh);
        let fresh = Waker::from(fresh);
        let mut poll =
            |entry| caller.poll(Pin::new(running), &mut Context::from_waker(&fresh), entry);
        let polled = catch_unwind(AssertUnwindSafe(|| match poll(StateEntry::IfFree) {
            Ok(PolledInState::Occupied) => py.detach(|| poll(self.entry)),
            polled => polled,
        }));
        let polled = polled.unwrap_or_else(|panic| {
            state.end();
            resume_unwind(panic)
        });
        match polled.map_err(raised)? {
            PolledInState::Waiting | PolledInState::Occupied => Ok(Some(false)),
            PolledInState::Congested => Ok(None),
            PolledInState::Ready(ready) => {
                let conflict = ready.as_ref().is_err_and(runs_again);
                self.conflict.store(conflict, Ordering::Relaxed);
                (state.future, state.answer) = (None, Some(ready));
                Ok(Some(true))
            }
        }
    }

    /// Ends a future of asyncio as soon as it can go on; at once if nobody is to wake it any more.
    fn attach(&self, py: Python<'_>, event_loop: Py<PyAny>, future: Py<PyAny>) -> PyResult<()> {
        let waker = self.state()?.waker.upgrade();
        match waker.is_none_or(|waker| waker.attach(event_loop, future.clone_ref(py))) {
            true => future.call_method1(py, "set_result", (py.None(),)).map(drop),
            false => Ok(()),
        }
    }

    /// Whether it ended with a conflict, after which its body is run again.
    #[getter]
    fn met_conflict(&self) -> bool {
        self.conflict.load(Ordering::Relaxed)
    }

    /// What it answers, once.
    fn answer(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut state = self.state()?;
        let answer = state.answer.take().ok_or_else(|| misuse("the operation has no answer"))?;
        let caller = state.caller.beside();
        drop(state);
        self.decode(py, answer.map_err(raised)?, caller)
    }

    /// Gives it up. A commit that was asked for goes on all the same.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check()?;
        let mut state = self.state()?;
        let state = &mut *state;
        py.detach(|| state.end());
        Ok(())
    }
}

impl Operation {
    /// An operation of this caller.
    pub fn new(
        caller: DatabaseCaller,
        decoder: AnswerDecoder,
        future: OperationFuture,
    ) -> Operation {
        let (process, conflict) = (caller.process(), AtomicBool::new(false));
        let (future, waker) = (Some(future), Weak::new());
        let state = Mutex::new(OperationState { future, answer: None, waker, caller });
        Operation { state, entry: StateEntry::OnceFree, decoder, process, conflict }
    }

    /// Begins a transaction of this handle.
    pub fn begin_with(core: &Core, handle: Db) -> PyResult<Operation> {
        core.check()?;
        let begin = async move {
            let begun = handle.begin().await?;
            Ok(OperationAnswer::Begun(Box::new(begun)))
        };
        let begin = Operation::new(core.caller(), AnswerDecoder::Other, Box::pin(begin));
        Ok(Operation { entry: StateEntry::ForNewWork, ..begin })
    }

    fn decode(
        &self,
        py: Python<'_>,
        answer: OperationAnswer,
        caller: DatabaseCaller,
    ) -> PyResult<Py<PyAny>> {
        match (answer, &self.decoder) {
            (OperationAnswer::Value(None), AnswerDecoder::Value(_, absent)) => {
                Ok(absent.clone_ref(py))
            }
            (OperationAnswer::Value(found), AnswerDecoder::Value(space, _)) => {
                space.get().decode_value(py, found.as_ref())
            }
            (OperationAnswer::Values(found), AnswerDecoder::Values(space)) => {
                let space = space.get();
                let values = found.iter().map(|value| space.decode_value(py, value.as_ref()));
                PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_py_any(py)
            }
            (OperationAnswer::Rows(rows), AnswerDecoder::Page(scan)) => {
                let scan = scan.get();
                scan.advance(&rows);
                let space = scan.space.get();
                let rows = rows.iter().map(|row| space.decode_row(py, row));
                PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.into_py_any(py)
            }
            (OperationAnswer::Begun(transaction), _) => {
                let open = OpenTransaction::new(*transaction, caller);
                TaskTransaction::new(open).into_py_any(py)
            }
            (OperationAnswer::Results(results), _) => {
                let results = results.iter().map(|bytes| PyBytes::new(py, bytes.as_slice()));
                PyList::new(py, results.collect::<Vec<_>>())?.into_py_any(py)
            }
            _ => Ok(py.None()),
        }
    }

    /// The lock is held for the moment of a poll: nobody waits for it.
    fn state(&self) -> PyResult<MutexGuard<'_, OperationState>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(broken)) => Ok(broken.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(misuse("an operation is awaited by two threads at once"))
            }
        }
    }
}
