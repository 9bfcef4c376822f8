//! Chapter 4: closed nesting (N-TFA) beside flat transactions.

use super::base::{CALLS, READ_ONLY, TURCU, best_of_closed, closed_loses, flat_and_closed};
use crate::reproduce::figure::{Figure, PlottedLine};

const TWO: &[PlottedLine] = &flat_and_closed("tfa");
const SHARES: &[f64] = &[20.0, 40.0, 60.0, 80.0];
const SHARES_QUICK: &[f64] = &[20.0, 80.0];
const CHOSEN: &str = "12 nodes with four clients each; objects are few, as there.";

/// What most of them have in common.
const CLOSED: Figure = Figure {
    chosen: CHOSEN,
    clients_a_node: 4,
    axis: READ_ONLY,
    xs: SHARES,
    quick_xs: SHARES_QUICK,
    lines: TWO,
    claims: &[closed_loses(None), best_of_closed(1.0)],
    ..TURCU
};

/// A hash table, by the calls of a transaction.
const BY_CALLS: Figure = Figure {
    workload: "hashtable",
    axis: CALLS,
    xs: &[1.0, 2.0, 3.0, 5.0, 10.0],
    quick_xs: &[1.0, 3.0, 10.0],
    ..CLOSED
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-4.3",
        about: "N-TFA, figure 4.3: bank, two transfers a transaction",
        workload: "bank",
        parameters: &["keys=64", "pairs=2", "apart=true"],
        claims: &[closed_loses(Some(-15.3)), best_of_closed(1.0)],
        ..CLOSED
    },
    Figure {
        name: "turcu-4.4",
        about: "N-TFA, figure 4.4: loan",
        workload: "loan",
        parameters: &["keys=64"],
        ..CLOSED
    },
    Figure {
        name: "turcu-4.5",
        about: "N-TFA, figure 4.5: a linked list, two calls",
        workload: "list",
        parameters: &["keys=48", "initial=24", "operations=2", "rule=random", "walks=0"],
        ..CLOSED
    },
    Figure {
        name: "turcu-4.6",
        about: "N-TFA, figure 4.6: a hash table of 7 buckets, by calls",
        parameters: &["keys=100", "initial=50", "buckets=7", "reads=50", "rule=random", "walks=0"],
        ..BY_CALLS
    },
    Figure {
        name: "turcu-4.6-eleven",
        about: "N-TFA, figure 4.6: the same with 11 buckets",
        parameters: &["keys=100", "initial=50", "buckets=11", "reads=50", "rule=random", "walks=0"],
        ..BY_CALLS
    },
    Figure {
        name: "turcu-4.7",
        about: "N-TFA, figure 4.7: a hash table of 7 buckets, three calls",
        workload: "hashtable",
        parameters: &[
            "keys=100",
            "initial=50",
            "buckets=7",
            "operations=3",
            "rule=random",
            "walks=0",
        ],
        ..CLOSED
    },
    Figure {
        name: "turcu-4.8",
        about: "N-TFA, figure 4.8: a skip list, two calls",
        workload: "skiplist",
        parameters: &["keys=100", "initial=50", "operations=2", "rule=random", "walks=0"],
        claims: &[closed_loses(Some(10.4)), best_of_closed(1.0)],
        ..CLOSED
    },
    Figure {
        name: "turcu-4.10",
        about: "N-TFA, figure 4.10: bank on more and more nodes",
        chosen: "Four clients a node (16 there), 64 accounts, two transfers.",
        workload: "bank",
        parameters: &["keys=64", "pairs=2", "apart=true", "reads=50"],
        axis: TURCU.axis,
        xs: TURCU.xs,
        quick_xs: TURCU.quick_xs,
        ..CLOSED
    },
    Figure {
        name: "turcu-4.10-skiplist",
        about: "N-TFA, figure 4.10: a skip list on more and more nodes",
        chosen: "Four clients a node, 100 keys, two calls.",
        workload: "skiplist",
        parameters: &[
            "keys=100",
            "initial=50",
            "operations=2",
            "reads=50",
            "rule=random",
            "walks=0",
        ],
        axis: TURCU.axis,
        xs: TURCU.xs,
        quick_xs: TURCU.quick_xs,
        ..CLOSED
    },
];
