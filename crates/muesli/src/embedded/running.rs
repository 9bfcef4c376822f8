//! The loops of a database, from outside: their threads, work for them, and their end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;

use muesli_core::{Catalog, Protocol, SpaceOptions, Timestamp, client};

use super::LoopInbox;
use super::closing::Closing;
use super::links::neighbours::LoopNeighbours;
use super::log::DatabaseStorage;
use super::tick::{Loop, LoopPlan};
use crate::database::compacted::Compacted;
use crate::database::handle::{Job, LoopDriver};
use crate::dispatch::access::LoopAccess;
use crate::dispatch::report::Report;
use crate::error::Error;

/// Bodies with children of children are polled as deeply as these are nested: a loop has the stack
/// of a process's main thread. Blocking threads, which run their own bodies, have what they were
/// given.
const STACK_BYTES: usize = 8 << 20;

/// The loops of a database, from outside.
pub(super) struct Loops {
    pub database: u64,
    /// So many of them, the first ones, hold keys and run transactions; the others are masters.
    pub serving: usize,
    pub inboxes: Arc<[LoopInbox]>,
    pub closing: Arc<Closing>,
    /// Whether the data last.
    pub lasts: bool,
    /// Whether the protocol keeps spaces that are everywhere.
    pub keeps_everywhere: bool,
    /// Where, until the database is closed.
    pub storage: Mutex<Option<DatabaseStorage>>,
    pub threads: Mutex<Vec<JoinHandle<Report>>>,
}

/// Runs a loop on a thread of its own, which says how its opening went: the largest timestamp that
/// was issued in an earlier incarnation, or why it cannot be opened.
pub(super) fn run<P: Protocol>(
    plan: LoopPlan<P>,
    opened: mpsc::Sender<Result<Timestamp, Error>>,
) -> JoinHandle<Report> {
    let at = plan.loops.at;
    let alive = LoopAlive(plan.loops.clone());
    let run = move || {
        let ready = Loop::<P>::new(plan);
        // Whoever opens a database in memory does not listen.
        let _ = opened.send(ready.as_ref().map(|(_, it)| it.issued()).map_err(Error::clone));
        let report = ready.map_or_else(|_| Report::default(), |(it, engine)| it.run(engine));
        drop(alive);
        report
    };
    let thread = std::thread::Builder::new().name(format!("muesli-loop-{at}"));
    let thread = thread.stack_size(STACK_BYTES).spawn(run);
    thread.expect("the system has a thread for each loop")
}

/// Lives as long as a loop: dropped, nobody waits for it any more. A loop that panicked takes the
/// others with it, because they would wait for its answers.
struct LoopAlive(LoopNeighbours);

impl Drop for LoopAlive {
    fn drop(&mut self) {
        self.0.inbox().shut();
        self.0.inbox().access.end();
        if std::thread::panicking() {
            self.0.closing.break_off();
            self.0.inboxes.iter().for_each(|inbox| inbox.signal.wake());
        }
    }
}

impl Loops {
    /// Waits until all loops have what their files hold. The largest timestamp that was issued
    /// before.
    pub fn wait_until_open(
        &self,
        results: &mpsc::Receiver<Result<Timestamp, Error>>,
    ) -> Result<Timestamp, Error> {
        let mut issued = Timestamp::ZERO;
        for _ in 0..self.inboxes.len() {
            let gone = |_| Err(Error::Storage("a loop panicked as it was opened".to_owned()));
            match results.recv().unwrap_or_else(gone) {
                Ok(at) => issued = issued.max(at),
                Err(error) => {
                    self.closing.break_off();
                    return Err(error);
                }
            }
        }
        Ok(issued)
    }

    pub fn storage(&self) -> MutexGuard<'_, Option<DatabaseStorage>> {
        self.storage.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Whether this thread is a loop's, or in the state of one: then the loops cannot go on while
    /// it waits for them.
    pub fn is_inside(&self, threads: &[JoinHandle<Report>]) -> bool {
        let me = std::thread::current().id();
        client::with(self.database, |_| ()).is_some()
            || threads.iter().any(|thread| thread.thread().id() == me)
    }

    /// Closes the loops and waits for them; what they recorded. On a loop's own thread nobody
    /// waits, and neither does a body that closes its database: the loop has to go on for the
    /// others to end.
    fn stop(&self) -> Vec<Report> {
        self.closing.ask();
        for inbox in self.inboxes.iter() {
            inbox.signal.wake();
        }
        let mut all = self.threads.lock().unwrap_or_else(|broken| broken.into_inner());
        // Whoever closes it from outside waits for all of them.
        if self.is_inside(&all) {
            return Vec::new();
        }
        let threads = std::mem::take(&mut *all);
        drop(all);
        let reports = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
        *self.storage() = None;
        reports
    }
}

impl LoopDriver for Loops {
    fn loops(&self) -> usize {
        self.serving
    }

    fn access(&self, home: usize) -> Option<&dyn LoopAccess> {
        Some(&*self.inboxes[home].access)
    }

    fn submit(&self, home: usize, mut job: Job) -> Result<(), Job> {
        let inbox = &self.inboxes[home];
        loop {
            if inbox.is_shut() {
                return Err(job);
            }
            match inbox.jobs.push(job) {
                Ok(()) => break,
                Err(back) => job = back,
            }
            inbox.signal.wake();
            std::thread::yield_now(); // Back-pressure: the loop has more work than it can hold.
        }
        inbox.signal.wake();
        if inbox.is_shut() {
            inbox.drop_jobs(); // It came after the loop had looked for the last time.
        }
        Ok(())
    }

    fn keep_space(&self, name: &str, options: &SpaceOptions) -> Result<(), Error> {
        if let Some(failed) = self.failure() {
            return Err(failed);
        }
        options.judge_everywhere(name, self.keeps_everywhere).map_err(Error::Options)?;
        match self.storage().as_mut() {
            Some(storage) => storage.keep_space(name, options),
            None if self.lasts => Err(Error::Closed),
            None => Ok(()),
        }
    }

    fn is_alone(&self) -> bool {
        self.storage().as_ref().is_some_and(DatabaseStorage::reads_only)
    }

    fn compact(&self) -> Result<Compacted, Error> {
        self.compact_all()
    }

    fn failure(&self) -> Option<Error> {
        self.closing.failure().map(|why| Error::Storage(why.to_owned()))
    }

    fn reconfigure(&self, catalog: &Arc<Catalog>) {
        for inbox in self.inboxes.iter() {
            *inbox.catalog.lock().unwrap_or_else(|broken| broken.into_inner()) =
                Some(catalog.clone());
            inbox.signal.raise_attention();
        }
    }

    fn messages(&self) -> u64 {
        self.inboxes.iter().map(|inbox| inbox.sent.messages.load(Ordering::Relaxed)).sum()
    }

    fn packets(&self) -> u64 {
        self.inboxes.iter().map(|inbox| inbox.sent.packets.load(Ordering::Relaxed)).sum()
    }

    fn close(&self) -> Vec<Report> {
        self.stop()
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.stop();
    }
}
