//! Runs a workload on an embedded database: its clients are tasks on the loops of the data.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use muesli::blocking::block_on;
use muesli::{Db, Error, Options, Report};
use muesli_core::{Catalog, Nanos, NodeId};

use crate::chance::Chance;
use crate::tally::{Tallies, Tally};
use crate::workload::{AnyWorkload, Check, Clock, Seat};

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
    /// How long the clients run.
    pub length: Length,
    /// Where chance comes from.
    pub seed: u64,
}

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// What the clients counted.
    pub tally: Tally,
    /// How long they ran.
    pub length: Duration,
    /// Messages between nodes, those of loading and checking included.
    pub messages: u64,
    /// What was checked afterwards.
    pub checks: Vec<Check>,
    /// The catalog of the database.
    pub catalog: Arc<Catalog>,
    /// What the nodes left behind.
    pub reports: Vec<Report>,
}

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
    for (name, space) in workload.spaces() {
        options = options.space(name, space);
    }
    let db = Db::open(options)?;
    let length = block_on(load_and_run(&db, workload, plan, tallies))?;
    let checked = block_on({
        let (workload, session) = (workload.clone(), db.session());
        db.run_on(0, async move || workload.check(&session).await)
    });
    let mut checks = checked??;
    let tally = tallies.total();
    checks.push(Check {
        name: "no unexpected errors",
        ok: tally.unexpected.is_none(),
        details: tally.unexpected.clone().unwrap_or_default(),
    });
    let catalog = db.catalog();
    let reports = db.close();
    let messages = reports.iter().map(|report| report.messages).sum();
    Ok(Outcome { tally, length, messages, checks, catalog, reports })
}

async fn load_and_run(
    db: &Db,
    workload: &Arc<dyn AnyWorkload>,
    plan: &Embedded,
    tallies: &Arc<Tallies>,
) -> Result<Duration, Error> {
    let (loader, session) = (workload.clone(), db.session());
    db.run_on(0, async move || loader.load(&session).await).await??;
    let begun = Instant::now();
    let clients = (0..tallies.clients() as u32)
        .map(|client| run_client(db, workload.clone(), plan, tallies.clone(), client, begun));
    for ended in join_all(clients).await {
        ended?;
    }
    Ok(begun.elapsed())
}

async fn run_client(
    db: &Db,
    workload: Arc<dyn AnyWorkload>,
    plan: &Embedded,
    tallies: Arc<Tallies>,
    client: u32,
    begun: Instant,
) -> Result<(), Error> {
    let clients = tallies.clients() as u32;
    let home = client as usize % db.loops();
    let share = plan.length.share(client, clients);
    let deadline = match plan.length {
        Length::Time(length) => Nanos(length.as_nanos() as u64),
        Length::Transactions(_) => Nanos(u64::MAX),
    };
    let (db_of_client, seed) = (db.session(), plan.seed);
    let body = async move || {
        let clock: Clock = Rc::new(move || Nanos(begun.elapsed().as_nanos() as u64));
        let seat = Seat {
            client,
            life: 1,
            clients,
            node: NodeId(home as u32),
            db: db_of_client,
            chance: Chance::new(seed, client, 1),
            clock,
            stop: Box::new(move |ended, now| ended >= share || now >= deadline),
            pause: None,
            tallies,
        };
        workload.run(seat).await
    };
    db.run_on(home, body).await?
}
