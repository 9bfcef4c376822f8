//! Runs open children: each attempt is a transaction of its own, and what is left of one that was
//! aborted is compensated before the next.

use std::cell::Cell;
use std::sync::Arc;

use muesli_core::{LevelRole, Nanos};

use super::child::{Conclusion, OpenTx};
use super::ending::Finish;
use super::handed::OpenNested;
use super::layer::Layer;
use super::layer::counts::{NestingPhase, count};
use super::level::NestingLevel;
use super::scope::{InFlight, NestingScope};
use crate::bodies::attempts::{AttemptOptions, Attempts, Stopped};
use crate::bodies::timeout::Timeout;
use crate::error::Error;
use crate::nesting_choice::{Choosing, NestingModel};
use crate::transaction::tx::Tx;

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
    /// # Errors
    /// What the body returned; nothing of the child was changed then. [`Error::LockRefused`], which
    /// this transaction's body is to return, and any other that
    /// [`Db::transact`](crate::Db::transact) has.
    pub async fn open_nested<T, E, F>(&self, how: OpenNested, body: F) -> Result<T, E>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        if let Some(fault) = &how.fault {
            return Err(fault.clone().into());
        }
        let (layer, scope) = (&self.layer, &self.scope);
        let _running = self.begin_open()?;
        layer.nesting.limits.check_depth(scope.chain().count())?;
        if self.choosing.as_ref().is_some_and(|it| it.model() != NestingModel::Open) {
            return self.run_inline(&how, &body).await;
        }
        self.undo_parts().await?;
        let part = Choosing::open_child(self.choosing.as_ref());
        let timeout = Timeout::new(layer.db.inner.database, layer.db.timeout);
        let mut made = Attempts::default();
        loop {
            scope.check()?;
            let (attempt, begun) = (ChildAttempt::new(self)?, layer.now()?);
            let stopped = match attempt.run(&how, &body, made.next(&timeout)).await {
                Ok(answer) => {
                    part.inspect(|it| it.ended_well());
                    return Ok(answer);
                }
                Err(stopped) => stopped,
            };
            attempt.undo(&stopped).await?;
            if attempt.own.refused().is_some() {
                self.choosing.as_ref().inspect(|it| it.refused());
            }
            let is_refused = attempt.is_refused(layer).await;
            if is_refused.is_err() {
                part.as_ref().inspect(|it| it.conflict());
            }
            if is_refused? {
                made.forget_losses();
                layer.db.pause(made.count()).await?;
                timeout.check()?;
            } else {
                layer.db.after_stop(stopped, &mut made, &timeout).await?;
            }
            part.as_ref().inspect(|it| it.undone_alone());
            scope.took(NestingPhase::Lost, begun, layer.now()?);
        }
    }
}

/// One attempt of an open child.
struct ChildAttempt<'a> {
    layer: &'a Layer,
    /// What it is of.
    scope: &'a Arc<NestingScope>,
    /// The level that it is a child of.
    level: &'a NestingLevel,
    /// What its own open children are of.
    own: Arc<NestingScope>,
}

impl<'a> ChildAttempt<'a> {
    fn new(of: &'a OpenTx) -> Result<ChildAttempt<'a>, Error> {
        let (layer, scope, level) = (&of.layer, &of.scope, &of.level);
        let own = NestingLevel::new(layer.nesting.rows.space.id, Some(level));
        let own = NestingScope::new(layer.draw()?, own, Some(scope));
        Ok(ChildAttempt { layer, scope, level, own })
    }

    async fn run<T, E, F>(
        &self,
        how: &OpenNested,
        body: &F,
        options: AttemptOptions<'_>,
    ) -> Result<T, Stopped<E>>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let flight = InFlight::of_child(&self.own);
        let (begun, asked) = (self.layer.now()?, Cell::new(Nanos(0)));
        let ended: Cell<Option<(T, Conclusion)>> = Cell::new(None);
        let attempt = async |tx: &Tx| -> Result<(), E> {
            let child = OpenTx::new(tx, self.layer, &self.own);
            let done = child.run_body(how, body(&child)).await;
            let concluded = match done {
                Ok(answer) => match child.conclude(how).await {
                    Ok(conclusion) => Ok((answer, conclusion)),
                    Err(error) => Err(error.into()),
                },
                Err(error) => Err(error),
            };
            child.pass_conflict(tx);
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
        let (answer, conclusion) = ended.take().expect("it committed what it concluded");
        self.committed(how, conclusion).await;
        Ok(answer)
    }

    async fn committed(&self, how: &OpenNested, conclusion: Conclusion) {
        let nesting = &self.layer.nesting;
        count(&nesting.counters.children);
        let wrote = self.own.level.has_written();
        self.level.take_below(&self.own.level, true);
        let Conclusion { taken, is_compensated } = conclusion;
        self.scope.child_committed(taken);
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
    async fn undo<E>(&self, stopped: &Stopped<E>) -> Result<(), Error> {
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
        match self.scope.doom_holder(&refused) {
            true => {
                layer.nesting.counters.count_aborted_by(self.scope.children());
                Err(refused)
            }
            false => Ok(true),
        }
    }
}
