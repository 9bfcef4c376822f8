//! A transaction that is open, as all that use it share it.

use std::sync::{Arc, Mutex, MutexGuard};

use muesli::{Error, Transaction, Tx};

use crate::callers::DatabaseCaller;
use crate::errors::runs_again;
use crate::forks::ForkedProcess;

/// A transaction that is open. Dropped, it is rolled back.
pub struct OpenTransaction {
    /// There until it ends.
    transaction: Option<Transaction>,
    caller: DatabaseCaller,
    /// The conflict that an operation of it met, so that it cannot commit any more.
    conflict: Mutex<Option<Error>>,
}

impl OpenTransaction {
    /// One that was begun by this caller.
    pub fn new(transaction: Transaction, caller: DatabaseCaller) -> Arc<OpenTransaction> {
        let (transaction, conflict) = (Some(transaction), Mutex::default());
        Arc::new(OpenTransaction { transaction, caller, conflict })
    }

    /// Its operations.
    pub fn tx(&self) -> &Tx {
        self.transaction.as_ref().expect("it is open")
    }

    /// Who polls an operation of it.
    pub fn caller(&self) -> DatabaseCaller {
        self.caller.beside()
    }

    /// In which process it was begun.
    pub fn process(&self) -> ForkedProcess {
        self.caller.process()
    }

    /// Notes how an operation of it ended.
    pub fn note<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &answer
            && runs_again(error)
        {
            self.noted().get_or_insert_with(|| error.clone());
        }
        answer
    }

    /// The conflict that an operation of it met: it ends with that, whatever its body made of it.
    pub fn conflict(&self) -> Option<Error> {
        self.noted().clone()
    }

    /// The lock is held for moments.
    fn noted(&self) -> MutexGuard<'_, Option<Error>> {
        self.conflict.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// The transaction itself, which is to be ended by who takes it.
    pub fn into_parts(mut self) -> (Transaction, DatabaseCaller) {
        let transaction = self.transaction.take().expect("it is open");
        (transaction, self.caller.beside())
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let Some(transaction) = self.transaction.take() else { return };
        match self.process().is_current() {
            true => self.caller.end_in_state(|| drop(transaction)),
            // Its loop is in the other process, which ends it.
            false => std::mem::forget(transaction),
        }
    }
}
