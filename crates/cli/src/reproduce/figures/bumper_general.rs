//! Bumper's figures in general workloads: as the paper's text describes them, on data that all
//! clients share.

use muesli_workloads::machines::MachineModel;

use super::bumper::{
    BUMPER_NODES, BUMPER_QUICK, OVERHEAD, OVERHEAD_PRINTED, TPCC_PRINTED, hardly_aborts, speedup,
};
use crate::reproduce::figure::{Figure, Measure, NOTHING, PlottedLine, claim, protocol};

/// 256 of 65 536 keys; half of the transactions look for one.
const SKIP_LIST: &[&str] = &["objects=65536", "initial=256", "reads=50", "walks=0", "levels=8"];

/// As many customers as in one and a third of the standard's warehouses, over more of them.
const TPCC: &[&str] = &[
    "mix=bumper",
    "warehouses=40",
    "keys=100",
    "customers=100",
    "orders=10",
    "placement=district",
    "home=any",
];

/// What most of them have in common: all clients share the data.
const SHARED: Figure = Figure {
    chosen: "One client a node.",
    machine: MachineModel::bumper_cluster,
    xs: BUMPER_NODES,
    quick_xs: BUMPER_QUICK,
    lines: &[protocol("score"), protocol("bumper-time-warping")],
    updates: 0.5,
    seconds: (4.0, 1.0),
    ..NOTHING
};
/// Beside the whole of Bumper, delayed actions included.
const WHOLE: &[PlottedLine] = &[protocol("score"), protocol("bumper")];

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "bumper-fig3-general",
        about: "Bumper, figure 3 on one skip list that all share",
        workload: "skiplist",
        parameters: SKIP_LIST,
        chosen: "One client a node; 8 levels; nodes of the list are whole rows.",
        claims: &[
            speedup("bumper-time-warping", 2.23, 2.2),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            hardly_aborts("updates aborted, bumper", "bumper-time-warping", Some(0.9)),
        ],
        ..SHARED
    },
    Figure {
        name: "bumper-fig3-general-list",
        about: "The same in a linked list",
        workload: "list",
        parameters: &["objects=65536", "initial=256", "reads=50", "walks=0"],
        seconds: (6.0, 3.0),
        claims: &[
            claim(
                "speedup at 160 nodes",
                Measure::Speedup("bumper-time-warping", "score"),
                Some(2.23),
                None,
            ),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            claim(
                "updates aborted, bumper",
                Measure::Aborts("bumper-time-warping"),
                Some(0.9),
                None,
            ),
        ],
        ..SHARED
    },
    Figure {
        name: "bumper-fig4-general",
        printed: TPCC_PRINTED,
        about: "Bumper, figure 4 with any warehouse for each Payment",
        workload: "tpcc",
        parameters: TPCC,
        chosen: "One client a node; 40 warehouses of 10 districts with 100 customers and 10 orders \
                 each, with which SCORe aborts about as often as in the paper; updates are \
                 Payments, readers Order-Statuses; rows are dealt by hash, but what is looked for \
                 by a customer's name or number lies with its district.",
        lines: WHOLE,
        claims: &[
            speedup("bumper", 3.4, 3.4),
            claim("tx/s, bumper", Measure::Throughput("bumper"), Some(6_400.0), None),
            claim("updates aborted, score", Measure::Aborts("score"), Some(38.0), None),
            hardly_aborts("updates aborted, bumper", "bumper", Some(0.8)),
        ],
        ..SHARED
    },
    Figure {
        name: "bumper-fig5-general",
        about: "Bumper, figure 5 in one agency that all share",
        workload: "vacation",
        parameters: &["keys=512", "delayed=true", "users=90", "reads=0"],
        chosen: "One client a node; 512 resources a table and customers, 90 % of tasks make \
                 reservations.",
        lines: WHOLE,
        updates: 1.0,
        claims: &[
            speedup("bumper", 2.1, 2.1),
            hardly_aborts("tasks aborted, bumper", "bumper", Some(1.0)),
        ],
        ..SHARED
    },
    Figure {
        name: "bumper-ycsb-general",
        about: "Bumper, in words: YCSB, 16 keys read and up to 4 written, of one table",
        workload: "ycsb",
        parameters: &[
            "workload=t",
            "keys=10000",
            "theta=0.5",
            "reader-reads=1",
            "one-by-one=true",
            "groups=0",
            "updates=50",
        ],
        chosen: "One client a node; 10 000 records of 1 kB, zipfian with skew 0.5, with which \
                 SCORe commits as many a second on 160 nodes as in the paper.",
        claims: &[
            speedup("bumper-time-warping", 2.8, 2.8),
            claim("tx/s, bumper", Measure::Throughput("bumper-time-warping"), Some(13_000.0), None),
            claim("tx/s, score", Measure::Throughput("score"), Some(4_800.0), None),
            hardly_aborts("updates aborted, bumper", "bumper-time-warping", None),
        ],
        ..SHARED
    },
    Figure {
        name: "bumper-overhead-general",
        printed: OVERHEAD_PRINTED,
        about: "Bumper, in words: YCSB without conflicts, a read and a write",
        workload: "ycsb",
        parameters: &[
            "workload=t",
            "keys=10000",
            "reads=1",
            "writes=1",
            "distribution=uniform",
            "disjoint=true",
            "updates=50",
        ],
        chosen: "One client a node; each has records of its own, of 10 000.",
        lines: WHOLE,
        seconds: (2.0, 0.5),
        claims: OVERHEAD,
        ..SHARED
    },
];
