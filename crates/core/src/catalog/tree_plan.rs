//! What tree a database is to have: a shape or a text, and how many validators an inner node has.

use std::fmt;

use super::tree_nodes::{TreeError, TreeNodes};
use super::{Hierarchy, NamedTree, TreeShape};
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
        let mut nodes = TreeNodes::new(homes, apart, all, self.validators);
        match &self.form {
            TreeForm::Shape(shape) => shape.over(&mut nodes),
            TreeForm::Named(named) => named.over(&mut nodes),
        }
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
