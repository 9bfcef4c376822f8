//! Commits, and what becomes of those that nobody waits for any more.
//!
//! A transaction whose future is dropped before its commit was asked for is aborted. Afterwards its
//! outcome is the participants' to decide: the session learns it when it is decided, and
//! [`Db::settle`] waits for that. A one-round transaction asks for its commit as it is sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use muesli_core::client::{self, AnswerFuture, Answered};
use muesli_core::{Answer, Committed, OpId, Step};

use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// Counts one orphan for as long as it lives.
struct Orphan(Db);

impl Orphan {
    fn of(db: &Db) -> Orphan {
        db.orphans().add();
        Orphan(db.clone())
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        self.0.orphans().remove();
    }
}

const OPEN: u8 = 0;
const ASKED: u8 = 1;
const DROPPED: u8 = 2;
const OVER: u8 = 3;

/// Who was first: the loop that asks for a commit, or the caller who drops the future.
#[derive(Debug, Default)]
pub(crate) struct Fate(AtomicU8);

impl Fate {
    /// The commit is about to be asked for.
    ///
    /// # Errors
    /// Nobody waits for it any more: it is not to be asked for.
    pub fn ask(&self) -> Result<(), Error> {
        let asked = self.0.compare_exchange(OPEN, ASKED, Ordering::AcqRel, Ordering::Acquire);
        asked.map(drop).map_err(|_| Error::Closed)
    }

    /// The commit is decided; another one may be asked for after a conflict.
    pub fn decided(&self, db: &Db) {
        let before = self.0.compare_exchange(ASKED, OPEN, Ordering::AcqRel, Ordering::Acquire);
        if before == Err(DROPPED) && self.0.swap(OVER, Ordering::AcqRel) == DROPPED {
            db.orphans().remove();
        }
    }
}

/// The caller's end of a transaction that runs on another thread.
pub(crate) struct Caller {
    fate: Arc<Fate>,
    db: Db,
}

impl Caller {
    pub fn new(db: &Db) -> (Caller, Arc<Fate>) {
        let fate = Arc::<Fate>::default();
        (Caller { fate: fate.clone(), db: db.clone() }, fate)
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // Counted first: the loop may decide at any moment from the exchange on.
        let counted = Orphan::of(&self.db);
        if self.fate.0.swap(DROPPED, Ordering::AcqRel) == ASKED {
            std::mem::forget(counted);
        }
    }
}

/// A commit that is under way. Dropped, it goes on, and its session learns how it ended.
pub(crate) struct CommitFuture<'a> {
    db: &'a Db,
    fate: Option<&'a Arc<Fate>>,
    waiting: Option<AnswerFuture>,
}

impl<'a> CommitFuture<'a> {
    /// What `op` asked for; its caller, on another thread, has this `fate`.
    pub fn new(db: &'a Db, fate: Option<&'a Arc<Fate>>, op: OpId) -> CommitFuture<'a> {
        CommitFuture { db, fate, waiting: Some(AnswerFuture::new(db.inner.database, op)) }
    }
}

impl Future for CommitFuture<'_> {
    type Output = Result<Answer, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waiting = self.waiting.as_mut().expect("polled after it was ready");
        let polled = Pin::new(waiting).poll(cx);
        if polled.is_ready() {
            self.waiting = None;
        }
        polled.map_err(Error::from)
    }
}

impl Drop for CommitFuture<'_> {
    fn drop(&mut self) {
        let Some(waiting) = self.waiting.take() else { return };
        let database = self.db.inner.database;
        let learner = Learner { orphan: Orphan::of(self.db), fate: self.fate.cloned() };
        let learn = async move {
            let db = &learner.orphan.0;
            match waiting.await {
                Ok(Answer::Invoked(done)) => db.see(done.at),
                Ok(ended) => db.learn(ended.committed()),
                Err(_) => {}
            }
        };
        client::with(database, |engine| engine.spawn(Box::new(move || Box::pin(learn))));
    }
}

/// Whoever learns how a commit ended in the place of its caller; gone, nobody will.
struct Learner {
    orphan: Orphan,
    fate: Option<Arc<Fate>>,
}

impl Drop for Learner {
    fn drop(&mut self) {
        if let Some(fate) = &self.fate {
            fate.decided(&self.orphan.0);
        }
    }
}

/// A commit that was asked for on this loop.
pub(crate) enum AskedCommit {
    Ended(Answered),
    /// It is not decided.
    Waits(OpId),
}

impl Tx {
    /// Commits on this loop; the session learns of it.
    ///
    /// # Errors
    /// Why it did not commit; [`Error::Closed`] where the caller has gone.
    pub(crate) async fn commit_here(
        &self,
        db: &Db,
        fate: Option<&Arc<Fate>>,
    ) -> Result<Answered, Error> {
        match self.ask_for_commit(db, fate)? {
            AskedCommit::Ended(answered) => Ok(answered),
            AskedCommit::Waits(op) => db.end_asked(fate, op).await,
        }
    }

    /// Asks for the commit on this loop; where it has ended the session learns of it.
    ///
    /// # Errors
    /// As [`commit_here`](Self::commit_here).
    pub(crate) fn ask_for_commit(
        &self,
        db: &Db,
        fate: Option<&Arc<Fate>>,
    ) -> Result<AskedCommit, Error> {
        if let Some(fate) = fate {
            fate.ask()?;
        }
        match self.here(|engine| engine.commit(self.txn))? {
            Step::Wait(op) => Ok(AskedCommit::Waits(op)),
            Step::Done(answered) => {
                db.learn_end(fate, answered.map_err(Error::from)).map(AskedCommit::Ended)
            }
        }
    }
}

impl Db {
    /// Waits until every commit of this session is decided whose future was dropped, or whose task
    /// was, after it had been asked for. The session's transactions from then on see those that
    /// committed. There is nothing to wait for where the future was dropped before: then the
    /// transaction was aborted.
    pub async fn settle(&self) {
        std::future::poll_fn(|cx| self.orphans().poll(cx)).await;
    }

    /// Waits on this loop for the end of a commit that was asked for here.
    ///
    /// # Errors
    /// Why it did not commit.
    pub(crate) async fn end_asked(
        &self,
        fate: Option<&Arc<Fate>>,
        op: OpId,
    ) -> Result<Answered, Error> {
        let ended = CommitFuture::new(self, fate, op).await.map(Answer::answered);
        self.learn_end(fate, ended)
    }

    /// A commit on this loop has ended so.
    pub(crate) fn learn_end(
        &self,
        fate: Option<&Arc<Fate>>,
        ended: Result<Answered, Error>,
    ) -> Result<Answered, Error> {
        if let Some(fate) = fate {
            fate.decided(self);
        }
        let answered = ended?;
        self.learn(answered.0);
        Ok(answered)
    }

    /// A transaction of the session has committed on this loop.
    #[inline]
    pub(crate) fn learn(&self, committed: Committed) {
        self.see(committed.at);
        self.leave();
    }
}
