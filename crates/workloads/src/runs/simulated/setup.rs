//! What is there before a run begins: the catalog, the network, and the world that a plan asks for.

use std::sync::Arc;

use muesli::SpaceOptions;
use muesli_core::catalog::{Hierarchy, TreeError, TreePlan};
use muesli_core::parallel::Shuffled;
use muesli_core::{AnyProtocol, Catalog, NodeId, Parallel, Partitioning};
use muesli_group::layout;
use muesli_sim::network::topology::Topology;
use muesli_sim::random::Seed;
use muesli_sim::world::Setup;

use super::{Simulated, SimulationError};
use crate::available;
use crate::geography::{Geography, NoGeography};
use crate::guest;
use crate::machines::racks::RunNodes;
use crate::machines::{MachineModel, cores};
use crate::workload::AnyWorkload;

/// The most rows of a page of a scan.
const PAGE_ROWS: usize = 4;

/// The sites of a run: as many as there are nodes for at most.
pub(super) fn geography(
    machine: &MachineModel,
    plan: &Simulated,
) -> Result<Option<Geography>, NoGeography> {
    let of_sites = |all: &Geography| all.of_sites(all.names().len().min(plan.nodes));
    machine.geography.as_ref().map(of_sites).transpose()
}

/// How far nodes are from each other.
pub(super) fn topology(
    machine: &MachineModel,
    plan: &Simulated,
    apart: &[NodeId],
    catalog: &Catalog,
) -> Result<Topology, SimulationError> {
    let without = machine.client_nodes + plan.client_nodes + plan.masters;
    let nodes = plan.nodes + without + apart.len() + usize::from(plan.guest);
    let mut topology = Topology::uniform(nodes, machine.network);
    if let Some(geography) = geography(machine, plan)? {
        geography.place(&mut topology, plan.nodes, machine.network);
    }
    let topology = match cores::of(plan.nodes, machine.cores)? {
        Some(cores) => topology.with_cores(cores),
        None => topology,
    };
    let run_nodes = RunNodes { data: plan.nodes, without, apart, guest: plan.guest };
    Ok(match machine.racks.of(run_nodes, catalog)? {
        Some(racks) => topology.with_racks(racks),
        None => topology,
    })
}

/// The world that a plan asks for.
pub(super) fn setup(
    machine: &MachineModel,
    plan: &Simulated,
    (protocol, topology): (Arc<dyn AnyProtocol>, Topology),
    apart: &[NodeId],
    catalog: &Arc<Catalog>,
) -> Result<Setup, SimulationError> {
    let seed = Seed::new(plan.seed);
    let mut setup = Setup::new(protocol, seed, catalog.clone(), topology, plan.plan.clone());
    setup.trees = other_trees(plan, catalog, apart)?;
    setup.costs = machine.costs;
    if let Some(costs) = machine.validator_costs {
        setup.costs_of = apart.iter().map(|node| (*node, costs)).collect();
    }
    machine.set_times(&mut setup.settings);
    if let Some(tempo) = &plan.tempo {
        tempo.set(&mut setup.settings);
    }
    let among_strangers = plan.upkeep.strangers.is_some() && plan.seed % 2 == 1;
    if plan.tempo.is_some() || among_strangers {
        // Ranges in searches have tens of rows: this makes pages of them.
        setup.settings.limits.page_rows = PAGE_ROWS;
    }
    setup.settings.logging = plan.logging || machine.log.is_some();
    setup.disk = machine.log.unwrap_or_default();
    setup.settings.procedures = available::procedures();
    plan.set_up(&mut setup);
    setup.settings.record_collected = plan.history;
    setup.settings.caches = plan.upkeep.caches;
    let order = Shuffled { seed: plan.seed };
    setup.settings.parallel = Parallel::new(plan.upkeep.parallel, Arc::new(order));
    Ok(setup)
}

/// Who keeps what, and which spaces there are.
pub(super) fn catalog(
    workload: &Arc<dyn AnyWorkload>,
    plan: &Simulated,
    coordinators: usize,
    (apart, geography): (&[NodeId], Option<&Geography>),
) -> Result<Catalog, SimulationError> {
    let (nodes, repositories, grouped) = (plan.nodes, plan.repositories, plan.upkeep.group > 1);
    let shards = geography.and_then(Geography::shards);
    let protocol = muesli_registry::protocol(&plan.protocol, None).ok();
    // Where copies are kept at sites some nodes may have none: they use that of another node.
    let has_copies = protocol.as_ref().is_some_and(|it| it.replicates_itself());
    if nodes == 0 || !(grouped || has_copies) && nodes > repositories.max(1) {
        return Err(SimulationError::Nodes { nodes, repositories });
    }
    if let Some(shards) = shards {
        let (named, each) = (shards.repositories(), shards.replicas());
        if grouped || (named, each) != (repositories, plan.replicas) {
            let (replicas, group) = (plan.replicas, plan.upkeep.group);
            return Err(SimulationError::ShardCounts {
                named,
                each,
                repositories,
                replicas,
                group,
            });
        }
    }
    let at_sites = geography.map_or(Ok(None), |it| it.homes(nodes))?;
    let homes: Vec<_> = match (at_sites, plan.upkeep.group) {
        (Some(homes), _) => homes,
        (None, 0 | 1) => (0..repositories).map(|at| NodeId((at % nodes) as u32)).collect(),
        (None, size) => {
            layout::homes(repositories.try_into().unwrap_or(u16::MAX), size, nodes as u32)?
        }
    };
    let visits = |node: &usize| plan.visiting && (nodes..nodes + plan.client_nodes).contains(node);
    let known = (0..coordinators).filter(|node| !visits(node));
    let all: Vec<_> = known.map(|node| NodeId(node as u32)).collect();
    let catalog = Catalog::new(&homes, plan.replicas, &all)?;
    let catalog = catalog.with_partitions_per_repository(plan.partitions_per_repository)?;
    let mut catalog = match &plan.tree {
        Some(tree) => with_tree(catalog, tree, apart, grouped)?,
        None => catalog,
    };
    for (name, options) in workload.spaces(repositories) {
        let keeps_everywhere = protocol.as_ref().is_some_and(|it| it.keeps_everywhere());
        if options.partitioning == Partitioning::Everywhere && !keeps_everywhere {
            let (protocol, space) = (plan.protocol.clone(), name.to_owned());
            return Err(SimulationError::Everywhere { protocol, space });
        }
        catalog = catalog.with_space(name, options)?;
    }
    if plan.guest {
        catalog = catalog.with_space(guest::SPACE, SpaceOptions::default())?;
    }
    Ok(catalog)
}

fn with_tree(
    catalog: Catalog,
    tree: &TreePlan,
    apart: &[NodeId],
    grouped: bool,
) -> Result<Catalog, TreeError> {
    if grouped { layout::with_tree(&catalog, tree, apart) } else { catalog.with_tree(tree, apart) }
}

/// What the tree of this catalog may change to.
fn other_trees(
    plan: &Simulated,
    catalog: &Catalog,
    apart: &[NodeId],
) -> Result<Vec<Hierarchy>, TreeError> {
    let grouped = plan.upkeep.group > 1;
    let trees = plan.trees.iter().map(|tree| with_tree(catalog.clone(), tree, apart, grouped));
    let trees = trees.collect::<Result<Vec<_>, _>>()?.into_iter();
    Ok(trees.filter_map(|with| with.hierarchy.as_deref().cloned()).collect())
}
