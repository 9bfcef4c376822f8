//! Whether the parts of a transaction are children of it: closed ones, which can be undone and run
//! again alone, or open ones, which commit before it does.

pub(crate) mod open_layer;

use muesli::{Error, Tx};

use crate::parameters::{Parameter, ParameterKind, Values};

/// What workloads take whose transactions have parts.
pub const NESTING: Parameter = Parameter::new(
    "nesting",
    "flat",
    ParameterKind::Choice(&["flat", "closed"]),
    "Whether parts of a transaction are run again with all of it (flat), or as children (closed).",
);

/// What workloads take whose parts can be undone after their commit, too.
pub const NESTING_OR_OPEN: Parameter = Parameter::new(
    "nesting",
    "flat",
    ParameterKind::Choice(&["flat", "closed", "open"]),
    "Whether parts of a transaction are run again with all of it (flat), as children (closed), or \
     committed at once, under abstract locks, and compensated if it is aborted (open).",
);

/// How the parts of a transaction are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NestingModel {
    /// As its own operations.
    Flat,
    /// As children, each of which can be undone alone.
    Closed,
    /// As open children, which the workload runs.
    Open,
}

impl NestingModel {
    /// As these parameters say.
    pub fn new(values: &Values) -> NestingModel {
        match values.word("nesting") {
            "closed" => NestingModel::Closed,
            "open" => NestingModel::Open,
            _ => NestingModel::Flat,
        }
    }

    /// Runs a part of a transaction. (Open children are run by the workload.)
    ///
    /// # Errors
    /// As the part.
    pub async fn run<T>(
        self,
        tx: &Tx,
        part: impl AsyncFn(&Tx) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self {
            NestingModel::Flat | NestingModel::Open => part(tx).await,
            NestingModel::Closed => tx.nested(part).await,
        }
    }
}
