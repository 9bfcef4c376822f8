//! The figures that can be reproduced: what was run, what was claimed, what we aim at.

use muesli_workloads::machines::Machine;

/// A figure of a paper, or a result that it tells in words.
pub struct Figure {
    /// What it is called here.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The workload, and its parameters; `{nodes}` in one stands for the number of nodes.
    pub workload: &'static str,
    pub parameters: &'static [&'static str],
    /// What is not printed in the paper and chosen here.
    pub chosen: &'static str,
    pub machine: fn() -> Machine,
    pub clients_a_node: u32,
    pub nodes: &'static [usize],
    /// The same with `--quick`.
    pub quick_nodes: &'static [usize],
    pub protocols: &'static [&'static str],
    /// Share of transactions that update, for the share of *their* attempts that abort.
    pub updates: f64,
    /// How long clients run at each point, in virtual seconds; and with `--quick`.
    pub seconds: (f64, f64),
    pub claims: &'static [Claim],
}

/// Something that the paper says about a figure.
pub struct Claim {
    pub what: &'static str,
    pub measure: Measure,
    /// What the paper says, in the unit of the measure; `None`: only in words.
    pub paper: Option<f64>,
    pub target: Option<Target>,
}

/// A number made from a figure's points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Throughput of the first over that of the second, at the most nodes.
    Speedup(&'static str, &'static str),
    /// Throughput lost by the first against the second, in percent: the geometric mean over all
    /// numbers of nodes.
    Loss(&'static str, &'static str),
    /// Attempts of updates that abort, in percent: the mean over all numbers of nodes.
    Aborts(&'static str),
    /// Committed transactions a second at the most nodes.
    Throughput(&'static str),
    /// Throughput a node at the most nodes over that at the fewest.
    Scaling(&'static str),
}

/// What we aim at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    Least(f64),
    Most(f64),
}

impl Target {
    pub fn is_met(self, ours: f64) -> bool {
        match self {
            Target::Least(least) => ours >= least,
            Target::Most(most) => ours <= most,
        }
    }
}

const fn claim(
    what: &'static str,
    measure: Measure,
    paper: Option<f64>,
    target: Option<Target>,
) -> Claim {
    Claim { what, measure, paper, target }
}

/// How much faster `protocol` is than SCORe at 160 nodes, as the paper says and as we should be.
const fn speedup(protocol: &'static str, paper: f64, target: f64) -> Claim {
    let measure = Measure::Speedup(protocol, "score");
    claim("speedup at 160 nodes", measure, Some(paper), Some(Target::Least(target)))
}

/// Bumper's aborts, below one in a hundred.
const fn hardly_aborts(what: &'static str, protocol: &'static str, paper: Option<f64>) -> Claim {
    claim(what, Measure::Aborts(protocol), paper, Some(Target::Most(1.0)))
}

const BUMPER_NODES: &[usize] = &[10, 20, 40, 80, 160];
const BUMPER_QUICK: &[usize] = &[10, 160];

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

/// All figures.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "bumper-fig3",
        about: "Bumper, figure 3: time-warping in a skip list",
        workload: "skiplist",
        parameters: SKIP_LIST,
        chosen: "One client a node; 8 levels; nodes of the list are whole rows.",
        machine: Machine::bumper_cluster,
        clients_a_node: 1,
        nodes: BUMPER_NODES,
        quick_nodes: BUMPER_QUICK,
        protocols: &["score", "bumper-tw"],
        updates: 0.5,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper-tw", 2.23, 2.2),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            hardly_aborts("updates aborted, bumper", "bumper-tw", Some(0.9)),
        ],
    },
    Figure {
        name: "bumper-fig3-list",
        about: "The same in a linked list, which the paper's port was in effect",
        workload: "list",
        parameters: &["keys=65536", "initial=256", "reads=50", "walks=0"],
        chosen: "One client a node. The port draws heights and never uses them.",
        machine: Machine::bumper_cluster,
        clients_a_node: 1,
        nodes: BUMPER_NODES,
        quick_nodes: BUMPER_QUICK,
        protocols: &["score", "bumper-tw"],
        updates: 0.5,
        seconds: (6.0, 3.0),
        claims: &[
            claim("speedup at 160 nodes", Measure::Speedup("bumper-tw", "score"), Some(2.23), None),
            claim("updates aborted, score", Measure::Aborts("score"), Some(15.0), None),
            claim("updates aborted, bumper", Measure::Aborts("bumper-tw"), Some(0.9), None),
        ],
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
        clients_a_node: 1,
        nodes: BUMPER_NODES,
        quick_nodes: BUMPER_QUICK,
        protocols: &["score", "bumper"],
        updates: 0.5,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper", 3.4, 3.4),
            claim("tx/s, bumper", Measure::Throughput("bumper"), Some(6_400.0), None),
            claim("updates aborted, score", Measure::Aborts("score"), Some(38.0), None),
            hardly_aborts("updates aborted, bumper", "bumper", Some(0.8)),
        ],
    },
    Figure {
        name: "bumper-fig5",
        about: "Bumper, figure 5: time-warping and delayed actions in Vacation",
        workload: "vacation",
        parameters: &["keys=512", "delayed=true", "users=90", "reads=0"],
        chosen: "One client a node; 512 resources a table and customers, 90 % of tasks make \
                 reservations.",
        machine: Machine::bumper_cluster,
        clients_a_node: 1,
        nodes: BUMPER_NODES,
        quick_nodes: BUMPER_QUICK,
        protocols: &["score", "bumper"],
        updates: 1.0,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper", 2.1, 2.1),
            hardly_aborts("tasks aborted, bumper", "bumper", Some(1.0)),
        ],
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
        clients_a_node: 1,
        nodes: BUMPER_NODES,
        quick_nodes: BUMPER_QUICK,
        protocols: &["score", "bumper-tw"],
        updates: 0.5,
        seconds: (4.0, 1.0),
        claims: &[
            speedup("bumper-tw", 2.8, 2.8),
            claim("tx/s, bumper", Measure::Throughput("bumper-tw"), Some(13_000.0), None),
            claim("tx/s, score", Measure::Throughput("score"), Some(4_800.0), None),
            hardly_aborts("updates aborted, bumper", "bumper-tw", None),
        ],
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
        clients_a_node: 1,
        nodes: BUMPER_NODES,
        quick_nodes: BUMPER_QUICK,
        protocols: &["score", "bumper"],
        updates: 0.5,
        seconds: (2.0, 0.5),
        claims: &[claim(
            "throughput lost, %",
            Measure::Loss("bumper", "score"),
            Some(2.5),
            Some(Target::Most(2.5)),
        )],
    },
    Figure {
        name: "gmu-fig1",
        about: "GMU, figure 1: YCSB A beside repeatable read",
        workload: "ycsb",
        parameters: &["workload=a", "keys=100000"],
        chosen: "100 000 records of 1 kB; the paper's 20 nodes, and 40.",
        machine: Machine::cloud_tm,
        clients_a_node: 4,
        nodes: &[4, 8, 12, 16, 20, 40],
        quick_nodes: &[4, 20, 40],
        protocols: &["rr", "gmu", "ngm"],
        updates: 0.5,
        seconds: (2.0, 0.5),
        claims: &[
            claim(
                "throughput lost, %",
                Measure::Loss("gmu", "rr"),
                Some(8.0),
                Some(Target::Most(8.0)),
            ),
            claim("gmu, of linear", Measure::Scaling("gmu"), Some(1.0), Some(Target::Least(0.9))),
            claim("ngm, of linear", Measure::Scaling("ngm"), None, Some(Target::Most(0.5))),
        ],
    },
    Figure {
        name: "gmu-fig2",
        about: "GMU, figure 2: TPC-C, nine tenths of it reading, on FutureGrid",
        workload: "tpcc",
        parameters: &["mix=gmu", "warehouses={nodes}", "keys=100", "home=client"],
        chosen: "A warehouse for each node.",
        machine: Machine::future_grid,
        clients_a_node: 1,
        nodes: &[4, 10, 20, 40],
        quick_nodes: &[4, 40],
        protocols: &["rr", "gmu"],
        updates: 0.1,
        seconds: (2.0, 0.5),
        claims: &[
            claim(
                "throughput lost, %",
                Measure::Loss("gmu", "rr"),
                Some(-10.0),
                Some(Target::Most(8.0)),
            ),
            claim("gmu, of linear", Measure::Scaling("gmu"), Some(1.0), Some(Target::Least(0.9))),
        ],
    },
    Figure {
        name: "gmu-fig3",
        about: "GMU, figure 3: the same on Cloud-TM, four clients a node, beside NGM",
        workload: "tpcc",
        parameters: &["mix=gmu", "warehouses={nodes}", "keys=100", "home=client"],
        chosen: "A warehouse for each node, so that four clients share one.",
        machine: Machine::cloud_tm,
        clients_a_node: 4,
        nodes: &[4, 8, 12, 16, 20],
        quick_nodes: &[4, 20],
        protocols: &["rr", "gmu", "ngm"],
        updates: 0.1,
        seconds: (2.0, 0.5),
        claims: &[
            claim("throughput lost, %", Measure::Loss("gmu", "rr"), Some(15.0), None),
            claim("updates aborted, gmu", Measure::Aborts("gmu"), Some(15.0), None),
            claim("updates aborted, rr", Measure::Aborts("rr"), Some(8.0), None),
            claim("ngm, of linear", Measure::Scaling("ngm"), None, Some(Target::Most(0.5))),
        ],
    },
];
