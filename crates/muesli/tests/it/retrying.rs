//! Transactions that wait for a change of what they have read: who is woken, and that nobody is
//! forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use muesli::blocking::block_on;
use muesli::structures::{BlockingQueue, Semaphore, TakenWork, WorkList};
use muesli::{Db, Error, Options, Space, SpaceOptions, Tx, WaitLimit};

/// Protocols that tell of changes, one of them with reads at no snapshot, and one whose keys move.
const PROTOCOLS: [&str; 10] = [
    "score",
    "two-phase-commit",
    "tfa",
    "gmu",
    "repeatable-read-at-commit",
    "granola",
    "sinfonia",
    "hierarchy",
    "bumper",
    "alvin",
];

fn open(protocol: &str) -> Db {
    let options = Options { protocol: protocol.to_owned(), loops: 2, ..Options::default() };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

fn space(db: &Db) -> Space {
    db.space("s").unwrap()
}

/// A body that has asked to wait sleeps until what it has read changes, and runs no more often.
#[test]
fn who_waits_is_run_when_something_has_changed_and_no_sooner() {
    for protocol in PROTOCOLS {
        for read_only in [false, true] {
            // What `repeatable-read` does not validate it keeps a note of, whoever reads.
            let before = if read_only { 2 } else { 1 };
            let db = open(protocol);
            let all = space(&db);
            let runs = Arc::new(AtomicU32::new(0));
            let counted = runs.clone();
            let waits = async move |tx: &muesli::Tx| {
                counted.fetch_add(1, Ordering::Relaxed);
                match tx.get(all, "k").await? {
                    None => tx.retry(),
                    Some(value) => Ok::<_, Error>(value),
                }
            };
            let reader = if read_only { db.read_only() } else { db.clone() };
            let waiting = thread::spawn(move || reader.blocking().transact(waits));
            while runs.load(Ordering::Relaxed) < before {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(80)); // Eight pauses.
            db.blocking().transact(async move |tx| tx.put(all, "k", "v").await).unwrap();
            assert_eq!(waiting.join().unwrap().unwrap().as_ref(), b"v", "{protocol}");
            assert_eq!(runs.load(Ordering::Relaxed), before + 1, "{protocol}, {read_only}");
        }
    }
}

/// Two queues with room for one item: each side sleeps for the other one, again and again.
#[test]
fn no_change_is_missed() {
    for protocol in PROTOCOLS.into_iter().filter(|it| !it.starts_with("repeatable")) {
        let db = open(protocol);
        let (there, back) = (
            BlockingQueue::<u32>::new(space(&db), "there", 1),
            BlockingQueue::<u32>::new(space(&db), "back", 1),
        );
        let echo = {
            let (db, there, back) = (db.clone(), there.clone(), back.clone());
            thread::spawn(move || {
                for round in 0..200 {
                    let (there, back) = (there.clone(), back.clone());
                    let taken = db.blocking().transact(async move |tx| there.take(tx).await);
                    assert_eq!(taken.unwrap(), round);
                    db.blocking().transact(async move |tx| back.put(tx, &round).await).unwrap();
                }
            })
        };
        for round in 0..200 {
            let (there, back) = (there.clone(), back.clone());
            db.blocking().transact(async move |tx| there.put(tx, &round).await).unwrap();
            let taken = db.blocking().transact(async move |tx| back.take(tx).await);
            assert_eq!(taken.unwrap(), round, "{protocol}");
        }
        echo.join().unwrap();
    }
}

#[test]
fn the_alternative_is_taken_and_what_was_given_up_is_undone() {
    let db = open("score");
    let (first, second) = (
        BlockingQueue::<u32>::new(space(&db), "first", 9),
        BlockingQueue::<u32>::new(space(&db), "second", 9),
    );
    let queue = second.clone();
    db.blocking().transact(async move |tx| queue.put(tx, &2).await).unwrap();
    let either = {
        let (first, second) = (first.clone(), second.clone());
        move |db: &Db| {
            let (first, second, space) = (first.clone(), second.clone(), space(db));
            db.blocking().transact(async move |tx| {
                let of_first = async |tx: &muesli::Tx| {
                    tx.put(space, "note", "first").await?;
                    first.take(tx).await
                };
                tx.or_else(of_first, async |tx: &muesli::Tx| second.take(tx).await).await
            })
        }
    };
    assert_eq!(either(&db), Ok(2));
    let all = space(&db);
    let note = db.blocking().transact(async move |tx| tx.get(all, "note").await);
    assert_eq!(note, Ok(None), "it was undone");
    // Both are empty: whichever gets something wakes it.
    let waiting = {
        let (db, either) = (db.clone(), either.clone());
        thread::spawn(move || either(&db))
    };
    thread::sleep(Duration::from_millis(20));
    db.blocking().transact(async move |tx| first.put(tx, &1).await).unwrap();
    assert_eq!(waiting.join().unwrap(), Ok(1));
}

/// Under protocols of each family: the first alternative has its time, and then it is the next
/// one's turn, whatever has woken the transaction meanwhile.
#[test]
fn an_alternative_waits_within_its_limit() {
    for protocol in ["score", "tfa", "granola", "gmu", "two-phase-commit"] {
        let db = open(protocol);
        let (queue, all) = (BlockingQueue::<u32>::new(space(&db), "queue", 9), space(&db));
        let runs = Arc::new(AtomicU32::new(0));
        let take = |after: u64| {
            let (db, queue, runs) = (db.clone(), queue.clone(), runs.clone());
            let limit = WaitLimit::new(Duration::from_millis(after));
            thread::spawn(move || {
                db.blocking().transact(async move |tx| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    tx.get(all, "other").await?;
                    let first = async |tx: &Tx| queue.take(tx).await.map(Some);
                    tx.or_else_within(&limit, first, async |_: &Tx| Ok(None)).await
                })
            })
        };
        let begun = Instant::now();
        assert_eq!(take(60).join().unwrap(), Ok(None), "{protocol}");
        assert!(begun.elapsed() >= Duration::from_millis(60), "{protocol}");
        assert_eq!(runs.load(Ordering::Relaxed), 2, "{protocol}: nothing has changed");
        // Woken before by something else, it has the rest of its time.
        let (begun, waiting) = (Instant::now(), take(120));
        thread::sleep(Duration::from_millis(70));
        db.blocking().transact(async move |tx| tx.put(all, "other", "x").await).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(None), "{protocol}");
        let took = begun.elapsed();
        assert!((120..1_000).contains(&(took.as_millis() as u64)), "{protocol}: {took:?}");
        // What it waits for comes in time.
        let waiting = take(60_000);
        thread::sleep(Duration::from_millis(20));
        let there = queue.clone();
        db.blocking().transact(async move |tx| there.put(tx, &7).await).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(Some(7)), "{protocol}");
    }
}

/// Each of several has its own time, the last one that of the transaction; and who waits around an
/// alternative is woken when that one's time is over.
#[test]
fn limits_of_several_alternatives_end_one_after_the_other() {
    let db = open("score");
    let all = space(&db);
    let limits = [20, 60].map(|after| WaitLimit::new(Duration::from_millis(after)));
    let tried = Arc::new(AtomicU32::new(0));
    let (counted, [soon, longer]) = (tried.clone(), limits);
    let chain = async move |tx: &Tx| {
        let gives_up = async |tx: &Tx| {
            tx.get(all, "k").await?;
            tx.retry::<()>()
        };
        let second = async |tx: &Tx| {
            let last = async |tx: &Tx| {
                counted.fetch_add(1, Ordering::Relaxed);
                gives_up(tx).await
            };
            tx.or_else_within(&longer, gives_up, last).await
        };
        tx.or_else_within(&soon, gives_up, second).await
    };
    let ended = db.timeout(Duration::from_millis(150)).blocking().transact(chain);
    assert_eq!(ended, Err(Error::TransactionTimeout { after_ms: 150 }));
    assert_eq!(tried.load(Ordering::Relaxed), 1, "it sleeps until the transaction's time is over");
    let limit = WaitLimit::new(Duration::from_millis(30));
    let around = async move |tx: &Tx| {
        let gives_up = async |tx: &Tx| {
            tx.get(all, "k").await?;
            tx.retry::<u32>()
        };
        let limited =
            async |tx: &Tx| tx.or_else_within(&limit, gives_up, async |_: &Tx| Ok(1)).await;
        tx.or_else(limited, gives_up).await
    };
    assert_eq!(db.blocking().transact(around), Ok(1));
}

#[test]
fn who_waits_for_too_long_is_told_and_a_range_wakes_too() {
    let db = open("score");
    let short = db.timeout(Duration::from_millis(30));
    let all = space(&db);
    let waits = async move |tx: &muesli::Tx| match tx.scan(all, muesli::Range::prefix("k")).await? {
        rows if rows.is_empty() => tx.retry(),
        rows => Ok::<_, Error>(rows.len()),
    };
    let given_up = short.blocking().transact(waits);
    assert_eq!(given_up, Err(Error::TransactionTimeout { after_ms: 30 }));
    let waiting = {
        let db = db.clone();
        thread::spawn(move || db.blocking().transact(waits))
    };
    thread::sleep(Duration::from_millis(20));
    db.blocking().transact(async move |tx| tx.put(all, "k1", "v").await).unwrap();
    assert_eq!(waiting.join().unwrap(), Ok(1));
}

/// A range is watched as its keys are: what is inserted, overwritten and deleted in it wakes, what
/// is written beside it does not.
#[test]
fn changes_of_a_range_wake_and_others_do_not() {
    for protocol in PROTOCOLS.into_iter().chain(["repeatable-read"]) {
        let db = open(protocol);
        let all = space(&db);
        let put = |key: &'static str, value: &'static str| {
            db.blocking().transact(async move |tx| tx.put(all, key, value).await).unwrap();
        };
        put("k1", "old");
        put("k3", "old");
        let changes = [("k2", Some("new")), ("k1", Some("new")), ("k3", None)];
        for change in changes {
            let rows_of = async move |tx: &muesli::Tx| {
                let rows = tx.scan(all, muesli::Range::prefix("k")).await?;
                Ok::<_, Error>(rows.into_iter().collect::<Vec<_>>())
            };
            let before = db.blocking().transact(rows_of).unwrap();
            let runs = Arc::new(AtomicU32::new(0));
            let counted = runs.clone();
            let waits = async move |tx: &muesli::Tx| {
                counted.fetch_add(1, Ordering::Relaxed);
                match rows_of(tx).await? {
                    rows if rows == before => tx.retry(),
                    _ => Ok::<_, Error>(()),
                }
            };
            let waiting = {
                let db = db.clone();
                thread::spawn(move || db.blocking().transact(waits))
            };
            while runs.load(Ordering::Relaxed) < 1 {
                thread::yield_now();
            }
            put("beside", "v");
            thread::sleep(Duration::from_millis(80)); // Eight pauses.
            let slept = runs.load(Ordering::Relaxed);
            match change {
                (key, Some(value)) => put(key, value),
                (key, None) => {
                    db.blocking().transact(async move |tx| tx.delete(all, key).await).unwrap();
                }
            }
            waiting.join().unwrap().unwrap();
            assert_eq!(slept, 1, "{protocol}, {change:?} is yet to come");
            assert_eq!(runs.load(Ordering::Relaxed), 2, "{protocol}, {change:?}");
        }
    }
}

#[test]
fn permits_are_waited_for_and_work_is_done_by_all() {
    let db = open("two-phase-commit");
    let (permits, work) =
        (Semaphore::new(space(&db), "permits", 2), WorkList::<u32>::new(space(&db), "work"));
    let first = work.clone();
    db.blocking().transact(async move |tx| first.add(tx, &6).await).unwrap();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let (db, permits, work) = (db.clone(), permits.clone(), work.clone());
            thread::spawn(move || {
                let mut done = 0;
                loop {
                    let (p, w) = (permits.clone(), work.clone());
                    let item = db.blocking().transact(async move |tx| {
                        p.acquire(tx, 1).await?;
                        let item = w.take(tx).await?;
                        if item.is_none() {
                            p.release(tx, 1).await?;
                        }
                        Ok::<_, Error>(item)
                    });
                    let Some(taken) = item.unwrap() else { return done };
                    done += 1;
                    let (p, w) = (permits.clone(), work.clone());
                    let finished = db.blocking().transact(async move |tx| {
                        for smaller in 0..taken.item {
                            w.add(tx, &smaller).await?;
                        }
                        w.finish(tx, &taken).await?;
                        p.release(tx, 1).await
                    });
                    finished.unwrap();
                }
            })
        })
        .collect();
    let done: u32 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    assert_eq!(done, 64, "an item of n leads to all that are smaller");
    let left = db.blocking().transact(async move |tx| permits.available(tx).await);
    assert_eq!(left, Ok(2));
}

#[test]
fn what_a_dead_worker_had_is_given_back_and_a_late_one_cannot_finish_it() {
    const PATIENCE: Duration = Duration::from_millis(100);
    for protocol in ["score", "granola"] {
        let db = open(protocol);
        let work = WorkList::<u32>::new(space(&db), "work");
        let first = work.clone();
        let add = async move |tx: &muesli::Tx| {
            for item in [1, 2] {
                first.add(tx, &item).await?;
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(add).unwrap();
        let take = |db: &Db| {
            let work = work.clone();
            db.blocking().transact(async move |tx| work.take(tx).await)
        };
        let finish = |taken: &TakenWork<u32>| {
            let (work, taken) = (work.clone(), taken.clone());
            let space = space(&db);
            db.blocking().transact(async move |tx| {
                tx.put(space, "done by", "someone").await?;
                work.finish(tx, &taken).await
            })
        };
        let (dead, slow) = (take(&db).unwrap().unwrap(), take(&db).unwrap().unwrap());
        assert_eq!((dead.item, slow.item), (1, 2), "{protocol}");
        let waits = take(&db.timeout(Duration::from_millis(30)));
        assert_eq!(waits, Err(Error::TransactionTimeout { after_ms: 30 }), "{protocol}");
        // Somebody waits for what is given back, and the slow one says that it is at work.
        let waiting = {
            let (db, work) = (db.clone(), work.clone());
            thread::spawn(move || db.blocking().transact(async move |tx| work.take(tx).await))
        };
        let looking_on = {
            let (db, work) = (db.clone(), work.clone());
            thread::spawn(move || block_on(work.give_back_after(&db, PATIENCE)))
        };
        thread::sleep(PATIENCE / 2);
        let (extended, taken) = (work.clone(), slow.clone());
        let extend = async move |tx: &muesli::Tx| extended.extend(tx, &taken).await;
        db.blocking().transact(extend).unwrap();
        assert_eq!(looking_on.join().unwrap(), Ok(1), "{protocol}");
        let again = waiting.join().unwrap().unwrap().unwrap();
        assert_eq!(again.item, 1, "{protocol}");
        let late = finish(&dead);
        assert!(matches!(&late, Err(Error::Rollback(why)) if why.contains("given back")));
        let all = space(&db);
        let note = db.blocking().transact(async move |tx| tx.get(all, "done by").await);
        assert_eq!(note, Ok(None), "{protocol}: what the late one did has not stayed");
        finish(&again).unwrap();
        finish(&slow).unwrap();
        assert!(finish(&slow).is_err(), "once");
        assert_eq!(take(&db), Ok(None), "{protocol}: all is done");
        assert_eq!(block_on(work.give_back_after(&db, PATIENCE)), Ok(0));
    }
}
