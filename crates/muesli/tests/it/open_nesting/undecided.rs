//! What a transaction sees that may still be undone.

use muesli::Error;
use muesli::open_nesting::{LockMode, OpenTx};

use super::{Bench, add, add_open};

/// The number, and what it would be without what is undecided, in one snapshot.
async fn seen(bench: &Bench, key: &'static str) -> (i64, i64) {
    let (numbers, nesting) = (bench.numbers.typed::<String, i64>(), &bench.nesting);
    let read = async |tx: &muesli::Tx| {
        let shown = numbers.get(tx, key).await?.unwrap_or(0);
        let undecided: Vec<(String, i64)> = nesting.undecided(tx, "undo").await?;
        let more: i64 = undecided.iter().filter(|(it, _)| it == key).map(|(_, by)| by).sum();
        Ok::<_, Error>((shown, shown - more))
    };
    bench.db.read_only().transact_here(read).await.unwrap()
}

#[test]
fn what_is_not_decided_is_told_until_the_transaction_commits() {
    let bench = Bench::new();
    let (own, numbers) = (bench.clone(), bench.numbers);
    let ended = bench.run(async move |tx| {
        add_open(tx, numbers, "a", 5).await?;
        add_open(tx, numbers, "b", 7).await?;
        add_open(tx, numbers, "a", 1).await?;
        assert_eq!((seen(&own, "a").await, seen(&own, "b").await), ((6, 0), (7, 0)));
        let other: Vec<(String, i64)> =
            own.db.transact_here(async |tx| own.nesting.undecided(tx, "other").await).await?;
        assert_eq!(other, [], "of another handler");
        Ok(())
    });
    assert_eq!(ended, Ok(()));
    let own = bench.clone();
    let after = bench.run(async move |_| Ok::<_, Error>(seen(&own, "a").await));
    assert_eq!(after, Ok((6, 6)), "it has committed");
}

/// That of a child within a child counts until the outer one has committed, and then that one's.
#[test]
fn what_lies_within_children_is_told_once() {
    let bench = Bench::new();
    let (own, numbers) = (bench.clone(), bench.numbers);
    let ended = bench.run(async move |tx| {
        let within = own.clone();
        let outer = async |child: &OpenTx| {
            add_open(child, numbers, "a", 5).await?;
            assert_eq!(seen(&within, "a").await, (5, 0), "the inner child's");
            child.on_abort("undo", &("a", 5_i64))?;
            Ok::<_, Error>(())
        };
        tx.open_atomic(("outer", &LockMode::write()), outer).await?;
        assert_eq!(seen(&own, "a").await, (5, 0), "the outer child's, once");
        add(tx, numbers, "own", 1).await?;
        Err::<(), _>(Error::rollback("enough"))
    });
    assert_eq!(ended, Err(Error::rollback("enough")));
    assert_eq!(bench.number("a"), 0);
}
