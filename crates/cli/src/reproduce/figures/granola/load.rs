//! Throughput and latency over the number of clients (figures 6.2 to 6.5).

use super::machines::{CLIENTS, COUNTERS, at_wide};
use crate::reproduce::figure::{Figure, Measure, PaperClaim, Printed, PrintedAs, claim, line};
use crate::reproduce::point::Quantity;

const BASE: Figure = Figure {
    axis: CLIENTS,
    xs: &[1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 2048.0],
    quick_xs: &[4.0, 64.0, 1024.0],
    lines: &[line("local", "granola", |_| ()), line("wide", "granola", at_wide)],
    chosen: "100 counters for each client and repository; a log that syncs one batch at a time \
             stands for the replicas.",
    ..COUNTERS
};
const SINGLE: Figure = Figure { parameters: &["distributed=0"], nodes: 1, ..BASE };

/// A ceiling that the thesis prints, once clients are enough.
const fn most(name: &'static str, source: &'static str, predicts: fn(f64) -> f64) -> Printed {
    Printed { name, source, xs: &[256.0, 1024.0, 2048.0], predicts: PrintedAs::Number(predicts) }
}

/// What it claims of both lines.
const fn most_of(paper: f64) -> [PaperClaim; 2] {
    [
        claim("most, local", Measure::Most("local"), Some(paper), None),
        claim("most, wide", Measure::Most("wide"), Some(paper), None),
    ]
}

/// Latency is within a tenth of what replication takes, until load exceeds capacity.
const LATENCY: &[Printed] = &[Printed {
    name: "paper: wide, most",
    source: "Granola, section 6.2.1: within 10 % of the replication delay, here 20 ms",
    xs: &[1.0, 4.0, 16.0, 64.0, 256.0],
    predicts: PrintedAs::Number(|_| 22.0),
}];

const WIDE_LATENCY: &[PaperClaim] = &[claim(
    "ms, wide, 64 clients",
    Measure::At(Quantity::Latency, "wide", 64.0),
    Some(22.0),
    None,
)];

/// The same, upwards its latency.
const fn latency(of: Figure) -> Figure {
    Figure { printed: LATENCY, shows: Quantity::Latency, claims: WIDE_LATENCY, ..of }
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "granola-6.2",
        about: "Granola, figure 6.2: single-repository throughput over clients",
        printed: &[most("paper: most", "Granola, section 6.2.1: over 60,000 tps", |_| 60_000.0)],
        claims: &most_of(60_000.0),
        ..SINGLE
    },
    Figure {
        name: "granola-6.3",
        about: "Granola, figure 6.3: single-repository latency over clients",
        ..latency(SINGLE)
    },
    Figure {
        name: "granola-6.4",
        about: "Granola, figure 6.4: distributed throughput over clients, two repositories",
        printed: &[most("paper: most", "Granola, section 6.2.2: over 20,000 tps", |_| 20_000.0)],
        claims: &most_of(20_000.0),
        ..BASE
    },
    Figure {
        name: "granola-6.5",
        about: "Granola, figure 6.5: distributed latency over clients, two repositories",
        ..latency(BASE)
    },
];
