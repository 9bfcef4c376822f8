//! For tests: clients that stop between two transactions of the layer, as if they were killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// After how many transactions a client stops.
#[derive(Clone, Debug, Default)]
pub(in crate::open_nesting) struct StopAfter(Option<Arc<StepsLeft>>);

#[derive(Debug)]
struct StepsLeft {
    left: AtomicU64,
    refused: AtomicU64,
}

impl StopAfter {
    /// It stops after so many.
    pub fn new(transactions: u64) -> StopAfter {
        let (left, refused) = (AtomicU64::new(transactions), AtomicU64::new(0));
        StopAfter(Some(Arc::new(StepsLeft { left, refused })))
    }

    /// A transaction of the layer is about to commit.
    ///
    /// # Errors
    /// [`Error::Closed`]: its client has stopped.
    pub fn step(&self) -> Result<(), Error> {
        let Some(steps) = &self.0 else { return Ok(()) };
        let next = |left: u64| left.checked_sub(1);
        let taken = steps.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        taken.map(drop).map_err(|_| {
            steps.refused.fetch_add(1, Ordering::Relaxed);
            Error::Closed
        })
    }

    /// Whether it wanted to do more than it could.
    pub fn has_stopped(&self) -> bool {
        self.0.as_ref().is_some_and(|steps| steps.refused.load(Ordering::Relaxed) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_after_so_many_and_for_good() {
        let stop = StopAfter::new(2);
        assert_eq!((stop.step(), stop.step(), stop.has_stopped()), (Ok(()), Ok(()), false));
        assert_eq!((stop.step(), stop.clone().step()), (Err(Error::Closed), Err(Error::Closed)));
        assert!(stop.has_stopped());
        assert_eq!(StopAfter::default().step(), Ok(()), "others do not");
    }
}
