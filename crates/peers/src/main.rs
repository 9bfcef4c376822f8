//! Other systems doing what Muesli's benchmarks do, on the same machine in the same hour.
//!
//! `redis` starts a Redis of its own on the loopback interface, in memory, and moves money between
//! accounts: by WATCH, MULTI and EXEC as a client library would, and by one Lua call. As in
//! `muesli bench bank`, each client has one transaction in flight; all are driven by one thread
//! that waits for none of them, so that the client costs as little as it can.
//!
//! `counters` adds to counters, one call each: by a procedure of a Muesli server, and by EVALSHA of
//! a script that does the same, over as many connections and with as many calls in flight, from the
//! same thread. They take turns, so that what the machine does meanwhile meets both.

mod client;
mod counters;
mod load;
mod native;
mod reply;
mod scripts;
mod server;
mod stores;

use std::io::Write;
use std::time::Duration;

use clap::{Parser, Subcommand};

use client::{MeasuredClients, Mode, PeerWorkload};
use stores::{StoreArguments, StoreKind};

/// What benchmarks of the library and the program have, too; for all stores in Rust.
#[cfg(any(feature = "stores", feature = "rocksdb"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "muesli-peers", about = "Other systems doing what Muesli's benchmarks do")]
struct Arguments {
    #[command(subcommand)]
    peer: Peer,
}

#[derive(Subcommand)]
enum Peer {
    /// Transfers on a Redis that is started for it: two round trips with WATCH, and one Lua call
    Redis {
        /// Clients, each with one transaction in flight
        #[arg(long, default_value_t = 32,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        clients: u32,
        /// Accounts
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..))]
        keys: u32,
        /// How long each way is measured
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Where chance comes from
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Counters on a Muesli and on a Redis that are started for it
    Counters(counters::CountersArguments),
    /// Transfers by plain threads on Muesli in this process and on LMDB, in turn
    Lmdb(StoreArguments),
    /// Transfers by plain threads on Muesli in this process and on redb, in turn
    Redb(StoreArguments),
    /// Transfers by plain threads on Muesli in this process and on fjall, in turn
    Fjall(StoreArguments),
    /// Transfers by plain threads on Muesli in this process and on SQLite, in turn
    Sqlite(StoreArguments),
    /// Transfers by plain threads on Muesli in this process and on RocksDB, in turn
    Rocksdb(StoreArguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().peer {
        Peer::Redis { clients, keys, seconds, seed } => transfers(clients, keys, seconds, seed),
        Peer::Counters(arguments) => counters::run(&arguments),
        Peer::Lmdb(arguments) => stores::run(StoreKind::Lmdb, &arguments),
        Peer::Redb(arguments) => stores::run(StoreKind::Redb, &arguments),
        Peer::Fjall(arguments) => stores::run(StoreKind::Fjall, &arguments),
        Peer::Sqlite(arguments) => stores::run(StoreKind::Sqlite, &arguments),
        Peer::Rocksdb(arguments) => stores::run(StoreKind::Rocksdb, &arguments),
    }
}

fn transfers(clients: u32, keys: u32, seconds: f64, seed: u64) -> anyhow::Result<()> {
    let server = server::Redis::start()?;
    let length = Duration::try_from_secs_f64(seconds)?;
    for (name, mode) in [("WATCH/MULTI/EXEC", Mode::Watch), ("Lua", Mode::Lua)] {
        let workload = PeerWorkload { clients: clients as usize, keys, length, seed, mode };
        let MeasuredClients { committed, conflicts, rolled_back, seconds, sum } =
            client::run(server.address(), &workload)?;
        let conserved = sum == i64::from(keys) * client::INITIAL;
        // A reader that has gone away is no matter.
        let _ = writeln!(
            std::io::stdout(),
            "redis {name}: {:.0} transfers/s ({committed} committed, {conflicts} conflicts, \
             {rolled_back} rolled back, {clients} clients, {keys} accounts); money {}",
            committed as f64 / seconds,
            if conserved { "conserved" } else { "NOT CONSERVED" }
        );
        anyhow::ensure!(conserved, "the accounts hold {sum}");
    }
    Ok(())
}
