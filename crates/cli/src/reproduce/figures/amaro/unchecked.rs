//! Without validation (section 4.2, figures 4.1 to 4.7).
//!
//! The thesis has a line for each of its hierarchical variants. They differ in validation, and in
//! the size of their messages: votes of the variant with timestamps carry what is written.

use super::base::{OBJECTS, batches, fifties, set_clients, tens, tree};
use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, PaperClaim, PlottedLine, Printed, PrintedAs, claim, line,
};
use crate::reproduce::point::Quantity::Latency;

/// The seven systems.
const LINES: &[PlottedLine] = &[
    TWO_PHASES,
    LOCKS,
    LOCKS_BY_TENS,
    LOCKS_BY_FIFTIES,
    TIMESTAMPS,
    TIMESTAMPS_BY_TENS,
    TIMESTAMPS_BY_FIFTIES,
];
const SMALL_BATCHES: &[PlottedLine] =
    &[TWO_PHASES, LOCKS, LOCKS_BY_TENS, TIMESTAMPS, TIMESTAMPS_BY_TENS];
const LARGE_BATCHES: &[PlottedLine] = &[TWO_PHASES, LOCKS_BY_FIFTIES, TIMESTAMPS_BY_FIFTIES];

const TWO_PHASES: PlottedLine = line("2PC", "hierarchy-flat-unchecked", |_| ());
const LOCKS: PlottedLine = line("locks", "hierarchy-locking-unchecked", tree);
const LOCKS_BY_TENS: PlottedLine = line("locks, 10", "hierarchy-locking-unchecked", tens);
const LOCKS_BY_FIFTIES: PlottedLine = line("locks, 50", "hierarchy-locking-unchecked", fifties);
const TIMESTAMPS: PlottedLine = line("timestamps", "hierarchy-unchecked", tree);
const TIMESTAMPS_BY_TENS: PlottedLine = line("timestamps, 10", "hierarchy-unchecked", tens);
const TIMESTAMPS_BY_FIFTIES: PlottedLine = line("timestamps, 50", "hierarchy-unchecked", fifties);

const THROUGHPUT: Figure = Figure {
    lines: LINES,
    claims: &[
        claim(
            "locks, batches of 50, over 2PC",
            Measure::Speedup("locks, 50", "2PC"),
            Some(1.23),
            Some(ClaimTarget::Least(1.15)),
        ),
        claim(
            "timestamps, batches of 50, over 2PC",
            Measure::Speedup("timestamps, 50", "2PC"),
            Some(1.15),
            None,
        ),
        claim("locks, none, over 2PC", Measure::Speedup("locks", "2PC"), None, None),
        claim("2PC saturates, clients", Measure::Saturates("2PC"), Some(180.0), None),
        claim("none saturates, clients", Measure::Saturates("locks"), Some(180.0), None),
        claim("10 saturates, clients", Measure::Saturates("locks, 10"), Some(180.0), None),
        claim("50 saturates, clients", Measure::Saturates("locks, 50"), Some(240.0), None),
    ],
    ..OBJECTS
};

const LATENCY: Figure = Figure {
    shows: Latency,
    printed: &[
        at_hundred("paper: 2PC", |_| 33.0),
        at_hundred("paper: none", |_| 29.0),
        at_hundred("paper: 50, locks", |_| 40.0),
        at_hundred("paper: 50, timestamps", |_| 45.0),
    ],
    claims: &[
        claim("ms, 2PC, 100 clients", Measure::At(Latency, "2PC", 100.0), Some(33.0), None),
        claim("ms, none, 100 clients", Measure::At(Latency, "locks", 100.0), Some(29.0), None),
        claim("ms, 10, 100 clients", Measure::At(Latency, "locks, 10", 100.0), Some(31.0), None),
        claim("ms, 50, 100 clients", Measure::At(Latency, "locks, 50", 100.0), Some(40.0), None),
        claim(
            "ms, timestamps, 50, 100 clients",
            Measure::At(Latency, "timestamps, 50", 100.0),
            Some(45.0),
            None,
        ),
    ],
    ..THROUGHPUT
};

/// What is printed of 100 clients.
const fn at_hundred(name: &'static str, predicts: fn(f64) -> f64) -> Printed {
    let source = "Amaro, section 4.2.2: mean latency with 100 clients";
    Printed { name, source, xs: &[100.0], predicts: PrintedAs::Number(predicts) }
}

/// Sizes of batches with 100 clients.
const BATCHES: Axis = Axis {
    name: "batch",
    set: |x, setting| {
        set_clients(100, setting);
        batches(x as usize, setting);
    },
    range: (1.0, 1_000.0),
    logarithmic: false,
};

/// Latency by the size of batches, as far as it is printed.
const fn by_batch(name: &'static str, xs: &'static [f64], predicts: fn(f64) -> f64) -> Printed {
    let source = "Amaro, section 4.2.2: 29 ms, 31, 35, 40 and 45, 75 % more, 150 % more";
    Printed { name, source, xs, predicts: PrintedAs::Number(predicts) }
}

const SIZES: &[f64] = &[1.0, 10.0, 25.0, 50.0, 75.0, 100.0];

/// What is printed of the variant with locks.
fn printed_by_batch(size: f64) -> f64 {
    match size {
        _ if size < 10.0 => 29.0,
        _ if size < 25.0 => 31.0,
        _ if size < 50.0 => 35.0,
        _ if size < 75.0 => 40.0,
        _ if size < 100.0 => 29.0 * 1.75,
        _ => 29.0 * 2.5,
    }
}

/// The latency of the tree over the size of batches.
const fn tree_at(what: &'static str, size: f64, paper: f64) -> PaperClaim {
    claim(what, Measure::At(Latency, "locks", size), Some(paper), None)
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "amaro-4.1",
        about: "Amaro, figure 4.1: throughput over clients, without validation",
        ..THROUGHPUT
    },
    Figure {
        name: "amaro-4.2",
        about: "Amaro, figure 4.2: the same, without batches and with batches of 10",
        lines: SMALL_BATCHES,
        claims: &[
            claim("2PC saturates, clients", Measure::Saturates("2PC"), Some(180.0), None),
            claim("none saturates, clients", Measure::Saturates("locks"), Some(180.0), None),
            claim("10 saturates, clients", Measure::Saturates("locks, 10"), Some(180.0), None),
        ],
        ..THROUGHPUT
    },
    Figure {
        name: "amaro-4.3",
        about: "Amaro, figure 4.3: the same, with batches of 50",
        lines: LARGE_BATCHES,
        claims: &[
            claim("2PC saturates, clients", Measure::Saturates("2PC"), Some(180.0), None),
            claim("50 saturates, clients", Measure::Saturates("locks, 50"), Some(240.0), None),
        ],
        ..THROUGHPUT
    },
    Figure {
        name: "amaro-4.4",
        about: "Amaro, figure 4.4: latency over clients, without validation",
        ..LATENCY
    },
    Figure {
        name: "amaro-4.5",
        about: "Amaro, figure 4.5: the same, without batches and with batches of 10",
        lines: SMALL_BATCHES,
        printed: &[
            at_hundred("paper: 2PC", |_| 33.0),
            at_hundred("paper: none", |_| 29.0),
            at_hundred("paper: 10", |_| 31.0),
        ],
        claims: &[
            claim("ms, none, 100 clients", Measure::At(Latency, "locks", 100.0), Some(29.0), None),
            claim(
                "ms, 10, 100 clients",
                Measure::At(Latency, "locks, 10", 100.0),
                Some(31.0),
                None,
            ),
        ],
        ..LATENCY
    },
    Figure {
        name: "amaro-4.6",
        about: "Amaro, figure 4.6: the same, with batches of 50",
        lines: LARGE_BATCHES,
        printed: &[
            at_hundred("paper: 2PC", |_| 33.0),
            at_hundred("paper: 50, locks", |_| 40.0),
            at_hundred("paper: 50, timestamps", |_| 45.0),
        ],
        claims: &[
            claim("ms, 2PC, 100 clients", Measure::At(Latency, "2PC", 100.0), Some(33.0), None),
            claim(
                "ms, 50, 100 clients",
                Measure::At(Latency, "locks, 50", 100.0),
                Some(40.0),
                None,
            ),
        ],
        ..LATENCY
    },
    Figure {
        name: "amaro-4.7",
        about: "Amaro, figure 4.7: latency over the size of batches, 100 clients",
        axis: BATCHES,
        xs: SIZES,
        quick_xs: SIZES,
        lines: &[TWO_PHASES, LOCKS, TIMESTAMPS],
        printed: &[
            by_batch("paper: 2PC", &[1.0], |_| 33.0),
            by_batch("paper: locks", SIZES, printed_by_batch),
            by_batch("paper: timestamps", &[50.0], |_| 45.0),
        ],
        claims: &[
            claim("ms, 2PC", Measure::At(Latency, "2PC", 1.0), Some(33.0), None),
            tree_at("ms, none", 1.0, 29.0),
            tree_at("ms, 10", 10.0, 31.0),
            tree_at("ms, 25", 25.0, 35.0),
            tree_at("ms, 50", 50.0, 40.0),
            claim("ms, timestamps, 50", Measure::At(Latency, "timestamps", 50.0), Some(45.0), None),
            tree_at("ms, 75", 75.0, 50.75),
            tree_at("ms, 100", 100.0, 72.5),
        ],
        ..LATENCY
    },
];
