//! Shapes of trees, as options name them: `8`, `4x4`, `2x4x8`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::hierarchy::INNER_NODES_MAX;
use super::tree_nodes::{TreeError, TreeNodes};
use super::{Hierarchy, InnerNode};

/// The most levels of inner nodes.
pub const LEVELS_MAX: usize = 8;

/// How many children the inner nodes of each level have, from the root down. The leaves are nodes
/// with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeShape(Vec<usize>);

/// A text that names no shape.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no shape of a tree: expected how many children the nodes of each level have, from \
     the root down, as in `8` or `4x4`; {LEVELS_MAX} levels at most, each of 1 to 1024"
)]
pub struct NoTreeShape(pub String);

impl FromStr for TreeShape {
    type Err = NoTreeShape;

    fn from_str(text: &str) -> Result<TreeShape, NoTreeShape> {
        let no_shape = || NoTreeShape(text.to_owned());
        let widths = text.split('x').map(|width| match width.parse() {
            Ok(width @ 1..=1024) => Ok(width),
            _ => Err(no_shape()),
        });
        let widths = widths.collect::<Result<Vec<usize>, _>>()?;
        let shape = TreeShape(widths);
        let inner = shape.levels().iter().fold(0_usize, |all, level| all.saturating_add(*level));
        let fits = shape.0.len() <= LEVELS_MAX && inner <= INNER_NODES_MAX;
        if fits { Ok(shape) } else { Err(no_shape()) }
    }
}

impl fmt::Display for TreeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, width) in self.0.iter().enumerate() {
            write!(f, "{}{width}", if level == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

impl TreeShape {
    /// How many nodes with data it has as leaves.
    pub fn leaves(&self) -> usize {
        self.0.iter().fold(1, |all, width| all.saturating_mul(*width))
    }

    /// How many inner nodes each level has, from the root down.
    fn levels(&self) -> Vec<usize> {
        let mut levels = vec![1_usize];
        levels.extend(self.0.iter().scan(1_usize, |above, width| {
            *above = above.saturating_mul(*width);
            Some(*above)
        }));
        levels.pop();
        levels
    }

    /// The tree of this shape: repositories of one node are below one inner node, and nodes come in
    /// the order of their numbers.
    ///
    /// # Errors
    /// There are more or fewer nodes than leaves, or too few for the validators.
    pub(super) fn over(&self, nodes: &mut TreeNodes<'_>) -> Result<Hierarchy, TreeError> {
        let leaves = self.leaves();
        if leaves != nodes.with_data.len() {
            let (shape, nodes) = (self.to_string(), nodes.with_data.len());
            return Err(TreeError::Leaves { shape, leaves, nodes });
        }
        let (mut inner, mut first) = (Vec::new(), 0);
        for (level, &count) in self.levels().iter().enumerate() {
            let above = first;
            first = inner.len();
            for at in 0..count {
                let parent = (level > 0).then(|| (above + at / self.0[level - 1]) as u16);
                let homes = nodes.of_validators(at * (leaves / count))?;
                inner.push(InnerNode { homes, parent });
            }
        }
        assert_eq!(inner.len(), self.levels().iter().sum::<usize>(), "the levels of {self}");
        let lowest = *self.0.last().expect("a shape has a level");
        let above = nodes.homes.iter().map(|home| (first + nodes.place(*home) / lowest) as u16);
        Ok(Hierarchy::new(inner, above.collect())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::TreePlan;
    use crate::ids::{NodeId, RepositoryId};

    fn shape(text: &str) -> TreeShape {
        text.parse().expect("a shape")
    }

    fn over(text: &str, homes: &[NodeId], apart: &[NodeId]) -> Result<Hierarchy, TreeError> {
        TreePlan::from(shape(text)).over(homes, apart, homes)
    }

    fn nodes(count: u32) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    #[test]
    fn a_shape_is_read_and_written() {
        for text in ["8", "4x4", "2x4x8"] {
            assert_eq!(shape(text).to_string(), text);
        }
        for text in ["", "0", "4x", "x4", "4x0", "a", "-1", "1025", "64x64x2", "1x1x1x1x1x1x1x1x1"]
        {
            let error = text.parse::<TreeShape>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{text}` is no shape")), "{error}");
        }
    }

    #[test]
    fn one_level_is_a_root_over_all() {
        let tree = over("3", &nodes(3), &[]).unwrap();
        assert_eq!((tree.inner_nodes(), tree.homes(0), tree.parent(0)), (1, &nodes(1)[..], None));
        assert!((0..3).all(|it| tree.above(RepositoryId(it)) == 0));
    }

    #[test]
    fn repositories_of_a_node_are_below_one_inner_node() {
        let homes: Vec<_> = (0..8).map(|it| NodeId(it % 4)).collect();
        let tree = over("2x2", &homes, &[]).unwrap();
        assert_eq!(tree.to_string(), "0(0(r0 r1 r4 r5) 2(r2 r3 r6 r7))");
        assert_eq!([tree.parent(1), tree.parent(2)], [Some(0); 2]);
    }

    #[test]
    fn validators_can_live_apart() {
        let tree = over("2x2", &nodes(4), &[NodeId(7), NodeId(8)]).unwrap();
        assert_eq!(tree.to_string(), "7(8(r0 r1) 7(r2 r3))");
    }

    #[test]
    fn a_tree_of_other_leaves_is_refused() {
        let error = over("4x4", &nodes(8), &[]).unwrap_err();
        let expected = "a tree of shape 4x4 has 16 leaves, and there are 8 nodes with data";
        assert_eq!(error.to_string(), expected);
    }
}
