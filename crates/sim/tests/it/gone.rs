//! Processes of clients are killed and come again, over many leases: what servers keep of them does
//! not grow with how many there were.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use muesli::{Db, Retry, SpaceOptions, Tx};
use muesli_core::{Catalog, Nanos, NodeId, Pace, Protocol, Typed};
use muesli_protocols::gmu::Gmu;
use muesli_protocols::granola::Granola;
use muesli_protocols::score::Score;
use muesli_protocols::two_phase::{TwoPhase, Variant};
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, Setup, World};

const SERVERS: u32 = 3;
const CLIENTS: u32 = 3;
const LEASE: Nanos = Nanos::from_millis(40);

/// Each client process lives for some milliseconds.
fn setup<P: Protocol>(seed: u64, millis: u64) -> Setup {
    let servers: Vec<NodeId> = (0..SERVERS).map(NodeId).collect();
    let catalog = Catalog::new(&servers, 2, &servers).expect("a catalog");
    let catalog = catalog.with_visiting_coordinators();
    let catalog = catalog.with_space("s", SpaceOptions::default()).expect("a space");
    let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(20));
    let latency = Latency::Exponential { least, mean_tail };
    let channel = ChannelClass { latency, bandwidth: 0 };
    let topology = Topology::uniform((SERVERS + CLIENTS) as usize, channel);
    let kills = (1..millis / 10).map(|at| format!("{}ms+1ms crash n{}", 10 * at, 3 + at % 3));
    let text = format!("horizon {millis}ms; {}", kills.collect::<Vec<_>>().join("; "));
    let plan = text.parse().expect("a plan");
    let mut setup = Setup::new(
        Arc::new(Typed::<P>(Default::default())),
        Seed::new(seed),
        Arc::new(catalog),
        topology,
        plan,
    );
    setup.reconnect_every = Span::from_millis(1);
    setup.settings.client_lease = LEASE;
    setup.settings.give_up_after = Nanos::from_millis(20);
    setup.settings.in_doubt_after = Nanos::from_millis(5);
    setup.settings.gossip_every = Nanos::from_millis(1);
    setup.settings.snapshot_lease = Nanos::from_millis(10);
    setup.settings.pace = Pace { collect_after: 1, ..Pace::default() };
    setup
}

/// How many transactions committed, the most ends that a repository kept, and how many ends and
/// clients all keep when all clients have been gone for some leases.
fn kept<P: Keeps>(seed: u64, millis: u64) -> (u64, usize, (usize, usize)) {
    let setup = setup::<P>(seed, millis);
    let catalog = Arc::clone(&setup.catalog);
    let mut world = World::new(setup).expect("a setup");
    let db = Db::for_driver(world.database(), catalog, Retry::default());
    let committed: Rc<Cell<u64>> = Rc::default();
    let counted = Rc::clone(&committed);
    let body: ClientBody = Rc::new(move |start| {
        let (db, counted) = (db.independent(), Rc::clone(&counted));
        let space = db.space("s").expect("it was set up");
        let mut random = start.seed.stream();
        Box::pin(async move {
            while !start.stop.is_raised() {
                let keys = [random.below(100), random.below(100)];
                let write = async move |tx: &Tx| {
                    for key in keys {
                        tx.put(space, key.to_be_bytes().to_vec(), "new").await?;
                    }
                    Ok::<_, muesli::Error>(())
                };
                let done = db.transact_here(write).await;
                counted.set(counted.get() + u64::from(done.is_ok()));
            }
        })
    });
    for client in 0..CLIENTS {
        world.add_client(NodeId(SERVERS + client), Rc::clone(&body));
    }
    let mut most = 0;
    for at in (0..millis).step_by(10) {
        world.run_until(VirtualTime::ZERO + Span::from_millis(at));
        most = most.max(all::<P>(&world).map(|(ends, _)| ends).max().unwrap_or_default());
    }
    world.run_to_end(Span::from_secs(60)).expect("everything ends");
    let after_lease = world.now() + Span::from_nanos(4 * LEASE.0);
    world.run_until(after_lease);
    let left = all::<P>(&world).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    (committed.get(), most, left)
}

/// How many ends each repository keeps, and of how many coordinators.
fn all<P: Keeps>(world: &World) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..SERVERS).filter_map(|server| {
        world.with_node::<P, _>(NodeId(server), |node| P::kept(&node.participants()[0].1))
    })
}

fn do_not_grow<P: Keeps>() {
    for seed in 0..3 {
        let (short, long) = (kept::<P>(seed, 400), kept::<P>(seed, 1_600));
        println!("{short:?} {long:?}");
        assert!(long.0 > 3 * short.0 && long.0 > 1_000, "{short:?} {long:?}");
        assert!(long.1 < 3 * short.1.max(50), "{short:?} {long:?}");
        assert_eq!((short.2.0, long.2.0), (0, 0), "{short:?} {long:?}");
        // Of some the number of their last refusal; each client has one number in all its lives.
        let most = (SERVERS * CLIENTS) as usize;
        assert!(short.2.1.max(long.2.1) <= most, "{short:?} {long:?}");
    }
}

#[test]
fn what_is_kept_of_clients_does_not_grow_with_how_many_there_were() {
    do_not_grow::<Score>();
    do_not_grow::<Gmu>();
}

#[test]
fn what_granola_keeps_of_clients_does_not_grow_either() {
    do_not_grow::<Granola>();
}

/// A protocol of which can be told what its repositories keep.
trait Keeps: Protocol<Switches: Default> {
    fn kept(participant: &Self::Participant) -> (usize, usize);
}

impl<V: Variant> Keeps for TwoPhase<V> {
    fn kept(participant: &Self::Participant) -> (usize, usize) {
        (participant.remembered(), participant.known_coordinators())
    }
}

impl Keeps for Granola {
    fn kept(participant: &Self::Participant) -> (usize, usize) {
        (participant.remembered(), participant.known_coordinators())
    }
}
