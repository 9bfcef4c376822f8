//! What the dissertation leaves as future work (chapter 12): the nesting model is chosen while the
//! program runs.

use super::base::{TURCU, be_patient, closed, flat, open};
use crate::reproduce::figure::{
    ClaimTarget, Figure, Measure, PaperClaim, PlottedLine, Setting, claim, line,
};
use crate::reproduce::point::Quantity;

fn auto(setting: &mut Setting) {
    setting.parameters.push("nesting=auto".to_owned());
}

fn auto_with_open(setting: &mut Setting) {
    auto(setting);
    be_patient(setting);
}

/// Each model, and the choice.
const fn without_open(protocol: &'static str) -> [PlottedLine; 3] {
    let (closed, auto) = (line("closed", protocol, closed), line("auto", protocol, auto));
    [line("flat", protocol, flat), closed, auto]
}

/// The same, and open children.
const fn with_open(protocol: &'static str) -> [PlottedLine; 4] {
    let [flat, closed, _] = without_open(protocol);
    let auto = line("auto", protocol, auto_with_open);
    [flat, closed, line("open", protocol, open), auto]
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

const CHOSEN: &str = "Not in the dissertation. Four clients a node; each node chooses by itself, \
                      and its comparisons count; transactions take 28 ms besides.";

/// What all of them have in common.
const AUTO: Figure = Figure {
    chosen: CHOSEN,
    clients_a_node: 4,
    xs: &[4.0, 8.0, 16.0],
    quick_xs: &[4.0],
    seconds: (60.0, 20.0),
    claims: &[LEAST, OVER_FLAT],
    ..TURCU
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
        $tfa:literal, $score:literal, $about:literal, $lines:ident, $workload:literal,
        $parameters:expr
    ) => {
        [
            Figure {
                name: $tfa,
                about: concat!("the nesting model is chosen: ", $about, ", TFA"),
                workload: $workload,
                parameters: $parameters,
                lines: &$lines("tfa"),
                ..AUTO
            },
            Figure {
                name: $score,
                about: concat!("the nesting model is chosen: ", $about, ", SCORe"),
                workload: $workload,
                parameters: $parameters,
                lines: &$lines("score"),
                ..AUTO
            },
        ]
    };
}

const BANK: [Figure; 2] = both!(
    "nesting-auto-bank",
    "nesting-auto-bank-score",
    "bank, two transfers a transaction",
    without_open,
    "bank",
    &["objects=64", "calls=2", "apart=true", "length=28"]
);
const LOAN: [Figure; 2] = both!(
    "nesting-auto-loan",
    "nesting-auto-loan-score",
    "loan",
    without_open,
    "loan",
    &["objects=64", "length=28"]
);
const LIST: [Figure; 2] = both!(
    "nesting-auto-list",
    "nesting-auto-list-score",
    "a linked list",
    with_open,
    "list",
    set!("reads=50")
);
const SKIP_LIST: [Figure; 2] = both!(
    "nesting-auto-skiplist",
    "nesting-auto-skiplist-score",
    "a skip list",
    with_open,
    "skiplist",
    set!("reads=50")
);
const TABLE: [Figure; 2] = both!(
    "nesting-auto-hashtable",
    "nesting-auto-hashtable-score",
    "a hash table of 11 buckets",
    with_open,
    "hashtable",
    set!("reads=50", "buckets=11")
);
const TREE: [Figure; 2] = both!(
    "nesting-auto-tree",
    "nesting-auto-tree-score",
    "a search tree",
    with_open,
    "tree",
    set!("reads=50")
);
const COUNTERS: [Figure; 2] = both!(
    "nesting-auto-counters",
    "nesting-auto-counters-score",
    "counters, four hot ones",
    with_open,
    "counters",
    &["length=28"]
);

/// All of them.
pub const FIGURES: &[&[Figure]] = &[&BANK, &LOAN, &LIST, &SKIP_LIST, &TABLE, &TREE, &COUNTERS];
