//! Transactions that say how stale what they see may be.

use std::time::Duration;

use muesli::{Db, Error, ErrorKind, Options, SmallBytes, SpaceOptions, Tx};

fn open(protocol: &str) -> Db {
    let options =
        Options { repositories: 3, loops: 3, protocol: protocol.to_owned(), ..Options::default() };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

fn put(db: &Db, value: &str) {
    let (space, value) = (db.space("s").unwrap(), SmallBytes::from(value));
    let write = async move |tx: &Tx| tx.put(space, "a", value.clone()).await;
    db.blocking().transact(write).unwrap();
}

fn get(db: &Db) -> Result<Option<SmallBytes>, Error> {
    let space = db.space("s").unwrap();
    db.blocking().transact(async move |tx: &Tx| tx.get(space, "a").await)
}

/// A thread's transactions go to the loops in turn, each a site of its own here.
#[test]
fn a_session_sees_its_own_commits_at_whichever_site_it_reads() {
    let protocols =
        ["alvin", "alvin-eus", "certified-multipaxos", "certified-m2paxos", "sharded-pob", "score"];
    for protocol in protocols {
        let db = open(protocol);
        let stale = db.at_most_stale(Duration::from_secs(5));
        for round in 0..30 {
            let value = round.to_string();
            put(&db, &value);
            assert_eq!(get(&stale), Ok(Some(value.as_str().into())), "{protocol}");
        }
        db.close();
    }
}

/// All within one turn of one loop, whose clock stands still meanwhile.
#[test]
fn a_session_sees_its_own_commit_though_no_time_has_passed_since_it_read() {
    for protocol in ["alvin", "alvin-eus", "certified-multipaxos", "certified-m2paxos"] {
        let options = Options { protocol: protocol.to_owned(), ..Options::default() };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let space = db.space("s").unwrap();
        let task = {
            let db = db.clone();
            async move || {
                let stale = db.at_most_stale(Duration::from_secs(5));
                let read = async |stale: &Db| {
                    stale.transact_here(async move |tx: &Tx| tx.get(space, "a").await).await
                };
                let mut seen = vec![read(&stale).await];
                for round in 0..20 {
                    let value = round.to_string();
                    let write = async move |tx: &Tx| tx.put(space, "a", value.as_str()).await;
                    db.transact_here(write).await.unwrap();
                    seen.push(read(&stale).await);
                }
                seen
            }
        };
        let seen = muesli::blocking::block_on(db.run_on(0, task)).unwrap();
        let wanted = (0..20).map(|round| Some(SmallBytes::from(round.to_string().as_str())));
        let wanted: Vec<_> = std::iter::once(None).chain(wanted).map(Ok).collect();
        assert_eq!(seen, wanted, "{protocol}");
        db.close();
    }
}

#[test]
fn what_another_session_committed_is_seen_once_the_bound_is_over() {
    let db = open("alvin");
    put(&db, "old");
    // One session for all: a cut is there, which has the old value.
    let stale = db.session().at_most_stale(Duration::from_millis(80));
    let before = std::time::Instant::now();
    assert_eq!(get(&stale), Ok(Some("old".into())));
    put(&db, "new");
    let seen = get(&stale).unwrap().unwrap();
    let is_young = before.elapsed() < Duration::from_millis(80);
    assert!(seen.as_slice() == b"new" || is_young && seen.as_slice() == b"old", "{seen:?}");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(get(&stale), Ok(Some("new".into())));
    // Without any staleness all is seen that was committed before.
    put(&db, "newest");
    assert_eq!(get(&db.session().at_most_stale(Duration::ZERO)), Ok(Some("newest".into())));
    db.close();
}

#[test]
fn who_is_not_to_wait_is_refused_until_there_is_a_snapshot() {
    for protocol in ["alvin", "sharded-multipaxos"] {
        is_refused_until_there_is_a_snapshot(protocol);
    }
}

fn is_refused_until_there_is_a_snapshot(protocol: &str) {
    let db = open(protocol);
    put(&db, "there");
    let refused = db.at_most_stale(Duration::from_secs(5)).refusing_stale();
    let mut refusals = 0;
    let found = loop {
        match get(&refused) {
            Ok(found) => break found,
            Err(error) => {
                assert_eq!(error, Error::NotFresh { most_ms: 5_000 });
                assert!(error.is_retryable() && error.kind() == ErrorKind::Unavailable);
                refusals += 1;
                assert!(refusals < 2_000, "there is never one");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    };
    assert_eq!(found, Some("there".into()));
    assert!(refusals > 0, "the first one finds no cut");
    db.close();
}

#[test]
fn what_may_be_stale_writes_nothing() {
    let db = open("alvin");
    let (space, stale) = (db.space("s").unwrap(), db.at_most_stale(Duration::from_secs(1)));
    let wrote = stale.blocking().transact(async move |tx: &Tx| tx.put(space, "a", "b").await);
    assert_eq!(wrote, Err(Error::ReadOnly));
    db.close();
}

#[test]
fn where_nothing_is_bounded_an_error_says_who_does() {
    for protocol in ["granola", "repeatable-read"] {
        let db = open(protocol);
        let refused = get(&db.at_most_stale(Duration::from_secs(1))).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(&format!("`{protocol}`")), "{text}");
        assert!(text.contains("alvin, alvin-fast") && text.contains("score"), "{text}");
        assert_eq!(refused.kind(), ErrorKind::Misuse);
        db.close();
    }
}
