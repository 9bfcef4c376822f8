//! Chapter 9: certification on delivery at three to seven sites of a cloud (Alvin), beside the same
//! over EPaxos, Generalized Paxos and Multi-Paxos with its leader near most sites or far from all.

use muesli_core::CommitBatch;
use muesli_workloads::geography::Geography;
use muesli_workloads::machines::MachineModel;

use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, PaperClaim, PlottedLine, Setting, claim, line, protocol,
};
use crate::reproduce::point::Quantity;

use super::base::TURCU;

fn sites(setting: &mut Setting, sites: f64, nodes_each: usize) {
    let sites = (sites as usize).max(1);
    setting.machine.geography = Geography::seven().of_sites(sites.min(7)).ok();
    setting.nodes = sites * nodes_each;
}

/// Places the leader in the middle of the sites, or far from it.
fn place_leader(setting: &mut Setting, far: bool) {
    let sites = setting.machine.geography.take();
    setting.machine.geography = sites.map(|sites| sites.led_from_the_middle(far));
}

/// How many sites there are, with a node each.
const SITES: Axis = Axis {
    name: "sites",
    set: |x, setting| sites(setting, x, 1),
    range: (1.0, 7.0),
    logarithmic: false,
};

/// The same, where sites order several commits as one.
const SITES_WITH_BATCHES: Axis = Axis {
    set: |x, setting| {
        sites(setting, x, 1);
        let commits = CommitBatch::new(COMMITS_AT_ONCE).expect("so many can be");
        setting.batching = setting.batching.with_commits(commits);
    },
    ..SITES
};

/// So many commits of a site are ordered as one at most.
const COMMITS_AT_ONCE: usize = 100;

/// The same with three nodes each.
const SITES_OF_THREE: Axis =
    Axis { name: "sites of three nodes", set: |x, setting| sites(setting, x, 3), ..SITES };

/// How many clients there are at each of five sites.
const CLIENTS_AT_FIVE: Axis = Axis {
    name: "clients a site",
    set: |x, setting| {
        sites(setting, 5.0, 1);
        setting.clients = Some(x as u32 * 5);
    },
    range: (1.0, 1_000.0),
    logarithmic: false,
};

/// The same at each of seven.
const CLIENTS_AT_SEVEN: Axis = Axis {
    set: |x, setting| {
        sites(setting, 7.0, 1);
        setting.clients = Some(x as u32 * 7);
    },
    ..CLIENTS_AT_FIVE
};

/// The share of transactions that only read, at three sites.
const READING: Axis = Axis {
    name: "read-only transactions, %",
    set: |x, setting| {
        sites(setting, 3.0, 1);
        setting.put("order-status", 100.0 * x);
        setting.put("new-order", 51.0 * (100.0 - x));
        setting.put("payment", 49.0 * (100.0 - x));
    },
    range: (0.0, 100.0),
    logarithmic: false,
};

const ALVIN: PlottedLine = line("alvin", "alvin", |_| ());
const ALVIN_FAST: PlottedLine = line("alvin-fast", "alvin-fast", |_| ());
const EPAXOS: PlottedLine = line("epaxos", "certified-epaxos", |_| ());
const GENERALIZED: PlottedLine = line("generalized", "certified-generalized", |_| ());
/// Multi-Paxos with its leader where the round trips to all others are the least (Paxos-HI).
const PAXOS_HI: PlottedLine =
    line("paxos-hi", "certified-multipaxos", |setting| place_leader(setting, false));
/// The same where they are the most (Paxos-LO).
const PAXOS_LO: PlottedLine =
    line("paxos-lo", "certified-multipaxos", |setting| place_leader(setting, true));
const M2PAXOS: PlottedLine = line("m2paxos", "certified-m2paxos", |_| ());

/// What Alvin has over EPaxos at its best point.
const OVER_EPAXOS: PaperClaim = claim(
    "best of alvin, over epaxos",
    Measure::MostOverBest(Quantity::Throughput, "alvin-fast", &["epaxos"]),
    Some(1.26),
    Some(ClaimTarget::Least(1.26)),
);

const TPCC: Figure = Figure {
    workload: "tpcc",
    parameters: &["warehouses=120", "keys=100", "new-order=51", "payment=49"],
    chosen: "120 warehouses, 100 items, New-Order and Payment in the standard's proportion, 40 \
             clients a node (none is printed). Sites in the order of the geography: Virginia, \
             Ireland, Tokyo, California, Singapore, São Paulo, Seoul; Multi-Paxos leads from where \
             round trips to all others are the least (HI) or the most (LO), Generalized Paxos from \
             the first. Nothing is batched.",
    machine: MachineModel::alvin_site,
    clients_a_node: 40,
    axis: SITES,
    xs: &[3.0, 5.0, 7.0],
    quick_xs: &[3.0, 7.0],
    lines: &[ALVIN, ALVIN_FAST, EPAXOS, GENERALIZED, PAXOS_HI, PAXOS_LO, M2PAXOS],
    seconds: (10.0, 4.0),
    ..TURCU
};

/// The figures of chapter 9.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-9.1a",
        about: "Alvin, figure 9.1a: TPC-C that mostly writes, over sites",
        claims: &[OVER_EPAXOS],
        ..TPCC
    },
    Figure {
        name: "turcu-9.1a-three",
        about: "Alvin, figure 9.1a: the same with three nodes a site",
        axis: SITES_OF_THREE,
        clients_a_node: 14,
        claims: &[OVER_EPAXOS],
        ..TPCC
    },
    Figure {
        name: "turcu-9.1a-batches",
        about: "Alvin, figure 9.1a: the same, where sites order several commits as one",
        axis: SITES_WITH_BATCHES,
        clients_a_node: 160,
        chosen: "As turcu-9.1a, with 160 clients a node; commits of a site that come while four \
                 commands of it are under way are ordered as one, 100 at most (the paper's batches \
                 leave after 20 to 50 ms).",
        claims: &[OVER_EPAXOS],
        ..TPCC
    },
    Figure {
        name: "turcu-m2paxos-geo",
        about: "Beyond chapter 10: M2Paxos under certification, TPC-C at three to seven sites",
        quick_xs: &[3.0, 5.0, 7.0],
        lines: &[ALVIN_FAST, EPAXOS, M2PAXOS],
        claims: &[claim(
            "best of m2paxos, over alvin and epaxos",
            Measure::MostOverBest(Quantity::Throughput, "m2paxos", &["alvin-fast", "epaxos"]),
            None,
            Some(ClaimTarget::Least(1.0)),
        )],
        ..TPCC
    },
    Figure {
        name: "turcu-9.1b",
        about: "Alvin, figure 9.1b: TPC-C at three sites, over the share that only reads",
        axis: READING,
        xs: &[50.0, 70.0, 90.0],
        quick_xs: &[50.0, 90.0],
        lines: &[ALVIN_FAST, protocol("alvin-eus"), EPAXOS, PAXOS_HI, PAXOS_LO],
        claims: &[claim(
            "best of alvin-eus, over alvin-fast and epaxos",
            Measure::MostOverBest(Quantity::Throughput, "alvin-eus", &["alvin-fast", "epaxos"]),
            Some(4.8),
            Some(ClaimTarget::Least(4.8)),
        )],
        ..TPCC
    },
    Figure {
        name: "turcu-9.2a",
        about: "Alvin, figure 9.2a: latency of TPC-C at five sites, as clients grow",
        axis: CLIENTS_AT_FIVE,
        xs: &[15.0, 45.0, 85.0, 125.0],
        quick_xs: &[15.0, 85.0],
        lines: &[ALVIN_FAST, EPAXOS, GENERALIZED],
        shows: Quantity::Latency,
        claims: &[
            claim(
                "latency of alvin over epaxos, 85 clients",
                Measure::Over(Quantity::Latency, "alvin-fast", "epaxos", 85.0),
                None,
                Some(ClaimTarget::Most(1.0)),
            ),
            claim("clients, alvin saturates", Measure::Saturates("alvin-fast"), Some(125.0), None),
            claim("clients, epaxos saturates", Measure::Saturates("epaxos"), Some(85.0), None),
        ],
        ..TPCC
    },
    Figure {
        name: "turcu-9.2b",
        about: "Alvin, figure 9.2b: latency of TPC-C at seven sites, fast decisions on and off",
        axis: CLIENTS_AT_SEVEN,
        xs: &[15.0, 45.0, 85.0, 125.0],
        quick_xs: &[15.0, 85.0],
        parameters: &["warehouses=2", "keys=1000", "new-order=51", "payment=49"],
        lines: &[ALVIN, ALVIN_FAST],
        shows: Quantity::Latency,
        claims: &[claim(
            "latency without fast decisions over that with, 85 clients",
            Measure::Over(Quantity::Latency, "alvin", "alvin-fast", 85.0),
            None,
            Some(ClaimTarget::Most(1.0)),
        )],
        ..TPCC
    },
    Figure {
        name: "turcu-9.3",
        about: "Alvin, figure 9.3: the bank, over sites",
        workload: "bank",
        parameters: &["objects=600", "totals=0", "reads=0"],
        lines: &[ALVIN_FAST, EPAXOS, GENERALIZED],
        claims: &[
            claim(
                "alvin over epaxos, least",
                Measure::LeastOverBest(Quantity::Throughput, "alvin-fast", &["epaxos"]),
                Some(1.0),
                Some(ClaimTarget::Least(0.9)),
            ),
            claim("aborts of alvin, %", Measure::Aborts("alvin-fast"), Some(15.0), None),
        ],
        ..TPCC
    },
];
