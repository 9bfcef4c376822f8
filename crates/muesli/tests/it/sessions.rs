//! Sessions over several coordinators: whoever runs a session's next transaction shows it what it
//! has seen.

use muesli::{Db, Options, SessionPast, SpaceOptions, Tx};

fn open(protocol: &str) -> Db {
    let options =
        Options { repositories: 4, loops: 2, protocol: protocol.to_owned(), ..Options::default() };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

fn put(db: &Db, round: u32) {
    let space = db.space("s").unwrap();
    let write = async move |tx: &Tx| {
        for key in ["a", "b", "c", "d"] {
            tx.put(space, key, round.to_string().as_str()).await?;
        }
        Ok::<_, muesli::Error>(())
    };
    db.blocking().transact(write).unwrap();
}

fn reads(db: &Db, round: u32) -> bool {
    let space = db.space("s").unwrap();
    let keys = ["a", "b", "c", "d"];
    let read = async move |tx: &Tx| tx.get_many(space, keys).await;
    let found = db.read_only().blocking().transact(read).unwrap();
    found.into_iter().all(|value| value == Some(round.to_string().as_str().into()))
}

/// A thread's transactions go to the loops in turn.
#[test]
fn a_session_reads_what_it_wrote_whichever_loop_runs_it() {
    for protocol in ["gmu", "score", "bumper"] {
        let db = open(protocol);
        for round in 0..200 {
            put(&db, round);
            assert!(reads(&db, round), "{protocol}: round {round}");
        }
        db.close();
    }
}

#[test]
fn explicit_transactions_keep_the_order_too() {
    let db = open("gmu");
    let space = db.space("s").unwrap();
    for round in 0..100_u32 {
        let text = round.to_string();
        let seen = muesli::blocking::block_on(async {
            let writer = db.begin().await?;
            writer.put(space, "a", text.as_str()).await?;
            writer.put(space, "b", text.as_str()).await?;
            writer.commit().await?;
            let reader = db.begin().await?;
            let seen = reader.get(space, "b").await?;
            reader.commit().await?;
            Ok::<_, muesli::Error>(seen)
        });
        assert_eq!(seen, Ok(Some(text.as_str().into())), "round {round}");
    }
    db.close();
}

#[test]
fn a_past_is_carried_as_bytes_from_one_session_to_another() {
    for protocol in ["gmu", "score"] {
        let db = open(protocol);
        for round in 0..50 {
            let writer = db.session();
            put(&writer, round);
            let past = muesli::blocking::block_on(writer.past()).unwrap();
            let bytes = postcard::to_stdvec(&past).unwrap();
            let read: SessionPast = postcard::from_bytes(&bytes).unwrap();
            assert_eq!(read, past);
            assert!(reads(&db.after(&read), round), "{protocol}: round {round}");
        }
        db.close();
    }
}
