//! How transactions end that do not go their way: bodies that panic, futures that are dropped,
//! bodies that wait for ever.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use muesli::blocking::block_on;
use muesli::procedures::builtin::Amount;
use muesli::{BodyFuture, Db, Error, Options, Space, SpaceOptions, Tx};
use serde::{Deserialize, Serialize, Serializer};

use crate::cluster::start_with;

fn embedded(loops: usize) -> Db {
    let options = Options { repositories: loops, loops, ..Options::default() };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

/// A key whose partition is this one.
fn key_in(db: &Db, space: Space, partition: u16) -> String {
    let is_there =
        |key: &String| db.catalog().partition(space.id(), &key.as_str().into()) == partition;
    (0..).map(|number: u32| number.to_string()).find(is_there).unwrap()
}

fn read(db: &Db, space: Space, key: &str) -> Option<String> {
    let key = key.to_owned();
    let get = async move |tx: &Tx| tx.get(space, key.as_str()).await;
    let found = db.blocking().transact(get).unwrap();
    found.map(|value| String::from_utf8(value.as_slice().to_vec()).unwrap())
}

/// Runs what panics; what it said.
fn panic_of<T>(run: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).err().expect("it panics");
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("it says why")
}

/// A future that is ready when the other end says so, woken by it.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    fn open(&self) {
        let mut gate = self.0.lock().unwrap();
        gate.0 = true;
        gate.1.drain(..).for_each(Waker::wake);
    }

    async fn pass(&self) {
        std::future::poll_fn(|cx| {
            let mut gate = self.0.lock().unwrap();
            if gate.0 {
                return std::task::Poll::Ready(());
            }
            gate.1.push(cx.waker().clone());
            std::task::Poll::Pending
        })
        .await;
    }
}

/// A body that panics is aborted, its caller is told what it said, and a body that was open beside
/// it on the same loop, and whoever comes for the same key, go on.
fn a_panic_stays_with_its_caller(db: &Db) {
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let (gate, (begun, is_open)) = (Gate::default(), channel());
    let beside = {
        let (db, gate) = (db.clone(), gate.clone());
        std::thread::spawn(move || {
            db.blocking().transact(async move |tx| {
                tx.get(space, "beside").await?;
                begun.send(()).unwrap();
                gate.pass().await;
                tx.put(space, "beside", "written").await
            })
        })
    };
    is_open.recv().unwrap();
    for _ in 0..db.loops() {
        let message = panic_of(|| {
            db.blocking().transact(async move |tx| {
                tx.put(space, "k", "never").await?;
                tx.get(space, "k").await?;
                if tx.get(space, "other").await?.is_none() {
                    panic!("it was number {}", 7);
                }
                Ok::<_, Error>(())
            })
        });
        assert_eq!(message, "it was number 7");
    }
    assert_eq!(read(db, space, "k"), None);
    db.blocking().transact(async move |tx| tx.put(space, "k", "later").await).unwrap();
    gate.open();
    beside.join().unwrap().unwrap();
    assert_eq!(read(db, space, "k").as_deref(), Some("later"));
    assert_eq!(read(db, space, "beside").as_deref(), Some("written"));
}

#[test]
fn a_panic_in_a_body_reaches_its_caller_and_nobody_else() {
    for loops in [1, 2] {
        a_panic_stays_with_its_caller(&embedded(loops));
    }
}

#[test]
fn a_panic_in_a_body_of_a_client_reaches_its_caller_and_nobody_else() {
    let servers = start_with(1, |_| Default::default());
    let db = Db::connect(servers.addresses.clone()).unwrap();
    a_panic_stays_with_its_caller(&db);
    db.close();
    servers.stop();
}

#[test]
fn a_panic_in_a_closure_or_a_task_of_a_loop_reaches_its_caller() {
    let db = embedded(1);
    let space = db.space("s").unwrap();
    let there = db.clone();
    let message = panic_of(|| {
        block_on(db.run_on(0, async move || {
            let body = |tx: &mut muesli::DirectTx<'_>| -> Result<(), Error> {
                tx.put(space, "k".into(), "never")?;
                panic!("in a closure")
            };
            there.call_here(body).await
        }))
    });
    assert_eq!(message, "in a closure");
    let message = panic_of(|| block_on(db.run_on(0, async move || panic!("in a task"))));
    assert_eq!(message, "in a task");
    assert_eq!(read(&db, space, "k"), None);
}

/// A value that cannot be encoded, or not be decoded.
#[derive(Debug)]
struct Broken;

impl Serialize for Broken {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("it cannot be encoded")
    }
}

impl<'de> Deserialize<'de> for Broken {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Broken, D::Error> {
        panic!("it cannot be decoded")
    }
}

#[test]
fn a_panic_of_a_codec_reaches_the_caller() {
    let db = embedded(1);
    let space = db.space("s").unwrap();
    let (numbers, broken) = (space.typed::<u64, u64>(), space.typed::<u64, Broken>());
    let put = async move |tx: &Tx| numbers.put(tx, &1, &5).await;
    db.blocking().transact(put).unwrap();
    let message = panic_of(|| {
        let body = async move |tx: &Tx| broken.put(tx, &1, &Broken).await;
        db.blocking().transact(body)
    });
    assert_eq!(message, "it cannot be encoded");
    let message = panic_of(|| {
        let body = async move |tx: &Tx| broken.get(tx, &1).await.map(|it| it.is_some());
        db.blocking().transact(body)
    });
    assert_eq!(message, "it cannot be decoded");
    let get = async move |tx: &Tx| numbers.get(tx, &1).await;
    assert_eq!(db.blocking().transact(get).unwrap(), Some(5));
}

/// Polls a future once, as a caller does that will drop it.
fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Has a loop stand still until it is told to go on, so that what it must vote on is not decided.
fn hold_loop(db: &Db, which: usize) -> Sender<()> {
    let ((held, is_held), (let_go, holds)) = (channel(), channel::<()>());
    let db = db.clone();
    std::thread::spawn(move || {
        let hold = async move || {
            held.send(()).unwrap();
            let _ = holds.recv();
        };
        block_on(db.run_on(which, hold))
    });
    is_held.recv().unwrap();
    let_go
}

/// A body whose futures are known to be `Send`.
fn boxed<B: for<'a> Fn(&'a Tx) -> BodyFuture<'a, ()> + Send + Sync + 'static>(body: B) -> B {
    body
}

/// A body, who hears that it is at its end, and who tells it to go on.
type AtItsEnd<B> = (B, Receiver<()>, Sender<()>);

/// A body that writes keys, says that it is at its end, and ends when it is told to; the loop
/// waits with it.
fn at_its_end(
    space: Space,
    keys: Vec<String>,
) -> AtItsEnd<impl for<'a> Fn(&'a Tx) -> BodyFuture<'a, ()> + Send + Sync + 'static> {
    let ((ends, is_at_end), (go_on, waits)) = (channel(), channel::<()>());
    let waits = Arc::new(Mutex::new(waits));
    let body = boxed(move |tx| {
        let (ends, waits, keys) = (ends.clone(), waits.clone(), keys.clone());
        Box::pin(async move {
            for key in keys {
                tx.put(space, key.as_str(), "written").await?;
            }
            ends.send(()).unwrap();
            waits.lock().unwrap().recv().unwrap();
            Ok(())
        })
    });
    (body, is_at_end, go_on)
}

#[test]
fn a_future_that_is_dropped_before_the_commit_is_asked_for_aborts() {
    let db = embedded(1);
    let space = db.space("s").unwrap();
    // The body is at its end, and its loop has not asked for the commit.
    let (body, is_at_end, go_on) = at_its_end(space, vec!["k".to_owned()]);
    let mut running: Pin<Box<dyn Future<Output = _> + Send>> =
        Box::pin(db.transact(async move |tx| body(tx).await));
    assert!(!poll_once(&mut running));
    is_at_end.recv().unwrap();
    drop(running);
    go_on.send(()).unwrap();
    block_on(db.settle());
    assert_eq!(read(&db, space, "k"), None);
    // The body waits for ever; its transaction is over, for the database closes without it.
    let (begun, is_open) = channel();
    let wait = async move |tx: &Tx| {
        tx.put(space, "k", "written").await?;
        begun.send(()).unwrap();
        pending::<Result<(), Error>>().await
    };
    let mut running: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(db.transact(wait));
    assert!(!poll_once(&mut running));
    is_open.recv().unwrap();
    drop(running);
    assert_eq!(read(&db, space, "k"), None);
}

#[test]
fn a_commit_whose_future_is_dropped_is_decided_and_its_session_learns_of_it() {
    for by_hand in [false, true] {
        let db = embedded(2);
        let space = db.space("s").unwrap();
        let keys: Vec<_> = (0..2).map(|partition| key_in(&db, space, partition)).collect();
        let let_go = hold_loop(&db, 1);
        // Whoever is told that the body is at its end must be there when it says so.
        let (body, _is_at_end, go_on) = at_its_end(space, keys.clone());
        go_on.send(()).unwrap();
        let mut running: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> = if by_hand {
            let txn = db.blocking().begin().unwrap();
            for key in &keys {
                block_on(txn.put(space, key.as_str(), "written")).unwrap();
            }
            Box::pin(txn.commit())
        } else {
            Box::pin(db.transact(async move |tx| body(tx).await))
        };
        assert!(!poll_once(&mut running));
        // What was handed to the first loop before this has been done.
        block_on(db.run_on(0, async || ())).unwrap();
        drop(running);
        let_go.send(()).unwrap();
        block_on(db.settle());
        for key in &keys {
            let found = read(&db, space, key);
            assert_eq!(found.as_deref(), Some("written"), "{key}, by hand: {by_hand}");
        }
    }
}

#[test]
fn a_call_whose_future_is_dropped_is_decided_and_its_session_learns_of_it() {
    let (protocol, loops) = ("granola".to_owned(), 2);
    let options = Options { protocol, repositories: loops, loops, ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    let keys: Vec<_> = (0..2).map(|partition| key_in(&db, space, partition)).collect();
    let deposit = |key: &String, by: i64| Amount::of(space, key.as_str(), by);
    let place = |key: &String| space.place(key.as_str());
    let nothing_seen = block_on(db.token()).unwrap();
    let let_go = hold_loop(&db, 1);
    let call = db.call("deposit", 1).at(place(&keys[0]), &deposit(&keys[0], 5));
    let call = call.at(place(&keys[1]), &deposit(&keys[1], 5));
    let mut running: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(call.run());
    assert!(!poll_once(&mut running));
    // What was handed to the first loop before this has been done.
    block_on(db.run_on(0, async || ())).unwrap();
    drop(running);
    let_go.send(()).unwrap();
    block_on(db.settle());
    assert_ne!(block_on(db.token()).unwrap(), nothing_seen, "the session knows where it lies");
    for key in &keys {
        let call = db.call("deposit", 1).at(place(key), &deposit(key, 0));
        assert_eq!(call.wait().unwrap().of::<i64>(0), Ok(5), "{key}");
    }
}

fn a_timeout_ends_what_waits(db: &Db) {
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let short = db.timeout(Duration::from_millis(20));
    let over = Error::TransactionTimeout { after_ms: 20 };
    let wait = async move |tx: &Tx| {
        tx.put(space, "k", "never").await?;
        pending::<Result<(), Error>>().await
    };
    assert_eq!(short.blocking().transact(wait), Err(over.clone()));
    // By hand: it is aborted although nobody asks anything of it.
    let txn = short.blocking().begin().unwrap();
    block_on(txn.put(space, "k", "never")).unwrap();
    let asks = std::iter::repeat_with(|| block_on(txn.get(space, "k")));
    let failed = asks.filter_map(Result::err).next();
    assert_eq!(failed, Some(over.clone()));
    assert_eq!(block_on(txn.commit()), Err(over.clone()));
    assert_eq!(read(db, space, "k"), None);
    assert!(over.to_string().contains("20 ms"), "{over}");
    // One that ends in time is not ended again, and its place is used by others.
    let written = short.blocking().transact(async move |tx| tx.put(space, "k", "v").await);
    assert_eq!(written, Ok(()));
    let txn = db.timeout(Duration::from_secs(600)).blocking().begin().unwrap();
    block_on(txn.put(space, "k", "w")).unwrap();
    block_on(txn.commit()).unwrap();
    assert_eq!(read(db, space, "k").as_deref(), Some("w"));
}

#[test]
fn a_transaction_is_aborted_when_its_timeout_is_over() {
    a_timeout_ends_what_waits(&embedded(1));
    a_timeout_ends_what_waits(&embedded(2));
}

#[test]
fn a_transaction_of_a_client_is_aborted_when_its_timeout_is_over() {
    let servers = start_with(1, |_| Default::default());
    let db = Db::connect(servers.addresses.clone()).unwrap();
    a_timeout_ends_what_waits(&db);
    db.close();
    servers.stop();
}

#[test]
fn the_options_bound_transactions_that_have_no_timeout_of_their_own() {
    let after = Duration::from_millis(10);
    let options = Options { transaction_timeout: after, ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let ended = db.blocking().transact(async |_| pending::<Result<(), Error>>().await);
    assert_eq!(ended, Err(Error::TransactionTimeout { after_ms: 10 }));
}
