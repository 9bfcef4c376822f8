//! Who decides: the lines of the figures on where a tree pays.

use muesli_core::catalog::{TreePlan, TreeShape};

use super::trees::{self, ValidatorHome};
use crate::reproduce::figure::{PlottedLine, Setting, line};

/// Nodes of a rack, where nothing else is said.
pub const RACK: usize = 8;

/// The ways to decide without a tree: the best of them is what a tree is set beside.
pub const BASELINES: &[&str] = &["client", "participant", "relay", "2PC"];

/// What is compared where who decides is all that differs.
pub const WHO_DECIDES: &[PlottedLine] = &[
    line("client", "hierarchy-locking-flat", |_| ()),
    line("participant", "hierarchy-locking-flat-participant", |_| ()),
    line("relay", "hierarchy-locking-flat-relay", racks),
    line("tree, locks", "hierarchy-locking", racks),
];

/// The same with the tree that excludes by intervals.
pub const BOTH_TREES: &[PlottedLine] = &[
    WHO_DECIDES[0],
    WHO_DECIDES[1],
    WHO_DECIDES[2],
    WHO_DECIDES[3],
    line("tree, intervals", "hierarchy", racks),
];

/// The same with two-phase commit of the project's own, and with a root alone.
pub const ALL_WAYS: &[PlottedLine] = &[
    WHO_DECIDES[0],
    WHO_DECIDES[1],
    WHO_DECIDES[2],
    line("2PC", "two-phase-commit", |_| ()),
    BOTH_TREES[3],
    BOTH_TREES[4],
    line("root", "hierarchy-locking", root),
];

/// One validator for all, and more.
pub const ROOTS: &[PlottedLine] = &[
    WHO_DECIDES[0],
    WHO_DECIDES[1],
    line("one root", "hierarchy-locking", one_root),
    line("one root, apart", "hierarchy-locking", |setting| apart(setting, 1)),
    line("roots apart, one in eight", "hierarchy-locking", |setting| {
        apart(setting, setting.nodes.div_ceil(8));
    }),
    line("roots apart, one in four", "hierarchy-locking", |setting| {
        apart(setting, setting.nodes.div_ceil(4));
    }),
];

/// A tree of the shape that the axis says, and baselines without one.
pub const SHAPES: &[PlottedLine] = &[
    line("client", "hierarchy-locking-flat", no_tree),
    line("participant", "hierarchy-locking-flat-participant", no_tree),
    line("tree, locks", "hierarchy-locking", |_| ()),
];

fn no_tree(setting: &mut Setting) {
    setting.tree = None;
    setting.tree_spans.clear();
}

/// Racks or machines below a root, as many nodes each as share links or are cores of one machine,
/// or else a few.
fn racks(setting: &mut Setting) {
    let (rack, cores) = (setting.machine.racks.nodes, setting.machine.cores);
    let below = [rack, cores].into_iter().find(|nodes| *nodes > 1);
    trees::racks(setting, below.unwrap_or(RACK));
}

/// A root over all, with a validator beside each of them.
fn root(setting: &mut Setting) {
    trees::grow(setting, &[setting.nodes], ValidatorHome::BesideData);
}

/// A root with one validator, beside the first of them.
fn one_root(setting: &mut Setting) {
    let shape: TreeShape = setting.nodes.to_string().parse().expect("it is a shape");
    setting.tree = Some(TreePlan::from(shape));
}

/// A root with validators on so many nodes of their own.
fn apart(setting: &mut Setting, count: usize) {
    trees::grow(setting, &[setting.nodes], ValidatorHome::Apart(count));
}
