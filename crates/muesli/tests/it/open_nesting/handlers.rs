//! What handlers may not do, and what they come before.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::*;

/// An open child whose handlers ask to wait for a change.
async fn waits(tx: &OpenTx) -> Result<(), Error> {
    let child = tx.open_atomic(("waits", &LockMode::write()), async |_| Ok::<_, Error>(()));
    child.on_abort("wait", &()).on_commit("wait", &()).await
}

/// A layer whose handler waits, caught or not by itself; what it warned of.
fn waiting(bench: &Bench, caught: bool) -> (OpenNesting, Arc<Mutex<Vec<String>>>) {
    let (numbers, warnings) = (bench.numbers, Arc::<Mutex<Vec<String>>>::default());
    let seen = warnings.clone();
    let nesting = bench.nesting.clone().handler("wait", move |tx, (): ()| {
        Box::pin(async move {
            numbers.typed::<String, i64>().get(tx, "own").await?;
            let waits = tx.retry::<()>();
            if caught { Ok(()) } else { waits }
        })
    });
    (nesting.on_warning(move |text| seen.lock().unwrap().push(text.to_owned())), warnings)
}

/// The text that names the handler and says what it may do.
fn assert_names_handler(text: &str) {
    for part in ["handler `wait` asks to wait", "`Tx::retry`", "goes by what it finds"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn handlers_that_ask_to_wait_end_in_an_error_that_says_what_they_may() {
    for caught in [false, true] {
        for aborts in [true, false] {
            let bench = Bench::new();
            let (nesting, warnings) = waiting(&bench, caught);
            // Were it run again for as long as it asks to, that would be for so long.
            let db = bench.db.session().timeout(Duration::from_millis(300));
            let body = async move |tx: &OpenTx| {
                waits(tx).await?;
                if aborts { Err(Error::rollback("enough")) } else { Ok(()) }
            };
            let ended = block_on(db.transact_nested(&nesting, body));
            match aborts {
                true => assert_names_handler(&ended.unwrap_err().to_string()),
                false => {
                    assert_eq!(ended, Ok(()), "it has committed");
                    let warnings = warnings.lock().unwrap();
                    assert_names_handler(&warnings[..].join("; "));
                }
            }
            let finish = nesting.finish_abandoned(&db, Duration::from_millis(1));
            let finished = block_on(finish).unwrap_err();
            assert!(matches!(finished, Error::Unfinished { .. }), "{finished}");
            assert_names_handler(&finished.to_string());
            // Another program knows better.
            let better =
                bench.nesting.clone().handler("wait", |_, (): ()| Box::pin(async { Ok(()) }));
            let finish = better.finish_abandoned(&db, Duration::from_millis(1));
            assert_eq!(block_on(finish), Ok(1));
            block_on(better.forget_ends(&db)).unwrap();
            bench.assert_nothing_is_left();
        }
    }
}

/// So often a compensation is disturbed at most, if it is: after eight losses any transaction asks
/// to be let through.
const DISTURBED_MOST: u32 = 6;

/// A compensation reads a key that another transaction, which began later, is then about to write.
/// Under a protocol that knows ages it is refused; it would not be by one of no age.
#[test]
fn what_ends_a_scope_comes_before_what_began_later() {
    let mut bench = Bench::with(Options { protocol: "tfa".to_owned(), ..Options::default() });
    let (numbers, other) = (bench.numbers.typed::<String, i64>(), bench.db.session());
    let (runs, refused) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, lost) = (runs.clone(), refused.clone());
    bench.nesting = bench.nesting.handler("disturbed", move |tx, (): ()| {
        let (other, runs, refused) = (other.clone(), counted.clone(), lost.clone());
        Box::pin(async move {
            let seen = numbers.get(tx, "a").await?.unwrap_or(0);
            let is_known = refused.load(Ordering::Relaxed) > 0;
            if !is_known && runs.fetch_add(1, Ordering::Relaxed) < DISTURBED_MOST {
                let disturbs = other.begin().await?;
                numbers.put(&disturbs, "a", &100).await?;
                if disturbs.commit().await.is_err() {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            }
            numbers.put(tx, "a", &(seen + 1)).await
        })
    });
    let ended = bench.run(async |tx| {
        tx.open_atomic((), async |_| Ok::<_, Error>(())).on_abort("disturbed", &()).await?;
        Err::<(), _>(Error::rollback("enough"))
    });
    assert_eq!(ended, Err(Error::rollback("enough")));
    let (runs, refused) = (runs.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
    // What is read is kept for a while, which may pass where the machine is slow.
    assert_eq!(refused, 1, "it was disturbed in {runs} runs");
    bench.assert_nothing_is_left();
}
