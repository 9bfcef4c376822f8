//! Where processors are what is scarce: over nodes, participants, costs of packets and so on.

use muesli_sim::time::Span;
use muesli_workloads::machines::MachineModel;

use super::base::{WINS, clients_on, most};
use super::lines::{ALL_WAYS, BOTH_TREES, RACK, ROOTS, SHAPES};
use super::trees::{ValidatorHome, grow};
use crate::reproduce::figure::{Axis, Figure};
use crate::reproduce::point::Quantity;

/// Clients for each node with data: enough to keep it busy.
const CLIENTS: u32 = 24;
/// Nodes with clients for each node with data.
const CLIENT_NODES: usize = 4;

const CHOSEN: &str = "24 clients for each node with data, on four nodes; racks of eight below a \
                      root, a validator of each inner node on every node below it; objects of 100 \
                      bytes, a hundred for each client, all of a transaction read at once";

/// The thesis's machines, on which packets cost most; all alike.
fn dear_packets() -> MachineModel {
    MachineModel { validator_costs: None, ..MachineModel::amaro_cluster() }
}

/// Muesli's own node with times for messages of a millisecond.
pub fn own() -> MachineModel {
    MachineModel { patience: 50, ..MachineModel::measured() }
}

const MAP: Figure = Figure {
    chosen: CHOSEN,
    machine: dear_packets,
    clients_a_node: CLIENTS,
    seconds: (0.4, 0.2),
    ..WINS
};

const NODES: Axis = Axis {
    name: "nodes",
    set: |x, setting| {
        setting.nodes = x as usize;
        clients_on(setting, CLIENT_NODES);
        // Three of each node's for each client.
        setting.put("objects", 3.0 * x * x * f64::from(CLIENTS));
    },
    range: (8.0, 128.0),
    logarithmic: true,
};

/// A parameter of the workload.
macro_rules! parameter {
    ($name:literal, $axis:literal, $range:expr) => {
        Axis {
            name: $axis,
            set: |x, setting| {
                setting.put($name, x);
                clients_on(setting, CLIENT_NODES);
            },
            range: $range,
            logarithmic: false,
        }
    };
}

/// What a packet costs, on a node whose messages cost 6 us each.
const PACKETS: Axis = Axis {
    name: "us a packet",
    set: |x, setting| {
        let micros = |share: f64| Span::from_nanos((x * share * 1e3) as u64);
        let costs = &mut setting.machine.costs;
        (costs.fetch, costs.flush) = (micros(0.55), micros(0.45));
        (costs.receive, costs.send) = (Span::from_nanos(3_300), Span::from_nanos(2_700));
        clients_on(setting, CLIENT_NODES);
    },
    range: (0.0, 1_000.0),
    logarithmic: false,
};

/// On how many nodes the clients of each node with data run.
const NODES_OF_CLIENTS: Axis = Axis {
    name: "client nodes a data node",
    set: |x, setting| clients_on(setting, x as usize),
    range: (1.0, 24.0),
    logarithmic: false,
};

/// How many children each inner node has, at as many levels as that takes.
const FANOUT: Axis = Axis {
    name: "children of an inner node",
    set: |x, setting| {
        clients_on(setting, CLIENT_NODES);
        let (width, nodes) = (x as usize, setting.nodes);
        let levels = (1..).take_while(|level| width.pow(level - 1) < nodes).count();
        grow(setting, &vec![width; levels], ValidatorHome::BesideData);
    },
    range: (2.0, 128.0),
    logarithmic: true,
};

/// So many clients for each node with data, down to one that waits for itself.
const LOAD: Axis = Axis {
    name: "clients a node",
    set: |x, setting| {
        setting.clients = Some(x as u32 * setting.nodes as u32);
        clients_on(setting, CLIENT_NODES.min(x as usize));
        setting.put("objects", 100.0 * x * setting.nodes as f64);
    },
    range: (1.0, 100.0),
    logarithmic: false,
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "hierarchy-wins-nodes",
        about: "Who decides an update of objects on eight nodes, where packets cost most",
        axis: NODES,
        xs: &[8.0, 16.0, 32.0, 64.0, 128.0],
        quick_xs: &[16.0, 32.0],
        lines: ALL_WAYS,
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-participants",
        about: "The same over the participants of a transaction, 32 nodes",
        axis: parameter!("updates", "participants", (1.0, 32.0)),
        xs: &[2.0, 4.0, 8.0, 16.0],
        quick_xs: &[2.0, 16.0],
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-packet",
        about: "The same over the cost of a packet, 32 nodes that are Muesli's own otherwise",
        machine: own,
        axis: PACKETS,
        xs: &[0.0, 6.0, 20.0, 60.0],
        quick_xs: &[0.0, 60.0],
        seconds: (0.3, 0.1),
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-clients",
        about: "The same over the nodes that 24 clients of a data node run on, 32 nodes",
        axis: NODES_OF_CLIENTS,
        xs: &[1.0, 4.0, 24.0],
        quick_xs: &[1.0, 24.0],
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-local",
        about: "The same over the share of transactions in the client's own rack, 32 nodes",
        parameters: &["objects={clients}00", "bytes=100", "one-by-one=false", "siblings=8"],
        axis: parameter!("subtree", "% in one rack", (0.0, 100.0)),
        xs: &[0.0, 50.0, 90.0, 100.0],
        quick_xs: &[0.0, 90.0],
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-contention",
        about: "The same over the share of objects that all clients share, ten a node, 32 nodes",
        axis: parameter!("sharing", "% shared", (0.0, 100.0)),
        xs: &[0.0, 1.0, 5.0, 20.0],
        quick_xs: &[0.0, 5.0],
        lines: BOTH_TREES,
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-shape",
        about: "The same over the children of an inner node: levels of the tree, 32 nodes",
        axis: FANOUT,
        xs: &[2.0, 4.0, 8.0, 32.0],
        quick_xs: &[2.0, 32.0],
        lines: SHAPES,
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-root",
        about: "One root for all, beside data and apart: where it saturates",
        axis: NODES,
        xs: &[8.0, 16.0, 32.0, 64.0],
        quick_xs: &[8.0, 32.0],
        lines: ROOTS,
        models: &[],
        claims: &[
            most("one root over the best", Quantity::AMachine, "one root", None),
            most("one root apart, a machine", Quantity::AMachine, "one root, apart", None),
            most(
                "one in eight, a data node",
                Quantity::ANode,
                "roots apart, one in eight",
                Some(1.5),
            ),
            most(
                "one in eight, a machine",
                Quantity::AMachine,
                "roots apart, one in eight",
                Some(1.3),
            ),
            most("one in four, a machine", Quantity::AMachine, "roots apart, one in four", None),
        ],
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-load",
        about: "The same over the clients of a data node: latency where there is little to do",
        axis: LOAD,
        xs: &[1.0, 4.0, 16.0, 40.0],
        quick_xs: &[1.0, 16.0],
        shows: Quantity::Latency,
        models: &[],
        ..MAP
    },
    Figure {
        name: "hierarchy-wins-measured",
        about: "Who decides an update of objects on eight nodes, on Muesli's own node",
        machine: own,
        axis: NODES,
        xs: &[16.0, 32.0, 64.0],
        quick_xs: &[16.0, 32.0],
        seconds: (0.1, 0.05),
        ..MAP
    },
];

const _: () = assert!(RACK == 8, "`siblings` of a figure above are as many as a rack has");
