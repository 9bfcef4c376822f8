//! Plain threads that block: they run their bodies in the loop's state, one after the other, or
//! have them run by whoever is in it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use muesli::blocking::block_on;
use muesli::procedures::builtin::{Put, Rows};
use muesli::{Db, Error, ErrorKind, Options, SpaceOptions, SyncPolicy, Tx, TypedSpace};

const ACCOUNTS: u64 = 20;
const EACH: i64 = 100;

fn options(loops: usize) -> Options {
    let options = Options { loops, repositories: loops, ..Options::default() };
    options.space("accounts", SpaceOptions::default())
}

fn open(loops: usize) -> (Db, TypedSpace<u64, i64>) {
    filled(Db::open(options(loops)).unwrap())
}

/// With money in each account.
fn filled(db: Db) -> (Db, TypedSpace<u64, i64>) {
    let accounts = db.space("accounts").unwrap().typed();
    let fill = async move |tx: &Tx| {
        for account in 0..ACCOUNTS {
            accounts.put(tx, &account, &EACH).await?;
        }
        Ok::<_, Error>(())
    };
    db.blocking().transact(fill).unwrap();
    (db, accounts)
}

async fn transfer(tx: &Tx, accounts: TypedSpace<u64, i64>, number: u64) -> Result<(), Error> {
    let (from, to) = (number % ACCOUNTS, (number * 7 + 1) % ACCOUNTS);
    let payer = accounts.get(tx, &from).await?.unwrap_or(0);
    accounts.put(tx, &from, &(payer - 1)).await?;
    let payee = accounts.get(tx, &to).await?.unwrap_or(0);
    accounts.put(tx, &to, &(payee + 1)).await
}

fn sum(db: &Db, accounts: TypedSpace<u64, i64>) -> i64 {
    let read = async move |tx: &Tx| {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            sum += accounts.get(tx, &account).await?.unwrap_or(0);
        }
        Ok::<_, Error>(sum)
    };
    db.strict().blocking().transact(read).unwrap()
}

/// So many threads do so many transfers each, in sessions of their own.
fn transfers(db: &Db, accounts: TypedSpace<u64, i64>, threads: u64, each: u64) {
    run_threads(db, accounts, threads, each);
    assert_eq!(sum(db, accounts), EACH * ACCOUNTS as i64);
}

fn run_threads(db: &Db, accounts: TypedSpace<u64, i64>, threads: u64, each: u64) {
    thread::scope(|scope| {
        for thread in 0..threads {
            let db = db.session();
            scope.spawn(move || {
                for number in 0..each {
                    let number = number * 13 + thread;
                    let body = async move |tx: &Tx| transfer(tx, accounts, number).await;
                    db.blocking().transact(body).unwrap();
                }
            });
        }
    });
}

#[test]
fn money_is_conserved_by_any_number_of_threads() {
    for loops in [1, 2, 3] {
        let (db, accounts) = open(loops);
        for threads in [1, 2, 8] {
            transfers(&db, accounts, threads, 3_000 / threads / loops as u64);
        }
        db.close();
    }
}

/// How often a thread of this process has gone to sleep.
#[cfg(target_os = "linux")]
fn sleeps(thread: &Path) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(thread).join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// A blocking thread does at the other loop what its transactions say to that: the threads of both
/// loops sleep meanwhile, but for their alarms.
#[cfg(target_os = "linux")]
#[test]
fn transactions_at_two_loops_wake_no_other_thread() {
    const TRANSFERS: u64 = 2_000;
    let (db, accounts) = open(2);
    let of_loop = |home| {
        let thread = async move || std::fs::read_link("/proc/thread-self").unwrap();
        block_on(db.run_on(home, thread)).unwrap()
    };
    let threads = [of_loop(0), of_loop(1)];
    let before = db.messages();
    let slept: u64 = threads.iter().map(|thread| sleeps(thread)).sum();
    run_threads(&db, accounts, 1, TRANSFERS);
    let slept = threads.iter().map(|thread| sleeps(thread)).sum::<u64>() - slept;
    assert!(db.messages() - before > TRANSFERS, "they cross");
    assert!(slept < TRANSFERS / 2, "{slept} wake-ups");
}

#[test]
fn a_body_runs_on_its_callers_thread_where_nobody_is_in_the_way() {
    let (db, accounts) = open(1);
    let me = thread::current().id();
    // The loop's thread may be in the way for a moment.
    let here = (0..1_000).any(|_| {
        let ran = db.blocking().transact(async move |tx| {
            accounts.get(tx, &1).await?;
            Ok::<_, Error>(thread::current().id())
        });
        ran.unwrap() == me
    });
    assert!(here);
}

#[test]
fn the_future_of_a_body_need_not_be_sent() {
    let (db, accounts) = open(1);
    let session = db.clone();
    let slept = db.blocking().transact(async move |tx| {
        let shared = Rc::new(7); // It stays on one thread, also while the body waits.
        session.sleep(Duration::from_millis(2)).await?;
        accounts.put(tx, &1, &*shared).await?;
        Ok::<_, Error>(*Rc::clone(&shared))
    });
    assert_eq!(slept, Ok(7));
}

#[test]
fn a_body_that_panics_leaves_the_database_and_panics_at_its_caller() {
    let (db, accounts) = open(1);
    let panicked = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (db, panicked) = (db.session(), &panicked);
            scope.spawn(move || {
                for number in 0..500 {
                    let body = async move |tx: &Tx| {
                        transfer(tx, accounts, number).await?;
                        assert!((number + thread) % 10 != 0, "body {number} of {thread}");
                        Ok::<_, Error>(())
                    };
                    let ran = catch_unwind(AssertUnwindSafe(|| db.blocking().transact(body)));
                    match ran {
                        Ok(done) => done.unwrap(),
                        Err(panic) => {
                            let text = panic.downcast_ref::<String>().unwrap();
                            assert_eq!(*text, format!("body {number} of {thread}"), "its own");
                            panicked.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(panicked.load(Ordering::Relaxed), 4 * 50);
    assert_eq!(sum(&db, accounts), EACH * ACCOUNTS as i64);
}

#[test]
fn a_blocking_call_inside_of_a_body_is_refused() {
    let (db, accounts) = open(1);
    let (other, others) = open(1);
    let (inner, far) = (db.clone(), other.clone());
    let refused = db.blocking().transact(async move |tx| {
        accounts.get(tx, &1).await?;
        let here = inner.blocking().transact(async move |tx| accounts.get(tx, &1).await);
        let begun = inner.blocking().begin().map(drop);
        let there = far.blocking().transact(async move |tx| others.get(tx, &1).await);
        Ok::<_, Error>((here, begun, there))
    });
    let (here, begun, there) = refused.unwrap();
    assert_eq!((&here, &begun, &there), (&Err(Error::BlocksLoop), &Err(Error::BlocksLoop), &here));
    assert_eq!(here.unwrap_err().kind(), ErrorKind::Misuse);
    // What it awaits is done.
    let awaits = other.clone();
    let done = db.blocking().transact(async move |tx| {
        let found = awaits.transact(async move |tx| others.get(tx, &1).await).await?;
        accounts.put(tx, &1, &(found.unwrap() + 1)).await
    });
    assert_eq!(done, Ok(()));
}

#[test]
fn a_body_that_would_block_its_loop_for_ever_panics_instead() {
    let (db, accounts) = open(1);
    let session = db.clone();
    let blocks = move || {
        db.blocking().transact(async move |tx| {
            accounts.get(tx, &1).await?;
            block_on(session.sleep(Duration::from_millis(1)))
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(blocks)).unwrap_err();
    let text = panic.downcast_ref::<&str>().unwrap();
    assert!(text.contains("block_on"), "{text}");
}

#[test]
fn callers_who_wait_and_clients_on_the_loop_go_on_beside_each_other() {
    for loops in [1, 2] {
        let (db, accounts) = open(loops);
        let (over, on_loops) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let (db, over, count) = (db.session(), over.clone(), on_loops.clone());
                thread::spawn(move || {
                    let here = db.clone();
                    let run = async move || {
                        let mut number = client as u64;
                        while !over.load(Ordering::Relaxed) {
                            let body = async |tx: &Tx| transfer(tx, accounts, number).await;
                            here.transact_here(body).await.unwrap();
                            number += 31;
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    };
                    block_on(db.run_on(client, run)).unwrap();
                })
            })
            .collect();
        run_threads(&db, accounts, 3, 700);
        if loops == 1 {
            // Each body is one step there, so nothing is in its way.
            assert_eq!(sum(&db, accounts), EACH * ACCOUNTS as i64);
            assert_eq!(db.conflicts(), []);
        }
        let before = on_loops.load(Ordering::Relaxed);
        while on_loops.load(Ordering::Relaxed) < before + 100 {
            thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!(sum(&db, accounts), EACH * ACCOUNTS as i64);
    }
}

#[test]
fn who_waits_for_a_change_is_woken_by_others_who_block() {
    let (db, accounts) = open(1);
    thread::scope(|scope| {
        for waiter in 0..4 {
            let (session, other) = (db.session(), db.session());
            scope.spawn(move || {
                for round in 1..=50 {
                    let body = async move |tx: &Tx| match accounts.get(tx, &waiter).await? {
                        Some(found) if found >= EACH + round => Ok(()),
                        _ => tx.retry::<()>(),
                    };
                    session.blocking().transact(body).unwrap();
                }
            });
            scope.spawn(move || {
                for round in 1..=50 {
                    let body =
                        async move |tx: &Tx| accounts.put(tx, &waiter, &(EACH + round)).await;
                    other.blocking().transact(body).unwrap();
                    thread::sleep(Duration::from_micros(200));
                }
            });
        }
    });
}

#[test]
fn a_body_that_was_handed_over_waits_for_its_change_and_runs_no_more_often() {
    let (db, accounts) = open(1);
    let (inside, is_inside) = channel();
    let (runs, there) = (AtomicU64::new(0), db.session());
    let runs = Arc::new(runs);
    let holder = thread::spawn(move || {
        there.blocking().transact(async move |_| {
            inside.send(()).unwrap();
            thread::sleep(Duration::from_millis(60)); // It keeps the state meanwhile.
            Ok::<_, Error>(())
        })
    });
    is_inside.recv().unwrap();
    let (counted, there) = (runs.clone(), db.session());
    let waiting = thread::spawn(move || {
        there.blocking().transact(async move |tx| {
            counted.fetch_add(1, Ordering::Relaxed);
            match accounts.get(tx, &1).await? {
                Some(EACH) => tx.retry(),
                found => Ok::<_, Error>(found),
            }
        })
    });
    holder.join().unwrap().unwrap();
    thread::sleep(Duration::from_millis(60));
    db.blocking().transact(async move |tx| accounts.put(tx, &1, &7).await).unwrap();
    assert_eq!(waiting.join().unwrap(), Ok(Some(7)));
    assert!(runs.load(Ordering::Relaxed) <= 2, "{runs:?}");
}

#[test]
fn timeouts_and_sleeps_come_though_no_task_is_on_the_loop() {
    let (db, accounts) = open(1);
    let begun = Instant::now();
    let session = db.clone();
    let slow = db.timeout(Duration::from_millis(30)).blocking().transact(async move |tx| {
        accounts.get(tx, &1).await?;
        session.sleep(Duration::from_secs(600)).await
    });
    assert_eq!(slow, Err(Error::TransactionTimeout { after_ms: 30 }));
    assert!(begun.elapsed() < Duration::from_secs(60));
    let by_hand = db.timeout(Duration::from_millis(10)).blocking().begin().unwrap();
    thread::sleep(Duration::from_millis(200));
    let late = block_on(accounts.get(&by_hand, &1));
    assert_eq!(late, Err(Error::TransactionTimeout { after_ms: 10 }));
}

#[test]
fn spaces_that_were_just_made_are_there() {
    let (db, _) = open(1);
    thread::scope(|scope| {
        for thread in 0..4 {
            let db = db.session();
            scope.spawn(move || {
                for number in 0..50 {
                    let name = format!("made-{thread}-{number}");
                    let made = db.create_space(&name, SpaceOptions::default()).unwrap();
                    let body = async move |tx: &Tx| tx.put(made, "k", "v").await;
                    db.blocking().transact(body).unwrap();
                }
            });
        }
    });
}

#[test]
fn who_waits_is_sent_away_when_the_database_is_closed() {
    for round in 0..20 {
        let (db, accounts) = open(1 + round % 2);
        let begun = Arc::new(AtomicU64::new(0));
        let callers: Vec<_> = (0..6_u64)
            .map(|caller| {
                let (db, begun) = (db.session(), begun.clone());
                thread::spawn(move || {
                    for number in (caller..).step_by(7) {
                        let (session, waits) = (db.clone(), caller == 5 && number > 400);
                        let body = async move |tx: &Tx| {
                            transfer(tx, accounts, number).await?;
                            if waits {
                                session.sleep(Duration::from_secs(600)).await?;
                            }
                            Ok::<_, Error>(())
                        };
                        begun.fetch_add(1, Ordering::Relaxed);
                        match db.blocking().transact(body) {
                            Ok(()) | Err(Error::Conflict { .. }) => {}
                            Err(Error::Closed) => return,
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        while begun.load(Ordering::Relaxed) < 600 {
            thread::yield_now();
        }
        db.close();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        assert_eq!(db.blocking().transact(async |_| Ok::<_, Error>(())), Err(Error::Closed));
    }
}

#[test]
fn a_body_may_close_its_database() {
    let (db, accounts) = open(1);
    let closing = db.clone();
    let ended = db.blocking().transact(async move |tx| {
        accounts.put(tx, &1, &1).await?;
        assert!(closing.close().is_empty(), "nobody waits for the end there");
        Ok::<_, Error>(())
    });
    assert!(matches!(ended, Ok(()) | Err(Error::Closed)), "{ended:?}");
    while db.blocking().transact(async |_| Ok::<_, Error>(())) != Err(Error::Closed) {}
    assert_eq!(db.close().len(), 1, "who closes it from outside waits for the loop");
}

#[test]
fn calls_of_one_repository_are_run_on_the_loop_that_has_it() {
    let options = Options { protocol: "granola".to_owned(), ..options(2) };
    let db = Db::open(options).unwrap();
    let space = db.space("accounts").unwrap();
    for number in 0..40_u32 {
        let key = number.to_be_bytes().to_vec();
        let rows = vec![(key.clone().into(), Some("x".into()))];
        let put = db.blocking().execute::<Put>(space.place(key), &Rows { space, rows });
        put.unwrap();
    }
    assert_eq!(db.messages(), 0);
}

#[cfg(feature = "cluster")]
const POLICIES: [SyncPolicy; 3] =
    [SyncPolicy::Always, SyncPolicy::Every(Duration::from_millis(5)), SyncPolicy::Never];

#[cfg(feature = "cluster")]
fn open_synced(loops: usize, folder: &Path, policy: SyncPolicy) -> Db {
    let mut options = options(loops).durable(folder);
    options.durable.as_mut().unwrap().sync = policy;
    Db::open(options).unwrap()
}

/// Threads write numbers to a key each until the database is closed under them: what it holds
/// afterwards is the last number that was acknowledged, and no other.
#[cfg(feature = "cluster")]
#[test]
fn what_is_answered_as_closed_was_not_committed() {
    for (policy, loops) in POLICIES.into_iter().flat_map(|it| [(it, 1), (it, 2), (it, 1)]) {
        let folder = tempfile::tempdir().unwrap();
        let opened = || open_synced(loops, folder.path(), policy);
        let (db, accounts) = filled(opened());
        let begun = Arc::new(AtomicU64::new(0));
        let writers: Vec<_> = (0..4_u64)
            .map(|key| {
                let (blocking, begun) = (db.session().blocking(), begun.clone());
                thread::spawn(move || {
                    for number in 1_000.. {
                        let write = async move |tx: &Tx| accounts.put(tx, &key, &number).await;
                        begun.fetch_add(1, Ordering::Relaxed);
                        match blocking.transact(write) {
                            Ok(()) => {}
                            Err(Error::Closed) => return number - 1,
                            Err(other) => panic!("{other}"),
                        }
                    }
                    unreachable!("it is closed before")
                })
            })
            .collect();
        while begun.load(Ordering::Relaxed) < 60 {
            thread::yield_now();
        }
        db.close();
        let last: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        let db = opened();
        let accounts = db.space("accounts").unwrap().typed::<u64, i64>();
        for (key, last) in (0..).zip(last) {
            let found = db.blocking().transact(async move |tx| accounts.get(tx, &key).await);
            let written = if last < 1_000 { EACH } else { last };
            assert_eq!(found, Ok(Some(written)), "{policy:?}, {loops} loops, key {key}");
        }
    }
}

#[cfg(feature = "cluster")]
#[test]
fn commits_wait_for_the_disk_outside_of_the_state() {
    for (policy, loops) in POLICIES.into_iter().flat_map(|it| [(it, 1), (it, 2)]) {
        let folder = tempfile::tempdir().unwrap();
        let opened = || open_synced(loops, folder.path(), policy);
        let (db, accounts) = filled(opened());
        for threads in [1, 2, 8] {
            transfers(&db, accounts, threads, 160 / threads);
        }
        db.close();
        let db = opened();
        let accounts = db.space("accounts").unwrap().typed();
        assert_eq!(sum(&db, accounts), EACH * ACCOUNTS as i64, "{policy:?}, {loops}");
    }
}
