//! Children of transactions: what of them stays, what is undone, and what runs again.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use muesli::blocking::block_on;
use muesli::nesting_choice::{CallSites, NestingChoice, NestingModel};
use muesli::{Db, Error, ErrorKind, Options, Range, Space, SpaceOptions, Tx};

fn open(protocol: &str) -> Db {
    let options = Options { protocol: protocol.to_owned(), ..Options::default() };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

async fn text(tx: &Tx, space: Space, key: &'static str) -> Result<String, Error> {
    let value = tx.get(space, key).await?;
    Ok(value.map_or_else(String::new, |it| String::from_utf8_lossy(it.as_slice()).into_owned()))
}

fn stored(db: &Db, keys: [&'static str; 3]) -> [String; 3] {
    let space = db.space("s").unwrap();
    db.blocking()
        .transact(async move |tx| {
            let [first, second, third] = keys;
            Ok::<_, Error>([
                text(tx, space, first).await?,
                text(tx, space, second).await?,
                text(tx, space, third).await?,
            ])
        })
        .unwrap()
}

/// Children that stay and children that give up, two levels of them.
async fn family(tx: &Tx, space: Space) -> Result<(), Error> {
    tx.put(space, "a", "parent").await?;
    let kept = tx.nested(async |child| {
        child.put(space, "b", "child").await?;
        let given_up = child.nested(async |grandchild| {
            grandchild.put(space, "a", "grandchild").await?;
            grandchild.put(space, "b", "grandchild").await?;
            grandchild.put(space, "c", "grandchild").await?;
            assert_eq!(text(grandchild, space, "b").await?, "grandchild");
            Err::<(), _>(Error::rollback("not this"))
        });
        assert_eq!(given_up.await, Err(Error::rollback("not this")));
        assert_eq!(text(child, space, "b").await?, "child");
        Ok::<_, Error>(7)
    });
    assert_eq!(kept.await, Ok(7));
    let given_up = tx.nested(async |child| {
        child.delete(space, "b").await?;
        Err::<(), _>(Error::rollback("nor this"))
    });
    assert_eq!(given_up.await, Err(Error::rollback("nor this")));
    assert_eq!(text(tx, space, "b").await?, "child");
    Ok(())
}

#[test]
fn what_a_child_did_stays_unless_it_gives_up() {
    for protocol in ["score", "gmu", "bumper", "hierarchy", "repeatable-read"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        db.blocking().transact(async move |tx| family(tx, space).await).unwrap();
        let wanted = ["parent", "child", ""].map(str::to_owned);
        assert_eq!(stored(&db, ["a", "b", "c"]), wanted, "{protocol}");
    }
}

#[test]
fn transactions_that_are_ended_by_hand_have_children_too() {
    let db = open("score");
    let space = db.space("s").unwrap();
    let wanted = ["parent", "child", ""].map(str::to_owned);
    block_on(async {
        let by_hand = db.begin().await?;
        family(&by_hand, space).await?;
        by_hand.commit().await
    })
    .unwrap();
    assert_eq!(stored(&db, ["a", "b", "c"]), wanted);
}

/// A child that gives up, in one that stays, as programs write them: errors are passed on.
async fn gives_up_within(tx: &Tx, space: Space) -> Result<(), Error> {
    tx.put(space, "a", "parent").await?;
    tx.nested(async |child| {
        child.put(space, "b", "child").await?;
        let given_up = child.nested(async |grandchild| {
            grandchild.put(space, "b", "grandchild").await?;
            Err::<(), _>(Error::rollback("not this"))
        });
        assert_eq!(given_up.await, Err(Error::rollback("not this")));
        assert_eq!(text(child, space, "b").await?, "child", "what is seen is what stays");
        Ok::<_, Error>(())
    })
    .await?;
    assert_eq!(text(tx, space, "b").await?, "child");
    Ok(())
}

#[test]
fn what_is_undone_is_a_child_where_that_is_chosen() {
    let (db, choice) = (open("score"), NestingChoice::new());
    let (space, chooses) = (db.space("s").unwrap(), db.choosing(&choice));
    for _ in 0..100 {
        chooses.blocking().transact(async move |tx| gives_up_within(tx, space).await).unwrap();
    }
    assert_eq!(choice.chosen(), Some(NestingModel::Closed), "nothing else can undo a part");
    assert_eq!(stored(&db, ["a", "b", "c"]), ["parent", "child", ""].map(str::to_owned));
}

#[test]
fn an_error_that_a_transaction_ends_with_needs_no_child() {
    let (db, choice) = (open("score"), NestingChoice::new());
    let (space, chooses) = (db.space("s").unwrap(), db.choosing(&choice));
    for at in 0..1_000_000 {
        if choice.chosen().is_some() {
            break;
        }
        let body = async move |tx: &Tx| {
            tx.put(space, "a", "parent").await?;
            tx.nested(async |child| {
                child.put(space, "b", "child").await?;
                if at < 10 { Err(Error::rollback("not today")) } else { Ok(()) }
            })
            .await
        };
        let done = chooses.blocking().transact(body);
        assert_eq!(done.is_err(), at < 10);
        if at == 9 {
            assert_eq!(stored(&db, ["a", "b", "c"]), ["", "", ""].map(str::to_owned));
        }
    }
    let (decisions, _) = choice.decisions();
    let tried: Vec<_> = decisions[0].tried.iter().map(|it| it.model).collect();
    assert_eq!(tried, [NestingModel::Flat, NestingModel::Closed]);
}

/// Two processes of one database, as far as they know. (It takes seconds until they have compared
/// anything.)
#[test]
fn call_sites_of_one_name_find_each_other_by_a_row() {
    for protocol in ["score", "tfa"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let processes = [0, 1].map(|_| CallSites::pooled(space));
        let row = || {
            let look = async move |tx: &Tx| tx.get(space, "nesting choice/orders").await;
            db.blocking().transact(look).unwrap()
        };
        let (mut ran, begun) = (0, Instant::now());
        while row().is_none() && begun.elapsed() < Duration::from_secs(60) {
            let choice = processes[ran % 2].at("orders");
            let body = async move |tx: &Tx| {
                tx.nested(async |child| child.put(space, "a", "order").await).await
            };
            db.choosing(&choice).blocking().transact(body).unwrap();
            ran += 1;
        }
        assert!(row().is_some_and(|row| row.as_slice().len() < 1_000), "{protocol}");
        assert!(processes.iter().all(|it| it.at("orders").chosen().is_none()), "it is tried");
    }
}

/// Polls a future once, and drops it; whether it was ready.
async fn poll_once(future: impl Future) -> bool {
    let mut future = Box::pin(future);
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

#[test]
fn a_child_whose_future_is_dropped_is_undone() {
    let db = open("score");
    let space = db.space("s").unwrap();
    let body = async move |tx: &Tx| {
        tx.put(space, "a", "parent").await?;
        let child = tx.nested(async |child| {
            child.put(space, "a", "child").await?;
            child
                .nested(async |grandchild| {
                    grandchild.put(space, "b", "grandchild").await?;
                    std::future::pending::<Result<(), Error>>().await
                })
                .await
        });
        assert!(!poll_once(child).await, "its grandchild waits for ever");
        tx.put(space, "c", "parent").await
    };
    db.blocking().transact(body).unwrap();
    assert_eq!(stored(&db, ["a", "b", "c"]), ["parent", "", "parent"].map(str::to_owned));
    let is_ready = block_on(async {
        let by_hand = db.begin().await?;
        // On the way to its loop and back, it is dropped before, during or after its first step; or
        // the loop was so fast that it has ended.
        let child = by_hand.nested(async |child| child.put(space, "a", "child").await);
        let is_ready = poll_once(child).await;
        by_hand.put(space, "c", "by hand").await?;
        by_hand.commit().await.map(|_| is_ready)
    })
    .unwrap();
    let first = if is_ready { "child" } else { "parent" };
    assert_eq!(stored(&db, ["a", "b", "c"]), [first, "", "by hand"].map(str::to_owned));
}

#[test]
fn a_transaction_is_not_used_beside_its_child() {
    let db = open("score");
    let space = db.space("s").unwrap();
    let body = async move |tx: &Tx| {
        tx.nested(async |_| {
            assert_eq!(tx.get(space, "a").await, Err(Error::ChildOpen));
            let second = tx.nested(async |_| Ok::<_, Error>(())).await;
            assert_eq!(second, Err(Error::ChildOpen));
            assert_eq!(Error::ChildOpen.kind(), ErrorKind::Misuse);
            Ok::<_, Error>(())
        })
        .await?;
        tx.get(space, "a").await
    };
    assert_eq!(db.blocking().transact(body), Ok(None));
}

#[test]
fn levels_have_a_bound() {
    async fn deeper(tx: &Tx, levels: u32) -> Result<(), Error> {
        match levels {
            0 => Ok(()),
            _ => tx.nested(async |child| Box::pin(deeper(child, levels - 1)).await).await,
        }
    }
    let db = open("score");
    assert_eq!(block_on(db.transact(async |tx| deeper(tx, 256).await)), Ok(()));
    let refused = block_on(db.transact(async |tx| deeper(tx, 257).await)).unwrap_err();
    assert!(refused.to_string().contains("at most 256 levels"), "{refused}");
}

#[test]
fn without_levels_a_child_is_a_part_of_its_transaction() {
    let db = open("granola");
    let space = db.space("s").unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let body = async move |tx: &Tx| {
        tx.nested(async |child| child.put(space, "a", "child").await).await?;
        tx.put(space, "b", "parent").await
    };
    db.blocking().transact(body).unwrap();
    assert_eq!(stored(&db, ["a", "b", "c"]), ["child", "parent", ""].map(str::to_owned));
    let counted = runs.clone();
    let body = async move |tx: &Tx| {
        counted.fetch_add(1, Ordering::Relaxed);
        let given_up = tx.nested(async |child| {
            child.put(space, "a", "given up").await?;
            Err::<(), _>(Error::rollback("no"))
        });
        assert_eq!(given_up.await, Err(Error::rollback("no")));
        Ok::<_, Error>(())
    };
    let refused = db.blocking().transact(body).unwrap_err();
    assert!(refused.to_string().contains("undoes no part"), "{refused}");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert_eq!(stored(&db, ["a", "b", "c"]), ["child", "parent", ""].map(str::to_owned));
    // One that has only read leaves nothing to be undone.
    let body = async move |tx: &Tx| {
        let given_up = tx.nested(async |child| {
            child.get(space, "a").await?;
            Err::<(), _>(Error::rollback("no"))
        });
        assert_eq!(given_up.await, Err(Error::rollback("no")));
        tx.put(space, "c", "kept").await
    };
    db.blocking().transact(body).unwrap();
    assert_eq!(stored(&db, ["a", "b", "c"]), ["child", "parent", "kept"].map(str::to_owned));
    // What a child within it has written is its own.
    let body = async move |tx: &Tx| {
        let given_up = tx.nested(async |child| {
            child.nested(async |inner| inner.put(space, "c", "inner").await).await?;
            Err::<(), _>(Error::rollback("no"))
        });
        given_up.await.or(Ok::<_, Error>(()))
    };
    let refused = db.blocking().transact(body).unwrap_err();
    assert!(refused.to_string().contains("undoes no part"), "{refused}");
}

/// How often the bodies of a transaction and of its child ran.
#[derive(Default)]
struct Runs {
    parent: AtomicU32,
    child: AtomicU32,
}

/// A transaction reads `a` itself, or in a child, which then reads `b`; in between another one
/// changes both, so many times.
fn changed_meanwhile(db: &Db, read_by_parent: bool, times: u32) -> (u32, u32, String) {
    let space = db.space("s").unwrap();
    let (runs, other) = (Arc::new(Runs::default()), db.clone());
    let counted = runs.clone();
    let body = async move |tx: &Tx| {
        counted.parent.fetch_add(1, Ordering::Relaxed);
        tx.put(space, "mine", "parent").await?;
        if read_by_parent {
            text(tx, space, "a").await?;
        }
        tx.nested(async |child| {
            let run = counted.child.fetch_add(1, Ordering::Relaxed);
            let before = text(child, space, "a").await?;
            if run < times {
                let change = other.transact(async move |tx| {
                    tx.put(space, "a", format!("a{run}").as_str()).await?;
                    tx.put(space, "b", format!("b{run}").as_str()).await
                });
                change.await?;
            }
            // The body makes something else of the error, which must not matter.
            let after = text(child, space, "b").await.map_err(|_| Error::rollback("hidden"))?;
            child.put(space, "seen", format!("{before} {after}").as_str()).await?;
            Ok::<_, Error>(())
        })
        .await
    };
    db.blocking().transact(body).unwrap();
    let [seen, ..] = stored(db, ["seen", "a", "b"]);
    (runs.parent.load(Ordering::Relaxed), runs.child.load(Ordering::Relaxed), seen)
}

#[test]
fn what_changed_in_a_child_runs_that_again_and_nothing_else() {
    for protocol in ["score", "gmu", "two-phase-commit", "hierarchy", "bumper-delaying", "tfa"] {
        let (parent, child, seen) = changed_meanwhile(&open(protocol), false, 1);
        assert_eq!((parent, child, seen.as_str()), (1, 2, "a0 b0"), "{protocol}");
    }
}

#[test]
fn what_changed_of_its_parent_runs_all_of_it_again() {
    for protocol in ["score", "gmu", "tfa"] {
        let (parent, child, seen) = changed_meanwhile(&open(protocol), true, 1);
        assert_eq!((parent, child, seen.as_str()), (2, 2, "a0 b0"), "{protocol}");
    }
}

#[test]
fn without_a_snapshot_that_moves_all_of_it_runs_again() {
    let (parent, child, seen) = changed_meanwhile(&open("alvin"), false, 1);
    assert_eq!((parent, child, seen.as_str()), (2, 2, "a0 b0"));
}

#[test]
fn a_child_that_is_undone_too_often_makes_all_of_it_run_again() {
    let (parent, child, seen) = changed_meanwhile(&open("score"), false, 6);
    assert_eq!((parent, child, seen.as_str()), (2, 7, "a5 b5"), "four retries, then the parent");
}

#[test]
fn a_merge_that_looks_first_runs_its_child_again() {
    for protocol in ["score", "tfa", "gmu"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let (runs, other) = (Arc::new(AtomicU32::new(0)), db.clone());
        let counted = runs.clone();
        let body = async move |tx: &Tx| {
            tx.nested(async |child| {
                let run = counted.fetch_add(1, Ordering::Relaxed);
                let read = text(child, space, "a").await?;
                if run == 0 {
                    other.transact(async move |tx| tx.put(space, "a", "changed").await).await?;
                }
                Ok::<_, Error>(read)
            })
            .await
        };
        let read = db.validating_merges().blocking().transact(body).unwrap();
        assert_eq!((read.as_str(), runs.load(Ordering::Relaxed)), ("changed", 2), "{protocol}");
    }
}

/// What was scanned is not looked at before a merge: it is validated with the commit, once.
#[test]
fn a_validated_merge_after_a_scan_commits_at_once() {
    for protocol in ["score", "two-phase-commit", "hierarchy", "tfa", "gmu", "bumper"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let body = async move |tx: &Tx| {
            counted.fetch_add(1, Ordering::Relaxed);
            tx.put(space, "mine", "parent").await?;
            let rows = tx.scan(space, Range::prefix("a")).await?.len();
            text(tx, space, "b").await?;
            tx.nested(async |child| text(child, space, "a").await.map(drop)).await?;
            tx.nested(async |child| child.scan(space, Range::prefix("b")).await.map(drop)).await?;
            Ok::<_, Error>(rows)
        };
        let rows = db.validating_merges().blocking().transact(body).unwrap();
        assert_eq!((rows, runs.load(Ordering::Relaxed)), (0, 1), "{protocol}");
    }
}

#[test]
fn a_transaction_does_not_commit_while_a_child_is_to_run_again() {
    let db = open("score");
    let space = db.space("s").unwrap();
    let (runs, other) = (Arc::new(AtomicU32::new(0)), db.clone());
    let counted = runs.clone();
    let body = async move |tx: &Tx| {
        let run = counted.fetch_add(1, Ordering::Relaxed);
        tx.put(space, "mine", "parent").await?;
        let child = tx.nested(async |child| {
            text(child, space, "a").await?;
            if run == 0 {
                let change = async move |tx: &Tx| {
                    tx.put(space, "a", "1").await?;
                    tx.put(space, "b", "1").await
                };
                other.transact(change).await?;
            }
            // Undone, and then gone before it can run again.
            let read = text(child, space, "b").await;
            if run == 0 {
                assert!(matches!(read, Err(Error::PartialAbort { level: 1 })), "{read:?}");
                std::future::pending::<()>().await;
            }
            read.map(drop)
        });
        poll_some(child).await;
        tx.put(space, "seen", "x").await
    };
    db.blocking().transact(body).unwrap();
    assert_eq!(stored(&db, ["mine", "seen", "a"]), ["parent", "x", "1"].map(str::to_owned));
}

/// Polls a future some times, and drops it.
async fn poll_some(future: impl Future) {
    let (mut future, mut left) = (Box::pin(future), 50);
    poll_fn(|cx| {
        left -= 1;
        cx.waker().wake_by_ref();
        match future.as_mut().poll(cx).is_ready() || left == 0 {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}
