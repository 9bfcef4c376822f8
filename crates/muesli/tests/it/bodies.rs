//! Bodies: errors of one's own, what they borrow, and when they are run again.

use std::num::ParseIntError;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use muesli::blocking::block_on;
use muesli::{Abort, Db, Error, ErrorKind, Limits, Options, Retry, SmallBytes, SpaceOptions, Tx};
use muesli::{Limit, TxnId};

/// An application's error.
#[derive(Debug, PartialEq)]
enum Refusal {
    NotEnough(i64),
    NoNumber(ParseIntError),
    Database(Error),
}

impl From<ParseIntError> for Refusal {
    fn from(error: ParseIntError) -> Refusal {
        Refusal::NoNumber(error)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Database(error)
    }
}

fn open() -> Db {
    Db::open(Options::default().space("s", SpaceOptions::default())).unwrap()
}

fn read(db: &Db, key: &'static str) -> Option<SmallBytes> {
    let space = db.space("s").unwrap();
    db.blocking().transact(async move |tx| tx.get(space, key).await).unwrap()
}

#[test]
fn a_body_returns_errors_of_its_own_and_nothing_is_changed_then() {
    let db = open();
    let stock = db.space("s").unwrap().typed::<String, i64>();
    let take = |text: &'static str| {
        db.blocking().transact(async move |tx| {
            let wanted: i64 = text.parse()?;
            let left = stock.get(tx, &"pens".to_owned()).await?.unwrap_or(5) - wanted;
            stock.put(tx, &"pens".to_owned(), &left).await?;
            if left < 0 {
                return Err(Refusal::NotEnough(left));
            }
            Ok(left)
        })
    };
    assert_eq!(take("7"), Err(Refusal::NotEnough(-2)));
    assert!(matches!(take("seven"), Err(Refusal::NoNumber(_))));
    assert_eq!(read(&db, "pens"), None);
    assert_eq!(take("3"), Ok(2));
    db.close();
    assert_eq!(take("1"), Err(Refusal::Database(Error::Closed)));
}

#[test]
fn any_error_of_the_standard_kind_goes_through_a_box() {
    let db = open();
    let space = db.space("s").unwrap();
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    let parsed: Result<u32, Boxed> = db.blocking().transact(async move |tx| {
        let text = tx.get(space, "k").await?.map_or_else(Vec::new, |it| it.as_slice().to_vec());
        Ok(String::from_utf8(text)?.parse::<u32>()?)
    });
    let error = parsed.unwrap_err();
    assert!(error.is::<ParseIntError>(), "{error}");
    assert_eq!(
        block_on(db.transact(async |_| Err::<(), _>(Boxed::from("no")))).unwrap_err().to_string(),
        "no"
    );
}

/// The first run reads what another transaction has written since its snapshot, and makes an error
/// of its own of that conflict: it is run again all the same.
#[test]
fn a_body_that_met_a_conflict_is_run_again_whatever_it_makes_of_that() {
    let mut met = 0;
    for protocol in ["score", "gmu", "2pc", "ngm"] {
        let options = Options { protocol: protocol.to_owned(), ..Options::default() };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let space = db.space("s").unwrap();
        let (runs, hidden) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (counted, hides, writer) = (runs.clone(), hidden.clone(), db.session());
        let body = async move |tx: &Tx| {
            tx.get(space, "a").await?;
            tx.put(space, "c", "c").await?;
            if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                let write = async move |tx: &Tx| tx.put(space, "b", "written").await;
                writer.transact(write).await?;
            }
            tx.get(space, "b").await.map_err(|_| {
                hides.fetch_add(1, Ordering::Relaxed);
                Refusal::NotEnough(0)
            })
        };
        assert_eq!(db.blocking().transact(body), Ok(Some("written".into())), "{protocol}");
        let hidden = hidden.load(Ordering::Relaxed);
        assert!(runs.load(Ordering::Relaxed) > hidden, "{protocol}");
        met += hidden;
        db.close();
    }
    assert!(met > 0, "no operation met a conflict");
}

#[test]
fn a_body_asks_to_be_run_again_by_a_conflict_of_its_own() {
    let retry = Retry { attempts: 3, pause: Duration::from_micros(1), ..Retry::default() };
    let db = Db::open(Options { retry, ..Options::default() }).unwrap();
    let again = Error::Conflict { reason: Abort::StaleRead, attempts: 1 };
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let ended = db.blocking().transact(async move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(again.clone())
    });
    assert_eq!(ended, Err(Error::Conflict { reason: Abort::StaleRead, attempts: 3 }));
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

/// Clones of what the body owns are not needed: it is borrowed by each run.
#[test]
fn bodies_borrow_what_they_own_and_on_a_loop_what_is_there() {
    let db = open();
    let space = db.space("s").unwrap();
    let (names, sum) = (vec!["a".to_owned(), "b".to_owned()], String::from("total"));
    let written = db.blocking().transact(async move |tx| {
        for name in &names {
            tx.put(space, name.as_str(), sum.as_str()).await?;
        }
        Ok::<_, Error>(names.len())
    });
    assert_eq!(written, Ok(2));
    // What stays on its loop need not be sendable, and may be borrowed from around it.
    let there = db.clone();
    let task = async move || {
        let names = Rc::new(["a", "b"].map(str::to_owned));
        let mut plain = Vec::new();
        let found = there.transact_here(async |tx| {
            tx.get_many(space, names.iter().map(|name| name.as_bytes().to_vec())).await
        });
        let found = found.await?.len();
        let direct = there.call_here(|tx| {
            plain.push(names.len());
            Ok::<_, Refusal>(tx.get(space, &"a".into())?)
        });
        direct.await.map_err(|error| Error::rollback(format!("{error:?}")))?;
        Ok::<_, Error>((found, plain.len()))
    };
    assert_eq!(block_on(db.run_on(0, task)).unwrap(), Ok((2, 1)));
}

#[test]
fn a_plain_closure_returns_errors_of_its_own() {
    let db = open();
    let (there, space) = (db.clone(), db.space("s").unwrap());
    let task = async move || {
        let refused = there.call_here(|tx| {
            tx.put(space, "k".into(), "never")?;
            Err::<(), _>(Refusal::NotEnough(1))
        });
        refused.await
    };
    assert_eq!(block_on(db.run_on(0, task)).unwrap(), Err(Refusal::NotEnough(1)));
    assert_eq!(read(&db, "k"), None);
}

/// A transaction may be a task of an executor with several threads: its future is `Send`.
#[test]
fn a_transactions_future_may_go_to_other_threads() {
    fn is_send<T: Send>(it: T) -> T {
        it
    }
    let db = open();
    let space = db.space("s").unwrap();
    let name = "k".to_owned();
    let task = is_send(async {
        db.transact(async move |tx| tx.put(space, name.as_str(), "v").await).await
    });
    assert_eq!(block_on(task), Ok(()));
}

#[test]
fn kinds_are_told_apart_and_running_again_is_said_where_it_is_right() {
    let txn = TxnId { node: muesli_core::NodeId(1), incarnation: 0, sequence: 1 };
    let conflict = |reason| Error::Conflict { reason, attempts: 1 };
    let all = [
        (conflict(Abort::StaleRead), ErrorKind::Conflict, true),
        (conflict(Abort::Overloaded), ErrorKind::Unavailable, true),
        (conflict(Abort::Superseded), ErrorKind::Unavailable, false),
        (Error::FootprintViolation("a".to_owned()), ErrorKind::Conflict, true),
        (Error::Timeout { after_ms: 1 }, ErrorKind::Unavailable, true),
        (Error::Unknown { after_ms: 1, txn }, ErrorKind::Unknown, false),
        (Error::TooLarge { what: Limit::Key, size: 2, limit: 1 }, ErrorKind::Limit, false),
        (Error::OverServerLimit(Limit::Key), ErrorKind::Limit, false),
        (Error::TransactionTimeout { after_ms: 1 }, ErrorKind::Timeout, false),
        (Error::rollback("no"), ErrorKind::Rollback, false),
        (Error::Refused("no".to_owned()), ErrorKind::Rollback, false),
        (Error::AnswerLost, ErrorKind::AnswerLost, false),
        (Error::Closed, ErrorKind::Unavailable, false),
        (Error::ReadOnly, ErrorKind::Misuse, false),
    ];
    for (error, kind, again) in all {
        assert_eq!((error.kind(), error.is_retryable()), (kind, again), "{error}");
        // What says "try again" is what may be run again, and nothing else.
        assert!(again || !error.to_string().contains("try again later"), "{error}");
    }
}

/// As a program meets them, not as they are made.
#[test]
fn limits_and_misuse_are_told_by_their_kinds() {
    let limits = Limits { value_bytes: 10, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    let kind = |db: &Db| {
        let done =
            db.blocking().transact(async move |tx| tx.put(space, "k", [7; 11].to_vec()).await);
        done.unwrap_err().kind()
    };
    assert_eq!(kind(&db), ErrorKind::Limit);
    assert_eq!(kind(&db.read_only()), ErrorKind::Misuse);
    db.close();
    assert_eq!(kind(&db), ErrorKind::Unavailable);
}

#[test]
fn a_value_of_another_type_is_told_with_its_space_its_key_and_the_type() {
    let db = open();
    let space = db.space("s").unwrap();
    let (rows, texts) = (space.typed::<[u8; 2], u8>(), space.typed::<[u8; 2], String>());
    db.blocking().transact(async move |tx| rows.put(tx, b"ab", &7).await).unwrap();
    assert_eq!(db.blocking().transact(async move |tx| rows.get(tx, b"ab").await), Ok(Some(7)));
    let error = db.blocking().transact(async move |tx| texts.get(tx, b"ab").await).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    for part in ["key `ab`", "space `s`", "String"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
