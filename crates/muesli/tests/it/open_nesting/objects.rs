//! Objects in open children; locks that a child expects; what is counted.

use std::time::Duration;

use muesli::objects::{Object, Objects};
use serde::{Deserialize, Serialize};

use super::*;

/// An account that open children change.
#[derive(Clone, Debug, PartialEq, Object, Serialize, Deserialize)]
struct OpenAccount {
    owner: String,
    balance: i64,
}

const PROTOCOLS: [&str; 4] = ["score", "tfa", "two-phase-commit", "hierarchy"];

/// A database with the account of ann, who has 100, and a layer that knows how to take back what
/// was paid in.
fn bank(protocol: &str) -> (Bench, OpenNesting, Objects<u32, OpenAccount>) {
    let protocol = protocol.to_owned();
    let bench = Bench::with(Options { protocol, repositories: 3, ..Options::default() });
    let accounts: Objects<u32, OpenAccount> = Objects::new(bench.numbers, "open accounts");
    let create = async move |tx: &Tx| {
        let ann = OpenAccount { owner: "ann".to_owned(), balance: 100 };
        accounts.create(tx, &1, ann).await.map(drop)
    };
    bench.db.blocking().transact(create).unwrap();
    let layer = bench.nesting.clone().handler("take back", move |tx, amount: i64| {
        Box::pin(async move {
            let account = accounts.open(tx, &1).await?;
            account.balance().update(tx, |balance| *balance -= amount).await
        })
    });
    (bench, layer, accounts)
}

async fn pay_in(
    tx: &OpenTx,
    accounts: Objects<u32, OpenAccount>,
    amount: i64,
) -> Result<(), Error> {
    tx.open_atomic((), async |child| {
        let account = accounts.open(child, &1).await?;
        account.balance().update(child, |balance| *balance += amount).await?;
        child.acquire_lock("ann", &LockMode::write()).await
    })
    .expect_lock("ann")
    .on_abort("take back", &amount)
    .await
}

fn balance(bench: &Bench, accounts: Objects<u32, OpenAccount>) -> i64 {
    let read = async move |tx: &Tx| accounts.open(tx, &1).await?.balance().get(tx);
    bench.db.blocking().transact(read).unwrap()
}

#[test]
fn objects_are_opened_and_changed_in_open_children_and_compensations() {
    for protocol in PROTOCOLS {
        let (bench, layer, accounts) = bank(protocol);
        let given_up = bench.db.transact_nested(&layer, async move |tx: &OpenTx| {
            pay_in(tx, accounts, 20).await?;
            pay_in(tx, accounts, 5).await?;
            Err::<(), _>(Error::rollback("too much"))
        });
        assert!(block_on(given_up).is_err(), "{protocol}");
        assert_eq!(balance(&bench, accounts), 100, "{protocol}: as if nothing had been paid in");
        let paid = bench.db.transact_nested(&layer, async move |tx: &OpenTx| {
            pay_in(tx, accounts, 20).await?;
            pay_in(tx, accounts, 5).await
        });
        assert_eq!(block_on(paid), Ok(()), "{protocol}");
        assert_eq!(balance(&bench, accounts), 125, "{protocol}");
        bench.assert_nothing_is_left();
    }
}

#[test]
fn a_lock_that_was_expected_is_taken_refused_and_released_as_any_other() {
    let (bench, layer, accounts) = bank("tfa");
    let patient = layer.clone().patience(Duration::from_secs(60));
    let (db, own) = (bench.db.clone(), layer.clone().patience(Duration::from_secs(60)));
    let outer = bench.db.transact_nested(&patient, async move |tx: &OpenTx| {
        pay_in(tx, accounts, 1).await?;
        // Somebody else finds the lock held, for as long as this one runs.
        let other = db.timeout(Duration::from_millis(50));
        let refused = other
            .transact_nested_here(&own, async move |tx: &OpenTx| pay_in(tx, accounts, 7).await)
            .await;
        assert!(matches!(refused, Err(Error::TransactionTimeout { .. })), "{refused:?}");
        pay_in(tx, accounts, 2).await
    });
    assert_eq!(block_on(outer), Ok(()));
    assert_eq!(balance(&bench, accounts), 103);
    bench.assert_nothing_is_left();
}

#[test]
fn attempts_are_counted_with_how_long_they_took_and_which_child_aborted_them() {
    let (bench, layer, accounts) = bank("score");
    let (db, own) = (bench.db.clone(), layer.clone());
    let outer = bench.db.transact_nested(&layer, async move |tx: &OpenTx| {
        pay_in(tx, accounts, 1).await?;
        let other = db.timeout(Duration::from_millis(5));
        let second = async move |tx: &OpenTx| {
            tx.open_atomic(("bob", &LockMode::write()), async |_| Ok::<_, Error>(())).await?;
            pay_in(tx, accounts, 7).await
        };
        drop(other.transact_nested_here(&own, second).await);
        Ok::<_, Error>(())
    });
    assert_eq!(block_on(outer), Ok(()));
    let counts = layer.counts();
    assert_eq!(counts.committed.attempts, 1);
    assert!(counts.aborted.attempts > 0 && counts.refused > 0, "{counts:?}");
    let [first, by_second, ..] = counts.aborted_by;
    assert_eq!((first, by_second), (0, counts.aborted.attempts), "its first child held a lock");
    let committed = counts.committed;
    assert!(committed.all >= committed.bodies + committed.commits, "{committed:?}");
    assert!(committed.own() > Duration::ZERO, "the transaction itself waited: {committed:?}");
    bench.assert_nothing_is_left();
}
