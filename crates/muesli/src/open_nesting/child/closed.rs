//! Closed children in transactions with open children.
//!
//! What an open child leaves, its locks and its handlers, belongs to the innermost transaction that
//! commits by itself, however many closed children lie between: its scope. A closed child that is
//! merged so changes nothing. One that is undone alone has what open children did within it undone
//! first ([`partial`](crate::open_nesting::ending::partial)), and then it is run again or its
//! parent goes on.
//!
//! That is done before anything else is begun in the scope: by who runs the closed child, or, where
//! its future was dropped, by whatever the transaction does next with the layer.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bodies::failure::BodyFailure;
use crate::error::Error;
use crate::open_nesting::child::OpenTx;
use crate::open_nesting::child::body::{AnyBody, KeptBody};
use crate::open_nesting::handed::{Handlers, pass_conflict};
use crate::open_nesting::layer::NestingSwitch;
use crate::open_nesting::layer::counts::NestingPhase;
use crate::open_nesting::level::{ClosedEnd, NestingLevel};
use crate::open_nesting::scope::ScopeMark;
use crate::transaction::retrying::WaitLimit;
use crate::transaction::tx::Tx;

impl OpenTx {
    /// Runs a body as a closed child of this transaction: as [`Tx::nested`], and the body may have
    /// open children.
    ///
    /// Their locks and handlers are this transaction's. If the closed child alone is undone, the
    /// compensations of the open children within it are run, newest first, and the locks go that
    /// they took; what earlier ones did stays. A lock that the body [takes](Self::acquire_lock) and
    /// handlers that it registers are those of the open child that it is within, and are forgotten
    /// if it is undone.
    ///
    /// A lock that is refused undoes more than a closed child: see [`Error::LockRefused`].
    ///
    /// # Errors
    /// As [`Tx::nested`]; [`Error::ChildOpen`] also where an open child is running beside;
    /// [`Error::Unfinished`] where compensations could not be run: the transaction does not commit
    /// then.
    pub async fn nested<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let kept = KeptBody::new(&body);
        let ran = self.run_closed(&kept, false).await;
        kept.end(ran.map(|ended| ended.expect("a child that does not wait passes it on")))
    }

    /// The same as [`nested`](Self::nested), by the name that it has in the literature: what is
    /// written as an atomic block inside of another one, and may have open children.
    ///
    /// # Errors
    /// As of [`nested`](Self::nested).
    pub async fn atomic<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        self.nested(body).await
    }

    /// Runs `first` as a [closed child](Self::nested), and `second` as another one where that
    /// [gives up](Tx::retry), as [`Tx::or_else`] does; both may have open children.
    ///
    /// # Errors
    /// What the alternative returns that was not given up; as of [`nested`](Self::nested).
    pub async fn or_else<T, E, F, G>(&self, first: F, second: G) -> Result<T, E>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        G: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let kept = KeptBody::new(&first);
        match self.run_closed(&kept, true).await {
            Ok(None) => {
                kept.forget();
                self.nested(second).await
            }
            ended => kept.end(ended.map(drop)),
        }
    }

    /// The same, where `first` may keep the transaction waiting until `limit` is over, as
    /// [`Tx::or_else_within`] does. What open children within an alternative did that gave up is
    /// undone before the transaction sleeps.
    ///
    /// # Errors
    /// As of [`or_else`](Self::or_else); [`Error::Retry`], which a body passes on.
    pub async fn or_else_within<T, E, F, G>(
        &self,
        limit: &WaitLimit,
        first: F,
        second: G,
    ) -> Result<T, E>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        G: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let left = limit.left(&self.tx).await?;
        let kept = KeptBody::new(&first);
        match (self.run_closed(&kept, true).await, left) {
            (Ok(None), Some(until)) => Ok(self.tx.retry_by(until)?),
            (Ok(None), None) => {
                kept.forget();
                self.nested(second).await
            }
            (ended, _) => kept.end(ended.map(drop)),
        }
    }

    async fn run_closed(
        &self,
        body: &dyn AnyBody,
        caught: bool,
    ) -> Result<Option<()>, BodyFailure> {
        if self.running.load(Ordering::Relaxed) > 0 {
            return Err(Error::ChildOpen.into());
        }
        // What is read for this transaction's end is read by it, and not by the child.
        self.ahead.idle().await;
        self.undo_parts().await?;
        let run = ClosedRun { of: self, from: self.scope.mark(), level: RefCell::default() };
        let attempt = async |child: &OpenTx| -> Result<(), BodyFailure> {
            self.undo_parts().await?; // Of an attempt before this one.
            let ran = body.run(child).await;
            pass_conflict(&child.raw, &child.tx);
            ran?;
            run.attempted(child);
            Ok(())
        };
        let ran = self.tx.run_child(&|tx| run.begin(tx), &attempt, caught).await;
        match &ran {
            Ok(Some(_)) => run.merge(),
            Ok(None) | Err(_) => drop(run), // It is undone.
        }
        if self.tx.conflict().is_none() {
            self.undo_parts().await?;
        } // Else more is, with the same.
        ran
    }

    /// Compensates what open children did in closed children that were undone.
    ///
    /// # Errors
    /// The transaction is to be run again, or is not to commit.
    pub(in crate::open_nesting) async fn undo_parts(&self) -> Result<(), Error> {
        let Some(from) = self.scope.undone() else { return Ok(()) };
        self.scope.check()?; // Else all of it is undone.
        if !self.scope.is_certain_within() {
            // An open child was dropped as it committed: whether it did is not known.
            return Err(self.ended_by_others(&self.scope));
        }
        let begun = self.layer.now()?;
        if self.layer.nesting.holds(NestingSwitch::UndoParts) {
            let undone = self.layer.undo_from(&self.scope, from).await;
            if !undone.map_err(|error| self.level.blame(error))? {
                return Err(self.ended_by_others(&self.scope));
            }
        }
        self.scope.forget_from(from);
        self.scope.took(NestingPhase::Lost, begun, self.layer.now()?);
        Ok(())
    }
}

/// What a closed child handed over whose body has ended well.
struct ClosedLevel {
    level: Arc<NestingLevel>,
    /// What it handed over; `None`: its body has not ended well.
    handed: Option<super::Handed>,
}

/// A closed child, with all its attempts. Dropped before it is merged, it is undone.
struct ClosedRun<'a> {
    of: &'a OpenTx,
    from: ScopeMark,
    /// The last attempt.
    level: RefCell<Option<ClosedLevel>>,
}

impl ClosedRun<'_> {
    /// An attempt begins; the one before it was undone.
    fn begin(&self, tx: Tx) -> OpenTx {
        self.end(ClosedEnd::RunsAgain);
        let level = Arc::new(NestingLevel::closed(&self.of.level));
        *self.level.borrow_mut() = Some(ClosedLevel { level: level.clone(), handed: None });
        OpenTx { level: level.clone(), ..self.of.within(tx.watched_by(level)) }
    }

    /// Its body has ended well.
    fn attempted(&self, child: &OpenTx) {
        let mut last = self.level.borrow_mut();
        let last = last.as_mut().expect("an attempt has begun");
        last.handed = Some(std::mem::take(&mut *child.handed()));
    }

    /// What it did is its parent's.
    fn merge(self) {
        let last = self.level.borrow_mut().take().expect("an attempt has begun");
        let handed = last.handed.expect("its body has ended well");
        self.of.level.take_closed(&last.level, ClosedEnd::Merged);
        let mut own = self.of.handed();
        let Handlers { on_abort, on_commit } = handed.handlers;
        own.handlers.on_abort = on_abort.or(own.handlers.on_abort.take());
        own.handlers.on_commit = on_commit.or(own.handlers.on_commit.take());
        own.locks.extend(handed.locks);
        own.of_parts.extend(handed.of_parts);
        own.found.append(handed.found);
    }

    fn end(&self, how: ClosedEnd) {
        if let Some(last) = self.level.borrow_mut().take() {
            self.of.level.take_closed(&last.level, how);
            self.of.scope.note_undone(self.from);
        }
    }
}

impl Drop for ClosedRun<'_> {
    fn drop(&mut self) {
        self.end(ClosedEnd::GaveUp); // Unless it was merged.
    }
}
