//! What Amaro's figures have in common.

use muesli_core::catalog::{TreePlan, TreeShape};
use muesli_core::{BatchLinks, Batching, LinkBatch, Nanos};
use muesli_workloads::machines::MachineModel;

use crate::reproduce::figure::{Axis, Figure, NOTHING, Setting};

/// How long the first message of a batch waits. It is not printed.
const TIMEOUT: Nanos = Nanos::from_millis(50);

/// How many clients there are, each on a node of its own: servers have a connection for each.
pub const CLIENTS: Axis = Axis {
    name: "clients",
    set: |x, setting| set_clients(x as u32, setting),
    range: (1.0, 1_000.0),
    logarithmic: false,
};

/// From few clients to more than any of the systems gains by.
pub const FEW_TO_MANY: &[f64] = &[
    20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0, 200.0, 220.0, 240.0, 260.0, 280.0,
    300.0, 400.0,
];
/// The same in larger steps.
pub const QUICK: &[f64] = &[20.0, 60.0, 80.0, 100.0, 140.0, 180.0, 240.0, 300.0, 400.0];

pub const OBJECTS: Figure = Figure {
    workload: "objects",
    parameters: &["objects=16000"],
    chosen: "16,000 objects in place of 800,000, as throughput does not depend on them; a batch \
             waits for 50 ms at most, which is not printed; the root's machine does four times as \
             much as one with data",
    machine: MachineModel::amaro_cluster,
    nodes: 8,
    replicas: 1,
    axis: CLIENTS,
    xs: FEW_TO_MANY,
    quick_xs: QUICK,
    seconds: (3.0, 1.0),
    ..NOTHING
};

pub fn set_clients(clients: u32, setting: &mut Setting) {
    setting.clients = Some(clients);
    setting.machine.client_nodes = clients as usize;
}

/// A root over all eight, on a node of its own.
pub fn tree(setting: &mut Setting) {
    let shape: TreeShape = "8".parse().expect("it is a shape");
    (setting.tree, setting.validator_nodes) = (Some(TreePlan::from(shape)), 1);
}

/// So many messages leave together over the links of the tree.
pub fn batches(size: usize, setting: &mut Setting) {
    let batch = LinkBatch::new(size, TIMEOUT).unwrap_or_default();
    setting.batching = Batching::over(BatchLinks::Tree, batch);
}

/// The tree with batches of 10.
pub fn tens(setting: &mut Setting) {
    tree(setting);
    batches(10, setting);
}

/// The tree with batches of 50.
pub fn fifties(setting: &mut Setting) {
    tree(setting);
    batches(50, setting);
}
