//! Operations that asyncio's tasks await.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::{Context, Waker};

use muesli::blocking::{PolledInState, StateCaller, StateEntry};
use muesli::{Class, Error, SmallBytes, Transaction};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::database::{Core, FragmentParts, fragments_of};
use crate::errors::{misuse, raised};
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
    caller: StateCaller,
    answer: Option<Result<OperationAnswer, Error>>,
}

/// An operation: it is polled until it is done, and then has an answer.
#[pyclass(frozen, module = "muesli._native")]
pub struct Operation {
    state: Mutex<OperationState>,
    waker: Arc<OperationWaker>,
    entry: StateEntry,
    decoder: AnswerDecoder,
}

#[pymethods]
impl Operation {
    /// Begins a transaction.
    #[staticmethod]
    fn begin(core: &Core) -> PyResult<Operation> {
        core.check()?;
        let (caller, db) = (core.caller(), core.db().clone());
        let begin: OperationFuture =
            Box::pin(
                async move { db.begin().await.map(|it| OperationAnswer::Begun(Box::new(it))) },
            );
        let waker = OperationWaker::new();
        let state = OperationState { future: Some(begin), caller, answer: None };
        let (state, entry) = (Mutex::new(state), StateEntry::ForNewWork);
        Ok(Operation { state, waker, entry, decoder: AnswerDecoder::Other })
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

    /// Goes on with it; whether it is done.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.state()?;
        let OperationState { future, caller, answer } = &mut *state;
        let Some(running) = future else { return Ok(true) };
        let waker = Waker::from(self.waker.clone());
        let mut poll =
            |entry| caller.poll(Pin::new(running), &mut Context::from_waker(&waker), entry);
        let polled = match poll(StateEntry::IfFree) {
            Ok(PolledInState::Occupied) => py.detach(|| poll(self.entry)),
            polled => polled,
        };
        match polled.map_err(raised)? {
            PolledInState::Waiting | PolledInState::Occupied => Ok(false),
            PolledInState::Ready(ready) => {
                (*future, *answer) = (None, Some(ready));
                Ok(true)
            }
        }
    }

    /// Ends a future of asyncio as soon as it can go on.
    fn attach(&self, py: Python<'_>, event_loop: Py<PyAny>, future: Py<PyAny>) -> PyResult<()> {
        match self.waker.attach(event_loop, future) {
            None => Ok(()),
            Some(future) => future.call_method1(py, "set_result", (py.None(),)).map(drop),
        }
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
        let mut state = self.state()?;
        let OperationState { future, caller, .. } = &mut *state;
        if future.is_some() {
            py.detach(|| caller.end_in_state(|| drop(future.take())));
        }
        Ok(())
    }
}

impl Operation {
    /// An operation of this caller.
    pub fn new(caller: StateCaller, decoder: AnswerDecoder, future: OperationFuture) -> Operation {
        let state = Mutex::new(OperationState { future: Some(future), caller, answer: None });
        let (waker, entry) = (OperationWaker::new(), StateEntry::OnceFree);
        Operation { state, waker, entry, decoder }
    }

    fn decode(
        &self,
        py: Python<'_>,
        answer: OperationAnswer,
        caller: StateCaller,
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
