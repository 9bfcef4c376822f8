//! TPC-C in one round (figures 6.15 to 6.18).

use super::machines::{CLIENTS, PERCENT, THREE, local};
use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, NODES, NOTHING, Printed, PrintedAs, claim,
};
use crate::reproduce::point::Quantity;

/// W_YTD, D_YTD and D_NEXT_O_ID in rows of their own.
const TPCC_COLUMNS: &[&str] = &["warehouses={nodes}", "customers=100", "orders=30"];
const TPCC: Figure = Figure {
    workload: "tpcc-procedures",
    parameters: &["warehouses={nodes}", "customers=100", "orders=30", "columns=rows"],
    chosen: "1 000 items and 100 customers a district; Sinfonia has one master, on a machine of \
             its own like the others.",
    machine: local,
    replicas: 1,
    lines: THREE,
    ..NOTHING
};
const TPCC_SCALE: Figure = Figure {
    axis: NODES,
    xs: &[1.0, 2.0, 4.0, 6.0, 8.0, 10.0],
    quick_xs: &[2.0, 10.0],
    clients_a_node: 16,
    ..TPCC
};

const OVER_REPOSITORIES: Figure = Figure {
    claims: &[
        claim(
            "over Sinfonia, 10 nodes",
            Measure::Speedup("granola", "sinfonia"),
            Some(3.0),
            Some(ClaimTarget::Least(3.0)),
        ),
        claim("over locking", Measure::Speedup("granola", "granola-locking"), None, None),
    ],
    ..TPCC_SCALE
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "granola-6.15",
        about: "Granola, figure 6.15: TPC-C over repositories",
        ..OVER_REPOSITORIES
    },
    Figure {
        name: "granola-6.15-columns",
        about: "The same, W_YTD, D_YTD and D_NEXT_O_ID apart from their rows",
        parameters: TPCC_COLUMNS,
        ..OVER_REPOSITORIES
    },
    Figure {
        name: "granola-6.16",
        about: "Granola, figure 6.16: latency of TPC-C's distributed transactions",
        printed: &[Printed {
            name: "paper: sinfonia",
            source: "Granola, section 6.7.1: Sinfonia takes about 60 % longer than Granola",
            xs: &[2.0, 4.0, 6.0, 8.0, 10.0],
            predicts: PrintedAs::Share("granola", |_| 1.6),
        }],
        shows: Quantity::SeveralLatency,
        claims: &[claim(
            "of Sinfonia's, 10 nodes",
            Measure::Over(Quantity::SeveralLatency, "granola", "sinfonia", 10.0),
            Some(0.625),
            Some(ClaimTarget::Most(0.6)),
        )],
        ..TPCC_SCALE
    },
    Figure {
        name: "granola-6.17",
        about: "Granola, figure 6.17: New-Orders over the share of distributed ones",
        axis: Axis {
            name: "% distributed",
            // Each of about ten lines comes from the other warehouse with this chance.
            set: |x, setting| {
                setting.put("remote-items", 100.0 * (1.0 - (1.0 - x / 100.0).powf(0.1)))
            },
            range: PERCENT,
            logarithmic: false,
        },
        nodes: 2,
        parameters: &[
            "warehouses={nodes}",
            "customers=100",
            "orders=30",
            "new-order=1",
            "columns=rows",
        ],
        xs: &[0.0, 10.0, 25.0, 50.0, 75.0, 100.0],
        quick_xs: &[0.0, 50.0, 100.0],
        clients_a_node: 16,
        claims: &[claim(
            "kept at 100 %",
            Measure::Kept("granola"),
            Some(0.5),
            Some(ClaimTarget::Least(0.5)),
        )],
        ..TPCC
    },
    Figure {
        name: "granola-6.18",
        about: "Granola, figure 6.18: latency over throughput, TPC-C on six repositories",
        nodes: 6,
        axis: CLIENTS,
        xs: &[6.0, 12.0, 24.0, 48.0, 96.0, 192.0, 516.0, 960.0],
        quick_xs: &[12.0, 96.0, 960.0],
        shows: Quantity::SeveralLatency,
        against: Some(Quantity::Throughput),
        claims: &[
            claim(
                "kept at ten times the load",
                Measure::KeptOfMost("granola"),
                Some(1.0),
                Some(ClaimTarget::Least(0.9)),
            ),
            claim("kept by locking", Measure::KeptOfMost("granola-locking"), Some(0.5), None),
            claim("kept by Sinfonia", Measure::KeptOfMost("sinfonia"), Some(0.5), None),
        ],
        ..TPCC
    },
];
