//! How transactions that met a conflict are run again.

use std::time::Duration;

/// How often and how fast a transaction that met a conflict is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// At most so many attempts in all.
    pub attempts: u32,
    /// The pause before the second attempt is random up to this; it doubles with every attempt.
    pub pause: Duration,
    /// And is never longer than this.
    pub pause_max: Duration,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            attempts: 100,
            pause: Duration::from_micros(20),
            pause_max: Duration::from_millis(10),
        }
    }
}
