//! Work that a driver may do on several cores while a state machine waits for it.
//!
//! The problem: a state machine is one thread's, and what it computes for long keeps everybody
//! waiting, though much of it has nothing to do with each other and the machine has more cores. The
//! idea: the state machine hands a batch of *jobs* to [`Workers`] that its driver gave it, and has
//! all results when they return. A job sees what it was given and nothing of the others, so whether
//! they are run in a row, in any other order, or at the same time cannot be seen in what comes of
//! them: the state machine stays a function of its inputs. The simulator draws an order
//! ([`Shuffled`]), which shows where that is not so; drivers on real machines have threads.

use std::fmt;
use std::sync::Arc;

/// A piece of a batch.
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Who runs jobs.
pub trait Workers: fmt::Debug + Send + Sync {
    /// Runs all jobs, in any order and on any threads, and returns when all have ended. If one
    /// panics, so does this, after all have ended or been given up.
    fn run(&self, jobs: Vec<Job<'_>>);
}

/// One job after the other.
#[derive(Clone, Copy, Debug)]
pub struct InARow;

impl Workers for InARow {
    fn run(&self, jobs: Vec<Job<'_>>) {
        jobs.into_iter().for_each(|job| job());
    }
}

/// The last job first.
#[derive(Clone, Copy, Debug)]
pub struct Backwards;

impl Workers for Backwards {
    fn run(&self, jobs: Vec<Job<'_>>) {
        jobs.into_iter().rev().for_each(|job| job());
    }
}

/// One job after the other, in an order that a seed and the size of the batch give.
#[derive(Clone, Copy, Debug)]
pub struct Shuffled {
    /// Where the order comes from.
    pub seed: u64,
}

impl Workers for Shuffled {
    fn run(&self, mut jobs: Vec<Job<'_>>) {
        let mut state = self.seed ^ (jobs.len() as u64).rotate_left(32);
        while !jobs.is_empty() {
            let place = (mixed(&mut state) % jobs.len() as u64) as usize;
            jobs.swap_remove(place)();
        }
    }
}

/// The next number of a sequence (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// How many pieces of work a state machine hands over at a time, and to whom.
#[derive(Clone, Debug)]
pub struct Parallel {
    at_most: usize,
    workers: Arc<dyn Workers>,
}

impl Parallel {
    /// At most so many at a time; with 0 or 1 nothing is handed over.
    pub fn new(at_most: usize, workers: Arc<dyn Workers>) -> Parallel {
        Parallel { at_most: at_most.max(1), workers }
    }

    /// How many pieces are handed over at most; 1: none, each is done where it comes up.
    #[inline]
    pub fn at_most(&self) -> usize {
        self.at_most
    }

    /// Whether anything is handed over.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.at_most > 1
    }

    /// What `work` makes of each of `items`, in their order.
    ///
    /// # Panics
    /// If `work` does, or the workers leave something out.
    pub fn map<I: Send, T: Send>(
        &self,
        items: Vec<I>,
        work: impl Fn(I) -> T + Send + Sync,
    ) -> Vec<T> {
        let mut given: Vec<Option<T>> = items.iter().map(|_| None).collect();
        let work = &work;
        let job = |(item, given)| -> Job<'_> {
            let given: &mut Option<T> = given;
            Box::new(move || *given = Some(work(item)))
        };
        self.workers.run(items.into_iter().zip(&mut given).map(job).collect());
        given.into_iter().map(|it| it.expect("all jobs are run")).collect()
    }
}

/// Nothing is handed over.
impl Default for Parallel {
    fn default() -> Parallel {
        Parallel::new(1, Arc::new(InARow))
    }
}

/// Equal if they hand over as much; to whom makes no difference.
impl PartialEq for Parallel {
    fn eq(&self, other: &Parallel) -> bool {
        self.at_most == other.at_most
    }
}

impl Eq for Parallel {}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    fn order(workers: &dyn Workers, jobs: usize) -> Vec<usize> {
        let order = Mutex::new(Vec::new());
        let push = |number| order.lock().expect("nobody panics").push(number);
        let push = &push;
        workers.run((0..jobs).map(|number| Box::new(move || push(number)) as Job<'_>).collect());
        order.into_inner().expect("nobody panics")
    }

    proptest! {
        #[test]
        fn whoever_runs_jobs_runs_each_once_and_what_comes_of_them_is_in_their_order(
            seed: u64, jobs in 0usize..20,
        ) {
            let all: [Arc<dyn Workers>; 3] =
                [Arc::new(InARow), Arc::new(Backwards), Arc::new(Shuffled { seed })];
            for workers in all {
                let mut seen = order(&*workers, jobs);
                prop_assert_eq!(&seen, &order(&*workers, jobs));
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..jobs).collect::<Vec<_>>());
                let squares = Parallel::new(jobs, workers).map((0..jobs).collect(), |it| it * it);
                prop_assert_eq!(squares, (0..jobs).map(|it| it * it).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn orders_differ() {
        assert_eq!(order(&InARow, 4), [0, 1, 2, 3]);
        assert_eq!(order(&Backwards, 4), [3, 2, 1, 0]);
        let orders: Vec<_> = (0..8).map(|seed| order(&Shuffled { seed }, 6)).collect();
        assert!(orders.iter().any(|it| *it != orders[0]), "{orders:?}");
    }

    #[test]
    fn nothing_is_handed_over_unless_asked_for() {
        assert!(!Parallel::default().is_on() && !Parallel::new(0, Arc::new(InARow)).is_on());
        assert!(Parallel::new(2, Arc::new(InARow)).is_on());
    }
}
