//! Forks: the loops of a database are threads, which a forked process does not have.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::errors::ForkedError;

/// How many forks lie between this process and the one that loaded the package.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Which process something is of, among those that were forked from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkedProcess(u64);

impl ForkedProcess {
    /// This process.
    pub fn current() -> ForkedProcess {
        ForkedProcess(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is that process, and none that was forked from it.
    pub fn is_current(self) -> bool {
        self == ForkedProcess::current()
    }

    /// Refuses what a forked process asks.
    pub fn check(self) -> PyResult<()> {
        if self.is_current() {
            return Ok(());
        }
        Err(ForkedError::new_err(
            "this database was opened before the process was forked: its threads are in the other \
             process. Open or connect to it here, or start processes by \"spawn\" instead",
        ))
    }
}

/// Called in a process that was just forked.
#[pyfunction]
pub fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
