//! A transaction that is open, as all that use it share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muesli::blocking::StateCaller;
use muesli::{Abort, Error, ErrorKind, Transaction, Tx};

use crate::forks::ForkedProcess;

/// A transaction that is open. Dropped, it is rolled back.
pub struct OpenTransaction {
    /// There until it ends.
    transaction: Option<Transaction>,
    caller: StateCaller,
    process: ForkedProcess,
    /// Whether an operation of it met a conflict, so that it cannot commit any more.
    conflict: AtomicBool,
}

impl OpenTransaction {
    /// One that was begun by this caller.
    pub fn new(transaction: Transaction, caller: StateCaller) -> Arc<OpenTransaction> {
        let (transaction, process) = (Some(transaction), ForkedProcess::current());
        Arc::new(OpenTransaction { transaction, caller, process, conflict: AtomicBool::new(false) })
    }

    /// Its operations.
    pub fn tx(&self) -> &Tx {
        self.transaction.as_ref().expect("it is open")
    }

    /// Who polls an operation of it.
    pub fn caller(&self) -> StateCaller {
        self.caller.beside()
    }

    /// In which process it was begun.
    pub fn process(&self) -> ForkedProcess {
        self.process
    }

    /// Notes how an operation of it ended.
    pub fn note<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &answer
            && error.kind() == ErrorKind::Conflict
            && error.is_retryable()
        {
            self.conflict.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Whether an operation of it met a conflict.
    pub fn has_conflict(&self) -> bool {
        self.conflict.load(Ordering::Relaxed)
    }

    /// The transaction itself, which is to be ended by who takes it.
    pub fn into_parts(mut self) -> (Transaction, StateCaller) {
        let transaction = self.transaction.take().expect("it is open");
        (transaction, self.caller.beside())
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let Some(transaction) = self.transaction.take() else { return };
        match self.process.is_current() {
            true => self.caller.end_in_state(|| drop(transaction)),
            // Its loop is in the other process, which ends it.
            false => std::mem::forget(transaction),
        }
    }
}

/// What a transaction ends with that met a conflict, whatever its body made of that.
pub fn met_conflict() -> Error {
    Error::Conflict { reason: Abort::StaleRead, attempts: 1 }
}
