//! Objects: what their operations do, and what handles of them show of children.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_util::future::try_join;
use muesli::blocking::block_on;
use muesli::objects::{Object, Objects};
use muesli::{Db, Error, ErrorKind, Options, SpaceOptions, Tx};
use serde::{Deserialize, Serialize};

/// One of each family, and one without levels.
const PROTOCOLS: [&str; 5] = ["score", "tfa", "gmu", "repeatable-read", "granola"];

/// An account of the tests.
#[derive(Clone, Debug, PartialEq, Object, Serialize, Deserialize)]
struct Account {
    /// Whose it is.
    owner: String,
    balance: i64,
}

#[derive(Clone, Debug, Object, Serialize, Deserialize)]
struct Other {
    flag: bool,
}

type Accounts = Objects<u32, Account>;

fn open(protocol: &str, loops: usize) -> (Db, Accounts) {
    let options = Options {
        protocol: protocol.to_owned(),
        loops,
        repositories: loops * 2,
        ..Options::default()
    };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let accounts = Objects::new(db.space("s").unwrap(), "accounts");
    (db, accounts)
}

fn account(owner: &str, balance: i64) -> Account {
    Account { owner: owner.to_owned(), balance }
}

/// Accounts 1 to `count` with 100 each.
fn with_accounts(protocol: &str, loops: usize, count: u32) -> (Db, Accounts) {
    let (db, accounts) = open(protocol, loops);
    let body = async move |tx: &Tx| {
        for number in 1..=count {
            accounts.create(tx, &number, account("ann", 100)).await?;
        }
        Ok::<_, Error>(())
    };
    db.blocking().atomic(body).unwrap();
    (db, accounts)
}

fn balance(db: &Db, accounts: Accounts, number: u32) -> Option<i64> {
    let read = block_on(accounts.read(db, &number)).unwrap();
    read.map(|account| account.balance)
}

#[test]
fn objects_are_created_opened_changed_and_deleted() {
    for protocol in PROTOCOLS {
        let (db, accounts) = open(protocol, 1);
        let made = db.blocking().atomic(async move |tx| {
            assert!(accounts.try_open(tx, &1).await?.is_none());
            let ann = accounts.create(tx, &1, account("ann", 10)).await?;
            accounts.create(tx, &2, account("bob", 20)).await?;
            ann.balance().set(tx, 11).await?;
            let was = ann.balance().update(tx, |it| std::mem::replace(it, *it * 2)).await?;
            assert_eq!((was, ann.balance().get(tx)?), (11, 22));
            assert_eq!(ann.owner().with(tx, String::len)?, 3);
            ann.value(tx)
        });
        assert_eq!(made, Ok(account("ann", 22)), "{protocol}");
        let ended = db.blocking().atomic(async move |tx| {
            let all = accounts.open_all(tx, &[2, 1, 2]).await?;
            let balances: Result<Vec<i64>, Error> =
                all.iter().map(|it| it.balance().get(tx)).collect();
            assert_eq!(balances?, [20, 22, 20]);
            all[0].delete(tx).await?;
            assert!(!all[2].exists(tx)?);
            assert!(accounts.try_open(tx, &2).await?.is_none());
            accounts.delete(tx, &3).await?;
            accounts.open(tx, &1).await?.set(tx, account("eve", 1)).await
        });
        assert_eq!(ended, Ok(()), "{protocol}");
        assert_eq!(block_on(accounts.modify(&db, &1, |it| it.balance)), Ok(1));
        block_on(accounts.modify(&db, &1, |it| it.balance += 4)).unwrap();
        assert_eq!(block_on(accounts.read(&db, &1)), Ok(Some(account("eve", 5))));
        assert_eq!(balance(&db, accounts, 2), None, "{protocol}");
    }
}

#[test]
fn errors_name_the_object() {
    let (db, accounts) = with_accounts("score", 1, 2);
    let found = db.blocking().atomic(async move |tx| accounts.open(tx, &7).await.map(drop));
    let text = found.clone().unwrap_err().to_string();
    assert!(text.contains("`accounts` of key") && text.contains("no object"), "{text}");
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Rollback);
    let all =
        db.blocking().atomic(async move |tx| accounts.open_all(tx, &[1, 7, 2]).await.map(drop));
    assert!(matches!(all, Err(Error::NoObject { .. })), "{all:?}");
    let twice = db
        .blocking()
        .atomic(async move |tx| accounts.create(tx, &2, account("bob", 0)).await.map(drop));
    assert!(matches!(twice, Err(Error::ObjectExists { .. })), "{twice:?}");
    let none = block_on(accounts.modify(&db, &7, |it| it.balance));
    assert!(matches!(none, Err(Error::NoObject { .. })), "{none:?}");
    // After its end an object is as if it had never been, and can be made again.
    let again = db.blocking().atomic(async move |tx| {
        let first = accounts.open(tx, &2).await?;
        first.delete(tx).await?;
        assert!(matches!(first.balance().get(tx), Err(Error::NoObject { .. })));
        assert!(matches!(first.balance().set(tx, 1).await, Err(Error::NoObject { .. })));
        let second = accounts.create(tx, &2, account("bob", 3)).await?;
        assert_eq!(first.balance().get(tx)?, 3);
        second.balance().get(tx)
    });
    assert_eq!((again, balance(&db, accounts, 2)), (Ok(3), Some(3)));
}

#[test]
fn an_object_that_is_opened_twice_is_one() {
    let (db, accounts) = with_accounts("score", 1, 1);
    let moved = db.blocking().atomic(async move |tx| {
        let (from, to) = (accounts.open(tx, &1).await?, accounts.open(tx, &1).await?);
        from.balance().update(tx, |it| *it -= 30).await?;
        to.balance().update(tx, |it| *it += 30).await?;
        from.balance().get(tx)
    });
    assert_eq!((moved, balance(&db, accounts, 1)), (Ok(100), Some(100)));
}

/// Children that stay and children that give up, seen through handles of their parents.
async fn family(tx: &Tx, accounts: Accounts) -> Result<(), Error> {
    let first = accounts.open(tx, &1).await?;
    first.balance().set(tx, 1).await?;
    let second = tx.atomic(async |child| {
        let second = accounts.open(child, &2).await?;
        second.balance().set(child, 20).await?;
        first.balance().set(child, 2).await?;
        let given_up = child.atomic(async |inner| {
            first.balance().update(inner, |it| *it += 1_000).await?;
            accounts.open(inner, &2).await?.delete(inner).await?;
            let third = accounts.open(inner, &3).await?;
            assert_eq!(first.balance().get(inner)?, 1_002);
            assert!(!second.exists(inner)?);
            // The parents are not used meanwhile, and their handles only as their child's.
            assert_eq!(first.balance().get(child), Err(Error::ChildOpen));
            assert_eq!(first.balance().set(tx, 9).await, Err(Error::ChildOpen));
            third.balance().set(inner, 7).await?;
            Err::<(), _>(Error::rollback("not this"))
        });
        assert_eq!(given_up.await, Err(Error::rollback("not this")));
        assert_eq!((first.balance().get(child)?, second.balance().get(child)?), (2, 20));
        Ok::<_, Error>(second)
    });
    let second = second.await?;
    assert_eq!((first.balance().get(tx)?, second.balance().get(tx)?), (2, 20));
    let opened_below = tx.atomic(async |child| {
        first.delete(child).await?;
        second.balance().set(child, 5).await?;
        accounts.open(child, &4).await
    });
    let opened_below = opened_below.await?;
    assert!(!first.exists(tx)?);
    first_again(tx, accounts).await?;
    assert_eq!(first.balance().get(tx)?, 3, "a handle of what was made again");
    assert_eq!((opened_below.balance().get(tx)?, second.balance().get(tx)?), (100, 5));
    Ok(())
}

async fn first_again(tx: &Tx, accounts: Accounts) -> Result<(), Error> {
    tx.atomic(async |child| accounts.create(child, &1, account("eve", 3)).await.map(drop)).await
}

#[test]
fn handles_of_parents_show_what_stays_of_children() {
    for protocol in ["score", "tfa", "gmu", "repeatable-read"] {
        let (db, accounts) = with_accounts(protocol, 1, 4);
        db.blocking().atomic(async move |tx| family(tx, accounts).await).unwrap();
        let balances = [1, 2, 3, 4].map(|number| balance(&db, accounts, number));
        assert_eq!(balances, [3, 5, 100, 100].map(Some), "{protocol}");
    }
    // By hand, from a thread that is no loop.
    let (db, accounts) = with_accounts("score", 2, 4);
    block_on(async {
        let by_hand = db.begin().await?;
        family(&by_hand, accounts).await?;
        by_hand.commit().await
    })
    .unwrap();
    assert_eq!(balance(&db, accounts, 2), Some(5));
}

#[test]
fn what_an_undone_child_opened_is_opened_again() {
    let (db, accounts) = with_accounts("score", 1, 2);
    let ended = db.blocking().atomic(async move |tx| {
        // The first object of the transaction, and one where it has others.
        for (number, has_others) in [(1, false), (2, true)] {
            let given_up = tx.atomic(async |child| {
                let opened = accounts.open(child, &number).await?;
                opened.balance().set(child, 0).await?;
                Err::<(), _>(Given(opened))
            });
            let Err(Given(kept)) = given_up.await else { unreachable!("it gave up") };
            let refused = kept.balance().get(tx).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Misuse);
            assert!(refused.to_string().contains("`accounts` of key"), "{refused}");
            let again = accounts.open(tx, &number).await?;
            assert_eq!(again.balance().get(tx)?, 100);
            // The same object of the same table: it is known again.
            assert_eq!(kept.balance().get(tx).is_ok(), has_others);
        }
        Ok::<_, Error>(())
    });
    assert_eq!((ended, balance(&db, accounts, 1)), (Ok(()), Some(100)));
}

/// An error that carries a handle out of a child.
struct Given(AccountFields);

impl From<Error> for Given {
    fn from(error: Error) -> Given {
        panic!("{error}")
    }
}

#[test]
fn a_child_that_runs_again_sees_what_is_newer() {
    for protocol in ["score", "tfa"] {
        let (db, accounts) = with_accounts(protocol, 1, 3);
        let (runs, other) = (Arc::new(AtomicU32::new(0)), db.clone());
        let counted = runs.clone();
        let seen = db.blocking().atomic(async move |tx| {
            let mine = accounts.open(tx, &3).await?;
            mine.balance().set(tx, 1).await?;
            tx.atomic(async |child| {
                let run = counted.fetch_add(1, Ordering::Relaxed);
                let first = accounts.open(child, &1).await?;
                mine.balance().update(child, |it| *it += 1).await?;
                if run == 0 {
                    let change = async move |tx: &Tx| {
                        for number in [1, 2] {
                            let changed = accounts.open(tx, &number).await?;
                            changed.balance().set(tx, 7).await?;
                        }
                        Ok::<_, Error>(())
                    };
                    other.atomic(change).await?;
                }
                let second = accounts.open(child, &2).await?;
                let (first, second) = (first.balance().get(child)?, second.balance().get(child)?);
                Ok::<_, Error>((first, second, mine.balance().get(child)?))
            })
            .await
        });
        assert_eq!(seen, Ok((7, 7, 2)), "{protocol}");
        assert_eq!(runs.load(Ordering::Relaxed), 2, "{protocol}");
        assert_eq!(balance(&db, accounts, 3), Some(2), "{protocol}");
    }
}

#[test]
fn fields_are_written_side_by_side() {
    for (loops, by_hand) in [(1, false), (2, true)] {
        let (db, accounts) = with_accounts("score", loops, 1);
        let body = async move |tx: &Tx| {
            let ann = accounts.open(tx, &1).await?;
            let (owner, balance) = (ann.owner(), ann.balance());
            try_join(owner.set(tx, "bob".to_owned()), balance.set(tx, 5)).await?;
            assert_eq!(ann.value(tx)?, account("bob", 5));
            Ok::<_, Error>(())
        };
        match by_hand {
            false => db.blocking().atomic(body).unwrap(),
            true => block_on(async {
                let by_hand = db.begin().await?;
                body(&by_hand).await?;
                by_hand.commit().await
            })
            .unwrap(),
        }
        assert_eq!(block_on(accounts.read(&db, &1)), Ok(Some(account("bob", 5))));
    }
}

#[test]
fn handles_are_used_in_their_transaction_alone() {
    let (db, accounts) = with_accounts("score", 1, 1);
    let first = db.blocking().atomic(async move |tx| accounts.open(tx, &1).await).unwrap();
    let used = db.blocking().atomic(async move |tx| {
        let refused = first.balance().get(tx).unwrap_err();
        assert_eq!(first.balance().set(tx, 1).await, Err(refused.clone()));
        accounts.open(tx, &1).await?;
        assert_eq!(first.delete(tx).await, Err(refused.clone()));
        Err::<(), _>(refused)
    });
    assert!(matches!(&used, Err(Error::ObjectHandle(why)) if why.contains("another transaction")));
    let others = Objects::<u32, Other>::new(db.space("s").unwrap(), "accounts");
    let used = db.blocking().atomic(async move |tx| {
        accounts.open(tx, &1).await?;
        others.open(tx, &1).await?.flag().get(tx)
    });
    assert!(matches!(&used, Err(Error::ObjectHandle(why)) if why.contains("another type")));
    let used = db.blocking().atomic(async move |tx| others.open(tx, &1).await.map(drop));
    assert!(matches!(&used, Err(Error::Codec(why)) if why.contains("Other")), "{used:?}");
}

#[test]
fn an_object_whose_write_failed_is_opened_again() {
    let (db, accounts) = with_accounts("score", 1, 1);
    let ended = db.blocking().atomic(async move |tx| {
        let ann = accounts.open(tx, &1).await?;
        ann.balance().set(tx, 5).await?;
        let refused = ann.owner().set(tx, "a".repeat(64 << 20)).await;
        assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
        assert!(matches!(ann.balance().get(tx), Err(Error::ObjectHandle(_))));
        accounts.open(tx, &1).await?;
        ann.value(tx)
    });
    assert_eq!(ended, Ok(account("ann", 5)));
}

#[test]
fn a_write_that_failed_in_a_child_leaves_its_parent_what_it_knows() {
    let (db, accounts) = with_accounts("score", 1, 1);
    let ended = db.blocking().atomic(async move |tx| {
        let ann = accounts.open(tx, &1).await?;
        ann.balance().set(tx, 5).await?;
        let given_up = tx.atomic(async |child| {
            ann.owner().set(child, "a".repeat(64 << 20)).await?;
            Ok::<_, Error>(())
        });
        assert!(matches!(given_up.await, Err(Error::TooLarge { .. })));
        assert_eq!(ann.value(tx), Ok(account("ann", 5)), "the child's writes were undone");
        // Of a child that is merged it is not known whether the row was written.
        tx.atomic(async |child| {
            let refused = ann.owner().set(child, "a".repeat(64 << 20)).await;
            assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
            Ok::<_, Error>(())
        })
        .await?;
        assert!(matches!(ann.value(tx), Err(Error::ObjectHandle(_))));
        accounts.open(tx, &1).await?;
        ann.value(tx)
    });
    assert_eq!(ended, Ok(account("ann", 5)));
}

/// Polls a future once, and drops it.
async fn poll_once(future: impl Future) {
    let mut future = Box::pin(future);
    poll_fn(|cx| {
        let _ = future.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_child_that_runs_again_uses_its_parents_handles_though_a_write_was_refused() {
    const ACCOUNTS: u32 = 12;
    for protocol in ["score", "tfa"] {
        let (db, accounts) = with_accounts(protocol, 2, ACCOUNTS);
        let (runs, other) = (Arc::new(AtomicU32::new(0)), db.clone());
        let counted = runs.clone();
        let seen = db.blocking().atomic(async move |tx| {
            let mine = accounts.open(tx, &ACCOUNTS).await?;
            mine.balance().set(tx, 50).await?;
            tx.atomic(async |child| {
                let first = accounts.open(child, &1).await?;
                if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                    let change = async move |tx: &Tx| {
                        for number in 1..ACCOUNTS {
                            accounts.open(tx, &number).await?.balance().set(tx, 7).await?;
                        }
                        Ok::<_, Error>(())
                    };
                    other.atomic(change).await?;
                    // These undo the child, and nobody is there to be told.
                    for number in 2..ACCOUNTS {
                        poll_once(accounts.open(child, &number)).await;
                    }
                    other.sleep(Duration::from_millis(20)).await?;
                    // The body goes on whatever comes of it.
                    let refused = mine.balance().set(child, 1).await;
                    assert_eq!(refused, Err(Error::PartialAbort { level: 1 }), "{protocol}");
                }
                mine.balance().update(child, |it| *it += 1).await?;
                first.balance().get(child)
            })
            .await
        });
        assert_eq!(seen, Ok(7), "{protocol}");
        assert_eq!(runs.load(Ordering::Relaxed), 2, "{protocol}");
        assert_eq!(balance(&db, accounts, ACCOUNTS), Some(51), "{protocol}");
    }
}

#[test]
fn concurrent_transfers_keep_their_sum() {
    const ACCOUNTS: u32 = 8;
    for protocol in ["score", "tfa", "gmu", "granola"] {
        let (db, accounts) = with_accounts(protocol, 2, ACCOUNTS);
        let clients: Vec<_> = (0..4_u32)
            .map(|client| {
                let db = db.session();
                thread::spawn(move || {
                    for round in 0..100 {
                        let from = 1 + (client * 3 + round) % ACCOUNTS;
                        let to = 1 + (client + round * 5) % ACCOUNTS;
                        let moved = db.blocking().atomic(async move |tx| {
                            let both = accounts.open_all(tx, &[from, to]).await?;
                            let [from, to] = &both[..] else { unreachable!("two were asked for") };
                            from.balance().update(tx, |it| *it -= 3).await?;
                            tx.atomic(async |child| to.balance().update(child, |it| *it += 3).await)
                                .await
                        });
                        moved.unwrap();
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        let sum = db.blocking().atomic(async move |tx| {
            let all: Vec<u32> = (1..=ACCOUNTS).collect();
            let all = accounts.open_all(tx, &all).await?;
            all.iter().map(|it| it.balance().get(tx)).sum::<Result<i64, Error>>()
        });
        assert_eq!(sum, Ok(i64::from(ACCOUNTS) * 100), "{protocol}");
    }
}

#[test]
fn a_transaction_waits_for_a_change_of_a_field() {
    for protocol in ["score", "tfa", "granola"] {
        let (db, accounts) = with_accounts(protocol, 2, 1);
        let waiting = {
            let db = db.session();
            thread::spawn(move || {
                db.blocking().atomic(async move |tx| {
                    let ann = accounts.open(tx, &1).await?;
                    match ann.balance().get(tx)? {
                        enough if enough >= 150 => ann.balance().set(tx, enough - 150).await,
                        _ => tx.retry(),
                    }
                })
            })
        };
        thread::sleep(Duration::from_millis(20));
        block_on(accounts.modify(&db, &1, |it| it.balance += 60)).unwrap();
        waiting.join().unwrap().unwrap();
        assert_eq!(balance(&db, accounts, 1), Some(10), "{protocol}");
    }
}

/// How many messages a transaction costs that opens the objects at once, or one after the other.
fn messages_to_open(at_once: bool) -> u64 {
    const OBJECTS: u32 = 64;
    let (db, accounts) = with_accounts("score", 4, OBJECTS);
    let settled = || {
        thread::sleep(Duration::from_millis(100));
        db.messages()
    };
    let before = settled();
    let body = async move |tx: &Tx| {
        let keys: Vec<u32> = (1..=OBJECTS).collect();
        match at_once {
            true => drop(accounts.open_all(tx, &keys).await?),
            false => {
                for key in keys {
                    accounts.open(tx, &key).await?;
                }
            }
        }
        Ok::<_, Error>(())
    };
    db.read_only().blocking().atomic(body).unwrap();
    settled() - before
}

#[test]
fn objects_that_are_opened_at_once_are_asked_for_at_once() {
    let (at_once, one_by_one) = (messages_to_open(true), messages_to_open(false));
    // Three quarters of the objects are on other loops: one by one, each is a question and an
    // answer (96 messages); at once, each of 6 repositories is (12). Loops say other things, too.
    assert!(one_by_one >= at_once + 48, "{at_once}, {one_by_one}");
}
