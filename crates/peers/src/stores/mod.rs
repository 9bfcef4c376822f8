//! Muesli embedded beside other stores that a program has in its own process: the same transfers,
//! in turn.
//!
//! Each round opens one side in an empty folder, loads the accounts, lets plain threads move money
//! for a while, checks the sum of all accounts and closes it; then it does the same with the other
//! side. Which side is first alternates. A ratio is of one round, in which both met the same
//! machine.
//!
//! The stores are compiled with the features `stores` and `rocksdb` alone: they bring sources in C
//! and C++ that nobody needs otherwise.

mod embedded;
mod filesystem;
#[cfg(feature = "stores")]
mod fjall;
#[cfg(feature = "stores")]
mod lmdb;
#[cfg(feature = "stores")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod round;
#[cfg(feature = "stores")]
mod sqlite;
mod store;
mod table;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use embedded::EmbeddedAccounts;
use round::RoundOptions;
use store::{AccountStore, StoreSetup};
use table::ThreadRow;

/// What `--help` says below the options.
const COMPARED: &str = "\
What is compared: `db.blocking()` of Muesli and the store, each in this process, in rounds that \
alternate. A transfer reads two of the accounts and writes both, in one serializable transaction; \
keys and values have 8 bytes. Plain threads do one transfer after the other; conflicts are tried \
again. Each round opens a side anew in an empty folder, runs for a tenth of the time before it is \
measured, and checks in the end that the sum of all accounts is what it was.

In memory (the default) nothing waits for a disk: Muesli has no folder; LMDB has NO_SYNC, \
WRITE_MAP and MAP_ASYNC; redb Durability::None; fjall neither flushes nor syncs its journal at a \
commit; RocksDB writes no log; SQLite is `:memory:` with synchronous=OFF.

With --synced each commit is on the disk before it is answered: Muesli by Options::durable with \
SyncPolicy::Always; LMDB without flags; redb Durability::Immediate; fjall PersistMode::SyncAll; \
SQLite WAL with synchronous=FULL; RocksDB with WriteOptions::set_sync. On a tmpfs a sync costs \
nothing: use --dir where /tmp is one.

LMDB, redb, fjall and SQLite have one writer at a time. RocksDB is an OptimisticTransactionDB that \
checks what it has read. Threads share one open store; SQLite's share one connection behind a \
mutex, with prepared statements, of which an UPDATE reads and writes an account. The allocator is \
mimalloc for all that is written in Rust.

The table: transfers a second of each side, as the median of the rounds with the smallest and the \
largest; the ratio is Muesli's rate over the store's in the same round, again the median with the \
smallest and the largest.";

/// What a command that compares with a store takes.
#[derive(Args)]
#[command(after_long_help = COMPARED)]
pub struct StoreArguments {
    /// Each commit is on the disk before it is answered, on both sides
    #[arg(long)]
    synced: bool,
    /// Plain threads, one number a row of the table [default: 1,2,8; with --synced 1,16,64]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1_000))]
    threads: Vec<u16>,
    /// How long each side is measured in a round
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// How often both sides are measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Accounts
    #[arg(long, default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    accounts: u64,
    /// The folder below which files are made, and removed again [default: that for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Where chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// All that was measured, as one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// A store that Muesli is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    Lmdb,
    Redb,
    Fjall,
    Sqlite,
    Rocksdb,
}

impl StoreKind {
    /// As the command is called.
    fn name(self) -> &'static str {
        match self {
            StoreKind::Lmdb => "lmdb",
            StoreKind::Redb => "redb",
            StoreKind::Fjall => "fjall",
            StoreKind::Sqlite => "sqlite",
            StoreKind::Rocksdb => "rocksdb",
        }
    }

    /// The feature that has it.
    fn feature(self) -> &'static str {
        match self {
            StoreKind::Lmdb | StoreKind::Redb | StoreKind::Fjall | StoreKind::Sqlite => "stores",
            StoreKind::Rocksdb => "rocksdb",
        }
    }
}

/// Makes a store in a folder, and says how it is set up.
type Opener = (fn(&StoreSetup) -> anyhow::Result<Box<dyn AccountStore>>, fn(bool) -> &'static str);

fn muesli() -> Opener {
    (|setup| Ok(Box::new(EmbeddedAccounts::open(setup)?)), embedded::setting)
}

/// The opener of a store that this program has.
fn opener(kind: StoreKind) -> Option<Opener> {
    match kind {
        #[cfg(feature = "stores")]
        StoreKind::Lmdb => {
            Some((|setup| Ok(Box::new(lmdb::LmdbAccounts::open(setup)?)), lmdb::setting))
        }
        #[cfg(feature = "stores")]
        StoreKind::Redb => {
            Some((|setup| Ok(Box::new(redb::RedbAccounts::open(setup)?)), redb::setting))
        }
        #[cfg(feature = "stores")]
        StoreKind::Fjall => {
            Some((|setup| Ok(Box::new(fjall::FjallAccounts::open(setup)?)), fjall::setting))
        }
        #[cfg(feature = "stores")]
        StoreKind::Sqlite => {
            Some((|setup| Ok(Box::new(sqlite::SqliteAccounts::open(setup)?)), sqlite::setting))
        }
        #[cfg(feature = "rocksdb")]
        StoreKind::Rocksdb => {
            Some((|setup| Ok(Box::new(rocksdb::RocksAccounts::open(setup)?)), rocksdb::setting))
        }
        #[cfg(not(all(feature = "stores", feature = "rocksdb")))]
        _ => None,
    }
}

/// Runs the command of a store.
///
/// # Errors
/// The program was built without the store; a store fails, or has lost money.
pub fn run(kind: StoreKind, arguments: &StoreArguments) -> anyhow::Result<()> {
    let name = kind.name();
    let Some(opener) = opener(kind) else {
        bail!(
            "this program was built without {name}, whose sources are compiled on demand alone: \
             cargo run --release -p muesli-peers --features {} -- {name}",
            kind.feature()
        );
    };
    let comparison = PeerComparison::new(opener, arguments)?;
    let threads = match (&arguments.threads[..], arguments.synced) {
        ([], false) => &[1, 2, 8],
        ([], true) => &[1, 16, 64],
        (given, _) => given,
    };
    let mut out = std::io::stdout();
    if !arguments.json {
        writeln!(out, "{}\n\n{}", comparison.described(name), table::head(name))?;
    }
    let mut rows = Vec::new();
    for &threads in threads {
        let row = comparison.row(usize::from(threads))?;
        if !arguments.json {
            writeln!(out, "{}", row.text())?;
        }
        rows.push(row.json());
    }
    if arguments.json {
        let all = json!({
            "store": name,
            "synced": arguments.synced,
            "accounts": arguments.accounts,
            "seconds": arguments.seconds,
            "rounds": arguments.rounds,
            "file_system": comparison.file_system,
            "muesli_setting": muesli().1(arguments.synced),
            "store_setting": opener.1(arguments.synced),
            "rows": rows,
        });
        writeln!(out, "{all:#}")?;
    }
    Ok(())
}

/// Both sides, and how they are compared.
struct PeerComparison<'a> {
    arguments: &'a StoreArguments,
    opener: Opener,
    length: Duration,
    folder: tempfile::TempDir,
    file_system: String,
}

impl<'a> PeerComparison<'a> {
    fn new(opener: Opener, arguments: &'a StoreArguments) -> anyhow::Result<PeerComparison<'a>> {
        let below = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::tempdir_in(&below)
            .with_context(|| format!("no folder can be made in {}", below.display()))?;
        let file_system = filesystem::kind(folder.path());
        let length = Duration::try_from_secs_f64(arguments.seconds)?;
        Ok(PeerComparison { arguments, opener, length, folder, file_system })
    }

    /// What is compared, in the lines above the table.
    fn described(&self, name: &str) -> String {
        let StoreArguments { synced, accounts, seconds, rounds, .. } = self.arguments;
        let warning = match *synced && self.file_system == "tmpfs" {
            true => ": a sync costs nothing there",
            false => "",
        };
        format!(
            "muesli: {}\n{name}: {}\n{accounts} accounts, {rounds} rounds of {seconds} s each in \
             turn, files on {}{warning}\ntransfers a second: median (smallest to largest); ratio: \
             muesli over {name} in the same round",
            muesli().1(*synced),
            self.opener.1(*synced),
            self.file_system
        )
    }

    fn row(&self, threads: usize) -> anyhow::Result<ThreadRow> {
        let mut rounds = Vec::new();
        for round in 0..self.arguments.rounds {
            let seed = self.arguments.seed.wrapping_add(u64::from(round) << 32);
            let (length, accounts) = (self.length, self.arguments.accounts);
            let options = RoundOptions { threads, length, accounts, seed };
            let (own, other);
            if round % 2 == 0 {
                own = self.rate(muesli(), &options).context("muesli")?;
                other = self.rate(self.opener, &options)?;
            } else {
                other = self.rate(self.opener, &options)?;
                own = self.rate(muesli(), &options).context("muesli")?;
            }
            rounds.push((own, other));
        }
        Ok(ThreadRow::new(threads, &rounds))
    }

    /// One side in one round: transfers a second.
    fn rate(&self, (open, _): Opener, options: &RoundOptions) -> anyhow::Result<f64> {
        let folder = tempfile::tempdir_in(self.folder.path())?;
        let (accounts, is_synced) = (options.accounts, self.arguments.synced);
        let setup = StoreSetup { folder: folder.path().to_owned(), accounts, is_synced };
        let store = open(&setup)?;
        round::run(&*store, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [StoreKind; 5] =
        [StoreKind::Lmdb, StoreKind::Redb, StoreKind::Fjall, StoreKind::Sqlite, StoreKind::Rocksdb];

    /// A short run of a side, in memory and synced, from one thread and from several.
    fn runs((open, _): Opener) {
        for (is_synced, threads) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
            let folder = tempfile::tempdir().unwrap();
            let setup = StoreSetup { folder: folder.path().to_owned(), accounts: 10, is_synced };
            let store = open(&setup).unwrap();
            let length = Duration::from_millis(50);
            let options = RoundOptions { threads, length, accounts: 10, seed: 1 };
            assert!(round::run(&*store, &options).unwrap() > 0.0);
        }
    }

    #[test]
    fn muesli_keeps_the_sum() {
        runs(muesli());
    }

    #[test]
    fn each_store_that_is_built_in_keeps_the_sum() {
        KINDS.into_iter().filter_map(opener).for_each(runs);
    }

    fn arguments(threads: Vec<u16>) -> StoreArguments {
        StoreArguments {
            synced: false,
            threads,
            seconds: 0.02,
            rounds: 2,
            accounts: 10,
            dir: None,
            seed: 1,
            json: true,
        }
    }

    #[test]
    fn a_command_runs_or_says_how_to_build_it() {
        for kind in KINDS {
            let ran = run(kind, &arguments(vec![1]));
            match opener(kind) {
                Some(_) => ran.unwrap(),
                None => {
                    let error = ran.unwrap_err().to_string();
                    let command = format!("--features {} -- {}", kind.feature(), kind.name());
                    assert!(error.contains(&command), "{error}");
                }
            }
        }
    }

    #[test]
    fn sides_take_turns_and_rows_have_all_rounds() {
        let arguments = arguments(vec![2]);
        let comparison = PeerComparison::new(muesli(), &arguments).unwrap();
        let row = comparison.row(2).unwrap().json();
        assert_eq!(row["muesli"]["rounds"].as_array().map(Vec::len), Some(2));
        assert!(comparison.described("lmdb").contains("10 accounts, 2 rounds of 0.02 s each"));
    }
}
