//! Rules of the layer that are broken on purpose, and what is seen then.

mod reading;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use muesli::open_nesting::NestingSwitch;
use muesli::{ErrorKind, Retry};

use super::*;

fn bench_without(switch: Option<NestingSwitch>) -> Bench {
    let mut bench = Bench::with(Options { repositories: 2, loops: 2, ..Options::default() });
    let patient = bench.nesting.patience(Duration::from_secs(60));
    bench.nesting = switch.into_iter().fold(patient, OpenNesting::without);
    bench
}

/// A child is refused its lock so often, and its transaction still has not given its own back.
const REFUSED_MOST: u32 = 40;

/// Two transactions that hold a lock each ask for that of the other one; how they end.
fn crossed(switch: Option<NestingSwitch>) -> [Result<(), Error>; 2] {
    let (bench, holding) = (bench_without(switch), Arc::new(AtomicU32::new(0)));
    let threads = [["a", "b"], ["b", "a"]].map(|[own, other]| {
        let (bench, holding) = (bench.clone(), holding.clone());
        std::thread::spawn(move || {
            let db = bench.db.clone();
            bench.run(async move |tx| {
                let nothing = async |_: &OpenTx| Ok::<_, Error>(());
                tx.open_atomic((own, &LockMode::write()), nothing).await?;
                holding.fetch_add(1, Ordering::Relaxed);
                while holding.load(Ordering::Relaxed) < 2 {
                    db.sleep(Duration::from_millis(1)).await?;
                }
                let tried = AtomicU32::new(0);
                let asks = async |_: &OpenTx| match tried.fetch_add(1, Ordering::Relaxed) {
                    REFUSED_MOST => Err(Error::rollback("stuck")),
                    _ => Ok(()),
                };
                tx.open_atomic((other, &LockMode::write()), asks).await
            })
        })
    });
    let ends = threads.map(|thread| thread.join().unwrap());
    bench.assert_nothing_is_left();
    ends
}

#[test]
fn who_is_refused_gives_back_more_than_the_child() {
    assert_eq!(crossed(None), [Ok(()), Ok(())]);
    let ends = crossed(Some(NestingSwitch::GiveBackLocks));
    assert!(ends.contains(&Err(Error::rollback("stuck"))), "{ends:?}");
}

/// A transaction reads a number and an open child adds that to another one; the first time somebody
/// changes the first number before the commit. What it read, and what both are then.
fn reads_beside_its_child(switch: Option<NestingSwitch>) -> (Result<i64, Error>, [i64; 2]) {
    let bench = bench_without(switch);
    let (own, numbers, attempts) = (bench.clone(), bench.numbers, Arc::new(AtomicU32::new(0)));
    let ended = bench.run(async move |tx| {
        let seen = numbers.typed::<String, i64>().get(tx, "own").await?.unwrap_or(0);
        add_open(tx, numbers, "a", seen + 1).await?;
        if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            let other = async |other: &Tx| add(other, numbers, "own", 10).await;
            own.db.transact_here(other).await?;
        }
        Ok(seen)
    });
    bench.assert_nothing_is_left();
    (ended, ["own", "a"].map(|key| bench.number(key)))
}

#[test]
fn a_transaction_is_validated_that_only_reads_beside_its_children() {
    assert_eq!(reads_beside_its_child(None), (Ok(10), [10, 11]));
    let broken = reads_beside_its_child(Some(NestingSwitch::ValidateRoot));
    assert_eq!(broken, (Ok(0), [10, 1]), "what it goes by was overwritten");
}

#[test]
fn a_transaction_whose_commit_failed_does_not_return_as_if_it_had_not() {
    assert_eq!(reads_beside_its_child(None), (Ok(10), [10, 11]));
    let broken = reads_beside_its_child(Some(NestingSwitch::TellFailedCommit));
    assert_eq!(broken, (Ok(0), [10, 0]), "its child is undone, and its caller does not know");
}

#[test]
fn a_compensation_is_run_once() {
    for (switch, left) in [(None, 0), (Some(NestingSwitch::CompensateOnce), -5)] {
        let bench = bench_without(switch);
        let numbers = bench.numbers;
        let ended = bench.run(async move |tx| {
            add_open(tx, numbers, "a", 5).await?;
            Err::<(), _>(Error::rollback("enough"))
        });
        assert!(ended.is_err());
        assert_eq!(bench.number("a"), left, "{switch:?}");
    }
}

/// What an open child and a later one of the same transaction read, between which somebody else
/// adds to the number if that takes no longer than a while.
fn reads_twice(switch: Option<NestingSwitch>) -> Result<(i64, i64), Error> {
    let bench = bench_without(switch);
    let (own, numbers) = (bench.clone(), bench.numbers);
    bench.run(async move |tx| {
        let first = read_open(tx, numbers, "a").await?;
        let hurried = own.db.session().timeout(Duration::from_millis(30));
        let adds = async |tx: &OpenTx| add_open(tx, numbers, "a", 5).await;
        drop(hurried.transact_nested_here(&own.nesting, adds).await);
        Ok((first, read_open(tx, numbers, "a").await?))
    })
}

#[test]
fn a_child_that_only_looks_takes_a_lock() {
    assert_eq!(reads_twice(None), Ok((0, 0)));
    assert_eq!(reads_twice(Some(NestingSwitch::LockReads)), Ok((0, 5)));
}

/// What a transaction does whose levels use one key, where nothing looks at that.
async fn mixed(tx: &OpenTx, numbers: Space, case: &str) -> Result<i64, Error> {
    let typed = numbers.typed::<String, i64>();
    match case {
        "a child writes what its transaction has read" => {
            typed.get(tx, "a").await?;
            add_open(tx, numbers, "a", 1).await
        }
        "a child reads what its transaction has written" => {
            typed.put(tx, "a", &1).await?;
            read_open(tx, numbers, "a").await
        }
        "the transaction reads what its child has written" => {
            typed.get(tx, "own").await?; // Its snapshot is from now.
            add_open(tx, numbers, "a", 1).await?;
            Ok(typed.get(tx, "a").await?.unwrap_or(0))
        }
        case => panic!("{case}"),
    }
}

/// Where levels use the same keys, and nobody looks, a transaction conflicts with itself for ever,
/// or does not see what it has written.
#[test]
fn levels_that_are_not_separate_are_noticed() {
    for (case, self_conflict) in [
        ("a child writes what its transaction has read", true),
        ("a child reads what its transaction has written", false),
        ("the transaction reads what its child has written", true),
    ] {
        for switch in [None, Some(NestingSwitch::SeparateLevels)] {
            let retry = Retry { attempts: 5, ..Retry::default() };
            let mut bench = Bench::with(Options { retry, ..Options::default() });
            bench.nesting = switch.into_iter().fold(bench.nesting, OpenNesting::without);
            let (numbers, attempts) = (bench.numbers, Arc::new(AtomicU32::new(0)));
            let counted = attempts.clone();
            let ended = bench.run(async move |tx| {
                counted.fetch_add(1, Ordering::Relaxed);
                mixed(tx, numbers, case).await
            });
            let tried = attempts.load(Ordering::Relaxed);
            match (switch, self_conflict) {
                (None, _) => {
                    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Misuse, "{case}");
                    assert_eq!(tried, 1, "{case}");
                }
                (Some(_), true) => {
                    let error = ended.unwrap_err();
                    assert!(matches!(error, Error::Conflict { .. }), "{case}: {error}");
                    assert_eq!((tried, bench.number("a")), (5, 0), "{case}");
                }
                (Some(_), false) => assert_eq!(ended, Ok(0), "{case}: it wrote 1"),
            }
            bench.assert_nothing_is_left();
        }
    }
}
