//! Open children of transactions that only read: parts of them, on their snapshot.

use std::time::Duration;

use super::*;

/// Runs a transaction with open children that only reads.
fn look<T: Send + 'static>(
    bench: &Bench,
    nesting: &OpenNesting,
    body: impl AsyncFn(&OpenTx) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    block_on(bench.db.read_only().transact_nested(nesting, body))
}

#[test]
fn children_take_no_lock_and_commit_nothing() {
    for protocol in serializable() {
        let options = Options { protocol: protocol.to_string(), ..Options::default() };
        let bench = Bench::with(options);
        let (own, numbers) = (bench.clone(), bench.numbers);
        bench.run(async move |tx| add_open(tx, numbers, "a", 5).await).unwrap();
        let before = bench.nesting.counts();
        // A second transaction of the layer, of whatever kind, would stop it.
        let nesting = bench.nesting.clone().stopping_after(1);
        let found = look(&bench, &nesting, async move |tx| {
            let a = read_open(tx, numbers, "a").await?;
            let within = async |child: &OpenTx| {
                child.hold_lock("held", &LockMode::write()).await?;
                child.on_abort("undo", &("a", 1))?;
                read_open(child, numbers, "b").await
            };
            let b = tx.open_atomic(("outer", &LockMode::write()), within).await?;
            let gives_up = async |_: &OpenTx| Err::<(), _>(Error::rollback("not this"));
            assert!(tx.open_atomic((), gives_up).await.is_err());
            let closed = tx.atomic(async |part| read_open(part, numbers, "a").await).await?;
            assert_eq!(own.nesting.rows(&own.db).await?, NestingRows::default(), "{protocol}");
            Ok((a, b, closed))
        });
        assert_eq!(found, Ok((5, 0, 5)), "{protocol}");
        assert!(!nesting.has_stopped(), "{protocol}");
        assert_eq!(nesting.counts().children, before.children, "{protocol}");
        bench.assert_nothing_is_left();
    }
}

/// All children see one snapshot, whatever is committed between them.
#[test]
fn children_see_the_snapshot_of_their_transaction() {
    let bench = Bench::new();
    let (own, numbers) = (bench.clone(), bench.numbers);
    let found = look(&bench, &bench.nesting, async move |tx| {
        let before = read_open(tx, numbers, "a").await?;
        let adds = async |tx: &OpenTx| add_open(tx, numbers, "a", 5).await;
        assert_eq!(own.db.session().transact_nested_here(&own.nesting, adds).await, Ok(5));
        Ok((before, read_open(tx, numbers, "a").await?))
    });
    assert_eq!(found, Ok((0, 0)));
}

/// What a reader sees of an open child whose transaction has not ended.
fn seen_meanwhile(switch: Option<NestingSwitch>) -> Result<i64, Error> {
    let bench = bench_without(switch);
    let (own, numbers) = (bench.clone(), bench.numbers);
    bench
        .run(async move |tx| {
            add_open(tx, numbers, "a", 5).await?;
            let reader = own.db.session().read_only().timeout(Duration::from_millis(30));
            let looks = async |tx: &OpenTx| read_open(tx, numbers, "a").await;
            Ok(reader.transact_nested_here(&own.nesting, looks).await)
        })
        .unwrap()
}

#[test]
fn locks_of_others_are_looked_at() {
    let refused = seen_meanwhile(None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Timeout);
    assert_eq!(seen_meanwhile(Some(NestingSwitch::CheckLocks)), Ok(5), "it may be undone");
}

/// A write, or a commit handler, is an error that says what may be done; the transaction is not run
/// again, whatever its body makes of it.
#[test]
fn a_write_is_an_error_that_says_what_is_allowed() {
    let bench = Bench::new();
    let numbers = bench.numbers;
    for case in 0..3 {
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = attempts.clone();
        let ended = look(&bench, &bench.nesting, async move |tx| {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = match case {
                0 => tx.open_atomic((), async |child| add(child, numbers, "a", 1).await).await,
                1 => tx.open_atomic((), async |_| Ok(0)).on_commit("done", "a").await,
                _ => add(tx, numbers, "a", 1).await,
            };
            Ok(())
        });
        let error = ended.unwrap_err();
        assert_eq!((error.kind(), attempts.load(Ordering::Relaxed)), (ErrorKind::Misuse, 1));
        let text = error.to_string();
        let named = if case == 1 { "commit handler `done`" } else { "writes key `" };
        assert!(text.contains("read-only transaction") && text.contains(named), "{case}: {text}");
        assert!(text.contains("on a handle without `read_only`"), "{case}: {text}");
        assert_eq!(bench.number("a"), 0);
    }
    bench.assert_nothing_is_left();
}
