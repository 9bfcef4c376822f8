//! Where the edges of a graph are collected while it is built, and the nodes that they join.

use super::{AdjacencyRows, Graph};
use crate::history::TxnIndex;

/// What part a transaction plays in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuxiliaryRole {
    /// Always there.
    Core,
    /// Judged alone together with the core.
    Reader,
    /// Not in this graph.
    Absent,
}

/// What an auxiliary node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuxiliaryKind {
    /// A point in real time.
    RealTime,
    /// A point in the time of one session.
    Session,
    /// A range of keys, read by a scan at the initial version.
    Range,
    /// The end of a list: what was appended unseen comes after it.
    Tail,
}

/// Collects edges, sorted by whether they lead to a lone reader.
#[derive(Debug)]
pub(super) struct EdgeSink {
    transactions: u32,
    roles: Vec<AuxiliaryRole>,
    edges: Vec<(u32, u32)>,
    into_readers: Vec<(u32, u32)>,
    next_node: u32,
}

impl EdgeSink {
    pub(super) fn new(roles: Vec<AuxiliaryRole>) -> Self {
        let transactions = roles.len() as u32;
        let (edges, into_readers) = (Vec::new(), Vec::new());
        EdgeSink { transactions, roles, edges, into_readers, next_node: transactions }
    }

    pub(super) fn new_node(&mut self) -> u32 {
        self.next_node += 1;
        self.next_node - 1
    }

    /// How many nodes there are so far, transactions and auxiliary ones.
    pub(super) fn nodes(&self) -> u32 {
        self.next_node
    }

    fn role(&self, node: u32) -> AuxiliaryRole {
        self.roles.get(node as usize).copied().unwrap_or(AuxiliaryRole::Core)
    }

    pub(super) fn present(&self, txn: TxnIndex) -> bool {
        self.role(txn.0) != AuxiliaryRole::Absent
    }

    /// Adds an edge unless an end is absent or both are the same.
    pub(super) fn push(&mut self, from: u32, to: u32) {
        let (source, target) = (self.role(from), self.role(to));
        if from == to || source == AuxiliaryRole::Absent {
            return;
        }
        match target {
            AuxiliaryRole::Core => self.edges.push((from, to)),
            // Two lone readers never stand in one graph.
            AuxiliaryRole::Reader if source == AuxiliaryRole::Core => {
                self.into_readers.push((to, from))
            }
            AuxiliaryRole::Reader | AuxiliaryRole::Absent => {}
        }
    }

    pub(super) fn finish(self, auxiliary: Vec<(AuxiliaryKind, u32)>) -> Graph {
        let nodes = self.next_node as usize;
        Graph {
            transactions: self.transactions,
            rows: AdjacencyRows::new(nodes, &self.edges),
            into_readers: AdjacencyRows::new(self.roles.len(), &self.into_readers),
            roles: self.roles,
            auxiliary,
        }
    }
}
