//! Chapter 4 as the dissertation averages it (section 4.3.2): each setting is run on more and more
//! nodes, and what is given of it is the mean over those and the best of them. Figures of
//! [`closed`](super::closed) are on 12 nodes.

use super::base::{
    CLOSED_LOSES_IN_BANK, CLOSED_LOSES_ON_AVERAGE, TURCU, best_of_closed, closed_in, closed_loses,
    worst_of_closed,
};
use super::closed::{CLOSED, SKIP_LIST_BY_NODES};
use crate::reproduce::figure::{CASES, ClaimTarget, Figure, SummaryMeasure, SummedSetting, case};
use crate::reproduce::point::Quantity;

/// A benchmark by nodes.
const BY_NODES: Figure = Figure {
    chosen: "Four clients a node; half of the transactions only read; objects are few, as there; \
             28 ms besides.",
    axis: TURCU.axis,
    xs: TURCU.xs,
    quick_xs: TURCU.quick_xs,
    claims: &[closed_loses(None), best_of_closed(None, 1.0)],
    ..CLOSED
};

const BANK: Figure = Figure {
    name: "turcu-4.3-nodes",
    about: "N-TFA, figure 4.3: bank, two transfers, its mean over nodes",
    workload: "bank",
    parameters: &["objects=10", "calls=2", "apart=true", "reads=50", "length=28"],
    claims: &[closed_loses(Some(-15.3)), best_of_closed(None, 1.0)],
    ..BY_NODES
};
const LOAN: Figure = Figure {
    name: "turcu-4.4-nodes",
    about: "N-TFA, figure 4.4: loan, its mean over nodes",
    workload: "loan",
    parameters: &["objects=64", "reads=50", "length=28"],
    ..BY_NODES
};
const LIST: Figure = Figure {
    name: "turcu-4.5-nodes",
    about: "N-TFA, figure 4.5: a linked list, two calls, its mean over nodes",
    workload: "list",
    parameters: &[
        "objects=48",
        "initial=24",
        "rule=random",
        "walks=0",
        "calls=2",
        "reads=50",
        "length=28",
    ],
    ..BY_NODES
};
const TABLE: Figure = Figure {
    name: "turcu-4.7-nodes",
    about: "N-TFA, figure 4.7: a hash table of 7 buckets, three calls, its mean over nodes",
    workload: "hashtable",
    parameters: &[
        "objects=100",
        "initial=50",
        "rule=random",
        "walks=0",
        "buckets=7",
        "calls=3",
        "reads=50",
        "length=28",
    ],
    ..BY_NODES
};

/// Each benchmark on 4, 16 and 48 nodes: the first ten, on 4 and 16, are in quick runs.
const SUMMED_UP: &[SummedSetting] = &[
    case(&BANK, 4.0),
    case(&LOAN, 4.0),
    case(&LIST, 4.0),
    case(&TABLE, 4.0),
    case(&SKIP_LIST_BY_NODES, 4.0),
    case(&BANK, 16.0),
    case(&LOAN, 16.0),
    case(&LIST, 16.0),
    case(&TABLE, 16.0),
    case(&SKIP_LIST_BY_NODES, 16.0),
    case(&BANK, 48.0),
    case(&LOAN, 48.0),
    case(&LIST, 48.0),
    case(&TABLE, 48.0),
    case(&SKIP_LIST_BY_NODES, 48.0),
];

const SUMMARY: Figure = Figure {
    name: "turcu-4.2-nodes",
    about: "N-TFA, figure 4.2: closed nesting over flat, each benchmark's mean over nodes",
    cases: SUMMED_UP,
    axis: CASES,
    xs: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0],
    quick_xs: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
    shows: Quantity::OverFirst,
    claims: &[
        CLOSED_LOSES_ON_AVERAGE,
        best_of_closed(Some(1.84), 1.84),
        worst_of_closed(Some(0.58), 0.58),
        CLOSED_LOSES_IN_BANK,
        closed_in(
            "lost in skip lists, %",
            SummaryMeasure::Loss("skiplist"),
            Some(10.4),
            ClaimTarget::Least(10.4),
        ),
    ],
    ..CLOSED
};

/// All of them.
pub const FIGURES: &[Figure] = &[SUMMARY, BANK, LOAN, LIST, TABLE];
