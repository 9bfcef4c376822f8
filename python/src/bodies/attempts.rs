//! The attempts of a body, which share one timeout.

use std::time::{Duration, Instant};

use muesli::{Db, Error};
use pyo3::prelude::*;

use crate::database::Core;
use crate::errors::raised;

/// The attempts that were made of a body, and since when.
pub struct Attempts {
    began: Instant,
    made: u32,
}

impl Attempts {
    /// None was made yet, and its time begins.
    pub fn begin() -> Attempts {
        Attempts { began: Instant::now(), made: 0 }
    }

    /// The handle of the next attempt, whose transaction has what time is left.
    pub fn handle(&self, core: &Core) -> PyResult<Db> {
        let left = core.time_limit().saturating_sub(self.began.elapsed());
        match self.made {
            0 => Ok(core.db().clone()),
            _ if left.is_zero() => Err(timeout(core)),
            _ => Ok(core.db().timeout(left)),
        }
    }

    /// Refuses to go on once the time is over.
    pub fn check(&self, core: &Core) -> PyResult<()> {
        match self.began.elapsed() < core.time_limit() {
            true => Ok(()),
            false => Err(timeout(core)),
        }
    }

    /// Counts one that met a conflict; how long to pause before the next one.
    ///
    /// # Errors
    /// The conflict after the last attempt; another one if the time is over, or would be.
    pub fn after_conflict(&mut self, core: &Core, error: PyErr) -> PyResult<Duration> {
        self.made += 1;
        let Some(pause) = core.count_conflict(self.made) else { return Err(error) };
        match self.began.elapsed().saturating_add(pause) < core.time_limit() {
            true => Ok(pause),
            false => Err(timeout(core)),
        }
    }
}

fn timeout(core: &Core) -> PyErr {
    let after_ms = u64::try_from(core.time_limit().as_millis()).unwrap_or(u64::MAX);
    raised(Error::TransactionTimeout { after_ms })
}
