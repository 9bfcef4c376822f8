//! The embedded driver: loops in this process, one thread each.
//!
//! A loop is a node: it has a coordinator and the repositories dealt to it, and nothing of it is
//! shared. Loops talk through bounded rings, one per direction and pair. A tick takes what came
//! in, polls the tasks that are ready, and publishes what goes out; a loop without work looks
//! around for a moment and then sleeps until it is woken. Where loops are to be far from each other
//! ([`Options::sites`]), what comes is held until it would have arrived (`delayed_messages`).
//! Where the data last, each loop has a [`log`] and checkpoints, as a server has.
//!
//! Tasks are clients, and transaction bodies shipped from other threads. While the loop polls
//! one, its engine is *here*, and an operation on data of this loop is a function call.
//!
//! All that a loop has but its tasks is its [`state`], behind a lock (`dispatch::state_lock`). The
//! loop's thread is in it during its ticks, and blocking threads are in it while it is not: they
//! run their bodies themselves. Whoever is in it runs what the others wait for. A blocking thread
//! also does at other loops what it has said to them, where nobody is in their state
//! ([`exchange`]).

mod access;
mod closing;
mod compaction;
mod exchange;
mod executor;
mod links;
#[cfg_attr(not(feature = "cluster"), path = "without_log.rs")]
mod log;
pub(crate) mod protocols;
mod running;
mod state;
mod tick;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_queue::ArrayQueue;
use muesli_core::catalog::Sites;
use muesli_core::{Catalog, Nanos, NodeId, Parallel, Protocol, Recorder, Settings, Timestamp};
use muesli_protocols::Choice;

use crate::database::handle::{Db, Job, LoopDriver, next_database};
use crate::dispatch::access::LoopAccess;
use crate::error::Error;
use crate::options::Options;
use crate::time::nanos;
use access::{OtherLoops, StateAccess};
use closing::Closing;
use links::neighbours::{LoopClock, LoopNeighbours};
use links::ring;
use links::signal::Signal;
use log::{DatabaseStorage, LoopStorage};
use protocols::{judge_options, start_named};
use running::{Loops, run};
use tick::LoopPlan;

/// So many jobs from other threads may wait for a loop; further ones wait to be handed over.
const JOBS_MAX: usize = 1 << 16;

/// Is told when a loop has done its part of a compaction; dropped where it never will.
type CompactionWaiter = mpsc::Sender<()>;

/// What other threads see of a loop.
struct LoopInbox {
    /// The loop's state.
    access: Arc<dyn LoopAccess>,
    jobs: ArrayQueue<Job>,
    catalog: Mutex<Option<Arc<Catalog>>>,
    signal: Arc<Signal>,
    sent: SentCounts,
    /// Who waits for what the loop keeps to be compacted.
    compactions: Mutex<Vec<CompactionWaiter>>,
    /// Nobody takes jobs any more.
    shut: AtomicBool,
}

impl LoopInbox {
    /// The mailbox of a loop, and its state, which the loop's thread makes.
    fn new<P: Protocol>(others: OtherLoops) -> (Arc<StateAccess<P>>, LoopInbox) {
        let signal = Arc::new(Signal::default());
        let access = Arc::new(StateAccess::new(Arc::clone(&signal), others));
        let inbox = LoopInbox {
            access: Arc::clone(&access) as Arc<dyn LoopAccess>,
            jobs: ArrayQueue::new(JOBS_MAX),
            catalog: Mutex::new(None),
            signal,
            sent: SentCounts::default(),
            compactions: Mutex::default(),
            shut: AtomicBool::new(false),
        };
        (access, inbox)
    }

    /// Takes no more jobs, and nobody enters any more. Those that wait are dropped, and whoever
    /// waits for them is told.
    fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
        self.access.shut();
        self.drop_jobs();
        self.forget_compactions();
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

impl Db {
    /// Opens an embedded database, in this process: in memory, or with the files that
    /// [`Options::durable`] names, and all that was committed to them before.
    ///
    /// # Errors
    /// [`Error::Options`] where the options cannot be; [`Error::Storage`] where the files cannot be
    /// used: another process does, they are of another database, or they are damaged.
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
    let loops = match options.shards {
        Some(_) => options.loops, // Some may have none.
        None => options.loops.min(options.repositories.max(1)),
    };
    let all = loops + options.masters + options.validator_loops;
    let nodes: Vec<_> = (0..all as u32).map(NodeId).collect();
    let homes = homes(&options, &nodes[..loops])?;
    let (masters, apart) = nodes[loops..].split_at(options.masters);
    let catalog = Catalog::new(&homes, options.replicas, &nodes)?.with_masters(masters);
    let catalog = catalog.with_partitions_per_repository(options.partitions_per_repository)?;
    let catalog = match &options.sites {
        Some(sites) => catalog.with_sites(sites.sites(loops)),
        None => catalog,
    };
    let catalog = match &options.tree {
        Some(plan) => {
            let catalog = catalog.with_tree(plan, apart);
            catalog.map_err(|error| Error::Options(error.to_string()))?
        }
        None => catalog,
    };
    let parallel = (0..all).map(|_| muesli_threads::parallel(options.procedure_threads));
    let parallel = parallel.collect::<Result<_, _>>();
    let parallel = parallel.map_err(|error| Error::Options(error.to_string()))?;
    start_named(&options.protocol, Start { options: &options, parallel, catalog })
}

/// Homes of the repositories on these loops.
fn homes(options: &Options, loops: &[NodeId]) -> Result<Vec<NodeId>, Error> {
    let Some(shards) = &options.shards else {
        return Ok((0..options.repositories).map(|at| loops[at % loops.len()]).collect());
    };
    let named = (shards.repositories(), shards.replicas());
    if (options.repositories, options.replicas) != named {
        let Options { repositories, replicas, .. } = options;
        let error = format!(
            "`shards` names {} repositories with {} replicas of each key, and `repositories` is \
             {repositories}, `replicas` {replicas}: give them so",
            named.0, named.1
        );
        return Err(Error::Options(error));
    }
    #[cfg(feature = "cluster")]
    if options.durable.is_some() {
        let error = "`shards` is to try out sites in one process, whose data are in memory: leave \
                     `durable` out";
        return Err(Error::Options(error.to_owned()));
    }
    let sites = options.sites.as_ref().map_or_else(Sites::default, |it| it.sites(loops.len()));
    let homes = shards.homes(&sites, loops, 1);
    homes.map_err(|error| Error::Options(error.to_string()))
}

/// Where the data of a database last, if they do, and what each loop begins with there.
type Files = Option<(DatabaseStorage, Vec<LoopStorage>)>;

/// The files of a database, if it is to have some, and the catalog with its spaces: first those
/// that are there, in their order.
fn open_files(options: &Options, mut catalog: Catalog) -> Result<(Files, Arc<Catalog>), Error> {
    let files = log::open_files(options, &catalog)?;
    let kept = files.iter().flat_map(|(storage, _)| storage.spaces());
    let planned = options.spaces.iter().map(|(name, space)| (&**name, space));
    for (name, space) in kept.chain(planned) {
        catalog = catalog.with_space(name, space.clone())?;
    }
    Ok((files, Arc::new(catalog)))
}

/// What the loops are started with, under the protocol that the options name.
struct Start<'a> {
    options: &'a Options,
    /// Who runs what of each loop can be run at the same time.
    parallel: Vec<Parallel>,
    /// Without spaces.
    catalog: Catalog,
}

impl Choice for Start<'_> {
    type Output = Result<Db, Error>;

    fn chosen<P: Protocol>(self, switches: P::Switches) -> Result<Db, Error> {
        judge_options::<P>(self.options, &switches)?;
        let (files, catalog) = open_files(self.options, self.catalog)?;
        let mut spaces = catalog.spaces().iter();
        spaces
            .try_for_each(|it| it.options.judge_everywhere(&it.name, P::KEEPS_EVERYWHERE))
            .map_err(Error::Options)?;
        start::<P>(self.options, self.parallel, catalog, files, &switches)
    }
}

/// What the nodes of all loops are told.
fn settings(options: &Options, logging: bool) -> Settings {
    let mut settings = Settings {
        limits: options.limits,
        actions: options.actions.clone(),
        procedures: options.procedures.clone(),
        hash_seed: fastrand::u64(..),
        logging,
        record_collected: options.history,
        batching: options.batching,
        ..Settings::default()
    };
    if let Some(sites) = &options.sites {
        sites.prepare(&mut settings);
    }
    settings
}

fn start<P: Protocol>(
    options: &Options,
    parallel: Vec<Parallel>,
    catalog: Arc<Catalog>,
    files: Files,
    switches: &P::Switches,
) -> Result<Db, Error> {
    let (database, loops) = (next_database(), parallel.len());
    let serving = loops - options.masters - options.validator_loops;
    let others = OtherLoops::of(loops, files.is_some() || options.sites.is_some());
    let made = (0..loops).map(|_| LoopInbox::new::<P>(others));
    let (accesses, inboxes): (Vec<_>, Vec<_>) = made.unzip();
    let inboxes: Arc<[LoopInbox]> = inboxes.into();
    let closing = Arc::new(Closing::of(loops, options.applies_at_close));
    let settings = settings(options, files.is_some());
    let (storage, of_loops) = files.unzip();
    let mut of_loops = of_loops.into_iter().flatten();
    let clock = quanta::Clock::new();
    let (origin, began) = (clock.raw(), time_at_origin(storage.is_some()));
    let clock = LoopClock { clock, origin, began };
    let (opened, results) = mpsc::channel();
    let mut threads = Vec::new();
    let parts = ring::all_pairs(loops).into_iter().zip(parallel).zip(accesses);
    for (at, ((links, parallel), access)) in parts.enumerate() {
        let storage = of_loops.next();
        let lost_disk = storage.as_ref().and_then(LoopStorage::lost_disk);
        let plan = LoopPlan {
            database,
            loops: LoopNeighbours { at, inboxes: inboxes.clone(), closing: closing.clone() },
            access,
            catalog: catalog.clone(),
            settings: Arc::new(Settings { parallel, lost_disk, ..settings.clone() }),
            switches: switches.clone(),
            links,
            delays: options
                .sites
                .as_ref()
                .map_or_else(|| vec![Nanos(0); loops], |sites| sites.delays_to(at, loops, serving)),
            close_within: options.close_within,
            clock: clock.clone(),
            storage,
            recorder: options.history.then(|| Recorder::sampling(options.sampling)),
            spin: options.spin,
        };
        threads.push(run::<P>(plan, opened.clone()));
    }
    drop(opened);
    let (lasts, storage) = (storage.is_some(), Mutex::new(storage));
    let driver = Loops {
        database,
        serving,
        inboxes,
        closing,
        lasts,
        keeps_everywhere: P::KEEPS_EVERYWHERE,
        storage,
        threads: Mutex::new(threads),
    };
    // In memory nothing is to be read first.
    let issued = if lasts { driver.wait_until_open(&results)? } else { Timestamp::ZERO };
    let how = (options.retry, options.procedures.clone());
    let reads_only = driver.is_alone();
    let db = Db::of_process(database, catalog, how, Some(Box::new(driver)));
    // Whoever reads sees what was committed before, whichever repository has it.
    db.see(issued);
    let db = db.timeout(options.transaction_timeout);
    Ok(if reads_only { db.read_only() } else { db })
}

/// Where the data last, times are those of the machine, as timestamps may follow them.
fn time_at_origin(lasts: bool) -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if lasts { nanos(since) } else { Nanos(0) }
}
