//! What the bank takes.

use super::books::{INITIAL, OBJECTS};
use crate::calls::{self, LENGTH};
use crate::interface::INTERFACE;
use crate::nesting::{NESTING_SELDOM_OPEN, PATIENCE};
use crate::parameters::{Parameter, ParameterKind};
use crate::{marks, staleness};

/// What the bank takes.
pub const PARAMETERS: &[Parameter] = &[
    OBJECTS,
    INITIAL,
    Parameter::new(
        "amount",
        "100",
        ParameterKind::Count(1, 1_000_000_000),
        "The most that a transfer moves; the least is 1.",
    ),
    calls::calls(
        "1",
        1,
        "Calls of a transaction: transfers, or sums of two accounts, all of different accounts.",
    ),
    calls::reads("50", "Share of transactions whose calls only read."),
    LENGTH,
    Parameter::new(
        "overdraft",
        "false",
        ParameterKind::Flag,
        "Whether accounts may be overdrawn; if not, such transfers roll back.",
    ),
    Parameter::new(
        "delayed",
        "false",
        ParameterKind::Flag,
        "Whether payees are paid by delayed actions, unread.",
    ),
    Parameter::new(
        "totals",
        "1",
        ParameterKind::Percent,
        "Share of transactions that read all accounts.",
    ),
    Parameter::new(
        "write-all",
        "0",
        ParameterKind::Percent,
        "Share of transactions that write all accounts back unchanged.",
    ),
    Parameter::new(
        "theta",
        "0",
        ParameterKind::Number(0.0, 1.0),
        "Zipfian skew in the choice of accounts; 0 is uniform.",
    ),
    Parameter::new("hot", "0", ParameterKind::Count(0, 100_000_000), "How many accounts are hot."),
    Parameter::new(
        "hot-share",
        "0",
        ParameterKind::Percent,
        "Share of choices that go to the hot accounts.",
    ),
    Parameter::new(
        "locality",
        "0",
        ParameterKind::Percent,
        "Share of transactions that use accounts of the client's own node only.",
    ),
    Parameter::new(
        "disjoint",
        "false",
        ParameterKind::Flag,
        "Whether each client uses accounts of its own, so that none conflict.",
    ),
    Parameter::new(
        "pairs",
        "false",
        ParameterKind::Flag,
        "Whether accounts form pairs that trade with each other alone, so that each sum is known.",
    ),
    staleness::PARAMETER,
    marks::PARAMETER,
    marks::BLIND,
    INTERFACE,
    NESTING_SELDOM_OPEN,
    PATIENCE,
    Parameter::new(
        "apart",
        "false",
        ParameterKind::Flag,
        "Whether each account of a transfer, and each sum, is read in a part of its own, as with \
         `nesting=closed`, and not all are read at first.",
    ),
    Parameter::new(
        "undone",
        "0",
        ParameterKind::Percent,
        "With open children: share of transactions whose transfers are each a closed child around \
         its withdrawal and deposit, which is first undone, and made once more.",
    ),
];
