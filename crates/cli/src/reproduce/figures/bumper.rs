//! Bumper's figures (Diegues and Romano, section VI): time-warping and delayed actions over SCORe.

use muesli_workloads::machines::Machine;

use super::{Claim, Figure, Measure, NOTHING, Target, claim, protocol};

const BUMPER_NODES: &[f64] = &[10.0, 20.0, 40.0, 80.0, 160.0];
const BUMPER_QUICK: &[f64] = &[10.0, 160.0];

/// 256 of 65 536 keys; half of the transactions look for one.
const SKIP_LIST: &[&str] = &["keys=65536", "initial=256", "reads=50", "walks=0", "levels=8"];

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

/// How much faster `protocol` is than SCORe at 160 nodes, as the paper says and as we should be.
const fn speedup(protocol: &'static str, paper: f64, target: f64) -> Claim {
    let measure = Measure::Speedup(protocol, "score");
    claim("speedup at 160 nodes", measure, Some(paper), Some(Target::Least(target)))
}

/// Bumper's aborts, below one in a hundred.
const fn hardly_aborts(what: &'static str, protocol: &'static str, paper: Option<f64>) -> Claim {
    claim(what, Measure::Aborts(protocol), paper, Some(Target::Most(1.0)))
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "bumper-fig3",
        about: "Bumper, figure 3: time-warping in a skip list",
        workload: "skiplist",
        parameters: SKIP_LIST,
        chosen: "One client a node; 8 levels; nodes of the list are whole rows.",
        machine: Machine::bumper_cluster,
        xs: BUMPER_NODES,
        quick_xs: BUMPER_QUICK,
        lines: &[protocol("score"), protocol("bumper-tw")],
        updates: 0.5,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper-tw", 2.23, 2.2),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            hardly_aborts("updates aborted, bumper", "bumper-tw", Some(0.9)),
        ],
        ..NOTHING
    },
    Figure {
        name: "bumper-fig3-list",
        about: "The same in a linked list, which the paper's port was in effect",
        workload: "list",
        parameters: &["keys=65536", "initial=256", "reads=50", "walks=0"],
        chosen: "One client a node. The port draws heights and never uses them.",
        machine: Machine::bumper_cluster,
        xs: BUMPER_NODES,
        quick_xs: BUMPER_QUICK,
        lines: &[protocol("score"), protocol("bumper-tw")],
        updates: 0.5,
        seconds: (6.0, 3.0),
        claims: &[
            claim("speedup at 160 nodes", Measure::Speedup("bumper-tw", "score"), Some(2.23), None),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            claim("updates aborted, bumper", Measure::Aborts("bumper-tw"), Some(0.9), None),
        ],
        ..NOTHING
    },
    Figure {
        name: "bumper-fig4",
        about: "Bumper, figure 4: delayed actions in TPC-C",
        workload: "tpcc",
        parameters: TPCC,
        chosen: "One client a node; 40 warehouses of 10 districts with 100 customers and 10 orders \
                 each, with which SCORe aborts about as often as in the paper; updates are \
                 Payments, readers Order-Statuses; rows are dealt by hash, but what is looked for \
                 by a customer's name or number lies with its district.",
        machine: Machine::bumper_cluster,
        xs: BUMPER_NODES,
        quick_xs: BUMPER_QUICK,
        lines: &[protocol("score"), protocol("bumper")],
        updates: 0.5,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper", 3.4, 3.4),
            claim("tx/s, bumper", Measure::Throughput("bumper"), Some(6_400.0), None),
            claim("updates aborted, score", Measure::Aborts("score"), Some(38.0), None),
            hardly_aborts("updates aborted, bumper", "bumper", Some(0.8)),
        ],
        ..NOTHING
    },
    Figure {
        name: "bumper-fig5",
        about: "Bumper, figure 5: time-warping and delayed actions in Vacation",
        workload: "vacation",
        parameters: &["keys=512", "delayed=true", "users=90", "reads=0"],
        chosen: "One client a node; 512 resources a table and customers, 90 % of tasks make \
                 reservations.",
        machine: Machine::bumper_cluster,
        xs: BUMPER_NODES,
        quick_xs: BUMPER_QUICK,
        lines: &[protocol("score"), protocol("bumper")],
        updates: 1.0,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper", 2.1, 2.1),
            hardly_aborts("tasks aborted, bumper", "bumper", Some(1.0)),
        ],
        ..NOTHING
    },
    Figure {
        name: "bumper-ycsb",
        about: "Bumper, in words: YCSB, 16 keys read and up to 4 written",
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
        machine: Machine::bumper_cluster,
        xs: BUMPER_NODES,
        quick_xs: BUMPER_QUICK,
        lines: &[protocol("score"), protocol("bumper-tw")],
        updates: 0.5,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper-tw", 2.8, 2.8),
            claim("tx/s, bumper", Measure::Throughput("bumper-tw"), Some(13_000.0), None),
            claim("tx/s, score", Measure::Throughput("score"), Some(4_800.0), None),
            hardly_aborts("updates aborted, bumper", "bumper-tw", None),
        ],
        ..NOTHING
    },
    Figure {
        name: "bumper-overhead",
        about: "Bumper, in words: YCSB without conflicts",
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
        machine: Machine::bumper_cluster,
        xs: BUMPER_NODES,
        quick_xs: BUMPER_QUICK,
        lines: &[protocol("score"), protocol("bumper")],
        updates: 0.5,
        seconds: (2.0, 0.5),
        claims: &[claim(
            "throughput lost, %",
            Measure::Loss("bumper", "score"),
            Some(2.5),
            Some(Target::Most(2.5)),
        )],
        ..NOTHING
    },
];
