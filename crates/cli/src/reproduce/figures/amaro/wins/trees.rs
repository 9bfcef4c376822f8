//! Trees over the nodes of a figure, with validators on all nodes below each inner node.
//!
//! A shape puts as many validators to each inner node, on the first nodes below it: those of the
//! root would be in the first rack. So trees here are texts.

use muesli_core::catalog::{NamedTree, TreePlan};

use crate::reproduce::figure::Setting;

/// Where validators live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidatorHome {
    /// Beside data, on every node below their inner node.
    BesideData,
    /// On so many nodes of their own, all of them for every inner node.
    Apart(usize),
}

/// Gives a setting a tree in which each inner node has so many children at most at each level,
/// from the leaves up.
pub fn grow(setting: &mut Setting, widths: &[usize], home: ValidatorHome) {
    let first_apart = setting.nodes + setting.machine.client_nodes + setting.masters;
    if let ValidatorHome::Apart(count) = home {
        setting.validator_nodes = count;
    }
    let text = text(setting.nodes, widths, home, first_apart);
    let tree = NamedTree::read("the figure's tree", &text).expect("the text is of a tree");
    setting.tree = Some(TreePlan::from(tree));
    setting.tree_spans = spans(setting.nodes, widths);
    setting.tree_spans.pop();
}

/// Racks of so many nodes below a root, validators beside data.
pub fn racks(setting: &mut Setting, rack: usize) {
    let widths = [rack, setting.nodes.div_ceil(rack)];
    grow(
        setting,
        if setting.nodes > rack { &widths } else { &widths[..1] },
        ValidatorHome::BesideData,
    );
}

/// How many nodes with data are below each inner node of a level, from the leaves up.
fn spans(nodes: usize, widths: &[usize]) -> Vec<usize> {
    let spans = widths.iter().scan(1, |all: &mut usize, width| {
        *all = all.saturating_mul(*width).min(nodes);
        Some(*all)
    });
    spans.collect()
}

fn text(nodes: usize, widths: &[usize], home: ValidatorHome, first_apart: usize) -> String {
    let listed = |all: std::ops::Range<usize>| {
        all.map(|node| node.to_string()).collect::<Vec<_>>().join(" ")
    };
    let below = spans(nodes, widths);
    let mut text = String::new();
    for (level, span) in below.iter().enumerate().rev() {
        for (number, first) in (0..nodes).step_by(*span).enumerate() {
            let covered = first..(first + span).min(nodes);
            let homes = match home {
                ValidatorHome::BesideData => covered.clone(),
                ValidatorHome::Apart(count) => first_apart..first_apart + count,
            };
            text += &format!("v{level}.{number}");
            if let Some(above) = below.get(level + 1) {
                text += &format!(" under v{}.{}", level + 1, first / above);
            }
            text += &format!(" on {}", listed(homes));
            text += &if level == 0 { format!(" above {}\n", listed(covered)) } else { "\n".into() };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validators_live_on_all_nodes_below_them() {
        let two_racks = "v1.0 on 0 1 2 3\nv0.0 under v1.0 on 0 1 above 0 1\n\
                         v0.1 under v1.0 on 2 3 above 2 3\n";
        assert_eq!(text(4, &[2, 2], ValidatorHome::BesideData, 9), two_racks);
        assert_eq!(text(3, &[8], ValidatorHome::Apart(2), 9), "v0.0 on 9 10 above 0 1 2\n");
        for widths in [&[2, 2, 2, 2, 2][..], &[4, 4, 2], &[8, 4], &[32]] {
            let text = text(32, widths, ValidatorHome::BesideData, 0);
            let tree = NamedTree::read("tree", &text).unwrap();
            assert_eq!(tree.leaves(), 32, "{text}");
        }
    }
}
