//! GMU's figures (Peluso and others, section VI): beside repeatable read, and a global clock.

use muesli_workloads::machines::MachineModel;

use crate::reproduce::figure::{
    ClaimTarget, Figure, Measure, NOTHING, PaperClaim, PlottedLine, Printed, PrintedAs, claim,
    protocol,
};

/// Its TPC-C.
const TPCC: &[&str] =
    &["mix=gmu", "warehouses={clients}", "keys=100", "home=client", "item-copies=true"];
const CHOSEN: &str =
    "A warehouse for each client; items, which nobody writes, have a copy with each.";

/// What they compare.
const THREE: &[PlottedLine] =
    &[protocol("repeatable-read"), protocol("gmu"), protocol("non-genuine-multiversioning")];
const GMU_SCALES: PaperClaim =
    claim("gmu, of linear", Measure::Scaling("gmu"), Some(1.0), Some(ClaimTarget::Least(0.9)));
/// The global clock is what all nodes wait for.
const NGM_SCALES_LESS: PaperClaim = claim(
    "ngm, of linear",
    Measure::Scaling("non-genuine-multiversioning"),
    None,
    Some(ClaimTarget::Most(0.5)),
);
/// A line that the paper prints as a share of repeatable read's.
const fn beside_rr(
    name: &'static str,
    source: &'static str,
    xs: &'static [f64],
    share: fn(f64) -> f64,
) -> Printed {
    Printed { name, source, xs, predicts: PrintedAs::Share("repeatable-read", share) }
}

/// TPC-C, nine tenths of it reading.
const READING: Figure = Figure {
    workload: "tpcc",
    parameters: TPCC,
    chosen: CHOSEN,
    updates: 0.1,
    seconds: (2.0, 0.5),
    ..NOTHING
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "gmu-fig1",
        about: "GMU, figure 1: YCSB A beside repeatable read",
        printed: &[beside_rr(
            "paper: gmu",
            "GMU, section VI: around 8 % below RR, both linear to 20 nodes",
            &[4.0, 8.0, 12.0, 16.0, 20.0],
            |_| 0.92,
        )],
        workload: "ycsb",
        parameters: &["workload=a", "keys=100000", "distribution=uniform"],
        chosen: "100 000 records of 1 kB, each as likely as any, with which RR grows linearly as \
                 in the paper; the paper's 20 nodes, and 40.",
        machine: MachineModel::cloud_tm,
        clients_a_node: 4,
        xs: &[4.0, 8.0, 12.0, 16.0, 20.0, 40.0],
        quick_xs: &[4.0, 20.0, 40.0],
        lines: THREE,
        updates: 0.5,
        seconds: (2.0, 0.5),
        claims: &[
            claim(
                "throughput lost, %",
                Measure::Loss("gmu", "repeatable-read"),
                Some(8.0),
                Some(ClaimTarget::Most(8.0)),
            ),
            GMU_SCALES,
            NGM_SCALES_LESS,
        ],
        ..NOTHING
    },
    Figure {
        name: "gmu-fig2",
        about: "GMU, figure 2: TPC-C, nine tenths of it reading, on FutureGrid",
        printed: &[beside_rr(
            "paper: gmu, most",
            "GMU, section VI: up to 10 % above RR",
            &[4.0, 10.0, 20.0, 40.0],
            |_| 1.1,
        )],
        machine: MachineModel::future_grid,
        xs: &[4.0, 10.0, 20.0, 40.0],
        quick_xs: &[4.0, 40.0],
        lines: &[protocol("repeatable-read"), protocol("gmu")],
        claims: &[
            claim(
                "throughput lost, %",
                Measure::Loss("gmu", "repeatable-read"),
                Some(-10.0),
                Some(ClaimTarget::Most(8.0)),
            ),
            GMU_SCALES,
        ],
        ..READING
    },
    Figure {
        name: "gmu-fig3",
        about: "GMU, figure 3: the same on Cloud-TM, four clients a node, beside NGM",
        printed: &[beside_rr(
            "paper: gmu",
            "GMU, section VI: 10 % below RR at 4 nodes, 20 % at 20",
            &[4.0, 20.0],
            |nodes| if nodes < 20.0 { 0.9 } else { 0.8 },
        )],
        machine: MachineModel::cloud_tm,
        clients_a_node: 4,
        xs: &[4.0, 8.0, 12.0, 16.0, 20.0],
        quick_xs: &[4.0, 20.0],
        lines: THREE,
        claims: &[
            claim("throughput lost, %", Measure::Loss("gmu", "repeatable-read"), Some(15.0), None),
            claim("updates aborted, gmu", Measure::Aborts("gmu"), Some(15.0), None),
            claim("updates aborted, rr", Measure::Aborts("repeatable-read"), Some(8.0), None),
            NGM_SCALES_LESS,
        ],
        ..READING
    },
];
