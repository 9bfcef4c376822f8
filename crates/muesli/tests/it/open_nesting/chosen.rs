//! Transactions of which it is chosen whether their open children are some.

use muesli::nesting_choice::{NestingChoice, NestingModel};
use muesli::open_nesting::NestingSwitch;

use super::*;

/// Adds to a number as an open child, or as what was chosen; what it was then.
async fn adds(tx: &OpenTx, numbers: Space, key: &'static str) -> Result<i64, Error> {
    let add = async |child: &OpenTx| add(child, numbers, key, 1).await;
    tx.open_atomic((key, &LockMode::write()), add)
        .on_abort("undo", &(key.to_owned(), 1_i64))
        .on_commit("count", &())
        .await
}

#[test]
fn commit_handlers_run_once_in_every_model() {
    let bench = Bench::new();
    let (choice, numbers) = (NestingChoice::new(), bench.numbers);
    let db = bench.db.choosing(&choice);
    let mut ran = 0;
    while choice.chosen().is_none() && ran < 1_000_000 {
        let body = async move |tx: &OpenTx| adds(tx, numbers, "a").await;
        let sum = block_on(db.transact_nested(&bench.nesting, body));
        ran += 1;
        assert_eq!(sum, Ok(ran));
    }
    let (decisions, made) = choice.decisions();
    assert_eq!(decisions.len() as u64, made);
    let first = decisions.first().expect("a comparison has ended");
    let tried: Vec<_> = first.tried.iter().map(|it| it.model).collect();
    assert_eq!(tried, [NestingModel::Flat, NestingModel::Closed, NestingModel::Open]);
    assert!(first.tried.iter().all(|it| it.committed > 0), "{first}");
    assert_eq!((bench.number("a"), bench.number("done")), (ran, ran));
    bench.assert_nothing_is_left();
}

/// What a flat transaction sees of a number to which another one has added by an open child, and
/// which has not ended.
fn sees(switch: Option<NestingSwitch>) -> Result<i64, Error> {
    let bench = Bench::new();
    let mut nesting = bench.nesting.clone().patience(Duration::from_secs(60));
    if let Some(switch) = switch {
        nesting = nesting.without(switch);
    }
    let (db, numbers) = (bench.db.clone(), bench.numbers);
    let flat = db.choosing(&NestingChoice::new()).timeout(Duration::from_millis(100));
    let own = nesting.clone();
    let body = async move |tx: &OpenTx| {
        adds(tx, numbers, "a").await?;
        let looks = async move |tx: &OpenTx| adds(tx, numbers, "a").await;
        Ok::<_, Error>(flat.transact_nested(&own, looks).await)
    };
    let seen = block_on(db.transact_nested(&nesting, body)).unwrap();
    assert!(bench.number("a") >= 1);
    seen
}

#[test]
fn what_is_no_open_child_waits_for_the_locks_of_others_that_are() {
    assert!(matches!(sees(None), Err(Error::TransactionTimeout { .. })));
    assert_eq!(sees(Some(NestingSwitch::CheckLocks)), Ok(2), "without looking it would be seen");
}

/// Who only reads has no open children, so nothing is chosen for it; but parts of it fail alone.
#[test]
fn a_part_of_a_reader_that_fails_is_undone_alone() {
    let bench = Bench::new();
    let (choice, numbers) = (NestingChoice::new(), bench.numbers);
    let db = bench.db.read_only().choosing(&choice).timeout(Duration::from_secs(20));
    let body = async move |tx: &OpenTx| {
        let fails = async |part: &OpenTx| {
            part.get(numbers, "a").await?;
            Err::<(), _>(Error::Closed)
        };
        assert_eq!(tx.nested(fails).await, Err(Error::Closed));
        tx.get(numbers, "a").await
    };
    assert_eq!(block_on(db.transact_nested(&bench.nesting, body)), Ok(None));
    let writer = bench.db.choosing(&choice);
    let body = async move |tx: &OpenTx| adds(tx, numbers, "a").await;
    let mut ran = 0;
    while choice.chosen().is_none() && ran < 1_000_000 {
        block_on(writer.transact_nested(&bench.nesting, body)).unwrap();
        ran += 1;
    }
    let tried = choice.decisions().0[0].tried.iter().map(|it| it.model).collect::<Vec<_>>();
    assert_eq!(tried[0], NestingModel::Flat, "that was no reason against flat transactions");
}

#[test]
fn a_part_that_fails_leaves_nothing() {
    let bench = Bench::new();
    let (choice, numbers) = (NestingChoice::new(), bench.numbers);
    let db = bench.db.choosing(&choice);
    for _ in 0..50 {
        let body = async move |tx: &OpenTx| {
            let failed = tx.open_atomic((), async |child| {
                add(child, numbers, "a", 7).await?;
                Err::<(), _>(Error::rollback("not this"))
            });
            let failed = failed.on_commit("done", &"failed".to_owned());
            assert_eq!(failed.await, Err(Error::rollback("not this")));
            adds(tx, numbers, "b").await
        };
        block_on(db.transact_nested(&bench.nesting, body)).unwrap();
    }
    assert_eq!((bench.number("a"), bench.number("b")), (0, 50));
    assert_eq!((bench.log(), bench.number("done")), (Vec::<String>::new(), 50));
    bench.assert_nothing_is_left();
}
