//! The graph of one level: transactions, auxiliary nodes, and edges without labels.
//!
//! Nodes below `transactions` are transactions, the rest are auxiliary nodes which stand for
//! points in time, ranges of keys or ends of lists and only pass paths on: they keep the number
//! of edges linear where pairs of transactions would be quadratic. What an edge means is worked
//! out again for the few edges of a cycle that is reported (see `explain`).

mod components;
mod edges;
mod order;
mod precedence;
mod ranges;
mod readers;
mod shortest;
mod sink;
mod tails;

pub(crate) use components::Components;
pub(crate) use edges::build;
pub(crate) use order::in_edge_order;
pub(crate) use readers::first_broken_reader;
pub(crate) use shortest::CycleSearch;
pub(crate) use sink::{AuxiliaryKind, AuxiliaryRole};

/// A directed graph in compressed rows.
#[derive(Debug, Default)]
pub(crate) struct AdjacencyRows {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl AdjacencyRows {
    /// The graph with the given edges; each row keeps their order.
    pub(crate) fn new(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        for (from, _) in edges {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; edges.len()];
        for (from, to) in edges {
            let slot = &mut next[*from as usize];
            targets[*slot as usize] = *to;
            *slot += 1;
        }
        AdjacencyRows { starts, targets }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub(crate) fn edges(&self) -> usize {
        self.targets.len()
    }

    pub(crate) fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.targets[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// The graph of one level over one history.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Number of transactions: the nodes below are they.
    pub(crate) transactions: u32,
    /// What part each transaction plays.
    pub(crate) roles: Vec<AuxiliaryRole>,
    /// Edges between core and auxiliary nodes, and from readers to them.
    pub(crate) rows: AdjacencyRows,
    /// For readers that are judged one at a time: the nodes with an edge to them.
    pub(crate) into_readers: AdjacencyRows,
    /// The auxiliary nodes: where each kind ends, in order.
    auxiliary: Vec<(AuxiliaryKind, u32)>,
}

impl Graph {
    pub(crate) fn is_transaction(&self, node: u32) -> bool {
        node < self.transactions
    }

    /// The kind of an auxiliary node.
    pub(crate) fn auxiliary_kind(&self, node: u32) -> Option<AuxiliaryKind> {
        if self.is_transaction(node) {
            return None;
        }
        self.auxiliary.iter().find(|(_, end)| node < *end).map(|(kind, _)| *kind)
    }

    pub(crate) fn edge_count(&self) -> usize {
        self.rows.edges() + self.into_readers.edges()
    }
}
