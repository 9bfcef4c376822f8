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
    /// A [child](crate::Tx::nested) of a transaction is run again so often, after such pauses;
    /// then the whole transaction is.
    pub child_retries: u32,
}

impl Retry {
    /// The pause after so many attempts, by a random number.
    pub(crate) fn pause_after(&self, attempts: u32, random: u64) -> Duration {
        let most = self.pause.saturating_mul(1 << attempts.min(20)).min(self.pause_max);
        Duration::from_nanos(random % (most.as_nanos() as u64).max(1))
    }
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            attempts: 100,
            pause: Duration::from_micros(20),
            pause_max: Duration::from_millis(10),
            child_retries: 4,
        }
    }
}
