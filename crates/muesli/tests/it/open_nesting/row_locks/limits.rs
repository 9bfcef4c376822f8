//! What row locks refuse, and how much they bear.

use muesli::open_nesting::NestingLimits;

use super::*;

#[test]
fn mistakes_are_errors_that_name_them() {
    let bench = patient();
    let numbers = bench.numbers;
    let twice = bench.run(async move |tx| {
        let change = async |child: &OpenTx| add(child, numbers, "a", 1).await;
        tx.open_atomic((), change).with_row_locks().on_abort("undo", &("a", 1)).await
    });
    let within = bench.run(async move |tx| {
        let within = async |child: &OpenTx| count_up(child, numbers, "a").await;
        tx.open_atomic((), within).with_row_locks().await
    });
    let delayed = bench.run(async move |tx| {
        let change = async |child: &OpenTx| {
            muesli::structures::Counter::new(numbers, "c").add_deferred(child, 1).await
        };
        tx.open_atomic((), change).with_row_locks().await.map(|_| 0)
    });
    let large = bench.run(async move |tx| {
        for size in [NestingLimits::default().argument_bytes, 1] {
            let change = async |child: &OpenTx| child.put(numbers, "large", vec![1; size]).await;
            tx.open_atomic((), change).with_row_locks().await?;
        }
        Ok(0)
    });
    let (lister, hashed) = (bench.clone(), bench.db.space("hashed").unwrap());
    let lister = Bench { db: lister.db.listing(), ..lister };
    let listed = lister.run(async move |tx| {
        let scan = async |child: &OpenTx| child.scan(hashed, muesli::Range::all()).await;
        tx.open_atomic((), scan).with_row_locks().await.map(|_| 0)
    });
    let expected = [
        (listed, "no ordered one"),
        (twice, "leave out one of them"),
        (within, "has an open child"),
        (delayed, "delayed action"),
        (large, "NestingLimits::argument_bytes"),
    ];
    for (ended, text) in expected {
        let error = ended.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    bench.assert_nothing_is_left();
}

/// Thousands of rows in one child, and a range of all of them.
#[test]
fn many_rows_are_locked_and_put_back() {
    const ROWS: u32 = 3_000;
    let mut bench = patient();
    let limits =
        NestingLimits { locks: 10_000, argument_bytes: 1 << 20, ..NestingLimits::default() };
    bench.nesting = bench.nesting.limits(limits);
    let ordered = bench.db.space("ordered").unwrap();
    let ended = bench.run(async move |tx| {
        let write = async |child: &OpenTx| {
            for row in 0..ROWS {
                child.put(ordered, &row.to_be_bytes()[..], "new").await?;
            }
            Ok::<_, Error>(())
        };
        tx.open_atomic((), write).with_row_locks().await?;
        let count = async |child: &OpenTx| child.scan(ordered, muesli::Range::all()).await;
        let rows = tx.open_atomic((), count).with_row_locks().await?;
        assert_eq!(rows.len(), ROWS as usize);
        Err::<(), _>(Error::rollback("enough"))
    });
    assert_eq!(ended, Err(Error::rollback("enough")));
    let all = async move |tx: &Tx| tx.scan(ordered, muesli::Range::all()).await;
    assert_eq!(bench.db.blocking().transact(all).unwrap(), []);
    bench.assert_nothing_is_left();
}

/// Keys of any length have a lock.
#[test]
fn rows_of_long_keys_are_locked() {
    let bench = patient();
    let numbers = bench.numbers;
    let change = async move |tx: &OpenTx| {
        let change = async |child: &OpenTx| child.put(numbers, vec![7; 1_000], "value").await;
        tx.open_atomic((), change).with_row_locks().await
    };
    let got = beside(&bench, change, change);
    assert_eq!(got.map_err(|error| error.kind()), Err(ErrorKind::Timeout));
}
