//! Open children of open children, and what levels must leave to each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use muesli::open_nesting::{LockMode, OpenTx};
use muesli::{Error, ErrorKind, Tx};

use super::{Bench, add, add_open, read_open};

/// A child with two children of its own: it adds to `a` and `b`, under locks of these names and one
/// of its own.
async fn both(tx: &OpenTx, bench: &Bench, fails: bool) -> Result<(), Error> {
    let numbers = bench.numbers;
    tx.open_atomic(("both", &LockMode::write()), async |child| {
        add_open(child, numbers, "a", 1).await?;
        add_open(child, numbers, "b", 1).await?;
        add(child, numbers, "c", 1).await?;
        if fails { Err(Error::rollback("no")) } else { Ok(()) }
    })
    .on_abort("undo", &("c", 1))
    .on_commit("done", "both")
    .await
}

#[test]
fn a_childs_record_takes_the_place_of_its_childrens() {
    for aborts in [false, true] {
        let bench = Bench::new();
        let own = bench.clone();
        let ended = bench.run(async move |tx| {
            both(tx, &own, false).await?;
            let rows = own.nesting.rows(&own.db).await?;
            assert_eq!((rows.scopes, rows.locks, rows.ends), (1, 1, 0), "its own lock is held");
            assert_eq!(read_open(tx, own.numbers, "a").await?, 1);
            if aborts { Err(Error::rollback("no")) } else { Ok(()) }
        });
        assert_eq!(ended.is_err(), aborts);
        let last = if aborts { "undo c 1" } else { "done both" };
        assert_eq!(bench.log(), ["done a", "done b", last]);
        let numbers = (bench.number("a"), bench.number("b"), bench.number("c"));
        assert_eq!(numbers, (1, 1, i64::from(!aborts)));
        bench.assert_nothing_is_left();
    }
}

#[test]
fn a_child_that_fails_has_its_children_compensated() {
    let bench = Bench::new();
    let own = bench.clone();
    let ended = bench.run(async move |tx| {
        add_open(tx, own.numbers, "d", 1).await?;
        assert_eq!(both(tx, &own, true).await, Err(Error::rollback("no")));
        add_open(tx, own.numbers, "d", 1).await
    });
    assert_eq!(ended, Ok(2));
    assert_eq!(bench.log(), ["undo b 1", "undo a 1", "done d", "done d"]);
    bench.assert_nothing_is_left();
}

#[test]
fn a_lock_that_is_held_passes_to_the_transaction_above() {
    for aborts in [false, true] {
        let bench = Bench::new();
        let own = bench.clone();
        let ended = bench.run(async move |tx| {
            tx.open_atomic((), async |child| {
                let write = LockMode::write();
                let nothing = async |_: &OpenTx| Ok::<_, Error>(());
                child.open_atomic((), nothing).hold_lock("held", &write).await?;
                child.open_atomic(("free", &write), nothing).await
            })
            .await?;
            let rows = own.nesting.rows(&own.db).await?;
            assert_eq!((rows.scopes, rows.locks), (1, 1));
            if aborts { Err(Error::rollback("no")) } else { Ok(()) }
        });
        assert_eq!(ended.is_err(), aborts);
        bench.assert_nothing_is_left();
    }
}

#[test]
fn a_childs_children_may_take_what_its_ancestors_hold() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    let ended = bench.run(async move |tx| {
        add_open(tx, numbers, "a", 1).await?;
        let within = async |child: &OpenTx| add_open(child, numbers, "a", 1).await;
        tx.open_atomic((), within).on_abort("undo", &("a", 1)).await?;
        Err::<(), _>(Error::rollback("no"))
    });
    assert!(ended.is_err());
    assert_eq!((bench.number("a"), bench.log().len()), (0, 3));
    bench.assert_nothing_is_left();
}

/// An access that breaks the separation of levels ends the transaction, is not tried again, and
/// what children did is compensated. The error names both accesses, and the child.
#[test]
fn levels_that_use_the_same_keys_are_an_error() {
    let texts = [
        &["open child number 2, at level 1, writes key `", "transaction at level 0 has read"][..],
        &["open child number 2, at level 1, reads key `", "level 0 has written and not committed"],
        &["transaction at level 0 reads key `", "open child number 1 has written"],
        &["is the open nesting layer's own"],
    ];
    for (case, parts) in texts.into_iter().enumerate() {
        let bench = Bench::new();
        let own = bench.clone();
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = attempts.clone();
        let ended = bench.run(async move |tx| {
            counted.fetch_add(1, Ordering::Relaxed);
            let typed = own.numbers.typed::<String, i64>();
            add_open(tx, own.numbers, "b", 1).await?;
            let _ = match case {
                0 => {
                    typed.get(tx, "a").await?;
                    add_open(tx, own.numbers, "a", 1).await
                }
                1 => {
                    typed.put(tx, "a", &1).await?;
                    read_open(tx, own.numbers, "a").await
                }
                2 => typed.get(tx, "b").await.map(|_| 0),
                _ => {
                    let plain: &Tx = tx;
                    plain.put(own.db.space("nesting")?, "x", "x").await.map(|()| 0)
                }
            };
            Ok(()) // That the body makes nothing of it does not help.
        });
        let error = ended.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{case}: {error}");
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{case}: {text}");
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
        assert_eq!((bench.number("b"), bench.number("a")), (0, 0), "{case}");
        bench.assert_nothing_is_left();
    }
}
