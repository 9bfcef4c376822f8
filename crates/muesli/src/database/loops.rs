//! The loops of a database: work for them, their counts, and their end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muesli_core::client::{self, AnswerFuture, Task};
use muesli_core::{Doubt, Outcome, Traffic, TxnId};

use crate::database::compacted::Compacted;
use crate::database::handle::{Db, Job};
use crate::dispatch::oneshot::{self, OneshotReceiver};
use crate::dispatch::report::Report;
use crate::dispatch::shipped::{Ran, Shipped};
use crate::error::Error;
use crate::time::nanos;

impl Db {
    /// Runs a task on one of the database's loops, there where its transactions cost function
    /// calls instead of wake-ups. If the future is dropped, so is the task.
    ///
    /// # Errors
    /// [`Error::Closed`], or [`Error::Lease`] or [`Error::Storage`] where it was closed because of
    /// that.
    ///
    /// # Panics
    /// Where the task does: its panic goes on here.
    pub async fn run_on<T, F>(&self, home: usize, f: F) -> Result<T, Error>
    where
        F: AsyncFnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let answer = Arc::new(Mutex::new(None));
        let there = Arc::clone(&answer);
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move || {
            let task: Task = Box::pin(async move {
                let got = f().await;
                *there.lock().unwrap_or_else(|broken| broken.into_inner()) = Some(got);
            });
            Box::pin(Shipped::new(task, sender))
        });
        self.submit(home, job)?;
        self.until_ended(receiver).await?;
        let answer = answer.lock().unwrap_or_else(|broken| broken.into_inner()).take();
        Ok(answer.expect("a task that has ended has answered"))
    }

    fn submit(&self, home: usize, job: Job) -> Result<(), Error> {
        let driver = self.inner.driver.as_ref().ok_or(Error::Closed)?;
        driver.submit(home % driver.loops(), job).map_err(|_| self.closed())
    }

    /// Waits until a task on one of the loops has ended.
    async fn until_ended(&self, task: OneshotReceiver<Ran>) -> Result<(), Error> {
        match task.await {
            Some(Ok(())) => Ok(()),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(self.closed()),
        }
    }

    /// Why nothing goes on any more.
    pub(crate) fn closed(&self) -> Error {
        let failed = self.inner.driver.as_ref().and_then(|driver| driver.failure());
        failed.unwrap_or(Error::Closed)
    }

    /// Closes the database. No transaction begins any more; open ones may end, for as long as
    /// [`Options::close_within`](crate::Options::close_within) says, and then they are aborted;
    /// commits that are under way are decided and applied everywhere. Then the loops end, and later
    /// calls answer [`Error::Closed`]. Returns what the loops leave behind. Not from a task on a
    /// loop, where nobody waits for the end and nothing is returned.
    pub fn close(&self) -> Vec<Report> {
        self.inner.driver.as_ref().map_or_else(Vec::new, |driver| driver.close())
    }

    /// Makes the files of a durable database as short as they can be, while it is used: each loop
    /// takes a checkpoint now, and what that covers is removed, older checkpoints and files of the
    /// log. Waits until it is done. Meanwhile the folder takes as much more as all data take.
    ///
    /// It is seldom needed: logs are cut behind checkpoints by themselves, after each
    /// [`checkpoint_bytes`](crate::Durable::checkpoint_bytes). Two checkpoints are kept then, so
    /// that one that cannot be read is not the end; afterwards there is one.
    ///
    /// # Errors
    /// [`Error::Options`] where the database is in memory, of a cluster, or asked on a loop;
    /// [`Error::ReadOnly`] where it is opened for reading only; [`Error::Storage`], after which the
    /// database is closed.
    pub fn compact(&self) -> Result<Compacted, Error> {
        self.inner.driver.as_ref().ok_or(Error::Closed)?.compact()
    }

    /// How many loops the database runs on; 1 where a driver of its own runs it.
    pub fn loops(&self) -> usize {
        self.inner.driver.as_ref().map_or(1, |driver| driver.loops())
    }

    /// How many messages the loops have sent each other so far; 0 where a driver of its own runs
    /// the database.
    pub fn messages(&self) -> u64 {
        self.inner.driver.as_ref().map_or(0, |driver| driver.messages())
    }

    /// How many packets the loops have sent each other so far: in each, all the messages of a
    /// moment from one to another. With servers it is the writes to connections, what else than
    /// messages is said there included. 0 where a driver of its own runs the database.
    pub fn packets(&self) -> u64 {
        self.inner.driver.as_ref().map_or(0, |driver| driver.packets())
    }

    /// What this process has said to the servers of a cluster and asked of its system for it; all
    /// zeros where there are none.
    pub fn traffic(&self) -> Traffic {
        self.inner.driver.as_ref().map_or_else(Traffic::default, |driver| driver.traffic())
    }

    /// Waits this long, by the clock of the loop that this task runs on.
    ///
    /// # Errors
    /// [`Error::Closed`], also where the task is on no loop of the database.
    pub async fn sleep(&self, duration: Duration) -> Result<(), Error> {
        let database = self.inner.database;
        let op = client::with(database, |engine| engine.sleep(nanos(duration)));
        Ok(AnswerFuture::new(database, op.ok_or(Error::Closed)?).await.map(drop)?)
    }

    /// What has become of a transaction that ended with [`Error::Unknown`]: its commit goes on
    /// without anybody waiting, so that asking again later may tell more.
    ///
    /// It is remembered by this process, until the database is closed, and of the newest ten
    /// thousand such transactions of a loop. Once told, an outcome does not change.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn outcome(&self, txn: TxnId) -> Result<Outcome, Error> {
        let database = self.inner.database;
        let ask = move || client::with(database, |engine| engine.outcome(txn));
        if self.inner.driver.is_none() {
            return ask().ok_or(Error::Closed);
        }
        for home in 0..self.loops() {
            match self.run_on(home, async move || ask()).await?.ok_or(Error::Closed)? {
                Outcome::NotKnown(Doubt::Elsewhere) => {}
                known => return Ok(known),
            }
        }
        Ok(Outcome::NotKnown(Doubt::Elsewhere))
    }

    pub(crate) fn is_here(&self) -> bool {
        client::with(self.inner.database, |_| ()).is_some()
    }

    /// The loop whose state a thread enters that is none itself: always the same one, so that as
    /// many threads as there are loops are in nobody's way.
    pub(crate) fn loop_of_thread(&self) -> usize {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        match self.loops() {
            1 => 0,
            loops => NUMBER.with(|number| number % loops),
        }
    }

    pub(crate) fn next_loop(&self) -> usize {
        match self.loops() {
            1 => 0,
            loops => self.inner.next_loop.fetch_add(1, Ordering::Relaxed) % loops,
        }
    }
}
