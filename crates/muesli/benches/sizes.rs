//! Large transactions, values, scans and answers against a server of its own, and what others see
//! of them: `cargo bench -p muesli --bench sizes [CASE …]`.
//!
//! The server is this program again, started with `serve` and a folder, so that its memory is its
//! own. Each case tells what it did, how long the longest read of another client took meanwhile,
//! and the most memory that the server has held.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muesli::{Db, Error, Range, Space, SpaceOptions};
use muesli_cluster::lifecycle::options::Durability;
use muesli_cluster::{Server, ServerOptions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Case = fn(&Db);

const CASES: [(&str, Case); 6] = [
    ("transaction", transaction),
    ("hundred", hundred_megabytes),
    ("values", values),
    ("scans", scans),
    ("long-scans", long_scans),
    ("answer", answer),
];

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    if let [serve, folder] = &asked[..]
        && serve == "serve"
    {
        return run_server(Path::new(folder));
    }
    for (name, case) in CASES {
        if asked.is_empty() || asked.iter().any(|it| it == name) {
            run(name, case);
        }
    }
}

fn run_server(folder: &Path) {
    let options = ServerOptions {
        listen: "127.0.0.1:0".to_owned(),
        durability: Durability::Log(folder.to_owned()),
        ..ServerOptions::default()
    };
    let server = Server::open(options).unwrap();
    std::fs::write(folder.join("address"), server.address().to_string()).unwrap();
    server.run().unwrap();
}

/// Another client that reads a key every millisecond.
struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

fn watch(address: String) -> Bystander {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let db = Db::connect([address]).unwrap();
        let space = db.space("s").unwrap();
        let mut longest = Duration::ZERO;
        while !stopped.load(Ordering::Relaxed) {
            let began = Instant::now();
            db.blocking().transact(async move |tx| tx.get(space, "b").await).unwrap();
            longest = longest.max(began.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
        longest
    });
    Bystander { stop, thread }
}

fn run(name: &str, case: Case) {
    let folder = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let mut server = Command::new(program)
        .arg("serve")
        .arg(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let address = loop {
        match std::fs::read_to_string(folder.path().join("address")) {
            Ok(address) if !address.is_empty() => break address,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let db = Db::connect([address.clone()]).unwrap();
    db.create_space("s", SpaceOptions::default()).unwrap();
    let bystander = watch(address);
    let began = Instant::now();
    print!("{name}: ");
    case(&db);
    let took = began.elapsed();
    bystander.stop.store(true, Ordering::Relaxed);
    let longest = bystander.thread.join().unwrap();
    let is_running = server.try_wait().unwrap().is_none();
    println!(
        "; {} ms in all, longest read of another client {} ms, server held at most {} MiB, and {}",
        took.as_millis(),
        longest.as_millis(),
        most_memory(&server),
        if is_running { "lives" } else { "is dead" }
    );
    server.kill().unwrap();
    server.wait().unwrap();
}

/// The most memory that a process has held, in MiB.
fn most_memory(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

/// Writes rows in one transaction.
fn write(db: &Db, rows: std::ops::Range<usize>, value_bytes: usize) -> Result<(), Error> {
    let space = db.space("s")?;
    db.blocking().transact(async move |tx| {
        for row in rows.clone() {
            tx.put(space, format!("{row:012}").into_bytes(), vec![7; value_bytes]).await?;
        }
        Ok(())
    })
}

fn load(db: &Db, rows: usize, value_bytes: usize) {
    for from in (0..rows).step_by(10_000) {
        write(db, from..rows.min(from + 10_000), value_bytes).unwrap();
    }
}

/// 1,300,000 rows of 48 bytes.
fn transaction(db: &Db) {
    let began = Instant::now();
    let done = write(db, 0..1_300_000, 36);
    print!("1,300,000 rows of 48 bytes: {done:?} after {} ms", began.elapsed().as_millis());
}

/// A hundred megabytes within the limit, and some more above it.
fn hundred_megabytes(db: &Db) {
    for (rows, value_bytes) in [(95, 1 << 20), (104, 1 << 20)] {
        let began = Instant::now();
        let done = write(db, 0..rows, value_bytes);
        let failure = done.map_err(|error| error.to_string());
        print!("{rows} MiB: {failure:?} after {} ms; ", began.elapsed().as_millis());
    }
}

/// Clients that write large values at the same time.
fn values(db: &Db) {
    for (clients, megabytes) in [(2, 10), (2, 15), (4, 10)] {
        let began = Instant::now();
        let threads = (0..clients).map(|client| {
            let db = db.clone();
            std::thread::spawn(move || write(&db, client..client + 1, megabytes * 1_000_000))
        });
        let threads: Vec<_> = threads.collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        let failed = done.filter(Result::is_err).count();
        let took = began.elapsed().as_millis();
        print!("{clients} times {megabytes} MB: {took} ms, {failed} failed; ");
    }
}

/// Scans rows and writes one, again and again, for eight seconds.
fn scanning(db: &Db, clients: usize, rows: usize) -> u64 {
    let until = Instant::now() + Duration::from_secs(8);
    let commits = Arc::new(AtomicU64::new(0));
    let threads = (0..clients).map(|client| {
        let (db, commits) = (db.clone(), commits.clone());
        std::thread::spawn(move || {
            let space = db.space("s").unwrap();
            while Instant::now() < until {
                let done = db
                    .blocking()
                    .transact(async move |tx| scan_and_write(tx, space, client, rows).await);
                commits.fetch_add(u64::from(done.is_ok()), Ordering::Relaxed);
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    commits.load(Ordering::Relaxed)
}

async fn scan_and_write(
    tx: &muesli::Tx,
    space: Space,
    client: usize,
    rows: usize,
) -> Result<(), Error> {
    let all = tx.scan(space, Range::all().limit(rows)).await?;
    assert_eq!(all.len(), rows);
    tx.put(space, format!("x{client}").into_bytes(), "scanned").await
}

/// One client, 4 and 16 that scan 10,000 rows of 1 KB.
fn scans(db: &Db) {
    load(db, 10_000, 1_000);
    for clients in [1, 4, 16] {
        let commits = scanning(db, clients, 10_000);
        print!("{clients} clients: {commits} commits in 8 s; ");
    }
}

/// Scans of 100,000 rows of 100 bytes.
fn long_scans(db: &Db) {
    load(db, 100_000, 100);
    let commits = scanning(db, 2, 100_000);
    print!("2 clients that scan 100,000 rows: {commits} commits in 8 s");
}

/// Six million keys, which are not there, at once.
fn answer(db: &Db) {
    let space = db.space("s").unwrap();
    let began = Instant::now();
    let read = db.read_only().blocking().transact(async move |tx| {
        let found =
            tx.get_many(space, (0..6_000_000).map(|row| format!("{row}").into_bytes())).await?;
        Ok::<_, Error>(found.len())
    });
    let read = read.map_err(|error| error.to_string());
    print!("six million keys: {read:?} after {} ms", began.elapsed().as_millis());
}
