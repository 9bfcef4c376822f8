//! What one transaction costs a cluster: messages, bytes, calls of the system, allocations.
//!
//! `cargo bench -p muesli --bench costs`. Servers and a native client are threads of this one
//! process, over TCP, so that one counting allocator sees them all; messages, bytes, reads, writes
//! and looks into the poller are what every server and every client counts anyway, and servers
//! count the syncs of their logs. Transfers between 10,000 accounts; all numbers are per committed
//! transfer, over the whole cluster and its client; `us` is processor time. The rate is there to
//! see how busy it was: the allocator that counts is slower than the one of the program.

mod bank;

use std::alloc::System;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use muesli::blocking::block_on;
use muesli::{Connect, Db, Error, Index, Space, SpaceOptions, Traffic, Tx};
use muesli_cluster::lifecycle::visit;
use muesli_cluster::{Durability, LoopFailure, Server, ServerOptions, StopServer};
use muesli_core::NodeId;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use bank::{AllOf, Running, amount, key, value};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ACCOUNTS: u64 = 10_000;
const WARM_UP: Duration = Duration::from_millis(500);
const ROUND: Duration = Duration::from_secs(3);

/// What is measured: a name, servers, servers of a group, and whether logs are synced.
const SHAPES: [(&str, u32, u16, bool); 4] = [
    ("one server, memory", 1, 1, false),
    ("one server, synced log", 1, 1, true),
    ("groups of 3, memory", 3, 3, false),
    ("groups of 3, synced logs", 3, 3, true),
];

/// Servers on threads of this process.
struct Servers {
    addresses: Vec<String>,
    running: Vec<(StopServer, JoinHandle<Result<(), LoopFailure>>)>,
}

impl Servers {
    fn start(count: u32, group: u16, logs: Option<&Path>) -> Servers {
        // Addresses that are free now: they are bound and let go.
        let bound: Vec<_> = (0..count)
            .map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port"))
            .collect();
        let addresses: Vec<_> =
            bound.iter().map(|it| it.local_addr().expect("it is bound").to_string()).collect();
        drop(bound);
        let servers: Vec<_> = (0..count).map(NodeId).zip(addresses.iter().cloned()).collect();
        let running = servers.iter().map(|(node, listen)| {
            let durability = match logs {
                Some(logs) => Durability::Log(logs.join(node.0.to_string())),
                None => Durability::Memory,
            };
            let options = ServerOptions {
                node: *node,
                listen: listen.clone(),
                servers: servers.clone(),
                repositories: count as usize,
                group,
                durability,
                ..ServerOptions::default()
            };
            let (sender, receiver) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                let server = Server::open(options).expect("the options are good");
                sender.send(server.stop()).expect("it is waited for");
                server.run()
            });
            (receiver.recv().expect("it starts"), thread)
        });
        let running = running.collect();
        Servers { addresses, running }
    }

    /// What the servers counted, together, and the syncs of their logs.
    fn traffic(&self) -> (Traffic, u64) {
        let (mut all, mut syncs) = (Traffic::default(), 0);
        for address in &self.addresses {
            let visited = visit::status(address, Duration::from_secs(5)).expect("it answers");
            let number = |name: &str| visited.status_of(name).expect("it is counted");
            all.messages += number("messages-sent");
            all.bytes += number("bytes-written");
            all.writes += number("writes");
            all.reads += number("reads");
            all.polls += number("polls");
            syncs += number("log-syncs");
        }
        (all, syncs)
    }

    fn stop(self) {
        self.running.iter().for_each(|(stop, _)| stop.stop());
        for (_, thread) in self.running {
            thread.join().expect("it does not panic").expect("it does not fail");
        }
    }
}

async fn transfer(tx: &Tx, accounts: Space, from: u64, to: u64) -> Result<(), Error> {
    let found = tx.get_many(accounts, [key(from), key(to)]).await?;
    let [Some(payer), Some(payee)] = &found[..] else { panic!("accounts are loaded first") };
    tx.put(accounts, key(from), value(amount(payer) - 1)).await?;
    tx.put(accounts, key(to), value(amount(payee) + 1)).await
}

/// A client that makes transfers until the deadline.
async fn client(db: Db, accounts: Space, number: u64, deadline: Instant, done: Arc<AtomicU64>) {
    let mut state = number;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % end
    };
    while Instant::now() < deadline {
        let from = below(ACCOUNTS);
        let to = (from + 1 + below(ACCOUNTS - 1)) % ACCOUNTS;
        let body = async |tx: &Tx| transfer(tx, accounts, from, to).await;
        db.transact_here(body).await.expect("conflicts are retried");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many transfers so many clients make in so long.
fn run(db: &Db, accounts: Space, clients: u64, length: Duration) -> u64 {
    let done = Arc::new(AtomicU64::new(0));
    let deadline = Instant::now() + length;
    let clients = (0..clients).map(|number| {
        let (here, done) = (db.independent(), done.clone());
        let task = async move || client(here, accounts, number, deadline, done).await;
        let db = db.clone();
        Box::pin(async move { db.run_on(0, task).await }) as Running
    });
    block_on(AllOf(clients.collect()));
    done.load(Ordering::Relaxed)
}

fn load(db: &Db) -> Space {
    let options = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let accounts = db.create_space("accounts", options).expect("it can be made");
    for part in 0..ACCOUNTS / 100 {
        let body = async move |tx: &Tx| {
            for number in part * 100..(part + 1) * 100 {
                tx.put(accounts, key(number), value(1_000)).await?;
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(body).expect("nothing is in the way");
    }
    accounts
}

fn measure(name: &str, servers: &Servers, db: &Db, accounts: Space, clients: u64) {
    run(db, accounts, clients, WARM_UP);
    let (before, syncs_before) = servers.traffic();
    let (mine_before, allocated) = (db.traffic(), ALLOCATOR.stats());
    let (begun, processor) = (Instant::now(), ProcessTime::now());
    let done = run(db, accounts, clients, ROUND).max(1) as f64;
    let rate = done / begun.elapsed().as_secs_f64();
    let allocated = ALLOCATOR.stats() - allocated;
    let processor = processor.elapsed().as_secs_f64() * 1e6 / done;
    let mine = db.traffic().since(mine_before);
    let (after, syncs_after) = servers.traffic();
    let theirs = after.since(before);
    let each = |count: u64| count as f64 / done;
    println!(
        "{name:<26}{clients:>5}{:>9.2}{:>9.0}{:>9.3}{:>9.3}{:>9.3}{:>9.4}{:>9.1}{:>9.0}\
         {processor:>9.1}{rate:>10.0}",
        each(mine.messages + theirs.messages),
        each(mine.bytes + theirs.bytes),
        each(mine.writes + theirs.writes),
        each(mine.reads + theirs.reads),
        each(mine.polls + theirs.polls),
        each(syncs_after - syncs_before),
        each((allocated.allocations + allocated.reallocations) as u64),
        each(allocated.bytes_allocated as u64),
    );
}

fn main() {
    println!(
        "{:<26}{:>5}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}",
        "a committed transfer",
        "by",
        "messages",
        "bytes",
        "writes",
        "reads",
        "polls",
        "syncs",
        "allocs",
        "alloc B",
        "us",
        "(rate)"
    );
    for (name, count, group, durable) in SHAPES {
        let folder = tempfile::tempdir().expect("a place for logs");
        let servers = Servers::start(count, group, durable.then(|| folder.path()));
        let addresses = servers.addresses.clone();
        // Where the machine halts this program for a while, nothing is lost but time.
        let give_up_after = Duration::from_secs(300);
        let connect = Connect { addresses, give_up_after, ..Connect::default() };
        let db = Db::connect_with(connect).expect("they are there");
        let accounts = load(&db);
        for clients in [1, 32, 256, 1024] {
            measure(name, &servers, &db, accounts, clients);
        }
        db.close();
        servers.stop();
    }
}
