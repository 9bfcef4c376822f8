//! Closing a database while it is used: what a client was told is applied everywhere, and nobody is
//! left waiting.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muesli::blocking::block_on;
use muesli::{
    BatchLinks, Batching, Db, Error, LinkBatch, Nanos, Options, Report, SmallBytes, Space,
    SpaceOptions, Timestamp, Tx,
};
use muesli_core::RepositoryId;
use muesli_core::parts::locator::Static;
use muesli_core::recorder::{RecordedOperation, Status};

/// Clients on threads of their own, and as many on each loop.
const CLIENTS: usize = 4;
const KEYS: u64 = 16;

fn open(protocol: &str) -> Db {
    open_that(protocol, true)
}

/// A database that applies what was decided as it is closed, or makes the mistake not to.
fn open_that(protocol: &str, applies_at_close: bool) -> Db {
    open_with(protocol, applies_at_close, Batching::default())
}

fn open_with(protocol: &str, applies_at_close: bool, batching: Batching) -> Db {
    let options = Options {
        batching,
        repositories: 3,
        replicas: 2,
        loops: 3,
        protocol: protocol.to_owned(),
        history: true,
        close_within: Duration::from_millis(50),
        applies_at_close,
        ..Options::default()
    };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

/// Moves something from one key to another.
async fn transfer(tx: &Tx, space: Space, number: u64) -> Result<(), Error> {
    for key in [number % KEYS, (number * 7 + 1) % KEYS] {
        let key = key.to_string();
        tx.get(space, key.as_str()).await?;
        tx.put(space, key.as_str(), number.to_string().as_str()).await?;
    }
    Ok(())
}

/// Runs transactions until the database is closed.
async fn client(db: Db, space: Space, first: u64, done: Arc<AtomicUsize>) {
    for number in (first..).step_by(101) {
        match db.transact(async move |tx| transfer(tx, space, number).await).await {
            Ok(()) => done.fetch_add(1, Ordering::Relaxed),
            Err(Error::Closed) => return,
            Err(Error::Conflict { .. }) => continue,
            Err(other) => panic!("{other}"),
        };
    }
}

type Chains = BTreeMap<(RepositoryId, SmallBytes), Vec<Timestamp>>;

/// Every version that a client was told of, and that no repository can have collected, is in the
/// chains of all that hold the key.
fn acknowledged_is_applied(db: &Db, space: Space, reports: &[Report]) -> Result<usize, String> {
    let catalog = db.catalog();
    let chains: Chains = reports
        .iter()
        .flat_map(|report| &report.chains)
        .flat_map(|(id, rows)| rows.iter().map(|row| ((*id, row.1.clone()), row.2.clone())))
        .collect();
    let mut seen = 0;
    for (record, operations) in reports.iter().flat_map(|report| report.recorder.transactions()) {
        let (Status::Committed, Some(at)) = (record.status, record.at) else { continue };
        for operation in operations {
            let RecordedOperation::Write { key, .. } = operation else { continue };
            for repository in Static.replicas_of(catalog.partition(space.id(), &key), &catalog) {
                let chain = chains.get(&(repository, key.clone()));
                let chain = chain.ok_or_else(|| format!("{repository:?} lacks {key:?}"))?;
                if at >= chain[0] && !chain.contains(&at) {
                    return Err(format!("{repository:?}, {key:?}: {at:?} is not in {chain:?}"));
                }
                seen += 1;
            }
        }
    }
    Ok(seen)
}

/// Closes a database in the middle of its work; how many versions were found that clients had been
/// told of, or one that was not.
fn closed_at_work(db: &Db) -> Result<usize, String> {
    let space = db.space("s").unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..2 * CLIENTS)
        .map(|number| {
            let (db, done) = (db.session(), done.clone());
            std::thread::spawn(move || {
                let first = number as u64 + 1;
                if number < CLIENTS {
                    return block_on(client(db, space, first, done));
                }
                let there = db.clone();
                let run = async move || client(there, space, first, done).await;
                let _ = block_on(db.run_on(number, run)); // Closed, or over.
            })
        })
        .collect();
    while done.load(Ordering::Relaxed) < 200 {
        std::thread::yield_now();
    }
    let reports = db.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    acknowledged_is_applied(db, space, &reports)
}

fn closing_loses_nothing(protocol: &str, batching: Batching) {
    for round in 0..8 {
        let applied = closed_at_work(&open_with(protocol, true, batching));
        assert!(applied.as_ref().is_ok_and(|&seen| seen > 400), "{protocol} {round}: {applied:?}");
    }
}

#[test]
fn what_clients_were_told_is_applied_when_the_database_is_closed() {
    let of_two_phases = ["score", "gmu", "bumper", "bumper-reconciled", "2pc", "rr", "ngm"];
    for protocol in of_two_phases.into_iter().chain(["granola", "sinfonia"]) {
        closing_loses_nothing(protocol, Batching::default());
    }
}

fn over_all(size: usize, micros: u64) -> Batching {
    let batch = LinkBatch::new(size, Nanos::from_micros(micros)).unwrap();
    Batching::over(BatchLinks::All, batch)
}

/// Whatever is held back as the loops come to their end is applied like all else.
#[test]
fn what_waits_for_a_batch_is_applied_when_the_database_is_closed() {
    for protocol in ["score", "2pc", "hierarchy"] {
        closing_loses_nothing(protocol, over_all(20, 300));
    }
}

/// A decision that was made just now, and held, leaves as the database closes, and not by its
/// time-out.
#[test]
fn closing_does_not_wait_for_batches() {
    let timeout = Duration::from_millis(400);
    let db = open_with("score", true, over_all(1024, timeout.as_micros() as u64));
    let space = db.space("s").unwrap();
    let begun = Instant::now();
    db.blocking()
        .transact(async move |tx| {
            for key in 0..KEYS {
                tx.put(space, key.to_string().as_str(), "v").await?;
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    assert!(begun.elapsed() >= timeout, "prepares and votes wait for more");
    let begun = Instant::now();
    let reports = db.close();
    assert!(begun.elapsed() < timeout, "closing took {:?}", begun.elapsed());
    assert!(acknowledged_is_applied(&db, space, &reports).is_ok_and(|seen| seen >= KEYS as usize));
}

#[test]
fn decisions_that_are_dropped_at_close_are_noticed() {
    let dropped = |_| closed_at_work(&open_that("score", false)).is_err();
    assert!((0..100).any(dropped));
}

#[test]
fn a_body_that_is_open_may_end_when_the_database_is_closed_and_none_begins() {
    let db = open("score");
    let space = db.space("s").unwrap();
    let ((begun, is_open), (go_on, waits)) = (channel(), channel::<()>());
    let (there, waits) = (db.clone(), Mutex::new(waits));
    let waits = Arc::new(waits);
    let open = std::thread::spawn(move || {
        let session = there.clone();
        there.blocking().transact(async move |tx| {
            tx.put(space, "open", "then").await?;
            begun.send(()).unwrap();
            // It waits without keeping its loop from its turns.
            while waits.lock().unwrap().try_recv().is_err() {
                session.sleep(Duration::from_micros(100)).await?;
            }
            Ok::<_, Error>(())
        })
    });
    is_open.recv().unwrap();
    let there = db.clone();
    let closing = std::thread::spawn(move || there.close());
    // Nothing begins from some moment on, while the body is open.
    let begins = || db.blocking().transact(async |_| Ok::<_, Error>(()));
    while begins() != Err(Error::Closed) {}
    go_on.send(()).unwrap();
    let ended = open.join().unwrap();
    let reports = closing.join().unwrap();
    let writers = reports.iter().flat_map(|report| report.recorder.transactions());
    let committed = writers.filter(|(record, _)| record.status == Status::Committed);
    let wrote = |it: &RecordedOperation| matches!(it, RecordedOperation::Write { .. });
    let committed = committed.filter_map(|(_, mut all)| all.find(wrote)).count();
    // On a machine that stands still for long its time may be over: then it is aborted.
    assert_eq!(committed, usize::from(ended.is_ok()), "{ended:?}");
    assert_eq!(acknowledged_is_applied(&db, space, &reports).unwrap(), 2 * committed);
}

#[test]
fn a_body_that_waits_for_ever_is_aborted_when_the_database_is_closed() {
    let db = open("score");
    let space = db.space("s").unwrap();
    let (begun, is_open) = channel();
    let there = db.clone();
    let waits = std::thread::spawn(move || {
        there.blocking().transact(async move |tx| {
            tx.put(space, "k", "never").await?;
            begun.send(()).unwrap();
            pending::<Result<(), Error>>().await
        })
    });
    is_open.recv().unwrap();
    let by_hand = db.blocking().begin().unwrap();
    block_on(by_hand.put(space, "k", "never")).unwrap();
    let reports = db.close();
    assert_eq!(waits.join().unwrap(), Err(Error::Closed));
    assert_eq!(block_on(by_hand.commit()), Err(Error::Closed));
    let all = reports.iter().flat_map(|report| report.recorder.transactions());
    let ends: Vec<_> = all.map(|(record, _)| record.status).collect();
    assert_eq!(ends, [Status::Aborted; 2]);
}
