use std::sync::atomic::{AtomicU8, AtomicU64};
use std::time::{Duration, Instant};

use super::*;
use crate::dispatch::queued_thread::WokenThreads;

type CountJob = Arc<dyn Fn(&mut u64) + Send + Sync>;
type CountLock = StateLock<u64, CountJob>;

/// A lock whose state is free.
fn lock() -> CountLock {
    let lock = CountLock::new();
    lock.leave(0, true).expect("nobody waits");
    lock
}

/// Leaves as the loops' callers do.
fn leave(lock: &CountLock, mut state: u64) {
    let (mut threads, mut jobs) = (WokenThreads::default(), 0);
    while let Err(back) = lock.leave(state, jobs < JOBS_MOST) {
        state = back;
        while jobs < JOBS_MOST
            && let Some(queued) = lock.next_job()
        {
            (queued.job())(&mut state);
            threads.add(queued.end());
            jobs += 1;
        }
    }
}

/// Adds one, by itself or by somebody else.
fn add(lock: &CountLock) {
    match lock.enter_or_hand(Arc::new(|state| *state += 1)) {
        HandOver::Entered(state) => leave(lock, state + 1),
        HandOver::Served => {}
        HandOver::Shut => panic!("nobody shuts it"),
    }
}

/// Waits until so many are in the queue or sleep.
fn until_waiting(lock: &CountLock, queued: usize, asleep: usize) {
    loop {
        let inner = lock.inner();
        if (inner.queue.len(), inner.asleep.len()) == (queued, asleep) {
            return;
        }
        drop(inner);
        thread::yield_now();
    }
}

/// The first one that sleeps is in the queue, as if it had come just now.
fn to_queue(lock: &CountLock) {
    let mut inner = lock.inner();
    let place = inner.asleep.pop_front().expect("one sleeps");
    inner.queue.push_back(place);
}

#[test]
fn every_job_is_done_once_and_alone() {
    for threads in [1, 2, 8] {
        let lock = lock();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..20_000).for_each(|_| add(&lock)));
            }
        });
        assert_eq!(lock.try_enter(), Some(threads * 20_000));
        assert!(!lock.is_contended());
    }
}

#[test]
fn who_enters_is_alone_beside_those_with_jobs() {
    let (lock, inside) = (lock(), AtomicU64::new(0));
    let alone = |state: u64| {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
        inside.fetch_sub(1, Ordering::SeqCst);
        state + 1
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..5_000).for_each(|_| add(&lock)));
            scope.spawn(|| {
                for _ in 0..5_000 {
                    let state = lock.enter().expect("nobody shuts it");
                    leave(&lock, alone(state));
                }
            });
        }
    });
    assert_eq!(lock.try_enter(), Some(30_000));
}

#[test]
fn who_waits_is_served_though_others_come_again_and_again() {
    let lock = lock();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    add(&lock);
                }
            });
        }
        let (begun, mut longest) = (Instant::now(), Duration::ZERO);
        while begun.elapsed() < Duration::from_millis(300) {
            let asked = Instant::now();
            let state = lock.enter().expect("nobody shuts it");
            longest = longest.max(asked.elapsed());
            leave(&lock, state);
        }
        over.store(true, Ordering::Relaxed);
        // Of a machine that others use; who is starved waits for ever.
        assert!(longest < Duration::from_secs(20), "{longest:?}");
    });
}

#[test]
fn those_that_sleep_are_called_in_their_order_one_at_a_time() {
    let lock = lock();
    let order = Mutex::new(Vec::new());
    let state = lock.try_enter().expect("it is free");
    thread::scope(|scope| {
        for number in 0..4 {
            let (lock, order) = (&lock, &order);
            scope.spawn(move || {
                let state = lock.enter().expect("nobody shuts it");
                order.lock().unwrap().push(number);
                leave(lock, state);
            });
            until_waiting(lock, 0, number + 1);
        }
        leave(&lock, state);
    });
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
    assert!(lock.try_enter().is_some());
}

/// Others are next each time the state is left: one that sleeps is called all the same.
#[test]
fn one_that_sleeps_is_called_though_the_queue_is_never_empty() {
    let lock = lock();
    let mut state = lock.try_enter().expect("it is free");
    let awake = || QueuePlace {
        waiter: Arc::new(QueuedThread { status: AtomicU8::new(QUEUED), thread: thread::current() }),
        job: None,
    };
    let mut leaves = 0;
    let entered = thread::scope(|scope| {
        let sleeps = scope.spawn(|| lock.enter());
        until_waiting(&lock, 0, 1);
        while !lock.inner().asleep.is_empty() && leaves < 2 * LEAVES_BETWEEN_CALLS {
            lock.inner().queue.push_front(awake());
            lock.leave(state, true).expect("there is no job");
            state = lock.inner().granted.take().expect("it is granted to the first");
            leaves += 1;
        }
        lock.leave(state, true).expect("there is no job");
        lock.shut(); // Who was not called is refused.
        sleeps.join().unwrap()
    });
    assert_eq!(entered, Some(0), "after {leaves} others");
    assert!(leaves <= LEAVES_BETWEEN_CALLS, "{leaves}");
}

#[test]
fn whoever_is_on_the_way_to_the_state_is_known() {
    let lock = lock();
    assert!(!lock.is_awaited());
    lock.hands_over();
    assert!(lock.is_awaited());
    lock.goes_on();
    lock.is_pending();
    assert!(lock.is_awaited());
    lock.no_longer_pending();
    assert!(!lock.is_awaited());
}

#[test]
fn a_job_of_one_that_sleeps_is_run_and_wakes_it() {
    let lock = lock();
    let state = lock.try_enter().expect("it is free");
    thread::scope(|scope| {
        scope.spawn(|| add(&lock));
        until_waiting(&lock, 0, 1);
        leave(&lock, state); // It is called.
    });
    assert_eq!(lock.try_enter(), Some(1));
}

#[test]
fn a_job_that_panics_leaves_the_others_and_the_state() {
    let lock = lock();
    let state = lock.try_enter().expect("it is free");
    thread::scope(|scope| {
        let panics = scope.spawn(|| lock.enter_or_hand(Arc::new(|_| panic!("a job"))));
        until_waiting(&lock, 0, 1);
        to_queue(&lock);
        let queued = lock.next_job().expect("there is one");
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let queued = queued;
            (queued.job())(&mut 0);
        }));
        assert!(ran.is_err());
        assert_eq!(panics.join().unwrap(), HandOver::Served, "its wait is over");
    });
    leave(&lock, state + 7);
    add(&lock);
    assert_eq!(lock.try_enter(), Some(8));
}

#[test]
fn who_leaves_runs_some_jobs_and_then_the_next_one_has_the_state() {
    let lock = lock();
    let state = lock.try_enter().expect("it is free");
    assert_eq!(lock.leave(state, true), Ok(()));
    let state = lock.try_enter().expect("it is free again");
    thread::scope(|scope| {
        let granted = scope.spawn(|| lock.enter_or_hand(Arc::new(|state| *state += 1)));
        until_waiting(&lock, 0, 1);
        to_queue(&lock);
        assert_eq!(lock.leave(state, true), Err(0), "a job is to be run first");
        assert_eq!(lock.leave(state, false), Ok(()), "it is its owner's now");
        assert_eq!(granted.join().unwrap(), HandOver::Entered(0));
    });
}

#[test]
fn who_waits_is_refused_when_it_is_shut() {
    let lock = lock();
    let state = lock.try_enter().expect("it is free");
    thread::scope(|scope| {
        let job = scope.spawn(|| lock.enter_or_hand(Arc::new(|state| *state += 1)));
        let entering = scope.spawn(|| lock.enter());
        let pending = scope.spawn(|| {
            lock.is_pending();
            while !lock.is_shut() {
                thread::park();
            }
            lock.no_longer_pending();
        });
        until_waiting(&lock, 0, 2);
        while lock.inner().pending.is_empty() {
            thread::yield_now();
        }
        lock.shut_with(Some(state + 5));
        assert_eq!(job.join().unwrap(), HandOver::Shut);
        assert_eq!(entering.join().unwrap(), None);
        pending.join().unwrap();
    });
    assert_eq!((lock.try_enter(), lock.enter()), (None, None));
    assert_eq!(lock.take_out(), Some(5));
}

#[test]
fn what_is_left_after_the_end_is_dropped() {
    let lock = StateLock::<Arc<()>, CountJob>::new();
    let state = Arc::new(());
    lock.end();
    lock.leave(Arc::clone(&state), true).expect("nobody waits");
    assert_eq!((Arc::strong_count(&state), lock.take_out()), (1, None));
}
