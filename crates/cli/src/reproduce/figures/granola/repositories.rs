//! Throughput over repositories, and over the share of distributed transactions (figures 6.6 to
//! 6.8).

use super::machines::{COUNTERS, DISTRIBUTED, far};
use crate::reproduce::figure::{
    ClaimTarget, Figure, Measure, NODES, Printed, PrintedAs, claim, line,
};
use crate::reproduce::point::Quantity;

const SCALE: Figure = Figure {
    axis: NODES,
    xs: &[1.0, 2.0, 4.0, 6.0, 8.0, 10.0],
    quick_xs: &[2.0, 10.0],
    lines: &[
        line("0 %", "granola", |setting| setting.put("distributed", 0.0)),
        line("1 %", "granola", |setting| setting.put("distributed", 1.0)),
        line("10 %", "granola", |setting| setting.put("distributed", 10.0)),
    ],
    clients_a_node: 64,
    chosen: "64 clients for each repository.",
    ..COUNTERS
};

/// What blocking leaves of the throughput without it.
const fn blocking(name: &'static str, share: fn(f64) -> f64) -> Printed {
    Printed {
        name,
        source: "Granola, section 6.4: blocking costs 10 to 20 % of the throughput without it",
        xs: &[10.0, 25.0, 50.0, 75.0, 100.0],
        predicts: PrintedAs::Share("local, no blocking", share),
    }
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "granola-6.6",
        about: "Granola, figure 6.6: throughput over repositories",
        printed: &[Printed {
            name: "paper: one",
            source: "Granola, section 6.2.1: over 60,000 tps of a single repository",
            xs: &[1.0],
            predicts: PrintedAs::Number(|_| 60_000.0),
        }],
        claims: &[
            claim(
                "0 %, of linear",
                Measure::Scaling("0 %"),
                Some(1.0),
                Some(ClaimTarget::Least(0.9)),
            ),
            claim("10 %, of linear", Measure::Scaling("10 %"), None, Some(ClaimTarget::Least(0.7))),
        ],
        ..SCALE
    },
    Figure {
        name: "granola-6.7",
        about: "Granola, figure 6.7: throughput of each repository",
        shows: Quantity::ANode,
        claims: &[claim("0 %, of linear", Measure::Scaling("0 %"), Some(1.0), None)],
        ..SCALE
    },
    Figure {
        name: "granola-6.8",
        about: "Granola, figure 6.8: operations over the share of distributed transactions",
        axis: DISTRIBUTED,
        xs: &[0.0, 10.0, 25.0, 50.0, 75.0, 100.0],
        quick_xs: &[0.0, 50.0, 100.0],
        lines: &[
            line("local", "granola", |_| ()),
            line("local, no blocking", "granola-unordered", |_| ()),
            line("10 ms apart", "granola", |setting| {
                far(setting);
                setting.clients = Some(4_000);
            }),
        ],
        printed: &[blocking("paper: at least", |_| 0.8), blocking("paper: at most", |_| 0.9)],
        shows: Quantity::Operations,
        clients_a_node: 64,
        chosen: "64 clients for each repository, 2 000 where nodes are 10 ms apart.",
        claims: &[
            claim(
                "blocking keeps, at 50 %",
                Measure::Over(Quantity::Operations, "local", "local, no blocking", 50.0),
                Some(0.85),
                Some(ClaimTarget::Least(0.8)),
            ),
            claim("kept at 100 %", Measure::Kept("local"), None, None),
        ],
        ..COUNTERS
    },
];
