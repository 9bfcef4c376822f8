//! What the figures have in common.

use muesli_workloads::machines::MachineModel;

use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, NODES, NOTHING, PaperClaim, PlottedLine, Setting,
    SummaryMeasure, claim, line,
};
use crate::reproduce::point::Quantity;

/// Up to 48 nodes; one of the places between them shows where contention turns.
pub const TURCU_NODES: &[f64] = &[4.0, 8.0, 16.0, 24.0, 36.0, 48.0];
pub const TURCU_QUICK: &[f64] = &[4.0, 16.0];

/// What a transaction calls.
pub const CALLS: Axis = Axis {
    name: "calls",
    set: |x, setting| setting.put("calls", x),
    range: (1.0, 100.0),
    logarithmic: false,
};

/// The share of transactions that only read.
pub const READ_ONLY: Axis = Axis {
    name: "read-only transactions, %",
    set: |x, setting| setting.put("reads", x),
    range: (0.0, 100.0),
    logarithmic: false,
};

/// How long a transaction's calls take besides their accesses.
pub const LENGTH: Axis = Axis {
    name: "length, ms",
    set: |x, setting| setting.put("length", x),
    range: (0.0, 1_000.0),
    logarithmic: false,
};

/// The clients of each node.
pub const CLIENTS_A_NODE: Axis = Axis {
    name: "clients a node",
    set: |x, setting| setting.clients = Some((x * setting.nodes as f64) as u32),
    range: (1.0, 100.0),
    logarithmic: false,
};

/// What all of them have in common: each key has one copy, which its transactions move.
pub const TURCU: Figure = Figure {
    machine: MachineModel::hyflow,
    replicas: 1,
    nodes: 12,
    axis: NODES,
    xs: TURCU_NODES,
    quick_xs: TURCU_QUICK,
    seconds: (8.0, 2.0),
    ..NOTHING
};

pub fn flat(setting: &mut Setting) {
    setting.parameters.push("nesting=flat".to_owned());
}

/// A transaction takes a hundred milliseconds there: nobody is to take it for abandoned.
pub fn be_patient(setting: &mut Setting) {
    setting.parameters.push("patience=5000".to_owned());
}

pub fn closed(setting: &mut Setting) {
    setting.parameters.push("nesting=closed".to_owned());
}

pub fn open(setting: &mut Setting) {
    setting.parameters.push("nesting=open".to_owned());
    be_patient(setting);
}

/// Flat transactions and those with children, under one protocol.
pub const fn flat_and_closed(protocol: &'static str) -> [PlottedLine; 2] {
    [line("flat", protocol, flat), line("closed", protocol, closed)]
}

/// The same, and those with open children.
pub const fn all_three(protocol: &'static str) -> [PlottedLine; 3] {
    [line("flat", protocol, flat), line("closed", protocol, closed), line("open", protocol, open)]
}

/// The best of closed nesting over flat transactions at the same place.
pub const fn best_of_closed(paper: Option<f64>, aim: f64) -> PaperClaim {
    over_flat("best of closed, over flat", "closed", paper, aim)
}

/// The best of open nesting.
pub const fn best_of_open(paper: Option<f64>, aim: f64) -> PaperClaim {
    over_flat("best of open, over flat", "open", paper, aim)
}

const fn over_flat(
    what: &'static str,
    line: &'static str,
    paper: Option<f64>,
    aim: f64,
) -> PaperClaim {
    let measure = Measure::MostOverBest(Quantity::Throughput, line, &["flat"]);
    claim(what, measure, paper, Some(ClaimTarget::Least(aim)))
}

/// The worst of closed nesting.
pub const fn worst_of_closed(paper: Option<f64>, aim: f64) -> PaperClaim {
    let measure = Measure::LeastOverBest(Quantity::Throughput, "closed", &["flat"]);
    claim("worst of closed, over flat", measure, paper, Some(ClaimTarget::Least(aim)))
}

/// What closed nesting loses on average.
pub const fn closed_loses(paper: Option<f64>) -> PaperClaim {
    claim("throughput lost by closed, %", Measure::Loss("closed", "flat"), paper, None)
}

/// What chapter 4 says of all its benchmarks together, and of bank.
pub const CLOSED_LOSES_ON_AVERAGE: PaperClaim = claim(
    "lost on average, %",
    Measure::Loss("closed", "flat"),
    Some(-2.0),
    Some(ClaimTarget::Most(-2.0)),
);
pub const CLOSED_LOSES_IN_BANK: PaperClaim = closed_in(
    "lost in bank, %",
    SummaryMeasure::Loss("bank"),
    Some(-15.3),
    ClaimTarget::Most(-15.3),
);

/// What is said of a workload among others.
pub const fn closed_in(
    what: &'static str,
    measure: SummaryMeasure,
    paper: Option<f64>,
    target: ClaimTarget,
) -> PaperClaim {
    claim(what, Measure::Summary(measure, "closed", "flat"), paper, Some(target))
}
