//! Bodies as plain closures: one step of the loop, on data that lives there.
//!
//! A closure cannot wait. So everything it touches must live on the loop it runs on, and where it
//! meets another transaction's lock it is run again; what it costs is what a stored procedure
//! costs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use muesli_core::client::{self, Direct};
use muesli_core::{Failure, SmallBytes, Step, Txn, TxnOptions};

use crate::bodies::attempts::Stopped;
use crate::data::space::{Origin, Space};
use crate::database::handle::Db;
use crate::dispatch::yield_now::yield_now;
use crate::error::Error;
use crate::transaction::commit::CommitFuture;

/// A transaction inside a plain closure.
pub struct DirectTx<'a> {
    direct: &'a mut dyn Direct,
    txn: Txn,
    /// Whose spaces it uses.
    origin: Origin,
    waits: bool,
    /// The first conflict that an operation met; in a box, as most meet none.
    conflict: Option<Box<Error>>,
}

impl DirectTx<'_> {
    /// Reads a key of this loop.
    ///
    /// # Errors
    /// As [`Tx::get`](crate::Tx::get), and [`Error::NotHere`] where the key lives on another loop
    /// or is being committed.
    #[inline]
    pub fn get(&mut self, space: Space, key: &SmallBytes) -> Result<Option<SmallBytes>, Error> {
        let [found] = self.get_array(space, std::array::from_ref(key))?;
        Ok(found)
    }

    /// Reads several keys of this loop at once, which costs less than one by one.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn get_array<const N: usize>(
        &mut self,
        space: Space,
        keys: &[SmallBytes; N],
    ) -> Result<[Option<SmallBytes>; N], Error> {
        self.check(space)?;
        let mut found = [const { None }; N];
        if !self.direct.peek(self.txn, space.id, keys, &mut found) {
            for (key, found) in keys.iter().zip(&mut found) {
                *found = self.get_otherwise(space, key)?;
            }
        }
        Ok(found)
    }

    #[cold]
    fn get_otherwise(
        &mut self,
        space: Space,
        key: &SmallBytes,
    ) -> Result<Option<SmallBytes>, Error> {
        match self.direct.get(self.txn, space.id, key) {
            Step::Done(answer) => answer.map_err(|failure| self.failed(failure)),
            Step::Wait(op) => {
                self.direct.forget(op);
                self.waits = true;
                Err(Error::NotHere)
            }
        }
    }

    /// Writes a key of this loop.
    ///
    /// # Errors
    /// As [`Tx::put`](crate::Tx::put).
    #[inline]
    pub fn put(
        &mut self,
        space: Space,
        key: SmallBytes,
        value: impl Into<SmallBytes>,
    ) -> Result<(), Error> {
        self.check(space)?;
        let put = self.direct.put(self.txn, space.id, key, Some(value.into()));
        put.map_err(|failure| self.failed(failure))
    }

    /// Deletes a key of this loop.
    ///
    /// # Errors
    /// As [`Tx::delete`](crate::Tx::delete).
    pub fn delete(&mut self, space: Space, key: SmallBytes) -> Result<(), Error> {
        self.check(space)?;
        let put = self.direct.put(self.txn, space.id, key, None);
        put.map_err(|failure| self.failed(failure))
    }

    #[inline]
    fn check(&self, space: Space) -> Result<(), Error> {
        match self.origin.admits(space.origin) {
            true => Ok(()),
            false => Err(Error::OtherDatabase { space: space.id.0 }),
        }
    }

    #[cold]
    fn failed(&mut self, failure: Failure) -> Error {
        let error = Error::from(failure);
        if error.is_conflict() {
            self.conflict.get_or_insert_with(|| Box::new(error.clone()));
        }
        error
    }
}

/// How one run of a body went.
enum DirectRun<T, E> {
    Done(Result<T, Stopped<E>>),
    CommitFuture(T, muesli_core::OpId),
    /// With this; the transaction was rolled back.
    Panicked(Box<dyn Any + Send>),
}

impl Db {
    /// Runs a plain closure as a transaction of the loop that polls this, and commits it;
    /// conflicts are retried. Nothing else runs on the loop meanwhile, so bodies should be short.
    ///
    /// # Errors
    /// As [`transact`](Db::transact); [`Error::NotHere`] where the body read a key that lives on
    /// another loop; [`Error::Closed`] where no loop of this database polls this.
    pub async fn call_here<T, E: From<Error> + 'static>(
        &self,
        mut body: impl FnMut(&mut DirectTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let database = self.inner.database;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let options = self.txn_options();
            self.arrive();
            if client::with(database, |engine| engine.should_yield()).ok_or(Error::Closed)? {
                yield_now().await;
            }
            let mut ran = None;
            client::with(database, |engine| {
                engine.direct(&mut |direct| ran = Some(run(self, direct, options, &mut body)));
            });
            let done = match ran.ok_or(Error::Closed)? {
                DirectRun::Done(done) => done,
                DirectRun::Panicked(panic) => std::panic::resume_unwind(panic),
                DirectRun::CommitFuture(answer, op) => {
                    self.committed(answer, op).await.map_err(Into::into)
                }
            };
            let ended = match done {
                Err(Stopped::Database(Error::Conflict { reason, .. })) => {
                    self.after_conflict(reason, attempts).await?;
                    continue;
                }
                Ok(answer) => Ok(answer),
                Err(Stopped::Database(error)) => Err(error.into()),
                Err(Stopped::Body(error)) => Err(error),
            };
            self.leave();
            return ended;
        }
    }

    async fn committed<T>(&self, answer: T, op: muesli_core::OpId) -> Result<T, Error> {
        let committed = CommitFuture::new(self, None, op).await?.committed();
        self.see(committed.at);
        Ok(answer)
    }
}

#[inline]
fn run<T, E: 'static>(
    db: &Db,
    direct: &mut dyn Direct,
    options: TxnOptions,
    body: &mut impl FnMut(&mut DirectTx<'_>) -> Result<T, E>,
) -> DirectRun<T, E> {
    let database = |failure: Failure| DirectRun::Done(Err(Stopped::Database(failure.into())));
    let txn = match direct.begin(options) {
        Ok(txn) => txn,
        Err(failure) => return database(failure),
    };
    let mut tx = DirectTx { direct, txn, origin: db.inner.origin, waits: false, conflict: None };
    let answer = match catch_unwind(AssertUnwindSafe(|| body(&mut tx))) {
        Ok(Ok(answer)) if !tx.waits => answer,
        Err(panic) => {
            direct.rollback(txn);
            return DirectRun::Panicked(panic);
        }
        Ok(done) => {
            let conflict = tx.conflict.map(|conflict| *conflict);
            direct.rollback(txn);
            return DirectRun::Done(Err(match done {
                Err(error) => Stopped::by(error, conflict),
                Ok(_) => Stopped::Database(Error::NotHere),
            }));
        }
    };
    match direct.commit(txn) {
        Step::Done(Ok(committed)) => {
            db.see(committed.at);
            DirectRun::Done(Ok(answer))
        }
        Step::Done(Err(failure)) => database(failure),
        Step::Wait(op) => DirectRun::CommitFuture(answer, op),
    }
}
