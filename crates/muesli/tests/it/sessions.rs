//! Sessions over several coordinators: whoever runs a session's next transaction shows it what it
//! has seen.

use muesli::{Connect, Db, Options, SessionToken, SpaceOptions, Tx};
use muesli_cluster::ServerOptions;

use crate::cluster::start_with;

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
fn a_token_is_carried_as_bytes_from_one_session_to_another() {
    for protocol in ["gmu", "score"] {
        let db = open(protocol);
        for round in 0..50 {
            let writer = db.independent();
            put(&writer, round);
            let token = muesli::blocking::block_on(writer.token()).unwrap();
            let bytes = postcard::to_stdvec(&token).unwrap();
            let read: SessionToken = postcard::from_bytes(&bytes).unwrap();
            assert_eq!(read, token);
            assert!(reads(&db.after(&read), round), "{protocol}: round {round}");
        }
        db.close();
    }
}

/// Of so many values that one handle was told are written, how many another one does not see.
fn stale_reads(writer: &Db, reader: &Db, rounds: u32) -> usize {
    let missed = |round: &u32| {
        put(writer, *round);
        !reads(reader, *round)
    };
    (0..rounds).filter(missed).count()
}

/// Each handle's transactions are run by either loop, of which both keep each key.
#[test]
fn handles_of_one_database_see_what_any_of_them_was_told() {
    for protocol in ["score", "gmu", "bumper", "2pc", "granola"] {
        let options = Options { repositories: 2, replicas: 2, loops: 2, ..Options::default() };
        let options = Options { protocol: protocol.to_owned(), ..options };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        assert_eq!(stale_reads(&db.session(), &db.session(), 300), 0, "{protocol}");
        assert_eq!(stale_reads(&db.clone(), &db.session(), 100), 0, "{protocol}");
        db.close();
    }
}

/// What makes a session independent: it sees what others were told only by their token.
#[test]
fn an_independent_session_sees_what_others_were_told_by_their_token() {
    for protocol in ["score", "gmu", "bumper"] {
        let options = Options { repositories: 2, replicas: 2, loops: 2, ..Options::default() };
        let options = Options { protocol: protocol.to_owned(), ..options };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let (writer, reader) = (db.independent(), db.independent());
        for round in 0..100 {
            put(&writer, round);
            let token = writer.blocking().token().unwrap();
            assert!(reads(&reader.after(&token), round), "{protocol}: round {round}");
        }
        db.close();
    }
}

/// The servers keep two copies of each key, and readers take either. Two connections that share
/// nothing read old values (42 of 100, measured); handles of one, and those that share, do not.
#[test]
fn handles_of_connections_see_what_any_of_them_was_told() {
    for protocol in ["score", "gmu"] {
        let servers = start_with(2, |_| ServerOptions {
            repositories: 2,
            replicas: 2,
            protocol: protocol.to_owned(),
            ..ServerOptions::default()
        });
        let connect = || {
            let (addresses, protocol) = (servers.addresses.clone(), protocol.to_owned());
            Db::connect_with(Connect { addresses, protocol, ..Connect::default() }).unwrap()
        };
        let (db, other) = (connect(), connect());
        db.create_space("s", SpaceOptions::default()).unwrap();
        assert_eq!(stale_reads(&db.session(), &db.session(), 200), 0, "{protocol}");
        assert_eq!(stale_reads(&db, &other.sharing(&db), 200), 0, "{protocol}");
        for round in 1_000..1_050 {
            put(&db, round);
            let token = db.blocking().token().unwrap();
            assert!(reads(&other.after(&token), round), "{protocol}: round {round}");
        }
        db.close();
        other.close();
        servers.stop();
    }
}
