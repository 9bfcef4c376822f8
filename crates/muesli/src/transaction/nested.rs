//! Closed nesting: children of a transaction, which can be undone and run again alone.

use std::borrow::Borrow;
use std::time::Duration;

use muesli_core::client::{self, AnswerFuture};
use muesli_core::{Abort, Answer, Failure, Nesting, Operation, Txn};

use crate::database::handle::Job;
use crate::error::Error;
use crate::nesting_choice::{Choosing, NestingModel, PartRun};
use crate::recording::RecordedAt;
use crate::transaction::detour::ChildMark;
use crate::transaction::tx::Tx;

/// A level of a transaction, as its coordinator is told of it.
type LevelOperation = fn(Txn, u32) -> Operation;

impl Tx {
    /// Runs a body as a *child* of the transaction: a part of it that can be undone and run again
    /// alone. What it wrote and read is the transaction's when it has returned `Ok`. Where it
    /// returns an error its writes are undone, and the transaction may go on without them.
    ///
    /// Children are worth their while where a part of a long transaction meets others often: where
    /// a read in a child finds that something the transaction has read was overwritten since, the
    /// transaction goes on at the present if that was read in a child, and only that child is run
    /// again; otherwise the whole transaction is, as without children. A child that was run again
    /// so often that [`child_retries`](crate::Retry::child_retries) is used up makes the whole
    /// transaction be run again.
    ///
    /// Children may have children. A transaction has one child at a time, and takes no operations
    /// itself while that is open: this and a second one fail with [`Error::ChildOpen`]. A body
    /// that meets an error of the database passes it on: the outer ones, up to the one that is to
    /// run again, go by what the database said, whatever a body makes of it.
    ///
    /// Under protocols without levels (`granola`) a child is run as a part of its transaction, and
    /// where it returns an error after it has written the transaction cannot commit.
    ///
    /// ```
    /// use muesli::{Db, Error, Options, SpaceOptions};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::open(Options::default().space("accounts", SpaceOptions::default()))?;
    /// let accounts = db.space("accounts")?.typed::<u64, i64>();
    /// db.blocking().transact(async move |tx| {
    ///     accounts.put(tx, &1, &100).await?;
    ///     let bonus = tx.nested(async |child| {
    ///         accounts.put(child, &1, &1_000_000).await?;
    ///         Err::<(), _>(Error::rollback("not today"))
    ///     });
    ///     assert!(bonus.await.is_err());
    ///     assert_eq!(accounts.get(tx, &1).await?, Some(100));
    ///     Ok::<_, Error>(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the body returns; [`Error::ChildOpen`]; [`Error::PartialAbort`] and
    /// [`Error::Conflict`] where an outer body is to run again.
    pub async fn nested<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: AsyncFn(&Tx) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let ran = self.run_child(&|tx| tx, &body, false).await?;
        Ok(ran.expect("a child that does not wait passes it on"))
    }

    /// Runs a body as a child, each time with what is `made` of its handle; `None`: it was
    /// [given up](Tx::retry), and that is `caught` here.
    pub(crate) async fn run_child<T, E, H, F>(
        &self,
        made: &impl Fn(Tx) -> H,
        body: &F,
        caught: bool,
    ) -> Result<Option<T>, E>
    where
        H: Borrow<Tx>,
        F: AsyncFn(&H) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        if !caught && self.choosing.as_ref().is_some_and(|it| it.model() == NestingModel::Flat) {
            return self.run_part(false, made, body).await.map(Some);
        }
        let mut run = ChildRun::begin(self, caught).await?;
        loop {
            let child = made(self.child());
            let ran = body(&child).await;
            match run.after_body(child.borrow(), ran.is_ok()).await? {
                ChildEnd::Ended => return ran.map(Some),
                ChildEnd::GaveUp => return Ok(None),
                ChildEnd::UndoneAlone => {}
            }
        }
    }

    /// Runs a body as a part of this level; where one that only reads ends with an error there is
    /// nothing to undo.
    pub(crate) async fn run_part<T, E, H, F>(
        &self,
        only_reads: bool,
        made: &impl Fn(Tx) -> H,
        body: &F,
    ) -> Result<T, E>
    where
        H: Borrow<Tx>,
        F: AsyncFn(&H) -> Result<T, E>,
        E: From<Error> + 'static,
    {
        let open = OpenPart::begin(self, only_reads)?;
        let part = made(self.part());
        let ran = body(&part).await;
        open.after_body(part.borrow(), ran.is_ok())?;
        ran
    }

    /// Asks the coordinator about a level of its transaction, after a pause.
    async fn level(
        &self,
        what: LevelOperation,
        level: u32,
        pause: Duration,
    ) -> Result<Answer, Error> {
        let Some((db, home)) = self.other_loop() else {
            return self.level_here(what(self.txn, level), pause).await;
        };
        let tx = self.at_home();
        db.run_on(home, async move || tx.level_here(what(tx.txn, level), pause).await).await?
    }

    async fn level_here(&self, operation: Operation, pause: Duration) -> Result<Answer, Error> {
        if pause > Duration::ZERO {
            let sleep = self.here(|engine| engine.sleep(crate::time::nanos(pause)))?;
            AnswerFuture::new(self.database, sleep).await?;
        }
        self.operate_recorded(operation).await
    }
}

/// A child, with all the runs of its body.
struct ChildRun<'a> {
    open: OpenChild<'a>,
    part: Option<PartRun>,
    /// Where what it asks is recorded, if it is.
    begins: Option<RecordedAt>,
    undone: u32,
    /// That its body gives up is of interest to its parent.
    caught: bool,
}

/// What comes after the body of a child.
enum ChildEnd {
    /// It is over, as its body says.
    Ended,
    /// It waits for a change, which its parent wants to know.
    GaveUp,
    /// It is to be run again.
    UndoneAlone,
}

impl<'a> ChildRun<'a> {
    async fn begin(of: &'a Tx, caught: bool) -> Result<ChildRun<'a>, Error> {
        let begins = of.next_place();
        let part = Choosing::part(of.choosing.as_ref());
        let begun = PartRun::begun(part.as_ref());
        let open = OpenChild::begin(of).await?;
        PartRun::sub_commit_since(part.as_ref(), begun);
        Ok(ChildRun { open, part, begins, undone: 0, caught })
    }

    /// The body has ended, well or not, and had this handle.
    ///
    /// # Errors
    /// An outer body is to be run again, or none is.
    async fn after_body(&mut self, child: &Tx, ended_well: bool) -> Result<ChildEnd, Error> {
        let (of, part) = (self.open.parent, self.part.as_ref());
        of.wake_at(child.alarm());
        let waits = self.caught && child.conflict() == Some(Error::Retry);
        let ended = match child.conflict() {
            _ if waits => self.open.give_up(child.has_written()).await,
            Some(conflict) => Err(conflict),
            None if ended_well => {
                let begun = PartRun::begun(part);
                let merged = self.open.merge().await;
                PartRun::sub_commit_since(part, begun);
                merged
            }
            None => self.open.give_up(child.has_written()).await,
        };
        match ended {
            Ok(()) if waits => return Ok(ChildEnd::GaveUp),
            Ok(()) if ended_well => {
                if child.has_written() {
                    of.note_write();
                }
                part.inspect(|it| it.ended_well());
                if let Some(objects) = child.objects.get() {
                    objects.merge_into(&of.objects);
                }
                return Ok(ChildEnd::Ended);
            }
            Ok(()) => return Ok(ChildEnd::Ended),
            Err(Error::PartialAbort { level }) if level == child.level => {
                part.inspect(|it| it.undone_alone());
            }
            Err(outer) => {
                let is_whole = matches!(outer, Error::Conflict { .. });
                part.filter(|_| is_whole).inspect(|it| it.conflict());
                return Err(self.open.pass_on(outer));
            }
        }
        self.undone += 1;
        if self.undone > of.retry.child_retries {
            return Err(self.open.abort_all().await);
        }
        of.forget_from(self.begins);
        self.open.begin_again(self.undone).await?;
        Ok(ChildEnd::UndoneAlone)
    }
}

/// A child that has begun, and is given up if its future is dropped.
struct OpenChild<'a> {
    parent: &'a Tx,
    level: u32,
    nesting: Nesting,
    /// How far its transaction was when it began, to whoever watches that.
    from: ChildMark,
    /// Whether it has ended.
    ended: bool,
}

impl<'a> OpenChild<'a> {
    async fn begin(parent: &'a Tx) -> Result<OpenChild<'a>, Error> {
        let from = match parent.watcher() {
            Some(watcher) => {
                parent.takes_operations()?;
                watcher.begin_child().await
            }
            None => ChildMark::default(),
        };
        parent.open_child()?;
        let (level, nesting) = (parent.innermost() + 1, Nesting::Closed);
        let mut open = OpenChild { parent, level, nesting, from, ended: false };
        match parent.level(Operation::Nest, level, Duration::ZERO).await {
            Ok(answer) => open.nesting = answer.nested(),
            Err(error) => return Err(open.pass_on(error)),
        }
        Ok(open)
    }

    /// Begins it once more, after it was undone so many times.
    async fn begin_again(&mut self, undone: u32) -> Result<(), Error> {
        self.undone();
        let random = client::with(self.parent.database, |engine| engine.random());
        let pause = self.parent.retry.pause_after(undone, random.unwrap_or(u64::from(undone)));
        match self.parent.level(Operation::Nest, self.level, pause).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.pass_on(error)),
        }
    }

    /// What it did is its parent's.
    async fn merge(&mut self) -> Result<(), Error> {
        if self.nesting == Nesting::Closed {
            self.parent.level(Operation::Merge, self.level, Duration::ZERO).await?;
        }
        self.end();
        Ok(())
    }

    /// Its body gave up: its writes are undone, if there are any.
    async fn give_up(&mut self, has_written: bool) -> Result<(), Error> {
        match self.nesting {
            Nesting::Closed => {
                self.parent.level(Operation::Unnest, self.level, Duration::ZERO).await?;
            }
            Nesting::Flat if has_written => {
                self.parent.level(cannot_undo, self.level, Duration::ZERO).await?;
            }
            Nesting::Flat => {} // What it has read its transaction is validated with.
        }
        self.undone();
        self.end();
        Ok(())
    }

    /// Its parent, or one further out, is to run again, or cannot go on.
    fn pass_on(&mut self, error: Error) -> Error {
        self.end();
        self.parent.failed(error)
    }

    /// The whole transaction is to be run again.
    async fn abort_all(&mut self) -> Error {
        let aborted = self.parent.level(retried_in_vain, self.level, Duration::ZERO).await;
        let conflict = Error::Conflict { reason: Abort::StaleRead, attempts: 1 };
        self.pass_on(aborted.err().unwrap_or(conflict))
    }

    /// What it did so far is undone.
    fn undone(&self) {
        if let Some(watcher) = self.parent.watcher() {
            watcher.undo_child(self.from);
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.parent.close_child();
    }
}

/// A part of a level that has begun. Where it does not end well, its level may not either: what it
/// did is not undone.
struct OpenPart<'a> {
    of: &'a Tx,
    /// There is nothing to undo.
    only_reads: bool,
    run: Option<PartRun>,
}

impl<'a> OpenPart<'a> {
    fn begin(of: &'a Tx, only_reads: bool) -> Result<OpenPart<'a>, Error> {
        if !only_reads {
            of.open_child()?; // Readers are in nobody's way.
        }
        Ok(OpenPart { of, only_reads, run: Choosing::part(of.choosing.as_ref()) })
    }

    /// The body has ended, well or not, and had this handle.
    ///
    /// # Errors
    /// An outer body is to be run again, or none is.
    fn after_body(self, part: &Tx, ended_well: bool) -> Result<(), Error> {
        let of = self.of;
        of.wake_at(part.alarm());
        if part.has_written() {
            of.note_write();
        }
        if let Some(conflict) = part.conflict() {
            let is_whole = matches!(conflict, Error::Conflict { .. });
            self.run.as_ref().filter(|_| is_whole).inspect(|it| it.conflict());
            let error = of.failed(conflict);
            self.end();
            return Err(error);
        }
        if !ended_well {
            return Ok(()); // Dropped, it fails.
        }
        self.run.as_ref().inspect(|it| it.ended_well());
        part.check_parts().map_err(|error| of.failed(error))?;
        if let Some(objects) = part.objects.get() {
            objects.merge_into(&of.objects);
        }
        self.end();
        Ok(())
    }

    fn end(mut self) {
        if !self.only_reads {
            self.of.close_child();
        }
        self.only_reads = true; // There is nothing left to do.
    }
}

impl Drop for OpenPart<'_> {
    fn drop(&mut self) {
        if !self.only_reads {
            self.of.close_child();
            self.of.fail_part();
        }
    }
}

/// Its transaction ends: the protocol has no levels, and a child's writes cannot be undone alone.
fn cannot_undo(txn: Txn, _level: u32) -> Operation {
    let reason = "a child of the transaction gave up, and its protocol undoes no part of one";
    Operation::Abort(txn, Failure::Refused(reason.into()))
}

/// Its transaction ends: a child was run again too often.
fn retried_in_vain(txn: Txn, _level: u32) -> Operation {
    Operation::Abort(txn, Failure::Aborted(Abort::StaleRead))
}

impl Drop for OpenChild<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.undone();
        self.end();
        let what = match self.nesting {
            Nesting::Closed => Operation::Unnest,
            Nesting::Flat => cannot_undo,
        };
        let (database, operation) = (self.parent.database, what(self.parent.txn, self.level));
        let Some((db, home)) = self.parent.other_loop() else {
            client::with(database, |engine| engine.operate(operation));
            return;
        };
        if let Some(driver) = &db.inner.driver {
            let end = async move { drop(client::with(database, |it| it.operate(operation))) };
            let job: Job = Box::new(move || Box::pin(end));
            let _ = driver.submit(home, job); // A stopped loop has forgotten it anyway.
        }
    }
}
