//! Which servers are to run: those that were there from the beginning, and those that joined and
//! have not left.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

/// The servers of a round that are to run, unless a fault has it otherwise.
#[derive(Debug)]
pub struct Roster(Mutex<BTreeSet<usize>>);

impl Roster {
    /// So many from the beginning.
    pub fn of(nodes: usize) -> Roster {
        Roster(Mutex::new((0..nodes).collect()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Those that are to run now.
    pub fn nodes(&self) -> Vec<usize> {
        self.lock().iter().copied().collect()
    }

    /// One came.
    pub fn add(&self, node: usize) {
        self.lock().insert(node);
    }

    /// One is to go, and may end from now on.
    pub fn remove(&self, node: usize) {
        self.lock().remove(&node);
    }
}
