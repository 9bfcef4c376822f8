//! How fast a server is there again, with the log that it left behind.
//!
//! `cargo bench -p muesli --bench restart`, or with `-- replay` or `-- keys` one part of it. The
//! server is a process of its own, this program once more, killed and not stopped, with synced
//! logs. `-- replay MIB` says how long a log is written. Medians, smallest and largest of several
//! starts; the system has the files in memory.
//!
//! *Replay*: native clients make transfers between 10,000 accounts (keys of 16 bytes, balances of
//! 8); what is timed is all that a server does before it can accept a connection: finding, reading,
//! checking and decoding the log, and applying it to the repository.
//!
//! *Keys*: a million keys of 16 bytes with values of 100 are loaded, and a checkpoint is taken;
//! what is timed goes from starting the process to the answer to a client's first transaction.
//! Then so many transfers follow as the default configuration lets a log grow to.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod bank;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use muesli::blocking::block_on;
use muesli::{Connect, Db, Error, Index, SmallBytes, Space, SpaceOptions, Tx};
use muesli_cluster::{Durability, Server, ServerOptions};

use bank::{AllOf, Running, amount, key};

const ACCOUNTS: u64 = 10_000;
const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 100;
const CLIENTS: u64 = 256;
const STARTS: usize = 5;
const MIB: u64 = 1 << 20;
/// A log grows by so much between two checkpoints by default.
const CHECKPOINT_BYTES: u64 = 256 * MIB;

/// A value that says an amount, and is as long as another one.
fn like(value: &SmallBytes, amount: i64) -> SmallBytes {
    let mut bytes = value.as_slice().to_vec();
    bytes[..8].copy_from_slice(&amount.to_le_bytes());
    SmallBytes::from(bytes)
}

/// A server in a process of its own.
struct Process {
    child: Child,
    begun: Instant,
    /// How long it took until it could accept connections.
    opened: Duration,
    /// What that took of processors, of both threads together.
    processor: Duration,
    address: String,
}

impl Process {
    fn start(folder: &Path, checkpoint_bytes: u64) -> Process {
        let me = std::env::current_exe().expect("this program has a file");
        let begun = Instant::now();
        let mut child = Command::new(me)
            .arg("serve")
            .arg(folder)
            .arg(checkpoint_bytes.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut output_text = String::new();
        let output = child.stdout.take().expect("it was asked for");
        BufReader::new(output).read_line(&mut output_text).expect("it says where it listens");
        let output_text: Vec<_> = output_text.split_whitespace().collect();
        let [address, opened, processor] = output_text[..] else {
            panic!("an address and two times")
        };
        let micros = |text: &str| Duration::from_micros(text.parse().expect("a number"));
        let (opened, processor) = (micros(opened), micros(processor));
        Process { child, begun, opened, processor, address: address.to_owned() }
    }

    fn connect(&self) -> Db {
        let addresses = vec![self.address.clone()];
        // Where the machine halts this program for a while, nothing is lost but time.
        let give_up_after = Duration::from_secs(300);
        let connect = Connect { addresses, give_up_after, ..Connect::default() };
        Db::connect_with(connect).expect("it is there")
    }

    fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }
}

/// The process of a server.
fn serve(folder: &str, checkpoint_bytes: u64) {
    let begun = Instant::now();
    let options = ServerOptions {
        listen: "127.0.0.1:0".to_owned(),
        durability: Durability::Log(folder.into()),
        checkpoint_bytes,
        ..ServerOptions::default()
    };
    let server = Server::open(options).expect("the folder is good");
    let (micros, processor) = (begun.elapsed().as_micros(), ProcessTime::now().as_duration());
    println!("{} {micros} {}", server.address(), processor.as_micros());
    server.run().expect("it is killed before it fails");
}

fn accounts(db: &Db) -> Space {
    let options = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    db.create_space("accounts", options).expect("it can be made")
}

fn load(db: &Db, accounts: Space, keys: u64, value: &SmallBytes) {
    const PART: u64 = 100;
    for part in 0..keys / PART {
        let value = value.clone();
        let body = async move |tx: &Tx| {
            for number in part * PART..(part + 1) * PART {
                tx.put(accounts, key(number), value.clone()).await?;
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(body).expect("nothing is in the way");
    }
}

async fn transfer(tx: &Tx, accounts: Space, from: u64, to: u64) -> Result<(), Error> {
    let found = tx.get_many(accounts, [key(from), key(to)]).await?;
    let [Some(payer), Some(payee)] = &found[..] else { panic!("accounts are loaded first") };
    tx.put(accounts, key(from), like(payer, amount(payer) - 1)).await?;
    tx.put(accounts, key(to), like(payee, amount(payee) + 1)).await
}

/// A client that makes so many transfers.
async fn client(db: Db, accounts: Space, number: u64, keys: u64, transfers: u64) {
    let mut state = number;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % end
    };
    for _ in 0..transfers {
        let from = below(keys);
        let to = (from + 1 + below(keys - 1)) % keys;
        let body = async |tx: &Tx| transfer(tx, accounts, from, to).await;
        db.transact_here(body).await.expect("conflicts are retried");
    }
}

/// Makes transfers until the log in `folder` has so many bytes. Returns how many.
fn fill(db: &Db, accounts: Space, keys: u64, folder: &Path, bytes: u64) -> u64 {
    const EACH: u64 = 200;
    let mut made = 0;
    while log_bytes(folder, "segment-") < bytes {
        let clients = (0..CLIENTS).map(|number| {
            let (here, seed) = (db.independent(), made + number);
            let task = async move || client(here, accounts, seed, keys, EACH).await;
            let db = db.clone();
            Box::pin(async move { db.run_on(0, task).await }) as Running
        });
        block_on(AllOf(clients.collect()));
        made += CLIENTS * EACH;
    }
    made
}

/// Bytes of the log's files whose names begin so.
fn log_bytes(folder: &Path, prefix: &str) -> u64 {
    let files = std::fs::read_dir(folder.join("log")).expect("the server made it");
    let files = files.filter_map(|file| file.ok());
    let wanted = files.filter(|file| file.file_name().to_string_lossy().starts_with(prefix));
    wanted.filter_map(|file| file.metadata().ok()).map(|data| data.len()).sum()
}

fn sum(db: &Db, accounts: Space, keys: u64) -> i64 {
    let body = async move |tx: &Tx| {
        let found = tx.get_many(accounts, (0..keys).map(key)).await?;
        Ok::<_, Error>(found.iter().flatten().map(amount).sum())
    };
    db.blocking().transact(body).expect("nothing is in the way")
}

fn row(name: &str, unit: &str, mut numbers: Vec<f64>) {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
    let median = numbers[numbers.len() / 2];
    println!("{name:<58} {median:>9.1} {low:>9.1} {high:>9.1} {unit}");
}

fn replay(bytes: u64) {
    let folder = tempfile::tempdir().expect("a place for a log");
    let server = Process::start(folder.path(), 0);
    let db = server.connect();
    let space = accounts(&db);
    load(&db, space, ACCOUNTS, &SmallBytes::new(&1_000_i64.to_le_bytes()));
    let made = fill(&db, space, ACCOUNTS, folder.path(), bytes);
    db.close();
    server.kill();
    let length = log_bytes(folder.path(), "segment-");
    println!("    {made} transfers in a log of {} MiB", length / MIB);
    let (mut rates, mut of_processor) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let server = Process::start(folder.path(), 0);
        rates.push(length as f64 / 1e6 / server.opened.as_secs_f64());
        of_processor.push(server.processor.as_secs_f64() * 1e3 / (length as f64 / 1e6));
        let db = server.connect();
        assert_eq!(sum(&db, accounts(&db), ACCOUNTS), 1_000 * ACCOUNTS as i64, "money was lost");
        db.close();
        server.kill();
    }
    row("replay of a log of transfers", "MB/s", rates);
    row("    processor, both threads together", "ms/MB", of_processor);
}

/// Milliseconds from the start of the process to the first answer, several times.
fn first_answers(name: &str, folder: &Path) {
    let (mut answered, mut opened) = (Vec::new(), Vec::new());
    for start in 0..STARTS as u64 {
        let server = Process::start(folder, 0);
        opened.push(server.opened.as_secs_f64() * 1e3);
        let db = server.connect();
        let space = accounts(&db);
        let body = async move |tx: &Tx| transfer(tx, space, start, KEYS - 1 - start).await;
        db.blocking().transact(body).expect("nothing is in the way");
        answered.push(server.begun.elapsed().as_secs_f64() * 1e3);
        db.close();
        server.kill();
    }
    row(&format!("{name}: to the first answer"), "ms", answered);
    row("    of it until it listens", "ms", opened);
}

fn keys() {
    let folder = tempfile::tempdir().expect("a place for a log");
    let server = Process::start(folder.path(), 0);
    let db = server.connect();
    let space = accounts(&db);
    load(&db, space, KEYS, &SmallBytes::from(vec![0; VALUE_BYTES]));
    db.close();
    server.kill();
    // All that the log holds is replayed, and enough for a checkpoint.
    let server = Process::start(folder.path(), 1);
    while log_bytes(folder.path(), "checkpoint-") == 0 || unfinished(folder.path()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    let mib = log_bytes(folder.path(), "checkpoint-") / MIB;
    first_answers(&format!("a million keys, checkpoint of {mib} MiB"), folder.path());
    let server = Process::start(folder.path(), 0);
    let before = log_bytes(folder.path(), "segment-");
    let db = server.connect();
    let space = accounts(&db);
    fill(&db, space, KEYS, folder.path(), before + CHECKPOINT_BYTES);
    db.close();
    server.kill();
    let after = (log_bytes(folder.path(), "segment-") - before) / MIB;
    first_answers(&format!("the same and a log of {after} MiB after it"), folder.path());
}

fn unfinished(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder.join("log")).expect("the server made it");
    files
        .filter_map(|file| file.ok())
        .any(|file| file.file_name().to_string_lossy().ends_with(".unfinished"))
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if let [command, folder, bytes] = &arguments[..]
        && command == "serve"
    {
        serve(folder, bytes.parse().expect("a number"));
        return;
    }
    let part = arguments.first().map(String::as_str);
    let mib = arguments.get(1).and_then(|mib| mib.parse().ok()).unwrap_or(300);
    println!("{:<58} {:>9} {:>9} {:>9}", "a server that was killed", "median", "min", "max");
    if part.is_none_or(|part| part == "replay") {
        replay(mib * MIB);
    }
    if part.is_none_or(|part| part == "keys") {
        keys();
    }
}
