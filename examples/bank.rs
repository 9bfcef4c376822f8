//! A bank: accounts, transfers from several threads at once, and an audit that always adds up.
//!
//! The database is *embedded*: it lives in this process, in memory. Run it with
//! `cargo run -p muesli-examples --bin bank`.

use std::thread;

use muesli::{Db, Error, KeyRange, Options, SpaceOptions, TypedSpace};

const ACCOUNTS: u64 = 10;
const OPENING: i64 = 100;

/// What can go wrong with a transfer. A body may return any error that `muesli::Error` can become,
/// and `transact` hands it on as it is.
#[derive(Debug, thiserror::Error)]
enum TransferError {
    #[error("only {0} are left on the account")]
    NotEnough(i64),
    #[error(transparent)]
    Database(#[from] Error),
}

/// Handles of databases and spaces are small and cloned freely.
#[derive(Clone)]
struct Bank {
    db: Db,
    /// Balances by the account's number. Keys and values have types; the database keeps bytes.
    balances: TypedSpace<u64, i64>,
}

impl Bank {
    fn open() -> Result<Bank, Error> {
        // Four repositories (shards) on two threads. Transactions may use keys of all of them.
        let options = Options { repositories: 4, loops: 2, ..Options::default() };
        let db = Db::open(options.space("balances", SpaceOptions::default()))?;
        let balances = db.space("balances")?.typed();
        db.blocking().transact(async move |tx| {
            for account in 0..ACCOUNTS {
                balances.put(tx, &account, &OPENING).await?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(Bank { db, balances })
    }

    /// Moves money. Where two transfers meet, one of them is run again by `transact`: the body has
    /// no effects but those on the database.
    fn transfer(&self, from: u64, to: u64, amount: i64) -> Result<(), TransferError> {
        let balances = self.balances;
        self.db.blocking().transact(async move |tx| {
            let left = balances.get(tx, &from).await?.unwrap_or(0);
            if left < amount {
                // Any error rolls back: nothing of this transaction happened.
                return Err(TransferError::NotEnough(left));
            }
            balances.put(tx, &from, &(left - amount)).await?;
            // Read after the write above, so that a transfer to oneself is right, too.
            let theirs = balances.get(tx, &to).await?.unwrap_or(0);
            balances.put(tx, &to, &(theirs + amount)).await?;
            Ok(())
        })
    }

    /// All balances, as they were at one moment. Transactions that only read are never run again.
    fn audit(&self) -> Result<Vec<(u64, i64)>, Error> {
        let balances = self.balances;
        let db = self.db.read_only();
        db.blocking().transact(async move |tx| balances.range(tx, KeyRange::all()).await)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bank = Bank::open()?;
    let tellers: Vec<_> = (0..4)
        .map(|_| {
            // A session of its own for each thread: it sees what it has done itself, and what
            // others were told before.
            let bank = Bank { db: bank.db.session(), ..bank.clone() };
            thread::spawn(move || {
                let mut refused = 0;
                for _ in 0..500 {
                    let (from, to) = (fastrand::u64(..ACCOUNTS), fastrand::u64(..ACCOUNTS));
                    match bank.transfer(from, to, fastrand::i64(1..50)) {
                        Ok(()) => {}
                        Err(TransferError::NotEnough(_)) => refused += 1,
                        Err(TransferError::Database(error)) => return Err(error),
                    }
                }
                Ok(refused)
            })
        })
        .collect();
    // Audits run beside the transfers, and each adds up.
    for _ in 0..100 {
        let total: i64 = bank.audit()?.iter().map(|(_, balance)| balance).sum();
        assert_eq!(total, OPENING * ACCOUNTS as i64);
    }
    let mut refused = 0;
    for teller in tellers {
        refused += teller.join().expect("a teller does not panic")?;
    }
    for (account, balance) in bank.audit()? {
        println!("account {account}: {balance}");
        assert!(balance >= 0);
    }
    println!("4 tellers made 2000 transfers, of which {refused} were refused: not enough money");
    bank.db.close();
    Ok(())
}
