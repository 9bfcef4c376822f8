//! A test of one's own application in the simulator: three servers that crash, lose each other and
//! have slow disks, in virtual time, everything drawn from a seed. What the application did is
//! judged by the exact checker and by a rule of the application's own.
//!
//! `cargo run -p muesli-examples --bin simulated_shop` tries a few seeds; with a number it tries
//! that seed, which does the same again, to the byte. In a project of one's own this is a test.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use muesli::{Db, Error, KeyRange, Retry, SpaceOptions, TypedSpace};
use muesli_check::{Level, Options, check};
use muesli_core::{Catalog, NodeId};
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::PlanShape;
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientStart, Setup, World};

const SERVERS: u32 = 3;
const CLIENTS: u32 = 6;
const ITEMS: u64 = 5;
const STOCK: u64 = 40;

/// The application: the same code that runs on an embedded database or on a cluster.
#[derive(Clone)]
struct Shop {
    db: Db,
    stock: TypedSpace<u64, u64>,
    /// How much of an item a customer has bought.
    orders: TypedSpace<(u32, u64), u64>,
}

impl Shop {
    fn new(db: Db) -> Result<Shop, Error> {
        let (stock, orders) = (db.space("stock")?.typed(), db.space("orders")?.typed());
        Ok(Shop { db, stock, orders })
    }

    /// True if one was left.
    async fn buy(&self, customer: u32, item: u64) -> Result<bool, Error> {
        let (stock, orders) = (self.stock, self.orders);
        let buy = async move |tx: &muesli::Tx| {
            let left = stock.get(tx, &item).await?.unwrap_or(STOCK);
            let Some(less) = left.checked_sub(1) else { return Ok(false) };
            stock.put(tx, &item, &less).await?;
            let bought = orders.get(tx, &(customer, item)).await?.unwrap_or(0);
            orders.put(tx, &(customer, item), &(bought + 1)).await?;
            Ok(true)
        };
        self.db.transact_here(buy).await
    }

    /// The rule: what was sold and what is left are what there was.
    async fn is_complete(&self) -> Result<bool, Error> {
        let (stock, orders) = (self.stock, self.orders);
        let sums = async move |tx: &muesli::Tx| {
            let mut count = 0;
            for item in 0..ITEMS {
                count += stock.get(tx, &item).await?.unwrap_or(STOCK);
            }
            let orders = orders.range(tx, KeyRange::all()).await?;
            Ok::<_, Error>(count + orders.iter().map(|(_, count)| count).sum::<u64>())
        };
        Ok(self.db.read_only().transact_here(sums).await? == ITEMS * STOCK)
    }
}

/// A customer, who buys until the run is over. Errors are part of the test: servers are away.
async fn customer(shop: Shop, start: ClientStart, looked: Rc<Cell<u64>>, wrong: Rc<Cell<u64>>) {
    let mut random = start.seed.stream();
    while !start.stop.is_raised() {
        // What becomes of an order that failed, the rule and the checker say.
        let _ = shop.buy(start.number, random.below(ITEMS)).await;
        if let Ok(is_complete) = shop.is_complete().await {
            looked.set(looked.get() + 1);
            wrong.set(wrong.get() + u64::from(!is_complete));
        }
    }
}

/// A world of three servers with a log each, and faults drawn from the seed.
fn world(seed: u64) -> Result<(World, Db), Box<dyn std::error::Error>> {
    let servers: Vec<_> = (0..SERVERS).map(NodeId).collect();
    let catalog = Catalog::new(&servers, 2, &servers)?; // Each key on two of them.
    let catalog = catalog.with_space("stock", SpaceOptions::default())?;
    let catalog = Arc::new(catalog.with_space("orders", SpaceOptions::default())?);
    let latency =
        Latency::Exponential { least: Span::from_micros(40), mean_tail: Span::from_micros(20) };
    let topology = Topology::uniform(SERVERS as usize, ChannelClass { latency, bandwidth: 0 });
    let kinds: FaultKinds = "crash,partition,link,pause,disk,skew".parse()?;
    let horizon = VirtualTime::ZERO + Span::from_millis(300);
    let shape =
        PlanShape { nodes: SERVERS, clients: CLIENTS, horizon, kinds, trees: 0, faults_max: 6 };
    let plan = shape.draw(Seed::new(seed));
    println!("seed {seed}: {plan}");
    let protocol = muesli_registry::protocol("score", None)?;
    let mut setup = Setup::new(protocol, Seed::new(seed), catalog.clone(), topology, plan);
    setup.history = true;
    setup.settings.record_collected = true; // Reads of deleted keys can be judged, too.
    let world = World::new(setup)?;
    let db = Db::for_driver(world.database(), catalog, Retry::default());
    Ok((world, db))
}

fn try_seed(seed: u64) -> Result<(), Box<dyn std::error::Error>> {
    let (mut world, db) = world(seed)?;
    let (looked, wrong) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for client in 0..CLIENTS {
        let (db, looked, wrong) = (db.clone(), looked.clone(), wrong.clone());
        let body = move |start: ClientStart| -> muesli_core::client::Task {
            let shop = Shop::new(db.independent()).expect("the spaces are in the catalog");
            Box::pin(customer(shop, start, looked.clone(), wrong.clone()))
        };
        world.add_client(NodeId(client % SERVERS), Rc::new(body));
    }
    // To the end of the plan; then nothing is wrong any more, and all that was begun must end.
    world.run_to_end(Span::from_secs(60))?;
    let run = world.finish();
    let history = run.history(serde_json::Map::new())?;
    let verdict = check(&history, Level::Serializable, &Options::default());
    println!("  looked {} times; {verdict}", looked.get());
    assert!(verdict.holds(), "not serializable");
    assert!(looked.get() > 0, "nobody ever looked");
    assert_eq!(wrong.get(), 0, "something was sold twice, or got lost");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(seed) => try_seed(seed.parse()?),
        None => (1..=5).try_for_each(try_seed),
    }
}
