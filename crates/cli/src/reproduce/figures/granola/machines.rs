//! The machines and axes of Granola's figures, and what most of them have in common.

use muesli_sim::latency::Latency;
use muesli_sim::time::Span;
use muesli_workloads::machines::MachineModel;

use crate::reproduce::figure::{Axis, Figure, NOTHING, PlottedLine, Setting, line, protocol};

/// Replicas are a tenth of a millisecond away, one way.
pub const LOCAL: Span = Span::from_micros(200);
/// Replicas are ten milliseconds away, one way.
pub const WIDE: Span = Span::from_millis(20);

pub fn local() -> MachineModel {
    MachineModel::granola_cluster(LOCAL)
}

pub fn at_wide(setting: &mut Setting) {
    setting.machine = MachineModel::granola_cluster(WIDE);
    setting.machine.patience *= 100;
}

/// All nodes are ten milliseconds apart.
pub fn far(setting: &mut Setting) {
    setting.machine.network.latency = Latency::Constant(Span::from_millis(10));
    setting.machine.patience *= 100;
}

/// Shares.
pub const PERCENT: (f64, f64) = (0.0, 100.0);

/// A share of the transactions, over which equal steps are equal factors.
const fn share(name: &'static str, set: fn(f64, &mut Setting)) -> Axis {
    Axis { name, set, range: PERCENT, logarithmic: true }
}

pub const CLIENTS: Axis = Axis {
    name: "clients",
    set: |x, setting| setting.clients = Some(x as u32),
    range: (1.0, 100_000.0),
    logarithmic: true,
};
pub const DISTRIBUTED: Axis = Axis {
    logarithmic: false,
    ..share("% distributed", |x, setting| setting.put("distributed", x))
};
/// Pairs of transactions that conflict.
pub const CONFLICTS: Axis =
    share("% of pairs conflict", |x, setting| setting.put("conflicts", 10.0 * x.sqrt()));
/// The share of transactions that use the shared counters.
pub const SHARED: Axis = share("% use shared counters", |x, setting| setting.put("conflicts", x));

/// The share of coordinated ones among transactions that are all distributed.
pub const COORDINATED_OF_ALL: Axis =
    share("% coordinated", |x, setting| setting.put("coordinated", x));

pub const COUNTERS: Figure = Figure {
    workload: "counter-procedures",
    parameters: &["distributed=100"],
    machine: local,
    replicas: 1,
    nodes: 2,
    clients_a_node: 32,
    ..NOTHING
};

/// What the thesis compares. Sinfonia has one master, on a node of its own like all others.
pub const THREE: &[PlottedLine] = &[
    protocol("granola"),
    protocol("granola-locking"),
    line("sinfonia", "sinfonia", |setting| setting.masters = 1),
];
