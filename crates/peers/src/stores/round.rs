//! One round: plain threads, each of which makes transfers until the time is over.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::store::{AccountStore, INITIAL};

/// How a round is run.
#[derive(Clone, Copy, Debug)]
pub struct RoundOptions {
    pub threads: usize,
    /// How long it is measured; a tenth of that goes before.
    pub length: Duration,
    pub accounts: u64,
    pub seed: u64,
}

/// Runs a round; transfers a second of all threads.
///
/// # Errors
/// The store fails, or the accounts do not hold in the end what they held at first.
pub fn run(store: &dyn AccountStore, options: &RoundOptions) -> anyhow::Result<f64> {
    timed(store, &RoundOptions { length: options.length / 10, ..*options })?;
    let rate = timed(store, options)?;
    let (sum, expected) = (store.sum()?, i128::from(INITIAL) * i128::from(options.accounts));
    ensure!(i128::from(sum) == expected, "the accounts hold {sum} and not {expected}");
    Ok(rate)
}

fn timed(store: &dyn AccountStore, options: &RoundOptions) -> anyhow::Result<f64> {
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(options.threads + 1));
    std::thread::scope(|scope| {
        let start = |thread| {
            let (is_over, barrier) = (&is_over, &barrier);
            scope.spawn(move || {
                barrier.wait();
                transfers(store, options, thread, is_over)
            })
        };
        let threads: Vec<_> = (0..options.threads).map(start).collect();
        barrier.wait();
        let begun = Instant::now();
        std::thread::sleep(options.length);
        is_over.store(true, Ordering::Relaxed);
        let mut done = 0;
        for thread in threads {
            done += thread.join().expect("a panic ends the program")?;
        }
        Ok(done as f64 / begun.elapsed().as_secs_f64())
    })
}

/// Transfers of one thread, until the time is over: how many they were.
fn transfers(
    store: &dyn AccountStore,
    options: &RoundOptions,
    thread: usize,
    is_over: &AtomicBool,
) -> anyhow::Result<u64> {
    let mut random = fastrand::Rng::with_seed(options.seed.wrapping_add(thread as u64));
    let mut done = 0;
    while !is_over.load(Ordering::Relaxed) {
        let from = random.u64(..options.accounts);
        let to = (from + 1 + random.u64(..options.accounts - 1)) % options.accounts;
        store.transfer(from, to)?;
        done += 1;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Accounts in a vector, whose payee gets what the payer loses, or not.
    struct VectorAccounts(Mutex<Vec<i64>>, i64);

    impl AccountStore for VectorAccounts {
        fn transfer(&self, from: u64, to: u64) -> anyhow::Result<()> {
            assert_ne!(from, to);
            let mut accounts = self.0.lock().unwrap();
            accounts[from as usize] -= 1;
            accounts[to as usize] += self.1;
            Ok(())
        }

        fn sum(&self) -> anyhow::Result<i64> {
            Ok(self.0.lock().unwrap().iter().sum())
        }
    }

    #[test]
    fn a_round_is_good_if_nothing_is_lost() {
        let length = Duration::from_millis(20);
        let options = RoundOptions { threads: 2, length, accounts: 3, seed: 1 };
        let of = |gain| VectorAccounts(Mutex::new(vec![INITIAL; 3]), gain);
        assert!(run(&of(1), &options).unwrap() > 0.0);
        let error = run(&of(0), &options).unwrap_err().to_string();
        assert!(error.contains("and not 3000"), "{error}");
    }
}
