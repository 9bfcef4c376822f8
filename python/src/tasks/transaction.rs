//! Transactions of asyncio's tasks.

use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::prelude::*;

use crate::errors::misuse;
use crate::open_transaction::OpenTransaction;
use crate::tasks::operation::{AnswerDecoder, Operation, OperationAnswer};
use crate::transaction::encode_keys;
use crate::values::scan::Scan;
use crate::values::space::Space;

/// A transaction whose operations are awaited. Several of them may be awaited side by side.
#[pyclass(frozen, module = "muesli._native")]
pub struct TaskTransaction {
    open: Mutex<Option<Arc<OpenTransaction>>>,
}

#[pymethods]
impl TaskTransaction {
    /// Reads a key.
    fn get(
        &self,
        space: Bound<'_, Space>,
        key: &Bound<'_, PyAny>,
        default: Py<PyAny>,
    ) -> PyResult<Operation> {
        let (open, of) = (self.open()?, space.get().space);
        let (caller, key) = (open.caller(), space.get().encode_key(key)?);
        let get =
            async move { open.note(open.tx().get(of, key).await).map(OperationAnswer::Value) };
        Ok(Operation::new(caller, AnswerDecoder::Value(space.unbind(), default), Box::pin(get)))
    }

    /// Reads several keys.
    fn get_many(&self, space: Bound<'_, Space>, keys: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let (open, of) = (self.open()?, space.get().space);
        let (caller, keys) = (open.caller(), encode_keys(space.get(), keys)?);
        let get = async move {
            open.note(open.tx().get_many(of, keys).await).map(OperationAnswer::Values)
        };
        Ok(Operation::new(caller, AnswerDecoder::Values(space.unbind()), Box::pin(get)))
    }

    /// Writes a key.
    fn put(
        &self,
        space: &Bound<'_, Space>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Operation> {
        let (open, space) = (self.open()?, space.get());
        let (caller, of) = (open.caller(), space.space);
        let (key, value) = (space.encode_key(key)?, space.encode_value(value)?);
        let put = async move {
            open.note(open.tx().put(of, key, value).await).map(|()| OperationAnswer::Nothing)
        };
        Ok(Operation::new(caller, AnswerDecoder::Other, Box::pin(put)))
    }

    /// Deletes a key.
    fn delete(&self, space: &Bound<'_, Space>, key: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let (open, of) = (self.open()?, space.get().space);
        let (caller, key) = (open.caller(), space.get().encode_key(key)?);
        let put = async move {
            open.note(open.tx().delete(of, key).await).map(|()| OperationAnswer::Nothing)
        };
        Ok(Operation::new(caller, AnswerDecoder::Other, Box::pin(put)))
    }

    /// Reads the next page of a scan.
    fn page(&self, scan: Bound<'_, Scan>) -> PyResult<Operation> {
        let open = self.open()?;
        let (caller, range) = (open.caller(), scan.get().next_range());
        let of = scan.get().space.get().space;
        let page =
            async move { open.note(open.tx().scan(of, range).await).map(OperationAnswer::Rows) };
        Ok(Operation::new(caller, AnswerDecoder::Page(scan.unbind()), Box::pin(page)))
    }

    /// Commits. Operations that are still awaited end it instead.
    fn commit(&self) -> PyResult<Operation> {
        let open = self.take()?;
        let open = Arc::try_unwrap(open).map_err(|_| {
            misuse("the transaction was committed while operations of it were awaited: rolled back")
        })?;
        let conflict = open.conflict();
        let (transaction, caller) = open.into_parts();
        let commit = async move {
            if let Some(conflict) = conflict {
                transaction.rollback().await?;
                return Err(conflict);
            }
            transaction.commit().await.map(|()| OperationAnswer::Nothing)
        };
        Ok(Operation::new(caller, AnswerDecoder::Other, Box::pin(commit)))
    }

    /// Rolls back; a further roll-back changes nothing.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let Some(open) = self.slot().take() else { return Ok(()) };
        open.process().check()?;
        py.detach(|| drop(open));
        Ok(())
    }

    /// Whether it has not ended.
    #[getter]
    fn is_open(&self) -> bool {
        self.slot().is_some()
    }

    /// Whether an operation of it met a conflict.
    #[getter]
    fn has_conflict(&self) -> bool {
        self.slot().as_ref().is_some_and(|open| open.conflict().is_some())
    }
}

impl TaskTransaction {
    /// One that was begun.
    pub fn new(open: Arc<OpenTransaction>) -> TaskTransaction {
        TaskTransaction { open: Mutex::new(Some(open)) }
    }

    fn open(&self) -> PyResult<Arc<OpenTransaction>> {
        let open = self.slot().clone().ok_or_else(ended)?;
        open.process().check()?;
        Ok(open)
    }

    fn take(&self) -> PyResult<Arc<OpenTransaction>> {
        let open = self.slot().take().ok_or_else(ended)?;
        open.process().check()?;
        Ok(open)
    }

    /// The lock is held for moments, with the interpreter's lock held.
    fn slot(&self) -> MutexGuard<'_, Option<Arc<OpenTransaction>>> {
        self.open.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

fn ended() -> PyErr {
    misuse("the transaction has already ended")
}
