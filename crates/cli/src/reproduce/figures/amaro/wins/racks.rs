//! Where links between racks are what is scarce.

use muesli_core::{BatchLinks, Batching, LinkBatch, Nanos};
use muesli_sim::network::racks::RackLink;
use muesli_workloads::machines::MachineModel;
use muesli_workloads::machines::racks::RackModel;

use super::base::{AIMS, WINS, clients_on};
use super::lines::{ALL_WAYS, BOTH_TREES};
use crate::reproduce::figure::{Axis, Figure, Setting};

/// Nodes with data in a rack.
const RACK: usize = 16;
/// Packets a second of a link, where the axis does not say.
const SCARCE: u64 = 100_000;
/// A gigabit a second, on Ethernet, where a packet takes as long as ninety bytes beside its own.
const GIGABIT: RackLink = RackLink { packets: 1_390_000, bandwidth: 125_000_000 };
/// How long the first message of a batch waits.
const TIMEOUT: Nanos = Nanos::from_millis(1);

const CHOSEN: &str = "two racks of 16, half of a transaction's objects in the client's own and \
                      half in the other one; ten clients for each node with data, on a node beside \
                      it; \
                      a validator of each inner node on every node below it";

/// Muesli's own nodes in racks whose links take so many packets a second.
fn scarce() -> MachineModel {
    let link = RackLink { packets: SCARCE, bandwidth: 0 };
    MachineModel {
        about: "Muesli's own node as calibrated, in racks with 100,000 packets a second each way",
        patience: 50,
        racks: RackModel { nodes: RACK, link },
        ..MachineModel::measured()
    }
}

/// The same with a gigabit a second.
fn gigabit() -> MachineModel {
    MachineModel {
        about: "Muesli's own node as calibrated, in racks with a gigabit a second each way",
        racks: RackModel { nodes: RACK, link: GIGABIT },
        ..scarce()
    }
}

/// Four times as many clients, so that batches fill and links are full all the same.
fn many_clients(setting: &mut Setting) {
    setting.clients = Some(40 * setting.nodes as u32);
    setting.put("objects", 500.0 * 40.0 * setting.nodes as f64);
    clients_on(setting, 1);
}

/// Messages over all links wait for each other.
fn batched(size: usize, setting: &mut Setting) {
    let batch = LinkBatch::new(size, TIMEOUT).unwrap_or_default();
    setting.batching = Batching::over(BatchLinks::All, batch);
}

const RACKS: Figure = Figure {
    parameters: &[
        "objects={clients}000",
        "bytes=100",
        "one-by-one=false",
        "siblings=16",
        "subtrees=2",
        "updates=16",
        "blind=100",
    ],
    chosen: CHOSEN,
    machine: scarce,
    clients_a_node: 10,
    lines: BOTH_TREES,
    claims: AIMS,
    seconds: (0.4, 0.2),
    ..WINS
};

const UPLINKS: Axis = Axis {
    name: "packets a second",
    set: |x, setting| {
        setting.machine.racks.link.packets = x as u64;
        clients_on(setting, 1);
    },
    range: (1_000.0, 1e9),
    logarithmic: true,
};

const PARTICIPANTS: Axis = Axis {
    name: "participants",
    set: |x, setting| {
        setting.put("updates", x);
        clients_on(setting, 1);
    },
    range: (2.0, 32.0),
    logarithmic: false,
};

const BLIND: Axis = Axis {
    name: "% written unread",
    set: |x, setting| {
        setting.put("blind", x);
        clients_on(setting, 1);
    },
    range: (0.0, 100.0),
    logarithmic: false,
};

const BATCHES: Axis = Axis {
    name: "batch",
    set: |x, setting| {
        batched(x as usize, setting);
        many_clients(setting);
    },
    range: (1.0, 1_000.0),
    logarithmic: false,
};

const BYTES: Axis = Axis {
    name: "bytes of an object",
    set: |x, setting| {
        setting.put("bytes", x);
        clients_on(setting, 1);
    },
    range: (28.0, 100_000.0),
    logarithmic: true,
};

const BATCHED_BYTES: Axis = Axis {
    set: |x, setting| {
        setting.put("bytes", x);
        batched(10, setting);
        many_clients(setting);
    },
    ..BYTES
};

/// How many racks the objects of a transaction are in: nodes in racks of eight.
const RACKS_USED: Axis = Axis {
    name: "racks of a transaction",
    set: |x, setting| {
        setting.machine.racks.nodes = 8;
        setting.put("siblings", 8.0);
        setting.put("subtrees", x);
        clients_on(setting, 1);
    },
    range: (1.0, 4.0),
    logarithmic: false,
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "hierarchy-wins-racks",
        about: "Who decides blind writes on 16 nodes, half in another rack, over the uplinks",
        axis: UPLINKS,
        xs: &[30_000.0, 100_000.0, 300_000.0, 1_000_000.0],
        quick_xs: &[100_000.0, 1_000_000.0],
        lines: ALL_WAYS,
        ..RACKS
    },
    Figure {
        name: "hierarchy-wins-racks-participants",
        about: "The same over the participants, half of them far, 100,000 packets a second",
        axis: PARTICIPANTS,
        xs: &[2.0, 4.0, 8.0, 16.0, 32.0],
        quick_xs: &[2.0, 16.0],
        ..RACKS
    },
    Figure {
        name: "hierarchy-wins-racks-reads",
        about: "The same over the share of writes that read nothing before, 16 participants",
        axis: BLIND,
        xs: &[0.0, 50.0, 100.0],
        quick_xs: &[0.0, 100.0],
        ..RACKS
    },
    Figure {
        name: "hierarchy-wins-racks-spread",
        about: "The same over the racks that 16 participants are in, of four with eight nodes",
        axis: RACKS_USED,
        xs: &[1.0, 2.0, 4.0],
        quick_xs: &[2.0, 4.0],
        ..RACKS
    },
    Figure {
        name: "hierarchy-wins-racks-batch",
        about: "The same over batches on all links, 100,000 packets a second",
        axis: BATCHES,
        xs: &[1.0, 3.0, 10.0],
        quick_xs: &[1.0, 10.0],
        ..RACKS
    },
    Figure {
        name: "hierarchy-wins-racks-bytes",
        about: "The same over the bytes of an object: a gigabit a second, no batches",
        machine: gigabit,
        axis: BYTES,
        xs: &[28.0, 100.0, 400.0, 1_000.0],
        quick_xs: &[28.0, 400.0],
        seconds: (0.1, 0.05),
        ..RACKS
    },
    Figure {
        name: "hierarchy-wins-racks-bytes-batch",
        about: "The same over the bytes of an object: a gigabit a second, batches of 10",
        machine: gigabit,
        axis: BATCHED_BYTES,
        xs: &[28.0, 100.0, 400.0, 1_000.0],
        quick_xs: &[28.0, 400.0],
        seconds: (0.15, 0.08),
        ..RACKS
    },
];
