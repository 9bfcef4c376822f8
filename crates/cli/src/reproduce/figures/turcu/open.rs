//! Chapter 5: open nesting (TFA-ON, SCORe-ON) beside closed nesting and flat transactions.

use super::base::{CALLS, TURCU, all_three, best_of_open, closed_loses};
use crate::reproduce::figure::{Figure, PlottedLine};

const TFA: &[PlottedLine] = &all_three("tfa");
const SCORE: &[PlottedLine] = &all_three("score");
const CHOSEN: &str = "One client a node (not printed); three structures, half of whose keys are \
                      there.";

/// What most of them have in common.
const OPEN: Figure = Figure { chosen: CHOSEN, lines: TFA, ..TURCU };

/// The parameters of three structures that transactions add to and remove from at random.
macro_rules! sets {
    ($($own:literal),*) => {
        &["structures=3", "rule=random", "walks=0", $($own),*]
    };
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-5.3",
        about: "TFA-ON, figure 5.3: a skip list, three calls, 20 % read-only",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=3", "reads=20"),
        claims: &[best_of_open(None, 1.0), closed_loses(Some(-5.0))],
        ..OPEN
    },
    Figure {
        name: "turcu-5.3-reading",
        about: "TFA-ON, figure 5.3: the same, 80 % read-only",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=3", "reads=80"),
        claims: &[best_of_open(None, 1.0), closed_loses(Some(-5.0))],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4",
        about: "TFA-ON, figure 5.4: a skip list of 100 keys, by calls",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "reads=20"),
        axis: CALLS,
        xs: &[2.0, 3.0, 4.0, 8.0],
        quick_xs: &[2.0, 4.0],
        claims: &[best_of_open(Some(1.3), 1.3)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-hashtable",
        about: "TFA-ON, figure 5.4: hash tables, eight calls",
        workload: "hashtable",
        parameters: sets!("objects=100", "initial=50", "buckets=11", "calls=8", "reads=20"),
        claims: &[best_of_open(Some(1.31), 1.31)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-tree",
        about: "TFA-ON, figure 5.4: search trees, eight calls",
        workload: "tree",
        parameters: sets!("objects=100", "initial=50", "calls=8", "reads=20"),
        claims: &[best_of_open(Some(1.29), 1.29)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.9",
        about: "TFA-ON, figure 5.9: skip lists of 1000 keys, four calls",
        workload: "skiplist",
        parameters: sets!("objects=1000", "initial=500", "calls=4", "reads=20"),
        claims: &[best_of_open(Some(1.51), 1.51)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.9-hashtable",
        about: "TFA-ON, figure 5.9: hash tables of 1000 keys, eight calls",
        workload: "hashtable",
        parameters: sets!("objects=1000", "initial=500", "buckets=11", "calls=8", "reads=20"),
        claims: &[best_of_open(Some(2.67), 2.67)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.12",
        about: "SCORe-ON, figure 5.12: skip lists, seven calls, nobody only reads",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=7", "reads=0"),
        lines: SCORE,
        claims: &[best_of_open(None, 1.0)],
        ..OPEN
    },
];
