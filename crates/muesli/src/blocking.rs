//! The same calls for threads that are no executor: they block until the answer is there.

use muesli_core::{Class, Fragment, Invoked, Outcome, Place, TxnId};

use crate::database::handle::Db;
use crate::error::Error;
use crate::plans::PlannedProcedure;
use crate::procedures::stored::StoredProcedure;
use crate::session::token::SessionToken;
use crate::transaction::explicit::Transaction;
use crate::transaction::results::Results;
use crate::transaction::tx::Tx;

pub use crate::dispatch::block_on::block_on;

/// A database handle whose calls block. Not for tasks on the database's own loops.
#[derive(Clone, Debug)]
pub struct Blocking {
    pub(crate) db: Db,
}

impl Db {
    /// The same calls for threads that are no executor.
    pub fn blocking(&self) -> Blocking {
        Blocking { db: self.clone() }
    }
}

impl Blocking {
    /// See [`Db::transact`].
    ///
    /// # Errors
    /// As there.
    pub fn transact<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        block_on(self.db.transact(body))
    }

    /// See [`Db::atomic`].
    ///
    /// # Errors
    /// As there.
    pub fn atomic<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        block_on(self.db.atomic(body))
    }

    /// See [`Db::transact_answering`].
    ///
    /// # Errors
    /// As there.
    pub fn transact_answering<T, E, F>(&self, body: F) -> Result<(T, Results), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        block_on(self.db.transact_answering(body))
    }

    /// See [`Db::begin`]; the transaction's own calls are waited for by [`block_on`].
    ///
    /// # Errors
    /// As there.
    pub fn begin(&self) -> Result<Transaction, Error> {
        block_on(self.db.begin())
    }

    /// See [`Db::invoke`].
    ///
    /// # Errors
    /// As there.
    pub fn invoke(&self, class: Class, fragments: Vec<Fragment>) -> Result<Invoked, Error> {
        block_on(self.db.invoke(class, fragments))
    }

    /// See [`Db::run_plan`].
    ///
    /// # Errors
    /// As there.
    pub fn run_plan<P: PlannedProcedure>(
        &self,
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Error> {
        block_on(self.db.run_plan::<P>(arguments))
    }

    /// See [`Db::execute`].
    ///
    /// # Errors
    /// As there.
    pub fn execute<P: StoredProcedure>(
        &self,
        place: Place,
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Error> {
        block_on(self.db.execute::<P>(place, arguments))
    }

    /// See [`Db::token`].
    ///
    /// # Errors
    /// As there.
    pub fn token(&self) -> Result<SessionToken, Error> {
        block_on(self.db.token())
    }

    /// See [`Db::outcome`].
    ///
    /// # Errors
    /// As there.
    pub fn outcome(&self, txn: TxnId) -> Result<Outcome, Error> {
        block_on(self.db.outcome(txn))
    }
}
