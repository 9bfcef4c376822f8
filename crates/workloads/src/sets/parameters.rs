//! What sets take.

use super::keys::{NARROW, PHASE, PHASE_READS};
use crate::calls::{self, LENGTH};
use crate::interface::INTERFACE;
use crate::nesting::{NESTING_OR_OPEN, PATIENCE};
use crate::parameters::{Parameter, ParameterKind as Takes};

const OBJECTS: Parameter =
    calls::objects("65536", (2, 10_000_000), "How many keys there are to choose from.");
const INITIAL: Parameter = Parameter::new(
    "initial",
    "256",
    Takes::Count(0, 1_000_000),
    "How many of them are there at first; at most half.",
);
const READS: Parameter =
    calls::reads("50", "Share of transactions whose calls only look whether a key is there.");
const WALKS: Parameter = Parameter::new(
    "walks",
    "1",
    Takes::Percent,
    "Share of transactions that read a whole structure.",
);
const CALLS: Parameter =
    calls::calls("1", 1, "Calls of a transaction: searches, adds or removes, each of another key.");
const COUNT: Parameter = Parameter::new(
    "structures",
    "1",
    Takes::Count(1, 1_000),
    "How many structures there are; a transaction uses one.",
);
const REMOVALS: Parameter = Parameter::new(
    "rule",
    "pairs",
    Takes::Choice(&["pairs", "random"]),
    "Whether clients remove what they added themselves, or anything.",
);
const LEVELS: Parameter = Parameter::new(
    "levels",
    "12",
    Takes::Count(1, 64),
    "Levels of a skip list; with 1 it is a linked list.",
);
/// Whether changes are looked at by those who made them.
const AGAIN: Parameter = Parameter::new(
    "again",
    "0",
    Takes::Percent,
    "With rule=random: share of transactions that change keys which look for these at their end, \
     change one of them back, and look for it once more.",
);
/// Which open children there are.
const OPEN: Parameter = Parameter::new(
    "open",
    "calls",
    Takes::Choice(&["calls", "nested"]),
    "With open children, those of transactions that change keys: one for each call, or one for two \
     calls, which are open children of it.",
);
/// What read-only transactions have in place of open children.
const LOOKS: Parameter = Parameter::new(
    "looks",
    "parts",
    Takes::Choice(&["parts", "children"]),
    "With open children, those of transactions that only look: parts on one snapshot, which look \
     at locks and are run again as a whole where one is held, or open children, which take read \
     locks.",
);
const BUCKETS: Parameter =
    Parameter::new("buckets", "61", Takes::Count(1, 1_000_000), "Buckets of a hash table.");

/// What all take, and what some do besides.
macro_rules! parameters {
    ($($own:ident),*) => {
        &[
            OBJECTS, INITIAL, CALLS, READS, LENGTH, WALKS, COUNT, REMOVALS, PHASE, NARROW,
            PHASE_READS, NESTING_OR_OPEN, PATIENCE, AGAIN, OPEN, LOOKS, $($own),*
        ]
    };
}

/// What trees take.
pub const PARAMETERS: &[Parameter] = parameters!(INTERFACE);
/// What linked lists take.
pub const LIST_PARAMETERS: &[Parameter] = parameters!(INTERFACE);
/// What skip lists take.
pub const SKIP_LIST_PARAMETERS: &[Parameter] = parameters!(INTERFACE, LEVELS);
/// What hash tables take.
pub const HASH_TABLE_PARAMETERS: &[Parameter] = parameters!(INTERFACE, BUCKETS);
