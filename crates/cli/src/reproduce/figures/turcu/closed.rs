//! Chapter 4: closed nesting (N-TFA) beside flat transactions.
//!
//! Transactions take as long besides their accesses as in the figures of [chapter 5](super::open),
//! where that is no axis.

use super::base::{
    CALLS, CLIENTS_A_NODE, CLOSED_LOSES_IN_BANK, CLOSED_LOSES_ON_AVERAGE, LENGTH, READ_ONLY, TURCU,
    best_of_closed, closed_in, closed_loses, flat_and_closed, worst_of_closed,
};
use crate::reproduce::figure::{
    CASES, ClaimTarget, Figure, PaperClaim, PlottedLine, SummaryMeasure, SummedSetting, case,
};
use crate::reproduce::point::Quantity;

const TWO: &[PlottedLine] = &flat_and_closed("tfa");
const SHARES: &[f64] = &[20.0, 40.0, 60.0, 80.0];
const SHARES_QUICK: &[f64] = &[20.0, 80.0];
const CHOSEN: &str = "12 nodes with four clients each; objects are few, as there; transactions \
                      take 28 ms besides, as in chapter 5.";

/// What most of them have in common.
pub(super) const CLOSED: Figure = Figure {
    chosen: CHOSEN,
    clients_a_node: 4,
    axis: READ_ONLY,
    xs: SHARES,
    quick_xs: SHARES_QUICK,
    lines: TWO,
    claims: &[closed_loses(None), best_of_closed(None, 1.0)],
    ..TURCU
};

/// The same by how long the calls of a transaction take besides their accesses.
const BY_LENGTH: Figure = Figure {
    chosen: "12 nodes with four clients each; objects are few, as there; lengths are not printed.",
    axis: LENGTH,
    xs: &[1.0, 10.0, 50.0, 100.0],
    quick_xs: &[10.0, 100.0],
    seconds: (20.0, 5.0),
    ..CLOSED
};

/// A hash table, by the calls of a transaction.
const BY_CALLS: Figure = Figure {
    workload: "hashtable",
    axis: CALLS,
    xs: &[1.0, 2.0, 3.0, 5.0, 10.0],
    quick_xs: &[1.0, 3.0, 10.0],
    ..CLOSED
};

/// The parameters of a structure, half of whose keys are there, that transactions add to and
/// remove from at random.
macro_rules! set {
    ($objects:literal, $initial:literal, $($own:literal),*) => {
        &[$objects, $initial, "rule=random", "walks=0", $($own),*]
    };
}

const BANK: Figure = Figure {
    name: "turcu-4.3",
    about: "N-TFA, figure 4.3: bank, two transfers a transaction",
    workload: "bank",
    parameters: &["objects=10", "calls=2", "apart=true", "length=28"],
    claims: &[closed_loses(Some(-15.3)), best_of_closed(None, 1.0)],
    ..CLOSED
};
const BANK_BY_LENGTH: Figure = Figure {
    name: "turcu-4.3-length",
    about: "N-TFA, figure 4.3: the same, longer and longer",
    workload: "bank",
    parameters: &["objects=10", "calls=2", "apart=true", "reads=50"],
    ..BY_LENGTH
};
const LOAN: Figure = Figure {
    name: "turcu-4.4",
    about: "N-TFA, figure 4.4: loan",
    workload: "loan",
    parameters: &["objects=64", "length=28"],
    ..CLOSED
};
const LOAN_BY_LENGTH: Figure = Figure {
    name: "turcu-4.4-length",
    about: "N-TFA, figure 4.4: the same, longer and longer",
    workload: "loan",
    parameters: &["objects=64", "reads=50"],
    ..BY_LENGTH
};
const LIST: Figure = Figure {
    name: "turcu-4.5",
    about: "N-TFA, figure 4.5: a linked list, two calls",
    workload: "list",
    parameters: set!("objects=48", "initial=24", "calls=2", "length=28"),
    ..CLOSED
};
const LIST_BY_LENGTH: Figure = Figure {
    name: "turcu-4.5-length",
    about: "N-TFA, figure 4.5: the same, longer and longer",
    workload: "list",
    parameters: set!("objects=48", "initial=24", "calls=2", "reads=50"),
    ..BY_LENGTH
};
const TABLE: Figure = Figure {
    name: "turcu-4.6",
    about: "N-TFA, figure 4.6: a hash table of 7 buckets, by calls",
    parameters: set!("objects=100", "initial=50", "buckets=7", "reads=50", "length=28"),
    ..BY_CALLS
};
const TABLE_BY_LENGTH: Figure = Figure {
    name: "turcu-4.6-length",
    about: "N-TFA, figure 4.6: the same with three calls, longer and longer",
    workload: "hashtable",
    parameters: set!("objects=100", "initial=50", "buckets=7", "calls=3", "reads=50"),
    ..BY_LENGTH
};
const TABLE_OF_ELEVEN: Figure = Figure {
    name: "turcu-4.6-eleven",
    about: "N-TFA, figure 4.6: the same with 11 buckets, by calls",
    parameters: set!("objects=100", "initial=50", "buckets=11", "reads=50", "length=28"),
    ..BY_CALLS
};
const TABLE_BY_SHARES: Figure = Figure {
    name: "turcu-4.7",
    about: "N-TFA, figure 4.7: a hash table of 7 buckets, three calls",
    workload: "hashtable",
    parameters: set!("objects=100", "initial=50", "buckets=7", "calls=3", "length=28"),
    ..CLOSED
};
const TABLE_BY_SHARES_LONG: Figure = Figure {
    name: "turcu-4.7-long",
    about: "N-TFA, figure 4.7: the same, longer transactions",
    parameters: set!("objects=100", "initial=50", "buckets=7", "calls=3", "length=100"),
    seconds: (20.0, 5.0),
    ..TABLE_BY_SHARES
};
const TABLE_BY_SHARES_OF_FIVE: Figure = Figure {
    name: "turcu-4.7-five",
    about: "N-TFA, figure 4.7: the same, five calls",
    parameters: set!("objects=100", "initial=50", "buckets=7", "calls=5", "length=28"),
    ..TABLE_BY_SHARES
};
const SKIP_LIST_OF_ONE: Figure = Figure {
    name: "turcu-4.8-one",
    about: "N-TFA, figure 4.8: a skip list, one call",
    parameters: set!("objects=100", "initial=50", "calls=1", "length=28"),
    ..SKIP_LIST
};
const SKIP_LIST_OF_THREE: Figure = Figure {
    name: "turcu-4.8-three",
    about: "N-TFA, figure 4.8: a skip list, three calls",
    parameters: set!("objects=100", "initial=50", "calls=3", "length=28"),
    ..SKIP_LIST
};
const SKIP_LIST: Figure = Figure {
    name: "turcu-4.8",
    about: "N-TFA, figure 4.8: a skip list, two calls",
    workload: "skiplist",
    parameters: set!("objects=100", "initial=50", "calls=2", "length=28"),
    claims: &[closed_loses(Some(10.4)), best_of_closed(None, 1.0)],
    ..CLOSED
};
const SKIP_LIST_BY_LENGTH: Figure = Figure {
    name: "turcu-4.9",
    about: "N-TFA, figure 4.9: the same, longer and longer",
    workload: "skiplist",
    parameters: set!("objects=100", "initial=50", "calls=2", "reads=50"),
    ..BY_LENGTH
};
const SKIP_LIST_OF_THREE_BY_LENGTH: Figure = Figure {
    name: "turcu-4.9-three",
    about: "N-TFA, figure 4.9: the same, three calls",
    parameters: set!("objects=100", "initial=50", "calls=3", "reads=50"),
    ..SKIP_LIST_BY_LENGTH
};
const SKIP_LIST_READ_BY_LENGTH: Figure = Figure {
    name: "turcu-4.9-reading",
    about: "N-TFA, figure 4.9: the same, two calls, 80 % only read",
    parameters: set!("objects=100", "initial=50", "calls=2", "reads=80"),
    ..SKIP_LIST_BY_LENGTH
};

/// By the clients of each node: section 4.4 has up to 16 of them, and does not say which of its
/// figures have how many.
const BY_CLIENTS: Figure = Figure {
    chosen: "12 nodes; half of the transactions only read; objects are few, as there; 28 ms \
             besides.",
    axis: CLIENTS_A_NODE,
    xs: &[1.0, 2.0, 4.0, 8.0, 16.0],
    quick_xs: &[1.0, 16.0],
    ..CLOSED
};
const BANK_BY_CLIENTS: Figure = Figure {
    name: "turcu-4.3-threads",
    about: "N-TFA, section 4.4: bank, two transfers, more and more threads a node",
    workload: "bank",
    parameters: &["objects=10", "calls=2", "apart=true", "reads=50", "length=28"],
    ..BY_CLIENTS
};
const TABLE_BY_CLIENTS: Figure = Figure {
    name: "turcu-4.7-threads",
    about: "N-TFA, section 4.4: a hash table of 7 buckets, three calls, more and more threads",
    workload: "hashtable",
    parameters: set!("objects=100", "initial=50", "buckets=7", "calls=3", "reads=50", "length=28"),
    ..BY_CLIENTS
};
const SKIP_LIST_BY_CLIENTS: Figure = Figure {
    name: "turcu-4.8-threads",
    about: "N-TFA, section 4.4: a skip list, two calls, more and more threads a node",
    workload: "skiplist",
    parameters: set!("objects=100", "initial=50", "calls=2", "reads=50", "length=28"),
    ..BY_CLIENTS
};
const BANK_BY_NODES: Figure = Figure {
    name: "turcu-4.10",
    about: "N-TFA, figure 4.10: bank on more and more nodes",
    chosen: "16 clients a node, as printed; two transfers; 28 ms besides.",
    clients_a_node: 16,
    workload: "bank",
    parameters: &["objects=10", "calls=2", "apart=true", "reads=50", "length=28"],
    axis: TURCU.axis,
    xs: TURCU.xs,
    quick_xs: TURCU.quick_xs,
    ..CLOSED
};
pub(super) const SKIP_LIST_BY_NODES: Figure = Figure {
    name: "turcu-4.10-skiplist",
    about: "N-TFA, figure 4.10: a skip list on more and more nodes",
    chosen: "Four clients a node, 100 keys, two calls; 28 ms besides.",
    workload: "skiplist",
    parameters: set!("objects=100", "initial=50", "calls=2", "reads=50", "length=28"),
    axis: TURCU.axis,
    xs: TURCU.xs,
    quick_xs: TURCU.quick_xs,
    ..CLOSED
};

/// The settings of the figures above that figure 4.2 sums up: the ends of each axis first, which
/// quick runs have.
const SUMMED_UP: &[SummedSetting] = &[
    case(&BANK, 20.0),
    case(&BANK, 80.0),
    case(&LOAN, 20.0),
    case(&LOAN, 80.0),
    case(&LIST, 20.0),
    case(&LIST, 80.0),
    case(&TABLE, 1.0),
    case(&TABLE, 3.0),
    case(&TABLE, 10.0),
    case(&TABLE_OF_ELEVEN, 1.0),
    case(&TABLE_OF_ELEVEN, 3.0),
    case(&TABLE_OF_ELEVEN, 10.0),
    case(&SKIP_LIST, 20.0),
    case(&SKIP_LIST, 80.0),
    case(&BANK_BY_LENGTH, 10.0),
    case(&LOAN_BY_LENGTH, 10.0),
    case(&LIST_BY_LENGTH, 10.0),
    case(&TABLE_BY_LENGTH, 10.0),
    case(&SKIP_LIST_BY_LENGTH, 10.0),
    case(&BANK, 50.0),
    case(&LOAN, 50.0),
    case(&LIST, 50.0),
    case(&TABLE, 2.0),
    case(&TABLE, 5.0),
    case(&TABLE_OF_ELEVEN, 2.0),
    case(&TABLE_OF_ELEVEN, 5.0),
    case(&SKIP_LIST, 50.0),
    case(&BANK_BY_LENGTH, 100.0),
    case(&LOAN_BY_LENGTH, 100.0),
    case(&LIST_BY_LENGTH, 100.0),
    case(&TABLE_BY_LENGTH, 100.0),
    case(&SKIP_LIST_BY_LENGTH, 100.0),
];

/// Their numbers.
const NUMBERS: [f64; SUMMED_UP.len()] = {
    let mut numbers = [0.0; SUMMED_UP.len()];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = (at + 1) as f64;
        at += 1;
    }
    numbers
};
/// How many of them quick runs have.
const QUICK: usize = 14;

const SUMMARY_AIMS: &[PaperClaim] = &[
    CLOSED_LOSES_ON_AVERAGE,
    best_of_closed(Some(1.84), 1.84),
    worst_of_closed(Some(0.58), 0.58),
    CLOSED_LOSES_IN_BANK,
    closed_in(
        "bank over the best of the others",
        SummaryMeasure::OverBest("bank"),
        None,
        ClaimTarget::Least(1.0),
    ),
    closed_in(
        "skip list over the worst of the others",
        SummaryMeasure::OverLeast("skiplist"),
        None,
        ClaimTarget::Most(1.0),
    ),
    closed_in(
        "calls of a hash table that are the best",
        SummaryMeasure::BestAt("hashtable", "calls"),
        None,
        ClaimTarget::Between(2.0, 5.0),
    ),
];

const SUMMARY: Figure = Figure {
    name: "turcu-4.2",
    about: "N-TFA, figure 4.2: closed nesting over flat transactions, by benchmark",
    cases: SUMMED_UP,
    axis: CASES,
    xs: &NUMBERS,
    quick_xs: NUMBERS.split_at(QUICK).0,
    shows: Quantity::OverFirst,
    claims: SUMMARY_AIMS,
    ..CLOSED
};

/// All of them.
pub const FIGURES: &[Figure] = &[
    SUMMARY,
    BANK,
    BANK_BY_LENGTH,
    LOAN,
    LOAN_BY_LENGTH,
    LIST,
    LIST_BY_LENGTH,
    TABLE,
    TABLE_BY_LENGTH,
    TABLE_OF_ELEVEN,
    TABLE_BY_SHARES,
    TABLE_BY_SHARES_LONG,
    TABLE_BY_SHARES_OF_FIVE,
    SKIP_LIST,
    SKIP_LIST_OF_ONE,
    SKIP_LIST_OF_THREE,
    SKIP_LIST_BY_LENGTH,
    SKIP_LIST_OF_THREE_BY_LENGTH,
    SKIP_LIST_READ_BY_LENGTH,
    BANK_BY_CLIENTS,
    TABLE_BY_CLIENTS,
    SKIP_LIST_BY_CLIENTS,
    BANK_BY_NODES,
    SKIP_LIST_BY_NODES,
];
