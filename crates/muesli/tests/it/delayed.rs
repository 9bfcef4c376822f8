//! Delayed actions through the library: delayed where the protocol can, at once elsewhere, and
//! always with the same result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use muesli::{Abort, Action, Actions, Db, Error, Options, SmallBytes, SpaceOptions};

fn double(old: Option<&SmallBytes>, _argument: &SmallBytes) -> Option<SmallBytes> {
    old.map(|old| [old.as_slice(), old.as_slice()].concat().into())
}

fn open(protocol: &str) -> Db {
    let options = Options {
        repositories: 2,
        loops: 2,
        protocol: protocol.to_owned(),
        actions: Actions::default().with("double", double),
        ..Options::default()
    };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

fn read(db: &Db, key: &'static str) -> Option<SmallBytes> {
    let space = db.space("s").unwrap();
    // Another session may read a snapshot of before; a strict transaction does not.
    let strict = db.strict().blocking();
    strict.transact(async move |tx| tx.get(space, key).await).unwrap()
}

#[test]
fn are_done_in_order_and_users_have_their_own() {
    for protocol in ["bumper", "bumper-da", "bumper-reconciled", "score", "gmu"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let body = async move |tx: &muesli::Tx| {
            tx.defer(space, "a", Action::append("x")).await?;
            tx.defer(space, "a", Action::named("double", "")).await?;
            tx.defer(space, "b", Action::put_if_absent("y")).await?;
            tx.defer(space, "c", Action::named("double", "")).await
        };
        db.blocking().transact(body).unwrap();
        db.blocking().transact(body).unwrap();
        assert_eq!(read(&db, "a"), Some("xxxxxx".into()), "{protocol}: doubled, with one more");
        assert_eq!(read(&db, "b"), Some("y".into()), "{protocol}");
        assert_eq!(read(&db, "c"), None, "{protocol}");
        db.close();
    }
}

#[test]
fn who_leaves_its_footprint_is_run_again_with_its_actions_at_once() {
    let db = open("bumper");
    let space = db.space("s").unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let body = async move |tx: &muesli::Tx| {
        counted.fetch_add(1, Ordering::Relaxed);
        tx.defer(space, "a", Action::append("x")).await?;
        tx.get(space, "a").await
    };
    assert_eq!(db.blocking().transact(body).unwrap(), Some("x".into()));
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(read(&db, "a"), Some("x".into()));
    db.close();
}

#[test]
fn who_missed_a_write_is_run_again_with_its_actions_at_once() {
    let db = open("bumper");
    let space = db.space("s").unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let (counted, others) = (runs.clone(), db.session());
    let body = async move |tx: &muesli::Tx| {
        let run = counted.fetch_add(1, Ordering::Relaxed);
        let read = tx.get(space, "read").await?;
        if run < 2 {
            let write = async move |tx: &muesli::Tx| tx.put(space, "read", "more").await;
            others.transact(write).await?;
        }
        tx.defer(space, "a", Action::append("x")).await?;
        Ok::<_, Error>(read)
    };
    // Its second run misses a write as well, and lies before that: its actions are done already.
    assert_eq!(db.blocking().transact(body).unwrap(), Some("more".into()));
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(db.conflicts(), [(Abort::TimeWarpedActions, 1)]);
    assert_eq!(read(&db, "a"), Some("x".into()));
    db.close();
}

#[test]
fn unknown_actions_are_refused_by_name() {
    let db = open("bumper");
    let space = db.space("s").unwrap();
    let body = async move |tx: &muesli::Tx| tx.defer(space, "a", Action::named("halve", "")).await;
    let error = db.blocking().transact(body).unwrap_err();
    assert!(matches!(&error, Error::Space(text) if text.contains("`halve`")), "{error}");
    db.close();
}

#[test]
fn many_clients_add_to_one_counter() {
    let db = open("bumper");
    let space = db.space("s").unwrap();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let db = db.session();
            std::thread::spawn(move || {
                for _ in 0..100 {
                    let add =
                        async move |tx: &muesli::Tx| tx.defer(space, "n", Action::add(1)).await;
                    db.blocking().transact(add).unwrap();
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(read(&db, "n"), Some(400_i64.to_le_bytes().to_vec().into()));
    db.close();
}
