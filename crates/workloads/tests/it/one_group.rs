//! A world with one repository, kept by a group of three, for tests that steer it by hand.

use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Retry, Space, SpaceOptions};
use muesli_core::{Catalog, NodeId, Protocol, Typed};
use muesli_group::{GroupSettings, Grouped, layout};
use muesli_protocols::score::Score;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::random::Seed;
use muesli_sim::time::Span;
use muesli_sim::world::{Setup, World};

/// The world, and what clients in it work with.
pub struct OneGroup {
    pub world: World,
    pub db: Db,
    pub space: Space,
    pub nodes: Vec<NodeId>,
}

/// So many nodes, of which the first so many may keep the group's members; faults as the plan says.
pub fn one_group(
    nodes: u32,
    holders: u32,
    seed: u64,
    plan: &str,
    group_settings: GroupSettings<<Score as Protocol>::Switches>,
) -> OneGroup {
    let homes = layout::homes(1, 3, holders).expect("three nodes");
    let nodes: Vec<NodeId> = (0..nodes).map(NodeId).collect();
    let catalog = Catalog::new(&homes, 1, &nodes).expect("a catalog");
    let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).expect("a space"));
    let latency =
        Latency::Exponential { least: Span::from_micros(40), mean_tail: Span::from_micros(20) };
    let topology = Topology::uniform(nodes.len(), ChannelClass { latency, bandwidth: 0 });
    let plan = plan.parse().expect("a plan");
    let protocol = Arc::new(Typed::<Grouped<Score>>(group_settings));
    let mut setup = Setup::new(protocol, Seed::new(seed), Arc::clone(&catalog), topology, plan);
    setup.replicated = true;
    setup.settings.logging = true;
    let world = World::new(setup).expect("a setup");
    let retry = Retry { attempts: 1000, pause_max: Duration::from_millis(5), ..Retry::default() };
    let db = Db::for_driver(world.database(), catalog, retry);
    let space = db.space("s").expect("it was set up");
    OneGroup { world, db, space, nodes }
}
