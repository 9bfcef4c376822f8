//! What transactions did, as a history, and what the checker finds in one.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use muesli::{Report, RepositoryId, Timestamp, TxnId};
use muesli_check::{Checker, History, Level, Options};
use muesli_core::recorder::{PartRan, RecordedOperation, Sampling};
use muesli_core::{Catalog, SpaceId, TxnLevel};
use muesli_sim::history::{self, Chain, Remains, ReportedTransaction};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde_json::Map;

use crate::errors::DataError;

/// What a loop of a database left behind, but for transactions on the database's own space.
struct LoopRemains<'a>(&'a Report, Option<SpaceId>);

impl LoopRemains<'_> {
    fn is_of_clients(&self, reported: &ReportedTransaction) -> bool {
        let space = |operation: &RecordedOperation| match operation {
            RecordedOperation::Read { space, .. }
            | RecordedOperation::ReadOwn { space, .. }
            | RecordedOperation::Write { space, .. }
            | RecordedOperation::Scan { space, .. } => *space,
        };
        !reported.operations.iter().any(|operation| Some(space(operation)) == self.1)
    }
}

impl Remains for LoopRemains<'_> {
    fn reported(&self) -> impl Iterator<Item = ReportedTransaction> {
        let all = self.0.recorder.transactions().map(ReportedTransaction::as_recorded);
        all.filter(|reported| self.is_of_clients(reported))
    }

    fn level_of(&self, txn: TxnId) -> TxnLevel {
        self.0.recorder.level_of(txn)
    }

    fn applied_at(&self, txn: TxnId) -> Option<Timestamp> {
        self.0.recorder.applied_at(txn)
    }

    fn executed(&self, txn: TxnId) -> Vec<Vec<RecordedOperation>> {
        self.0.recorder.executed_for(txn).collect()
    }

    fn ran(&self, txn: TxnId) -> Vec<PartRan> {
        self.0.recorder.ran_for(txn).collect()
    }

    fn sampling(&self) -> Sampling {
        self.0.recorder.share()
    }

    fn chains(&self) -> &[(RepositoryId, Vec<Chain>)] {
        &self.0.chains
    }
}

/// Writes what the loops of a database have recorded.
pub fn write(reports: &[Report], catalog: &Catalog, path: &Path) -> PyResult<()> {
    let own = catalog.space_named(muesli_group::placement::SPACE);
    let remains: Vec<_> = reports.iter().map(|report| LoopRemains(report, own)).collect();
    let history = history::by_versions(&remains, catalog, Map::new());
    let history = history.map_err(|error| DataError::new_err(error.to_string()))?;
    let file = File::create(path).map_err(|error| unusable(path, error))?;
    history.write(BufWriter::new(file)).map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, error: std::io::Error) -> PyErr {
    PyOSError::new_err(format!("the history {}: {error}", path.display()))
}

/// What the checker says of a history.
#[pyclass(frozen, get_all, module = "muesli")]
pub struct Verdict {
    /// Whether the history satisfies the level.
    holds: bool,
    /// The level.
    level: &'static str,
    /// How many transactions the history has.
    transactions: usize,
    /// And how many of them committed.
    committed: usize,
    /// What the checker says, in words.
    text: String,
    /// The cycle that breaks the level, for Graphviz, if there is one.
    dot: Option<String>,
}

#[pymethods]
impl Verdict {
    fn __bool__(&self) -> bool {
        self.holds
    }

    fn __repr__(&self) -> String {
        let holds = if self.holds { "holds" } else { "broken" };
        format!("<Verdict {}: {holds}>", self.level)
    }
}

/// Judges a history.
#[pyfunction]
#[pyo3(signature = (path, level="serializable"))]
pub fn check(py: Python<'_>, path: PathBuf, level: &str) -> PyResult<Verdict> {
    let level: Level = level.parse().map_err(|_| {
        let names: Vec<_> = Level::ALL.iter().map(|level| level.name()).collect();
        PyValueError::new_err(format!("no level is {level:?}; there are: {}", names.join(", ")))
    })?;
    py.detach(|| {
        let file = File::open(&path).map_err(|error| unusable(&path, error))?;
        let history = History::read(BufReader::new(file));
        let history = history.map_err(|error| DataError::new_err(error.to_string()))?;
        if history.transactions() == 0 {
            return Err(DataError::new_err("a history without transactions shows nothing"));
        }
        let verdict = Checker::new(&history).check(level, &Options::default());
        Ok(Verdict {
            holds: verdict.holds(),
            level: level.name(),
            transactions: verdict.stats.transactions,
            committed: verdict.stats.committed,
            text: verdict.to_string(),
            dot: verdict.to_dot(),
        })
    })
}
