//! What a transfer costs under the protocols of two phases, where its data lives: all of it in one
//! repository, and over two of eight repositories that share a loop, whose votes are counted.
//!
//! `cargo bench -p muesli --bench protocols` prints the table; `-- WHERE PROTOCOL COUNT`, with
//! `local` or `votes` for WHERE, runs one row alone, for a profiler that counts instructions. What
//! a validator does for each vote is in `Validator::on_ballot`.

mod bank;

use cpu_time::ThreadTime;
use muesli::{Db, Error, Index, Options, SmallBytes, Space, SpaceOptions};

use bank::{amount, key, value};

const ACCOUNTS: u64 = 10_000;
const BATCH: u64 = 100_000;
const ROUNDS: usize = 9;
/// Repositories where transfers are to meet several.
const REPOSITORIES: usize = 8;
/// The first is what the others are compared with.
const PROTOCOLS: [&str; 7] = [
    "score",
    "tfa",
    "two-phase-commit",
    "hierarchy-flat",
    "hierarchy",
    "hierarchy-locking-flat",
    "hierarchy-locking",
];

fn open(protocol: &str, repositories: usize) -> (Db, Space) {
    let index = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let protocol = protocol.to_owned();
    let options = Options { protocol, repositories, ..Options::default() };
    let options = options.space("accounts", index);
    let db = Db::open(options).expect("the options are good");
    let accounts = db.space("accounts").expect("just made");
    for first in (0..ACCOUNTS).step_by(1_000) {
        let load = async move |tx: &muesli::Tx| {
            for account in first..first + 1_000 {
                tx.put(accounts, key(account), value(1_000)).await?;
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(load).expect("nothing is in the way");
    }
    (db, accounts)
}

/// Transfers one after the other, each between two accounts drawn outside of what is measured.
async fn transfers(db: &Db, accounts: Space, keys: &[SmallBytes], count: u64) {
    let mut state: u64 = 7;
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let from = (state >> 33) % ACCOUNTS;
        let to = (from + 1 + (state >> 13) % (ACCOUNTS - 1)) % ACCOUNTS;
        let (from, to) = (keys[from as usize].clone(), keys[to as usize].clone());
        let body = async |tx: &muesli::Tx| {
            let payer = tx.get(accounts, from.clone()).await?.expect("loaded");
            let payee = tx.get(accounts, to.clone()).await?.expect("loaded");
            tx.put(accounts, from.clone(), value(amount(&payer) - 1)).await?;
            tx.put(accounts, to.clone(), value(amount(&payee) + 1)).await?;
            Ok::<_, Error>(())
        };
        db.transact_here(body).await.expect("alone");
    }
}

/// Nanoseconds of processor time for each transfer of each round.
fn measured(protocol: &str, repositories: usize, rounds: usize, batch: u64) -> Vec<f64> {
    let (db, accounts) = open(protocol, repositories);
    let here = db.clone();
    let task = async move || {
        let keys: Vec<SmallBytes> = (0..ACCOUNTS).map(key).collect();
        let mut times = Vec::new();
        for _ in 0..rounds {
            let start = ThreadTime::now();
            transfers(&here, accounts, &keys, batch).await;
            times.push(start.elapsed().as_nanos() as f64 / batch as f64);
        }
        times
    };
    let times = muesli::blocking::block_on(db.run_on(0, task)).expect("open");
    db.close();
    times
}

fn table(title: &str, repositories: usize) {
    println!("{title:<40} {:>8} {:>8} {:>8} {:>9}", "median", "min", "max", "of score");
    let mut reference = None;
    for protocol in PROTOCOLS {
        let mut times = measured(protocol, repositories, ROUNDS, BATCH);
        times.sort_by(f64::total_cmp);
        let (low, median, high) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        let ratio = *reference.get_or_insert(median) / median;
        println!("{protocol:<40} {median:>8.0} {low:>8.0} {high:>8.0} {ratio:>9.3}");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            table("ns a transfer, one repository", 1);
            table("ns a transfer, two of eight repositories", REPOSITORIES);
        }
        ["local", protocol, count] => {
            drop(measured(protocol, 1, 1, count.parse().expect("a count")));
        }
        ["votes", protocol, count] => {
            drop(measured(protocol, REPOSITORIES, 1, count.parse().expect("a count")));
        }
        _ => panic!("expected nothing, or `local PROTOCOL COUNT`, or `votes PROTOCOL COUNT`"),
    }
}
