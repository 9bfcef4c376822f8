//! Granola's figures (Cowling's thesis, chapter 6 and appendix B).
//!
//! Figures that show one set of runs in two ways share a base. The conflicts that a figure asks for
//! are those of two transactions; each uses the shared counter of its repository with the square
//! root of that chance.

use muesli_sim::latency::Latency;
use muesli_sim::time::Span;
use muesli_workloads::machines::MachineModel;

use super::{
    Axis, Figure, Line, Measure, Model, NOTHING, Quantity, Setting, Target, claim, line, protocol,
};
use crate::reproduce::points::Point;

/// Replicas are a tenth of a millisecond away, one way.
const LOCAL: Span = Span::from_micros(200);
/// Replicas are ten milliseconds away, one way.
const WIDE: Span = Span::from_millis(20);

fn local() -> MachineModel {
    MachineModel::granola_cluster(LOCAL)
}

fn at_wide(setting: &mut Setting) {
    setting.machine = MachineModel::granola_cluster(WIDE);
    setting.machine.patience *= 100;
}

/// All nodes are ten milliseconds apart.
fn far(setting: &mut Setting) {
    setting.machine.network.latency = Latency::Constant(Span::from_millis(10));
    setting.machine.patience *= 100;
}

/// Shares.
const PERCENT: (f64, f64) = (0.0, 100.0);

const CLIENTS: Axis = Axis {
    name: "clients",
    set: |x, setting| setting.clients = Some(x as u32),
    range: (1.0, 100_000.0),
    logarithmic: true,
};
const DISTRIBUTED: Axis = Axis {
    name: "% distributed",
    set: |x, setting| setting.put("distributed", x),
    range: PERCENT,
    logarithmic: false,
};
/// Pairs of transactions that conflict.
const CONFLICTS: Axis = Axis {
    name: "% of pairs conflict",
    set: |x, setting| setting.put("conflicts", 10.0 * x.sqrt()),
    range: PERCENT,
    logarithmic: true,
};
/// The share of transactions that use the shared counters.
const SHARED: Axis = Axis {
    name: "% use shared counters",
    set: |x, setting| setting.put("conflicts", x),
    range: PERCENT,
    logarithmic: true,
};

const COUNTERS: Figure = Figure {
    workload: "counter-procedures",
    parameters: &["distributed=100"],
    machine: local,
    replicas: 1,
    nodes: 2,
    clients_a_node: 32,
    ..NOTHING
};

/// What the thesis compares. Sinfonia has one master, on a node of its own like all others.
const THREE: &[Line] = &[
    protocol("granola"),
    protocol("granola-locking"),
    line("sinfonia", "sinfonia", |setting| setting.masters = 1),
];

/// Figure 6.10: lock contention. Conflicts are drawn for each transaction, as in the thesis.
const CONTENTION: Figure = Figure {
    parameters: &["distributed=100", "conflicts-by=transaction"],
    axis: SHARED,
    xs: &[0.1, 1.0, 10.0, 30.0, 100.0],
    quick_xs: &[1.0, 10.0, 100.0],
    lines: THREE,
    chosen: "32 clients for each repository; locks cost nothing; Sinfonia has one master, on a \
             machine of its own like the others.",
    claims: &[
        claim(
            "timestamps over locks, 10 %",
            Measure::Over(Quantity::Throughput, "granola", "granola-locking", 10.0),
            None,
            Some(Target::Least(3.0)),
        ),
        claim("tx/s, locks, 100 %", Measure::Throughput("granola-locking"), Some(1e3), None),
        claim("tx/s, Sinfonia, 100 %", Measure::Throughput("sinfonia"), Some(1e3), None),
        claim("kept by timestamps", Measure::Kept("granola"), Some(1.0), None),
    ],
    ..COUNTERS
};

const BASE: Figure = Figure {
    axis: CLIENTS,
    xs: &[1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 2048.0],
    quick_xs: &[4.0, 64.0, 1024.0],
    lines: &[line("local", "granola", |_| ()), line("wide", "granola", at_wide)],
    chosen: "100 counters for each client and repository; a log that syncs one batch at a time \
             stands for the replicas.",
    ..COUNTERS
};
const SINGLE: Figure = Figure { parameters: &["distributed=0"], nodes: 1, ..BASE };

const SCALE: Figure = Figure {
    axis: super::NODES,
    xs: &[1.0, 2.0, 4.0, 6.0, 8.0, 10.0],
    quick_xs: &[2.0, 10.0],
    lines: &[
        line("0 %", "granola", |setting| setting.put("distributed", 0.0)),
        line("1 %", "granola", |setting| setting.put("distributed", 1.0)),
        line("10 %", "granola", |setting| setting.put("distributed", 10.0)),
    ],
    clients_a_node: 64,
    chosen: "64 clients for each repository.",
    ..COUNTERS
};

/// Work as heavy as a New-Order at each repository, and locks that take a share of all of it.
fn lock_cost(share: f64, setting: &mut Setting) {
    let work = Span::from_micros(40);
    (setting.machine.costs.read, setting.machine.costs.install) = (work, work);
    let lock = work.as_nanos() as f64 * share / (100.0 - share);
    setting.machine.costs.validate = Span::from_nanos(lock as u64);
}

/// Independent transactions are under way for about ten milliseconds, few conflict, and one in a
/// hundred is coordinated.
const ENTER: Figure = Figure {
    axis: CONFLICTS,
    parameters: &["distributed=100", "coordinated=1"],
    xs: &[0.01, 0.1, 1.0, 10.0, 50.0],
    quick_xs: &[0.1, 10.0],
    shows: Quantity::Transition,
    seconds: (8.0, 2.0),
    chosen: "Closed loops of clients in place of arrival rates; the model is given the rate and \
             the time under way that were measured.",
    ..COUNTERS
};

/// How many transactions are under way at a repository for `way` each side of it, by Little's law:
/// the rate there, and the time from the vote to the end, in milliseconds.
fn under_way(point: &Point, way: f64) -> (f64, f64) {
    let rate = point.several_a_second * 2.0 / point.nodes as f64;
    let active = (point.several_ms - 2.0 * way).max(0.0);
    (rate * active / 1e3, active)
}

/// The thesis's bound for the delay of a transition (section 6.6.1), in milliseconds.
fn delay(point: &Point, way: f64) -> f64 {
    let (concurrent, active) = under_way(point, way);
    (1.0 - (1.0 - point.x / 100.0).powf(concurrent)) * active
}

/// The thesis's share of time in locking mode (section 6.6.2), in percent.
fn locked(point: &Point, way: f64) -> f64 {
    let (concurrent, _) = under_way(point, way);
    100.0 * (1.0 - (1.0 - point.x / 100.0).powf(concurrent))
}

/// W_YTD, D_YTD and D_NEXT_O_ID in rows of their own.
const TPCC_COLUMNS: &[&str] = &["warehouses={nodes}", "customers=100", "orders=30"];
const TPCC: Figure = Figure {
    workload: "tpcc-procedures",
    parameters: &["warehouses={nodes}", "customers=100", "orders=30", "columns=rows"],
    chosen: "1 000 items and 100 customers a district; Sinfonia has one master, on a machine of \
             its own like the others.",
    machine: local,
    replicas: 1,
    lines: THREE,
    ..NOTHING
};
const TPCC_SCALE: Figure = Figure {
    axis: super::NODES,
    xs: &[1.0, 2.0, 4.0, 6.0, 8.0, 10.0],
    quick_xs: &[2.0, 10.0],
    clients_a_node: 16,
    ..TPCC
};

const OVER_REPOSITORIES: Figure = Figure {
    claims: &[
        claim(
            "over Sinfonia, 10 nodes",
            Measure::Speedup("granola", "sinfonia"),
            Some(3.0),
            Some(Target::Least(3.0)),
        ),
        claim("over locking", Measure::Speedup("granola", "granola-locking"), None, None),
    ],
    ..TPCC_SCALE
};

const WAYS_BACK: Figure = Figure {
    axis: Axis {
        name: "% independent",
        set: |x, setting| {
            setting.put("distributed", x + 0.05);
            setting.put("coordinated", 5.0 / (x + 0.05));
        },
        range: (0.0, 99.95),
        logarithmic: false,
    },
    xs: &[0.0, 20.0, 40.0, 60.0, 80.0, 99.95],
    quick_xs: &[20.0, 99.95],
    lines: &[
        line("undo immediate", "granola", |_| ()),
        line("undo on-demand", "granola-on-demand", |_| ()),
        line("stay coordinated", "granola-stay", |_| ()),
    ],
    clients_a_node: 32,
    seconds: (2.0, 0.5),
    chosen: "32 clients for each repository.",
    ..COUNTERS
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "granola-6.2",
        about: "Granola, figure 6.2: single-repository throughput over clients",
        claims: &[
            claim("most, local", Measure::Most("local"), Some(60_000.0), None),
            claim("most, wide", Measure::Most("wide"), Some(60_000.0), None),
        ],
        ..SINGLE
    },
    Figure {
        name: "granola-6.3",
        about: "Granola, figure 6.3: single-repository latency over clients",
        shows: Quantity::Latency,
        claims: &[claim(
            "ms, wide, 64 clients",
            Measure::At(Quantity::Latency, "wide", 64.0),
            Some(22.0),
            None,
        )],
        ..SINGLE
    },
    Figure {
        name: "granola-6.4",
        about: "Granola, figure 6.4: distributed throughput over clients, two repositories",
        claims: &[
            claim("most, local", Measure::Most("local"), Some(20_000.0), None),
            claim("most, wide", Measure::Most("wide"), Some(20_000.0), None),
        ],
        ..BASE
    },
    Figure {
        name: "granola-6.5",
        about: "Granola, figure 6.5: distributed latency over clients, two repositories",
        shows: Quantity::Latency,
        claims: &[claim(
            "ms, wide, 64 clients",
            Measure::At(Quantity::Latency, "wide", 64.0),
            Some(22.0),
            None,
        )],
        ..BASE
    },
    Figure {
        name: "granola-6.6",
        about: "Granola, figure 6.6: throughput over repositories",
        claims: &[
            claim("0 %, of linear", Measure::Scaling("0 %"), Some(1.0), Some(Target::Least(0.9))),
            claim("10 %, of linear", Measure::Scaling("10 %"), None, Some(Target::Least(0.7))),
        ],
        ..SCALE
    },
    Figure {
        name: "granola-6.7",
        about: "Granola, figure 6.7: throughput of each repository",
        shows: Quantity::ANode,
        claims: &[claim("0 %, of linear", Measure::Scaling("0 %"), Some(1.0), None)],
        ..SCALE
    },
    Figure {
        name: "granola-6.8",
        about: "Granola, figure 6.8: operations over the share of distributed transactions",
        axis: DISTRIBUTED,
        xs: &[0.0, 10.0, 25.0, 50.0, 75.0, 100.0],
        quick_xs: &[0.0, 50.0, 100.0],
        lines: &[
            line("local", "granola", |_| ()),
            line("local, no blocking", "granola-unordered", |_| ()),
            line("10 ms apart", "granola", |setting| {
                far(setting);
                setting.clients = Some(4_000);
            }),
        ],
        shows: Quantity::Operations,
        clients_a_node: 64,
        chosen: "64 clients for each repository, 2 000 where nodes are 10 ms apart.",
        claims: &[
            claim(
                "blocking keeps, at 50 %",
                Measure::Over(Quantity::Operations, "local", "local, no blocking", 50.0),
                Some(0.85),
                Some(Target::Least(0.8)),
            ),
            claim("kept at 100 %", Measure::Kept("local"), None, None),
        ],
        ..COUNTERS
    },
    Figure {
        name: "granola-6.9",
        about: "Granola, figure 6.9: throughput over the cost of locks",
        axis: Axis {
            name: "% of the work is locks",
            set: lock_cost,
            range: (0.0, 99.0),
            logarithmic: false,
        },
        xs: &[0.0, 10.0, 20.0, 35.0, 50.0],
        quick_xs: &[0.0, 35.0],
        lines: THREE,
        chosen: "80 µs of work for each part, about a New-Order's; no two transactions meet; \
                 Sinfonia has one master, on a machine of its own like the others.",
        claims: &[
            claim(
                "timestamps over locks, 35 %",
                Measure::Over(Quantity::Throughput, "granola", "granola-locking", 35.0),
                Some(1.375),
                Some(Target::Least(1.25)),
            ),
            claim(
                "timestamps over Sinfonia, 35 %",
                Measure::Over(Quantity::Throughput, "granola", "sinfonia", 35.0),
                Some(1.375),
                Some(Target::Least(1.25)),
            ),
        ],
        ..COUNTERS
    },
    Figure {
        name: "granola-6.10",
        about: "Granola, figure 6.10: throughput over the rate of conflicts",
        ..CONTENTION
    },
    Figure {
        name: "granola-6.10-parts",
        about: "The same, conflicts drawn for each part of a transaction",
        parameters: &["distributed=100"],
        ..CONTENTION
    },
    Figure {
        name: "granola-6.11",
        about: "Granola, figure 6.11: delay of entering locking mode, by load, model beside it",
        lines: &[
            line("10 clients", "granola", |setting| {
                far(setting);
                setting.clients = Some(10);
            }),
            line("100 clients", "granola", |setting| {
                far(setting);
                setting.clients = Some(100);
            }),
        ],
        models: &[
            Model { name: "model, 10", of: "10 clients", says: |point| delay(point, 10.0) },
            Model { name: "model, 100", of: "100 clients", says: |point| delay(point, 10.0) },
        ],
        claims: &[
            claim("over the bound, 10", Measure::OverModel("model, 10"), None, None),
            claim("over the bound, 100", Measure::OverModel("model, 100"), None, None),
        ],
        ..ENTER
    },
    Figure {
        name: "granola-6.12",
        about: "Granola, figure 6.12: delay of entering locking mode, by network, model beside it",
        lines: &[
            line("0.1 ms", "granola", |setting| setting.clients = Some(32)),
            line("10 ms", "granola", |setting| {
                far(setting);
                setting.clients = Some(32);
            }),
        ],
        models: &[
            Model { name: "model, 0.1 ms", of: "0.1 ms", says: |point| delay(point, 0.09) },
            Model { name: "model, 10 ms", of: "10 ms", says: |point| delay(point, 10.0) },
        ],
        claims: &[
            claim("over the bound, 0.1 ms", Measure::OverModel("model, 0.1 ms"), None, None),
            claim("over the bound, 10 ms", Measure::OverModel("model, 10 ms"), None, None),
        ],
        ..ENTER
    },
    Figure {
        name: "granola-6.13",
        about: "Granola, figure 6.13: time in locking mode, model beside it",
        axis: COORDINATED_OF_ALL,
        xs: &[0.01, 0.1, 1.0, 10.0, 50.0],
        quick_xs: &[0.1, 10.0],
        lines: &[
            line("4 clients", "granola", |setting| setting.clients = Some(4)),
            line("64 clients", "granola", |setting| setting.clients = Some(64)),
        ],
        models: &[
            Model { name: "model, 4", of: "4 clients", says: |point| locked(point, 0.09) },
            Model { name: "model, 64", of: "64 clients", says: |point| locked(point, 0.09) },
        ],
        shows: Quantity::Locked,
        seconds: (4.0, 1.0),
        chosen: "All transactions are distributed over two repositories.",
        claims: &[
            claim("over the model, 4", Measure::OverModel("model, 4"), Some(1.0), None),
            claim("over the model, 64", Measure::OverModel("model, 64"), Some(1.0), None),
        ],
        ..COUNTERS
    },
    Figure {
        name: "granola-6.14",
        about: "Granola, figure 6.14: transactions in locking mode over the share of coordinated",
        axis: Axis {
            name: "% coordinated",
            set: |x, setting| {
                setting.put("distributed", x);
                setting.put("coordinated", 100.0);
            },
            range: PERCENT,
            logarithmic: true,
        },
        xs: &[0.01, 0.1, 1.0, 10.0, 50.0],
        quick_xs: &[0.1, 1.0, 10.0],
        lines: &[
            line("10 clients", "granola", |setting| setting.clients = Some(10)),
            line("100 clients", "granola", |setting| setting.clients = Some(100)),
            line("1 000 clients", "granola", |setting| setting.clients = Some(1_000)),
        ],
        shows: Quantity::Locked,
        chosen: "Two repositories.",
        claims: &[claim(
            "% in locking mode at 1 %",
            Measure::At(Quantity::Locked, "100 clients", 1.0),
            Some(50.0),
            None,
        )],
        ..COUNTERS
    },
    Figure {
        name: "granola-6.15",
        about: "Granola, figure 6.15: TPC-C over repositories",
        ..OVER_REPOSITORIES
    },
    Figure {
        name: "granola-6.15-columns",
        about: "The same, W_YTD, D_YTD and D_NEXT_O_ID apart from their rows",
        parameters: TPCC_COLUMNS,
        ..OVER_REPOSITORIES
    },
    Figure {
        name: "granola-6.16",
        about: "Granola, figure 6.16: latency of TPC-C's distributed transactions",
        shows: Quantity::SeveralLatency,
        claims: &[claim(
            "of Sinfonia's, 10 nodes",
            Measure::Over(Quantity::SeveralLatency, "granola", "sinfonia", 10.0),
            Some(0.625),
            Some(Target::Most(0.6)),
        )],
        ..TPCC_SCALE
    },
    Figure {
        name: "granola-6.17",
        about: "Granola, figure 6.17: New-Orders over the share of distributed ones",
        axis: Axis {
            name: "% distributed",
            // Each of about ten lines comes from the other warehouse with this chance.
            set: |x, setting| {
                setting.put("remote-items", 100.0 * (1.0 - (1.0 - x / 100.0).powf(0.1)))
            },
            range: PERCENT,
            logarithmic: false,
        },
        nodes: 2,
        parameters: &[
            "warehouses={nodes}",
            "customers=100",
            "orders=30",
            "new-order=1",
            "columns=rows",
        ],
        xs: &[0.0, 10.0, 25.0, 50.0, 75.0, 100.0],
        quick_xs: &[0.0, 50.0, 100.0],
        clients_a_node: 16,
        claims: &[claim(
            "kept at 100 %",
            Measure::Kept("granola"),
            Some(0.5),
            Some(Target::Least(0.5)),
        )],
        ..TPCC
    },
    Figure {
        name: "granola-6.18",
        about: "Granola, figure 6.18: latency over throughput, TPC-C on six repositories",
        nodes: 6,
        axis: CLIENTS,
        xs: &[6.0, 12.0, 24.0, 48.0, 96.0, 192.0, 516.0, 960.0],
        quick_xs: &[12.0, 96.0, 960.0],
        shows: Quantity::SeveralLatency,
        against: Some(Quantity::Throughput),
        claims: &[
            claim(
                "kept at ten times the load",
                Measure::KeptOfMost("granola"),
                Some(1.0),
                Some(Target::Least(0.9)),
            ),
            claim("kept by locking", Measure::KeptOfMost("granola-locking"), Some(0.5), None),
            claim("kept by Sinfonia", Measure::KeptOfMost("sinfonia"), Some(0.5), None),
        ],
        ..TPCC
    },
    Figure {
        name: "granola-B.1",
        about: "Granola, figure B.1: transactions in locking mode, three ways back",
        shows: Quantity::Locked,
        claims: &[
            claim(
                "% in locking mode, undo, 99.95 %",
                Measure::At(Quantity::Locked, "undo immediate", 99.95),
                None,
                None,
            ),
            claim(
                "% in locking mode, stay, 99.95 %",
                Measure::At(Quantity::Locked, "stay coordinated", 99.95),
                None,
                None,
            ),
        ],
        ..WAYS_BACK
    },
    Figure {
        name: "granola-B.2",
        about: "Granola, figure B.2: throughput, three ways back",
        machine: || {
            let mut machine = local();
            // Locks cost half of what is done under them.
            machine.costs.validate = machine.costs.read;
            machine
        },
        claims: &[claim(
            "undo over stay, 99.95 %",
            Measure::Speedup("undo immediate", "stay coordinated"),
            None,
            Some(Target::Least(1.0)),
        )],
        ..WAYS_BACK
    },
];

/// The share of coordinated ones among transactions that are all distributed.
const COORDINATED_OF_ALL: Axis = Axis {
    name: "% coordinated",
    set: |x, setting| setting.put("coordinated", x),
    range: PERCENT,
    logarithmic: true,
};
