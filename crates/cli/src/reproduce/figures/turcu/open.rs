//! Chapter 5: open nesting (TFA-ON, SCORe-ON) beside closed nesting and flat transactions.

use super::base::{CALLS, TURCU, all_three, best, closed_loses};
use crate::reproduce::figure::{Figure, PlottedLine};

const TFA: &[PlottedLine] = &all_three("tfa");
const SCORE: &[PlottedLine] = &all_three("score");
const CHOSEN: &str = "One client a node (not printed); three structures, half of whose keys are \
                      there.";

/// What most of them have in common.
const OPEN: Figure = Figure { chosen: CHOSEN, lines: TFA, ..TURCU };

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-5.3",
        about: "TFA-ON, figure 5.3: a skip list, three calls, 20 % read-only",
        workload: "skiplist",
        parameters: SKIP_LIST_3,
        claims: &[best("open", None, 1.0), closed_loses(Some(-5.0))],
        ..OPEN
    },
    Figure {
        name: "turcu-5.3-reading",
        about: "TFA-ON, figure 5.3: the same, 80 % read-only",
        workload: "skiplist",
        parameters: SKIP_LIST_3_READING,
        claims: &[best("open", None, 1.0), closed_loses(Some(-5.0))],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4",
        about: "TFA-ON, figure 5.4: a skip list of 100 keys, by calls",
        workload: "skiplist",
        parameters: SKIP_LIST,
        axis: CALLS,
        xs: &[2.0, 3.0, 4.0, 8.0],
        quick_xs: &[2.0, 4.0],
        claims: &[best("open", Some(1.3), 1.3)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-hashtable",
        about: "TFA-ON, figure 5.4: hash tables, eight calls",
        workload: "hashtable",
        parameters: HASH_TABLE_8,
        claims: &[best("open", Some(1.31), 1.31)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-tree",
        about: "TFA-ON, figure 5.4: search trees, eight calls",
        workload: "tree",
        parameters: TREE_8,
        claims: &[best("open", Some(1.29), 1.29)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.9",
        about: "TFA-ON, figure 5.9: skip lists of 1000 keys, four calls",
        workload: "skiplist",
        parameters: SKIP_LIST_1000,
        claims: &[best("open", Some(1.51), 1.51)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.9-hashtable",
        about: "TFA-ON, figure 5.9: hash tables of 1000 keys, eight calls",
        workload: "hashtable",
        parameters: HASH_TABLE_1000,
        claims: &[best("open", Some(2.67), 2.67)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.12",
        about: "SCORe-ON, figure 5.12: skip lists, seven calls, nobody only reads",
        workload: "skiplist",
        parameters: &[
            "structures=3",
            "keys=100",
            "initial=50",
            "operations=7",
            "reads=0",
            "rule=random",
            "walks=0",
        ],
        lines: SCORE,
        claims: &[best("open", None, 1.0)],
        ..OPEN
    },
];

const SKIP_LIST: &[&str] =
    &["structures=3", "keys=100", "initial=50", "reads=20", "rule=random", "walks=0"];
const SKIP_LIST_3: &[&str] = &[
    "structures=3",
    "keys=100",
    "initial=50",
    "operations=3",
    "reads=20",
    "rule=random",
    "walks=0",
];
const SKIP_LIST_3_READING: &[&str] = &[
    "structures=3",
    "keys=100",
    "initial=50",
    "operations=3",
    "reads=80",
    "rule=random",
    "walks=0",
];
const SKIP_LIST_1000: &[&str] = &[
    "structures=3",
    "keys=1000",
    "initial=500",
    "operations=4",
    "reads=20",
    "rule=random",
    "walks=0",
];
const HASH_TABLE_8: &[&str] = &[
    "structures=3",
    "keys=100",
    "initial=50",
    "buckets=11",
    "operations=8",
    "reads=20",
    "rule=random",
    "walks=0",
];
const HASH_TABLE_1000: &[&str] = &[
    "structures=3",
    "keys=1000",
    "initial=500",
    "buckets=11",
    "operations=8",
    "reads=20",
    "rule=random",
    "walks=0",
];
const TREE_8: &[&str] = &[
    "structures=3",
    "keys=100",
    "initial=50",
    "operations=8",
    "reads=20",
    "rule=random",
    "walks=0",
];
