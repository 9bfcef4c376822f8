//! With validation (section 4.3, figures 4.8 and 4.9).

use muesli_sim::time::Span;
use muesli_workloads::machines::MachineModel;

use super::base::{OBJECTS, fifties, tens, tree};
use crate::reproduce::figure::{Figure, Measure, PlottedLine, claim, line};
use crate::reproduce::point::Quantity::Latency;

/// Nodes that validate one request after the other, each for as long as the thesis measured
/// (table 4.2).
fn serial() -> MachineModel {
    let mut machine = MachineModel::amaro_cluster();
    // What is read and what is written of its key are counted each.
    machine.costs.validate = Span::from_micros(250);
    machine
}

const LINES: &[PlottedLine] = &[
    line("2PC", "two-phase-commit", |_| ()),
    line("locks", "hierarchy-locking", tree),
    line("locks, 10", "hierarchy-locking", tens),
    line("locks, 50", "hierarchy-locking", fifties),
    line("timestamps", "hierarchy", tree),
    line("timestamps, 10", "hierarchy", tens),
    line("timestamps, 50", "hierarchy", fifties),
];

const VALIDATED: Figure = Figure {
    machine: serial,
    lines: LINES,
    chosen: "16,000 objects in place of 800,000; a batch waits for 50 ms at most, which is not \
             printed; validating a request takes 0.5 ms of the one thread of a node (table 4.2)",
    claims: &[
        claim("locks, 50, over 2PC", Measure::Speedup("locks, 50", "2PC"), Some(1.0), None),
        claim(
            "timestamps, 50, over 2PC",
            Measure::Speedup("timestamps, 50", "2PC"),
            Some(1.0),
            None,
        ),
        claim("2PC saturates, clients", Measure::Saturates("2PC"), Some(80.0), None),
        claim("50 saturates, clients", Measure::Saturates("locks, 50"), Some(100.0), None),
    ],
    seconds: (6.0, 3.0),
    ..OBJECTS
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "amaro-4.8",
        about: "Amaro, figure 4.8: throughput over clients, with validation",
        ..VALIDATED
    },
    Figure {
        name: "amaro-4.9",
        about: "Amaro, figure 4.9: latency over clients, with validation",
        shows: Latency,
        ..VALIDATED
    },
];
