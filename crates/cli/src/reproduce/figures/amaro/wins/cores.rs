//! Where nodes are cores of machines: a message between two of one machine is no packet, and an
//! inner node of the tree is a machine.
//!
//! A client has a connection to each core, as it has to each loop of a server, so what it says to
//! two cores are two packets, whoever decides.

use muesli_sim::time::Span;
use muesli_workloads::machines::MachineModel;

use super::base::{AIMS, WINS, clients_on};
use super::lines::BOTH_TREES;
use super::map::own;
use crate::reproduce::figure::{Axis, Figure, Setting};

/// Cores of a machine, and machines.
const CORES: usize = 8;
const MACHINES: usize = 4;
/// Clients for each core: enough to keep it busy; and on how many nodes they run.
const CLIENTS: u32 = 12;
const CLIENT_NODES: usize = 4;
/// Objects of its own that each client has on each core: else it meets its own last transaction.
const OBJECTS: usize = 100;

const CHOSEN: &str = "four machines of eight cores, each a node with data; 12 clients for each \
                      core, on four nodes elsewhere; an inner node for each machine, with a \
                      validator on each of its cores, and a root with one on each of all; a \
                      connection for each client node and core";

/// Muesli's own node as calibrated, eight of them on a machine.
fn cores() -> MachineModel {
    MachineModel {
        about: "Muesli's own node as calibrated, eight of them cores of a machine",
        cores: CORES,
        ..own()
    }
}

const WIDE: Figure = Figure {
    parameters: &[
        "bytes=100",
        "one-by-one=false",
        "siblings=8",
        "subtrees=2",
        "updates=16",
        "blind=100",
    ],
    chosen: CHOSEN,
    machine: cores,
    nodes: CORES * MACHINES,
    clients_a_node: CLIENTS,
    lines: BOTH_TREES,
    claims: AIMS,
    seconds: (0.1, 0.05),
    ..WINS
};

fn touching(machines: f64, participants: f64, setting: &mut Setting) {
    setting.put("subtrees", machines);
    setting.put("updates", participants);
    served(CLIENT_NODES, setting);
}

fn served(client_nodes: usize, setting: &mut Setting) {
    let cores = CORES * MACHINES;
    setting.put("objects", (OBJECTS * CLIENTS as usize * cores * cores) as f64);
    clients_on(setting, client_nodes);
}

/// On how many machines eight cores of a transaction are.
const MACHINES_USED: Axis = Axis {
    name: "machines of eight participants",
    set: |x, setting| touching(x, 8.0, setting),
    range: (1.0, 4.0),
    logarithmic: false,
};

const ON_TWO: Axis = Axis {
    name: "participants on two machines",
    set: |x, setting| touching(2.0, x, setting),
    range: (2.0, 16.0),
    logarithmic: false,
};

const ON_FOUR: Axis = Axis {
    name: "participants on four machines",
    set: |x, setting| touching(4.0, x, setting),
    range: (4.0, 32.0),
    logarithmic: false,
};

/// What an end of a handover between two cores costs.
const HANDOVER: Axis = Axis {
    name: "ns an end of a handover",
    set: |x, setting| {
        setting.machine.costs.core = Span::from_nanos(x as u64);
        served(CLIENT_NODES, setting);
    },
    range: (0.0, 10_000.0),
    logarithmic: false,
};

const NODES_OF_CLIENTS: Axis = Axis {
    name: "client nodes a core",
    set: |x, setting| served(x as usize, setting),
    range: (1.0, 12.0),
    logarithmic: false,
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "hierarchy-wins-cores",
        about: "Who decides blind writes on eight cores, over the machines that these are on",
        axis: MACHINES_USED,
        xs: &[1.0, 2.0, 4.0],
        quick_xs: &[1.0, 2.0, 4.0],
        ..WIDE
    },
    Figure {
        name: "hierarchy-wins-cores-two",
        about: "The same over the participants on two machines",
        axis: ON_TWO,
        xs: &[2.0, 4.0, 8.0, 16.0],
        quick_xs: &[4.0, 16.0],
        ..WIDE
    },
    Figure {
        name: "hierarchy-wins-cores-four",
        about: "The same over the participants on four machines",
        axis: ON_FOUR,
        xs: &[4.0, 8.0, 16.0, 32.0],
        quick_xs: &[8.0, 16.0, 32.0],
        ..WIDE
    },
    Figure {
        name: "hierarchy-wins-cores-handover",
        about: "The same over the cost of a handover between cores, 16 participants, two machines",
        axis: HANDOVER,
        xs: &[0.0, 150.0, 1_000.0, 2_400.0],
        quick_xs: &[150.0, 2_400.0],
        ..WIDE
    },
    Figure {
        name: "hierarchy-wins-cores-clients",
        about: "The same over the nodes that 12 clients of a core run on, 16 participants",
        axis: NODES_OF_CLIENTS,
        xs: &[1.0, 4.0, 12.0],
        quick_xs: &[1.0, 12.0],
        ..WIDE
    },
];
