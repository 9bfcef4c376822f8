//! Bumper's figures (Diegues and Romano, section VI): time-warping and delayed actions over SCORe.
//!
//! What is run is the paper's benchmark port: each node has data of its own, and updates of
//! other nodes' clients read them and write nothing that anybody reads. The same workloads on data
//! that all share are in [`bumper_general`](super::bumper_general).

use muesli_workloads::machines::MachineModel;

use crate::reproduce::figure::{
    ClaimTarget, Figure, Measure, NOTHING, PaperClaim, PlottedLine, Printed, PrintedAs, claim, line,
};

pub const BUMPER_NODES: &[f64] = &[10.0, 20.0, 40.0, 80.0, 160.0];
pub const BUMPER_QUICK: &[f64] = &[10.0, 160.0];

/// Prepares wait for locks, as in the port.
const LINES: &[PlottedLine] =
    &[line("score", "score-waiting", |_| ()), line("bumper", "bumper-waiting", |_| ())];

/// A warehouse for each node; balances apart, as the totals are; rows that the port looks for are
/// looked for.
const TPCC: &[&str] = &[
    "mix=bumper",
    "warehouses={nodes}",
    "keys=100",
    "customers=50",
    "orders=50",
    "names=8",
    "balance=apart",
    "lookups=each",
    "home=client",
];

/// How much faster `protocol` is than SCORe at 160 nodes, as the paper says and as we should be.
pub const fn speedup(protocol: &'static str, paper: f64, target: f64) -> PaperClaim {
    let measure = Measure::Speedup(protocol, "score");
    claim("speedup at 160 nodes", measure, Some(paper), Some(ClaimTarget::Least(target)))
}

/// Bumper's aborts, below one in a hundred.
pub const fn hardly_aborts(
    what: &'static str,
    protocol: &'static str,
    paper: Option<f64>,
) -> PaperClaim {
    claim(what, Measure::Aborts(protocol), paper, Some(ClaimTarget::Most(1.0)))
}

/// What Bumper costs where nobody meets anybody.
pub const OVERHEAD: &[PaperClaim] = &[claim(
    "throughput lost, %",
    Measure::Loss("bumper", "score"),
    Some(2.5),
    Some(ClaimTarget::Most(2.5)),
)];

/// Figure 4 in numbers, beside what is claimed: SCORe's follows from the speedup.
pub const TPCC_PRINTED: &[Printed] = &[Printed {
    name: "paper: score",
    source: "Bumper, section VI: up to 6.4k txs/s at 160 nodes, a speedup of 3.4",
    xs: &[160.0],
    predicts: PrintedAs::Number(|_| 6_400.0 / 3.4),
}];

/// What is left where nobody meets anybody.
pub const OVERHEAD_PRINTED: &[Printed] = &[Printed {
    name: "paper: bumper",
    source: "Bumper, section VI: 2.5 % less than SCORe on average",
    xs: BUMPER_NODES,
    predicts: PrintedAs::Share("score", |_| 0.975),
}];

const PORT: Figure = Figure {
    machine: MachineModel::bumper_port,
    xs: BUMPER_NODES,
    quick_xs: BUMPER_QUICK,
    lines: LINES,
    updates: 0.5,
    seconds: (4.0, 1.0),
    ..NOTHING
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "bumper-fig3",
        about: "Bumper, figure 3: time-warping in a skip list",
        workload: "home-lists",
        parameters: &["homes={nodes}", "keys=65535", "initial=256", "reads=50", "remote=10"],
        chosen: "One client and one list a node; 10 % of adds walk another node's list, twice 5 %, \
                 as the port doubles its share; heights are drawn and not used, as in the port.",
        claims: &[
            speedup("bumper", 2.23, 2.2),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            hardly_aborts("updates aborted, bumper", "bumper", Some(0.9)),
        ],
        ..PORT
    },
    Figure {
        name: "bumper-fig3-list",
        about: "The same without a row for the level, as the port's last script has it",
        workload: "home-lists",
        parameters: &[
            "homes={nodes}",
            "keys=65535",
            "initial=256",
            "reads=50",
            "remote=10",
            "structure=list",
        ],
        chosen: "As bumper-fig3.",
        claims: &[
            claim("speedup at 160 nodes", Measure::Speedup("bumper", "score"), Some(2.23), None),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            claim("updates aborted, bumper", Measure::Aborts("bumper"), Some(0.9), None),
        ],
        ..PORT
    },
    Figure {
        name: "bumper-fig4",
        about: "Bumper, figure 4: delayed actions in TPC-C",
        printed: TPCC_PRINTED,
        workload: "tpcc",
        parameters: TPCC,
        chosen: "One client and one warehouse a node, as in the port; updates are Payments, \
                 readers Order-Statuses, half each; 50 customers and orders a district.",
        claims: &[
            speedup("bumper", 3.4, 3.4),
            claim("tx/s, bumper", Measure::Throughput("bumper"), Some(6_400.0), None),
            claim("updates aborted, score", Measure::Aborts("score"), Some(38.0), None),
            hardly_aborts("updates aborted, bumper", "bumper", Some(0.8)),
        ],
        ..PORT
    },
    Figure {
        name: "bumper-fig5",
        about: "Bumper, figure 5: time-warping and delayed actions in Vacation",
        workload: "home-vacation",
        parameters: &["homes={nodes}", "keys=8", "users=98", "remote=5", "units=10000"],
        chosen: "One client and one agency a node; 8 rows a table; 98 % of tasks make \
                 reservations, as by default (the port's script has all of them do so, and nothing \
                 is delayed then); units are plenty, so that none run out.",
        updates: 0.5,
        claims: &[
            speedup("bumper", 2.1, 2.1),
            hardly_aborts("updates aborted, bumper", "bumper", Some(1.0)),
        ],
        ..PORT
    },
    Figure {
        name: "bumper-ycsb",
        about: "Bumper, in words: YCSB, 16 keys read",
        workload: "home-ycsb",
        parameters: &["homes={nodes}", "keys=16", "reads=50", "remote=5"],
        chosen: "One client and one table a node; 16 records of 200 bytes, the paper's number (8 \
                 in the port's script); an update reads all of a table and writes one key.",
        claims: &[
            speedup("bumper", 2.8, 2.8),
            claim("tx/s, bumper", Measure::Throughput("bumper"), Some(13_000.0), None),
            claim("tx/s, score", Measure::Throughput("score"), Some(4_800.0), None),
            hardly_aborts("updates aborted, bumper", "bumper", None),
        ],
        ..PORT
    },
    Figure {
        name: "bumper-overhead",
        about: "Bumper, in words: YCSB without conflicts",
        printed: OVERHEAD_PRINTED,
        workload: "home-ycsb",
        parameters: &["homes={nodes}", "keys=16", "reads=50", "update=put"],
        chosen: "As bumper-ycsb, but an update puts one record of its node's table, and there are \
                 no remote ones.",
        seconds: (2.0, 0.5),
        claims: OVERHEAD,
        ..PORT
    },
];
