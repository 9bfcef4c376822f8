//! Closed children that have open children, and are undone alone.

use std::cell::Cell;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use muesli::WaitLimit;
use muesli::nesting_choice::NestingChoice;
use muesli::open_nesting::NestingSwitch;

use super::*;

/// What a transaction does with a closed child in its middle that gives up, after two open
/// children.
async fn gives_up(tx: &OpenTx, numbers: Space) -> Result<i64, Error> {
    add_open(tx, numbers, "a", 1).await?;
    add(tx, numbers, "own", 1).await?;
    let part = tx.nested(async |part| {
        add_open(part, numbers, "b", 1).await?;
        add(part, numbers, "own", 10).await?;
        add_open(part, numbers, "a", 1).await?;
        Err::<(), _>(Error::rollback("not this"))
    });
    assert!(part.await.is_err());
    add_open(tx, numbers, "c", 1).await?;
    add(tx, numbers, "own", 100).await
}

#[test]
fn what_a_closed_child_did_is_compensated_and_what_was_before_it_stays() {
    let mut tried = Vec::new();
    for protocol in serializable() {
        let options = Options { protocol: protocol.to_string(), ..Options::default() };
        let bench = Bench::with(options);
        let numbers = bench.numbers;
        let ended = bench.run(async move |tx| gives_up(tx, numbers).await);
        let sums = ["own", "a", "b", "c"].map(|key| bench.number(key));
        let log = bench.log();
        assert_eq!(log[..2], ["undo a 1", "undo b 1"], "{protocol}: {ended:?}");
        // Where a protocol has no levels, a transaction a part of which is undone does not commit.
        let flat = ["granola", "sinfonia"];
        if flat.into_iter().any(|name| protocol.starts_with(name)) {
            assert!(ended.is_err() && sums == [0; 4], "{protocol}: {ended:?} {sums:?}");
        } else {
            assert_eq!((ended, sums), (Ok(101), [101, 1, 0, 1]), "{protocol}");
            assert_eq!(log[2..], ["done a", "done c"], "{protocol}");
        }
        bench.assert_nothing_is_left();
        tried.push(protocol);
    }
    assert!(tried.len() > 5, "{tried:?}");
}

/// A closed child reads what is changed then, and is undone, the first time, and its transaction is
/// not.
#[test]
fn a_closed_child_that_is_run_again_has_its_open_children_compensated_first() {
    for protocol in ["score", "tfa", "two-phase-commit", "hierarchy"] {
        let options = Options { protocol: protocol.to_string(), ..Options::default() };
        let bench = Bench::with(options);
        let (own, numbers, runs) = (bench.clone(), bench.numbers, Arc::new(AtomicU32::new(0)));
        let counted = runs.clone();
        let ended = bench.run(async move |tx| {
            counted.fetch_add(100, Ordering::Relaxed);
            add_open(tx, numbers, "a", 1).await?;
            add(tx, numbers, "own", 1).await?;
            tx.nested(async |part| {
                let read = async |key: &str| numbers.typed::<String, i64>().get(part, key).await;
                let x = read("x").await?;
                add_open(part, numbers, "b", 1).await?;
                if counted.fetch_add(1, Ordering::Relaxed) == 100 {
                    let change = async |other: &Tx| {
                        add(other, numbers, "x", 1).await?;
                        add(other, numbers, "y", 1).await
                    };
                    own.db.transact_here(change).await?;
                }
                Ok::<_, Error>((x, read("y").await?))
            })
            .await
        });
        assert_eq!(ended, Ok((Some(1), Some(1))), "{protocol}");
        assert_eq!(runs.load(Ordering::Relaxed), 102, "{protocol}: of it, and of the child");
        assert_eq!(bench.log(), ["undo b 1", "done a", "done b"], "{protocol}");
        assert_eq!(["own", "a", "b"].map(|key| bench.number(key)), [1, 1, 1], "{protocol}");
        bench.assert_nothing_is_left();
    }
}

/// Asks whether another transaction may take a lock now.
async fn is_free(bench: &Bench, lock: &str, mode: &LockMode) -> Result<bool, Error> {
    let hurried = bench.db.session().timeout(Duration::from_millis(10));
    let patient = bench.nesting.clone().patience(Duration::from_secs(60));
    let take = async |tx: &OpenTx| tx.open_atomic((lock, mode), async |_| Ok::<_, Error>(())).await;
    match hurried.transact_nested_here(&patient, take).await {
        Ok(()) => Ok(true),
        Err(Error::TransactionTimeout { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[test]
fn locks_that_an_undone_child_took_go_and_those_from_before_stay_as_they_were() {
    let bench = Bench::new();
    let own = bench.clone();
    let ended = bench.run(async move |tx| {
        let (read, write) = (LockMode::read(), LockMode::write());
        let take = async |tx: &OpenTx, lock: &str, mode: &LockMode| {
            tx.open_atomic((lock, mode), async |_| Ok::<_, Error>(())).await
        };
        take(tx, "before", &read).await?;
        let part = tx.nested(async |part| {
            take(part, "before", &write).await?;
            take(part, "within", &write).await?;
            assert!(
                !is_free(&own, "before", &read).await? && !is_free(&own, "within", &read).await?
            );
            Err::<(), _>(Error::rollback("not this"))
        });
        assert!(part.await.is_err());
        assert!(is_free(&own, "within", &write).await?);
        assert!(is_free(&own, "before", &read).await? && !is_free(&own, "before", &write).await?);
        tx.nested(async |part| take(part, "stays", &write).await).await?;
        assert!(!is_free(&own, "stays", &read).await?, "it is the transaction's");
        Ok(())
    });
    assert_eq!(ended, Ok(()));
    bench.assert_nothing_is_left();
}

/// Two closed children within each other, within an open child, which has handlers and a lock from
/// within a closed child.
#[test]
fn closed_children_are_of_the_innermost_open_one() {
    for aborts in [false, true] {
        let bench = Bench::new();
        let own = bench.clone();
        let ended = bench.run(async move |tx| {
            let numbers = own.numbers;
            tx.open_atomic((), async |child| {
                let part = child.nested(async |part| {
                    part.on_abort("undo", &("never", 1))?;
                    part.acquire_lock("never", &LockMode::write()).await?;
                    add_open(part, numbers, "a", 1).await?;
                    part.nested(async |deeper| add_open(deeper, numbers, "b", 1).await).await?;
                    Err::<(), _>(Error::rollback("not this"))
                });
                assert!(part.await.is_err());
                child
                    .nested(async |part| {
                        add(part, numbers, "c", 1).await?;
                        part.acquire_lock("c", &LockMode::write()).await?;
                        part.on_abort("undo", &("c", 1))?;
                        part.on_commit("done", "c")?;
                        part.nested(async |deeper| add_open(deeper, numbers, "d", 1).await).await
                    })
                    .await
            })
            .await?;
            assert!(is_free(&own, "never", &LockMode::write()).await?);
            assert!(!is_free(&own, "c", &LockMode::read()).await?, "the open child handed it on");
            assert!(is_free(&own, "d", &LockMode::write()).await?, "and its children's went");
            if aborts { Err(Error::rollback("no")) } else { Ok(()) }
        });
        assert_eq!(ended.is_err(), aborts, "{ended:?}");
        let last = if aborts { "undo c 1" } else { "done c" };
        assert_eq!(bench.log(), ["undo b 1", "undo a 1", "done d", last]);
        let sums = ["a", "b", "c", "d", "never"].map(|key| bench.number(key));
        assert_eq!(sums, [0, 0, i64::from(!aborts), 1, 0]);
        bench.assert_nothing_is_left();
    }
}

#[test]
fn an_alternative_that_gives_up_has_its_open_children_compensated() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let ended = bench.run(async move |tx| {
        let first = async |part: &OpenTx| {
            add_open(part, numbers, "a", 1).await?;
            part.retry::<i64>()
        };
        tx.or_else(first, async |part: &OpenTx| add_open(part, numbers, "b", 1).await).await
    });
    assert_eq!((ended, bench.log()), (Ok(1), vec!["undo a 1".to_owned(), "done b".to_owned()]));
    bench.assert_nothing_is_left();
}

/// As one that gives up itself: here because of what an open child of it finds, or one of that.
#[test]
fn an_alternative_gives_up_where_an_open_child_of_it_does() {
    for deep in [false, true] {
        let bench = Bench::new();
        let numbers = bench.numbers;
        let ended = bench.run(async move |tx| {
            let first = async |part: &OpenTx| {
                add_open(part, numbers, "a", 1).await?;
                let gives_up = async |child: &OpenTx| child.retry::<i64>();
                let within = async |child: &OpenTx| child.open_atomic((), gives_up).await;
                match deep {
                    true => part.open_atomic((), within).await,
                    false => part.open_atomic((), gives_up).await,
                }
            };
            tx.or_else(first, async |part: &OpenTx| add_open(part, numbers, "b", 1).await).await
        });
        let log = vec!["undo a 1".to_owned(), "done b".to_owned()];
        assert_eq!((ended, bench.log()), (Ok(1), log), "deep: {deep}");
        bench.assert_nothing_is_left();
    }
}

/// Each alternative finds in an open child that there is nothing; then somebody gives the first one
/// something.
#[test]
fn a_change_of_what_either_alternative_has_read_is_noticed() {
    for limit in [None, Some(Duration::ZERO)] {
        let bench = Bench::new();
        let (numbers, other) = (bench.numbers, bench.clone());
        let (asleep, sleeps) = std::sync::mpsc::channel();
        let giver = std::thread::spawn(move || {
            sleeps.recv().unwrap();
            std::thread::sleep(Duration::from_millis(60)); // Several times the longest pause.
            other.run(async move |tx| add(tx, numbers, "urgent", 7).await)
        });
        let ended = bench.run(async move |tx| {
            let take = async |part: &OpenTx, key: &str| {
                let looks = async |child: &OpenTx| {
                    let found = numbers.typed::<String, i64>().get(child, key).await?;
                    found.map_or_else(|| child.retry(), Ok)
                };
                part.open_atomic((), looks).await
            };
            let first = async |part: &OpenTx| take(part, "urgent").await;
            let second = async |part: &OpenTx| {
                let _ = asleep.send(());
                take(part, "other").await
            };
            match limit {
                None => tx.or_else(first, second).await,
                Some(limit) => tx.or_else_within(&WaitLimit::new(limit), first, second).await,
            }
        });
        assert_eq!((ended, giver.join().unwrap()), (Ok(7), Ok(7)), "{limit:?}");
        bench.assert_nothing_is_left();
    }
}

/// An alternative with open children has its time: each attempt undoes what they did before the
/// transaction sleeps, and the last one before the other alternative is run.
#[test]
fn what_an_alternative_with_a_limit_did_is_compensated_each_time() {
    let bench = Bench::new();
    let (numbers, limit) = (bench.numbers, WaitLimit::new(Duration::from_millis(30)));
    let ended = bench.run(async move |tx| {
        let first = async |part: &OpenTx| {
            read_open(part, numbers, "x").await?;
            add_open(part, numbers, "a", 1).await?;
            part.retry::<i64>()
        };
        let second = async |part: &OpenTx| add_open(part, numbers, "b", 1).await;
        tx.or_else_within(&limit, first, second).await
    });
    let log = bench.log();
    let (last, undone) = log.split_last().unwrap();
    assert_eq!((ended, &**last, bench.number("a")), (Ok(1), "done b", 0));
    assert!(undone.len() >= 2 && undone.iter().all(|it| it == "undo a 1"), "{log:?}");
    bench.assert_nothing_is_left();
}

/// Who drops the future of a closed child goes on, and what open children did in it is undone
/// before the next thing that matters: another child, or the commit.
#[test]
fn what_was_dropped_is_compensated_before_the_transaction_goes_on() {
    for goes_on in [false, true] {
        let bench = Bench::new();
        let numbers = bench.numbers;
        let ended = bench.run(async move |tx| {
            let is_done = Cell::new(false);
            let mut part = Box::pin(tx.nested(async |part| {
                add_open(part, numbers, "a", 1).await?;
                is_done.set(true);
                std::future::pending::<Result<(), Error>>().await
            }));
            poll_fn(|cx| match (part.as_mut().poll(cx), is_done.get()) {
                (Poll::Pending, false) => Poll::Pending,
                _ => Poll::Ready(()),
            })
            .await;
            drop(part);
            match goes_on {
                true => read_open(tx, numbers, "a").await,
                false => Ok(0),
            }
        });
        assert_eq!((ended, bench.number("a")), (Ok(0), 0));
        assert_eq!(bench.log(), ["undo a 1"]);
        bench.assert_nothing_is_left();
    }
}

#[test]
fn open_children_do_not_run_beside_a_closed_one() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let ended = bench.run(async move |tx| {
        tx.nested(async |_| {
            let beside = add_open(tx, numbers, "a", 1).await;
            assert_eq!(beside, Err(Error::ChildOpen));
            Ok::<_, Error>(())
        })
        .await?;
        tx.open_atomic((), async |_| {
            let beside = tx.nested(async |_| Ok::<_, Error>(())).await;
            assert_eq!(beside, Err(Error::ChildOpen));
            Ok::<_, Error>(())
        })
        .await
    });
    assert_eq!(ended, Ok(()));
    bench.assert_nothing_is_left();
}

/// What nobody has in hand any more an open child may use; what open children wrote their
/// transaction may not, though it was undone.
#[test]
fn levels_forget_what_was_undone_but_not_what_was_committed() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let ended = bench.run(async move |tx| {
        let part = tx.nested(async |part| {
            numbers.typed::<String, i64>().put(part, "a", &7).await?;
            Err::<(), _>(Error::rollback("not this"))
        });
        assert!(part.await.is_err());
        add_open(tx, numbers, "a", 1).await
    });
    assert_eq!((ended, bench.number("a")), (Ok(1), 1));
    let ended = bench.run(async move |tx| {
        let part = tx.nested(async |part| {
            add_open(part, numbers, "a", 1).await?;
            Err::<(), _>(Error::rollback("not this"))
        });
        assert!(part.await.is_err());
        numbers.typed::<String, i64>().get(tx, "a").await
    });
    let error = ended.unwrap_err();
    assert_eq!(error.kind(), muesli::ErrorKind::Misuse, "{error}");
    assert_eq!(bench.number("a"), 1);
    bench.assert_nothing_is_left();
}

#[test]
fn compensations_that_fail_end_the_whole_transaction() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let body = async move |tx: &OpenTx| {
        let part = tx.nested(async |part| {
            add_open(part, numbers, "a", 5).await?;
            Err::<(), _>(Error::rollback("not this"))
        });
        let _ = part.await; // That the body makes nothing of it does not help.
        Ok::<_, Error>(())
    };
    let ended = block_on(bench.db.transact_nested(&bench.bare(), body)).unwrap_err();
    assert!(ended.to_string().contains("there is no handler `undo`"), "{ended}");
    let finish = bench.nesting.finish_abandoned(&bench.db, Duration::from_millis(1));
    assert_eq!((block_on(finish), bench.number("a")), (Ok(1), 0));
    block_on(bench.nesting.forget_ends(&bench.db)).unwrap();
    bench.assert_nothing_is_left();
}

#[test]
fn rules_that_are_broken_are_seen() {
    let seen = |switch| {
        let mut bench = Bench::new();
        bench.nesting = bench.nesting.without(switch);
        let numbers = bench.numbers;
        let ended = bench.run(async move |tx| gives_up(tx, numbers).await);
        (ended.is_ok(), bench.log(), bench.number("b"))
    };
    let text = |log: &[&str]| log.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let (done, undone) = (text(&["done a", "done c"]), seen(NestingSwitch::NewestFirst));
    assert_eq!(undone.1, [&text(&["undo b 1", "undo a 1"])[..], &done].concat(), "oldest first");
    let (ended, log, b) = seen(NestingSwitch::UndoParts);
    assert_eq!(log, text(&["done a", "done b", "done a", "done c"]), "as if it had stayed");
    assert!(ended && b == 1);
}

/// In every model a closed child that gives up leaves nothing, and what is around it stays.
#[test]
fn closed_children_are_the_same_in_every_model() {
    let bench = Bench::new();
    let (choice, numbers) = (NestingChoice::new(), bench.numbers);
    let db = bench.db.choosing(&choice);
    let mut ran = 0;
    while choice.chosen().is_none() && ran < 100_000 {
        ran += 1;
        let body = async move |tx: &OpenTx| {
            tx.nested(async |part| add_open(part, numbers, "a", 1).await).await?;
            let gives_up = ran % 3 == 0;
            let part = tx.nested(async |part| {
                add_open(part, numbers, "b", 1).await?;
                if gives_up { Err(Error::rollback("not this")) } else { Ok(()) }
            });
            assert_eq!(part.await.is_err(), gives_up);
            Ok::<_, Error>(())
        };
        let ended = block_on(db.transact_nested(&bench.nesting, body));
        assert_eq!(ended, Ok(()), "{ran}");
        if ran % 100 == 0 {
            let empty = Vec::<String>::new();
            let list = numbers.typed::<String, Vec<String>>();
            bench
                .db
                .blocking()
                .transact(async move |tx| list.put(tx, "log", &empty).await)
                .unwrap();
        }
    }
    let (decisions, _) = choice.decisions();
    println!("{:?}", decisions.first());
    assert_eq!((bench.number("a"), bench.number("b")), (ran, ran - ran / 3));
    bench.assert_nothing_is_left();
}
