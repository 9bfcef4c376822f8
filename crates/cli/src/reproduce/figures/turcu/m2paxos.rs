//! Chapter 10: M²Paxos beside other broadcasts, with commands that nobody executes.

use muesli_workloads::machines::MachineModel;

use crate::bench::commands::NAME as COMMANDS;
use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, NOTHING, PlottedLine, Setting, claim, line, protocol,
};
use crate::reproduce::point::Quantity;

/// How many nodes there are.
const REPLICAS: Axis = Axis {
    name: "nodes",
    set: |x, setting| setting.nodes = x as usize,
    range: (1.0, 99.0),
    logarithmic: false,
};

/// How many cores each node has.
const CORES: Axis = Axis {
    name: "cores",
    set: |x, setting| setting.put("cores", x),
    range: (1.0, 1_024.0),
    logarithmic: true,
};

/// The share of commands on two objects.
const COMPLEX: Axis = Axis {
    name: "complex commands, %",
    set: |x, setting| setting.put("complex", x),
    range: (0.0, 100.0),
    logarithmic: false,
};

/// How many commands a node has in flight.
const IN_FLIGHT: Axis = Axis {
    name: "commands in flight a node",
    set: |x, setting| setting.put("limit", x),
    range: (1.0, 100_000.0),
    logarithmic: true,
};

/// Commands of objects of other nodes alone.
fn remote(setting: &mut Setting) {
    setting.put("locality", 0.0);
}

const M2PAXOS: PlottedLine = protocol("m2paxos");
const EPAXOS: PlottedLine = protocol("epaxos");
const POB: PlottedLine = protocol("pob-fast");
const GENERALIZED: PlottedLine = protocol("generalized");
const MULTIPAXOS: PlottedLine = protocol("multipaxos");
const LARGE: PlottedLine = protocol("m2paxos-large-quorums");
const M2PAXOS_REMOTE: PlottedLine = line("m2paxos, 0 % local", "m2paxos", remote);
const EPAXOS_REMOTE: PlottedLine = line("epaxos, 0 % local", "epaxos", remote);

/// Those that M²Paxos is set beside in the chapter, as far as they are here.
const OTHERS: &[&str] = &["epaxos", "multipaxos"];

const ALONE: Figure = Figure {
    workload: COMMANDS,
    parameters: &[
        "payload=16",
        "think-us=0",
        "limit=64",
        "objects=100",
        "locality=100",
        "cores=16",
    ],
    chosen: "100 objects a node, 64 commands in flight a node, 16 cores; each node has touched all \
             of its objects before. Multi-Paxos leads from the first node.",
    machine: MachineModel::m2paxos_node,
    clients_a_node: 64,
    axis: REPLICAS,
    xs: &[3.0, 5.0, 7.0, 11.0, 25.0, 49.0],
    quick_xs: &[3.0, 11.0],
    lines: &[M2PAXOS, EPAXOS, POB, GENERALIZED, MULTIPAXOS],
    shows: Quantity::Commands,
    seconds: (0.05, 0.02),
    warm_up: (0.03, 0.01),
    ..NOTHING
};

/// A workload whose latency is looked at as it grows, on so many nodes.
const GROWING: Figure = Figure {
    axis: IN_FLIGHT,
    xs: &[1.0, 4.0, 16.0, 64.0, 256.0],
    quick_xs: &[4.0, 64.0],
    lines: &[M2PAXOS, M2PAXOS_REMOTE, EPAXOS, EPAXOS_REMOTE, MULTIPAXOS],
    shows: Quantity::MedianLatency,
    against: Some(Quantity::Commands),
    claims: &[
        claim(
            "m2paxos without locality over with, most in flight",
            Measure::Speedup("m2paxos, 0 % local", "m2paxos"),
            Some(0.855),
            Some(ClaimTarget::Least(0.84)),
        ),
        claim(
            "epaxos without locality over with, most in flight",
            Measure::Speedup("epaxos, 0 % local", "epaxos"),
            Some(0.96),
            Some(ClaimTarget::Least(0.94)),
        ),
    ],
    ..ALONE
};

/// The figures of chapter 10.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-10.1",
        about: "M2Paxos, figure 10.1: commands a second of clients that think for 5 ms, over nodes",
        parameters: &[
            "payload=16",
            "think-us=5000",
            "limit=64",
            "objects=100",
            "locality=100",
            "cores=16",
        ],
        claims: &[
            claim(
                "m2paxos: a node at most nodes over at fewest",
                Measure::Scaling("m2paxos"),
                None,
                Some(ClaimTarget::Least(0.9)),
            ),
            claim(
                "m2paxos over the best of epaxos and multipaxos, most nodes",
                Measure::MostOverBest(Quantity::Commands, "m2paxos", OTHERS),
                None,
                None,
            ),
        ],
        ..ALONE
    },
    Figure {
        name: "turcu-10.2a",
        about: "M2Paxos, figure 10.2a: the most commands a second, over nodes",
        lines: &[M2PAXOS, EPAXOS, POB, MULTIPAXOS, LARGE],
        claims: &[
            claim(
                "m2paxos over the best of epaxos and multipaxos, least",
                Measure::LeastOverBest(Quantity::Commands, "m2paxos", OTHERS),
                Some(3.0),
                Some(ClaimTarget::Least(3.0)),
            ),
            claim(
                "the same, most",
                Measure::MostOverBest(Quantity::Commands, "m2paxos", OTHERS),
                Some(11.0),
                Some(ClaimTarget::Least(3.0)),
            ),
            claim(
                "m2paxos with larger quorums over m2paxos, most nodes",
                Measure::Speedup("m2paxos-large-quorums", "m2paxos"),
                Some(0.8),
                None,
            ),
        ],
        ..ALONE
    },
    Figure {
        name: "turcu-10.2a-batches",
        about: "M2Paxos, figure 10.2a: the same, where a node's commands are ordered as one",
        parameters: &[
            "payload=16",
            "think-us=0",
            "limit=256",
            "objects=100",
            "locality=100",
            "cores=16",
            "batch=1000",
        ],
        chosen: "100 objects a node, 256 commands in flight a node, one batch of them; 16 cores; \
                 each node has touched all of its objects before. Multi-Paxos leads from the first \
                 node.",
        lines: &[M2PAXOS, EPAXOS, POB, MULTIPAXOS],
        claims: &[
            claim(
                "m2paxos over the best of epaxos and multipaxos, least",
                Measure::LeastOverBest(Quantity::Commands, "m2paxos", OTHERS),
                None,
                None,
            ),
            claim(
                "the same, most",
                Measure::MostOverBest(Quantity::Commands, "m2paxos", OTHERS),
                None,
                None,
            ),
        ],
        ..ALONE
    },
    Figure {
        name: "turcu-10.2b",
        about: "M2Paxos, figure 10.2b: latency of few commands, each message alone, over nodes",
        parameters: &[
            "payload=16",
            "think-us=20000",
            "limit=64",
            "objects=100",
            "locality=100",
            "cores=16",
            "batching=false",
        ],
        chosen: "100 objects a node, each touched before; a client a node, thinking for 20 ms; 16 \
                 cores. Multi-Paxos leads from the first node.",
        clients_a_node: 1,
        lines: &[M2PAXOS, EPAXOS, POB, MULTIPAXOS, LARGE],
        shows: Quantity::MedianLatency,
        seconds: (1.0, 0.4),
        claims: &[
            claim(
                "latency of m2paxos over multipaxos, 3 nodes",
                Measure::Over(Quantity::MedianLatency, "m2paxos", "multipaxos", 3.0),
                Some(0.77),
                Some(ClaimTarget::Most(0.77)),
            ),
            claim(
                "the same, 11 nodes",
                Measure::Over(Quantity::MedianLatency, "m2paxos", "multipaxos", 11.0),
                None,
                None,
            ),
            claim(
                "least latency of m2paxos over epaxos",
                Measure::LeastOverBest(Quantity::MedianLatency, "m2paxos", &["epaxos"]),
                Some(0.59),
                Some(ClaimTarget::Most(0.59)),
            ),
            claim(
                "m2paxos over m2paxos with larger quorums, 11 nodes",
                Measure::Over(Quantity::MedianLatency, "m2paxos", "m2paxos-large-quorums", 11.0),
                Some(0.8),
                Some(ClaimTarget::Between(0.7, 0.9)),
            ),
        ],
        ..ALONE
    },
    Figure {
        name: "turcu-10.3",
        about: "M2Paxos, figure 10.3: the most commands a second on 11 nodes, over their cores",
        axis: CORES,
        nodes: 11,
        xs: &[4.0, 8.0, 16.0, 32.0],
        quick_xs: &[4.0, 16.0],
        claims: &[
            claim(
                "m2paxos: 16 cores over 4",
                Measure::Within(Quantity::Commands, "m2paxos", 16.0, 4.0),
                None,
                Some(ClaimTarget::Least(2.0)),
            ),
            claim(
                "epaxos: 16 cores over 4",
                Measure::Within(Quantity::Commands, "epaxos", 16.0, 4.0),
                None,
                None,
            ),
        ],
        ..ALONE
    },
    Figure {
        name: "turcu-10.4",
        about: "M2Paxos, figure 10.4: commands a second, 49 nodes, over the share of complex ones",
        axis: COMPLEX,
        parameters: &[
            "payload=16",
            "think-us=0",
            "limit=16",
            "locality=100",
            "cores=16",
            "retry-ms=10",
        ],
        chosen: "16 commands in flight a node, 16 cores; what is not answered in 10 ms is asked \
                 again, and M2Paxos backs off by a quarter of that, doubled each time; each node \
                 has touched all of its objects before. Multi-Paxos leads from the first node.",
        nodes: 49,
        quick_nodes: 11,
        xs: &[0.0, 10.0, 25.0, 50.0, 75.0, 100.0],
        quick_xs: &[0.0, 50.0],
        ..COMPLEX_COMMANDS
    },
    Figure {
        name: "turcu-10.5-five",
        about: "M2Paxos, figure 10.5a: latency over commands a second, 5 nodes, all or none local",
        nodes: 5,
        ..GROWING
    },
    Figure {
        name: "turcu-10.5-eleven",
        about: "M2Paxos, figure 10.5b: latency over commands a second, 11 nodes, all or none local",
        nodes: 11,
        ..GROWING
    },
    Figure {
        name: "turcu-10.5-forty-nine",
        about: "M2Paxos, figure 10.5c: latency over commands a second, 49 nodes, all or none local",
        nodes: 49,
        quick_nodes: 25,
        ..GROWING
    },
];

/// M²Paxos with few objects a node and with many, beside those for which that is no matter.
const COMPLEX_COMMANDS: Figure = Figure {
    lines: &[
        line("m2paxos (10)", "m2paxos", |setting| setting.put("objects", 10.0)),
        line("m2paxos (100)", "m2paxos", |setting| setting.put("objects", 100.0)),
        line("m2paxos (1000)", "m2paxos", |setting| setting.put("objects", 1_000.0)),
        EPAXOS,
        MULTIPAXOS,
    ],
    claims: &[claim(
        "m2paxos, 1000 objects a node: half of commands complex over none",
        Measure::Within(Quantity::Commands, "m2paxos (1000)", 50.0, 0.0),
        None,
        Some(ClaimTarget::Least(0.9)),
    )],
    ..ALONE
};
