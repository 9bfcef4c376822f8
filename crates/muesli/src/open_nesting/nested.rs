//! Runs open children: each attempt is a transaction of its own, and what is left of one that was
//! aborted is compensated before the next.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use muesli_core::{LevelRole, Nanos};
use serde::Serialize;

use super::child::body::{AnyBody, KeptBody};
use super::child::{Conclusion, OpenTx};
use super::ending::Finish;
use super::handed::{ChildPlan, OpenLock, call};
use super::layer::counts::{NestingPhase, count};
use super::layer::{Layer, NestingSwitch};
use super::level::NestingLevel;
use super::locks::LockMode;
use super::scope::{InFlight, NestingScope};
use crate::bodies::attempts::{AttemptOptions, Attempts, Stopped};
use crate::bodies::failure::BodyFailure;
use crate::bodies::timeout::Timeout;
use crate::error::Error;
use crate::nesting_choice::{Choosing, NestingModel};
use crate::transaction::tx::Tx;

/// An open child that is to be run, which awaiting it does: [`OpenTx::open_atomic`] makes it. Its
/// methods say which abstract locks the child takes when it commits, and what is to be done when
/// the transaction that it is of ends. Locks and handlers that depend on what the child finds are
/// given to [`OpenTx`] in its body.
#[must_use = "an open child does nothing unless it is awaited"]
pub struct OpenAtomic<'a, T, E, F> {
    of: &'a OpenTx,
    plan: ChildPlan,
    body: F,
    ended: PhantomData<fn() -> Result<T, E>>,
}

impl<T, E, F> fmt::Debug for OpenAtomic<'_, T, E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAtomic").field(&self.plan).finish()
    }
}

impl<T, E, F> OpenAtomic<'_, T, E, F> {
    /// Takes one more abstract lock in this mode when the child commits. It is held until the
    /// transaction ends that the child is of.
    pub fn lock(mut self, id: impl AsRef<[u8]>, mode: &LockMode) -> Self {
        self.plan.lock(id.as_ref(), mode, false);
        self
    }

    /// As [`lock`](Self::lock); and if the transaction that the child is of is an open child
    /// itself, its commit hands the lock to the transaction that it is of in turn.
    pub fn hold_lock(mut self, id: impl AsRef<[u8]>, mode: &LockMode) -> Self {
        self.plan.lock(id.as_ref(), mode, true);
        self
    }

    /// The body may [take](OpenTx::acquire_lock) this lock, in a mode that only it knows. It is
    /// looked at as the child begins, while the body runs, and not when it is taken: a round trip
    /// less where its row lives elsewhere.
    pub fn expect_lock(mut self, id: impl AsRef<[u8]>) -> Self {
        self.plan.expected.push(id.as_ref().to_vec());
        self
    }

    /// Registers a compensation: if the transaction that the child is of is aborted after the child
    /// has committed, the [handler](super::OpenNesting::handler) of this name is run with these
    /// arguments, in a transaction of its own, after those of later children.
    pub fn on_abort<A: Serialize + ?Sized>(mut self, name: &str, arguments: &A) -> Self {
        match call(name, arguments) {
            Ok(call) => self.plan.handlers.on_abort = Some(call),
            Err(error) => self.plan.fault = Some(error),
        }
        self
    }

    /// Registers a commit handler: it is run when the transaction that the child is of has
    /// committed, before the locks go.
    pub fn on_commit<A: Serialize + ?Sized>(mut self, name: &str, arguments: &A) -> Self {
        match call(name, arguments) {
            Ok(call) => self.plan.handlers.on_commit = Some(call),
            Err(error) => self.plan.fault = Some(error),
        }
        self
    }

    /// Locks each row that the child uses, and ranges by their spaces; where the transaction is
    /// aborted that the child is of, what it wrote is put back. So no lock is to be named and no
    /// compensation to be written, and the whole transaction is isolated as one without open
    /// children is, if whoever writes these rows locks them like this, and if it does nothing
    /// because of an error that such a child has returned, which holds no locks.
    ///
    /// It costs more than locks by what an operation means: two that only share rows are in each
    /// other's way, and those who read ranges of a space and those who write to it. A row is read
    /// before it is written, so that writing one takes a round trip. Each row is a lock
    /// ([`NestingLimits::locks`](super::NestingLimits::locks)), and what was written is bounded as
    /// a handler's arguments are
    /// ([`NestingLimits::argument_bytes`](super::NestingLimits::argument_bytes)). Such a child has
    /// no open children, does no delayed actions, and reads no ranges of spaces with a hash index:
    /// [`Error::Nesting`].
    pub fn with_row_locks(mut self) -> Self {
        self.plan.locks_rows = true;
        self
    }

    /// What the child writes may stay where its transaction is aborted: no
    /// [warning](super::OpenNesting::on_warning).
    pub fn without_compensation(mut self) -> Self {
        self.plan.without_compensation = true;
        self
    }
}

impl OpenTx {
    /// Runs a body as an open child of this transaction and commits it: from then on others see
    /// what it wrote, whether this transaction commits or not. Until this one ends, its abstract
    /// locks keep those away that must not; if this one is aborted, its compensation is run.
    ///
    /// The child sees what is committed: what children before it did, and not what this transaction
    /// has written. Its conflicts are retried by themselves. It uses other keys than its
    /// ancestors; an access that breaks this ends the whole transaction with [`Error::Nesting`].
    /// What is outside of the database belongs into commit handlers: a child may commit for a
    /// transaction that cannot.
    ///
    /// It is run when what this returns is awaited, and until then can be given more locks, and
    /// handlers. `lock` is `()`, or the name and the mode of a lock that the child takes.
    ///
    /// # Errors
    /// What the body returned; nothing of the child was changed then. [`Error::LockRefused`], and
    /// [`Error::Retry`] where the child gives up, which this transaction's body is to return; any
    /// other that [`Db::transact`](crate::Db::transact) has.
    ///
    /// Source: A. Turcu's dissertation (2015), chapter 5 and section 6.3.1.
    pub fn open_atomic<T, E, F>(
        &self,
        lock: impl Into<OpenLock>,
        body: F,
    ) -> OpenAtomic<'_, T, E, F>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let plan = ChildPlan::beginning_with(lock.into());
        OpenAtomic { of: self, plan, body, ended: PhantomData }
    }

    async fn run_open(&self, how: ChildPlan, body: &dyn AnyBody) -> Result<(), BodyFailure> {
        if let Some(fault) = &how.fault {
            return Err(fault.clone().into());
        }
        let (layer, scope) = (&self.layer, &self.scope);
        if self.locks_rows {
            let text = "an open child that locks rows has an open child, whose compensation its \
                        own would have to undo: let it be a closed one (`OpenTx::nested`), or \
                        name locks and compensations";
            return Err(self.level.blame(Error::Nesting(text.to_owned())).into());
        }
        let _running = self.begin_open()?;
        layer.nesting.limits.check_depth(scope.chain().count())?;
        let is_open = |choosing: &Arc<Choosing>| choosing.model() == NestingModel::Open;
        if layer.reads_only() || !self.choosing.as_ref().is_none_or(is_open) {
            return self.run_inline(&how, body).await;
        }
        self.undo_parts().await?;
        let part = Choosing::open_child(self.choosing.as_ref());
        let timeout = Timeout::new(layer.db.inner.database, layer.db.timeout);
        let mut made = Attempts::that_wait();
        let number = scope.level.next_child();
        loop {
            scope.check()?;
            let level = self.level.open(number).locking_rows(how.locks_rows);
            let (attempt, begun) = (ChildAttempt::new(self, level)?, layer.now()?);
            let options = AttemptOptions { watches: false, ..made.next(&timeout) };
            let stopped = match attempt.run(&how, body, options).await {
                Ok(()) => {
                    part.inspect(|it| it.ended_well());
                    return Ok(());
                }
                Err(stopped) => stopped,
            };
            if matches!(stopped, Stopped::Database(_)) {
                body.forget();
            }
            attempt.undo(&stopped).await?;
            let gives_up = matches!(stopped, Stopped::Database(Error::Retry));
            if gives_up && attempt.own.refused().is_none() {
                // Nobody sleeps with locks that others wait for, nor without what led to it.
                self.wake_at(attempt.own.alarm());
                scope.took(NestingPhase::Lost, begun, layer.now()?);
                return Ok(self.retry()?);
            }
            if attempt.own.refused().is_some() {
                self.choosing.as_ref().inspect(|it| it.refused());
            }
            let is_refused = attempt.is_refused(layer).await;
            if is_refused.is_err() {
                part.as_ref().inspect(|it| it.conflict());
            }
            if is_refused? {
                part.as_ref().inspect(|it| it.undone_alone());
                made.forget_losses();
                layer.db.pause(made.count()).await?;
                timeout.check()?;
            } else {
                part.as_ref().inspect(|it| it.undone_alone());
                match stopped {
                    Stopped::Body(failure) => return Err(failure),
                    Stopped::Database(error) => {
                        layer.db.after_stop(error, &mut made, &timeout).await?;
                    }
                }
            }
            scope.took(NestingPhase::Lost, begun, layer.now()?);
        }
    }
}

impl<'a, T, E, F> IntoFuture for OpenAtomic<'a, T, E, F>
where
    F: AsyncFn(&OpenTx) -> Result<T, E> + 'a,
    T: 'a,
    E: From<Error> + 'static,
{
    type Output = Result<T, E>;
    /// In a box, so that a body may have children of its own kind.
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T, E>> + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let kept = KeptBody::new(&self.body);
            kept.end(self.of.run_open(self.plan, &kept).await)
        })
    }
}

/// One attempt of an open child.
struct ChildAttempt<'a> {
    layer: &'a Layer,
    /// What it is of.
    scope: &'a Arc<NestingScope>,
    /// The level that it is a child of.
    level: &'a Arc<NestingLevel>,
    /// What its own open children are of.
    own: Arc<NestingScope>,
    /// How children of the transaction are run, where that is chosen.
    choosing: Option<&'a Arc<Choosing>>,
}

impl<'a> ChildAttempt<'a> {
    fn new(of: &'a OpenTx, own: NestingLevel) -> Result<ChildAttempt<'a>, Error> {
        let (layer, scope, level) = (&of.layer, &of.scope, &of.level);
        let own = NestingScope::new(layer.draw()?, own, Some(scope));
        Ok(ChildAttempt { layer, scope, level, own, choosing: of.choosing.as_ref() })
    }

    async fn run(
        &self,
        how: &ChildPlan,
        body: &dyn AnyBody,
        options: AttemptOptions<'_>,
    ) -> Result<(), Stopped<BodyFailure>> {
        let flight = InFlight::of_child(&self.own);
        let (begun, asked) = (self.layer.now()?, Cell::new(Nanos(0)));
        let ended: Cell<Option<Conclusion>> = Cell::new(None);
        let attempt = async |tx: &Tx| -> Result<(), BodyFailure> {
            let child = OpenTx::new(tx, self.layer, &self.own);
            let done = child.run_body(how, body.run(&child)).await;
            let concluded = match done {
                Ok(()) => child.conclude(how).await.map_err(BodyFailure::from),
                Err(failure) => Err(failure),
            };
            child.pass_conflict(tx);
            self.own.wake_at(tx.alarm());
            let sleeps = !self.layer.nesting.holds(NestingSwitch::SleepWithoutLocks);
            if concluded.is_err() && sleeps {
                let waiting = (tx, &*self.own);
                self.layer.wait_untouched(waiting, &options, self.choosing).await?;
            }
            ended.set(Some(concluded?));
            self.layer.nesting.stop.step()?;
            flight.ask();
            asked.set(self.layer.now()?);
            Ok(())
        };
        match self.layer.db_as(LevelRole::Child).attempt(&attempt, options).await {
            Ok(_) => flight.over(),
            Err(stopped) => {
                if !matches!(stopped, Stopped::Database(Error::Unknown { .. })) {
                    flight.over();
                }
                return Err(stopped);
            }
        }
        self.scope.took(NestingPhase::Body, begun, asked.get());
        self.scope.took(NestingPhase::Commit, asked.get(), self.layer.now()?);
        let conclusion = ended.take().expect("it committed what it concluded");
        self.committed(how, conclusion).await;
        Ok(())
    }

    async fn committed(&self, how: &ChildPlan, conclusion: Conclusion) {
        let nesting = &self.layer.nesting;
        count(&nesting.counters.children);
        let wrote = self.own.level.has_written();
        self.level.take_below(&self.own.level, true);
        let Conclusion { taken, is_compensated } = conclusion;
        self.scope.child_committed(taken);
        self.layer.take_locks_late(self.scope.id, self.own.take_asked()).await;
        if wrote && !is_compensated && !how.without_compensation {
            nesting.warn(
                "an open child wrote something and registered no compensation: if its transaction \
                 is aborted, that stays",
            );
        }
        if self.own.is_touched() {
            // What is not done now is done when the scope ends that has the child's record.
            let _ = self.layer.finish(self.own.id, Finish::own(&self.own)).await;
        }
    }

    /// Compensates what open children of an aborted attempt did.
    ///
    /// # Errors
    /// It is not done yet, and then the whole transaction is not to commit.
    async fn undo(&self, stopped: &Stopped<BodyFailure>) -> Result<(), Error> {
        if let Stopped::Database(error @ Error::Unknown { .. }) = stopped {
            // It may have committed; that can be told when its scope is ended, and not here.
            self.scope.doom(error);
        }
        self.level.take_below(&self.own.level, false);
        if !self.own.is_touched() {
            return Ok(());
        }
        let ended = self.layer.finish(self.own.id, Finish::own(&self.own)).await;
        ended.map(drop).map_err(|error| self.scope.level.blame(error))
    }

    /// Whether the attempt ended because of a lock that was refused, to itself or within it, and
    /// may be made again.
    ///
    /// # Errors
    /// More than this child is to be run again.
    async fn is_refused(&self, layer: &Layer) -> Result<bool, Error> {
        self.scope.check()?;
        let Some((holder, refused)) = self.own.refused() else {
            return Ok(self.own.doomed().is_some());
        };
        // Where it cannot be finished it is in the way of the next attempt as well.
        let _ = layer.meet(holder).await;
        if !layer.nesting.holds(NestingSwitch::GiveBackLocks) {
            return Ok(true);
        }
        match self.scope.doom_holder(&refused) {
            true => {
                layer.nesting.counters.count_aborted_by(self.scope.children());
                Err(refused)
            }
            false => Ok(true),
        }
    }
}
