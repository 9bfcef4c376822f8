//! How fast the world is: nodes and their clients, run with the small test protocol, so that what
//! is measured is mostly the simulator. An event is a message that arrives, a timer, a sleep that
//! is over, or a sync.

#[path = "../tests/it/registers/mod.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod registers;

use std::rc::Rc;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use muesli_core::{Catalog, NodeId, Typed};
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::Plan;
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, ClientStart, Setup, World};

use registers::Registers;
use registers::client::Db;

const CLIENTS_A_NODE: u32 = 10;
const KEYS: u64 = 100_000;

fn world(nodes: u32, virtual_time: VirtualTime, logging: bool) -> World {
    let homes: Vec<NodeId> = (0..nodes).map(NodeId).collect();
    let catalog = Arc::new(Catalog::new(&homes, 1, &homes).expect("a catalog"));
    let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(20));
    let latency = Latency::Exponential { least, mean_tail };
    let topology =
        Topology::uniform(nodes as usize, ChannelClass { latency, bandwidth: 1_250_000_000 });
    let plan = Plan::calm(virtual_time);
    let protocol = Arc::new(Typed::<Registers>(Default::default()));
    let mut setup = Setup::new(protocol, Seed::new(1), catalog, topology, plan);
    setup.settings.logging = logging;
    let mut world = World::new(setup).expect("a setup");
    let db = Db(world.database());
    let body: ClientBody = Rc::new(move |start| Box::pin(half_reads(db, start)));
    for client in 0..nodes * CLIENTS_A_NODE {
        world.add_client(NodeId(client % nodes), Rc::clone(&body));
    }
    world
}

/// Reads a register or writes two, one after the other.
async fn half_reads(db: Db, start: ClientStart) {
    let mut random = start.seed.stream();
    let mut key = move || format!("user{}", random.below(KEYS));
    let mut number = 0;
    while !start.stop.is_raised() {
        number += 1;
        let open = db.begin().expect("the node is up");
        if number % 2 == 0 {
            open.get(&key()).await.expect("reads succeed");
        } else {
            open.put(&key(), number).expect("the transaction is open");
            open.put(&key(), number).expect("the transaction is open");
            open.commit().await.expect("commits succeed");
        }
    }
}

/// Nodes, and how much virtual time is enough to measure.
const SIZES: [(u32, u64); 2] = [(10, 100), (160, 20)];

#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn in_memory(bencher: Bencher<'_, '_>, (nodes, millis): (u32, u64)) {
    events(bencher, nodes, millis, false);
}

#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn logged(bencher: Bencher<'_, '_>, (nodes, millis): (u32, u64)) {
    events(bencher, nodes, millis, true);
}

/// Items are the events of the world.
fn events(bencher: Bencher<'_, '_>, nodes: u32, millis: u64, logging: bool) {
    let end = VirtualTime::ZERO + Span::from_millis(millis);
    let mut counted = world(nodes, end, logging);
    counted.run_until(end);
    bencher
        .counter(ItemsCount::new(counted.events()))
        .with_inputs(|| world(nodes, end, logging))
        .bench_local_values(|mut world| {
            world.run_until(end);
            world
        });
}

fn main() {
    divan::main();
}
