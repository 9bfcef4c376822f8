//! Transactions with open children, and open children, that wait for a change of what they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use muesli::open_nesting::{LockMode, OpenTx};
use muesli::{Error, Index, Limits, Options, Range, Space, SpaceOptions, Tx};

use super::{Bench, add, add_open, read_open};

/// How often bodies were run.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

impl Runs {
    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until there were so many.
    fn reach(&self, count: u32) {
        while self.count() < count {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Another thread, which changes what a transaction waits for, when that has been asleep for long.
fn giver(bench: &Bench, runs: &Runs) -> thread::JoinHandle<Result<i64, Error>> {
    let (bench, runs, numbers) = (bench.clone(), runs.clone(), bench.numbers);
    thread::spawn(move || {
        runs.reach(1);
        thread::sleep(Duration::from_millis(60)); // Several times the longest pause.
        bench.run(async move |tx| add(tx, numbers, "own", 1).await)
    })
}

/// What others give, or a retry.
async fn own(tx: &OpenTx, numbers: Space) -> Result<i64, Error> {
    match numbers.typed::<String, i64>().get(tx, "own").await? {
        None => tx.retry(),
        Some(own) => Ok(own),
    }
}

/// What the transaction waits for may need the locks of its open children.
#[test]
fn what_waits_for_a_change_has_undone_its_open_children() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let other = bench.clone();
    let giver = thread::spawn(move || {
        while !other.log().contains(&"undo a 5".to_owned()) {
            thread::sleep(Duration::from_millis(1));
        }
        other.run(async move |tx| {
            add_open(tx, numbers, "a", 1).await?;
            add(tx, numbers, "own", 1).await
        })
    });
    let ended = bench.run(async move |tx| {
        add_open(tx, numbers, "a", 5).await?;
        match numbers.typed::<String, i64>().get(tx, "own").await? {
            None => tx.retry(),
            Some(own) => Ok(own),
        }
    });
    assert_eq!((ended, giver.join().unwrap()), (Ok(1), Ok(1)));
    assert_eq!(bench.number("a"), 6);
    bench.assert_nothing_is_left();
}

/// What the transaction has read led to the child.
#[test]
fn where_an_open_child_waits_for_a_change_its_transaction_is_run_again() {
    let bench = Bench::new();
    let (numbers, roots, runs) = (bench.numbers, Runs::default(), Runs::default());
    let giver = giver(&bench, &runs);
    let (root, run) = (roots.clone(), runs.clone());
    let ended = bench.run(async move |tx| {
        root.one_more();
        let child = async |child: &OpenTx| {
            run.one_more();
            own(child, numbers).await
        };
        tx.open_atomic((), child).await
    });
    assert_eq!((ended, giver.join().unwrap()), (Ok(1), Ok(1)));
    assert_eq!((roots.count(), runs.count()), (2, 2), "of the transaction, and of the child");
    bench.assert_nothing_is_left();
}

/// Each attempt changes what it has read, and changes it back.
#[test]
fn what_open_children_write_and_compensations_put_back_wakes_nobody() {
    let bench = Bench::new();
    let (numbers, runs) = (bench.numbers, Runs::default());
    bench.run(async move |tx| add(tx, numbers, "a", 1).await).unwrap();
    let (giver, run) = (giver(&bench, &runs), runs.clone());
    let ended = bench.run(async move |tx| {
        run.one_more();
        assert_eq!(add_open(tx, numbers, "a", 5).await?, 6);
        assert_eq!(read_open(tx, numbers, "a").await?, 6, "a child sees the one before it");
        own(tx, numbers).await
    });
    assert_eq!((ended, giver.join().unwrap()), (Ok(1), Ok(1)));
    assert_eq!((runs.count(), bench.number("a")), (2, 6));
    bench.assert_nothing_is_left();
}

/// As above; a child reads a range with what the one before it has written.
#[test]
fn a_range_is_waited_for_without_what_open_children_wrote_in_it() {
    let ordered = SpaceOptions { index: Index::Ordered, ..SpaceOptions::default() };
    let bench = Bench::with(Options::default().space("ordered", ordered));
    let (numbers, runs) = (bench.numbers, Runs::default());
    let list = bench.db.space("ordered").unwrap();
    let nesting = bench.bare().handler("remove", move |tx, key: String| {
        Box::pin(async move { tx.delete(list, key.as_str()).await })
    });
    let bench = Bench { nesting, ..bench };
    let (giver, run) = (giver(&bench, &runs), runs.clone());
    let ended = bench.run(async move |tx| {
        run.one_more();
        let put = async |child: &OpenTx| child.put(list, "b", "1").await;
        tx.open_atomic(("b", &LockMode::write()), put).on_abort("remove", "b").await?;
        let scan = async |child: &OpenTx| child.scan(list, Range::all()).await;
        assert_eq!(tx.open_atomic((), scan).await?.len(), 1);
        own(tx, numbers).await
    });
    assert_eq!((ended, giver.join().unwrap(), runs.count()), (Ok(1), Ok(1), 2));
    bench.assert_nothing_is_left();
}

/// It is absent before, and 0 when it was put back: so that is a change.
#[test]
fn what_compensations_have_not_put_back_is_a_change_once() {
    let bench = Bench::new();
    let (numbers, runs) = (bench.numbers, Runs::default());
    let (giver, run) = (giver(&bench, &runs), runs.clone());
    let ended = bench.run(async move |tx| {
        run.one_more();
        add_open(tx, numbers, "a", 5).await?;
        own(tx, numbers).await
    });
    assert_eq!((ended, giver.join().unwrap(), runs.count()), (Ok(1), Ok(1), 3));
    bench.assert_nothing_is_left();
}

/// What several children have read may be more than one transaction can watch.
#[test]
fn what_is_too_large_to_be_watched_is_looked_at_again_and_again() {
    let small = Limits { key_bytes: 1 << 10, value_bytes: 16 << 10, ..Limits::default() };
    let limits = Limits { transaction_bytes: 64 << 10, ..small };
    let bench = Bench::with(Options { limits, ..Options::default() });
    let (numbers, runs) = (bench.numbers, Runs::default());
    let (giver, run) = (giver(&bench, &runs), runs.clone());
    let ended = bench.run(async move |tx| {
        run.one_more();
        for part in 0..4 {
            let keys: Vec<_> = (0..900).map(|key| format!("key {part} {key}")).collect();
            let read = async |child: &OpenTx| {
                child.get_many(numbers, keys.iter().map(String::as_str)).await
            };
            tx.open_atomic((), read).await?;
        }
        own(tx, numbers).await
    });
    assert_eq!((ended, giver.join().unwrap()), (Ok(1), Ok(1)));
    assert!(runs.count() > 2, "it was run {} times", runs.count());
}

/// An open child tries one thing or another, by what knows nothing of open children.
#[test]
fn an_open_child_waits_with_alternatives_that_are_plain() {
    for with_row_locks in [false, true] {
        let bench = Bench::new();
        let (numbers, runs) = (bench.numbers, Runs::default());
        let (giver, run) = (giver(&bench, &runs), runs.clone());
        let ended = bench.run(async move |tx| {
            run.one_more();
            let either = async |child: &OpenTx| -> Result<i64, Error> {
                let plain: &Tx = child;
                let first =
                    async |tx: &Tx| match numbers.typed::<String, i64>().get(tx, "never").await? {
                        None => tx.retry(),
                        Some(number) => Ok(number),
                    };
                let second =
                    async |tx: &Tx| match numbers.typed::<String, i64>().get(tx, "own").await? {
                        None => tx.retry(),
                        Some(number) => Ok(number),
                    };
                plain.or_else(first, second).await
            };
            match with_row_locks {
                true => tx.open_atomic((), either).with_row_locks().await,
                false => tx.open_atomic((), either).await,
            }
        });
        assert_eq!((ended, giver.join().unwrap()), (Ok(1), Ok(1)), "{with_row_locks}");
        bench.assert_nothing_is_left();
    }
}
