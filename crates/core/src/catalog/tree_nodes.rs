//! The nodes that a tree is made over, and why it does not fit them.

use std::collections::BTreeSet;

use thiserror::Error;

use super::NotATree;
use crate::ids::NodeId;

/// A tree that does not fit the nodes that are there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeError {
    /// There are more or fewer leaves than nodes.
    #[error("a tree of shape {shape} has {leaves} leaves, and there are {nodes} nodes with data")]
    Leaves {
        /// The shape.
        shape: String,
        /// Its leaves.
        leaves: usize,
        /// The nodes.
        nodes: usize,
    },
    /// A leaf that there is not.
    #[error("{file}: node {node}, below `{name}`, holds no data")]
    NoData {
        /// The text's name.
        file: String,
        /// The leaf.
        node: u32,
        /// The inner node.
        name: String,
    },
    /// A node with data that the text leaves out.
    #[error("{file}: node {node} holds data, and is below no inner node")]
    Missing {
        /// The text's name.
        file: String,
        /// The node.
        node: u32,
    },
    /// A validator on a node that there is not.
    #[error("{file}: validators of `{name}` are to live on node {node}, which there is not")]
    NoNode {
        /// The text's name.
        file: String,
        /// The node.
        node: u32,
        /// The inner node.
        name: String,
    },
    /// More validators than nodes for them.
    #[error(
        "{validators} validators for each inner node: there must be 1 at least, and no more than \
         nodes that they live on, which are {nodes}"
    )]
    Validators {
        /// How many are asked for.
        validators: u16,
        /// How many nodes there are.
        nodes: usize,
    },
    /// What it makes is no tree.
    #[error(transparent)]
    Tree(#[from] NotATree),
}

/// The nodes that a tree is made over, and which of them have validators by now.
pub(super) struct TreeNodes<'a> {
    /// Where the repositories live.
    pub homes: &'a [NodeId],
    /// The same, each once, in the order of their numbers.
    pub with_data: Vec<NodeId>,
    apart: &'a [NodeId],
    /// All nodes of the database.
    pub all: &'a [NodeId],
    validators: u16,
    dealt: usize,
}

impl<'a> TreeNodes<'a> {
    /// The nodes of repositories at `homes`, with so many validators for each inner node, which
    /// live on `apart`, or beside data where that is empty.
    pub fn new(
        homes: &'a [NodeId],
        apart: &'a [NodeId],
        all: &'a [NodeId],
        validators: u16,
    ) -> TreeNodes<'a> {
        let with_data = homes.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        TreeNodes { homes, with_data, apart, all, validators, dealt: 0 }
    }

    /// Where a node stands among those with data.
    pub fn place(&self, home: NodeId) -> usize {
        self.with_data.binary_search(&home).expect("each home is a node with data")
    }

    /// Homes for the validators of the next inner node, which has the node with data at this place
    /// below it.
    pub fn of_validators(&mut self, below: usize) -> Result<Vec<NodeId>, TreeError> {
        let (nodes, from) = match self.apart {
            [] => (&self.with_data[..], below),
            apart => (apart, self.dealt),
        };
        let (validators, count) = (self.validators, usize::from(self.validators));
        if !(1..=nodes.len()).contains(&count) {
            return Err(TreeError::Validators { validators, nodes: nodes.len() });
        }
        assert!(below < self.with_data.len(), "an inner node is above a node with data");
        self.dealt += count;
        Ok((from..from + count).map(|at| nodes[at % nodes.len()]).collect())
    }
}
