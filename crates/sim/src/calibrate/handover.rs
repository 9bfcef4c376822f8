//! Measuring what it costs to hand something over to another loop of the same process.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

/// So many times something is handed over.
const HANDOVERS: usize = 7_000;
/// A short message.
const MESSAGE: [u8; 64] = [7; 64];

/// What is between two loops: bytes under a lock, and a sign that there are some.
#[derive(Default)]
struct Handover {
    bytes: Mutex<Vec<u8>>,
    count: AtomicU64,
    sleeping: AtomicBool,
}

impl Handover {
    /// As a loop does at the end of a turn: puts the bytes there, and looks whether the other one
    /// has to be woken, which a busy one has not.
    fn put(&self) -> bool {
        self.bytes().extend_from_slice(&MESSAGE);
        self.count.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        self.sleeping.load(Ordering::Relaxed)
    }

    /// As a loop does at the begin of a turn.
    fn take(&self, into: &mut Vec<u8>) {
        into.clear();
        std::mem::swap(&mut *self.bytes(), into);
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// An end of a handover between two threads, in nanoseconds: the mean of putting and of taking,
/// each the median of many, with the caches of another core in between.
pub(super) fn measure() -> f64 {
    let [there, back] = [Handover::default(), Handover::default()];
    let wait = |handover: &Handover, count: u64| {
        while handover.count.load(Ordering::Acquire) < count {
            spin_loop();
        }
    };
    let (mut puts, mut takes) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut taken = Vec::new();
            for count in 1..=HANDOVERS as u64 {
                wait(&there, count);
                there.take(&mut taken);
                back.put();
            }
        });
        let mut taken = Vec::new();
        for count in 1..=HANDOVERS as u64 {
            let started = Instant::now();
            there.put();
            puts.push(started.elapsed().as_nanos() as f64);
            wait(&back, count);
            let started = Instant::now();
            back.take(&mut taken);
            takes.push(started.elapsed().as_nanos() as f64);
        }
    });
    let median = |mut nanos: Vec<f64>| {
        nanos.sort_by(f64::total_cmp);
        nanos[nanos.len() / 2]
    };
    (median(puts) + median(takes)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_comes_whole() {
        let handover = Handover::default();
        let mut taken = vec![9];
        assert!(!handover.put() && !handover.put(), "nobody sleeps");
        handover.take(&mut taken);
        assert_eq!(taken, [MESSAGE, MESSAGE].concat());
        handover.take(&mut taken);
        assert!(taken.is_empty());
        assert!(measure() > 0.0);
    }
}
