//! A body that a blocking thread leaves to whoever is in the loop's state.
//!
//! It is run once, in one step. Where it has to wait, its transaction is undone, and its owner runs
//! it from the beginning: what a body waits for it waits for on its own thread. A commit that was
//! asked for is not undone: its owner waits for its end.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use muesli_core::client;
use muesli_core::{Answer, Gave, OpId, Txn};

use crate::bodies::attempts::{Attempts, Stopped};
use crate::bodies::timeout::Timeout;
use crate::database::handle::Db;
use crate::dispatch::access::HandedJob;
use crate::error::Error;
use crate::transaction::commit::AskedCommit;
use crate::transaction::open::RollbackOnDrop;
use crate::transaction::retrying::ReadChange;
use crate::transaction::tx::Tx;

/// What came of a body that was handed over.
pub(crate) enum HandedEnd<T, E> {
    Committed(T, Vec<Gave>),
    /// Its commit was asked for, and is not decided.
    Committing(T, OpId),
    /// It is not to be run again.
    Failed(E),
    /// Its owner is to run it.
    Again(RunAgain),
    /// With this; its transaction was rolled back.
    Panicked(Box<dyn Any + Send>),
}

/// Why the owner of a body is to run it.
pub(crate) enum RunAgain {
    /// It has to wait.
    Waits,
    /// It met a conflict, or its commit failed.
    Conflict(Error),
    /// It asks to be run again once something has changed that it has read, which is watched for
    /// its transaction if that was kept.
    Retry(Option<(ReadChange, Txn)>),
}

/// A body on its way to another thread and back.
struct HandedSlot<F, T, E> {
    body: Option<F>,
    end: Option<HandedEnd<T, E>>,
}

/// A body that is handed over.
pub(crate) struct HandedBody<F, T, E> {
    db: Db,
    slot: Mutex<HandedSlot<F, T, E>>,
}

impl<F, T, E> HandedBody<F, T, E> {
    /// A body whose transaction is one of `db`.
    pub fn new(db: &Db, body: F) -> HandedBody<F, T, E> {
        let slot = Mutex::new(HandedSlot { body: Some(body), end: None });
        HandedBody { db: db.clone(), slot }
    }

    fn slot(&self) -> MutexGuard<'_, HandedSlot<F, T, E>> {
        self.slot.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// The body, back at its owner, and what came of it, if it was run.
    pub fn take(&self) -> (F, Option<HandedEnd<T, E>>) {
        let mut slot = self.slot();
        let body = slot.body.take().expect("who runs a body puts it back");
        (body, slot.end.take())
    }
}

impl<F, T, E> HandedJob for HandedBody<F, T, E>
where
    F: AsyncFn(&Tx) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    fn run(&self) {
        let Some(body) = self.slot().body.take() else { return };
        let ran = catch_unwind(AssertUnwindSafe(|| self.db.run_once(&body)));
        let mut slot = self.slot();
        slot.end = Some(ran.unwrap_or_else(HandedEnd::Panicked));
        slot.body = Some(body);
    }
}

impl Db {
    /// Runs a body on this loop, in one step.
    fn run_once<T, E, F>(&self, body: &F) -> HandedEnd<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let mut open = match self.begin_in_step() {
            Ok(Some(open)) => open,
            Ok(None) => return HandedEnd::Again(RunAgain::Waits),
            Err(error) => return HandedEnd::Failed(error.into()),
        };
        let ran = pin!(body(&open.tx)).poll(&mut Context::from_waker(Waker::noop()));
        let answer = match ran {
            Poll::Pending => return HandedEnd::Again(RunAgain::Waits),
            Poll::Ready(Ok(answer)) => answer,
            Poll::Ready(Err(error)) => {
                let stopped = Stopped::by(error, open.tx.conflict());
                return self.handed_end(stopped, open);
            }
        };
        if open.tx.check_parts().is_err() {
            return HandedEnd::Again(RunAgain::Waits);
        }
        match self.commit_in_step(&mut open) {
            Ok(AskedCommit::Ended((_, given))) => HandedEnd::Committed(answer, given),
            Ok(AskedCommit::Waits(op)) => HandedEnd::Committing(answer, op),
            Err(error) => after_end(error),
        }
    }

    /// Begins the transaction of a body that is run in one step; `None`: its owner is to run it.
    fn begin_in_step(&self) -> Result<Option<RollbackOnDrop>, Error> {
        // What a transaction of its kind begins with is not to be repeated here.
        if self.choice.is_some() || self.checkpoints {
            return Ok(None);
        }
        self.arrive();
        let begun = self.begin_at_once(self.txn_options())?;
        Ok(begun.map(|txn| RollbackOnDrop::new(self.tx_of(txn))))
    }

    /// Commits what a body did in one step.
    fn commit_in_step(&self, open: &mut RollbackOnDrop) -> Result<AskedCommit, Error> {
        let asked = open.tx.ask_for_commit(self, None);
        open.ended();
        let op = match asked? {
            AskedCommit::Waits(op) => op,
            ended @ AskedCommit::Ended(_) => return Ok(ended),
        };
        // With a log the answer may be there all the same.
        match client::with(self.inner.database, |engine| engine.poll(op, Waker::noop())) {
            Some(Poll::Ready(ended)) => {
                let ended = ended.map(Answer::answered).map_err(Error::from);
                self.learn_end(None, ended).map(AskedCommit::Ended)
            }
            Some(Poll::Pending) | None => Ok(AskedCommit::Waits(op)),
        }
    }

    /// A transaction of the loop that is here.
    fn tx_of(&self, txn: Txn) -> Tx {
        Tx::at(self.inner.database, self.inner.origin, txn, self.inner.retry)
    }

    /// Goes on with a body that was handed over and has not ended, on its owner's thread.
    pub(crate) async fn go_on<T, E, F>(
        &self,
        body: &F,
        asks: bool,
        end: Option<HandedEnd<T, E>>,
    ) -> Result<(T, Vec<Gave>), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let again = match end {
            Some(HandedEnd::Committing(answer, op)) => match self.end_asked(None, op).await {
                Ok((_, given)) => return Ok((answer, given)),
                Err(error) => RunAgain::Conflict(error),
            },
            Some(HandedEnd::Again(again)) => again,
            _ => RunAgain::Waits,
        };
        let attempts = self.ready_to_run_again(again).await?;
        self.repeat_after(body, asks, None, attempts).await
    }

    /// Waits until a body is to be run again by its owner.
    ///
    /// # Errors
    /// Why it is not.
    async fn ready_to_run_again(&self, again: RunAgain) -> Result<(Attempts, Timeout), Error> {
        let mut made = self.first_attempt();
        let timeout = Timeout::new(self.inner.database, self.timeout);
        match again {
            RunAgain::Waits => {}
            RunAgain::Conflict(error) => {
                made.count_one();
                self.after_stop(error, &mut made, &timeout).await?;
            }
            RunAgain::Retry(change) => {
                if let Some((mut change, txn)) = change {
                    // Given up, it is watched no more.
                    let _open = RollbackOnDrop::new(self.tx_of(txn));
                    self.until_changed(&mut change, &timeout).await?;
                }
                made.see_change();
            }
        }
        Ok((made, timeout))
    }

    /// Of a body that stopped.
    #[cold]
    fn handed_end<T, E: From<Error>>(
        &self,
        stopped: Stopped<E>,
        mut open: RollbackOnDrop,
    ) -> HandedEnd<T, E> {
        match stopped {
            Stopped::Body(error) => HandedEnd::Failed(error),
            // Readers keep no note of what they read.
            Stopped::Database(Error::Retry) if self.options.read_only && !self.options.strict => {
                HandedEnd::Again(RunAgain::Retry(None))
            }
            Stopped::Database(Error::Retry) => match open.tx.watch_reads() {
                Ok(Some(change)) => {
                    let txn = open.tx.txn;
                    open.ended();
                    HandedEnd::Again(RunAgain::Retry(Some((change, txn))))
                }
                Ok(None) | Err(_) => HandedEnd::Again(RunAgain::Waits),
            },
            Stopped::Database(error) => after_end(error),
        }
    }
}

/// Of a body whose transaction is over: after a conflict its owner decides whether it is run again.
#[cold]
fn after_end<T, E: From<Error>>(error: Error) -> HandedEnd<T, E> {
    match error.is_conflict() {
        true => HandedEnd::Again(RunAgain::Conflict(error)),
        false => HandedEnd::Failed(error.into()),
    }
}
