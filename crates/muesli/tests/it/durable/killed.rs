//! Processes that are killed in the middle of their commits.
//!
//! The child is this program once more, with this test alone: it moves amounts between accounts,
//! and prints a line for each transfer that was answered.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

const ACCOUNTS: u64 = 16;
const CLIENTS: u64 = 4;
const AMOUNT: i64 = 1_000;
/// The transfers of a client are counted in rows behind the accounts.
const COUNTS: u64 = 1_000;
/// What gives the child its folder, its protocol, and how many loops it has.
const FOLDER: &str = "MUESLI_TEST_FOLDER";
const THIS_TEST: &str = "durable::killed::a_process_that_is_killed_loses_nothing_that_it_answered";
/// So many transfers are answered before a child is killed.
const ANSWERED: usize = 150;

/// Moves something between two accounts, and counts.
async fn transfer(
    tx: &muesli::Tx,
    rows: TypedSpace<u64, i64>,
    (client, number): (u64, i64),
) -> Result<(), Error> {
    let from = (client + number as u64 * 3) % ACCOUNTS;
    let to = (from + 1 + number as u64 % 7) % ACCOUNTS;
    for (account, more) in [(from, -1), (to, 1)] {
        let before = rows.get(tx, &account).await?.unwrap_or(AMOUNT);
        rows.put(tx, &account, &(before + more)).await?;
    }
    rows.put(tx, &(COUNTS + client), &number).await
}

async fn count_of(tx: &muesli::Tx, rows: TypedSpace<u64, i64>, client: u64) -> Result<i64, Error> {
    Ok(rows.get(tx, &(COUNTS + client)).await?.unwrap_or(0))
}

/// Runs transfers on the database that is given until it is killed.
fn run_transfers(given: &str) {
    let [path, protocol, loops] = *given.split('|').collect::<Vec<_>>() else { panic!("{given}") };
    let db = open(Path::new(path), protocol, loops.parse().unwrap());
    let rows = counters(&db);
    let clients = (0..CLIENTS).map(|client| {
        let db = db.session();
        std::thread::spawn(move || {
            let count = db.blocking().transact(async move |tx| count_of(tx, rows, client).await);
            for number in count.unwrap() + 1.. {
                let body = async move |tx: &muesli::Tx| transfer(tx, rows, (client, number)).await;
                while let Err(error) = db.blocking().transact(body) {
                    assert!(error.is_retryable(), "{error}");
                }
                println!("answered {client} {number}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.join().unwrap();
    }
}

/// Runs a child until it is killed; for each client, the last transfer that was answered.
fn killed(path: &Path, protocol: &str, loops: usize) -> BTreeMap<u64, i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", THIS_TEST, "--nocapture"])
        .env(FOLDER, format!("{}|{protocol}|{loops}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answered = BTreeMap::new();
    let mut seen = 0;
    for line in lines.map_while(Result::ok) {
        // The program of tests writes lines of its own, and may have begun one.
        let Some((_, what)) = line.split_once("answered ") else { continue };
        let Some((client, number)) = what.split_once(' ') else { continue };
        let (Ok(client), Ok(number)) = (client.parse(), number.parse()) else { continue };
        answered.insert(client, number);
        seen += 1;
        if seen == ANSWERED {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= ANSWERED, "the child ended by itself after {seen} answers");
    answered
}

fn nothing_answered_is_lost(protocol: &str, loops: usize) {
    let dir = tempfile::tempdir().unwrap();
    for incarnation in 1..=3 {
        let answered = killed(dir.path(), protocol, loops);
        let db = open(dir.path(), protocol, loops);
        let rows = counters(&db);
        let read = async move |tx: &muesli::Tx| {
            let mut counts = BTreeMap::new();
            let mut sum = 0;
            for client in 0..CLIENTS {
                counts.insert(client, count_of(tx, rows, client).await?);
            }
            for account in 0..ACCOUNTS {
                sum += rows.get(tx, &account).await?.unwrap_or(AMOUNT);
            }
            Ok::<_, Error>((counts, sum))
        };
        let (counts, sum) = db.blocking().transact(read).unwrap();
        assert_eq!(sum, AMOUNT * ACCOUNTS as i64, "{protocol}, {loops} loops, start {incarnation}");
        for (client, last) in answered {
            let found = counts[&client];
            assert!(found >= last, "{protocol}, {loops} loops: {found} of {client}'s {last}");
            assert!(found <= last + ANSWERED as i64 * 20, "{found} of {client}'s {last}");
        }
    }
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_answered() {
    if let Ok(given) = std::env::var(FOLDER) {
        return run_transfers(&given);
    }
    for protocol in ["score", "two-phase-commit", "granola"] {
        for loops in [1, 2] {
            nothing_answered_is_lost(protocol, loops);
        }
    }
}
