//! Accounts as variables of the transactional memories of today's crates.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{ACCOUNTS, Draws, INITIAL, Subject, THREADS, Work};

/// Runs `step` on each thread until the time is over; steps a second of all together.
pub fn on_threads(length: Duration, step: impl Fn(&mut Draws) + Sync) -> f64 {
    let (done, start) = (AtomicU64::new(0), Instant::now());
    let work = |thread: usize| {
        let (mut draws, mut own) = (Draws::new(thread), 0);
        while own % 64 != 0 || start.elapsed() < length {
            step(&mut draws);
            own += 1;
        }
        done.fetch_add(own, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let work = &work;
        (0..THREADS).for_each(|thread| drop(scope.spawn(move || work(thread))));
    });
    done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

/// The two crates have one interface, one being a fork of the other.
macro_rules! variables {
    ($name:ident, $of:ident, $about:literal) => {
        #[doc = $about]
        pub struct $name(Vec<$of::TVar<i64>>);

        impl $name {
            /// Accounts that hold what they hold at first.
            pub fn new() -> $name {
                $name((0..ACCOUNTS).map(|_| $of::TVar::new(INITIAL)).collect())
            }

            fn account(&self, number: u64) -> &$of::TVar<i64> {
                &self.0[number as usize]
            }

            fn transfer(&self, draws: &mut Draws) {
                let (from, to, by) = draws.transfer();
                let (from, to) = (self.account(from), self.account(to));
                $of::atomically(|tx| {
                    let (payer, payee) = (from.read(tx)?, to.read(tx)?);
                    from.write(tx, payer - by)?;
                    to.write(tx, payee + by)
                });
            }

            fn read(&self, draws: &mut Draws) {
                let accounts = draws.accounts();
                black_box($of::atomically(|tx| {
                    let mut sum = 0;
                    for number in accounts {
                        sum += self.account(number).read(tx)?;
                    }
                    Ok(sum)
                }));
            }
        }

        impl Subject for $name {
            fn run(&self, work: Work, length: Duration) -> f64 {
                match work {
                    Work::Transfers => on_threads(length, |draws| self.transfer(draws)),
                    Work::Reads => on_threads(length, |draws| self.read(draws)),
                }
            }

            fn sum(&self) -> i64 {
                self.0.iter().map($of::TVar::read_atomic).sum()
            }
        }
    };
}

variables!(FastVariables, fast_stm, "Accounts of `fast-stm`.");
variables!(PlainVariables, stm_core, "Accounts of `stm-core`.");
