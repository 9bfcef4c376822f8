//! Accounts in Muesli, in the process that uses them.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use muesli::blocking::Blocking;
use muesli::objects::{Object, Objects};
use muesli::{Db, DirectTx, Error, Index, Options, SmallBytes, Space, SpaceOptions, Tx};
use serde::{Deserialize, Serialize};

use crate::variables::on_threads;
use crate::{ACCOUNTS, Draws, INITIAL, READ, Subject, Work};

/// Each loop has so many clients, which wait for each other's loops now and then.
const CLIENTS: usize = 8;

/// An account as an object.
#[derive(Clone, Object, Serialize, Deserialize)]
struct Account {
    balance: i64,
}

/// By what means accounts are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Rows, in bodies that wait.
    Transactions,
    /// Objects, in bodies that wait.
    Objects,
    /// Rows, in bodies that do not: all are on one loop.
    Closures,
    /// The same, of two plain threads that block.
    Threads,
}

/// A database of accounts.
pub struct Embedded {
    db: Db,
    loops: usize,
    accounts: Accounts,
}

/// The accounts of a database.
#[derive(Clone)]
struct Accounts {
    interface: Interface,
    space: Space,
    keys: Arc<[SmallBytes]>,
    objects: Objects<u64, Account>,
}

fn amount(value: &SmallBytes) -> i64 {
    i64::from_le_bytes(value.as_slice().try_into().expect("eight bytes"))
}

fn value(amount: i64) -> SmallBytes {
    SmallBytes::new(&amount.to_le_bytes())
}

impl Accounts {
    async fn transfer(&self, db: &Db, draws: &mut Draws) -> Result<(), Error> {
        let (from, to, by) = draws.transfer();
        let space = self.space;
        let keys = || [from, to].map(|number| self.keys[number as usize].clone());
        match self.interface {
            Interface::Transactions => {
                let body = async |tx: &Tx| {
                    let found = tx.get_many(space, keys()).await?;
                    let [Some(payer), Some(payee)] = &found[..] else { return Ok(()) };
                    let [from, to] = keys();
                    tx.put(space, from, value(amount(payer) - by)).await?;
                    tx.put(space, to, value(amount(payee) + by)).await
                };
                db.transact_here(body).await
            }
            Interface::Objects => {
                let body = async |tx: &Tx| {
                    let both = self.objects.open_all(tx, &[from, to]).await?;
                    both[0].balance().update(tx, |balance| *balance -= by).await?;
                    both[1].balance().update(tx, |balance| *balance += by).await
                };
                db.transact_here(body).await
            }
            Interface::Closures | Interface::Threads => {
                db.call_here(|tx| self.transfer_at_once(tx, (from, to, by))).await
            }
        }
    }

    fn transfer_at_once(
        &self,
        tx: &mut DirectTx<'_>,
        (from, to, by): (u64, u64, i64),
    ) -> Result<(), Error> {
        let keys = [from, to].map(|number| self.keys[number as usize].clone());
        let [payer, payee] = tx.get_array(self.space, &keys)?;
        let [payer, payee] = [payer, payee].map(|it| amount(&it.expect("loaded")));
        let [from, to] = keys;
        tx.put(self.space, from, value(payer - by))?;
        tx.put(self.space, to, value(payee + by))
    }

    fn sum_at_once(&self, tx: &mut DirectTx<'_>, numbers: &[u64; READ]) -> Result<i64, Error> {
        let keys = numbers.map(|number| self.keys[number as usize].clone());
        Ok(tx.get_array(self.space, &keys)?.iter().flatten().map(amount).sum())
    }

    /// One transaction of a plain thread.
    fn step(&self, db: &Blocking, work: Work, draws: &mut Draws) -> Result<(), Error> {
        match work {
            Work::Transfers => {
                let transfer = draws.transfer();
                db.call_on(0, |tx| self.transfer_at_once(tx, transfer))
            }
            Work::Reads => {
                let numbers = draws.accounts();
                let sum = db.call_on(0, |tx| self.sum_at_once(tx, &numbers))?;
                black_box(sum);
                Ok(())
            }
        }
    }

    async fn read(&self, db: &Db, draws: &mut Draws) -> Result<(), Error> {
        let (numbers, space) = (draws.accounts(), self.space);
        let keys = || numbers.map(|number| self.keys[number as usize].clone());
        let sum: i64 = match self.interface {
            Interface::Transactions => {
                let body = async |tx: &Tx| {
                    let found = tx.get_many(space, keys()).await?;
                    Ok::<_, Error>(found.iter().flatten().map(amount).sum())
                };
                db.transact_here(body).await?
            }
            Interface::Objects => {
                let body = async |tx: &Tx| {
                    let all = self.objects.open_all(tx, &numbers).await?;
                    let mut sum = 0;
                    for account in &all {
                        sum += account.balance().get(tx)?;
                    }
                    Ok::<_, Error>(sum)
                };
                db.transact_here(body).await?
            }
            Interface::Closures | Interface::Threads => {
                db.call_here(|tx| self.sum_at_once(tx, &numbers)).await?
            }
        };
        black_box(sum);
        Ok(())
    }

    /// A client until the time is over; how many transactions it ran.
    async fn work(self, db: Db, client: usize, work: Work, end: Instant) -> Result<u64, Error> {
        let db = if work == Work::Reads { db.read_only() } else { db };
        let (mut draws, mut done) = (Draws::new(client), 0);
        while done % 64 != 0 || Instant::now() < end {
            match work {
                Work::Transfers => self.transfer(&db, &mut draws).await?,
                Work::Reads => self.read(&db, &mut draws).await?,
            }
            done += 1;
        }
        Ok(done)
    }
}

impl Embedded {
    /// Accounts under this protocol on so many loops, each with its part of them.
    pub fn new(protocol: &str, loops: usize, interface: Interface) -> Embedded {
        let space = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
        let protocol = protocol.to_owned();
        let options = Options { protocol, loops, repositories: loops, ..Options::default() };
        let db = Db::open(options.space("accounts", space)).expect("the options are good");
        let space = db.space("accounts").expect("just made");
        let objects = Objects::new(space, "account");
        let keys: Arc<[_]> =
            (0..ACCOUNTS).map(|number| SmallBytes::new(&number.to_be_bytes())).collect();
        let rows = keys.clone();
        let load = async move |tx: &Tx| {
            for number in 0..ACCOUNTS {
                match interface {
                    Interface::Objects => {
                        objects
                            .create(tx, &number, Account { balance: INITIAL })
                            .await
                            .map(drop)?;
                    }
                    Interface::Transactions | Interface::Closures | Interface::Threads => {
                        tx.put(space, rows[number as usize].clone(), value(INITIAL)).await?;
                    }
                }
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(load).expect("nothing is in the way");
        Embedded { db, loops, accounts: Accounts { interface, space, keys, objects } }
    }
}

impl Subject for Embedded {
    fn run(&self, work: Work, length: Duration) -> f64 {
        if self.accounts.interface == Interface::Threads {
            let db = if work == Work::Reads { self.db.read_only() } else { self.db.clone() };
            return on_threads(length, |draws| {
                let step = self.accounts.step(&db.blocking(), work, draws);
                step.expect("conflicts are retried");
            });
        }
        let (start, done) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let client = |client: usize| {
            let (home, accounts, done) = (client % self.loops, self.accounts.clone(), done.clone());
            let (db, own) = (self.db.clone(), self.db.independent());
            let task = async move || accounts.work(own, client, work, start + length).await;
            Box::pin(async move {
                let own = db.run_on(home, task).await.expect("the database is open");
                done.fetch_add(own.expect("conflicts are retried"), Ordering::Relaxed);
            }) as Running
        };
        let clients = (0..CLIENTS * self.loops).map(client).collect();
        muesli::blocking::block_on(AllOf(clients));
        done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
    }

    fn sum(&self) -> i64 {
        let Accounts { interface, space, keys, objects } = self.accounts.clone();
        let body = async move |tx: &Tx| match interface {
            Interface::Objects => {
                let numbers: Vec<u64> = (0..ACCOUNTS).collect();
                let all = objects.open_all(tx, &numbers).await?;
                all.iter().map(|account| account.balance().get(tx)).sum::<Result<i64, Error>>()
            }
            Interface::Transactions | Interface::Closures | Interface::Threads => {
                let found = tx.get_many(space, keys.iter().cloned()).await?;
                Ok(found.iter().flatten().map(amount).sum())
            }
        };
        self.db.blocking().transact(body).expect("it can be read")
    }
}

/// A client at work.
type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Waits for all of them.
struct AllOf(Vec<Running>);

impl Future for AllOf {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.retain_mut(|running| running.as_mut().poll(cx).is_pending());
        if self.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}
