//! Where a tree pays: with validation, and against the same leaves without a tree.
//!
//! All of them lock and validate alike, and validators live beside data, so that no line has more
//! machines than another. Clients are on nodes of their own, as programs are that use a database.

use muesli_workloads::machines::MachineModel;

use super::base::OBJECTS;
use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, NODES, PaperClaim, PlottedLine, Setting, claim, line,
};

/// Clients for each node with data.
const CLIENTS: u32 = 40;
/// Nodes in a rack.
const RACK: usize = 8;

/// Who decides.
const LINES: &[PlottedLine] = &[
    line("client", "hierarchy-locking-flat", clients_apart),
    line("participant", "hierarchy-locking-flat-participant", clients_apart),
    line("relay", "hierarchy-locking-flat-relay", racks),
    line("root", "hierarchy-locking", root),
    line("racks", "hierarchy-locking", racks),
];

fn clients_apart(setting: &mut Setting) {
    setting.machine.client_nodes = CLIENTS as usize * setting.nodes;
}

/// A root over all, with a validator beside each of them.
fn root(setting: &mut Setting) {
    clients_apart(setting);
    setting.tree = Some(setting.nodes.to_string());
    setting.validators = setting.nodes as u16;
}

/// Racks below a root, each inner node with as many validators as a rack has nodes.
fn racks(setting: &mut Setting) {
    clients_apart(setting);
    setting.tree = Some(format!("{}x{RACK}", setting.nodes / RACK));
    setting.validators = RACK as u16;
}

const COMPARED: &[PaperClaim] = &[
    claim("root over client", Measure::Speedup("root", "client"), None, None),
    claim(
        "root over participant",
        Measure::Speedup("root", "participant"),
        None,
        Some(ClaimTarget::Least(1.3)),
    ),
    claim("racks over participant", Measure::Speedup("racks", "participant"), None, None),
    claim("relay over participant", Measure::Speedup("relay", "participant"), None, None),
];

const BY_NODES: Figure = Figure {
    parameters: &["objects={clients}00", "bytes=100"],
    chosen: "40 clients for each node with data, each on a node of its own; validators beside \
             data; a hundred objects of 100 bytes for each client",
    axis: Axis { range: (16.0, 128.0), ..NODES },
    xs: &[16.0, 32.0, 64.0],
    quick_xs: &[16.0, 32.0],
    clients_a_node: CLIENTS,
    lines: LINES,
    seconds: (1.0, 0.3),
    claims: COMPARED,
    ..OBJECTS
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "hierarchy-wins",
        about: "Who decides an update of objects on eight nodes, where packets cost most",
        ..BY_NODES
    },
    Figure {
        name: "hierarchy-wins-measured",
        about: "The same on this project's own node as calibrated",
        machine: MachineModel::measured,
        ..BY_NODES
    },
];
