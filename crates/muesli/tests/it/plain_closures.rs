//! Plain closures of plain threads: they run in the state of the loop that has their keys.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use muesli::blocking::block_on;
use muesli::{Db, DirectTx, Error, Options, SmallBytes, SpaceOptions, Tx};

fn options(loops: usize) -> Options {
    let options = Options { loops, repositories: loops, ..Options::default() };
    options.space("accounts", SpaceOptions::default())
}

fn number(value: Option<&SmallBytes>) -> i64 {
    value.map_or(0, |it| i64::from_le_bytes(it.as_slice().try_into().unwrap()))
}

/// Plain closures of plain threads count together with bodies that wait.
#[test]
fn plain_closures_of_plain_threads_lose_nothing() {
    const TIMES: i64 = 2_000;
    let db = Db::open(options(1)).unwrap();
    let all = db.space("accounts").unwrap();
    let key = SmallBytes::from("counter");
    let add = move |tx: &mut DirectTx<'_>| {
        let [found] = tx.get_array(all, std::array::from_ref(&key))?;
        let next = number(found.as_ref()) + 1;
        tx.put(all, key.clone(), SmallBytes::new(&next.to_le_bytes()))?;
        Ok::<_, Error>(next)
    };
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (db, add) = (db.blocking(), add.clone());
            thread::spawn(move || {
                let mut last = 0;
                for _ in 0..TIMES {
                    let next = db.call_on(0, &add).unwrap();
                    assert!(next > last, "{next} after {last}");
                    last = next;
                }
            })
        })
        .collect();
    for _ in 0..TIMES {
        let body = async move |tx: &Tx| {
            let found = tx.get(all, "counter").await?;
            let next = number(found.as_ref()) + 1;
            tx.put(all, "counter", SmallBytes::new(&next.to_le_bytes())).await
        };
        db.blocking().transact(body).unwrap();
    }
    threads.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(db.blocking().call_on(0, add).unwrap(), 4 * TIMES + 1);
}

/// What a closure did that panics or refuses is undone, and who cannot run one is told why.
#[test]
fn plain_closures_end_as_bodies_do() {
    let db = Db::open(options(2)).unwrap();
    let all = db.space("accounts").unwrap();
    let keys: Vec<SmallBytes> =
        (0..16).map(|it| SmallBytes::from(format!("k{it}").as_str())).collect();
    let here = |home| {
        let reads = |key: &&SmallBytes| db.blocking().call_on(home, |tx| tx.get(all, key)).is_ok();
        keys.iter().filter(reads).count()
    };
    assert!(here(0) > 0 && here(1) > 0, "each loop has some keys");
    assert_eq!(here(0) + here(1), keys.len(), "and each key is at one loop");
    let own = keys.iter().find(|key| db.blocking().call_on(0, |tx| tx.get(all, key)).is_ok());
    let own = own.unwrap().clone();
    let refused = db.blocking().call_on(0, |tx| {
        tx.put(all, own.clone(), "v")?;
        Err::<(), _>(Error::Rollback("by the user".to_owned()))
    });
    assert_eq!(refused, Err(Error::Rollback("by the user".to_owned())));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.blocking().call_on(0, |tx| {
            tx.put(all, own.clone(), "v").unwrap();
            panic!("by the user");
            #[allow(unreachable_code, reason = "what the closure answers")]
            Ok::<(), Error>(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(db.blocking().call_on(0, |tx| tx.get(all, &own)), Ok(None), "both were undone");
    let inside = db.clone();
    let nested = async move || inside.blocking().call_on(0, |_| Ok::<_, Error>(()));
    assert_eq!(block_on(db.run_on(0, nested)).unwrap(), Err(Error::BlocksLoop));
    db.close();
    assert_eq!(db.blocking().call_on(0, |_| Ok::<_, Error>(())), Err(Error::Closed));
}
