//! Checkpoints (section 6.5.7, which measures none) beside closed nesting: the same transactions,
//! each part of which is a child, or begins at a checkpoint.

use super::base::{READ_ONLY, TURCU, closed, flat};
use crate::reproduce::figure::{Figure, Measure, PaperClaim, PlottedLine, Setting, claim, line};
use crate::reproduce::point::Quantity;

fn checkpoints(setting: &mut Setting) {
    setting.parameters.push("nesting=checkpoints".to_owned());
}

const LINES: &[PlottedLine] = &[
    line("flat", "tfa", flat),
    line("closed", "tfa", closed),
    line("checkpoints", "tfa", checkpoints),
];

const MOST: PaperClaim = claim(
    "checkpoints over closed nesting, most",
    Measure::MostOverBest(Quantity::Throughput, "checkpoints", &["closed"]),
    None,
    None,
);
const LEAST: PaperClaim = claim(
    "checkpoints over closed nesting, least",
    Measure::LeastOverBest(Quantity::Throughput, "checkpoints", &["closed"]),
    None,
    None,
);
const OVER_FLAT: PaperClaim = claim(
    "checkpoints over flat, most",
    Measure::MostOverBest(Quantity::Throughput, "checkpoints", &["flat"]),
    None,
    None,
);

/// What all of them have in common.
const CHECKPOINTS: Figure = Figure {
    chosen: "Not in the dissertation, which has checkpoints and measures none. 12 nodes with four \
             clients each.",
    clients_a_node: 4,
    axis: READ_ONLY,
    xs: &[20.0, 40.0, 60.0, 80.0],
    quick_xs: &[20.0, 80.0],
    lines: LINES,
    claims: &[MOST, LEAST, OVER_FLAT],
    ..TURCU
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "checkpoints-bank",
        about: "checkpoints beside closed nesting: bank, five transfers a transaction",
        workload: "bank",
        parameters: &["objects=64", "calls=5", "apart=true"],
        ..CHECKPOINTS
    },
    Figure {
        name: "checkpoints-loan",
        about: "checkpoints beside closed nesting: loan",
        workload: "loan",
        parameters: &["objects=64"],
        ..CHECKPOINTS
    },
    Figure {
        name: "checkpoints-list",
        about: "checkpoints beside closed nesting: a linked list, three calls",
        workload: "list",
        parameters: &["objects=48", "initial=24", "calls=3", "rule=random", "walks=0"],
        ..CHECKPOINTS
    },
    Figure {
        name: "checkpoints-skiplist",
        about: "checkpoints beside closed nesting: a skip list, five calls",
        workload: "skiplist",
        parameters: &["objects=100", "initial=50", "calls=5", "rule=random", "walks=0"],
        ..CHECKPOINTS
    },
    Figure {
        name: "checkpoints-hashtable",
        about: "checkpoints beside closed nesting: a hash table of 11 buckets, five calls",
        workload: "hashtable",
        parameters: &[
            "objects=100",
            "initial=50",
            "buckets=11",
            "calls=5",
            "rule=random",
            "walks=0",
        ],
        ..CHECKPOINTS
    },
];
