//! What counters take.

use crate::calls::{self, LENGTH};
use crate::interface::INTERFACE;
use crate::marks;
use crate::nesting::{NESTING_OR_OPEN, PATIENCE};
use crate::parameters::{Parameter, ParameterKind};

/// What counters take.
pub const PARAMETERS: &[Parameter] = &[
    calls::objects(
        "1000",
        (1, 1_000_000),
        "How many counters there are in the first group, and in the last.",
    ),
    Parameter::new(
        "hot",
        "4",
        ParameterKind::Count(1, 1_000_000),
        "The same of the group in the middle.",
    ),
    calls::calls(
        "5",
        0,
        "Calls of a transaction's first phase, and of its last: reads of a counter, or adds, each \
         of another one.",
    ),
    Parameter::new(
        "hot-calls",
        "1",
        ParameterKind::Count(0, 1_000),
        "The same of the phase in the middle.",
    ),
    calls::reads(
        "0",
        "Share of transactions whose calls only read; of all others each phase reads or adds.",
    ),
    Parameter::new(
        "cold-reads",
        "50",
        ParameterKind::Percent,
        "Share of first phases that read, of transactions that may add, and of last ones.",
    ),
    Parameter::new("hot-reads", "20", ParameterKind::Percent, "The same of phases in the middle."),
    Parameter::new(
        "totals",
        "0",
        ParameterKind::Percent,
        "Share of transactions that read all counters in the middle, without what may still be \
         undone, and are judged by what clients have committed meanwhile.",
    ),
    LENGTH,
    Parameter::new(
        "delayed",
        "false",
        ParameterKind::Flag,
        "Whether adds are delayed actions, which look at nothing.",
    ),
    Parameter::new(
        "procedures",
        "false",
        ParameterKind::Flag,
        "Whether delayed adds of a phase at one repository are one delayed procedure.",
    ),
    Parameter::new(
        "alone",
        "false",
        ParameterKind::Flag,
        "Whether such a procedure has its counters alone, from the vote to its turn.",
    ),
    Parameter::new(
        "roam",
        "false",
        ParameterKind::Flag,
        "Whether two clients share a session and take turns: its transactions are then run by the \
         coordinators of both.",
    ),
    Parameter::new(
        "asked",
        "false",
        ParameterKind::Flag,
        "Whether delayed adds are asked what they left.",
    ),
    marks::PARAMETER,
    marks::BLIND,
    INTERFACE,
    NESTING_OR_OPEN,
    PATIENCE,
    Parameter::new(
        "handlers",
        "false",
        ParameterKind::Flag,
        "Whether each open child has a commit handler, which counts its client's commits in a row.",
    ),
    Parameter::new(
        "locks",
        "true",
        ParameterKind::Flag,
        "Whether open children take abstract locks. Adds go together without them, where nobody \
         reads the counters in the middle.",
    ),
];
