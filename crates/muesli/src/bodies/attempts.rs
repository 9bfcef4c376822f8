//! The attempts of a transaction: begin, run the body, commit; after a conflict, again.

use std::any::Any;
use std::pin::pin;
use std::sync::Arc;

use muesli_core::client::{self, Answered};
use muesli_core::{Abort, Gave, Nanos, OpId, Staleness, Txn, TxnOptions};

use crate::bodies::failure::BodyFailure;
use crate::bodies::timeout::{Timeout, WithTimeout};
use crate::database::handle::Db;
use crate::dispatch::yield_now::yield_now;
use crate::error::Error;
use crate::nesting_choice::{Choosing, NestingModel};
use crate::recording::Recording;
use crate::time::nanos;
use crate::transaction::commit::{AskedCommit, Fate};
use crate::transaction::open::RollbackOnDrop;
use crate::transaction::retrying::ReadChange;
use crate::transaction::tx::Tx;

/// Who is told of a change at once pauses as after so many conflicts.
const SOON_ATTEMPTS: u32 = 3;

/// Who has lost so often asks to be let through, where the protocol knows how to.
const LOSSES_MOST: u32 = 8;

/// How the children of transactions may be run, where that is chosen.
const MODELS: [NestingModel; 2] = [NestingModel::Flat, NestingModel::Closed];

impl Db {
    /// Runs a body until it commits or is not to be tried again; with the answer, what delayed
    /// actions gave if it `asks` that.
    pub(crate) fn repeat<T, E, F>(
        &self,
        body: &F,
        asks: bool,
        fate: Option<&Arc<Fate>>,
    ) -> impl Future<Output = Result<(T, Vec<Gave>), E>>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let timeout = Timeout::new(self.inner.database, self.timeout);
        self.repeat_after(body, asks, fate, (self.first_attempt(), timeout))
    }

    /// As if none had been made of a body yet.
    pub(crate) fn first_attempt(&self) -> Attempts {
        let tried_since = self.options.tried_since;
        let losses = if tried_since > Nanos(0) { LOSSES_MOST } else { 0 };
        Attempts { watches: true, losses, lost_since: tried_since, ..Attempts::default() }
    }

    /// As [`repeat`](Self::repeat), after the attempts that were made of what time there is.
    pub(crate) async fn repeat_after<T, E, F>(
        &self,
        body: &F,
        asks: bool,
        fate: Option<&Arc<Fate>>,
        (mut made, timeout): (Attempts, Timeout),
    ) -> Result<(T, Vec<Gave>), E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let choosing = Choosing::begin(self, &MODELS)?;
        loop {
            let choosing = choosing.as_ref();
            let how = AttemptOptions { fate, asks, choosing, ..made.next(&timeout) };
            match self.attempt(body, how).await {
                Ok(done) => {
                    choosing.inspect(|it| it.committed());
                    return Ok(done);
                }
                Err(Stopped::Body(error)) => return Err(error),
                Err(Stopped::Database(error)) => {
                    self.attempt_again(error, choosing, &mut made, &timeout).await?;
                }
            }
        }
    }

    /// Makes ready for another attempt, where how children are run may be chosen.
    ///
    /// # Errors
    /// Why there is none.
    #[cold]
    async fn attempt_again(
        &self,
        error: Error,
        choosing: Option<&Arc<Choosing>>,
        made: &mut Attempts,
        timeout: &Timeout,
    ) -> Result<(), Error> {
        if let (Error::Retry, Some(choosing)) = (&error, choosing) {
            choosing.sleeps();
        }
        self.after_stop(error, made, timeout).await?;
        choosing.map_or(Ok(()), |it| it.begin_attempt())
    }

    /// Makes ready for another attempt, after one that stopped.
    ///
    /// # Errors
    /// Why there is none.
    #[cold]
    pub(crate) async fn after_stop(
        &self,
        error: Error,
        made: &mut Attempts,
        timeout: &Timeout,
    ) -> Result<(), Error> {
        let reason = match error {
            Error::Conflict { reason, .. } => reason,
            Error::FootprintViolation(why) => {
                let last = self.inner.footprint_violation.lock();
                *last.unwrap_or_else(|broken| broken.into_inner()) = Some(why);
                Abort::FootprintViolation
            }
            // A child that went on without its parent's knowing of it.
            Error::PartialAbort { .. } => Abort::StaleRead,
            Error::Retry => {
                if !made.watches {
                    self.sleep(self.inner.retry.pause_max).await?;
                }
                made.count = 0; // Nobody was in the way.
                made.forget_losses();
                made.sees_change = true;
                return timeout.check();
            }
            error => return Err(error),
        };
        made.eager |= reason.ends_delays();
        made.losses += 1;
        if made.lost_since == Nanos(0) {
            let now = client::with(self.inner.database, |engine| engine.now());
            made.lost_since = now.ok_or(Error::Closed)?.max(Nanos(1));
        }
        self.after_conflict(reason, made.count).await?;
        timeout.check()
    }

    /// Counts a conflict and pauses, or gives up.
    #[cold]
    pub(crate) async fn after_conflict(&self, reason: Abort, attempts: u32) -> Result<(), Error> {
        self.inner.count_conflict(reason);
        if attempts >= self.inner.retry.attempts || !reason.is_retryable() {
            return Err(Error::Conflict { reason, attempts });
        }
        self.pause(attempts).await
    }

    /// One attempt, and no more. What it does is compiled for each body, so that all but the body
    /// is in functions that are not.
    pub(crate) async fn attempt<T, E, F>(
        &self,
        body: &F,
        how: AttemptOptions<'_>,
    ) -> Result<(T, Vec<Gave>), Stopped<E>>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        self.arrive();
        let txn = match self.begin_at_once(self.attempt_options(&how))? {
            Some(txn) => txn,
            None => {
                yield_now().await;
                self.begin_now(self.attempt_options(&how))?
            }
        };
        let tx = Tx::at(self.inner.database, self.inner.origin, txn, self.inner.retry);
        let mut open = RollbackOnDrop::new(tx.choosing(how.choosing));
        let mut checkpoints = self.checkpoints.then(|| CheckpointRuns::begin(&mut open));
        let ran = loop {
            let ran = WithTimeout::new(pin!(body(&open.tx)), how.timeout).await;
            let Some(runs) = &mut checkpoints else { break ran };
            match runs.after_body(self, &mut open, ran.is_ok(), &how).await? {
                BodyEnd::Ended => break ran,
                BodyEnd::Failed(error) => break Err(error.into()),
                BodyEnd::GoesBack => {}
            }
        };
        match ran {
            Ok(answer) => {
                let (_, given) = match self.commit_at_once(&mut open, how.fate)? {
                    AskedCommit::Ended(answered) => answered,
                    AskedCommit::Waits(op) => self.end_commit(&mut open, how.fate, op).await?,
                };
                assert!(how.asks || given.is_empty(), "nobody asked what delayed actions gave");
                Ok((answer, given))
            }
            Err(error) => {
                let stopped = Stopped::by(error, open.tx.conflict());
                if matches!(stopped, Stopped::Database(Error::Retry)) {
                    self.wait_where_it_ended(&open, &how).await?;
                }
                Err(stopped)
            }
        }
    }

    /// Begins a transaction; `None`: it is to begin once others on this loop have run.
    pub(crate) fn begin_at_once(&self, options: TxnOptions) -> Result<Option<Txn>, Error> {
        let begun = client::with(self.inner.database, |engine| {
            (!engine.should_yield()).then(|| engine.begin(options))
        });
        match begun.ok_or(Error::Closed)? {
            Some(begun) => Ok(Some(begun.at_once()?)),
            None => Ok(None),
        }
    }

    /// Begins a transaction for which others have run.
    #[cold]
    fn begin_now(&self, options: TxnOptions) -> Result<Txn, Error> {
        let begun = client::with(self.inner.database, |engine| engine.begin(options));
        Ok(begun.ok_or(Error::Closed)?.at_once()?)
    }

    fn attempt_options(&self, how: &AttemptOptions<'_>) -> TxnOptions {
        let AttemptOptions { eager, sees_change, tried_since, .. } = *how;
        let options = TxnOptions { eager, tried_since, ..self.txn_options() };
        let fresh = options.staleness.map(|it| if sees_change { Staleness::NONE } else { it });
        // Readers keep no note of what they read, unless that is to be looked at once more.
        let strict = options.strict || sees_change && options.read_only;
        let follower_reads = options.follower_reads && !sees_change;
        TxnOptions { staleness: fresh, strict, follower_reads, ..options }
    }

    /// Commits an attempt whose body has ended well.
    fn commit_at_once(
        &self,
        open: &mut RollbackOnDrop,
        fate: Option<&Arc<Fate>>,
    ) -> Result<AskedCommit, Error> {
        open.tx.check_parts()?;
        let asked = open.tx.ask_for_commit(self, fate);
        if !matches!(asked, Ok(AskedCommit::Waits(_))) {
            open.ended();
        }
        asked
    }

    /// Waits for a commit that was asked for.
    async fn end_commit(
        &self,
        open: &mut RollbackOnDrop,
        fate: Option<&Arc<Fate>>,
        op: OpId,
    ) -> Result<Answered, Error> {
        let ended = self.end_asked(fate, op).await;
        open.ended();
        ended
    }

    /// A body has asked to be run again once something has changed: waits for that, if it is to be
    /// waited for here.
    #[cold]
    async fn wait_where_it_ended(
        &self,
        open: &RollbackOnDrop,
        how: &AttemptOptions<'_>,
    ) -> Result<(), Error> {
        if how.watches && self.has_notes(how) {
            how.choosing.inspect(|it| it.sleeps());
            self.wait_for_change(&open.tx, how.timeout).await?;
        }
        Ok(())
    }

    /// Waits until something that a transaction has read has changed, or for a while where that
    /// cannot be known: a change that is told of at once may be none.
    pub(crate) async fn wait_for_change(&self, tx: &Tx, timeout: &Timeout) -> Result<(), Error> {
        match tx.watch_reads()? {
            Some(mut change) => self.until_changed(&mut change, timeout).await,
            None => self.sleep(self.inner.retry.pause_max).await,
        }
    }

    /// Whether an attempt that was made so has kept a note of what it has read: a reader runs once
    /// more, with such, before it waits for a change.
    pub(crate) fn has_notes(&self, how: &AttemptOptions<'_>) -> bool {
        how.sees_change || self.options.strict || !self.options.read_only
    }

    /// Waits for a change, and a little longer where it is told of at once; or until the
    /// transaction is to be run again without one.
    pub(crate) async fn until_changed(
        &self,
        change: &mut ReadChange,
        timeout: &Timeout,
    ) -> Result<(), Error> {
        let now = || client::with(self.inner.database, |engine| engine.now()).ok_or(Error::Closed);
        let asked = now()?;
        match change.until.filter(|until| timeout.is_after(*until, asked)) {
            None => WithTimeout::new(pin!(change.wait()), timeout).await?,
            Some(until) => {
                let alarm = Timeout::ending(self.inner.database, until);
                match WithTimeout::new(pin!(change.wait()), &alarm).await {
                    Ok(()) => {}
                    Err(Error::TransactionTimeout { .. }) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        let waited = now()?.0.saturating_sub(asked.0);
        match waited >= nanos(self.inner.retry.pause).0 {
            true => Ok(()),
            false => self.pause(SOON_ATTEMPTS).await,
        }
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&self, attempts: u32) -> Result<(), Error> {
        let random = client::with(self.inner.database, |engine| engine.random());
        let random = random.ok_or(Error::Closed)?;
        self.sleep(self.inner.retry.pause_after(attempts, random)).await
    }
}

/// How often a body was run from a checkpoint.
struct CheckpointRuns {
    recording: Arc<Recording>,
    undone: u32,
}

/// What comes after a body.
enum BodyEnd {
    /// It has ended, as it says.
    Ended,
    /// What it did since a checkpoint could not be made its own.
    Failed(Error),
    /// It is run again, from its last checkpoint that still holds.
    GoesBack,
}

impl CheckpointRuns {
    /// A transaction may set checkpoints from now on.
    #[cold]
    fn begin(open: &mut RollbackOnDrop) -> Box<CheckpointRuns> {
        let recording = Arc::<Recording>::default();
        open.tx = open.tx.recorded(&recording);
        Box::new(CheckpointRuns { recording, undone: 0 })
    }

    /// A body with checkpoints has ended, well or not.
    ///
    /// # Errors
    /// It went back to checkpoints too often; the time is over.
    async fn after_body(
        &mut self,
        db: &Db,
        open: &mut RollbackOnDrop,
        ended_well: bool,
        how: &AttemptOptions<'_>,
    ) -> Result<BodyEnd, Error> {
        let mut end = BodyEnd::Ended;
        if ended_well && let Err(error) = open.tx.merge_levels().await {
            end = BodyEnd::Failed(error);
        }
        let Some(level) = open.tx.goes_back_to() else { return Ok(end) };
        self.undone += 1;
        if self.undone > db.inner.retry.child_retries {
            return Err(Error::Conflict { reason: Abort::StaleRead, attempts: 1 });
        }
        self.recording.go_back(level);
        db.pause(self.undone).await?;
        how.timeout.check()?;
        open.tx = open.tx.recorded(&self.recording);
        Ok(BodyEnd::GoesBack)
    }
}

/// Why an attempt did not commit.
pub(crate) enum Stopped<E> {
    /// The database says so, to the body perhaps.
    Database(Error),
    /// The body says so.
    Body(E),
}

impl<E> From<Error> for Stopped<E> {
    fn from(error: Error) -> Stopped<E> {
        Stopped::Database(error)
    }
}

impl<E: 'static> Stopped<E> {
    /// A body returned `error`. If its transaction met a conflict, that is why: what the body made
    /// of it is of no interest, since it is to run again.
    #[cold]
    pub fn by(error: E, conflict: Option<Error>) -> Stopped<E> {
        let of_body = &error as &dyn Any;
        let kept = || of_body.downcast_ref::<BodyFailure>().and_then(BodyFailure::database);
        let own = of_body.downcast_ref::<Error>().or_else(kept);
        match conflict.or_else(|| own.filter(|error| error.is_conflict()).cloned()) {
            Some(conflict) => Stopped::Database(conflict),
            None => Stopped::Body(error),
        }
    }
}

/// How an attempt is made.
#[derive(Clone, Copy)]
pub(crate) struct AttemptOptions<'a> {
    /// The time that the transaction has, with all its attempts.
    pub timeout: &'a Timeout,
    /// Of the caller, if it is on another thread.
    pub fate: Option<&'a Arc<Fate>>,
    /// Delayed actions are done at once.
    pub eager: bool,
    /// What delayed actions gave may be asked.
    pub asks: bool,
    /// One that asks for a [`retry`](Tx::retry) waits until something that it has read has changed.
    pub watches: bool,
    /// It waits for a change, and is to see that, though it may be stale otherwise; it keeps a note
    /// of what it reads, though it may be read-only.
    pub sees_change: bool,
    /// As in [`TxnOptions`].
    pub tried_since: Nanos,
    /// How its children are run, where that is chosen.
    pub choosing: Option<&'a Arc<Choosing>>,
}

/// The attempts that were made of a body since nobody was in its way.
#[derive(Default)]
pub(crate) struct Attempts {
    count: u32,
    /// How many of them lost to others, one after the other.
    losses: u32,
    /// Delayed actions are done at once from now on.
    eager: bool,
    /// A [`retry`](Tx::retry) waits until something that was read has changed; else for a while.
    watches: bool,
    /// One of them asked to wait for a change.
    sees_change: bool,
    /// Since when it has lost to others; zero: it has not.
    lost_since: Nanos,
}

impl Attempts {
    /// One was made elsewhere.
    pub fn count_one(&mut self) {
        self.count += 1;
    }

    /// The next one is made once something has changed that the last one has read.
    pub fn see_change(&mut self) {
        self.sees_change = true;
    }

    /// Of a layer that waits itself where its body asks for a [`retry`](Tx::retry).
    pub fn that_wait() -> Attempts {
        Attempts { watches: true, ..Attempts::default() }
    }

    /// How the next one is made.
    pub fn next<'a>(&mut self, timeout: &'a Timeout) -> AttemptOptions<'a> {
        self.count += 1;
        let (eager, watches, sees_change) = (self.eager, self.watches, self.sees_change);
        let tried_since = if self.losses >= LOSSES_MOST { self.lost_since } else { Nanos(0) };
        let (fate, asks, choosing) = (None, false, None);
        AttemptOptions { timeout, fate, eager, asks, watches, sees_change, tried_since, choosing }
    }

    /// Somebody is in the way who holds an abstract lock: to be let through is of no use, and would
    /// keep the lock's row from who is to release it.
    pub fn forget_losses(&mut self) {
        (self.losses, self.lost_since) = (0, Nanos(0));
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }
}
