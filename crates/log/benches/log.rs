//! The log against raw appends and syncs of the same bytes, in the same run and directory.
//!
//! `cargo bench -p muesli-log` prints one line a row: records a second at so many records a sync,
//! by a growing file, by the log's writer, and by the log with its thread; then the replay.
//! `MUESLI_BENCH_DIR` names a directory on the disk to measure; default is the target directory.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use muesli_log::{Batch, Directory, Log, Options, Replay, Sequence, Writer, open};

/// Bytes of a record: a transfer between two accounts, as the cluster logs it.
const RECORD: [u8; 256] = [7; 256];
/// Each row takes about this long.
const ROW: Duration = Duration::from_millis(1500);
/// Bytes to replay.
const REPLAYED: u64 = 1 << 30;

struct Count(u64, u64);

impl Replay for Count {
    fn piece(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn record(&mut self, _: Sequence, kind: u8, payload: &[u8]) -> Result<(), String> {
        self.0 += u64::from(kind);
        self.1 += payload.len() as u64;
        Ok(())
    }
}

fn fresh(root: &Path, name: &str) -> PathBuf {
    let path = root.join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a directory to measure in");
    path
}

fn writer(path: &Path, options: Options) -> Writer<Directory> {
    let disk = Directory::create(path).expect("a directory");
    open(disk, options, &mut Count(0, 0)).expect("an empty log").0
}

/// Calls `sync` until the time of a row is over; records a second.
fn rate(records: u64, mut sync: impl FnMut()) -> f64 {
    (0..20).for_each(|_| sync());
    let (start, mut syncs) = (Instant::now(), 0);
    while start.elapsed() < ROW {
        sync();
        syncs += 1;
    }
    (syncs * records) as f64 / start.elapsed().as_secs_f64()
}

fn raw(root: &Path, records: u64) -> f64 {
    let path = fresh(root, "raw").join("file");
    let mut file: File = OpenOptions::new().create_new(true).append(true).open(path).expect("file");
    let bytes = RECORD.repeat(records as usize);
    rate(records, || {
        file.write_all(&bytes).expect("written");
        file.sync_data().expect("synced");
    })
}

fn direct(root: &Path, records: u64, preallocate_bytes: u64) -> f64 {
    let options = Options { preallocate_bytes, ..Options::default() };
    let mut writer = writer(&fresh(root, "direct"), options);
    let mut batch = Batch::after(Sequence(0));
    rate(records, || {
        for _ in 0..records {
            batch.append(1, |out| out.extend_from_slice(&RECORD)).expect("a short record");
        }
        writer.write(&mut batch).expect("written");
    })
}

fn threaded(root: &Path, records: u64) -> f64 {
    let writer = writer(&fresh(root, "threaded"), Options::default());
    let mut log = Log::start(writer, || {}).expect("a thread");
    rate(records, || {
        for _ in 0..records {
            log.append(1, |out| out.extend_from_slice(&RECORD)).expect("a short record");
        }
        log.sync().expect("synced");
    })
}

fn replay(root: &Path) -> f64 {
    let path = fresh(root, "replay");
    let mut writer = writer(&path, Options::default());
    let mut batch = Batch::after(Sequence(0));
    for _ in 0..REPLAYED / (RECORD.len() as u64 * 4096) {
        for _ in 0..4096 {
            batch.append(1, |out| out.extend_from_slice(&RECORD)).expect("a short record");
        }
        writer.write(&mut batch).expect("written");
    }
    writer.close().expect("closed");
    let (start, mut count) = (Instant::now(), Count(0, 0));
    let disk = Directory::existing(&path).expect("a directory");
    open(disk, Options::default(), &mut count).expect("a whole log");
    let rate = count.1 as f64 / start.elapsed().as_secs_f64() / 1e6;
    assert_eq!(count.1, REPLAYED);
    let _ = std::fs::remove_dir_all(&path);
    rate
}

fn main() {
    let root = std::env::var_os("MUESLI_BENCH_DIR").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("log-bench"));
    println!("records/s, records of {} bytes, in {}", RECORD.len(), root.display());
    println!("{:>12} {:>12} {:>12} {:>12} {:>12}", "a sync", "raw", "growing", "zeros", "thread");
    for records in [1, 16, 64, 256] {
        let (raw, growing) = (raw(&root, records), direct(&root, records, 0));
        let zeros = direct(&root, records, Options::default().preallocate_bytes);
        let thread = threaded(&root, records);
        println!("{records:>12} {raw:>12.0} {growing:>12.0} {zeros:>12.0} {thread:>12.0}");
    }
    println!("replay of {} MB: {:.0} MB/s", REPLAYED >> 20, replay(&root));
    let _ = std::fs::remove_dir_all(&root);
}
