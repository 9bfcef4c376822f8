//! Transactions as bodies that are run, committed, and run again after a conflict: from a task of a
//! loop, and from any other thread.

use muesli_core::Gave;

use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::commit::Caller;
use crate::transaction::results::Results;
use crate::transaction::tx::Tx;

impl Db {
    /// Runs `body` in a transaction and commits it; conflicts are retried with growing random
    /// pauses. The body may run several times, so it should have no other effects. It borrows what
    /// its closure owns:
    ///
    /// ```
    /// # use muesli::{Db, Error, Options, SpaceOptions};
    /// # let db = Db::open(Options::default().space("s", SpaceOptions::default()))?;
    /// # let space = db.space("s")?;
    /// let names = vec!["ann".to_owned(), "bob".to_owned()];
    /// let greeted = db.transact(async move |tx| {
    ///     for name in &names {
    ///         tx.put(space, name.as_str(), "hello").await?;
    ///     }
    ///     Ok::<_, Error>(names.len())
    /// });
    /// assert_eq!(muesli::blocking::block_on(greeted)?, 2);
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// Its error is any type that [`Error`] can become, and is returned as it is. The compiler has
    /// to be told which: by the body's last line, as above, by an error that it returns, or by
    /// what is done with the answer. A body that met a conflict is run again, whatever error it
    /// made of that.
    ///
    /// It is sent to the thread of a loop, so it must be `Send + 'static`; its future, and what is
    /// made there, need not be:
    ///
    /// ```compile_fail,E0277
    /// # use muesli::{Db, Error, Options, SpaceOptions};
    /// # let db = Db::open(Options::default().space("s", SpaceOptions::default()))?;
    /// # let space = db.space("s")?;
    /// let name = std::rc::Rc::new("ann"); // An `Rc` cannot be sent between threads safely.
    /// let greeted = db.transact(async move |tx| tx.put(space, *name, "hello").await);
    /// # muesli::blocking::block_on(greeted)?;
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// ```compile_fail,E0597
    /// # use muesli::{Db, Error, Options, SpaceOptions};
    /// # let db = Db::open(Options::default().space("s", SpaceOptions::default()))?;
    /// # let space = db.space("s")?;
    /// let name = "ann".to_owned(); // Borrowed for `'static`; `async move` gives it to the body.
    /// let greeted = db.transact(async |tx| tx.put(space, name.as_str(), "hello").await);
    /// # muesli::blocking::block_on(greeted)?;
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// [`BodyFuture`](crate::BodyFuture) is for code that takes bodies of others and is `Send`.
    ///
    /// Called from a task on one of the database's loops, the body runs there; from any other
    /// thread or executor, it is shipped to a loop. If the future is dropped before the commit is
    /// asked for, the transaction is aborted; later, [`settle`](Self::settle) waits for its end.
    ///
    /// # Errors
    /// What the body returned, or [`Error::Conflict`] after the last attempt, or
    /// [`Error::TransactionTimeout`], or why the commit failed. Nothing was changed, except perhaps
    /// after [`Error::Unknown`].
    ///
    /// # Panics
    /// Where the body does: its transaction is aborted, and its panic goes on here.
    pub async fn transact<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match self.is_here() {
            true => self.transact_here(body).await,
            false => self.repeat_there(body, false).await.map(|(answer, _)| answer),
        }
    }

    /// As [`transact`](Self::transact), for tasks on one of the database's loops only: the body
    /// need not be `Send`, and borrows what is around it.
    ///
    /// # Errors
    /// As [`transact`](Self::transact); [`Error::Closed`] on any other thread.
    pub async fn transact_here<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        self.repeat(&body, false, None).await.map(|(answer, _)| answer)
    }

    /// As [`transact`](Self::transact), and also tells what the delayed actions gave that the body
    /// asked ([`Tx::defer_returning`], [`Tx::defer_run_returning`]).
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub async fn transact_answering<T, E, F>(&self, body: F) -> Result<(T, Results), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        if self.is_here() {
            return self.transact_answering_here(body).await;
        }
        self.repeat_there(body, true).await.map(|(answer, given)| (answer, Results(given)))
    }

    /// As [`transact_answering`](Self::transact_answering), for tasks on one of the database's
    /// loops only.
    ///
    /// # Errors
    /// As [`transact_here`](Self::transact_here).
    pub async fn transact_answering_here<T, E, F>(&self, body: F) -> Result<(T, Results), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        self.repeat(&body, true, None).await.map(|(answer, given)| (answer, Results(given)))
    }

    /// Sends a body to a loop, where it runs until it commits or is not to be tried again; with the
    /// answer, what delayed actions gave if it `asks` that.
    pub(crate) async fn repeat_there<T, E, F>(
        &self,
        body: F,
        asks: bool,
    ) -> Result<(T, Vec<Gave>), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (db, (_caller, fate)) = (self.clone(), Caller::new(self));
        let there = async move || db.repeat(&body, asks, Some(&fate)).await;
        self.run_on(self.next_loop(), there).await?
    }
}
