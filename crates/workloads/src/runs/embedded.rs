//! Runs a workload on an embedded database, whose clients are tasks on the loops of the data, or
//! on a cluster, whose clients are tasks on the loop of a native client.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use muesli::blocking::block_on;
use muesli::{Db, Error, Options, Report};
use muesli_core::{Catalog, Nanos, NodeId};

use crate::available;
use crate::chance::Chance;
use crate::check::Check;
use crate::loading::is_loaded;
use crate::tally::{Tallies, Tally, UNEXPECTED};
use crate::workload::{AnyWorkload, Clock, Seat};

/// How long the clients run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// So long.
    Time(Duration),
    /// So many transactions, dealt evenly to the clients.
    Transactions(u64),
}

impl Length {
    /// How many transactions a client runs at most.
    pub(crate) fn share(self, client: u32, clients: u32) -> u64 {
        match self {
            Length::Time(_) => u64::MAX,
            Length::Transactions(all) => {
                let clients = u64::from(clients);
                all / clients + u64::from(u64::from(client) < all % clients)
            }
        }
    }
}

/// How an embedded run is made.
#[derive(Clone, Debug)]
pub struct Embedded {
    /// The database; the workload adds its spaces.
    pub options: Options,
    /// How long the clients run before that, without being measured.
    pub warm_up: Duration,
    /// How long the clients run.
    pub length: Length,
    /// Where chance comes from.
    pub seed: u64,
    /// Whether all transactions of the clients are strict.
    pub strict: bool,
}

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// What the clients counted.
    pub tally: Tally,
    /// How long they ran.
    pub length: Duration,
    /// Messages between nodes while they ran.
    pub messages: u64,
    /// Packets that they left in: on a cluster, the writes of this process to its connections.
    pub packets: u64,
    /// What was checked afterwards.
    pub checks: Vec<Check>,
    /// The catalog of the database.
    pub catalog: Arc<Catalog>,
    /// What the nodes left behind.
    pub reports: Vec<Report>,
}

/// Stands for the checks that are not made, as an earlier run has left data on the cluster.
pub const EARLIER: &str = "data of an earlier run";

/// Runs `workload` with as many clients as there are tallies, and checks it.
///
/// # Errors
/// What the database says to the options, and to loading and checking.
pub fn run(
    workload: &Arc<dyn AnyWorkload>,
    plan: &Embedded,
    tallies: &Arc<Tallies>,
) -> Result<Outcome, Error> {
    let mut options = plan.options.clone();
    options.procedures = options.procedures.and(&available::procedures());
    for (name, space) in workload.spaces(options.repositories) {
        options = options.space(name, space);
    }
    run_on(&[Db::open(options)?], workload, plan, tallies)
}

/// As [`run`], on a cluster that is connected already, once or from several places, to which the
/// clients are dealt in turn: the workload's spaces are made there, and the options of the plan do
/// not count. Where an earlier run has left its data there, only what
/// the clients saw themselves is checked: the books of this run do not have what that one did.
///
/// # Errors
/// As [`run`].
pub fn run_connected(
    dbs: &[Db],
    workload: &Arc<dyn AnyWorkload>,
    plan: &Embedded,
    tallies: &Arc<Tallies>,
) -> Result<Outcome, Error> {
    let db = dbs.first().expect("somebody is connected");
    let session = db.independent();
    let before = block_on(db.run_on(0, async move || is_loaded(&session).await))??;
    for (name, space) in workload.spaces(db.catalog_of_keys().repositories()) {
        db.create_space(name, space)?;
    }
    let mut outcome = run_on(dbs, workload, plan, tallies)?;
    if before {
        outcome.checks.retain(|check| check.name == UNEXPECTED);
        let details = "this run's books do not have what was done to them before".to_owned();
        outcome.checks.push(Check { name: EARLIER, ok: true, details });
    }
    Ok(outcome)
}

fn run_on(
    dbs: &[Db],
    workload: &Arc<dyn AnyWorkload>,
    plan: &Embedded,
    tallies: &Arc<Tallies>,
) -> Result<Outcome, Error> {
    let ran = block_on(load_and_run(dbs, workload, plan, tallies))?;
    let db = &dbs[0];
    let checked = block_on({
        let (workload, session) = (workload.clone(), db.independent());
        db.run_on(0, async move || workload.check(&session).await)
    });
    let mut checks = checked??;
    let tally = tallies.total();
    let mut all = ran.warm_up;
    all.add(&tally);
    checks.push(all.expected());
    let (catalog, reports) = (db.catalog(), dbs.iter().flat_map(Db::close).collect());
    let LoopRun { length, messages, packets, .. } = ran;
    Ok(Outcome { tally, length, messages, packets, checks, catalog, reports })
}

/// What came of the clients' run but for their tallies.
struct LoopRun {
    length: Duration,
    messages: u64,
    packets: u64,
    /// What the warm-up counted.
    warm_up: Tally,
}

async fn load_and_run(
    dbs: &[Db],
    workload: &Arc<dyn AnyWorkload>,
    plan: &Embedded,
    tallies: &Arc<Tallies>,
) -> Result<LoopRun, Error> {
    let (loader, session) = (workload.clone(), dbs[0].independent());
    dbs[0].run_on(0, async move || loader.load(&session).await).await??;
    let strict: Vec<Db> = dbs.iter().map(Db::strict).collect();
    let dbs = if plan.strict { &strict } else { dbs };
    let (origin, seed) = (Instant::now(), plan.seed);
    let unmeasured = Arc::new(Tallies::new(tallies.clients()));
    if plan.warm_up > Duration::ZERO {
        let length = Length::Time(plan.warm_up);
        let part = LoopPart { incarnation: 1, length, seed, origin, tallies: unmeasured.clone() };
        part.run(dbs, workload).await?;
    }
    let sent = || (sum(dbs, Db::messages), sum(dbs, Db::packets));
    let (begun, (messages, packets)) = (Instant::now(), sent());
    let part =
        LoopPart { incarnation: 2, length: plan.length, seed, origin, tallies: tallies.clone() };
    part.run(dbs, workload).await?;
    let (length, now) = (begun.elapsed(), sent());
    let (messages, packets) = (now.0 - messages, now.1 - packets);
    Ok(LoopRun { length, messages, packets, warm_up: unmeasured.total() })
}

fn sum(dbs: &[Db], of: fn(&Db) -> u64) -> u64 {
    dbs.iter().map(of).sum()
}

/// One life of all clients.
struct LoopPart {
    incarnation: u32,
    length: Length,
    seed: u64,
    /// When the clock of all parts began.
    origin: Instant,
    tallies: Arc<Tallies>,
}

impl LoopPart {
    async fn run(&self, dbs: &[Db], workload: &Arc<dyn AnyWorkload>) -> Result<(), Error> {
        let deadline = match self.length {
            Length::Time(length) => Nanos((self.origin.elapsed() + length).as_nanos() as u64),
            Length::Transactions(_) => Nanos(u64::MAX),
        };
        let clients = 0..self.tallies.clients();
        let of = |client: u32| &dbs[client as usize % dbs.len()];
        let clients = clients.map(|client| self.run_client(of(client), workload, client, deadline));
        join_all(clients).await.into_iter().collect()
    }

    async fn run_client(
        &self,
        db: &Db,
        workload: &Arc<dyn AnyWorkload>,
        client: u32,
        deadline: Nanos,
    ) -> Result<(), Error> {
        let clients = self.tallies.clients();
        let home = client as usize % db.loops();
        let share = self.length.share(client, clients);
        let LoopPart { incarnation, seed, origin, .. } = *self;
        let (db_of_client, workload, tallies) =
            (db.independent(), workload.clone(), self.tallies.clone());
        let body = async move || {
            let clock: Clock = Rc::new(move || Nanos(origin.elapsed().as_nanos() as u64));
            let seat = Seat {
                client,
                incarnation,
                clients,
                node: NodeId(home as u32),
                db: db_of_client,
                chance: Chance::new(seed, client, incarnation),
                clock,
                stop: Box::new(move |ended, now| ended >= share || now >= deadline),
                pause: None,
                tallies,
                several: false,
            };
            workload.run(seat).await
        };
        db.run_on(home, body).await?
    }
}
