//! YCSB's workload A on 160 nodes under SCORe, for one second of virtual time: how long the
//! simulator takes for it, in processor time, so that a busy machine does not count. It runs once
//! and prints what it measured.
//!
//! Half of the transactions read a record, half read and write one. Records of 100 bytes are
//! scattered over the nodes and chosen evenly, or by a zipfian distribution (Gray et al. 1994,
//! constant 0.99), where conflicts over the hottest records leave less to simulate.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use cpu_time::ProcessTime;
use muesli::{Db, Error, Retry, Space, SpaceOptions};
use muesli_core::{Catalog, NodeId, Typed};
use muesli_protocols::score::Score;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::Plan;
use muesli_sim::random::{Random, Seed};
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, ClientStart, Setup, World};

const NODES: u32 = 160;
const CLIENTS_A_NODE: u32 = 10;
const RECORDS: u64 = 160_000;
const RECORD: [u8; 100] = [b'x'; 100];

/// How records are chosen.
#[derive(Clone, Copy)]
enum Choice {
    Even,
    Zipfian(Zipfian),
}

impl Choice {
    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Choice::Even => random.below(RECORDS),
            Choice::Zipfian(zipfian) => zipfian.draw(random),
        }
    }
}

/// Draws numbers below a bound, small ones often.
#[derive(Clone, Copy)]
struct Zipfian {
    items: f64,
    zeta: f64,
    eta: f64,
}

const THETA: f64 = 0.99;

impl Zipfian {
    fn new(items: u64) -> Self {
        let zeta = |items: u64| (1..=items).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let (all, items) = (zeta(items), items as f64);
        let eta = (1.0 - (2.0 / items).powf(1.0 - THETA)) / (1.0 - zeta(2) / all);
        Zipfian { items, zeta: all, eta }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let even = random.fraction();
        if even * self.zeta < 1.0 {
            return 0;
        }
        if even * self.zeta < 1.0 + 0.5_f64.powf(THETA) {
            return 1;
        }
        let partitions_per_repository =
            (self.eta * even - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (self.items * partitions_per_repository) as u64
    }
}

async fn client(
    db: Db,
    start: ClientStart,
    choice: Choice,
    done: Rc<Cell<u64>>,
) -> Result<(), Error> {
    let (db, records) = (db.independent(), db.space("usertable")?);
    let mut random = start.seed.stream();
    while !start.stop.is_raised() {
        let (key, update) = (choice.draw(&mut random), random.chance(0.5));
        match transaction(&db, records, key, update).await {
            Ok(()) => done.set(done.get() + 1),
            Err(Error::Conflict { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

async fn transaction(db: &Db, records: Space, key: u64, update: bool) -> Result<(), Error> {
    let key = format!("user{key}");
    db.transact_here(async move |tx| {
        tx.get(records, key.as_str()).await?;
        if update {
            tx.put(records, key.as_str(), &RECORD[..]).await?;
        }
        Ok(())
    })
    .await
}

fn world(choice: Choice, end: VirtualTime, done: &Rc<Cell<u64>>) -> World {
    let homes: Vec<NodeId> = (0..NODES).map(NodeId).collect();
    let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
    let catalog = catalog.with_space("usertable", SpaceOptions::default()).expect("a space");
    let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(20));
    let latency = Latency::Exponential { least, mean_tail };
    let topology =
        Topology::uniform(NODES as usize, ChannelClass { latency, bandwidth: 1_250_000_000 });
    let setup = Setup::new(
        Arc::new(Typed::<Score>(Default::default())),
        Seed::new(1),
        Arc::new(catalog),
        topology,
        Plan::calm(end),
    );
    let catalog = Arc::clone(&setup.catalog);
    let mut world = World::new(setup).expect("a setup");
    let db = Db::for_driver(world.database(), catalog, Retry::default());
    let done = Rc::clone(done);
    let body: ClientBody = Rc::new(move |start| {
        let ending = client(db.clone(), start, choice, Rc::clone(&done));
        Box::pin(async move { ending.await.expect("nothing but conflicts goes wrong") })
    });
    for client in 0..NODES * CLIENTS_A_NODE {
        world.add_client(NodeId(client % NODES), Rc::clone(&body));
    }
    world
}

fn measure(name: &str, choice: Choice, span: Span) {
    let done = Rc::default();
    let end = VirtualTime::ZERO + span;
    let mut world = world(choice, end, &done);
    let started = ProcessTime::now();
    world.run_until(end);
    let seconds = started.elapsed().as_secs_f64();
    let (events, done) = (world.events(), done.get());
    println!(
        "YCSB A ({name}), {NODES} nodes, {} clients, {span} of virtual time: \
         {seconds:.1} s of processor; \
         {done} transactions, {events} events, {:.0} events a second",
        NODES * CLIENTS_A_NODE,
        events as f64 / seconds,
    );
}

fn main() {
    // Cargo's test runner builds benches too; what it runs is only a look whether they work.
    let benched = std::env::args().any(|argument| argument == "--bench");
    let span = if benched { Span::from_secs(1) } else { Span::from_millis(1) };
    measure("zipfian", Choice::Zipfian(Zipfian::new(RECORDS)), span);
    measure("even", Choice::Even, span);
}
