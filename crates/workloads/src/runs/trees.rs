//! Trees of validators in searches: what a run begins with, and what faults change it to.

use muesli_core::catalog::{TreePlan, TreeShape};

use crate::chance::Chance;

/// So many other trees there are for faults to choose from.
pub(crate) const OTHERS: u32 = 3;

/// How many nodes there are for a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodesForTree {
    /// With data.
    pub leaves: usize,
    /// On which validators may live.
    pub for_validators: usize,
}

impl NodesForTree {
    /// The tree above the nodes with data that a run begins with: two levels where their number is
    /// no prime, in two seeds of three; `None`: a root above all. It takes nothing from what else
    /// the seed draws.
    pub(crate) fn first(self, seed: u64) -> Option<TreePlan> {
        let widths = (2..self.leaves).filter(|width| self.leaves.is_multiple_of(*width));
        let widths = widths.collect::<Vec<_>>();
        let drawn = (seed % 3) as usize;
        let width = widths.get(drawn % widths.len().max(1)).filter(|_| drawn > 0)?;
        Some(self.two_levels(*width, 1 + seed / 3 % 2))
    }

    /// What the tree may change to: one or two levels of any width, with other validators.
    pub(crate) fn others(self, seed: u64) -> Vec<TreePlan> {
        let mut chance = Chance::new(seed, u32::MAX, 2);
        let widths = (1..=self.leaves).filter(|width| self.leaves.is_multiple_of(*width));
        let widths = widths.collect::<Vec<_>>();
        let mut draw = || {
            let width = widths[chance.below(widths.len() as u64) as usize];
            self.two_levels(width, chance.between(1, 2))
        };
        (0..OTHERS).map(|_| draw()).collect()
    }

    fn two_levels(self, width: usize, validators: u64) -> TreePlan {
        let shape: TreeShape = match self.leaves / width {
            1 => width.to_string(),
            above => format!("{above}x{width}"),
        }
        .parse()
        .expect("a shape of a tree");
        let validators = (validators as u16).min(self.for_validators as u16);
        TreePlan { validators, ..TreePlan::from(shape) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn seeds_change_the_tree_to_others_over_the_same_nodes() {
        let nodes = NodesForTree { leaves: 4, for_validators: 4 };
        let all = (0..50).flat_map(|seed| nodes.others(seed));
        let shapes: BTreeSet<_> = all.map(|it| (it.to_string(), it.validators)).collect();
        let expected = ["2x2", "4", "4x1"].map(|shape| [(shape.into(), 1), (shape.into(), 2)]);
        assert_eq!(shapes, expected.concat().into_iter().collect());
        let alone = NodesForTree { leaves: 3, for_validators: 1 };
        let all = (0..50).flat_map(|seed| alone.others(seed)).collect::<Vec<_>>();
        assert!(all.iter().all(|it| it.validators == 1 && it.leaves() == 3), "{all:?}");
        assert_eq!(all.len(), 50 * OTHERS as usize);
    }

    #[test]
    fn a_prime_number_of_nodes_begins_with_a_root_above_all() {
        assert!(
            (0..9).all(|seed| NodesForTree { leaves: 3, for_validators: 3 }.first(seed).is_none())
        );
        let four = NodesForTree { leaves: 4, for_validators: 4 };
        assert_eq!(four.first(1).map(|it| it.to_string()), Some("2x2".to_owned()));
    }
}
