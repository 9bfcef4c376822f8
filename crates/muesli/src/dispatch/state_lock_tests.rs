use std::sync::atomic::{AtomicU8, AtomicU64};
use std::time::{Duration, Instant};

use super::*;
use crate::dispatch::queued_thread::WokenThreads;

type CountJob = Arc<dyn Fn(&mut u64) + Send + Sync>;
type CountLock = StateLock<u64, CountJob>;

/// A lock whose state is free.
fn lock() -> CountLock {
    let lock = CountLock::new();
    lock.leave(0, LeaveMode::ForNow, true).expect("nobody waits");
    lock
}

/// Leaves as the loops' callers do.
fn leave(lock: &CountLock, state: u64) {
    leave_to(lock, state, LeaveMode::ForNow);
}

fn leave_to(lock: &CountLock, mut state: u64, leaving: LeaveMode) {
    let (mut threads, mut jobs) = (WokenThreads::default(), 0);
    while let Err(back) = lock.leave(state, leaving, jobs < JOBS_MOST) {
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

/// One that is awake in the queue, and only waits.
fn awake() -> QueuePlace<CountJob> {
    let (status, thread) = (AtomicU8::new(QUEUED), thread::current());
    QueuePlace { waiter: Arc::new(QueuedThread { status, thread }), job: None }
}

/// The first one that sleeps is in the queue, called, and comes when it is unparked.
#[must_use]
fn to_queue(lock: &CountLock) -> Thread {
    lock.inner().call_next().expect("one sleeps")
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
        assert_eq!(lock.enter(), Some(threads * 20_000));
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
    assert_eq!(lock.enter(), Some(30_000));
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

/// Somebody has long turns, and is back at once after each: who was called finds the state taken.
#[test]
fn who_sleeps_comes_in_beside_one_with_long_turns() {
    let (lock, over) = (lock(), AtomicBool::new(false));
    let (begun, limit) = (Instant::now(), Duration::from_secs(20));
    for leaving in [LeaveMode::ForNow, LeaveMode::ForOthers] {
        over.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) && begun.elapsed() < limit {
                    let state = lock.enter().expect("nobody shuts it");
                    let entered = Instant::now();
                    while entered.elapsed() < Duration::from_micros(300) {
                        std::hint::spin_loop();
                    }
                    leave_to(&lock, state, leaving);
                }
            });
            for _ in 0..3 {
                let state = lock.enter().expect("nobody shuts it");
                leave(&lock, state + 1);
                thread::sleep(Duration::from_millis(1));
            }
            over.store(true, Ordering::Relaxed);
        });
    }
    assert!(begun.elapsed() < limit, "it waited until the other had no more to do");
    assert_eq!(lock.enter(), Some(6));
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
    let (mut leaves, mut called) = (0, false);
    thread::scope(|scope| {
        let sleeps = scope.spawn(|| lock.enter());
        until_waiting(&lock, 0, 1);
        while !called && leaves < 2 * LEAVES_BETWEEN_CALLS {
            let before = lock.inner().leaves;
            lock.inner().queue.push_front(awake());
            lock.leave(state, LeaveMode::ForOthers, true).expect("there is no job");
            state = lock.inner().granted.take().expect("it is granted to the first");
            called = lock.inner().leaves < before;
            leaves += 1;
        }
        if !called {
            lock.shut();
        }
        lock.leave(state, LeaveMode::ForOthers, true).expect("there is no job");
        assert_eq!(sleeps.join().unwrap(), Some(0), "after {leaves} others");
    });
    assert!(leaves <= LEAVES_BETWEEN_CALLS, "{leaves}");
}

#[test]
fn who_comes_back_has_the_state_again_for_a_while() {
    let lock = lock();
    let mut state = lock.try_enter().expect("it is free");
    let waits = awake();
    let waiter = Arc::clone(&waits.waiter);
    lock.inner().queue.push_back(waits);
    for _ in 0..STREAK_MOST {
        lock.leave(state, LeaveMode::ForNow, true).expect("there is no job");
        let other = thread::scope(|scope| scope.spawn(|| lock.try_enter()).join().unwrap());
        assert_eq!(other, None, "somebody waits for longer");
        state = lock.try_enter().expect("it was the last to have it");
    }
    lock.leave(state, LeaveMode::ForNow, true).expect("there is no job");
    assert_eq!((lock.try_enter(), waiter.status()), (None, GRANTED));
    assert_eq!(lock.inner().granted, Some(0));
}

#[test]
fn who_leaves_for_others_is_not_the_next() {
    let lock = lock();
    let state = lock.try_enter().expect("it is free");
    lock.inner().queue.push_back(awake());
    lock.leave(state, LeaveMode::ForOthers, true).expect("there is no job");
    assert_eq!((lock.try_enter(), lock.inner().granted), (None, Some(0)));
}

#[test]
fn what_is_kept_for_one_that_does_not_come_is_taken_by_another() {
    let lock = lock();
    let keep = || {
        let mut inner = lock.inner();
        (inner.favoured, inner.reserved) = (1, true);
    };
    keep();
    assert_eq!(lock.try_enter(), None, "it is kept");
    let state = lock.enter().expect("nobody shuts it");
    leave(&lock, state + 1);
    keep();
    add(&lock);
    assert_eq!(lock.try_enter(), Some(2));
}

#[test]
fn one_whose_job_was_run_comes_before_who_ran_it() {
    let lock = lock();
    let state = lock.try_enter().expect("it is free");
    thread::scope(|scope| {
        let served = scope.spawn(|| {
            add(&lock);
            until_waiting(&lock, 1, 0);
            lock.try_enter()
        });
        until_waiting(&lock, 0, 1);
        let thread = to_queue(&lock);
        leave_to(&lock, state, LeaveMode::ForOthers);
        thread.unpark();
        assert_eq!(lock.try_enter(), None, "it is kept for the one that was served");
        lock.inner().queue.push_back(awake());
        assert_eq!(served.join().unwrap(), Some(1));
    });
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
    let me = thread::current().id();
    thread::scope(|scope| scope.spawn(|| lock.no_longer_pending(me)).join()).unwrap();
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
        let thread = to_queue(&lock);
        let queued = lock.next_job().expect("there is one");
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let queued = queued;
            (queued.job())(&mut 0);
        }));
        assert!(ran.is_err());
        thread.unpark();
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
    assert_eq!(lock.leave(state, LeaveMode::ForOthers, true), Ok(()));
    let state = lock.try_enter().expect("it is free again");
    thread::scope(|scope| {
        let granted = scope.spawn(|| lock.enter_or_hand(Arc::new(|state| *state += 1)));
        until_waiting(&lock, 0, 1);
        let thread = to_queue(&lock);
        assert_eq!(
            lock.leave(state, LeaveMode::ForOthers, true),
            Err(0),
            "a job is to be run first"
        );
        assert_eq!(lock.leave(state, LeaveMode::ForOthers, false), Ok(()), "it is its owner's now");
        thread.unpark();
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
            lock.no_longer_pending(thread::current().id());
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
    lock.leave(Arc::clone(&state), LeaveMode::ForNow, true).expect("nobody waits");
    assert_eq!((Arc::strong_count(&state), lock.take_out()), (1, None));
}
