//! How transactions with open children end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use muesli::blocking::block_on;
use muesli::open_nesting::{NestingSwitch, OpenTx};
use muesli::{Error, ErrorKind, Options, Tx};

use super::{Bench, add, add_open, read_open, serializable};

#[test]
fn children_commit_at_once_and_handlers_run_in_their_order_at_the_end() {
    let bench = Bench::new();
    let (own, numbers) = (bench.clone(), bench.numbers);
    let sum = bench.run(async move |tx| {
        let first = add_open(tx, numbers, "a", 5).await?;
        let read = async |other: &Tx| numbers.typed::<String, i64>().get(other, "a").await;
        assert_eq!(own.db.transact_here(read).await?, Some(5), "others see it");
        let second = add_open(tx, numbers, "b", 7).await?;
        let again = add_open(tx, numbers, "a", 1).await?;
        assert_eq!(again, 6, "children see those before them");
        Ok(first + second)
    });
    assert_eq!(sum, Ok(12));
    assert_eq!((bench.number("a"), bench.number("b")), (6, 7));
    assert_eq!(bench.log(), ["done a", "done b", "done a"]);
    bench.assert_nothing_is_left();
    let counts = bench.nesting.counts();
    assert_eq!((counts.children, counts.commit_handlers, counts.compensations), (3, 3, 0));
}

#[test]
fn an_abort_compensates_newest_first_and_runs_no_commit_handler() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let ended = bench.run(async move |tx| {
        add_open(tx, numbers, "a", 5).await?;
        add_open(tx, numbers, "b", 7).await?;
        add_open(tx, numbers, "a", 1).await?;
        Err::<(), _>(Error::rollback("enough"))
    });
    assert_eq!(ended, Err(Error::rollback("enough")));
    assert_eq!((bench.number("a"), bench.number("b")), (0, 0));
    assert_eq!(bench.log(), ["undo a 1", "undo b 7", "undo a 5"]);
    bench.assert_nothing_is_left();
}

/// The transaction reads a number that somebody changes before it commits, the first time.
fn conflicting(options: Options) -> (Bench, Result<i64, Error>) {
    let bench = Bench::with(options);
    let (own, numbers, attempts) = (bench.clone(), bench.numbers, Arc::new(AtomicU32::new(0)));
    let ended = bench.run(async move |tx| {
        let seen = add(tx, numbers, "own", 1).await?;
        add_open(tx, numbers, "a", 5).await?;
        if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            let other = async |other: &Tx| add(other, numbers, "own", 10).await;
            own.db.transact_here(other).await?;
        }
        Ok(seen)
    });
    (bench, ended)
}

/// What a body returns: something that there is one of, until it is dropped.
struct OnlyOne(Arc<AtomicBool>);

impl OnlyOne {
    fn take(is_taken: &Arc<AtomicBool>) -> OnlyOne {
        let was_taken = is_taken.swap(true, Ordering::Relaxed);
        assert!(!was_taken, "what an attempt before returned that was undone is dropped");
        OnlyOne(is_taken.clone())
    }
}

impl Drop for OnlyOne {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Where an attempt is undone nobody has what its body returned.
#[test]
fn what_the_body_of_an_undone_attempt_returned_is_gone_before_it_runs_again() {
    for level in ["transaction", "open child", "closed child"] {
        let bench = Bench::new();
        let (own, numbers, attempts) = (bench.clone(), bench.numbers, Arc::new(AtomicU32::new(0)));
        let (tried, is_taken) = (attempts.clone(), Arc::<AtomicBool>::default());
        let work = async move |tx: &OpenTx| -> Result<OnlyOne, Error> {
            let only = OnlyOne::take(&is_taken);
            add(tx, numbers, "own", 1).await?;
            if tried.fetch_add(1, Ordering::Relaxed) == 0 {
                let other = async |other: &Tx| add(other, numbers, "own", 10).await;
                own.db.transact_here(other).await?;
            }
            Ok(only)
        };
        let ended = bench.run(async move |tx| match level {
            "transaction" => work(tx).await,
            "open child" => tx.open_atomic((), &work).without_compensation().await,
            _ => {
                let only = tx.nested(&work).await?;
                add(tx, numbers, "other", 1).await?;
                Ok(only)
            }
        });
        assert!(ended.is_ok(), "{level}");
        assert_eq!(attempts.load(Ordering::Relaxed), 2, "{level}");
        assert_eq!(bench.number("own"), 11, "{level}");
    }
}

#[test]
fn a_conflict_of_the_transaction_itself_compensates_and_runs_it_again() {
    let mut tried = Vec::new();
    for protocol in serializable() {
        let options = Options { protocol: protocol.to_string(), ..Options::default() };
        let (bench, ended) = conflicting(options);
        assert_eq!(ended, Ok(11), "{protocol}");
        assert_eq!((bench.number("own"), bench.number("a")), (11, 5), "{protocol}");
        assert_eq!(bench.log(), ["undo a 5", "done a"], "{protocol}");
        bench.assert_nothing_is_left();
        tried.push(protocol);
    }
    assert!(tried.len() > 5, "{tried:?}");
}

#[test]
fn a_transaction_that_only_reads_beside_its_children_is_validated() {
    let bench = Bench::new();
    let (own, numbers, attempts) = (bench.clone(), bench.numbers, Arc::new(AtomicU32::new(0)));
    let ended = bench.run(async move |tx| {
        let seen = numbers.typed::<String, i64>().get(tx, "own").await?.unwrap_or(0);
        add_open(tx, numbers, "a", seen).await?;
        if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            let other = async |other: &Tx| add(other, numbers, "own", 10).await;
            own.db.transact_here(other).await?;
        }
        Ok(seen)
    });
    assert_eq!((ended, bench.number("a")), (Ok(10), 10));
}

#[test]
fn a_transaction_without_children_leaves_nothing() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    assert_eq!(bench.run(async move |tx| add(tx, numbers, "a", 3).await), Ok(3));
    assert_eq!(bench.run(async move |tx| read_open(tx, numbers, "a").await), Ok(3));
    bench.assert_nothing_is_left();
}

#[test]
fn a_dropped_future_is_compensated_in_the_background() {
    let bench = Bench::new();
    let (numbers, db) = (bench.numbers, bench.db.clone());
    let body = async move |tx: &OpenTx| {
        add_open(tx, numbers, "a", 5).await?;
        db.sleep(Duration::from_secs(600)).await
    };
    let mut running = Box::pin(bench.db.transact_nested(&bench.nesting, body));
    block_on(std::future::poll_fn(|cx| {
        let _ = running.as_mut().poll(cx);
        std::task::Poll::Ready(())
    }));
    while bench.number("a") == 0 {
        std::thread::yield_now();
    }
    drop(running);
    while bench.rows().scopes + bench.rows().locks > 0 {
        std::thread::yield_now();
    }
    assert_eq!((bench.number("a"), bench.log().as_slice()), (0, &["undo a 5".to_owned()][..]));
}

#[test]
fn what_cannot_be_compensated_is_said_and_finished_later() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let body = async move |tx: &OpenTx| {
        add_open(tx, numbers, "a", 5).await?;
        Err::<(), _>(Error::rollback("enough"))
    };
    let ended = block_on(bench.db.transact_nested(&bench.bare(), body)).unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Unavailable);
    assert!(ended.to_string().contains("there is no handler `undo`"), "{ended}");
    assert_eq!((bench.rows().scopes, bench.rows().locks, bench.number("a")), (1, 1, 5));
    let finish = bench.nesting.finish_abandoned(&bench.db, Duration::from_millis(1));
    assert_eq!(block_on(finish), Ok(1));
    assert_eq!((bench.rows().scopes, bench.rows().locks, bench.number("a")), (0, 0, 0));
    assert_eq!(block_on(bench.nesting.forget_ends(&bench.db)), Ok(1));
    bench.assert_nothing_is_left();
}

#[test]
fn commit_handlers_that_could_not_be_run_are_run_by_others() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let body = async move |tx: &OpenTx| add_open(tx, numbers, "a", 5).await;
    let ended = block_on(bench.db.transact_nested(&bench.bare(), body));
    assert_eq!(ended, Ok(5), "it has committed");
    assert_eq!((bench.rows().scopes, bench.log().len()), (1, 0));
    // Who asks for its lock finds it stuck.
    assert_eq!(bench.run(async move |tx| add_open(tx, numbers, "a", 1).await), Ok(6));
    assert_eq!(bench.log(), ["done a", "done a"]);
    bench.assert_nothing_is_left();
}

#[test]
fn compensations_in_the_wrong_order_are_seen() {
    let mut bench = Bench::new();
    bench.nesting = bench.nesting.without(NestingSwitch::NewestFirst);
    let numbers = bench.numbers;
    let ended = bench.run(async move |tx| {
        add_open(tx, numbers, "a", 5).await?;
        add_open(tx, numbers, "b", 7).await?;
        Err::<(), _>(Error::rollback("enough"))
    });
    assert!(ended.is_err());
    assert_eq!(bench.log(), ["undo a 5", "undo b 7"]);
}

/// A transaction aborts; while its compensations are at work another one asks for a lock of its.
fn asked_during_compensation(switch: Option<NestingSwitch>) -> Result<i64, Error> {
    let mut bench = Bench::with(Options { repositories: 2, loops: 2, ..Options::default() });
    let (waits, goes_on) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let (flags, db) = ((waits.clone(), goes_on.clone()), bench.db.clone());
    bench.nesting =
        bench.nesting.patience(Duration::from_secs(60)).handler("wait", move |_, (): ()| {
            let ((waits, goes_on), db) = (flags.clone(), db.clone());
            Box::pin(async move {
                waits.store(true, Ordering::Relaxed);
                while !goes_on.load(Ordering::Relaxed) {
                    db.sleep(Duration::from_millis(1)).await?;
                }
                Ok(())
            })
        });
    if let Some(switch) = switch {
        bench.nesting = bench.nesting.without(switch);
    }
    let (own, numbers) = (bench.clone(), bench.numbers);
    let aborting = std::thread::spawn(move || {
        own.run(async move |tx| {
            add_open(tx, numbers, "a", 5).await?;
            tx.open_atomic((), async |_| Ok::<_, Error>(())).on_abort("wait", &()).await?;
            Err::<(), _>(Error::rollback("enough"))
        })
    });
    while !waits.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let hurried = bench.db.session().timeout(Duration::from_millis(30));
    let read = async move |tx: &OpenTx| read_open(tx, numbers, "a").await;
    let got = block_on(hurried.transact_nested(&bench.nesting, read));
    goes_on.store(true, Ordering::Relaxed);
    assert_eq!(aborting.join().unwrap(), Err(Error::rollback("enough")));
    assert_eq!(bench.run(async move |tx| read_open(tx, numbers, "a").await), Ok(0));
    bench.assert_nothing_is_left();
    got
}

#[test]
fn locks_go_after_the_last_compensation() {
    let got = asked_during_compensation(None).unwrap_err();
    assert_eq!(got.kind(), ErrorKind::Timeout);
    let got = asked_during_compensation(Some(NestingSwitch::ReleaseLast));
    assert_eq!(got, Ok(5), "it sees what is about to be undone");
}
