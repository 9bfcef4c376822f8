//! Several loops, and clients on other threads.
//!
//! `cargo bench -p muesli --bench loops`, or with `-- crossing`, `-- outside` or `-- blocking` one
//! part of it. For a profiler: `-- alone LOOPS CLIENTS CROSSING` and `-- threads N LOOPS`
//! run one configuration.
//! Rates are wall-clock transfers a second over all loops, medians of several rounds, with the
//! smallest and the largest; ratios are to the row before that is named in the row.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod bank;

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use muesli::{Db, Error, Index, Options, Partitioning, SmallBytes, Space, SpaceOptions, Tx};

use bank::{AllOf, Running, amount, key, value};

const ACCOUNTS: u64 = 10_000;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(400);

fn open(loops: usize) -> (Db, Space) {
    let splits = (1..loops as u64).map(|at| key(at * ACCOUNTS / loops as u64)).collect();
    let space = SpaceOptions { index: Index::Hash, partitioning: Partitioning::Range(splits) };
    let options = Options { loops, repositories: loops, ..Options::default() };
    let db = Db::open(options.space("accounts", space)).expect("the options are good");
    let accounts = db.space("accounts").expect("just made");
    let load = async move |tx: &Tx| {
        for account in 0..ACCOUNTS {
            tx.put(accounts, key(account), value(1_000)).await?;
        }
        Ok::<_, Error>(())
    };
    db.blocking().transact(load).expect("nothing is in the way");
    (db, accounts)
}

async fn transfer(tx: &Tx, accounts: Space, from: SmallBytes, to: SmallBytes) -> Result<(), Error> {
    let payer = tx.get(accounts, from.clone()).await?.expect("loaded");
    let payee = tx.get(accounts, to.clone()).await?.expect("loaded");
    tx.put(accounts, from, value(amount(&payer) - 1)).await?;
    tx.put(accounts, to, value(amount(&payee) + 1)).await
}

/// Random numbers, seeded per client.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

struct Shared {
    deadline: Instant,
    done: AtomicU64,
}

/// A client on loop `home` of `loops`; of its transfers `crossing` in a hundred have their payee
/// on the next loop.
async fn client(db: Db, accounts: Space, place: (u64, u64), crossing: u64, shared: Arc<Shared>) {
    let (home, loops) = place;
    let part = ACCOUNTS / loops;
    let mut draws = Draws(home * 77 + Arc::strong_count(&shared) as u64);
    let mut done = 0;
    loop {
        let from = home * part + draws.below(part);
        let payee_home = if draws.below(100) < crossing { (home + 1) % loops } else { home };
        let to = payee_home * part + draws.below(part);
        let (from, to) = if from == to { (from, (to + 1) % ACCOUNTS) } else { (from, to) };
        let (from, to) = (key(from), key(to));
        let body = async |tx: &Tx| transfer(tx, accounts, from.clone(), to.clone()).await;
        db.transact_here(body).await.expect("conflicts are retried");
        done += 1;
        if done % 64 == 0 && Instant::now() > shared.deadline {
            break;
        }
    }
    shared.done.fetch_add(done, Ordering::Relaxed);
}

/// Transfers a second, and conflicts in a hundred transfers.
fn on_loops(loops: usize, clients: usize, crossing: u64) -> (Vec<f64>, f64) {
    let (db, accounts) = open(loops);
    let mut rates = Vec::new();
    let mut all = 0;
    for _ in 0..ROUNDS {
        let deadline = Instant::now() + ROUND;
        let shared = Arc::new(Shared { deadline, done: AtomicU64::new(0) });
        let start = Instant::now();
        let mut running = Vec::new();
        for number in 0..loops * clients {
            let home = number % loops;
            let (here, shared) = (db.independent(), shared.clone());
            let place = (home as u64, loops as u64);
            let task = async move || client(here, accounts, place, crossing, shared).await;
            let db = db.clone();
            running.push(Box::pin(async move { db.run_on(home, task).await }) as Running);
        }
        muesli::blocking::block_on(AllOf(running));
        let done = shared.done.load(Ordering::Relaxed);
        all += done;
        rates.push(done as f64 / start.elapsed().as_secs_f64());
    }
    let conflicts: u64 = db.conflicts().iter().map(|(_, count)| count).sum();
    db.close();
    (rates, 100.0 * conflicts as f64 / all as f64)
}

/// Transfers a second from one other thread that keeps so many in flight.
fn from_outside(in_flight: usize) -> Vec<f64> {
    let (db, accounts) = open(1);
    let mut draws = Draws(5);
    let mut submit = || {
        let from = draws.below(ACCOUNTS);
        let to = (from + 1 + draws.below(ACCOUNTS - 1)) % ACCOUNTS;
        let db = db.clone();
        let body = async move |tx: &Tx| transfer(tx, accounts, key(from), key(to)).await;
        Box::pin(async move { db.transact(body).await }) as Running
    };
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let (start, mut done) = (Instant::now(), 0_u64);
        let mut flight: Vec<Running> = (0..in_flight).map(|_| submit()).collect();
        while start.elapsed() < ROUND {
            if in_flight == 1 {
                muesli::blocking::block_on(flight.pop().expect("one")).expect("retried");
                flight.push(submit());
                done += 1;
                continue;
            }
            for place in &mut flight {
                let polled = place.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                if polled.is_ready() {
                    *place = submit();
                    done += 1;
                }
            }
        }
        rates.push(done as f64 / start.elapsed().as_secs_f64());
        muesli::blocking::block_on(AllOf(flight));
    }
    db.close();
    rates
}

/// Transfers a second of so many plain threads, each of which does one after the other until the
/// round is over: by `transfer`, from an account to another one.
fn on_threads(threads: u64, transfer: impl Fn(u64, u64) + Sync) -> Vec<f64> {
    let mut rates = Vec::new();
    for round in 0..ROUNDS as u64 {
        let (done, start) = (AtomicU64::new(0), Instant::now());
        let run = |mut draws: Draws| {
            let mut mine = 0;
            while mine % 16 != 0 || start.elapsed() < ROUND {
                let from = draws.below(ACCOUNTS);
                transfer(from, (from + 1 + draws.below(ACCOUNTS - 1)) % ACCOUNTS);
                mine += 1;
            }
            done.fetch_add(mine, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || run(Draws(round * 1_000 + thread * 77 + 5)));
            }
        });
        rates.push(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64());
    }
    rates
}

/// The same transfers over a bare map behind a mutex.
fn on_mutexed_map(threads: u64) -> Vec<f64> {
    let balances: HashMap<SmallBytes, SmallBytes> =
        (0..ACCOUNTS).map(|account| (key(account), value(1_000))).collect();
    let balances = Mutex::new(balances);
    on_threads(threads, |from, to| {
        let (from, to) = (key(from), key(to));
        let mut balances = balances.lock().expect("nobody panics");
        let payer = amount(&balances[&from]);
        let payee = amount(&balances[&to]);
        *balances.get_mut(&from).expect("loaded") = value(payer - 1);
        *balances.get_mut(&to).expect("loaded") = value(payee + 1);
        black_box(&mut *balances);
    })
}

/// Transfers by `db.blocking()`, whose sum must stay what it was.
fn on_blocking(loops: usize, threads: u64) -> Vec<f64> {
    let (db, accounts) = open(loops);
    let (blocking, all) = (db.blocking(), AtomicU64::new(0));
    let rates = on_threads(threads, |from, to| {
        let body = async move |tx: &Tx| transfer(tx, accounts, key(from), key(to)).await;
        blocking.transact(body).expect("conflicts are retried");
        all.fetch_add(1, Ordering::Relaxed);
    });
    if loops > 1 {
        let messages = db.messages() as f64 / all.load(Ordering::Relaxed) as f64;
        println!("    messages between loops for a transfer: {messages:.2}");
    }
    let sum = blocking.transact(async move |tx| {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            sum += amount(&tx.get(accounts, key(account)).await?.expect("loaded"));
        }
        Ok::<_, Error>(sum)
    });
    assert_eq!(sum.expect("nothing is in the way"), 1_000 * ACCOUNTS as i64, "money was lost");
    db.close();
    rates
}

fn row(name: &str, mut rates: Vec<f64>, reference: Option<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    let (low, median, high) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
    let ratio = reference.map_or(String::new(), |reference| format!("{:8.2}", median / reference));
    println!("{name:<44} {median:>11.0} {low:>11.0} {high:>11.0} {ratio}");
    median
}

/// The rows on two loops, against one.
fn crossing() {
    let (rates, _) = on_loops(1, 8, 0);
    let one = row("one loop, async bodies on it", rates, None);
    let (rates, _) = on_loops(2, 8, 0);
    row("two loops, none crossing (to one loop)", rates, Some(one));
    for clients in [4, 8, 16] {
        let (rates, conflicts) = on_loops(2, clients, 10);
        let name = format!("two loops, 10 % crossing, {clients} clients each");
        row(&name, rates, Some(one));
        println!("    conflicts in a hundred transfers: {conflicts:.2}");
    }
}

/// The rows of clients on other threads, against one loop's own.
fn outside() {
    let (rates, _) = on_loops(1, 8, 0);
    let one = row("one loop, async bodies on it", rates, None);
    row("another thread, 256 in flight (to one loop)", from_outside(256), Some(one));
    let alone = row("another thread, 1 in flight (to one loop)", from_outside(1), Some(one));
    println!("    one at a time costs {:.1} us each, wake-ups included", 1e6 / alone);
}

/// The rows of plain threads that block, against a bare map behind a mutex.
fn blocking() {
    for threads in [1, 2, 8] {
        let name = format!("a map in a mutex, {threads} threads");
        let bare = row(&name, on_mutexed_map(threads), None);
        let name = format!("db.blocking(), {threads} threads (to the map)");
        row(&name, on_blocking(1, threads), Some(bare));
        let name = format!("the same on two loops, {threads} threads");
        row(&name, on_blocking(2, threads), Some(bare));
    }
}

/// One configuration alone, for a profiler: loops, clients a loop, crossing in a hundred.
fn alone(arguments: &[usize]) {
    let &[loops, clients, crossing] = arguments else {
        panic!("after `alone`: loops, clients a loop, crossing in a hundred")
    };
    let (rates, conflicts) = on_loops(loops, clients, crossing as u64);
    row(&format!("{loops} loops, {crossing} % crossing, {clients} clients"), rates, None);
    println!("    conflicts in a hundred transfers: {conflicts:.2}");
}

fn main() {
    let part = std::env::args().skip(1).find(|argument| argument != "--bench");
    let wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    println!("{:<44} {:>11} {:>11} {:>11}    ratio", "transfers a second", "median", "min", "max");
    if wanted("crossing") {
        crossing();
    }
    if wanted("outside") {
        outside();
    }
    if wanted("blocking") {
        blocking();
    }
    if part.as_deref() == Some("threads") {
        let numbers: Vec<u64> =
            std::env::args().filter_map(|argument| argument.parse().ok()).collect();
        let &[threads, loops] = &*numbers else { panic!("after `threads`: how many, and loops") };
        row("db.blocking()", on_blocking(loops as usize, threads), None);
    }
    if part.as_deref() == Some("alone") {
        let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
        alone(&numbers.collect::<Vec<_>>());
    }
}
