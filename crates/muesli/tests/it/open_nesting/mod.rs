//! Transactions with open children, embedded.

mod abandoned;
mod broken;
mod children;
mod chosen;
mod closed;
mod ends;
mod figure_5_2;
mod handlers;
mod levels;
mod objects;
mod row_locks;
mod stops;
mod undecided;
mod waits;

use std::time::Duration;

use muesli::blocking::block_on;
use muesli::open_nesting::{LockMode, NestingRows, OpenNesting, OpenTx};
use muesli::{Db, Error, Index, Options, Space, SpaceOptions, Tx};

/// A database with numbers, a list of what handlers did, and the layer.
#[derive(Clone)]
struct Bench {
    db: Db,
    numbers: Space,
    nesting: OpenNesting,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(Options::default())
    }

    fn with(options: Options) -> Bench {
        let ordered = SpaceOptions { index: Index::Ordered, ..SpaceOptions::default() };
        let options = options.space("numbers", SpaceOptions::default()).space("nesting", ordered);
        let db = Db::open(options).unwrap();
        let numbers = db.space("numbers").unwrap();
        let nesting = Bench::handlers(OpenNesting::new(db.space("nesting").unwrap()), numbers)
            .patience(Duration::from_millis(20));
        Bench { db, numbers, nesting }
    }

    /// Its layer without handlers.
    fn bare(&self) -> OpenNesting {
        OpenNesting::new(self.db.space("nesting").unwrap()).patience(Duration::from_millis(20))
    }

    fn handlers(nesting: OpenNesting, numbers: Space) -> OpenNesting {
        nesting
            .handler("undo", move |tx, (key, amount): (String, i64)| {
                Box::pin(async move {
                    add(tx, numbers, &key, -amount).await?;
                    note(tx, numbers, &format!("undo {key} {amount}")).await
                })
            })
            .handler("count", move |tx, (): ()| {
                Box::pin(async move { add(tx, numbers, "done", 1).await.map(drop) })
            })
            .handler("done", move |tx, text: String| {
                Box::pin(async move { note(tx, numbers, &format!("done {text}")).await })
            })
    }

    /// Runs a transaction with open children.
    fn run<T: Send + 'static>(
        &self,
        body: impl AsyncFn(&OpenTx) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        block_on(self.db.transact_nested(&self.nesting, body))
    }

    fn number(&self, key: &'static str) -> i64 {
        let numbers = self.numbers.typed::<String, i64>();
        let read = async move |tx: &Tx| numbers.get(tx, key).await;
        self.db.blocking().transact(read).unwrap().unwrap_or(0)
    }

    /// What handlers did, in their order.
    fn log(&self) -> Vec<String> {
        let list = self.numbers.typed::<String, Vec<String>>();
        let read = async move |tx: &Tx| list.get(tx, "log").await;
        self.db.blocking().transact(read).unwrap().unwrap_or_default()
    }

    fn rows(&self) -> NestingRows {
        block_on(self.nesting.rows(&self.db)).unwrap()
    }

    fn assert_nothing_is_left(&self) {
        assert_eq!(self.rows(), NestingRows::default());
    }
}

async fn add(tx: &Tx, numbers: Space, key: &str, amount: i64) -> Result<i64, Error> {
    let numbers = numbers.typed::<String, i64>();
    let sum = numbers.get(tx, key).await?.unwrap_or(0) + amount;
    numbers.put(tx, key, &sum).await?;
    Ok(sum)
}

async fn note(tx: &Tx, numbers: Space, text: &str) -> Result<(), Error> {
    let list = numbers.typed::<String, Vec<String>>();
    let mut all = list.get(tx, "log").await?.unwrap_or_default();
    all.push(text.to_owned());
    list.put(tx, "log", &all).await
}

/// An open child that adds to a number, under a lock of its name.
async fn add_open(tx: &OpenTx, numbers: Space, key: &str, amount: i64) -> Result<i64, Error> {
    let add = async |child: &OpenTx| add(child, numbers, key, amount).await;
    tx.open_atomic((key, &LockMode::write()), add)
        .on_abort("undo", &(key, amount))
        .on_commit("done", key)
        .await
}

/// The protocols that are serializable.
fn serializable() -> impl Iterator<Item = &'static str> {
    // Under those as printed readers may never get on.
    let broken = |name: &str| {
        let ends = ["-printed", "-unchecked"].into_iter().any(|end| name.ends_with(end));
        ends || name.starts_with("repeatable-read")
    };
    muesli_protocols::NAMES.iter().copied().filter(move |name| !broken(name))
}

/// An open child that reads a number.
async fn read_open(tx: &OpenTx, numbers: Space, key: &str) -> Result<i64, Error> {
    let numbers = numbers.typed::<String, i64>();
    let read = async |child: &OpenTx| Ok(numbers.get(child, key).await?.unwrap_or(0));
    tx.open_atomic((key, &LockMode::read()), read).await
}
