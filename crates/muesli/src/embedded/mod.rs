//! The embedded driver: loops in this process, one thread each.
//!
//! A loop is a node: it has a coordinator and the repositories dealt to it, and nothing of it is
//! shared. Loops talk through bounded rings, one per direction and pair. A turn takes what came
//! in, polls the tasks that are ready, and publishes what goes out; a loop without work looks
//! around for a moment and then sleeps until it is woken. Where loops are to be far from each other
//! ([`Options::sites`]), what comes is held until it would have arrived (`delayed_messages`).
//!
//! Tasks are clients, and transaction bodies shipped from other threads. While the loop polls
//! one, its engine is *here*, and an operation on data of this loop is a function call.

mod closing;
mod delayed_messages;
mod executor;
pub(crate) mod protocols;
mod ring;
mod signal;
mod state;
mod tick;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crossbeam_queue::ArrayQueue;
use muesli_core::machine::has_validators;
use muesli_core::{Catalog, Nanos, NodeId, Parallel, Protocol, Recorder, Settings};
use muesli_protocols::Choice;

use crate::database::handle::{Db, Job, LoopDriver, next_database};
use crate::dispatch::report::Report;
use crate::error::Error;
use crate::options::Options;
use closing::Closing;
use protocols::{start_named, with_masters};
use signal::Signal;
use tick::{Loop, LoopPlan};

/// So many jobs from other threads may wait for a loop; further ones wait to be handed over.
const JOBS_MAX: usize = 1 << 16;

/// Bodies with children of children are polled as deeply as these are nested: a loop has the stack
/// of a process's main thread.
const STACK_BYTES: usize = 8 << 20;

/// What other threads see of a loop.
struct LoopInbox {
    jobs: ArrayQueue<Job>,
    catalog: Mutex<Option<Arc<Catalog>>>,
    signal: Arc<Signal>,
    sent: SentCounts,
    /// Nobody takes jobs any more.
    shut: AtomicBool,
}

impl LoopInbox {
    /// Takes no more jobs. Those that wait are dropped, and whoever waits for them is told.
    fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
        self.drop_jobs();
    }

    fn is_shut(&self) -> bool {
        self.shut.load(Ordering::SeqCst)
    }

    fn drop_jobs(&self) {
        while let Some(job) = self.jobs.pop() {
            // What a job holds is the user's, and may panic as it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(job)));
        }
    }
}

/// How many messages a loop has sent to others, and how often it has handed some over, as of its
/// last turn; apart from what others write.
#[derive(Default)]
#[repr(align(128))]
struct SentCounts {
    messages: AtomicU64,
    packets: AtomicU64,
}

/// The loops of a database, from outside.
struct Loops {
    /// So many of them, the first ones, hold keys and run transactions; the others are masters.
    serving: usize,
    inboxes: Arc<[LoopInbox]>,
    closing: Arc<Closing>,
    threads: Mutex<Vec<JoinHandle<Report>>>,
}

impl Db {
    /// Opens an embedded database: in memory, in this process.
    ///
    /// # Errors
    /// [`Error::Options`] where the options cannot be.
    pub fn open(options: Options) -> Result<Db, Error> {
        open(options)
    }
}

fn open(options: Options) -> Result<Db, Error> {
    if !(1..=1024).contains(&options.loops) {
        return Err(Error::Options(format!("{} loops: there must be 1 to 1024", options.loops)));
    }
    if options.masters > 1024 {
        return Err(Error::Options(format!("{} masters: there can be 1024", options.masters)));
    }
    if options.validator_loops > 1024 {
        let loops = options.validator_loops;
        return Err(Error::Options(format!("{loops} loops for validators: there can be 1024")));
    }
    if options.validator_loops > 0 && options.tree.is_none() {
        return Err(Error::Options("loops for validators are for a tree: give one".to_owned()));
    }
    options.limits.check().map_err(Error::Options)?;
    let loops = options.loops.min(options.repositories.max(1));
    let all = loops + options.masters + options.validator_loops;
    let homes: Vec<_> = (0..options.repositories).map(|r| NodeId((r % loops) as u32)).collect();
    let nodes: Vec<_> = (0..all as u32).map(NodeId).collect();
    let (masters, apart) = nodes[loops..].split_at(options.masters);
    let catalog = Catalog::new(&homes, options.replicas, &nodes)?.with_masters(masters);
    let catalog = catalog.with_partitions_per_repository(options.partitions_per_repository)?;
    let catalog = match &options.sites {
        Some(sites) => catalog.with_sites(sites.sites(loops)),
        None => catalog,
    };
    let mut catalog = match &options.tree {
        Some(plan) => {
            let catalog = catalog.with_tree(plan, apart);
            catalog.map_err(|error| Error::Options(error.to_string()))?
        }
        None => catalog,
    };
    for (name, space) in &options.spaces {
        catalog = catalog.with_space(name, space.clone())?;
    }
    let parallel = (0..all).map(|_| muesli_threads::parallel(options.procedure_threads));
    let parallel = parallel.collect::<Result<_, _>>();
    let parallel = parallel.map_err(|error| Error::Options(error.to_string()))?;
    let start = Start { options: &options, parallel, catalog: Arc::new(catalog) };
    start_named(&options.protocol, start)
}

/// What the loops are started with, under the protocol that the options name.
struct Start<'a> {
    options: &'a Options,
    /// Who runs what of each loop can be run at the same time.
    parallel: Vec<Parallel>,
    catalog: Arc<Catalog>,
}

impl Choice for Start<'_> {
    type Output = Result<Db, Error>;

    fn chosen<P: Protocol>(self, switches: P::Switches) -> Result<Db, Error> {
        if self.options.masters > 0 && !P::has_masters(&switches) {
            let (name, having) = (&self.options.protocol, with_masters().join(", "));
            let error = format!("protocol `{name}` has no masters; these have: {having}");
            return Err(Error::Options(error));
        }
        if self.options.tree.is_some() && !has_validators::<P>(&switches) {
            let error = format!("protocol `{}` goes by no tree", self.options.protocol);
            return Err(Error::Options(error));
        }
        Ok(start::<P>(self.options, self.parallel, self.catalog, &switches))
    }
}

fn start<P: Protocol>(
    options: &Options,
    parallel: Vec<Parallel>,
    catalog: Arc<Catalog>,
    switches: &P::Switches,
) -> Db {
    let database = next_database();
    let mut settings = Settings {
        limits: options.limits,
        actions: options.actions.clone(),
        procedures: options.procedures.clone(),
        hash_seed: fastrand::u64(..),
        record_collected: options.history,
        batching: options.batching,
        ..Settings::default()
    };
    let loops = parallel.len();
    let serving = loops - options.masters - options.validator_loops;
    if let Some(sites) = &options.sites {
        sites.prepare(&mut settings);
    }
    let inboxes: Arc<[LoopInbox]> = (0..loops)
        .map(|_| LoopInbox {
            jobs: ArrayQueue::new(JOBS_MAX),
            catalog: Mutex::new(None),
            signal: Arc::new(Signal::default()),
            sent: SentCounts::default(),
            shut: AtomicBool::new(false),
        })
        .collect();
    let closing = Arc::new(Closing::of(loops, options.applies_at_close));
    let links = ring::all_pairs(loops);
    let clock = quanta::Clock::new();
    let origin = clock.raw();
    let mut threads = Vec::new();
    for (at, (links, parallel)) in links.into_iter().zip(parallel).enumerate() {
        let plan = LoopPlan {
            database,
            at,
            catalog: catalog.clone(),
            settings: Arc::new(Settings { parallel, ..settings.clone() }),
            switches: switches.clone(),
            links,
            delays: options
                .sites
                .as_ref()
                .map_or_else(|| vec![Nanos(0); loops], |sites| sites.delays_to(at, loops, serving)),
            inboxes: inboxes.clone(),
            closing: closing.clone(),
            close_within: options.close_within,
            clock: clock.clone(),
            origin,
            recorder: options.history.then(|| Recorder::sampling(options.sampling)),
            spin: options.spin,
        };
        let name = format!("muesli-loop-{at}");
        let alive = LoopAlive { inboxes: inboxes.clone(), closing: closing.clone(), at };
        let run = move || {
            let report = Loop::<P>::new(plan).run();
            drop(alive);
            report
        };
        let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(run);
        threads.push(thread.expect("the system has a thread for each loop"));
    }
    let driver = Loops { serving, inboxes, closing, threads: Mutex::new(threads) };
    let db = Db::of_process(
        database,
        catalog,
        (options.retry, options.procedures.clone()),
        Some(Box::new(driver)),
    );
    db.timeout(options.transaction_timeout)
}

/// Lives as long as a loop: dropped, nobody waits for it any more. A loop that panicked takes the
/// others with it, because they would wait for its answers.
struct LoopAlive {
    inboxes: Arc<[LoopInbox]>,
    closing: Arc<Closing>,
    at: usize,
}

impl Drop for LoopAlive {
    fn drop(&mut self) {
        self.inboxes[self.at].shut();
        if std::thread::panicking() {
            self.closing.break_off();
            self.inboxes.iter().for_each(|inbox| inbox.signal.wake());
        }
    }
}

impl Loops {
    /// Closes the loops and waits for them; what they recorded. On a loop's own thread nobody
    /// waits: it has to go on for the others to end.
    fn stop(&self) -> Vec<Report> {
        self.closing.ask();
        for inbox in self.inboxes.iter() {
            inbox.signal.wake();
        }
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(|broken| broken.into_inner()));
        let me = std::thread::current().id();
        if threads.iter().any(|thread| thread.thread().id() == me) {
            return Vec::new();
        }
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    }
}

impl LoopDriver for Loops {
    fn loops(&self) -> usize {
        self.serving
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
