//! Open children and their locks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use muesli::blocking::block_on;
use muesli::open_nesting::{CompatibilityMatrix, LockMode, NestingLimits, NestingSwitch, OpenTx};
use muesli::{Error, ErrorKind, Options};

use super::{Bench, add, add_open, read_open};

/// What another transaction gets that asks for a lock while this mode is held.
fn asked_while(held: &LockMode, asked: &LockMode, bench: &Bench) -> Result<(), Error> {
    let (own, held, asked) = (bench.clone(), held.clone(), asked.clone());
    bench
        .run(async move |tx| {
            tx.open_atomic(("lock", &held), async |_| Ok::<_, Error>(())).await?;
            let (db, asked) = (own.db.session().timeout(Duration::from_millis(10)), asked.clone());
            Ok(db
                .transact_nested_here(&own.nesting, async move |tx| {
                    let child = async |child: &OpenTx| child.acquire_lock("lock", &asked).await;
                    tx.open_atomic((), child).await
                })
                .await)
        })
        .unwrap()
}

#[test]
fn a_lock_keeps_away_those_that_do_not_go_with_it() {
    let mut bench = Bench::new();
    bench.nesting = bench.nesting.patience(Duration::from_secs(60));
    let (read, write) = (LockMode::read(), LockMode::write());
    let queue = CompatibilityMatrix::new("queue", &["put", "take"], &[("put", "take")]).unwrap();
    let (put, take) = (queue.mode("put").unwrap(), queue.mode("take").unwrap());
    for (held, asked, goes) in [
        (&read, &read, true),
        (&read, &write, false),
        (&write, &read, false),
        (&write, &write, false),
        (&put, &take, true),
        (&put, &put, false),
    ] {
        let got = asked_while(held, asked, &bench);
        match goes {
            true => assert_eq!(got, Ok(())),
            false => assert_eq!(got.unwrap_err().kind(), ErrorKind::Timeout),
        }
        bench.assert_nothing_is_left();
    }
    let other = asked_while(&read, &put, &bench).unwrap_err();
    assert!(other.to_string().contains("`lock`: it is held in a mode of"), "{other}");
    let unchecked = bench.nesting.clone().without(NestingSwitch::CheckLocks);
    assert_eq!(asked_while(&write, &write, &Bench { nesting: unchecked, ..bench }), Ok(()));
}

/// Two transactions that take two locks in opposite orders, many times: none waits for ever.
#[test]
fn crossed_locks_are_given_back_and_both_get_on() {
    let bench = Bench::with(Options { repositories: 2, loops: 2, ..Options::default() });
    let threads: Vec<_> = [["a", "b"], ["b", "a"]]
        .into_iter()
        .map(|keys| {
            let bench = Bench { db: bench.db.session(), ..bench.clone() };
            std::thread::spawn(move || {
                for _ in 0..100 {
                    let numbers = bench.numbers;
                    let done = bench.run(async move |tx| {
                        for key in keys {
                            add_open(tx, numbers, key, 1).await?;
                        }
                        Ok(())
                    });
                    assert_eq!(done, Ok(()));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((bench.number("a"), bench.number("b")), (200, 200));
    let log = bench.log();
    let count = |prefix: &str| log.iter().filter(|it| it.starts_with(prefix)).count();
    assert_eq!((count("done a"), count("done b")), (200, 200));
    assert_eq!(bench.nesting.counts().compensations, (count("undo")) as u64);
    bench.assert_nothing_is_left();
}

#[test]
fn a_child_that_fails_changes_nothing_and_the_transaction_goes_on() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let sum = bench.run(async move |tx| {
        add_open(tx, numbers, "a", 5).await?;
        let failed = tx.open_atomic(("b", &LockMode::write()), async |child| {
            add(child, numbers, "b", 7).await?;
            Err::<i64, _>(Error::rollback("no"))
        });
        let failed = failed.on_abort("undo", &("b", 7));
        assert_eq!(failed.await, Err(Error::rollback("no")));
        read_open(tx, numbers, "b").await
    });
    assert_eq!((sum, bench.number("b")), (Ok(0), 0));
    bench.assert_nothing_is_left();
}

#[test]
fn limits_are_errors_that_name_them() {
    let mut bench = Bench::new();
    let limits =
        NestingLimits { children: 3, locks: 2, lock_bytes: 4, argument_bytes: 9, depth: 1 };
    bench.nesting = bench.nesting.limits(limits);
    let numbers = bench.numbers;
    let long = "x".repeat(10);
    type Run = Box<dyn Fn(&Bench) -> Result<(), Error>>;
    let lock = |ids: Vec<String>| -> Run {
        Box::new(move |bench| {
            let ids = ids.clone();
            bench.run(async move |tx| {
                for id in &ids {
                    let lock = (id, &LockMode::write());
                    tx.open_atomic(lock, async |_| Ok::<_, Error>(())).await?;
                }
                Ok(())
            })
        })
    };
    let handler: Run = Box::new(move |bench| {
        let long = long.clone();
        bench.run(async move |tx| {
            tx.open_atomic((), async |_| Ok::<_, Error>(())).on_abort("undo", &long).await
        })
    });
    let deep: Run = Box::new(move |bench| {
        bench.run(async move |tx| {
            let within = async |child: &OpenTx| read_open(child, numbers, "b").await.map(drop);
            tx.open_atomic((), within).await
        })
    });
    let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    for (run, field) in [
        (lock(names(&["a", "a", "a", "a"])), "NestingLimits::children"),
        (lock(names(&["a", "b", "c"])), "NestingLimits::locks"),
        (lock(names(&["abcde"])), "NestingLimits::lock_bytes"),
        (handler, "NestingLimits::argument_bytes"),
        (deep, "NestingLimits::depth"),
    ] {
        let error = run(&bench).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.to_string().contains(field), "{error}");
        bench.assert_nothing_is_left();
    }
}

#[test]
fn a_child_that_wrote_and_has_no_compensation_is_warned_of() {
    let mut bench = Bench::new();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = warnings.clone();
    let warn = move |text: &str| seen.lock().unwrap().push(text.to_owned());
    bench.nesting = bench.nesting.on_warning(warn);
    let numbers = bench.numbers;
    bench
        .run(async move |tx| {
            read_open(tx, numbers, "a").await?;
            add_open(tx, numbers, "a", 1).await?;
            let quiet = tx.open_atomic((), async |child| add(child, numbers, "b", 1).await);
            quiet.without_compensation().await?;
            tx.open_atomic((), async |child| add(child, numbers, "c", 1).await).await
        })
        .unwrap();
    assert_eq!(warnings.lock().unwrap().len(), 1);
}

#[test]
fn the_transaction_itself_takes_no_lock() {
    let bench = Bench::new();
    let error = bench.run(async |tx| tx.acquire_lock("a", &LockMode::read()).await).unwrap_err();
    assert!(error.to_string().contains("by an open child"), "{error}");
    let children = block_on(bench.db.transact_nested(&bench.nesting, async |tx| {
        tx.keep_alive().await?;
        tx.open_atomic(("a", &LockMode::exclusive()), async |_| Ok::<_, Error>(())).await?;
        tx.keep_alive().await
    }));
    assert_eq!(children, Ok(()));
    bench.assert_nothing_is_left();
}
