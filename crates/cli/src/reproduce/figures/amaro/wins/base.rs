//! What the figures on where a tree pays have in common.

use super::lines::{BASELINES, WHO_DECIDES};
use super::predicted;
use crate::reproduce::figure::{
    ClaimTarget, Figure, Measure, Model, NOTHING, PaperClaim, Setting, claim,
};
use crate::reproduce::point::Quantity;

/// What is aimed at, for each machine and for each node with data.
pub const AIMS: &[PaperClaim] = &[
    most("tree, locks, over the best, a machine", Quantity::AMachine, "tree, locks", Some(1.3)),
    most("tree, intervals, over the best, a machine", Quantity::AMachine, "tree, intervals", None),
    most("tree, locks, over the best, a data node", Quantity::ANode, "tree, locks", Some(1.5)),
    most("tree, locks, over the best, by theory", Quantity::Predicted, "tree, locks", None),
];

/// The same where a tree is not expected to win, as a record.
pub const RECORDED: &[PaperClaim] = &[
    most("tree, locks, over the best", Quantity::AMachine, "tree, locks", None),
    most("tree, locks, over the best, by theory", Quantity::Predicted, "tree, locks", None),
];

/// The most that a line shows over the best of those without a tree.
pub const fn most(
    what: &'static str,
    quantity: Quantity,
    line: &'static str,
    target: Option<f64>,
) -> PaperClaim {
    let target = match target {
        Some(least) => Some(ClaimTarget::Least(least)),
        None => None,
    };
    claim(what, Measure::MostOverBest(quantity, line, BASELINES), None, target)
}

const MODELS: &[Model] = &[
    Model { name: "theory: client", of: "client", predicts: |point| point.predicted },
    Model { name: "theory: tree", of: "tree, locks", predicts: |point| point.predicted },
];

/// What all of them have in common.
pub const WINS: Figure = Figure {
    workload: "objects",
    parameters: &["objects={clients}00", "bytes=100", "one-by-one=false"],
    nodes: 32,
    replicas: 1,
    lines: WHO_DECIDES,
    models: MODELS,
    theory: Some(predicted::predicted),
    baselines: BASELINES,
    claims: RECORDED,
    ..NOTHING
};

/// Clients run on so many nodes for each node with data.
pub fn clients_on(setting: &mut Setting, each: usize) {
    setting.machine.client_nodes = each * setting.nodes;
}
