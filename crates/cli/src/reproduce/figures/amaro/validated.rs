//! With validation (section 4.3, figures 4.8 and 4.9, tables 4.2 and 4.3).

use muesli_sim::time::Span;
use muesli_workloads::machines::MachineModel;

use super::base::{OBJECTS, batches, fifties, set_clients, tens, tree};
use crate::reproduce::figure::{Axis, Figure, Measure, PaperClaim, PlottedLine, claim, line};
use crate::reproduce::point::Quantity::{self, Between, Latency, Validation};

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

/// The three settings in which the thesis measured times: clients, and the size of batches.
const SCENARIOS: Axis = Axis {
    name: "scenario",
    set: |x, setting| {
        let (clients, batch) = match x {
            _ if x < 2.0 => (100, 1),
            _ if x < 3.0 => (100, 50),
            _ => (200, 50),
        };
        set_clients(clients, setting);
        batches(batch, setting);
    },
    range: (1.0, 3.0),
    logarithmic: false,
};

const TIMES: Figure = Figure {
    axis: SCENARIOS,
    xs: &[1.0, 2.0, 3.0],
    quick_xs: &[1.0, 2.0, 3.0],
    lines: &[line("locks", "hierarchy-locking", tree), line("timestamps", "hierarchy", tree)],
    chosen: "scenario 1 has 100 clients, 2 also batches of 50, 3 these and 200 clients; of which \
             variant the times are is not printed; validating takes what table 4.2 says, so that \
             there it is given and not found",
    claims: &[],
    ..VALIDATED
};

/// What is printed of locks in a scenario.
const fn of_scenario(
    what: &'static str,
    (quantity, scenario): (Quantity, f64),
    paper: f64,
) -> PaperClaim {
    claim(what, Measure::At(quantity, "locks", scenario), Some(paper), None)
}

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
    Figure {
        name: "amaro-table-4.2",
        about: "Amaro, table 4.2: how long requests are processed, with validation",
        shows: Validation,
        claims: &[
            of_scenario("ms, validation, scenario 1", (Validation, 1.0), 0.56),
            of_scenario("ms, validation, scenario 2", (Validation, 2.0), 0.52),
            of_scenario("ms, validation, scenario 3", (Validation, 3.0), 0.50),
        ],
        ..TIMES
    },
    Figure {
        name: "amaro-table-4.3",
        about: "Amaro, table 4.3: waiting time between requests, with validation",
        shows: Between,
        claims: &[
            of_scenario("ms between requests, scenario 1", (Between, 1.0), 0.04),
            of_scenario("ms between requests, scenario 2", (Between, 2.0), 0.26),
            of_scenario("ms between requests, scenario 3", (Between, 3.0), 0.10),
        ],
        ..TIMES
    },
];
