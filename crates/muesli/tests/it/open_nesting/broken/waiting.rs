//! Transactions with open children, and open children, that wait for a change: they sleep, and are
//! run again when something has changed that was read.

use std::thread;

use muesli::KeyRange;

use super::*;

/// Protocols that say what has changed.
const PROTOCOLS: [&str; 3] = ["score", "two-phase-commit", "tfa"];

/// Looking every now and then it would be run ten times as often.
const ATTEMPTS_MOST: u32 = 6;

/// Who asks for the retry, and where that was read for which it waits.
#[derive(Clone, Copy, Debug)]
enum Waiter {
    /// The transaction, which has read it itself.
    Itself,
    /// The transaction, for what an open child has read that committed.
    ForItsChild,
    /// The same, of a child that gave up with an error of its own.
    ForAFailedChild,
    /// The same, for a range.
    ForARange,
    /// An open child, for what it has read.
    Child,
    /// An open child, for what an open child of its own has read.
    ChildForItsChild,
}

async fn waits(tx: &OpenTx, numbers: Space, waiter: Waiter) -> Result<i64, Error> {
    let typed = numbers.typed::<String, i64>();
    let or_retry = |tx: &Tx, found: i64| if found == 0 { tx.retry() } else { Ok(found) };
    let own = async |tx: &Tx| {
        let found = typed.get(tx, "own").await?.unwrap_or(0);
        or_retry(tx, found)
    };
    match waiter {
        Waiter::Itself => own(tx).await,
        Waiter::ForItsChild => or_retry(tx, read_open(tx, numbers, "own").await?),
        Waiter::ForAFailedChild => {
            let fails = async |child: &OpenTx| match typed.get(child, "own").await? {
                None => Err(Error::rollback("there is none")),
                Some(found) => Ok(found),
            };
            or_retry(tx, tx.open_atomic((), fails).await.unwrap_or(0))
        }
        Waiter::ForARange => {
            let sum = async |child: &OpenTx| {
                let found = typed.range(child, KeyRange::all()).await?;
                Ok::<_, Error>(found.iter().map(|(_, number)| number).sum())
            };
            or_retry(tx, tx.open_atomic((), sum).await?)
        }
        Waiter::Child => tx.open_atomic((), async |child| own(child).await).await,
        Waiter::ChildForItsChild => {
            let within =
                async |child: &OpenTx| or_retry(child, read_open(child, numbers, "own").await?);
            tx.open_atomic((), within).await
        }
    }
}

#[test]
fn nobody_polls_who_waits_for_a_change() {
    for protocol in PROTOCOLS {
        for waiter in [
            Waiter::Itself,
            Waiter::ForItsChild,
            Waiter::ForAFailedChild,
            Waiter::ForARange,
            Waiter::Child,
            Waiter::ChildForItsChild,
        ] {
            let options = Options { protocol: protocol.to_owned(), ..Options::default() };
            let bench = Bench::with(Options { loops: 2, ..options });
            let (numbers, attempts) = (bench.numbers, Arc::new(AtomicU32::new(0)));
            let (other, seen) = (bench.clone(), attempts.clone());
            let giver = thread::spawn(move || {
                while seen.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(600));
                other.run(async move |tx| add(tx, numbers, "own", 7).await)
            });
            let counted = attempts.clone();
            let ended = bench.run(async move |tx| {
                let count = async |tx: &OpenTx| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    waits(tx, numbers, waiter).await
                };
                match waiter {
                    Waiter::ChildForItsChild => tx.open_atomic((), count).await,
                    _ => count(tx).await,
                }
            });
            assert_eq!((ended, giver.join().unwrap()), (Ok(7), Ok(7)), "{protocol} {waiter:?}");
            let attempts = attempts.load(Ordering::Relaxed);
            assert!(attempts <= ATTEMPTS_MOST, "{protocol} {waiter:?}: {attempts} attempts");
            bench.assert_nothing_is_left();
        }
    }
}

/// An open child waits for what somebody gives who first needs a lock that its transaction holds.
/// How that ended, how often the transaction was run, and the child.
fn waits_under_a_lock(switch: Option<NestingSwitch>) -> (Result<i64, Error>, [u32; 2]) {
    let mut bench = bench_without(switch);
    bench.db = bench.db.timeout(Duration::from_secs(2));
    let numbers = bench.numbers;
    let [roots, children] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let (other, seen) = (bench.clone(), children.clone());
    let giver = thread::spawn(move || {
        while seen.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        other.run(async move |tx| {
            add_open(tx, numbers, "a", 1).await?;
            add(tx, numbers, "own", 7).await
        })
    });
    let (root, child) = (roots.clone(), children.clone());
    let ended = bench.run(async move |tx| {
        root.fetch_add(1, Ordering::Relaxed);
        add_open(tx, numbers, "a", 5).await?;
        let waits = async |tx: &OpenTx| {
            child.fetch_add(1, Ordering::Relaxed);
            waits(tx, numbers, Waiter::Itself).await
        };
        tx.open_atomic((), waits).await
    });
    // Where both wait one of them is first to have no more time.
    let given = giver.join().unwrap();
    assert!(switch.is_some() || given == Ok(7), "{given:?}");
    bench.assert_nothing_is_left();
    (ended, [roots, children].map(|runs| runs.load(Ordering::Relaxed)))
}

#[test]
fn who_waits_in_an_open_child_does_not_sleep_with_locks() {
    let (ended, [roots, children]) = waits_under_a_lock(None);
    assert_eq!(ended, Ok(7));
    assert!((2..=ATTEMPTS_MOST).contains(&roots), "{roots}: undone once, and never polled");
    assert_eq!(children, roots);
    let (ended, [roots, children]) = waits_under_a_lock(Some(NestingSwitch::SleepWithoutLocks));
    let kind = ended.map_err(|error| error.kind());
    assert_eq!((kind, roots, children), (Err(ErrorKind::Timeout), 1, 1));
}

/// Two that wait for each other's step, each in an open child's and its own transaction.
#[test]
fn no_change_is_missed() {
    const ROUNDS: i64 = 100;
    for protocol in PROTOCOLS {
        let options = Options { protocol: protocol.to_owned(), ..Options::default() };
        let bench = Bench::with(Options { loops: 2, ..options });
        let players = [0, 1].map(|player| {
            let bench = Bench { db: bench.db.session(), ..bench.clone() };
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    let numbers = bench.numbers;
                    let moved = bench.run(async move |tx| {
                        // Odd rounds wait in the child, even ones for it.
                        let looks = async |child: &OpenTx| {
                            let typed = numbers.typed::<String, i64>();
                            let step = typed.get(child, "step").await?.unwrap_or(0);
                            let waits = round % 2 == 1 && step != 2 * round + player;
                            if waits { child.retry() } else { Ok::<_, Error>(step) }
                        };
                        match tx.open_atomic((), looks).await? {
                            step if step == 2 * round + player => Ok(()),
                            _ => tx.retry(),
                        }
                    });
                    assert_eq!(moved, Ok(()));
                    let next = bench.run(async move |tx| add(tx, numbers, "step", 1).await);
                    assert_eq!(next, Ok(2 * round + player + 1));
                }
            })
        });
        players.into_iter().for_each(|player| player.join().unwrap());
        assert_eq!(bench.number("step"), 2 * ROUNDS, "{protocol}");
        bench.assert_nothing_is_left();
    }
}
