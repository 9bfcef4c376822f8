//! A client of a cluster: connecting, making a space, errors and what to do about them, and
//! sessions that go from one process to another.
//!
//! `cargo run -p muesli-examples --bin cluster_client` starts a server in this process. With
//! addresses (`-- 127.0.0.1:7400`) it uses a cluster that runs, such as one of `muesli start` or
//! `muesli cluster up`.

use std::thread;
use std::time::Duration;

use muesli::server::{self, RunningServer, ServerOptions};
use muesli::{Connect, Db, Error, ErrorKind, Outcome, SpaceOptions, TypedSpace};

type Counters = TypedSpace<String, u64>;

/// Counts one up. What is done about an error depends on its kind.
fn count(db: &Db, counters: Counters, name: &'static str) -> Result<u64, Error> {
    for pause in [10, 100, 1_000] {
        let counted = db.blocking().transact(async move |tx| {
            let next = counters.get(tx, name).await?.unwrap_or(0) + 1;
            counters.put(tx, name, &next).await?;
            Ok(next)
        });
        match counted {
            // Nothing was changed, and it may go well later. `transact` has run it again by
            // itself where others were in the way; here a server may be away for a moment.
            Err(error) if error.is_retryable() => {
                eprintln!("{error}");
                thread::sleep(Duration::from_millis(pause));
            }
            // The commit was asked for, and the answer was lost: it may or may not have happened.
            // RunningServer it again could count twice, so one asks first.
            Err(Error::Unknown { txn, after_ms }) => match db.blocking().outcome(txn)? {
                Outcome::Committed(_) => println!("it was counted after all"),
                Outcome::Aborted(_) => {}
                Outcome::NotKnown(_) => return Err(Error::Unknown { txn, after_ms }),
            },
            other => return other,
        }
    }
    Err(Error::Timeout { after_ms: 1_110 })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let own = match given.is_empty() {
        true => {
            let listen = "127.0.0.1:0".to_owned();
            Some(RunningServer::start(ServerOptions { listen, ..server::options() }, 1)?)
        }
        false => None,
    };
    let addresses = match &own {
        Some(server) => vec![server.address().to_string()],
        None => given,
    };
    // One address that answers is enough: the servers tell of each other.
    let connect = Connect { addresses, ..Connect::default() };
    let db = Db::connect_with(connect.clone())?;
    // Made once; later it is there already, and this only looks whether its options are the same.
    let counters: Counters = db.create_space("counters", SpaceOptions::default())?.typed();

    let before = count(&db, counters, "visits")?;
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let db = db.session();
            thread::spawn(move || {
                (0..25).try_for_each(|_| count(&db, counters, "visits").map(drop))
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it does not panic")?;
    }
    let after = count(&db, counters, "visits")?;
    println!("counted {} times", after - before);
    assert!(after > before + 100, "{before} {after}");

    // Another process (here: another connection) that is given the token sees what this one saw.
    let token: String = serde_json::to_string(&db.blocking().token()?)?;
    let other = Db::connect_with(connect)?;
    let session = other.after(&serde_json::from_str(&token)?).read_only();
    let visits = session.blocking().transact(async move |tx| counters.get(tx, "visits").await)?;
    println!("the other process sees {visits:?}");
    assert!(visits >= Some(after));

    // Mistakes of the program are told apart from trouble.
    let written =
        db.read_only().blocking().transact(async move |tx| counters.put(tx, "visits", &0).await);
    let error = written.expect_err("the handle is read-only");
    assert_eq!(error.kind(), ErrorKind::Misuse);
    println!("{error}");
    db.close();
    other.close();
    if let Some(server) = own {
        server.stop()?;
    }
    Ok(())
}
