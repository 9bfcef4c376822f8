//! Checkpoints: where a transaction goes on after a conflict, and what it does not ask again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use muesli::{Db, Error, Options, Space, SpaceOptions, Tx};

/// Those with levels, of which snapshots can move, and where nobody commits in the past.
const PROTOCOLS: [&str; 4] = ["tfa", "score", "two-phase-commit", "hierarchy"];

fn open(protocol: &str) -> (Db, Space) {
    let options = Options { protocol: protocol.to_owned(), ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    (db, space)
}

/// How many conflicts made a transaction be run again as a whole.
fn conflicts(db: &Db) -> u64 {
    db.conflicts().into_iter().map(|(_, count)| count).sum()
}

/// How often something happened.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

async fn number(tx: &Tx, space: Space, key: &'static str) -> Result<u64, Error> {
    let value = tx.get(space, key).await?;
    Ok(value.map_or(0, |it| String::from_utf8_lossy(it.as_slice()).parse().unwrap()))
}

/// Another transaction adds to some keys.
async fn add(db: &Db, space: Space, keys: &'static [&'static str]) -> Result<(), Error> {
    db.transact_here(async |tx: &Tx| {
        for key in keys {
            let sum = number(tx, space, key).await? + 1;
            tx.put(space, *key, sum.to_string().as_str()).await?;
        }
        Ok::<_, Error>(())
    })
    .await
}

/// Reads "a", "b", "c" with checkpoints between, and writes their sum; while it runs for the first
/// time, others add to `keys` before it reads "c". How often it ran, and the full conflicts.
fn disturbed(protocol: &str, keys: &'static [&'static str]) -> (u32, u64, u64) {
    let (db, space) = open(protocol);
    let runs = Count::default();
    let (others, counted) = (db.clone(), runs.clone());
    let body = async move |tx: &Tx| {
        let first = counted.add() == 1;
        tx.put(space, "mine", "1").await?;
        let mut sum = number(tx, space, "a").await?;
        tx.checkpoint().await?;
        sum += 10 * number(tx, space, "b").await?;
        tx.checkpoint().await?;
        if first {
            add(&others, space, keys).await?;
        }
        sum += 100 * number(tx, space, "c").await?;
        tx.put(space, "sum", sum.to_string().as_str()).await
    };
    db.with_checkpoints().blocking().transact(body).unwrap();
    let read = async move |tx: &Tx| number(tx, space, "sum").await;
    let sum = db.blocking().transact(read).unwrap();
    (runs.get(), conflicts(&db), sum)
}

#[test]
fn a_transaction_goes_on_from_the_last_checkpoint_that_holds() {
    for protocol in PROTOCOLS {
        assert_eq!(disturbed(protocol, &["b", "c"]), (2, 0, 110), "{protocol}");
        assert_eq!(disturbed(protocol, &["a", "c"]).2, 101, "{protocol}");
    }
    // Nothing that was read has changed: the snapshot moves, and all goes on.
    assert_eq!(disturbed("tfa", &["c"]), (1, 0, 100));
}

#[test]
fn where_nothing_can_be_kept_all_is_run_again() {
    for protocol in ["tfa", "score", "granola", "gmu", "repeatable-read"] {
        let (runs, _, sum) = disturbed(protocol, &["a", "b", "c"]);
        assert!(runs <= 2, "{protocol}: {runs}");
        assert!(sum == 111 || protocol == "repeatable-read", "{protocol}: {sum}");
    }
}

/// What was answered before a checkpoint is answered so again, errors and children too, and is not
/// done twice.
#[test]
fn what_was_done_before_a_checkpoint_stays() {
    let (db, space) = open("tfa");
    let runs = Count::default();
    let (others, counted) = (db.clone(), runs.clone());
    let body = async move |tx: &Tx| {
        let first = counted.add() == 1;
        tx.nested(async |child| {
            child.put(space, "child", "1").await?;
            child.checkpoint().await
        })
        .await?;
        let given_up = tx.nested(async |child| {
            child.put(space, "child", "2").await?;
            Err::<(), _>(Error::rollback("not this"))
        });
        assert_eq!(given_up.await, Err(Error::rollback("not this")));
        let huge = vec![0; 1 << 20];
        assert!(matches!(tx.put(space, huge, "value").await, Err(Error::TooLarge { .. })));
        tx.checkpoint().await?;
        assert_eq!(number(tx, space, "child").await?, 1);
        tx.nested(async |child| child.put(space, "later", "1").await).await?;
        tx.checkpoint().await?;
        let mut sum = number(tx, space, "b").await?;
        if first {
            add(&others, space, &["b", "c"]).await?;
        }
        sum += number(tx, space, "c").await?;
        tx.put(space, "sum", sum.to_string().as_str()).await
    };
    db.with_checkpoints().blocking().transact(body).unwrap();
    assert_eq!((runs.get(), conflicts(&db)), (2, 0));
    let found = db.blocking().transact(async move |tx: &Tx| {
        let (child, third) = (number(tx, space, "child").await?, number(tx, space, "later").await?);
        Ok::<_, Error>((child, third, number(tx, space, "sum").await?))
    });
    assert_eq!(found, Ok((1, 1, 2)));
}

/// A body that goes another way when it is run again is run as a whole.
#[test]
fn a_body_that_goes_another_way_is_run_again_as_a_whole() {
    for other in ["a", "fewer"] {
        let (db, space) = open("tfa");
        let runs = Count::default();
        let (others, counted) = (db.clone(), runs.clone());
        let body = async move |tx: &Tx| {
            let run = counted.add();
            if run == 2 && other == "fewer" {
                return Ok(run);
            }
            tx.put(space, if run == 2 { other } else { "mine" }, "7").await?;
            tx.checkpoint().await?;
            number(tx, space, "b").await?;
            if run == 1 {
                add(&others, space, &["b", "c"]).await?;
            }
            number(tx, space, "c").await?;
            Ok::<_, Error>(run)
        };
        let runs = db.with_checkpoints().blocking().transact(body);
        assert_eq!((runs, conflicts(&db)), (Ok(3), 1), "{other}");
    }
}

/// A transaction that is disturbed on and on ends as one without checkpoints would.
#[test]
fn who_goes_back_too_often_is_run_again_as_a_whole() {
    let (db, space) = open("tfa");
    let runs = Count::default();
    let (others, counted) = (db.clone(), runs.clone());
    let body = async move |tx: &Tx| {
        let run = counted.add();
        tx.checkpoint().await?;
        number(tx, space, "b").await?;
        if run < 10 {
            add(&others, space, &["b", "c"]).await?;
        }
        number(tx, space, "c").await?;
        tx.put(space, "mine", "1").await
    };
    db.with_checkpoints().blocking().transact(body).unwrap();
    assert_eq!(runs.get(), 10);
    assert!(conflicts(&db) >= 1);
}

/// There can be more checkpoints than a transaction has levels.
#[test]
fn checkpoints_end_where_levels_do() {
    let (db, space) = open("score");
    let sum = db.with_checkpoints().blocking().transact(async move |tx: &Tx| {
        for key in 0..2_000_u32 {
            tx.checkpoint().await?;
            tx.put(space, key.to_be_bytes().as_slice(), "1").await?;
        }
        let rows = tx.scan(space, muesli::Range::all()).await?;
        Ok::<_, Error>(rows.len())
    });
    assert_eq!(sum, Ok(2_000));
}
