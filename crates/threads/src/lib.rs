//! Work of one state machine on several cores: [`Workers`] that are threads.
//!
//! The thread that hands over a batch takes part in it; the others sleep between batches, and
//! waking one costs some ten microseconds. So they are woken only for jobs that take longer than
//! that, by what jobs took before: a batch of short ones is done by the thread that has it, and
//! costs no more than without helpers. What comes of a batch never depends on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::vec;

use muesli_core::together::{Job, Together, Workers};
use rayon::{ThreadPool, ThreadPoolBuilder};
use thiserror::Error;

/// Most threads that one state machine can have.
pub const THREADS_MAX: usize = 256;

/// Jobs that take less are not worth waking anybody for.
const SHORT: Duration = Duration::from_micros(15);

/// So many jobs for each thread make a batch: enough that none runs out of work long before the
/// others, and few enough that what comes meanwhile does not wait for long.
const JOBS_PER_THREAD: usize = 4;

/// Procedures may call as deeply as on the main thread of a process.
const STACK_BYTES: usize = 8 << 20;

/// Threads that cannot be had.
#[derive(Debug, Error)]
pub enum ThreadsError {
    /// None, or more than there may be.
    #[error("{0} threads for procedures: allowed are 1 to {THREADS_MAX}")]
    NotSoMany(usize),
    /// The system gives no more.
    #[error("cannot start {threads} threads for procedures: {error}")]
    Refused {
        /// How many were asked for.
        threads: usize,
        /// What the system says.
        error: rayon::ThreadPoolBuildError,
    },
}

/// What a state machine on this machine hands over, where `threads` run it, its own included: with
/// 1 nothing, and no thread is started.
///
/// # Errors
/// There cannot be so many threads.
pub fn together(threads: usize) -> Result<Together, ThreadsError> {
    handed_to(threads, SHORT)
}

/// The same, where every batch is shared by all threads, however short its jobs are: to see that it
/// makes no difference.
///
/// # Errors
/// There cannot be so many threads.
pub fn eager(threads: usize) -> Result<Together, ThreadsError> {
    handed_to(threads, Duration::ZERO)
}

fn handed_to(threads: usize, short: Duration) -> Result<Together, ThreadsError> {
    match threads {
        1 => Ok(Together::default()),
        2..=THREADS_MAX => {
            let workers = Threads::new(threads, short)?;
            Ok(Together::new(threads * JOBS_PER_THREAD, Arc::new(workers)))
        }
        _ => Err(ThreadsError::NotSoMany(threads)),
    }
}

/// Workers that are threads.
#[derive(Debug)]
struct Threads {
    /// Those beside the one that hands over jobs.
    helpers: ThreadPool,
    /// What a job took of late, in nanoseconds.
    lately: AtomicU64,
    /// Jobs that take less than this many nanoseconds are not worth waking anybody for.
    short: u64,
}

/// Jobs of a batch that nobody has begun.
type Left<'a> = Mutex<vec::IntoIter<Job<'a>>>;

impl Threads {
    fn new(threads: usize, short: Duration) -> Result<Threads, ThreadsError> {
        let helpers = ThreadPoolBuilder::new()
            .num_threads(threads - 1)
            .thread_name(|number| format!("muesli-procedures-{number}"))
            .stack_size(STACK_BYTES)
            .build()
            .map_err(|error| ThreadsError::Refused { threads, error })?;
        Ok(Threads { helpers, lately: AtomicU64::new(0), short: short.as_nanos() as u64 })
    }

    /// Does what is left until nothing is, or it took `at_most`, in nanoseconds.
    fn work(&self, left: &Left<'_>, at_most: u64) {
        let begun = Instant::now();
        let mut before = 0;
        while before < at_most
            && let Some(job) = next(left)
        {
            job();
            let now = begun.elapsed().as_nanos() as u64;
            let lately = self.lately.load(Ordering::Relaxed);
            self.lately.store((lately * 3 + (now - before)) / 4, Ordering::Relaxed);
            before = now;
        }
    }
}

fn next<'a>(left: &Left<'a>) -> Option<Job<'a>> {
    left.lock().unwrap_or_else(PoisonError::into_inner).next()
}

impl Workers for Threads {
    fn run(&self, jobs: Vec<Job<'_>>) {
        let left: Left<'_> = Mutex::new(jobs.into_iter());
        if self.lately.load(Ordering::Relaxed) < self.short {
            self.work(&left, self.short);
        }
        let jobs = left.lock().unwrap_or_else(PoisonError::into_inner).len();
        let helpers = self.helpers.current_num_threads().min(jobs.saturating_sub(1));
        if helpers == 0 {
            return self.work(&left, u64::MAX);
        }
        self.helpers.in_place_scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|_| self.work(&left, u64::MAX));
            }
            self.work(&left, u64::MAX);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn all_jobs_are_done_whoever_does_them() {
        for threads in [2, 4] {
            for together in [eager(threads), together(threads)] {
                let together = together.expect("threads");
                for jobs in [0, 1, 2, 3, 40] {
                    let squares = together.map((0..jobs).collect(), |it: u64| it * it);
                    assert_eq!(squares, (0..jobs).map(|it| it * it).collect::<Vec<_>>());
                }
            }
        }
    }

    /// Each job waits for the other one: neither would end if they were done in a row.
    #[test]
    fn jobs_are_done_at_the_same_time() {
        let together = eager(2).expect("threads");
        let meeting = Barrier::new(2);
        let name = |()| {
            meeting.wait();
            thread::current().name().map(str::to_owned)
        };
        let names = together.map(vec![(), ()], name);
        assert!(names.contains(&Some("muesli-procedures-0".to_owned())), "{names:?}");
        assert!(names.contains(&thread::current().name().map(str::to_owned)), "{names:?}");
    }

    #[test]
    fn short_jobs_wake_nobody_and_long_ones_do() {
        let sparing = handed_to(2, Duration::from_secs(3_600)).expect("threads");
        let mine = thread::current().id();
        let is_mine = sparing.map((0..8).collect(), |_: u8| thread::current().id() == mine);
        assert_eq!(is_mine, [true; 8]);
        // Once a job has been found long, the next ones are shared: these wait for each other.
        let together = together(2).expect("threads");
        together.map(vec![()], |()| thread::sleep(SHORT * 8));
        let meeting = Barrier::new(2);
        together.map(vec![(), ()], |()| meeting.wait());
    }

    #[test]
    fn a_job_that_panics_is_noticed_and_the_next_batch_is_done() {
        let together = eager(2).expect("threads");
        let one_panics = |it: u8| assert_ne!(it, 1, "as it is to");
        let panicked = catch_unwind(AssertUnwindSafe(|| together.map(vec![0, 1, 2], one_panics)));
        assert!(panicked.is_err());
        assert_eq!(together.map(vec![3, 4], |it: u8| it + 1), [4, 5]);
    }

    #[test]
    fn numbers_of_threads_that_cannot_be_are_refused() {
        for wrong in [0, THREADS_MAX + 1] {
            let told = together(wrong).map(drop).expect_err("refused").to_string();
            assert_eq!(told, format!("{wrong} threads for procedures: allowed are 1 to 256"));
        }
        assert!(!together(1).expect("nothing").is_on());
        assert_eq!(together(3).expect("threads").at_most(), 12);
    }
}
