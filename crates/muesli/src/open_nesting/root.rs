//! Transactions that have open children, from outside.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use muesli_core::client::Task;
use muesli_core::{Abort, LevelRole, Nanos, client};

use super::child::OpenTx;
use super::child::body::{AnyBody, KeptBody};
use super::ending::Finish;
use super::layer::counts::NestingPhase;
use super::layer::{Layer, NestingSwitch, OpenNesting};
use super::level::{AllowedAccess, NestingLevel};
use super::rows::{ScopeEnd, ScopeRow, end_key, scope_key};
use super::scope::{InFlight, NestingScope};
use super::waiting::{RetryWait, to_be_waited_for};
use crate::bodies::attempts::{AttemptOptions, Attempts, Stopped};
use crate::bodies::failure::BodyFailure;
use crate::bodies::timeout::Timeout;
use crate::database::handle::Db;
use crate::error::Error;
use crate::nesting_choice::{Choosing, NestingModel};
use crate::transaction::tx::Tx;

/// What transactions with open children may be run as, where that is chosen.
const MODELS: [NestingModel; 3] = [NestingModel::Flat, NestingModel::Closed, NestingModel::Open];

impl Db {
    /// Runs `body` in a transaction that may have [open children](OpenTx::open_atomic), and commits
    /// it; conflicts are retried as by [`transact`](Self::transact), after the children's
    /// compensations were run. When this returns, handlers have been run and locks have been
    /// released, or somebody else is left to do it.
    ///
    /// If the future is dropped, its children are compensated in the background.
    ///
    /// # Errors
    /// What the body returned, or what [`transact`](Self::transact) says, which is
    /// [`Error::TransactionTimeout`] where others held a lock for longer than the
    /// [timeout](Self::timeout); [`Error::Nesting`] for a mistake of the program. All of these
    /// after the compensations. [`Error::Unfinished`] where these could not be run to their end.
    /// After [`Error::Unknown`] it may have committed.
    ///
    /// # Panics
    /// Where the body does.
    pub async fn transact_nested<T, E, F>(&self, nesting: &OpenNesting, body: F) -> Result<T, E>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E> + Send + 'static, // It is sent to a loop's thread.
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        if self.is_here() {
            return self.transact_nested_here(nesting, body).await;
        }
        let (db, nesting) = (self.clone(), nesting.clone());
        let there = async move || db.transact_nested_here(&nesting, body).await;
        self.run_on(self.next_loop(), there).await?
    }

    /// As [`transact_nested`](Self::transact_nested), for tasks on one of the database's loops
    /// only: the body need not be `Send`, and borrows what is around it.
    ///
    /// # Errors
    /// As there; [`Error::Closed`] on any other thread.
    pub async fn transact_nested_here<T, E, F>(
        &self,
        nesting: &OpenNesting,
        body: F,
    ) -> Result<T, E>
    where
        F: AsyncFn(&OpenTx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let kept = KeptBody::new(&body);
        kept.end(self.run_nested(nesting, &kept).await)
    }

    async fn run_nested(
        &self,
        nesting: &OpenNesting,
        body: &dyn AnyBody,
    ) -> Result<(), BodyFailure> {
        if self.checkpoints {
            let text = "a transaction with open children has no checkpoints, as what these did is \
                        committed: run it on a handle without, with closed children \
                        (`OpenTx::nested`), or without open ones";
            return Err(Error::Nesting(text.to_owned()).into());
        }
        let layer = Layer::new(self, nesting);
        let timeout = Timeout::new(self.inner.database, self.timeout);
        // Open children of one that only reads are parts of it, but locks are in its way as well.
        let choosing = match layer.reads_only() {
            true => Choosing::begin_observing(self, &MODELS)?,
            false => Choosing::begin(self, &MODELS)?,
        };
        let (mut made, mut waiting) = (Attempts::that_wait(), RetryWait::default());
        loop {
            let attempt = RootAttempt::new(&layer)?;
            let (choosing, begun) = (choosing.as_ref(), layer.now()?);
            let options = AttemptOptions { choosing, watches: false, ..made.next(&timeout) };
            let stopped = match attempt.run(body, options).await {
                Ok(()) => {
                    if let Some(choosing) = choosing {
                        choosing.committed();
                    }
                    return Ok(());
                }
                Err(stopped) => stopped,
            };
            if matches!(stopped, Stopped::Database(_)) {
                body.forget();
            }
            attempt.scope.level.fault().map_or(Ok(()), Err)?;
            if let Some((holder, _)) = attempt.scope.refused() {
                choosing.inspect(|it| it.refused());
                // Where it cannot be finished it is in the way of the next attempt as well.
                let _ = layer.meet(holder).await;
            }
            if attempt.is_to_be_repeated() {
                made.forget_losses();
                self.pause(made.count()).await?;
                let took = layer.now()?.0.saturating_sub(begun.0);
                self.sleep(layer.stagger(took, made.count())?).await?;
                timeout.check()?;
            } else {
                if matches!(stopped, Stopped::Database(Error::Retry)) {
                    if let Some(choosing) = choosing {
                        choosing.sleeps();
                    }
                    let left = to_be_waited_for(&attempt.scope);
                    waiting.before_next(&layer, left, &timeout).await?;
                }
                match stopped {
                    Stopped::Body(failure) => return Err(failure),
                    Stopped::Database(error) => {
                        self.after_stop(error, &mut made, &timeout).await?;
                    }
                }
            }
            choosing.map_or(Ok(()), |it| it.begin_attempt())?;
        }
    }
}

/// One attempt of a transaction with open children. Dropped before it has ended, it is ended in the
/// background.
struct RootAttempt<'a> {
    layer: &'a Layer,
    scope: Arc<NestingScope>,
    ended: Cell<bool>,
}

impl<'a> RootAttempt<'a> {
    fn new(layer: &'a Layer) -> Result<RootAttempt<'a>, Error> {
        let are_separate = layer.nesting.holds(NestingSwitch::SeparateLevels);
        let allowed = AllowedAccess { are_separate, reads_only: layer.reads_only() };
        let level = NestingLevel::root(layer.nesting.rows.space.id, allowed);
        let scope = NestingScope::new(layer.draw()?, level, None);
        Ok(RootAttempt { layer, scope, ended: Cell::new(false) })
    }

    async fn run(
        &self,
        body: &dyn AnyBody,
        options: AttemptOptions<'_>,
    ) -> Result<(), Stopped<BodyFailure>> {
        let (flight, begun) = (InFlight::of_root(&self.scope), self.layer.now()?);
        let (has_answered, is_sealed_apart) = (Cell::new(false), Cell::new(false));
        let attempt = async |tx: &Tx| -> Result<(), BodyFailure> {
            let root = OpenTx::new(tx, self.layer, &self.scope);
            let done = body.run(&root).await;
            let looked = root.look_at_locks().await;
            root.pass_conflict(tx);
            if done.is_err() {
                let waiting = (tx, &*self.scope);
                self.layer.wait_untouched(waiting, &options, options.choosing).await?;
            }
            looked?;
            let concluded = match done {
                Ok(()) => {
                    has_answered.set(true);
                    root.conclude_root().await.map_err(BodyFailure::from)
                }
                Err(error) => Err(error),
            };
            root.pass_conflict(tx);
            is_sealed_apart.set(concluded?);
            self.layer.nesting.stop.step()?;
            flight.ask();
            Ok(())
        };
        let is_open = !self.layer.reads_only()
            && options.choosing.is_none_or(|it| it.model() == NestingModel::Open);
        let open = self.layer.db_as(LevelRole::Own);
        let db = if is_open { &*open } else { &self.layer.given };
        let ran = db.attempt(&attempt, options).await;
        let (ran, is_released) = match ran {
            Ok(_) if is_sealed_apart.get() => self.sealed().await,
            ran => (ran.map(drop), false),
        };
        let is_unknown = matches!(ran, Err(Stopped::Database(Error::Unknown { .. })));
        let ending = self.layer.now()?;
        if !is_unknown {
            flight.over();
        }
        let finished = self.finish_touched(is_released).await;
        if is_open {
            let ends = self.count(begun, ending, ran.is_ok())?;
            options.choosing.inspect(|it| it.sub_commits(ends));
        }
        self.ended.set(true);
        match (ran, finished) {
            // What is not done yet somebody else will do.
            (Ok(()), Err(error)) => self.layer.nesting.warn(&error.to_string()),
            (Ok(()), Ok(_)) => {}
            (Err(stopped), finished) if is_unknown => match finished {
                // Its end is a row, so now it is known.
                Ok(ScopeEnd::Committed) if self.scope.children() > 0 => {}
                Ok(ScopeEnd::Aborted) if self.scope.children() > 0 => {
                    return Err(Stopped::Database(abandoned()));
                }
                Ok(_) | Err(_) => return Err(stopped),
            },
            (Err(Stopped::Database(Error::Conflict { .. })), Ok(_))
                if self.hides_failure() && has_answered.get() => {}
            (Err(stopped), Ok(_)) => return Err(stopped),
            (Err(_), Err(error)) => return Err(Stopped::Database(error)),
        }
        assert!(has_answered.get(), "the body has answered");
        Ok(())
    }

    /// For tests: what must not be done, a commit that failed and is not told.
    fn hides_failure(&self) -> bool {
        !self.layer.nesting.holds(NestingSwitch::TellFailedCommit) && self.scope.children() > 0
    }

    /// It has ended, which took from `ending` on: how long its commit and its end took.
    fn count(&self, begun: Nanos, ending: Nanos, committed: bool) -> Result<Duration, Error> {
        let over = self.layer.now()?;
        self.scope.took(NestingPhase::Ending, ending, over);
        let all = over.0.saturating_sub(begun.0);
        let phases = self.scope.phases();
        self.layer.nesting.counters.count_attempt(committed, all, phases);
        let ends = phases[NestingPhase::Commit as usize] + phases[NestingPhase::Ending as usize];
        Ok(Duration::from_nanos(ends))
    }

    /// How its commit ended where its scope is sealed apart; whether the locks went with it.
    async fn sealed(&self) -> (Result<(), Stopped<BodyFailure>>, bool) {
        match self.seal().await {
            Ok(is_released) => (Ok(()), is_released),
            Err(error) => (Err(Stopped::Database(error)), false),
        }
    }

    /// Commits the scope of a transaction that has accessed nothing itself, by one that sees what
    /// its children wrote; whether the locks went with it.
    async fn seal(&self) -> Result<bool, Error> {
        let (id, rows, nesting) = (self.scope.id, self.layer.nesting.rows, &self.layer.nesting);
        let is_first = Cell::new(true);
        let seal = async |tx: &Tx| -> Result<Option<bool>, Error> {
            let mut found = rows.read_all(tx, vec![scope_key(id), end_key(id)]).await?;
            let row: Option<ScopeRow> = found.row(&scope_key(id))?;
            let end: Option<ScopeEnd> = found.row(&end_key(id))?;
            let is_ended = row.is_none() || end.is_some();
            let row = row.unwrap_or_default();
            if is_ended && nesting.holds(NestingSwitch::CheckEnd) {
                return Ok(None);
            }
            // Others may be about to take the same locks; only the first time is it put at risk.
            if is_first.replace(false) && row.next(ScopeEnd::Committed).is_none() {
                self.layer.release_locks(tx, id, &row, ScopeEnd::Committed).await?;
                rows.delete(tx, scope_key(id)).await?;
                return Ok(Some(true));
            }
            rows.write(tx, end_key(id), &ScopeEnd::Committed).await?;
            Ok(Some(false))
        };
        nesting.stop.step()?;
        self.layer.db_as(LevelRole::Own).transact_here(seal).await?.ok_or_else(abandoned)
    }

    /// Ends its scope, if something is left of it.
    async fn finish_touched(&self, is_released: bool) -> Result<ScopeEnd, Error> {
        match self.scope.is_touched() && !is_released {
            true => self.layer.finish(self.scope.id, Finish::own(&self.scope)).await,
            false => Ok(ScopeEnd::Aborted),
        }
    }

    /// Whether another attempt is to be made although the body may have ended with an error.
    fn is_to_be_repeated(&self) -> bool {
        self.scope.doomed().is_some()
    }
}

/// Somebody else ended it.
fn abandoned() -> Error {
    Error::Conflict { reason: Abort::Abandoned, attempts: 1 }
}

impl Drop for RootAttempt<'_> {
    fn drop(&mut self) {
        if self.ended.get() || !self.scope.is_touched() {
            return;
        }
        let (layer, scope) = (self.layer.clone(), self.scope.clone());
        let finish = async move || {
            let _ = layer.finish(scope.id, Finish::own(&scope)).await;
        };
        let make = move || Box::pin(async move { finish().await }) as Task;
        client::with(self.layer.db.inner.database, |engine| engine.spawn(Box::new(make)));
    }
}
