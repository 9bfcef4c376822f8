//! How soon a member of a group is back, with gigabytes in the group and clients that write.
//!
//! `cargo bench -p muesli-cli --bench recovery`, or with `-- --data-mb 3000 --restarted-mb 1024
//! --rounds 3` other sizes. Three servers are processes of their own with the settings of
//! production: groups of three, synced logs. Rows of 10 KB are loaded, clients change them all the
//! while, and in each round three things befall a server, each server in turn:
//!
//! - *killed*: SIGKILL, and started again at once;
//! - *away*: SIGKILL, and started again when the clients have committed `--restarted-mb` meanwhile;
//! - *folder lost*: SIGKILL, its folder removed, and started again.
//!
//! In the end the disk of each server in turn makes nothing stable for ten seconds
//! (`trouble_file`), while each of them leads a group; told is how long the slowest transaction
//! took that was under way then.
//!
//! Timed is from the start of the process until `muesli admin members` shows that all nine members
//! take part and are up to date. Beside the second, in the same minute and beside the same clients,
//! a file as long as what was missed is copied and synced on the same disk, which is the reference;
//! and once more after all clients have ended. In the end each row must have the revision that was
//! acknowledged last. Exit status 1 if one has not, or if a server is not back within five minutes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use muesli::{Connect, Db, SmallBytes, Space, SpaceOptions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SERVERS: usize = 3;
const MEMBERS: usize = SERVERS * SERVERS;
/// Bytes of a row's value; the first eight are its revision.
const VALUE_BYTES: usize = 10_000;
/// Rows that are loaded in one transaction, and read in one.
const ROWS_AT_ONCE: u64 = 100;
const WELL_WITHIN: Duration = Duration::from_secs(300);
/// A disk makes nothing stable for so long.
const HANGS_FOR: Duration = Duration::from_secs(10);
/// A server that has just been started is asked about as often as this.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// Megabytes of rows that each group of three holds together
    #[arg(long, default_value_t = 600)]
    data_mb: u64,
    /// Megabytes that are committed while a server is away
    #[arg(long, default_value_t = 1024)]
    restarted_mb: u64,
    /// How often each fault comes
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Clients that change rows, each its own
    #[arg(long, default_value_t = 32)]
    clients: u64,
    /// A setting of the servers, KEY=VALUE; may be given again
    #[arg(long)]
    set: Vec<String>,
    /// Where the servers' folders are made
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Cargo says so to all benchmarks
    #[arg(long, hide = true)]
    bench: bool,
}

/// Three servers of this build.
struct Servers {
    dir: PathBuf,
    addresses: Vec<String>,
}

impl Servers {
    fn up(dir: &Path, settings: &[String]) -> anyhow::Result<Servers> {
        let dir_text = text(dir);
        let mut arguments =
            vec!["cluster", "up", "--nodes", "3", "--group", "3", "--dir", &dir_text];
        settings.iter().for_each(|it| arguments.extend(["--set", it]));
        muesli(&arguments)?;
        let addresses = fs::read_to_string(dir.join("addresses"))?;
        let addresses = addresses.lines().map(str::to_owned).collect();
        Ok(Servers { dir: dir.to_owned(), addresses })
    }

    fn connect(&self) -> anyhow::Result<Db> {
        let connect = Connect {
            addresses: self.addresses.clone(),
            give_up_after: Duration::from_secs(100),
            ..Connect::default()
        };
        Ok(Db::connect_with(connect)?)
    }

    fn kill(&self, server: usize) -> anyhow::Result<()> {
        muesli(&["cluster", "kill", &server.to_string(), "--dir", &text(&self.dir)]).map(drop)
    }

    /// Starts a server that is down, and waits until all members are up to date.
    fn back(&self, server: usize) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        muesli(&["cluster", "restart", &server.to_string(), "--dir", &text(&self.dir)])?;
        self.wait_until_well()?;
        Ok(begun.elapsed())
    }

    fn wait_until_well(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let output_text = muesli(&["admin", "members", "--connect", &self.addresses.join(",")]);
            let output_text = output_text.unwrap_or_default();
            if output_text.lines().filter(|line| line.contains("up to date")).count() == MEMBERS {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < WELL_WITHIN,
                "not all members are up to date:\n{output_text}"
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// What all servers hold now, in bytes.
    fn resident(&self) -> u64 {
        let of = |server| resident(&self.dir.join(format!("node-{server}/pid"))).unwrap_or(0);
        (0..SERVERS).map(of).sum()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = muesli(&["cluster", "down", "--dir", &text(&self.dir)]);
    }
}

fn resident(pid: &Path) -> Option<u64> {
    let pid = fs::read_to_string(pid).ok()?;
    let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Runs the program with these arguments; what it printed.
fn muesli(arguments: &[&str]) -> anyhow::Result<String> {
    let program = env!("CARGO_BIN_EXE_muesli");
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let output_text = String::from_utf8_lossy(&output.stderr);
        bail!("muesli {} failed: {output_text}", arguments.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn key(row: u64) -> Vec<u8> {
    format!("row-{row:012}").into_bytes()
}

fn value(revision: u64) -> Vec<u8> {
    let mut bytes = vec![7; VALUE_BYTES];
    bytes[..8].copy_from_slice(&revision.to_le_bytes());
    bytes
}

/// Clients that change rows until they are stopped, or until their revisions are asked for.
struct Writers {
    stop: Arc<AtomicBool>,
    /// Bytes that were acknowledged, of all clients.
    written: Arc<AtomicU64>,
    /// Microseconds that the slowest transaction took since this was last taken.
    slowest: Arc<AtomicU64>,
    threads: Vec<JoinHandle<anyhow::Result<Vec<u64>>>>,
}

impl Writers {
    fn start(servers: &Servers, rows: u64, clients: u64) -> anyhow::Result<Writers> {
        let stop = Arc::new(AtomicBool::new(false));
        let (written, slowest) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut threads = Vec::new();
        let db = servers.connect()?;
        for client in 0..clients {
            let (stop, db) = (stop.clone(), db.independent());
            let (written, slowest) = (written.clone(), slowest.clone());
            threads.push(std::thread::spawn(move || {
                let own = (client..rows).step_by(clients as usize).collect::<Vec<_>>();
                let mut revisions = vec![0_u64; own.len()];
                let space = db.space("rows")?;
                let mut draw = fastrand::Rng::with_seed(client);
                while !stop.load(Ordering::Relaxed) {
                    let at = draw.usize(..own.len());
                    let revision = revisions[at] + 1;
                    let begun = Instant::now();
                    change(&db, space, own[at], revision)?;
                    slowest.fetch_max(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
                    revisions[at] = revision;
                    written.fetch_add(VALUE_BYTES as u64, Ordering::Relaxed);
                }
                Ok(revisions)
            }));
        }
        Ok(Writers { stop, written, slowest, threads })
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How long the slowest transaction took that was over since this was last asked.
    fn slowest(&self) -> Duration {
        Duration::from_micros(self.slowest.swap(0, Ordering::Relaxed))
    }

    /// Until so many bytes more are acknowledged.
    fn wait_for(&self, bytes: u64) -> anyhow::Result<u64> {
        let (before, begun) = (self.written(), Instant::now());
        while self.written() - before < bytes {
            ensure!(begun.elapsed() < 2 * WELL_WITHIN, "clients do not get on");
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(self.written() - before)
    }

    /// The last acknowledged revision of each row of each client.
    fn end(self) -> anyhow::Result<Vec<Vec<u64>>> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|it| it.join().expect("a client panicked")).collect()
    }
}

/// Reads a row and writes it anew.
fn change(db: &Db, space: Space, row: u64, revision: u64) -> anyhow::Result<()> {
    db.blocking().transact(async move |tx| {
        let found = tx.get(space, key(row)).await?;
        assert!(found.is_some(), "row {row} is gone");
        tx.put(space, key(row), value(revision)).await
    })?;
    Ok(())
}

fn load(db: &Db, space: Space, rows: u64) -> anyhow::Result<()> {
    for from in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        db.blocking().transact(async move |tx| {
            for row in from..rows.min(from + ROWS_AT_ONCE) {
                tx.put(space, key(row), value(0)).await?;
            }
            Ok::<_, muesli::Error>(())
        })?;
    }
    Ok(())
}

/// How many rows have another revision than the last that was acknowledged.
fn wrong(db: &Db, space: Space, rows: u64, revisions: &[Vec<u64>]) -> anyhow::Result<u64> {
    let (mut wrong, clients) = (0, revisions.len() as u64);
    for from in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        let to = rows.min(from + ROWS_AT_ONCE);
        let found = db
            .blocking()
            .transact(async move |tx| tx.get_many(space, (from..to).map(key)).await)?;
        let is_right = |(row, found): (u64, &Option<SmallBytes>)| {
            let expected = revisions[(row % clients) as usize][(row / clients) as usize];
            found.as_ref().is_some_and(|it| it.as_slice()[..8] == expected.to_le_bytes())
        };
        wrong += (from..to).zip(&found).filter(|it| !is_right(*it)).count() as u64;
    }
    Ok(wrong)
}

/// The slowest transaction while the disk of each server in turn hangs, and while none does.
fn hang(servers: &Servers, writers: &Writers) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let trouble = |server| servers.dir.join(format!("node-{server}/trouble"));
    for server in 0..SERVERS {
        let config = servers.dir.join(format!("node-{server}/muesli.toml"));
        let line = format!("trouble_file = {:?}\n", text(&trouble(server)));
        fs::write(&config, fs::read_to_string(&config)? + &line)?;
        servers.kill(server)?;
        servers.back(server)?;
    }
    let (mut hung, mut calm) = (Vec::new(), Vec::new());
    for server in 0..SERVERS {
        std::thread::sleep(HANGS_FOR / 2);
        writers.slowest();
        std::thread::sleep(HANGS_FOR);
        calm.push(writers.slowest().as_secs_f64());
        fs::write(trouble(server), "hang")?;
        std::thread::sleep(HANGS_FOR);
        hung.push(writers.slowest().as_secs_f64());
        fs::write(trouble(server), "")?;
        servers.wait_until_well()?;
    }
    Ok((hung, calm))
}

/// How long it takes to copy so many bytes on this disk, and to sync the copy.
fn copy(folder: &Path, bytes: u64) -> anyhow::Result<Duration> {
    let (from, to) = (folder.join("reference"), folder.join("copy"));
    let block: Vec<u8> =
        (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut file = File::create(&from)?;
    for _ in 0..bytes.div_ceil(1 << 20) {
        std::io::Write::write_all(&mut file, &block)?;
    }
    file.sync_all()?;
    let begun = Instant::now();
    let status = Command::new("cp").arg(&from).arg(&to).status().context("cannot run cp")?;
    ensure!(status.success(), "cp failed");
    File::open(&to)?.sync_all()?;
    let took = begun.elapsed();
    fs::remove_file(&from)?;
    fs::remove_file(&to)?;
    Ok(took)
}

/// The most bytes that all servers held together, looked at ten times a second.
fn watch(servers: &Arc<Servers>, stop: &Arc<AtomicBool>) -> JoinHandle<u64> {
    let (servers, stop) = (servers.clone(), stop.clone());
    std::thread::spawn(move || {
        let mut most = 0;
        while !stop.load(Ordering::Relaxed) {
            most = most.max(servers.resident());
            std::thread::sleep(Duration::from_millis(100));
        }
        most
    })
}

fn row(name: &str, unit: &str, mut numbers: Vec<f64>) {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
    println!("{name:<58} {:>9.2} {low:>9.2} {high:>9.2} {unit}", numbers[numbers.len() / 2]);
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::Builder::new().prefix("recovery-").tempdir_in(&arguments.folder)?;
    let servers = Arc::new(Servers::up(&folder.path().join("cluster"), &arguments.set)?);
    servers.wait_until_well()?;
    let stop = Arc::new(AtomicBool::new(false));
    let watched = watch(&servers, &stop);
    let db = servers.connect()?;
    let space = db.create_space("rows", SpaceOptions::default())?;
    let rows = arguments.data_mb * 1_000_000 / VALUE_BYTES as u64;
    let begun = Instant::now();
    load(&db, space, rows)?;
    println!("{rows} rows of {VALUE_BYTES} bytes are loaded, in {:.1?}", begun.elapsed());
    let begun = Instant::now();
    let writers = Writers::start(&servers, rows, arguments.clients)?;
    let (mut killed, mut restarted, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    let (mut missed, mut copied, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        let server = round % SERVERS;
        servers.kill(server)?;
        killed.push(servers.back(server)?.as_secs_f64());
        println!("round {round}: server {server} was killed: {:.2} s", killed[round]);
        servers.kill(server)?;
        let bytes = writers.wait_for(arguments.restarted_mb << 20)?;
        restarted.push(servers.back(server)?.as_secs_f64());
        copied.push(copy(folder.path(), bytes)?.as_secs_f64());
        missed.push(bytes as f64 / f64::from(1 << 20));
        ratios.push(restarted[round] / copied[round]);
        println!(
            "round {round}: it was away: {:.2} s, cp {:.2} s",
            restarted[round], copied[round]
        );
        servers.kill(server)?;
        fs::remove_dir_all(servers.dir.join(format!("node-{server}/data")))?;
        lost.push(servers.back(server)?.as_secs_f64());
        println!("round {round}: it lost its folder: {:.2} s", lost[round]);
    }
    let (hung, calm) = hang(&servers, &writers)?;
    let rate = writers.written() as f64 / begun.elapsed().as_secs_f64() / 1e6;
    let revisions = writers.end()?;
    let idle = copy(folder.path(), arguments.restarted_mb << 20)?.as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let most = watched.join().expect("it only looks") as f64 / f64::from(1 << 20);
    println!("{:<58} {:>9} {:>9} {:>9}", "back, while clients write", "median", "min", "max");
    row("a killed server", "s", killed);
    row("a server that missed", "MiB", missed);
    row("    was back after", "s", restarted);
    row("    cp and sync of as much, in the same minute", "s", copied);
    row("    back over cp and sync (at most 2 is wanted)", "", ratios);
    row("    cp and sync of as much, without clients", "s", vec![idle]);
    row("a server that lost its folder", "s", lost);
    row("slowest transaction while one disk hangs for 10 s", "s", hung);
    row("slowest transaction in 10 s without that", "s", calm);
    row("clients commit", "MB/s", vec![rate]);
    row("all servers hold together, at most", "MiB", vec![most]);
    let wrong = wrong(&db, space, rows, &revisions)?;
    println!("{wrong} of {rows} rows are not as they were acknowledged");
    ensure!(wrong == 0, "rows are not as they were acknowledged");
    Ok(())
}
