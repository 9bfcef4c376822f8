//! Chapter 6: the interface of objects (Hyflow2). Hyflow, which the dissertation compares it with,
//! cannot be run here: in its place are other protocols, and TFA on rows, at the same work.

use muesli_workloads::machines::MachineModel;

use super::base::{READ_ONLY, TURCU};
use crate::reproduce::figure::{
    CASES, ClaimTarget, Figure, Measure, NODES, PaperClaim, PlottedLine, Setting, SummaryMeasure,
    SummedSetting, case, claim, line, protocol,
};
use crate::reproduce::point::Quantity;

fn objects(setting: &mut Setting) {
    setting.parameters.push("interface=objects".to_owned());
}

const LINES: &[PlottedLine] = &[
    line("rows", "tfa", |_| ()),
    line("objects", "tfa", objects),
    protocol("two-phase-commit"),
    protocol("score"),
];

/// What objects have at least of what rows have.
const COSTS_NOTHING: PaperClaim = claim(
    "objects over rows, least",
    Measure::LeastOverBest(Quantity::Throughput, "objects", &["rows"]),
    None,
    Some(ClaimTarget::Least(0.95)),
);

const fn over(
    what: &'static str,
    other: &'static str,
    nodes: f64,
    paper: Option<f64>,
    aim: f64,
) -> PaperClaim {
    let measure = Measure::Over(Quantity::Throughput, "objects", other, nodes);
    claim(what, measure, paper, Some(ClaimTarget::Least(aim)))
}

/// Hyflow2 was up to seven times as fast as Hyflow on few nodes, and 30 % faster on many.
const BANK_AIMS: &[PaperClaim] = &[
    COSTS_NOTHING,
    over("over two-phase-commit, 2 nodes", "two-phase-commit", 2.0, Some(7.0), 1.0),
    over("over score, 2 nodes", "score", 2.0, Some(7.0), 1.0),
    over("over two-phase-commit, 32 nodes", "two-phase-commit", 32.0, Some(1.3), 1.3),
    over("over score, 32 nodes", "score", 32.0, Some(1.3), 1.3),
];

/// Many transactions at few objects: a client on each of up to 32 nodes, all on one machine.
const MANY_NODES: Figure = Figure {
    machine: MachineModel::hyflow2_core,
    chosen: "One client a node, 10 objects (\"a minimal number\" there); flat transactions.",
    nodes: 32,
    axis: READ_ONLY,
    xs: &[10.0, 50.0, 90.0],
    quick_xs: &[50.0],
    lines: LINES,
    seconds: (4.0, 1.0),
    ..TURCU
};

/// Few at many objects: 96 clients on each of five machines.
const MANY_CLIENTS: Figure = Figure {
    machine: MachineModel::hyflow2_machine,
    chosen: "96 clients a node, many objects (10,000 accounts are printed); flat transactions.",
    nodes: 5,
    clients_a_node: 96,
    seconds: (0.5, 0.05),
    ..MANY_NODES
};

/// The bank over nodes.
const BANK_BY_NODES: Figure = Figure {
    workload: "bank",
    axis: NODES,
    xs: &[2.0, 4.0, 8.0, 16.0, 24.0, 32.0],
    quick_xs: &[2.0, 8.0, 32.0],
    claims: BANK_AIMS,
    ..MANY_NODES
};

const FEW_ACCOUNTS: Figure = Figure {
    name: "turcu-6.13-bank",
    about: "Hyflow2, figure 6.13: bank of 10 accounts, 32 nodes",
    workload: "bank",
    parameters: &["objects=10", "totals=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_NODES
};
const FEW_COUNTERS: Figure = Figure {
    name: "turcu-6.13-counters",
    about: "Hyflow2, figure 6.13: one of 10 counters, 32 nodes",
    workload: "counters",
    parameters: &["calls=0", "hot=10", "hot-reads=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_NODES
};
const FEW_BUCKETS: Figure = Figure {
    name: "turcu-6.13-hashtable",
    about: "Hyflow2, figure 6.13: a hash table of 10 buckets, 32 nodes",
    workload: "hashtable",
    parameters: &["objects=100", "initial=50", "buckets=10", "rule=random", "walks=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_NODES
};
const SHORT_LIST: Figure = Figure {
    name: "turcu-6.13-list",
    about: "Hyflow2, figure 6.13: a linked list of 20 keys, 32 nodes",
    workload: "list",
    parameters: &["objects=20", "initial=10", "rule=random", "walks=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_NODES
};
const SKIP_LIST: Figure = Figure {
    name: "turcu-6.13-skiplist",
    about: "Hyflow2, figure 6.13: a skip list of 20 keys, 32 nodes",
    workload: "skiplist",
    parameters: &["objects=20", "initial=10", "rule=random", "walks=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_NODES
};
const MANY_ACCOUNTS: Figure = Figure {
    name: "turcu-6.13-bank-many",
    about: "Hyflow2, figure 6.13: bank of 10,000 accounts, 5 nodes with 96 clients",
    workload: "bank",
    parameters: &["objects=10000", "totals=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_CLIENTS
};
const MANY_COUNTERS: Figure = Figure {
    name: "turcu-6.13-counters-many",
    about: "Hyflow2, figure 6.13: one of 10,000 counters, 5 nodes with 96 clients",
    workload: "counters",
    parameters: &["calls=0", "hot=10000", "hot-reads=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_CLIENTS
};
const MANY_BUCKETS: Figure = Figure {
    name: "turcu-6.13-hashtable-many",
    about: "Hyflow2, figure 6.13: a hash table of 1,000 buckets, 5 nodes with 96 clients",
    workload: "hashtable",
    parameters: &["objects=2000", "initial=1000", "buckets=1000", "rule=random", "walks=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_CLIENTS
};
const LONG_LIST: Figure = Figure {
    name: "turcu-6.13-list-many",
    about: "Hyflow2, figure 6.13: a linked list of 200 keys, 5 nodes with 96 clients",
    workload: "list",
    parameters: &["objects=200", "initial=100", "rule=random", "walks=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_CLIENTS
};
const LARGE_SKIP_LIST: Figure = Figure {
    name: "turcu-6.13-skiplist-many",
    about: "Hyflow2, figure 6.13: a skip list of 2,000 keys, 5 nodes with 96 clients",
    workload: "skiplist",
    parameters: &["objects=2000", "initial=1000", "rule=random", "walks=0"],
    claims: &[COSTS_NOTHING],
    ..MANY_CLIENTS
};

/// What figure 6.13 sums up: first half of the transactions only read, which quick runs have.
const SUMMED_UP: &[SummedSetting] = &[
    case(&FEW_ACCOUNTS, 50.0),
    case(&FEW_COUNTERS, 50.0),
    case(&FEW_BUCKETS, 50.0),
    case(&SHORT_LIST, 50.0),
    case(&SKIP_LIST, 50.0),
    case(&MANY_ACCOUNTS, 50.0),
    case(&MANY_COUNTERS, 50.0),
    case(&MANY_BUCKETS, 50.0),
    case(&LONG_LIST, 50.0),
    case(&LARGE_SKIP_LIST, 50.0),
    case(&FEW_ACCOUNTS, 10.0),
    case(&FEW_COUNTERS, 10.0),
    case(&FEW_BUCKETS, 10.0),
    case(&SHORT_LIST, 10.0),
    case(&SKIP_LIST, 10.0),
    case(&FEW_ACCOUNTS, 90.0),
    case(&FEW_COUNTERS, 90.0),
    case(&FEW_BUCKETS, 90.0),
    case(&SHORT_LIST, 90.0),
    case(&SKIP_LIST, 90.0),
];
/// The number of the case whose throughput is printed, a bank of 10,000 accounts.
const PRINTED: f64 = 6.0;

const SUMMARY_AIMS: &[PaperClaim] = &[
    COSTS_NOTHING,
    claim(
        "over the best of the others, least",
        Measure::LeastOverBest(Quantity::Throughput, "objects", &["two-phase-commit", "score"]),
        None,
        Some(ClaimTarget::Least(1.0)),
    ),
    claim(
        "lost to two-phase-commit on average, %",
        Measure::Loss("objects", "two-phase-commit"),
        None,
        Some(ClaimTarget::Most(0.0)),
    ),
    claim(
        "lost to two-phase-commit in hash tables, %",
        Measure::Summary(SummaryMeasure::Loss("hashtable"), "objects", "two-phase-commit"),
        Some(-60.0),
        Some(ClaimTarget::Most(-60.0)),
    ),
    over("bank of 10,000, over two-phase-commit", "two-phase-commit", PRINTED, Some(7.4), 1.0),
    claim(
        "the same, committed/s",
        Measure::At(Quantity::Throughput, "objects", PRINTED),
        Some(24_623.0),
        None,
    ),
];

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-6.13",
        about: "Hyflow2, figure 6.13: objects over rows and other protocols, by benchmark",
        chosen: "32 nodes with a client each, and 5 with 96; flat transactions.",
        cases: SUMMED_UP,
        axis: CASES,
        xs: &[
            1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
            17.0, 18.0, 19.0, 20.0,
        ],
        quick_xs: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
        shows: Quantity::OverFirst,
        claims: SUMMARY_AIMS,
        ..MANY_NODES
    },
    FEW_ACCOUNTS,
    FEW_COUNTERS,
    FEW_BUCKETS,
    SHORT_LIST,
    SKIP_LIST,
    MANY_ACCOUNTS,
    MANY_COUNTERS,
    MANY_BUCKETS,
    LONG_LIST,
    LARGE_SKIP_LIST,
    Figure {
        name: "turcu-6.14",
        about: "Hyflow2, figure 6.14: bank of 10 accounts over nodes, half read-only",
        parameters: &["objects=10", "totals=0", "reads=50"],
        ..BANK_BY_NODES
    },
    Figure {
        name: "turcu-6.14-writing",
        about: "Hyflow2, figure 6.14: the same, 10 % read-only",
        parameters: &["objects=10", "totals=0", "reads=10"],
        ..BANK_BY_NODES
    },
    Figure {
        name: "turcu-6.14-reading",
        about: "Hyflow2, figure 6.14: the same, 90 % read-only",
        parameters: &["objects=10", "totals=0", "reads=90"],
        ..BANK_BY_NODES
    },
];
