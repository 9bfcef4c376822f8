//! A node without a group loses its disk. It owned nothing by then, but was the directory of keys
//! that others own: these are found again, and what is not there can be inserted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Error, Range, Retry, Space, SpaceOptions, Tx};
use muesli_core::{Catalog, NodeId, Typed};
use muesli_protocols::tfa::{Switches, Tfa};
use muesli_protocols::two_phase::{FamilySwitch, Sabotage};
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, ClientStart, Setup, World};

/// Three have a repository each; on the last one there is a client that comes after the loss.
const NODES: u32 = 4;
const KEYS: usize = 300;
/// By then the first node owns nothing.
const TAKEN: VirtualTime = VirtualTime::from_nanos(295_000_000);
const END: VirtualTime = VirtualTime::from_nanos(3_000_000_000);

/// What clients know of counters.
struct Seen {
    /// Up to where each has counted, as was acknowledged.
    acknowledged: RefCell<Vec<u64>>,
    /// Reads of less than was acknowledged before.
    missed: Cell<u64>,
    /// Transactions that committed after the loss, of the client that came then.
    late: Cell<u64>,
    /// Keys that scans saw, and how many they should have seen.
    scanned: Cell<(usize, usize)>,
}

fn key(number: usize) -> Vec<u8> {
    (number as u64).to_be_bytes().to_vec()
}

async fn value(tx: &Tx, space: Space, number: usize) -> Result<u64, Error> {
    let found = tx.get(space, key(number)).await?;
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().expect("8 bytes"));
    Ok(found.map_or(0, |bytes| number(bytes.as_slice())))
}

/// The bytes of a counter, so long that there are several pages of them.
fn bytes(counter: u64) -> Vec<u8> {
    let mut bytes = counter.to_be_bytes().to_vec();
    bytes.resize(40, 0);
    bytes
}

impl Seen {
    fn new() -> Rc<Seen> {
        let acknowledged = RefCell::new(vec![0; 2 * KEYS]);
        let (missed, late, scanned) = Default::default();
        Rc::new(Seen { acknowledged, missed, late, scanned })
    }

    /// Counts one up; whether that committed.
    async fn count_up(&self, db: &Db, space: Space, number: usize) -> bool {
        let due = self.acknowledged.borrow()[number];
        let counted = db.transact_here(async move |tx| {
            let read = value(tx, space, number).await?;
            tx.put(space, key(number), bytes(read + 1)).await?;
            Ok::<_, Error>(read)
        });
        let Ok(read) = counted.await else { return false };
        self.missed.set(self.missed.get() + u64::from(read < due));
        let known = &mut self.acknowledged.borrow_mut()[number];
        *known = (*known).max(read + 1);
        true
    }

    /// Looks which counters there are.
    async fn scan(&self, db: &Db, space: Space) {
        let numbers = 0..KEYS;
        let due: BTreeSet<_> =
            numbers.filter(|number| self.acknowledged.borrow()[*number] > 0).map(key).collect();
        let rows = db.transact_here(async move |tx| tx.scan(space, Range::all()).await);
        let Ok(rows) = rows.await else { return };
        let found: BTreeSet<_> = rows.into_iter().map(|(key, _)| key.as_ref().to_vec()).collect();
        let (seen, wanted) = self.scanned.get();
        self.scanned.set((seen + due.intersection(&found).count(), wanted + due.len()));
    }
}

/// Counts all keys up, again and again.
async fn count(db: Db, space: Space, start: ClientStart, seen: Rc<Seen>) {
    while !start.stop.is_raised() {
        for number in 0..KEYS {
            seen.count_up(&db, space, number).await;
        }
    }
}

/// Counts all keys up, and others that nobody else knows of; and scans.
async fn count_late(db: Db, space: Space, start: ClientStart, seen: Rc<Seen>) {
    while !start.stop.is_raised() {
        for number in 0..2 * KEYS {
            let counted = seen.count_up(&db, space, number).await;
            seen.late.set(seen.late.get() + u64::from(counted));
            if number % 100 == 0 {
                seen.scan(&db, space).await;
            }
        }
    }
}

fn world(seed: u64, plan: &str, switches: Switches) -> (World, Db, Space) {
    let nodes: Vec<NodeId> = (0..NODES).map(NodeId).collect();
    let catalog = Catalog::new(&nodes[..3], 1, &nodes).expect("a catalog");
    let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).expect("a space"));
    let latency =
        Latency::Exponential { least: Span::from_micros(40), mean_tail: Span::from_micros(20) };
    let topology = Topology::uniform(nodes.len(), ChannelClass { latency, bandwidth: 0 });
    let (protocol, plan) = (Arc::new(Typed::<Tfa>(switches)), plan.parse().expect("a plan"));
    let mut setup = Setup::new(protocol, Seed::new(seed), Arc::clone(&catalog), topology, plan);
    // Nothing is on the disk alone that is lost but where keys are.
    setup.replicated = true;
    let world = World::new(setup).expect("a setup");
    let retry = Retry { attempts: 1000, pause_max: Duration::from_millis(5), ..Retry::default() };
    let db = Db::for_driver(world.database(), catalog, retry);
    let space = db.space("s").expect("it was set up");
    (world, db, space)
}

/// Node 0 loses its disk, and comes back; meanwhile and afterwards others fail, as the seed says.
fn plan(seed: u64) -> String {
    let other = match seed % 4 {
        0 => "301ms+20ms partition n2",
        1 => "306ms+3ms crash n0; 320ms+5ms crash n1",
        2 => "305ms+1ms crash n1; 307ms+1ms crash n2",
        _ => "303ms+40ms break n0 n1; 312ms+2ms crash n0",
    };
    format!("horizon 700ms; 300ms+4ms lose n0; {other}")
}

fn run(seed: u64, switches: Switches) -> Rc<Seen> {
    let (mut world, db, space) = world(seed, &plan(seed), switches);
    let seen = Seen::new();
    for node in [1, 2] {
        let (db, seen) = (db.independent(), Rc::clone(&seen));
        let body: ClientBody =
            Rc::new(move |start| Box::pin(count(db.independent(), space, start, seen.clone())));
        world.add_client(NodeId(node), body);
    }
    world.run_until(TAKEN);
    assert!(seen.acknowledged.borrow()[..KEYS].iter().all(|it| *it > 0), "all are taken");
    world.run_until(VirtualTime::from_nanos(304_500_000));
    let (db, late) = (db.independent(), Rc::clone(&seen));
    let body: ClientBody =
        Rc::new(move |start| Box::pin(count_late(db.independent(), space, start, late.clone())));
    world.add_client(NodeId(NODES - 1), body);
    world.run_until(END);
    seen
}

#[test]
fn keys_that_are_away_are_found_when_their_directory_loses_its_disk() {
    for seed in 0..8 {
        let seen = run(seed, Switches::default());
        assert_eq!(seen.missed.get(), 0, "seed {seed}");
        assert!(seen.late.get() > 2 * KEYS as u64, "seed {seed}: {}", seen.late.get());
        let (found, wanted) = seen.scanned.get();
        assert!(wanted > 0 && found == wanted, "seed {seed}: {found} of {wanted}");
    }
}

#[test]
fn a_directory_that_asks_nobody_is_noticed() {
    let mut switches = Switches::default();
    switches.set(FamilySwitch::RebuildsDirectory, false);
    let missed: u64 = (0..4).map(|seed| run(seed, switches).missed.get()).sum();
    assert!(missed > 0, "a directory without a memory does no harm");
}
