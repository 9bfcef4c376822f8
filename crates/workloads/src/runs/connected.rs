//! Runs a workload on a cluster that misbehaves: several native clients, a stop from outside, and
//! checks that wait for the cluster to serve again.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use muesli::blocking::block_on;
use muesli::{Db, Error, Report};
use muesli_core::{Nanos, NodeId};

use crate::chance::Chance;
use crate::check::Check;
use crate::tally::Tallies;
use crate::workload::{AnyWorkload, Clock, Pause, Seat};

/// The clients of a workload, dealt to native clients of a cluster.
pub struct Clients {
    /// The native clients; each has connections of its own.
    pub dbs: Vec<Db>,
    /// What they run.
    pub workload: Arc<dyn AnyWorkload>,
    /// What they count, and how many they are.
    pub tallies: Arc<Tallies>,
    /// Where chance comes from.
    pub seed: u64,
    /// The longest pause between two transactions of a client.
    pub pause_most: Duration,
    /// Set to make them stop.
    pub stop: Arc<AtomicBool>,
}

impl Clients {
    /// Makes the workload's spaces and writes its first data.
    ///
    /// # Errors
    /// What the database says.
    pub fn load(&self) -> Result<(), Error> {
        let db = &self.dbs[0];
        for (name, space) in self.workload.spaces(db.catalog_of_keys().repositories()) {
            db.create_space(name, space)?;
        }
        let (loader, session) = (self.workload.clone(), db.independent());
        block_on(db.run_on(0, async move || loader.load(&session).await))?
    }

    /// Runs the clients until they are stopped.
    ///
    /// # Errors
    /// A client cannot go on.
    pub fn run(&self) -> Result<(), Error> {
        let origin = Instant::now();
        let clients = (0..self.tallies.clients()).map(|client| self.run_client(client, origin));
        block_on(join_all(clients)).into_iter().collect()
    }

    async fn run_client(&self, client: u32, origin: Instant) -> Result<(), Error> {
        let place = client as usize % self.dbs.len();
        let db = &self.dbs[place];
        let (stop, clients) = (self.stop.clone(), self.tallies.clients());
        let (session, workload, tallies) =
            (db.independent(), self.workload.clone(), self.tallies.clone());
        let (seed, most, pausing) = (self.seed, self.pause_most, db.clone());
        let body = async move || {
            let clock: Clock = Rc::new(move || Nanos(origin.elapsed().as_nanos() as u64));
            let seat = Seat {
                client,
                incarnation: 1,
                clients,
                node: NodeId(place as u32),
                db: session,
                chance: Chance::new(seed, client, 1),
                clock,
                stop: Box::new(move |_, _| stop.load(Ordering::Relaxed)),
                pause: Some(pause(pausing, most)),
                tallies,
                several: false,
            };
            workload.run(seat).await
        };
        db.run_on(0, body).await?
    }

    /// Checks the data; as long as the cluster does not answer, again, until `patience` is over.
    ///
    /// # Errors
    /// The cluster does not answer, or something else than faults is in the way.
    pub fn check(&self, patience: Duration) -> Result<Vec<Check>, Error> {
        let deadline = Instant::now() + patience;
        loop {
            let (workload, session) = (self.workload.clone(), self.dbs[0].independent());
            let check = async move || workload.check(&session).await;
            match block_on(self.dbs[0].run_on(0, check))? {
                Err(Error::Timeout { .. } | Error::Conflict { .. })
                    if Instant::now() < deadline => {}
                done => return done,
            }
        }
    }

    /// Closes the native clients; what they recorded.
    pub fn close(&self) -> Vec<Report> {
        self.dbs.iter().flat_map(Db::close).collect()
    }
}

fn pause(db: Db, most: Duration) -> Pause {
    Box::new(move |chance: &mut Chance| {
        let (db, nanos) = (db.clone(), chance.below(most.as_nanos() as u64 + 1));
        Box::pin(async move {
            // A closed database is noticed by the transaction that follows.
            let _ = db.sleep(Duration::from_nanos(nanos)).await;
        })
    })
}
