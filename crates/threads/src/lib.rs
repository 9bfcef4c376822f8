//! Work of one state machine on several cores: [`Workers`] that are threads.
//!
//! The thread that hands over a batch takes part in it. The others sleep between batches; waking
//! one costs some microseconds, and until it has a processor as long as that takes. So they are
//! woken only where a batch is worth it, by what jobs took of late: short ones are done by the
//! thread that has them, and cost no more than without helpers. And nobody waits for a helper that
//! has begun nothing: that is why the thread belongs to the pool, and takes back what nobody took.
//! What comes of a batch never depends on any of this.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::vec;

use muesli_core::parallel::{Job, Parallel, Workers};
use rayon::{ThreadPool, ThreadPoolBuilder};
use thiserror::Error;

/// Most threads that one state machine can have.
pub const THREADS_MAX: usize = 256;

/// What is left of a batch is shared if it would take one thread at least as long.
const WORTH_SHARING: Duration = Duration::from_micros(50);

/// What a job took counts so little beside what those before it took: a thread that loses its
/// processor for a moment is no sign of long jobs.
const REMEMBERED: u64 = 16;

/// So many jobs for each thread make a batch: enough that none runs out of work long before the
/// others, and few enough that what comes meanwhile does not wait for long.
const JOBS_PER_THREAD: usize = 4;

/// Procedures may call as deeply as on the main thread of a process.
const STACK_BYTES: usize = 8 << 20;

/// A number of threads that there cannot be.
#[derive(Debug, Error)]
#[error("{0} threads for procedures: allowed are 1 to {THREADS_MAX}")]
pub struct ThreadsError(usize);

/// What a state machine on this machine hands over, where `threads` run it, its own included: with
/// 1 nothing. Threads are started when there is something for them, and where the system gives
/// none, all is done without.
///
/// # Errors
/// There cannot be so many threads.
pub fn parallel(threads: usize) -> Result<Parallel, ThreadsError> {
    handed_to(threads, WORTH_SHARING)
}

/// The same, where every batch is shared by all threads, however short its jobs are: to see that it
/// makes no difference.
///
/// # Errors
/// There cannot be so many threads.
pub fn eager(threads: usize) -> Result<Parallel, ThreadsError> {
    handed_to(threads, Duration::ZERO)
}

fn handed_to(threads: usize, worth: Duration) -> Result<Parallel, ThreadsError> {
    match threads {
        1 => Ok(Parallel::default()),
        2..=THREADS_MAX => {
            let (pool, lately, worth) =
                (OnceLock::new(), AtomicU64::new(0), worth.as_nanos() as u64);
            let workers = Threads { threads, pool, lately, worth };
            Ok(Parallel::new(threads * JOBS_PER_THREAD, Arc::new(workers)))
        }
        _ => Err(ThreadsError(threads)),
    }
}

/// Workers that are threads.
#[derive(Debug)]
struct Threads {
    /// How many, the one that hands over jobs included.
    threads: usize,
    /// Made by the first thread that shares a batch; `None`: the system gives none.
    pool: OnceLock<Option<ThreadPool>>,
    /// What a job took of late, in nanoseconds; of longer ones so much as is worth sharing.
    lately: AtomicU64,
    /// What is left of a batch is shared if it takes so many nanoseconds.
    worth: u64,
}

/// Jobs of a batch that nobody has begun.
type Left<'a> = Mutex<vec::IntoIter<Job<'a>>>;

fn lock<'l, 'a>(left: &'l Left<'a>) -> MutexGuard<'l, vec::IntoIter<Job<'a>>> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// The pool, of which this thread becomes one if it can: it is not in one already.
    fn pool(&self) -> Option<&ThreadPool> {
        let builder = || {
            ThreadPoolBuilder::new()
                .thread_name(|number| format!("muesli-procedures-{number}"))
                .stack_size(STACK_BYTES)
        };
        let make = || {
            let with_this_one = builder().num_threads(self.threads).use_current_thread().build();
            with_this_one.or_else(|_| builder().num_threads(self.threads - 1).build()).ok()
        };
        self.pool.get_or_init(make).as_ref()
    }

    /// Does a job, if one is left.
    fn one(&self, left: &Left<'_>) -> bool {
        let Some(job) = lock(left).next() else { return false };
        let begun = Instant::now();
        job();
        let took = (begun.elapsed().as_nanos() as u64).min(self.worth);
        let lately = self.lately.load(Ordering::Relaxed);
        let lately = (lately * (REMEMBERED - 1) + took) / REMEMBERED;
        self.lately.store(lately, Ordering::Relaxed);
        true
    }

    fn share(&self, left: &Left<'_>, helpers: usize) {
        let Some(pool) = self.pool() else { return while self.one(left) {} };
        pool.in_place_scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|_| while self.one(left) {});
            }
            while self.one(left) {}
        });
    }
}

impl Workers for Threads {
    fn run(&self, jobs: Vec<Job<'_>>) {
        let left: Left<'_> = Mutex::new(jobs.into_iter());
        loop {
            let jobs = lock(&left).len() as u64;
            let takes = jobs * self.lately.load(Ordering::Relaxed);
            if jobs > 1 && takes >= self.worth {
                return self.share(&left, (self.threads - 1).min(jobs as usize - 1));
            }
            if !self.one(&left) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn all_jobs_are_done_whoever_does_them() {
        for threads in [2, 4] {
            for parallel in [eager(threads), parallel(threads)] {
                let parallel = parallel.expect("threads");
                for jobs in [0, 1, 2, 3, 40] {
                    let squares = parallel.map((0..jobs).collect(), |it: u64| it * it);
                    assert_eq!(squares, (0..jobs).map(|it| it * it).collect::<Vec<_>>());
                }
            }
        }
    }

    /// Each job waits for the other one: neither would end if they were done in a row.
    #[test]
    fn jobs_are_done_at_the_same_time() {
        let parallel = eager(2).expect("threads");
        let meeting = Barrier::new(2);
        let name = |()| {
            meeting.wait();
            thread::current().name().map(str::to_owned)
        };
        let names = parallel.map(vec![(), ()], name);
        assert!(names.contains(&Some("muesli-procedures-1".to_owned())), "{names:?}");
        assert!(names.contains(&thread::current().name().map(str::to_owned)), "{names:?}");
    }

    #[test]
    fn short_jobs_wake_nobody_and_long_ones_do() {
        let sparing = handed_to(2, Duration::from_secs(3_600)).expect("threads");
        let mine = thread::current().id();
        let is_mine = sparing.map((0..8).collect(), |_: u8| thread::current().id() == mine);
        assert_eq!(is_mine, [true; 8]);
        // Once some have been found long, the next ones are shared: these wait for each other.
        let parallel = parallel(2).expect("threads");
        for _ in 0..REMEMBERED {
            parallel.map(vec![()], |()| thread::sleep(WORTH_SHARING));
        }
        let meeting = Barrier::new(2);
        parallel.map(vec![(), ()], |()| meeting.wait());
    }

    /// A thread that is in a pool already, and one that did not begin with the pool.
    #[test]
    fn whichever_thread_hands_over_jobs_they_are_done() {
        let [first, second] = [eager(2), eager(3)].map(|it| it.expect("threads"));
        for parallel in [&first, &second, &first] {
            let meeting = Barrier::new(2);
            parallel.map(vec![(), ()], |()| meeting.wait());
            let other = || parallel.map(vec![1, 2, 3], |it: u8| it + 1);
            let sums = thread::scope(|scope| scope.spawn(other).join().expect("no panic"));
            assert_eq!(sums, [2, 3, 4]);
        }
    }

    #[test]
    fn a_job_that_panics_is_noticed_and_the_next_batch_is_done() {
        let parallel = eager(2).expect("threads");
        let one_panics = |it: u8| assert_ne!(it, 1, "as it is to");
        let panicked = catch_unwind(AssertUnwindSafe(|| parallel.map(vec![0, 1, 2], one_panics)));
        assert!(panicked.is_err());
        assert_eq!(parallel.map(vec![3, 4], |it: u8| it + 1), [4, 5]);
    }

    #[test]
    fn numbers_of_threads_that_cannot_be_are_refused() {
        for wrong in [0, THREADS_MAX + 1] {
            let message = parallel(wrong).map(drop).expect_err("refused").to_string();
            assert_eq!(message, format!("{wrong} threads for procedures: allowed are 1 to 256"));
        }
        assert!(!parallel(1).expect("nothing").is_on());
        assert_eq!(parallel(3).expect("threads").at_most(), 12);
    }
}
