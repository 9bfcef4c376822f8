//! What a transaction's client waits for, counted: message delays and writes to a log, one after
//! the other. In these worlds nothing takes time but a message, one microsecond, a sync, a hundred
//! of them, and a turn, a nanosecond; so how long a transaction took tells how many it waited for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use muesli_core::procedure::{Call, Class, Fragment, Place, ProcedureId};
use muesli_core::{Catalog, Nanos, NodeId, SpaceId, SpaceOptions, TxnOptions, Typed};
use muesli_protocols::granola::{Granola, Switches};
use muesli_sim::hardware::costs::Costs;
use muesli_sim::hardware::disk::DiskSpeed;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::Plan;
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, Setup, World};

use super::clients::{arguments, invoke, now, sleep};
use super::procedures::{SPACE, all, key};

const MESSAGE: Span = Span::from_micros(1);
const SYNC: Span = Span::from_micros(100);

/// What the client of a transaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waits {
    messages: u64,
    syncs: u64,
}

/// A cluster of three; with masters, n3 decides for all.
fn setup(switches: Switches, masters: usize) -> Setup {
    let homes: Vec<NodeId> = (0..3).map(NodeId).collect();
    let masters = &[NodeId(3)][..masters];
    let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog").with_masters(masters);
    let catalog = catalog.with_space(SPACE, SpaceOptions::default()).expect("a space");
    let link_class = ChannelClass { latency: Latency::Constant(MESSAGE), bandwidth: 0 };
    let plan = Plan::calm(VirtualTime::ZERO + Span::from_millis(100));
    let topology = Topology::uniform(3 + masters.len(), link_class);
    let mut setup = Setup::new(
        Arc::new(Typed::<Granola>(switches)),
        Seed::new(1),
        Arc::new(catalog),
        topology,
        plan,
    );
    setup.costs = Costs::FREE;
    setup.disk = DiskSpeed { sync: Latency::Constant(SYNC), bandwidth: 0, at_once: 1 };
    setup.settings.procedures = all();
    setup
}

/// A call of a procedure at these repositories, one key each.
fn call(catalog: &Catalog, name: &str, repositories: &[u16]) -> Call {
    let home = |at: &u8, partition: u16| catalog.partition(SpaceId(0), &key(*at)) == partition;
    let fragment = |&partition: &u16| {
        let number = (0..=u8::MAX).find(|at| home(at, partition)).expect("a key of each");
        Fragment {
            procedure: ProcedureId { name: name.into(), version: 1 },
            place: Place::Key(SpaceId(0), key(number)),
            arguments: arguments(name, &[number], &BTreeMap::new()),
        }
    };
    Call { class: Class::Auto, fragments: repositories.iter().map(fragment).collect() }
}

/// What n0's client waits for; neither repository of its call lives on its own node.
fn waits(
    (switches, masters): (Switches, usize),
    name: &'static str,
    repositories: &'static [u16],
) -> Waits {
    let setup = setup(switches, masters);
    let catalog = setup.catalog.clone();
    let mut world = World::new(setup).expect("a setup");
    let (database, took) = (world.database(), Rc::new(RefCell::new(None)));
    let latencies = took.clone();
    let body: ClientBody = Rc::new(move |_| {
        let (catalog, latencies) = (catalog.clone(), latencies.clone());
        Box::pin(async move {
            // Both repositories have a ceiling, and know their places in each other's votes.
            let first = call(&catalog, "bump", &[1, 2]);
            invoke(database, TxnOptions::default(), first).await.expect("it is done");
            sleep(database, Nanos::from_millis(1)).await;
            let begun = now(database);
            let measured = call(&catalog, name, repositories);
            invoke(database, TxnOptions::default(), measured).await.expect("it is done");
            *latencies.borrow_mut() = Some(now(database) - begun);
        })
    });
    world.add_client(NodeId(0), body);
    world.run_until(VirtualTime::ZERO + Span::from_millis(100));
    let took = took.borrow().expect("the client was answered").0;
    let waits = Waits {
        messages: took % SYNC.as_nanos() / MESSAGE.as_nanos(),
        syncs: took / SYNC.as_nanos(),
    };
    let rest = took % MESSAGE.as_nanos();
    assert!(rest < MESSAGE.as_nanos() / 10, "nothing else takes time but {rest} ns of turns");
    waits
}

#[test]
fn message_delays_and_writes_to_a_log() {
    let granola = ("granola", (Switches::default(), 0));
    let sharing = ("granola-passing", (Switches::out_of_order(), 0));
    let locking = ("granola-locking", (Switches::locking(), 0));
    let sinfonia = ("sinfonia", (Switches::sinfonia(), 0));
    let apart = ("sinfonia with a master of its own", (Switches::sinfonia(), 1));
    let expected = [
        (granola, "bump", &[1][..], 2, 1),
        (granola, "look", &[1], 2, 0),
        (granola, "bump", &[1, 2], 3, 1),
        (granola, "look", &[1, 2], 3, 0),
        (granola, "perhaps", &[1, 2], 3, 1),
        (sharing, "share", &[1, 2], 4, 1),
        (locking, "share", &[1, 2], 3, 1),
        (locking, "bump", &[1, 2], 3, 1),
        (sinfonia, "bump", &[1], 2, 1),
        (sinfonia, "bump", &[1, 2], 4, 1),
        (sinfonia, "look", &[1, 2], 4, 1),
        (apart, "bump", &[1], 2, 1),
        (apart, "bump", &[1, 2], 5, 1),
        (apart, "look", &[1, 2], 5, 1),
    ];
    for ((protocol, switches), name, repositories, messages, syncs) in expected {
        let found = waits(switches, name, repositories);
        println!("{protocol}, {name} at {repositories:?}: {found:?}");
        assert_eq!(found, Waits { messages, syncs }, "{protocol}, {name} at {repositories:?}");
    }
}
