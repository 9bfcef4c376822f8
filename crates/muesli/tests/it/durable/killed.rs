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

/// The accounts that a transfer is from and to.
fn accounts(client: u64, number: i64) -> (u64, u64) {
    let from = (client + number as u64 * 3) % ACCOUNTS;
    (from, (from + 1 + number as u64 % 7) % ACCOUNTS)
}

/// Moves something between two accounts, and counts.
async fn transfer(
    tx: &muesli::Tx,
    rows: TypedSpace<u64, i64>,
    (client, number): (u64, i64),
) -> Result<(), Error> {
    let (from, to) = accounts(client, number);
    for (account, more) in [(from, -1), (to, 1)] {
        let before = rows.get(tx, &account).await?.unwrap_or(AMOUNT);
        rows.put(tx, &account, &(before + more)).await?;
    }
    rows.put(tx, &(COUNTS + client), &number).await
}

async fn count_of(tx: &muesli::Tx, rows: TypedSpace<u64, i64>, client: u64) -> Result<i64, Error> {
    Ok(rows.get(tx, &(COUNTS + client)).await?.unwrap_or(0))
}

/// A database on a disk that keeps every second write back until a sync: to be killed is to lose
/// power.
fn open_on(path: &Path, protocol: &str, loops: usize, sync: SyncPolicy) -> Db {
    let durable = Durable { sync, trouble: Some(path.join("trouble")), ..Durable::at(path) };
    let options = Options { durable: Some(durable), ..options(path, protocol, loops) };
    Db::open(options).unwrap_or_else(|error| panic!("{protocol}: {error}"))
}

/// The policies, by the numbers that the child is given.
const POLICIES: [SyncPolicy; 3] =
    [SyncPolicy::Always, SyncPolicy::Every(Duration::from_millis(10)), SyncPolicy::Never];

/// Runs transfers on the database that is given until it is killed.
fn run_transfers(given: &str) {
    let [path, protocol, loops, policy] = *given.split('|').collect::<Vec<_>>() else {
        panic!("{given}")
    };
    let sync = POLICIES[policy.parse::<usize>().unwrap()];
    let db = open_on(Path::new(path), protocol, loops.parse().unwrap(), sync);
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
fn killed(path: &Path, protocol: &str, loops: usize, policy: usize) -> BTreeMap<u64, i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", THIS_TEST, "--nocapture"])
        .env(FOLDER, format!("{}|{protocol}|{loops}|{policy}", path.display()))
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

/// How many transfers of each client are there, in the end: the accounts are as these, and all
/// before them, have left them.
fn transfers_there(db: &Db) -> BTreeMap<u64, i64> {
    let rows = counters(db);
    let read = async move |tx: &muesli::Tx| {
        let (mut counts, mut amounts) = (BTreeMap::new(), Vec::new());
        for client in 0..CLIENTS {
            counts.insert(client, count_of(tx, rows, client).await?);
        }
        for account in 0..ACCOUNTS {
            amounts.push(rows.get(tx, &account).await?.unwrap_or(AMOUNT));
        }
        Ok::<_, Error>((counts, amounts))
    };
    let (counts, amounts) = db.blocking().transact(read).unwrap();
    let mut due = vec![AMOUNT; ACCOUNTS as usize];
    for (client, last) in &counts {
        for (from, to) in (1..=*last).map(|number| accounts(*client, number)) {
            due[from as usize] -= 1;
            due[to as usize] += 1;
        }
    }
    assert_eq!(amounts, due, "{counts:?}");
    counts
}

/// Kills a process three times, and looks what is there.
fn is_whole_when_killed(protocol: &str, loops: usize, policy: usize) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("trouble"), "").unwrap();
    for incarnation in 1..=3 {
        let answered = killed(dir.path(), protocol, loops, policy);
        let db = open_on(dir.path(), protocol, loops, POLICIES[policy]);
        let there = transfers_there(&db);
        for (client, last) in answered {
            let (found, sync) = (there[&client], POLICIES[policy]);
            let what = format!("{protocol}, {loops} loops, {sync:?}, start {incarnation}");
            let may_be_lost = sync != SyncPolicy::Always;
            assert!(may_be_lost || found >= last, "{what}: {found} of {client}'s {last}");
            assert!(found <= last + ANSWERED as i64 * 20, "{what}: {found} of {client}'s {last}");
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
            is_whole_when_killed(protocol, loops, 0);
        }
    }
    // What was answered may be lost, the newest first; what is there is whole.
    for (policy, loops) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        is_whole_when_killed("score", loops, policy);
    }
}
