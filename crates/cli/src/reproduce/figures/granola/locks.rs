//! What locks cost, and what conflicts cost (figures 6.9 and 6.10).

use muesli_sim::time::Span;

use super::machines::{COUNTERS, SHARED, THREE};
use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, Printed, PrintedAs, Setting, claim,
};
use crate::reproduce::point::Quantity;

/// Figure 6.10: lock contention. Conflicts are drawn for each transaction, as in the thesis.
const CONTENTION: Figure = Figure {
    parameters: &["distributed=100", "conflicts-by=transaction"],
    axis: SHARED,
    xs: &[0.1, 1.0, 10.0, 30.0, 100.0],
    quick_xs: &[1.0, 10.0, 100.0],
    lines: THREE,
    chosen: "32 clients for each repository; locks cost nothing; Sinfonia has one master, on a \
             machine of its own like the others.",
    claims: &[
        claim(
            "timestamps over locks, 10 %",
            Measure::Over(Quantity::Throughput, "granola", "granola-locking", 10.0),
            None,
            Some(ClaimTarget::Least(3.0)),
        ),
        claim("tx/s, locks, 100 %", Measure::Throughput("granola-locking"), Some(1e3), None),
        claim("tx/s, Sinfonia, 100 %", Measure::Throughput("sinfonia"), Some(1e3), None),
        claim("kept by timestamps", Measure::Kept("granola"), Some(1.0), None),
    ],
    ..COUNTERS
};

/// Work as heavy as a New-Order at each repository, and locks that take a share of all of it.
fn lock_cost(share: f64, setting: &mut Setting) {
    let work = Span::from_micros(40);
    (setting.machine.costs.read, setting.machine.costs.install) = (work, work);
    let lock = work.as_nanos() as f64 * share / (100.0 - share);
    setting.machine.costs.validate = Span::from_nanos(lock as u64);
}

/// What locking leaves of the throughput of timestamp mode, where locks are a third of the work.
const fn under_locks(name: &'static str, share: fn(f64) -> f64) -> Printed {
    Printed {
        name,
        source: "Granola, section 6.5.1: 25 to 50 % more without locks that are 30 to 40 % of load",
        xs: &[35.0],
        predicts: PrintedAs::Share("granola", share),
    }
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "granola-6.9",
        about: "Granola, figure 6.9: throughput over the cost of locks",
        printed: &[
            under_locks("paper: locks, least", |_| 1.0 / 1.5),
            under_locks("paper: locks, most", |_| 1.0 / 1.25),
        ],
        axis: Axis {
            name: "% of the work is locks",
            set: lock_cost,
            range: (0.0, 99.0),
            logarithmic: false,
        },
        xs: &[0.0, 10.0, 20.0, 35.0, 50.0],
        quick_xs: &[0.0, 35.0],
        lines: THREE,
        chosen: "80 µs of work for each part, about a New-Order's; no two transactions meet; \
                 Sinfonia has one master, on a machine of its own like the others.",
        claims: &[
            claim(
                "timestamps over locks, 35 %",
                Measure::Over(Quantity::Throughput, "granola", "granola-locking", 35.0),
                Some(1.375),
                Some(ClaimTarget::Least(1.25)),
            ),
            claim(
                "timestamps over Sinfonia, 35 %",
                Measure::Over(Quantity::Throughput, "granola", "sinfonia", 35.0),
                Some(1.375),
                Some(ClaimTarget::Least(1.25)),
            ),
        ],
        ..COUNTERS
    },
    Figure {
        name: "granola-6.10",
        about: "Granola, figure 6.10: throughput over the rate of conflicts",
        ..CONTENTION
    },
    Figure {
        name: "granola-6.10-parts",
        about: "The same, conflicts drawn for each part of a transaction",
        parameters: &["distributed=100"],
        ..CONTENTION
    },
];
