//! What the dissertation leaves as future work (chapter 12): the nesting model is chosen while the
//! program runs.

use super::base::{CALLS, LENGTH, READ_ONLY, TURCU, all_three, be_patient};
use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, PaperClaim, PlottedLine, Setting, claim, line,
};
use crate::reproduce::point::Quantity;

fn auto(setting: &mut Setting) {
    setting.parameters.push("nesting=auto".to_owned());
    be_patient(setting);
}

/// Each model, and the choice.
const fn all_models(protocol: &'static str) -> [PlottedLine; 4] {
    let [flat, closed, open] = all_three(protocol);
    [flat, closed, open, line("auto", protocol, auto)]
}

const LEAST: PaperClaim = claim(
    "the choice over the best model, least",
    Measure::LeastOverBest(Quantity::Throughput, "auto", &["flat", "closed", "open"]),
    None,
    Some(ClaimTarget::Least(0.95)),
);
const OVER_FLAT: PaperClaim = claim(
    "the choice over flat, least",
    Measure::LeastOverBest(Quantity::Throughput, "auto", &["flat"]),
    None,
    Some(ClaimTarget::Least(0.95)),
);

const CHOSEN: &str = "Not in the dissertation. Four clients a node; all nodes choose together; \
                      transactions take 28 ms besides.";

/// What all of them have in common.
const AUTO: Figure = Figure {
    chosen: CHOSEN,
    clients_a_node: 4,
    xs: &[4.0, 8.0, 16.0],
    quick_xs: &[4.0],
    seconds: (60.0, 20.0),
    warm_up: (120.0, 100.0),
    claims: &[LEAST, OVER_FLAT],
    ..TURCU
};

/// Nearly all only read in every other minute.
const PHASES: Figure = Figure {
    about: "the nesting model is chosen: a hash table, 20 and 95 % read-only, TFA",
    chosen: "Not in the dissertation. Four clients a node; all nodes choose together, and \
             comparisons count; a phase is a minute; transactions take 28 ms besides.",
    name: "nesting-auto-phases",
    workload: "hashtable",
    parameters: &[
        "objects=1000",
        "initial=500",
        "buckets=11",
        "calls=8",
        "reads=20",
        "rule=random",
        "walks=0",
        "length=28",
        "phase=60000",
        "phase-reads=95",
    ],
    lines: &all_models("tfa"),
    seconds: (480.0, 240.0),
    warm_up: (0.0, 0.0),
    claims: &[PaperClaim { target: Some(ClaimTarget::Least(1.0)), ..LEAST }, OVER_FLAT],
    ..AUTO
};
const PHASES_SCORE: Figure = Figure {
    about: "the nesting model is chosen: a hash table, 20 and 95 % read-only, SCORe",
    name: "nesting-auto-phases-score",
    lines: &all_models("score"),
    ..PHASES
};

/// The parameters of a structure that transactions add to and remove from at random.
macro_rules! set {
    ($($own:literal),*) => {
        &["objects=100", "initial=50", "calls=3", "rule=random", "walks=0", "length=28", $($own),*]
    };
}

/// The same figure under the protocol that moves objects and under one that does not.
macro_rules! both {
    (
        $tfa:literal, $score:literal, $about:literal, $workload:literal,
        $parameters:expr
    ) => {
        [
            Figure {
                name: $tfa,
                about: concat!("the nesting model is chosen: ", $about, ", TFA"),
                workload: $workload,
                parameters: $parameters,
                lines: &all_models("tfa"),
                ..AUTO
            },
            Figure {
                name: $score,
                about: concat!("the nesting model is chosen: ", $about, ", SCORe"),
                workload: $workload,
                parameters: $parameters,
                lines: &all_models("score"),
                ..AUTO
            },
        ]
    };
}

/// A panel along an axis, under both.
macro_rules! panels {
    (
        $tfa:literal, $score:literal, $about:literal, $axis:expr, $xs:expr,
        &[$($own:literal),*]
    ) => {
        [
            Figure {
                name: $tfa,
                about: concat!("the nesting model is chosen: ", $about, ", TFA"),
                parameters: &["buckets=11", "rule=random", "walks=0", $($own),*],
                axis: $axis,
                xs: $xs,
                quick_xs: $xs,
                lines: &all_models("tfa"),
                ..PANEL
            },
            Figure {
                name: $score,
                about: concat!("the nesting model is chosen: ", $about, ", SCORe"),
                parameters: &["buckets=11", "rule=random", "walks=0", $($own),*],
                axis: $axis,
                xs: $xs,
                quick_xs: $xs,
                lines: &all_models("score"),
                ..PANEL
            },
        ]
    };
}

const BANK: [Figure; 2] = both!(
    "nesting-auto-bank",
    "nesting-auto-bank-score",
    "bank, two transfers a transaction",
    "bank",
    &["objects=64", "calls=2", "apart=true", "length=28"]
);
const LOAN: [Figure; 2] = both!(
    "nesting-auto-loan",
    "nesting-auto-loan-score",
    "loan",
    "loan",
    &["objects=64", "length=28"]
);
/// Under TFA four nodes commit twenty a second: the first comparison takes some five minutes.
const LIST: [Figure; 2] = {
    let [tfa, score] = both!(
        "nesting-auto-list",
        "nesting-auto-list-score",
        "a linked list",
        "list",
        set!("reads=50")
    );
    [Figure { warm_up: (450.0, 400.0), ..tfa }, score]
};
const SKIP_LIST: [Figure; 2] = both!(
    "nesting-auto-skiplist",
    "nesting-auto-skiplist-score",
    "a skip list",
    "skiplist",
    set!("reads=50")
);
const TABLE: [Figure; 2] = both!(
    "nesting-auto-hashtable",
    "nesting-auto-hashtable-score",
    "a hash table of 11 buckets",
    "hashtable",
    set!("reads=50", "buckets=11")
);
const TREE: [Figure; 2] = both!(
    "nesting-auto-tree",
    "nesting-auto-tree-score",
    "a search tree",
    "tree",
    set!("reads=50")
);
const COUNTERS: [Figure; 2] = both!(
    "nesting-auto-counters",
    "nesting-auto-counters-score",
    "counters, four hot ones",
    "counters",
    &["length=28"]
);

/// The keys to choose from, half of which are there at first.
const KEYS: Axis = Axis {
    name: "keys",
    set: |x, setting| {
        setting.put("objects", x);
        setting.put("initial", (x / 2.0).floor());
    },
    range: (2.0, 100_000.0),
    logarithmic: true,
};

/// A hash table on four nodes, by what chapters 4 and 5 vary besides nodes. A node commits eleven
/// to twenty transactions a second there: in a shorter warm-up no first comparison ends.
const PANEL: Figure = Figure {
    chosen: "Not in the dissertation. Four nodes with four clients each, which choose together; \
             transactions take 28 ms besides, where that is no axis.",
    workload: "hashtable",
    nodes: 4,
    ..AUTO
};
const BY_CALLS: [Figure; 2] = panels!(
    "nesting-auto-calls",
    "nesting-auto-calls-score",
    "a hash table by calls",
    CALLS,
    &[1.0, 2.0, 4.0, 8.0],
    &["objects=100", "initial=50", "reads=50", "length=28"]
);
const BY_READS: [Figure; 2] = panels!(
    "nesting-auto-reads",
    "nesting-auto-reads-score",
    "a hash table by readers",
    READ_ONLY,
    &[20.0, 50.0, 80.0],
    &["objects=100", "initial=50", "calls=3", "length=28"]
);
const BY_LENGTH: [Figure; 2] = panels!(
    "nesting-auto-length",
    "nesting-auto-length-score",
    "a hash table, longer and longer",
    LENGTH,
    &[10.0, 28.0, 100.0],
    &["objects=100", "initial=50", "calls=3", "reads=50"]
);
const BY_KEYS: [Figure; 2] = panels!(
    "nesting-auto-keys",
    "nesting-auto-keys-score",
    "a hash table by keys",
    KEYS,
    &[30.0, 100.0, 1000.0],
    &["calls=4", "reads=20", "length=28"]
);

/// All of them.
pub const FIGURES: &[&[Figure]] = &[
    &BANK,
    &LOAN,
    &LIST,
    &SKIP_LIST,
    &TABLE,
    &TREE,
    &COUNTERS,
    &[PHASES, PHASES_SCORE],
    &BY_CALLS,
    &BY_READS,
    &BY_LENGTH,
    &BY_KEYS,
];
