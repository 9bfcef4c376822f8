//! Atomic blocks: transactions, and children where they are written inside of one.

use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::tx::Tx;

impl Db {
    /// Runs an atomic block: the same as [`transact`](Db::transact). Inside of it
    /// [`Tx::atomic`] runs one that is a part of it.
    ///
    /// # Errors
    /// As [`transact`](Db::transact).
    pub async fn atomic<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.transact(body).await
    }
}

impl Tx {
    /// Runs an atomic block inside of another one: the same as [`nested`](Tx::nested).
    ///
    /// # Errors
    /// As [`nested`](Tx::nested).
    pub async fn atomic<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        self.nested(body).await
    }
}
