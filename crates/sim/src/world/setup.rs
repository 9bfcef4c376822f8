//! What a world is made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::catalog::Hierarchy;
use muesli_core::issuance::Issuer;
use muesli_core::{AnyProtocol, Catalog, NodeId, Settings};

use super::host::mistake::Mistake;
use super::strangers::Strangers;
use crate::hardware::costs::Costs;
use crate::hardware::disk::DiskSpeed;
use crate::network::topology::Topology;
use crate::plan::Plan;
use crate::plan::fault::Fault;
use crate::random::Seed;
use crate::time::Span;

/// Everything that a run is a function of, but for the code of its clients.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where all chance comes from.
    pub seed: Seed,
    /// Spaces, and where their keys live.
    pub catalog: Arc<Catalog>,
    /// Settings of all nodes.
    pub settings: Settings,
    /// What the nodes run.
    pub protocol: Arc<dyn AnyProtocol>,
    /// The nodes, and how far they are from each other.
    pub topology: Topology,
    /// What the nodes' work costs.
    pub costs: Costs,
    /// What it costs on nodes that are faster or slower than the others.
    pub costs_of: BTreeMap<NodeId, Costs>,
    /// The nodes' disks.
    pub disk: DiskSpeed,
    /// How long a partition is sat out before a link is given up.
    pub patience: Span,
    /// How often a broken link is tried again.
    pub reconnect_every: Span,
    /// What goes wrong.
    pub plan: Plan,
    /// Other trees of validators, for faults that change the tree.
    pub trees: Vec<Hierarchy>,
    /// How often hosts begin a checkpoint on average, after which their logs are cut; `None`:
    /// never.
    pub checkpoint_every: Option<Span>,
    /// Whether some timers fire before their time.
    pub early_timers: bool,
    /// Whether other nodes keep what a node does, so that one of them may lose its disk.
    pub replicated: bool,
    /// A mistake of the drivers, to see it noticed.
    pub mistake: Option<Mistake>,
    /// Whether there are strangers, who say what no honest process says.
    pub strangers: Option<Strangers>,
    /// What they do and say, instead of what the seed draws: any bytes are such a script.
    pub script: Option<Arc<[u8]>>,
    /// Whether a history is recorded.
    pub history: bool,
    /// Whether the trace is kept as text, and not as a digest only.
    pub trace_text: bool,
}

/// A setup that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A node that the topology does not have.
    #[error("{what} names node n{}, but there are {nodes} nodes, n0 to n{}", node.0, nodes - 1)]
    Node {
        /// Who names it.
        what: String,
        /// The node.
        node: NodeId,
        /// How many there are.
        nodes: usize,
    },
    /// No nodes at all.
    #[error("a world has at least one node")]
    Empty,
    /// Crashes would lose what clients were promised.
    #[error("the plan has `{0}`, but nothing is logged: switch logging on, or crashes off")]
    Unlogged(String),
    /// There is no such tree to change to.
    #[error("the plan has `{fault}`, and there are {trees} other trees, counted from 0")]
    Tree {
        /// The fault.
        fault: String,
        /// How many trees there are.
        trees: usize,
    },
    /// A lost disk would lose what clients were promised.
    #[error("the plan has `{0}`, but each node's data is on its own disk alone")]
    Lost(String),
}

impl Setup {
    /// A sound world: measured costs, local disks, no history, a digest of the trace.
    pub fn new(
        protocol: Arc<dyn AnyProtocol>,
        seed: Seed,
        catalog: Arc<Catalog>,
        topology: Topology,
        plan: Plan,
    ) -> Self {
        Setup {
            seed,
            catalog,
            settings: Settings {
                logging: true,
                issuer: Some(Issuer::new([7; 16])),
                ..Settings::default()
            },
            protocol,
            topology,
            costs: Costs::measured(),
            costs_of: BTreeMap::new(),
            disk: DiskSpeed::default(),
            patience: Span::from_millis(200),
            reconnect_every: Span::from_millis(10),
            plan,
            trees: Vec::new(),
            checkpoint_every: None,
            early_timers: false,
            replicated: false,
            mistake: None,
            strangers: None,
            script: None,
            history: false,
            trace_text: false,
        }
    }

    /// Whether this can be run.
    ///
    /// # Errors
    /// There are no nodes, the catalog or the plan names others than there are, or the plan has
    /// crashes while nothing is logged.
    pub fn check(&self) -> Result<(), SetupError> {
        if self.topology.nodes() == 0 {
            return Err(SetupError::Empty);
        }
        let homes = self.catalog.homes.iter().filter(|home| **home != NodeId::NOWHERE);
        for node in homes.chain(self.catalog.coordinators.iter()) {
            self.check_node(*node, || "the catalog".to_owned())?;
        }
        for timed in self.plan.faults() {
            for node in nodes_of(&timed.fault) {
                self.check_node(node, || format!("`{timed}`"))?;
            }
            if let Fault::Tree(tree, _) = timed.fault
                && tree as usize >= self.trees.len()
            {
                let (fault, trees) = (timed.to_string(), self.trees.len());
                return Err(SetupError::Tree { fault, trees });
            }
            let loses = matches!(timed.fault, Fault::LoseDisk(_));
            if loses && !self.replicated {
                return Err(SetupError::Lost(timed.to_string()));
            }
            let restarts = matches!(timed.fault, Fault::Crash(_) | Fault::FailSync(_));
            if (loses || restarts) && !self.settings.logging {
                return Err(SetupError::Unlogged(timed.to_string()));
            }
        }
        Ok(())
    }

    fn check_node(&self, node: NodeId, what: impl Fn() -> String) -> Result<(), SetupError> {
        let nodes = self.topology.nodes();
        if (node.0 as usize) < nodes {
            return Ok(());
        }
        Err(SetupError::Node { what: what(), node, nodes })
    }
}

fn nodes_of(fault: &Fault) -> Vec<NodeId> {
    match fault {
        Fault::Vanish(_) => Vec::new(),
        Fault::Partition(_, nodes) | Fault::Tree(_, nodes) => nodes.clone(),
        Fault::Break(first, second) => vec![*first, *second],
        Fault::Crash(node)
        | Fault::LoseDisk(node)
        | Fault::FailSync(node)
        | Fault::Pause(node)
        | Fault::Slow(node, _)
        | Fault::SlowDisk(node, _)
        | Fault::Skew(node, _, _) => vec![*node],
    }
}
