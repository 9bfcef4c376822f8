//! What tree a database is to have: a shape or a text, and how many validators an inner node has.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use super::{Hierarchy, NamedTree, NotATree, TreeShape};
use crate::ids::NodeId;

/// A tree as it is asked for, before it is known where repositories live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePlan {
    /// How its inner nodes hang together.
    pub form: TreeForm,
    /// How many validators each inner node has that does not say where they live.
    pub validators: u16,
}

/// How the inner nodes of a tree hang together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeForm {
    /// By the number of children at each level.
    Shape(TreeShape),
    /// As a text says of each.
    Named(NamedTree),
}

/// A tree that does not fit the nodes that are there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeError {
    /// There are more or fewer leaves than nodes.
    #[error("a tree of shape {shape} has {leaves} leaves, and there are {nodes} nodes with data")]
    Leaves {
        /// The shape.
        shape: TreeShape,
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

impl From<TreeShape> for TreePlan {
    fn from(shape: TreeShape) -> TreePlan {
        TreePlan { form: TreeForm::Shape(shape), validators: 1 }
    }
}

impl From<NamedTree> for TreePlan {
    fn from(named: NamedTree) -> TreePlan {
        TreePlan { form: TreeForm::Named(named), validators: 1 }
    }
}

/// As an option names it.
impl fmt::Display for TreePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            TreeForm::Shape(shape) => shape.fmt(f),
            TreeForm::Named(named) => f.write_str(named.file()),
        }
    }
}

impl TreePlan {
    /// How many nodes with data it is over.
    pub fn leaves(&self) -> usize {
        match &self.form {
            TreeForm::Shape(shape) => shape.leaves(),
            TreeForm::Named(named) => named.leaves(),
        }
    }

    /// This tree above the repositories at `homes`. Its validators live on `apart`, in turn; where
    /// that is empty, on the first nodes with data below each inner node, and those after these.
    /// `all` are the nodes on which a text may say that they live.
    ///
    /// # Errors
    /// It does not fit these nodes.
    pub fn over(
        &self,
        homes: &[NodeId],
        apart: &[NodeId],
        all: &[NodeId],
    ) -> Result<Hierarchy, TreeError> {
        let with_data = homes.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let validators = self.validators;
        let mut nodes = TreeNodes { homes, with_data, apart, all, validators, dealt: 0 };
        match &self.form {
            TreeForm::Shape(shape) => shape.over(&mut nodes),
            TreeForm::Named(named) => named.over(&mut nodes),
        }
    }
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

impl TreeNodes<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &str, validators: u16) -> TreePlan {
        TreePlan { validators, ..TreePlan::from(shape.parse::<TreeShape>().unwrap()) }
    }

    #[test]
    fn the_validators_of_an_inner_node_live_on_different_nodes() {
        let homes: Vec<_> = (0..4).map(NodeId).collect();
        let over = |validators, apart: &[NodeId]| {
            plan("2x2", validators).over(&homes, apart, &homes).map(|tree| tree.to_string())
        };
        assert_eq!(over(2, &[]).unwrap(), "0+1(0+1(r0 r1) 2+3(r2 r3))");
        assert_eq!(over(3, &[]).unwrap(), "0+1+2(0+1+2(r0 r1) 2+3+0(r2 r3))");
        let apart: Vec<_> = (7..10).map(NodeId).collect();
        assert_eq!(over(2, &apart).unwrap(), "7+8(9+7(r0 r1) 8+9(r2 r3))");
        for (validators, nodes) in [(0, 3), (4, 3)] {
            let expected = TreeError::Validators { validators, nodes };
            assert_eq!(over(validators, &apart), Err(expected));
        }
        assert_eq!((plan("2x2", 1).leaves(), plan("2x2", 9).to_string()), (4, "2x2".to_owned()));
    }
}
