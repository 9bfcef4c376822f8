//! Clients that are gone or slow, and those who finish what they left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use muesli::blocking::block_on;
use muesli::open_nesting::NestingSwitch;
use muesli::{Error, Options};

use super::{Bench, add, add_open};

/// A client that stops between its children's commits and its own, until it is let go on; how it
/// ended, and how often it ran.
struct Stopped {
    thread: JoinHandle<(Result<(), Error>, u32)>,
    goes_on: Arc<AtomicBool>,
}

impl Stopped {
    fn at(bench: &Bench, children: &'static [&'static str], own: bool) -> Stopped {
        let goes_on = Arc::<AtomicBool>::default();
        let (bench, flag) = (bench.clone(), goes_on.clone());
        let before = bench.nesting.counts().children;
        let watched = bench.clone();
        let thread = std::thread::spawn(move || {
            let (numbers, db, attempts) =
                (bench.numbers, bench.db.clone(), Arc::new(AtomicU32::new(0)));
            let counted = attempts.clone();
            let ended = bench.run(async move |tx| {
                counted.fetch_add(1, Ordering::Relaxed);
                if own {
                    add(tx, numbers, "own", 1).await?;
                }
                for key in children {
                    add_open(tx, numbers, key, 1).await?;
                }
                while !flag.load(Ordering::Relaxed) {
                    db.sleep(Duration::from_millis(1)).await?;
                }
                Ok(())
            });
            (ended, attempts.load(Ordering::Relaxed))
        });
        while watched.nesting.counts().children < before + children.len() as u64 {
            std::thread::yield_now();
        }
        Stopped { thread, goes_on }
    }

    fn go_on(self) -> (Result<(), Error>, u32) {
        self.goes_on.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn who_asks_for_a_lock_of_one_that_stopped_finishes_it_and_it_runs_again() {
    for own in [false, true] {
        let bench = Bench::with(Options { repositories: 2, loops: 2, ..Options::default() });
        let numbers = bench.numbers;
        let stopped = Stopped::at(&bench, &["a", "b"], own);
        let got = bench.run(async move |tx| add_open(tx, numbers, "a", 10).await);
        assert_eq!(got, Ok(10), "what it did is undone");
        assert_eq!(bench.number("b"), 0);
        assert_eq!(bench.nesting.counts().taken_over, 1);
        assert_eq!(stopped.go_on(), (Ok(()), 2));
        let numbers = (bench.number("a"), bench.number("b"), bench.number("own"));
        assert_eq!(numbers, (11, 1, i64::from(own)));
        assert_eq!(&bench.log()[..2], ["undo b 1", "undo a 1"]);
        bench.assert_nothing_is_left();
    }
}

#[test]
fn one_that_does_not_look_whether_it_was_ended_commits_what_is_undone() {
    let mut bench = Bench::with(Options { repositories: 2, loops: 2, ..Options::default() });
    bench.nesting = bench.nesting.without(NestingSwitch::CheckEnd);
    let numbers = bench.numbers;
    let stopped = Stopped::at(&bench, &["a"], false);
    assert_eq!(bench.run(async move |tx| add_open(tx, numbers, "a", 10).await), Ok(10));
    assert_eq!(stopped.go_on(), (Ok(()), 1), "it says that it committed");
    assert_eq!(bench.number("a"), 10, "and what it did is not there");
}

#[test]
fn several_that_finish_the_same_run_each_compensation_once() {
    let bench = Bench::with(Options { repositories: 2, loops: 2, ..Options::default() });
    for _ in 0..5 {
        let stopped = Stopped::at(&bench, &["a", "b", "c", "d", "e", "f"], false);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let bench = Bench { db: bench.db.session(), ..bench.clone() };
                std::thread::spawn(move || {
                    let idle = Duration::from_millis(2);
                    block_on(bench.nesting.finish_abandoned(&bench.db, idle)).unwrap()
                })
            })
            .collect();
        let finished: usize = threads.into_iter().map(|it| it.join().unwrap()).sum();
        assert!(finished >= 1);
        for key in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(bench.number(key), 0, "{key}");
        }
        assert_eq!(bench.rows().locks, 0);
        let undone = bench.log();
        assert_eq!(
            undone[undone.len() - 6..],
            ["f", "e", "d", "c", "b", "a"].map(|key| format!("undo {key} 1"))
        );
        // Its locks are free; it is not to run again, so that the next round begins with nothing.
        let numbers = bench.numbers;
        assert_eq!(stopped.go_on(), (Ok(()), 2));
        let undo = async move |tx: &muesli::Tx| {
            for key in ["a", "b", "c", "d", "e", "f"] {
                add(tx, numbers, key, -1).await?;
            }
            Ok::<_, Error>(())
        };
        bench.db.blocking().transact(undo).unwrap();
    }
    bench.assert_nothing_is_left();
}

#[test]
fn a_scope_within_a_scope_is_finished_from_inside_outwards() {
    let bench = Bench::with(Options { repositories: 2, loops: 2, ..Options::default() });
    let (own, goes_on) = (bench.clone(), Arc::<AtomicBool>::default());
    let flag = goes_on.clone();
    let thread = std::thread::spawn(move || {
        let (numbers, db) = (own.numbers, own.db.clone());
        own.run(async move |tx| {
            add_open(tx, numbers, "a", 1).await?;
            tx.open_atomic((), async |child| {
                add_open(child, numbers, "b", 1).await?;
                while !flag.load(Ordering::Relaxed) {
                    db.sleep(Duration::from_millis(1)).await?;
                }
                Ok::<_, Error>(())
            })
            .await
        })
    });
    while bench.nesting.counts().children < 2 {
        std::thread::yield_now();
    }
    let numbers = bench.numbers;
    assert_eq!(bench.run(async move |tx| add_open(tx, numbers, "a", 10).await), Ok(10));
    assert_eq!(&bench.log()[..2], ["undo b 1", "undo a 1"]);
    goes_on.store(true, Ordering::Relaxed);
    assert_eq!(thread.join().unwrap(), Ok(()));
    assert_eq!((bench.number("a"), bench.number("b")), (11, 1));
    bench.assert_nothing_is_left();
}

#[test]
fn rows_that_lead_back_to_their_own_scope_are_an_error_and_no_endless_work() {
    let bench = Bench::new();
    let (numbers, own) = (bench.numbers, bench.clone());
    let ended = bench.run(async move |tx| {
        add_open(tx, numbers, "a", 1).await?;
        let space = own.db.space("nesting")?;
        let forge = async |other: &muesli::Tx| {
            let rows = other.scan(space, muesli::Range::prefix(b"s")).await?;
            let id = &rows[0].0.as_slice()[1..];
            let number = u128::from_be_bytes(id.try_into().unwrap());
            let mut key = vec![b'o'];
            key.extend_from_slice(id);
            other.put(space, key, postcard::to_stdvec(&vec![number]).unwrap()).await
        };
        own.db.transact_here(forge).await?;
        Err::<(), _>(Error::rollback("not today"))
    });
    assert!(
        matches!(&ended, Err(Error::Unfinished { why, .. }) if why.contains("depth")),
        "{ended:?}"
    );
}
