//! Whether the parts of a transaction are children of it, which can be undone and run again alone.

use muesli::{Error, Tx};

use crate::parameters::{Parameter, ParameterKind, Values};

/// What workloads take whose transactions have parts.
pub const NESTING: Parameter = Parameter::new(
    "nesting",
    "flat",
    ParameterKind::Choice(&["flat", "closed"]),
    "Whether parts of a transaction are run again with all of it (flat), or as children (closed).",
);

/// How the parts of a transaction are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NestingModel {
    /// As its own operations.
    Flat,
    /// As children, each of which can be undone alone.
    Closed,
}

impl NestingModel {
    /// As these parameters say.
    pub fn new(values: &Values) -> NestingModel {
        match values.word("nesting") {
            "closed" => NestingModel::Closed,
            _ => NestingModel::Flat,
        }
    }

    /// Runs a part of a transaction.
    ///
    /// # Errors
    /// As the part.
    pub async fn run<T>(
        self,
        tx: &Tx,
        part: impl AsyncFn(&Tx) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self {
            NestingModel::Flat => part(tx).await,
            NestingModel::Closed => tx.nested(part).await,
        }
    }
}
