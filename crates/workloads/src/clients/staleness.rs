//! Readers that may be stale.

use std::time::Duration;

use muesli::Db;

use crate::parameters::{Parameter, ParameterKind, Values};

/// How stale what only reads may be.
pub const PARAMETER: Parameter = Parameter::new(
    "stale",
    "0",
    ParameterKind::Count(0, 60_000),
    "Milliseconds: read-only transactions see what was committed so long before them, and may miss \
     what came since; 0: as the protocol always does.",
);

/// How stale what the readers of a workload see may be; `None`: as the protocol does.
#[derive(Clone, Copy, Debug)]
pub struct StaleReads(Option<Duration>);

impl StaleReads {
    /// As the parameters say.
    pub fn new(values: &Values) -> StaleReads {
        let millis = values.count(PARAMETER.name);
        StaleReads((millis > 0).then(|| Duration::from_millis(millis)))
    }

    /// The same session, for what only reads.
    pub fn handle(self, db: &Db) -> Db {
        self.0.map_or_else(|| db.read_only(), |most| db.at_most_stale(most))
    }
}
