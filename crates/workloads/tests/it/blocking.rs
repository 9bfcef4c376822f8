//! Plain threads that block, beside clients on the loops: what all of them did is judged.

use std::thread;

use muesli::{Db, Error, Options, SpaceOptions, Tx};
use muesli_check::{Level, check};
use muesli_workloads::history::by_versions;
use serde_json::Map;

const KEYS: u64 = 6;

/// What so many plain threads do that block, each in a session of its own, and as many clients on
/// the loops if these `mix`, is judged whole: what each read and wrote, at which versions, and in
/// which order its session did that.
fn judged(protocol: &str, loops: usize, threads: u64, mix: bool) {
    let options = Options { protocol: protocol.to_owned(), loops, ..Options::default() };
    let options = Options { repositories: loops, history: true, ..options };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap().typed::<u64, u64>();
    let change = async move |tx: &Tx, number: u64| {
        let (from, to) = (number % KEYS, (number * 5 + 1) % KEYS);
        let found = space.get(tx, &from).await?.unwrap_or(0);
        if !number.is_multiple_of(3) {
            space.put(tx, &to, &(found + number)).await?;
            space.put(tx, &from, &(found + 1)).await?;
        }
        space.get(tx, &((number + 2) % KEYS)).await?;
        Ok::<_, Error>(())
    };
    thread::scope(|scope| {
        for thread in 0..threads {
            let here = db.session();
            scope.spawn(move || {
                let blocking = here.blocking();
                for number in 0..300 {
                    let number = number * 7 + thread;
                    blocking.transact(async move |tx| change(tx, number).await).unwrap();
                }
            });
            if !mix {
                continue;
            }
            let there = db.session();
            scope.spawn(move || {
                let session = there.clone();
                let client = async move || {
                    for number in 0..100 {
                        let number = number * 11 + thread;
                        session.transact_here(async |tx| change(tx, number).await).await.unwrap();
                    }
                };
                muesli::blocking::block_on(there.run_on(thread as usize, client)).unwrap();
            });
        }
    });
    let catalog = db.catalog();
    let history = by_versions(&db.close(), &catalog, Map::new()).unwrap();
    let options = muesli_check::Options { session_order: true, ..Default::default() };
    let verdict = check(&history, Level::Serializable, &options);
    assert!(verdict.holds(), "{protocol}, {loops} loops, {threads} threads: {verdict}");
    assert_eq!(
        verdict.stats.committed as u64,
        threads * if mix { 400 } else { 300 },
        "{:?}",
        verdict.stats
    );
}

#[test]
fn what_blocking_threads_do_is_serializable() {
    for protocol in ["score", "bumper", "two-phase-commit", "granola"] {
        for (loops, threads) in [(1, 1), (1, 2), (1, 8), (2, 4)] {
            judged(protocol, loops, threads, true);
        }
    }
}

/// Without tasks on the loops whose threads sleep: threads that block are in the states of several
/// loops at once.
#[test]
fn what_blocking_threads_do_at_several_loops_is_serializable() {
    for protocol in ["score", "bumper", "two-phase-commit", "granola", "tfa", "hierarchy"] {
        for (loops, threads) in [(2, 1), (2, 2), (3, 4)] {
            judged(protocol, loops, threads, false);
        }
    }
}
