//! Three ways back from locking mode (appendix B).

use super::machines::{COUNTERS, local};
use crate::reproduce::figure::{Axis, ClaimTarget, Figure, Measure, claim, line};
use crate::reproduce::point::Quantity;

const WAYS_BACK: Figure = Figure {
    axis: Axis {
        name: "% independent",
        set: |x, setting| {
            setting.put("distributed", x + 0.05);
            setting.put("coordinated", 5.0 / (x + 0.05));
        },
        range: (0.0, 99.95),
        logarithmic: false,
    },
    xs: &[0.0, 20.0, 40.0, 60.0, 80.0, 99.95],
    quick_xs: &[20.0, 99.95],
    lines: &[
        line("undo immediate", "granola", |_| ()),
        line("undo on-demand", "granola-on-demand", |_| ()),
        line("stay coordinated", "granola-stay", |_| ()),
    ],
    clients_a_node: 32,
    seconds: (2.0, 0.5),
    chosen: "32 clients for each repository.",
    ..COUNTERS
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "granola-B.1",
        about: "Granola, figure B.1: transactions in locking mode, three ways back",
        shows: Quantity::Locked,
        claims: &[
            claim(
                "% in locking mode, undo, 99.95 %",
                Measure::At(Quantity::Locked, "undo immediate", 99.95),
                None,
                None,
            ),
            claim(
                "% in locking mode, stay, 99.95 %",
                Measure::At(Quantity::Locked, "stay coordinated", 99.95),
                None,
                None,
            ),
        ],
        ..WAYS_BACK
    },
    Figure {
        name: "granola-B.2",
        about: "Granola, figure B.2: throughput, three ways back",
        machine: || {
            let mut machine = local();
            // Locks cost half of what is done under them.
            machine.costs.validate = machine.costs.read;
            machine
        },
        claims: &[claim(
            "undo over stay, 99.95 %",
            Measure::Speedup("undo immediate", "stay coordinated"),
            None,
            Some(ClaimTarget::Least(1.0)),
        )],
        ..WAYS_BACK
    },
];
