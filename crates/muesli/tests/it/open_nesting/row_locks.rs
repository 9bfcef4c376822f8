//! Open children that lock the rows which they use: they are isolated until their transaction
//! ends, and what they wrote is put back.

mod limits;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use muesli::ErrorKind;
use muesli::nesting_choice::NestingChoice;
use muesli::open_nesting::NestingSwitch;

use super::*;

/// A bench whose transactions nobody takes for abandoned, with a space whose ranges are read.
fn patient() -> Bench {
    let ordered = SpaceOptions { index: Index::Ordered, ..SpaceOptions::default() };
    let hashed = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let options = Options::default().space("ordered", ordered).space("hashed", hashed);
    let mut bench = Bench::with(options);
    bench.nesting = bench.bare().patience(Duration::from_secs(60));
    bench
}

fn set(bench: &Bench, rows: &'static [(&'static str, i64)]) {
    let numbers = bench.numbers.typed::<String, i64>();
    let write = async move |tx: &Tx| {
        for (key, value) in rows {
            numbers.put(tx, *key, value).await?;
        }
        Ok::<_, Error>(())
    };
    bench.db.blocking().transact(write).unwrap();
}

/// The rows of the numbers, absent ones too.
fn rows(bench: &Bench, keys: &'static [&'static str]) -> Vec<Option<i64>> {
    let numbers = bench.numbers.typed::<String, i64>();
    let read = async move |tx: &Tx| {
        let mut rows = Vec::new();
        for key in keys {
            rows.push(numbers.get(tx, *key).await?);
        }
        Ok::<_, Error>(rows)
    };
    bench.db.blocking().transact(read).unwrap()
}

/// Who could not be certain leaves that a scope has ended, and nothing else.
fn assert_nothing_is_held(bench: &Bench) {
    assert_eq!(NestingRows { ends: 0, ..bench.rows() }, NestingRows::default());
}

/// Adds one to a number in an open child.
async fn count_up(tx: &OpenTx, numbers: Space, key: &'static str) -> Result<i64, Error> {
    tx.open_atomic((), async |child| add(child, numbers, key, 1).await).with_row_locks().await
}

/// What another transaction gets, that waits for no lock for long, while one is at its end.
fn beside<T: Send + 'static>(
    bench: &Bench,
    first: impl AsyncFn(&OpenTx) -> Result<(), Error> + Send + 'static,
    second: impl AsyncFn(&OpenTx) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let own = bench.clone();
    let both = bench.run(async move |tx| {
        first(tx).await?;
        let db = own.db.session().timeout(Duration::from_millis(10));
        Ok(db.transact_nested_here(&own.nesting, async |tx| second(tx).await).await)
    });
    bench.assert_nothing_is_left();
    both.unwrap()
}

#[test]
fn what_they_wrote_is_put_back_newest_first_and_what_they_read_is_left() {
    let bench = patient();
    set(&bench, &[("a", 1), ("b", 2), ("read", 9)]);
    let numbers = bench.numbers;
    let ended = bench.run(async move |tx| {
        let typed = numbers.typed::<String, i64>();
        let first = async |child: &OpenTx| {
            add(child, numbers, "a", 10).await?;
            typed.put(child, "new", &typed.get(child, "read").await?.unwrap()).await?;
            typed.delete(child, "b").await?; // Without having read it.
            typed.put(child, "blind", &5).await?;
            typed.put(child, "blind", &6).await
        };
        tx.open_atomic((), first).with_row_locks().await?;
        assert_eq!(count_up(tx, numbers, "a").await?, 12, "what the first one left");
        Err::<(), _>(Error::rollback("enough"))
    });
    assert_eq!(ended, Err(Error::rollback("enough")));
    let keys = &["a", "b", "read", "new", "blind"];
    assert_eq!(rows(&bench, keys), [Some(1), Some(2), Some(9), None, None]);
    assert_eq!(bench.nesting.counts().compensations, 2);
    bench.assert_nothing_is_left();
}

#[test]
fn what_they_wrote_stays_where_the_transaction_commits() {
    let bench = patient();
    let numbers = bench.numbers;
    let sum = bench.run(async move |tx| {
        count_up(tx, numbers, "a").await?;
        count_up(tx, numbers, "a").await
    });
    assert_eq!((sum, bench.number("a")), (Ok(2), 2));
    bench.assert_nothing_is_left();
}

/// The rows that one has used, and what another one then may do.
#[test]
fn others_who_lock_rows_wait_for_what_was_written_and_may_read_what_was_read() {
    let bench = patient();
    let numbers = bench.numbers;
    let wrote = async move |tx: &OpenTx| count_up(tx, numbers, "a").await.map(drop);
    let read = async move |tx: &OpenTx| {
        let look = async |child: &OpenTx| numbers.typed::<String, i64>().get(child, "a").await;
        tx.open_atomic((), look).with_row_locks().await.map(drop)
    };
    let other = async move |tx: &OpenTx| count_up(tx, numbers, "b").await.map(drop);
    let kind = |got: Result<(), Error>| got.map_err(|error| error.kind());
    assert_eq!(kind(beside(&bench, wrote, wrote)), Err(ErrorKind::Timeout));
    assert_eq!(kind(beside(&bench, wrote, read)), Err(ErrorKind::Timeout));
    assert_eq!(kind(beside(&bench, read, wrote)), Err(ErrorKind::Timeout));
    assert_eq!(kind(beside(&bench, read, read)), Ok(()));
    assert_eq!(kind(beside(&bench, wrote, other)), Ok(()));
    let careless =
        Bench { nesting: bench.nesting.clone().without(NestingSwitch::LockReads), ..bench };
    assert_eq!(kind(beside(&careless, read, wrote)), Ok(()), "what it goes by is overwritten");
}

#[test]
fn a_read_only_transaction_looks_whether_rows_are_locked() {
    let bench = patient();
    let (own, numbers) = (bench.clone(), bench.numbers);
    let (locked, free) = bench
        .run(async move |tx| {
            count_up(tx, numbers, "a").await?;
            let db = own.db.session().read_only().timeout(Duration::from_millis(10));
            let look = async |key: &'static str| {
                let body = async |tx: &OpenTx| {
                    let look =
                        async |child: &OpenTx| numbers.typed::<String, i64>().get(child, key).await;
                    tx.open_atomic((), look).with_row_locks().await
                };
                db.transact_nested_here(&own.nesting, body).await
            };
            Ok((look("a").await, look("b").await))
        })
        .unwrap();
    assert_eq!((locked.map_err(|it| it.kind()), free), (Err(ErrorKind::Timeout), Ok(None)));
}

/// How many rows a space has, twice in one transaction, between which somebody else adds one if
/// that can be done.
fn counts_twice(bench: &Bench) -> (usize, usize) {
    let (own, ordered) = (bench.clone(), bench.db.space("ordered").unwrap());
    let ended = bench.run(async move |tx| {
        let count = async || {
            let scan = async |child: &OpenTx| child.scan(ordered, muesli::Range::all()).await;
            tx.open_atomic((), scan).with_row_locks().await.map(|rows| rows.len())
        };
        let first = count().await?;
        let db = own.db.session().timeout(Duration::from_millis(10));
        let insert = async |tx: &OpenTx| {
            let put = async |child: &OpenTx| child.put(ordered, "new", "row").await;
            tx.open_atomic((), put).with_row_locks().await
        };
        let inserted = db.transact_nested_here(&own.nesting, insert).await;
        assert!(inserted.is_ok() || inserted.unwrap_err().kind() == ErrorKind::Timeout);
        Ok((first, count().await?))
    });
    bench.assert_nothing_is_left();
    ended.unwrap()
}

#[test]
fn ranges_are_locked_against_rows_that_are_not_there() {
    let bench = patient();
    assert_eq!(counts_twice(&bench), (0, 0));
    let careless = bench.nesting.clone().without(NestingSwitch::LockRanges);
    assert_eq!(counts_twice(&Bench { nesting: careless, ..bench }), (0, 1), "a phantom");
}

#[test]
fn rows_that_a_range_has_shown_are_put_back() {
    let bench = patient();
    let ordered = bench.db.space("ordered").unwrap();
    let write = async move |tx: &Tx| tx.put(ordered, "a", "before").await;
    bench.db.blocking().transact(write).unwrap();
    let ended = bench.run(async move |tx| {
        let change = async |child: &OpenTx| {
            for (key, _) in child.scan(ordered, muesli::Range::all()).await? {
                child.delete(ordered, key).await?;
            }
            child.put(ordered, "b", "new").await
        };
        tx.open_atomic((), change).with_row_locks().await?;
        Err::<(), _>(Error::rollback("enough"))
    });
    assert!(ended.is_err());
    let all = bench
        .db
        .blocking()
        .transact(async move |tx| tx.scan(ordered, muesli::Range::all()).await)
        .unwrap();
    assert_eq!(all, [("a".into(), "before".into())]);
    bench.assert_nothing_is_left();
}

/// What a closed child within it wrote is of the child if it is merged, and of nobody if not: with
/// those of open nesting, and with those that know nothing of it.
#[test]
fn what_closed_children_of_theirs_wrote_is_put_back() {
    for is_plain in [false, true] {
        let bench = patient();
        set(&bench, &[("a", 1), ("b", 2), ("c", 3)]);
        let numbers = bench.numbers;
        let ended = bench.run(async move |tx| {
            let change = async |child: &OpenTx| {
                let typed = numbers.typed::<String, i64>();
                let merged = async |part: &Tx| typed.put(part, "a", &5).await;
                let undone = async |part: &Tx| {
                    typed.put(part, "b", &5).await?;
                    typed.put(part, "c", &5).await?;
                    Err::<(), _>(Error::rollback("not this"))
                };
                let plain: &Tx = child;
                let failed = match is_plain {
                    true => {
                        plain.nested(&merged).await?;
                        plain.nested(&undone).await
                    }
                    false => {
                        child.nested(async |part: &OpenTx| merged(part).await).await?;
                        child.nested(async |part: &OpenTx| undone(part).await).await
                    }
                };
                assert_eq!(failed, Err(Error::rollback("not this")));
                typed.put(child, "b", &6).await
            };
            tx.open_atomic((), change).with_row_locks().await?;
            Err::<(), _>(Error::rollback("enough"))
        });
        assert_eq!(ended, Err(Error::rollback("enough")));
        assert_eq!(rows(&bench, &["a", "b", "c"]), [Some(1), Some(2), Some(3)], "{is_plain}");
        bench.assert_nothing_is_left();
    }
}

/// What was read to find that something cannot be done is kept from others, too.
#[test]
fn what_a_closed_child_has_read_that_gave_up_stays_locked() {
    let bench = patient();
    set(&bench, &[("a", 1)]);
    let numbers = bench.numbers;
    let first = async move |tx: &OpenTx| {
        let looks = async |child: &OpenTx| {
            let part = child.nested(async |part: &OpenTx| {
                numbers.typed::<String, i64>().get(part, "a").await?;
                Err::<(), _>(Error::rollback("too little"))
            });
            assert_eq!(part.await, Err(Error::rollback("too little")));
            Ok(())
        };
        tx.open_atomic((), looks).with_row_locks().await
    };
    let second = async move |tx: &OpenTx| count_up(tx, numbers, "a").await;
    let got = beside(&bench, first, second);
    assert_eq!(got.map_err(|error| error.kind()), Err(ErrorKind::Timeout));
}

/// Where it is chosen that there are no open children, rows are as locked to those who have none.
#[test]
fn parts_in_place_of_them_look_whether_rows_are_locked() {
    let bench = patient();
    let (own, numbers) = (bench.clone(), bench.numbers);
    let (locked, free) = bench
        .run(async move |tx| {
            count_up(tx, numbers, "a").await?;
            let chosen = own.db.session().choosing(&NestingChoice::new());
            let db = chosen.timeout(Duration::from_millis(10));
            let adds = async |key: &'static str| {
                let body = async |tx: &OpenTx| {
                    // An action beside them is nobody's mistake.
                    let counter = muesli::structures::Counter::new(numbers, "c");
                    counter.add_deferred(tx, 1).await?;
                    count_up(tx, numbers, key).await
                };
                db.transact_nested_here(&own.nesting, body).await
            };
            Ok((adds("a").await, adds("b").await))
        })
        .unwrap();
    assert_eq!((locked.map_err(|it| it.kind()), free), (Err(ErrorKind::Timeout), Ok(1)));
    assert_eq!((bench.number("a"), bench.number("b")), (1, 1));
    bench.assert_nothing_is_left();
}

/// A closed child that knows nothing of open nesting is run again at a later snapshot: what is put
/// back is what it has found then.
#[test]
fn what_is_put_back_is_what_the_last_attempt_of_a_closed_child_has_found() {
    for through_open_tx in [false, true] {
        let mut bench = Bench::with(Options { protocol: "tfa".to_owned(), ..Options::default() });
        bench.nesting = bench.bare().patience(Duration::from_secs(60));
        set(&bench, &[("x", 1), ("y", 1)]);
        let (own, numbers) = (bench.clone(), bench.numbers);
        let ended = bench.run(async move |tx| {
            let typed = numbers.typed::<String, i64>();
            let attempts = AtomicU32::new(0);
            let change = async |part: &Tx| -> Result<(), Error> {
                let attempt = attempts.fetch_add(1, Ordering::Relaxed);
                typed.put(part, "x", &(typed.get(part, "x").await?.unwrap_or(0) + 10)).await?;
                if attempt == 0 {
                    let both = async |other: &OpenTx| {
                        let both = async |child: &OpenTx| {
                            typed.put(child, "x", &2).await?;
                            typed.put(child, "y", &2).await
                        };
                        other.open_atomic((), both).with_row_locks().await
                    };
                    own.db.session().transact_nested_here(&own.nesting, both).await?;
                }
                typed.get(part, "y").await.map(drop)
            };
            let child = async |child: &OpenTx| match through_open_tx {
                true => child.nested(async |part: &OpenTx| change(part).await).await,
                false => {
                    let plain: &Tx = child;
                    plain.nested(&change).await
                }
            };
            tx.open_atomic((), child).with_row_locks().await?;
            assert_eq!(attempts.load(Ordering::Relaxed), 2, "it was run again alone");
            Err::<(), _>(Error::rollback("enough"))
        });
        assert_eq!(ended, Err(Error::rollback("enough")));
        assert_eq!(rows(&bench, &["x", "y"]), [Some(2), Some(2)], "{through_open_tx}");
        bench.assert_nothing_is_left();
    }
}

/// Who finishes what a client has left needs no handler for it.
#[test]
fn what_a_client_that_is_gone_wrote_others_put_back() {
    for stop in 1..8 {
        let bench = patient();
        set(&bench, &[("a", 1)]);
        let (numbers, stopping) = (bench.numbers, bench.bare().stopping_after(stop));
        let body = async move |tx: &OpenTx| {
            count_up(tx, numbers, "a").await?;
            count_up(tx, numbers, "b").await?;
            Err::<(), _>(Error::rollback("enough"))
        };
        let ended = block_on(bench.db.transact_nested(&stopping, body));
        assert!(ended.is_err());
        let finished = bench.nesting.finish_abandoned(&bench.db, Duration::from_millis(1));
        block_on(finished).unwrap();
        assert_eq!(rows(&bench, &["a", "b"]), [Some(1), None], "stopped after {stop}");
        assert_nothing_is_held(&bench);
    }
}

#[test]
fn a_row_that_somebody_wrote_without_a_lock_is_not_overwritten() {
    let bench = patient();
    set(&bench, &[("a", 1)]);
    let (own, numbers) = (bench.clone(), bench.numbers);
    let ended = bench.run(async move |tx| {
        count_up(tx, numbers, "a").await?;
        let other = async |other: &Tx| add(other, numbers, "a", 10).await;
        own.db.transact_here(other).await?;
        Err::<(), _>(Error::rollback("enough"))
    });
    let error = ended.unwrap_err();
    assert!(matches!(error, Error::Unfinished { .. }), "{error:?}");
    assert!(error.to_string().contains("is not as the open child left it"), "{error}");
    assert_eq!(bench.number("a"), 12);
    let mend = async move |tx: &Tx| add(tx, numbers, "a", -10).await;
    bench.db.blocking().transact(mend).unwrap();
    block_on(bench.nesting.finish_abandoned(&bench.db, Duration::from_millis(1))).unwrap();
    assert_eq!(bench.number("a"), 1);
    assert_nothing_is_held(&bench);
}

/// Under each protocol: what transfers move in several open children is all there, whatever gave
/// up meanwhile.
#[test]
fn nothing_is_lost_under_any_protocol() {
    for protocol in serializable() {
        let bench = Bench::with(Options {
            protocol: protocol.to_owned(),
            repositories: 2,
            loops: 2,
            ..Options::default()
        });
        let keys = ["a", "b", "c"];
        let threads: Vec<_> = (0..2_usize)
            .map(|thread| {
                let bench = Bench { db: bench.db.session(), ..bench.clone() };
                std::thread::spawn(move || {
                    for round in 0..30 {
                        let numbers = bench.numbers;
                        let (from, to) = (keys[(thread + round) % 3], keys[(round * 2) % 3]);
                        let moved = bench.run(async move |tx| {
                            for (key, by) in [(from, -1), (to, 1)] {
                                let change =
                                    async |child: &OpenTx| add(child, numbers, key, by).await;
                                tx.open_atomic((), change).with_row_locks().await?;
                            }
                            match round % 4 {
                                0 => Err(Error::rollback("enough")),
                                _ => Ok(()),
                            }
                        });
                        assert_eq!(moved.is_ok(), round % 4 != 0, "{protocol:?}: {moved:?}");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let sum: i64 = keys.into_iter().map(|key| bench.number(key)).sum();
        assert_eq!(sum, 0, "{protocol:?}");
        bench.assert_nothing_is_left();
    }
}
