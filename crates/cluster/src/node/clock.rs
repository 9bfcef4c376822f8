//! The time of a process: that of the machine's wall clock when it began, and from then on it goes
//! forwards as monotonic time does, whatever becomes of the wall clock.
//!
//! So a wall clock that is set while a server runs is no matter; what it says at the next start may
//! be anything. For tests, a server that has a [trouble file](crate::storage::trouble) looks
//! at a file of the same name with the extension `clock`: a number of milliseconds by which its
//! clock is ahead of the machine's, or behind it where that is negative. A server that runs leaps
//! forwards when the number grows, as where a machine slept; it never goes back.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use muesli_core::Nanos;

const NANOS_OF_MS: i64 = 1_000_000;

/// A clock.
#[derive(Clone, Debug)]
pub(crate) struct ProcessClock {
    origin: Instant,
    at_origin: Cell<u64>,
    /// For tests: a file that says how wrong it is, and what that said.
    drift_file: Option<PathBuf>,
    ahead_ms: Cell<i64>,
}

impl ProcessClock {
    /// That of this machine.
    pub fn new() -> ProcessClock {
        ProcessClock::troubled(None)
    }

    /// As wrong as a file beside `trouble` says, if there is one.
    pub fn troubled(trouble: Option<&Path>) -> ProcessClock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let drift_file = trouble.map(|file| file.with_extension("clock"));
        let ahead = drift_file.as_deref().map_or(0, ahead_ms);
        let at_origin = (since.as_nanos() as u64).saturating_add_signed(ahead * NANOS_OF_MS);
        let (origin, at_origin) = (Instant::now(), Cell::new(at_origin));
        ProcessClock { origin, at_origin, drift_file, ahead_ms: Cell::new(ahead) }
    }

    pub fn now(&self) -> Nanos {
        Nanos(self.at_origin.get() + self.origin.elapsed().as_nanos() as u64)
    }

    /// Looks whether it is to leap.
    pub fn look(&self) {
        let Some(drift_file) = &self.drift_file else { return };
        let (before, now) = (self.ahead_ms.get(), ahead_ms(drift_file));
        if now > before {
            self.ahead_ms.set(now);
            let leap = ((now - before) * NANOS_OF_MS) as u64;
            self.at_origin.set(self.at_origin.get().saturating_add(leap));
        }
    }
}

/// By how many milliseconds a file says that a clock is ahead, a century at most.
fn ahead_ms(drift_file: &Path) -> i64 {
    const MOST: i64 = 100 * 366 * 86_400_000;
    let text = std::fs::read_to_string(drift_file).unwrap_or_default();
    text.trim().parse().map_or(0, |ahead: i64| ahead.clamp(-MOST, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    #[test]
    fn a_clock_leaps_forwards_while_it_runs_and_may_begin_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let trouble = dir.path().join("trouble");
        let is_near = |one: Nanos, other: u64| one.as_millis().abs_diff(other) < HOUR / 4;
        let start = ProcessClock::new().now().as_millis();
        let clock = ProcessClock::troubled(Some(&trouble));
        assert!(is_near(clock.now(), start));
        std::fs::write(dir.path().join("trouble.clock"), (2 * HOUR).to_string()).unwrap();
        clock.look();
        assert!(is_near(clock.now(), start + 2 * HOUR));
        std::fs::write(dir.path().join("trouble.clock"), format!("-{HOUR}\n")).unwrap();
        clock.look();
        assert!(is_near(clock.now(), start + 2 * HOUR), "it does not go back");
        assert!(is_near(ProcessClock::troubled(Some(&trouble)).now(), start - HOUR));
    }
}
