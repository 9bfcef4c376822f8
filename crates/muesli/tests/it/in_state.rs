//! Futures that their caller polls itself, each time in the state of a loop.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use muesli::blocking::{PolledInState, StateCaller, StateEntry, block_on};
use muesli::{Abort, Db, Durable, Error, Options, Space, SpaceOptions, Transaction};

fn opened(loops: usize) -> (Db, Space) {
    let options = Options { loops, repositories: loops, ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    (db, space)
}

/// Polls until the answer is there.
fn done<T>(
    caller: &mut StateCaller,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let mut future = pin!(future);
    block_on(std::future::poll_fn(|cx| {
        match caller.poll(future.as_mut(), cx, StateEntry::OnceFree) {
            Ok(PolledInState::Ready(answer)) => Poll::Ready(answer),
            Ok(PolledInState::Waiting) => Poll::Pending,
            Ok(PolledInState::Occupied | PolledInState::Congested) => {
                panic!("it waits until the state is free")
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }))
}

fn begun(caller: &mut StateCaller) -> Result<Transaction, Error> {
    let db = caller.db().clone();
    done(caller, db.begin())
}

/// Between two operations of a transaction its caller keeps nobody out of the state.
#[test]
fn operations_are_polled_one_by_one() {
    for loops in [1, 3] {
        let (db, space) = opened(loops);
        let mut caller = StateCaller::new(&db);
        let tx = begun(&mut caller).unwrap();
        done(&mut caller, tx.put(space, "a", "1")).unwrap();
        let other = db.clone();
        let there = thread::spawn(move || {
            let put = async move |tx: &muesli::Tx| tx.put(space, "b", "2").await;
            other.blocking().transact(put)
        });
        there.join().unwrap().unwrap();
        assert_eq!(done(&mut caller, tx.get(space, "a")).unwrap(), Some("1".into()));
        done(&mut caller, tx.commit()).unwrap();
        let reader = begun(&mut caller.beside()).unwrap();
        let found = done(&mut caller, reader.get_many(space, ["a", "b"])).unwrap();
        assert_eq!(found, [Some("1".into()), Some("2".into())]);
        caller.end_in_state(|| drop(reader));
    }
}

/// A transaction that is ended without its commit is rolled back; one that was overtaken meets a
/// conflict.
#[test]
fn ends_are_those_of_other_transactions() {
    let (db, space) = opened(1);
    let mut caller = StateCaller::new(&db);
    let given_up = begun(&mut caller).unwrap();
    done(&mut caller, given_up.put(space, "a", "1")).unwrap();
    caller.end_in_state(|| drop(given_up));
    let overtaken = begun(&mut caller).unwrap();
    assert_eq!(done(&mut caller, overtaken.get(space, "a")).unwrap(), None);
    done(&mut caller, overtaken.put(space, "a", "2")).unwrap();
    let put = async move |tx: &muesli::Tx| tx.put(space, "a", "3").await;
    db.blocking().transact(put).unwrap();
    let ended = done(&mut caller, overtaken.commit());
    assert!(matches!(ended, Err(Error::Conflict { reason, .. }) if reason != Abort::Rollback));
}

/// A caller may go on on another thread, and the loop knows that it does not come back after that.
#[test]
fn a_caller_goes_on_on_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { durable: Some(Durable::at(folder.path())), ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    let mut caller = StateCaller::new(&db);
    let mut waited = false;
    for _ in 0..50 {
        let tx = begun(&mut caller).unwrap();
        done(&mut caller, tx.put(space, "a", "1")).unwrap();
        let mut commit = Box::pin(tx.commit());
        let mut cx = Context::from_waker(Waker::noop());
        match caller.poll(commit.as_mut(), &mut cx, StateEntry::OnceFree).unwrap() {
            PolledInState::Ready(answer) => answer.unwrap(),
            _ => {
                waited = true;
                let there = || done(&mut caller, commit);
                thread::scope(|scope| scope.spawn(there).join()).unwrap().unwrap();
            }
        }
    }
    assert!(waited, "commits wait for the disk");
    let began = Instant::now();
    db.close();
    assert!(began.elapsed() < Duration::from_millis(700), "nobody is waited for");
}

/// In the state nobody else is in it, a body does not poll so, and a closed database says so.
#[test]
fn what_cannot_be_polled_is_an_error() {
    let (db, space) = opened(1);
    let there = db.clone();
    let within = async move |_: &muesli::Tx| {
        let polled = begun(&mut StateCaller::new(&there));
        Ok::<_, Error>(polled.map(drop))
    };
    assert_eq!(db.blocking().transact(within).unwrap(), Err(Error::BlocksLoop));
    let mut caller = StateCaller::new(&db);
    let tx = begun(&mut caller).unwrap();
    db.close();
    assert_eq!(done(&mut caller, tx.put(space, "a", "1")), Err(Error::Closed));
    let mut get = pin!(tx.get(space, "a"));
    let mut cx = Context::from_waker(Waker::noop());
    let polled = caller.poll(get.as_mut(), &mut cx, StateEntry::IfFree);
    assert!(matches!(polled, Ok(PolledInState::Occupied)), "nothing is polled: {polled:?}");
}
