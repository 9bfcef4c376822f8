//! Transactions, as Python has them: for bodies, and for `with` blocks.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use muesli::{Db, Error, SmallBytes};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::database::Core;
use crate::errors::{misuse, raised};
use crate::open_transaction::OpenTransaction;
use crate::rows::Rows;
use crate::values::scan::Scan;
use crate::values::space::Space;
use crate::waiting::{wait, wait_for_begin, wait_for_end};

/// Who ends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Its `with` block, or a call.
    Owner,
    /// Who runs its body.
    Runner,
}

/// A transaction, or how it ended.
enum TransactionState {
    Open(Arc<OpenTransaction>),
    RolledBack,
    /// Its commit was asked for.
    Ended,
}

/// A transaction of one thread.
#[pyclass(frozen, module = "muesli")]
pub struct Transaction {
    state: Mutex<TransactionState>,
    ended_by: EndedBy,
}

#[pymethods]
impl Transaction {
    /// The value of a key; `default` where it is absent.
    #[pyo3(signature = (space, key, default=None))]
    fn get(
        &self,
        py: Python<'_>,
        space: &Bound<'_, Space>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (space, open) = (space.get(), self.open()?);
        let key = space.encode_key(key)?;
        let get = async { open.note(open.tx().get(space.space, key).await) };
        match wait(py, &mut open.caller(), get)? {
            None => Ok(default.unwrap_or_else(|| py.None())),
            found => space.decode_value(py, found.as_ref()),
        }
    }

    /// The values of several keys, `None` where one is absent.
    fn get_many(
        &self,
        py: Python<'_>,
        space: &Bound<'_, Space>,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyList>> {
        let (space, open) = (space.get(), self.open()?);
        let keys = encode_keys(space, keys)?;
        let get = async { open.note(open.tx().get_many(space.space, keys).await) };
        let found = wait(py, &mut open.caller(), get)?;
        let values = found.iter().map(|value| space.decode_value(py, value.as_ref()));
        Ok(PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.unbind())
    }

    /// Writes a key.
    fn put(
        &self,
        py: Python<'_>,
        space: &Bound<'_, Space>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (space, open) = (space.get(), self.open()?);
        let (key, value) = (space.encode_key(key)?, space.encode_value(value)?);
        let put = async { open.note(open.tx().put(space.space, key, value).await) };
        wait(py, &mut open.caller(), put)
    }

    /// Deletes a key; nothing happens where it is absent.
    fn delete(
        &self,
        py: Python<'_>,
        space: &Bound<'_, Space>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (space, open) = (space.get(), self.open()?);
        let key = space.encode_key(key)?;
        let delete = async { open.note(open.tx().delete(space.space, key).await) };
        wait(py, &mut open.caller(), delete)
    }

    /// An iterator over the rows of a range, in order.
    #[pyo3(signature = (space, start=None, stop=None, *, prefix=None, reverse=false, limit=None))]
    fn scan(
        slf: Bound<'_, Self>,
        space: Py<Space>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        prefix: Option<Bound<'_, PyAny>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Rows> {
        slf.get().open()?;
        Ok(Rows::new(slf.unbind(), Scan::new(space, start, stop, prefix, reverse, limit)?))
    }

    /// Commits: all that was written takes effect, or nothing.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.refuse_in_body()?;
        self.end(py)?.map_err(raised)
    }

    /// Rolls back: nothing of what was written takes effect.
    pub fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let state = std::mem::replace(&mut *self.state()?, TransactionState::RolledBack);
        match state {
            TransactionState::Open(open) => {
                open.process().check()?;
                py.detach(|| drop(open));
            }
            // What has committed stays committed, and a further roll-back changes nothing.
            ended => *self.state()? = ended,
        }
        Ok(())
    }

    /// Whether it has not ended.
    #[getter]
    pub fn is_open(&self) -> PyResult<bool> {
        Ok(matches!(*self.state()?, TransactionState::Open(_)))
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().refuse_in_body()?;
        slf.get().open()?;
        Ok(slf)
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        if failed {
            // What ends the block goes on, also in a process that was forked in it.
            let _ = self.rollback(py);
        } else if self.is_open()? {
            self.end(py)?.map_err(raised)?;
        }
        Ok(false)
    }
}

impl Transaction {
    /// Begins one of this handle, for as long as a check does not fail.
    pub fn begin(
        py: Python<'_>,
        (core, handle): (&Core, &Db),
        ended_by: EndedBy,
        check: impl Fn() -> PyResult<()>,
    ) -> PyResult<Result<Transaction, Error>> {
        core.check()?;
        let mut caller = core.caller();
        let begun = wait_for_begin(py, &mut caller, handle.begin(), check)?;
        Ok(begun.map(|begun| {
            let state = TransactionState::Open(OpenTransaction::new(begun, caller));
            Transaction { state: Mutex::new(state), ended_by }
        }))
    }

    /// The transaction, while it is open.
    pub fn open(&self) -> PyResult<Arc<OpenTransaction>> {
        match &*self.state()? {
            TransactionState::Open(open) => {
                open.process().check()?;
                Ok(open.clone())
            }
            TransactionState::RolledBack => Err(misuse("the transaction was rolled back")),
            TransactionState::Ended => Err(misuse("the transaction has already ended")),
        }
    }

    /// Commits, if it is open; a body may have rolled it back.
    pub fn end(&self, py: Python<'_>) -> PyResult<Result<(), Error>> {
        self.open()?;
        let state = std::mem::replace(&mut *self.state()?, TransactionState::Ended);
        let TransactionState::Open(open) = state else { return Ok(Ok(())) };
        let open = Arc::try_unwrap(open).map_err(|open| {
            // Another thread is in the middle of an operation of it, and rolls it back at its end.
            drop(open);
            misuse("the transaction was committed while another thread used it: rolled back")
        })?;
        if let Some(conflict) = open.conflict() {
            py.detach(|| drop(open));
            return Ok(Err(conflict));
        }
        let (transaction, mut caller) = open.into_parts();
        wait_for_end(py, &mut caller, transaction.commit())
    }

    /// Whether an operation of it met a conflict.
    pub fn has_conflict(&self) -> PyResult<bool> {
        Ok(match &*self.state()? {
            TransactionState::Open(open) => open.conflict().is_some(),
            TransactionState::RolledBack | TransactionState::Ended => false,
        })
    }

    fn refuse_in_body(&self) -> PyResult<()> {
        match self.ended_by {
            EndedBy::Owner => Ok(()),
            EndedBy::Runner => {
                Err(misuse("the transaction of a body is committed at the body's end: return"))
            }
        }
    }

    /// The lock is held for moments, with the interpreter's lock held: nobody waits for it.
    fn state(&self) -> PyResult<MutexGuard<'_, TransactionState>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(broken)) => Ok(broken.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(misuse("the transaction is used by two threads at once"))
            }
        }
    }
}

/// Several keys, as they are stored.
pub fn encode_keys(space: &Space, keys: &Bound<'_, PyAny>) -> PyResult<Vec<SmallBytes>> {
    keys.try_iter()?.map(|key| space.encode_key(&key?)).collect()
}
