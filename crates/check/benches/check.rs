//! How fast the checker is, and how much memory it needs, on a history of a million transactions.
//!
//! `cargo bench -p muesli-check [-- TRANSACTIONS]`; prints operations per second for every level,
//! for reading and writing the file format, and the peak memory of the process.

use std::io::Write;
use std::time::{Duration, Instant};

use muesli_check::{
    Checker, History, HistoryBuilder, HistoryHeader, Kind, Level, Options, TxnId, Value, Version,
};

const KEYS: u64 = 100_000;
const CLIENTS: u64 = 64;

fn main() {
    let argument = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let transactions: u64 = argument.unwrap_or(1_000_000);
    let (history, took) = timed(|| generate(transactions));
    let operations = history.operations();
    report("build", operations, took);
    let (checker, prepared) = timed(|| Checker::new(&history));
    report("resolve", operations, prepared);
    for level in Level::ALL {
        let (verdict, took) = timed(|| checker.check(level, &Options::default()));
        assert!(verdict.holds(), "{verdict}");
        report(level.name(), operations, prepared + took);
    }
    report_memory("after all levels");
    drop(checker);
    let (text, took) = timed(|| {
        let mut text = Vec::new();
        history.write(&mut text).expect("writing to memory");
        text
    });
    report("write JSON Lines", operations, took);
    let (again, took) = timed(|| History::read(text.as_slice()).expect("our own output"));
    report("read JSON Lines", again.operations(), took);
    report_memory("with text and both histories");
    let (forks, _) = timed(|| generate_forks(100_000));
    let (verdict, took) = timed(|| muesli_check::check(&forks, Level::Eus, &Options::default()));
    assert!(verdict.holds(), "{verdict}");
    report("eus, long forks", forks.operations(), took);
}

/// Updates of two unrelated groups of keys, and as many readers that see one group as it is and
/// the other as it was long ago: allowed, but every one of them must be followed up.
fn generate_forks(transactions: u64) -> History {
    let mut builder = HistoryBuilder::new(Kind::Version);
    let mut random = 1_u64;
    for number in 1..=transactions {
        let id = TxnId::Numbered { node: 0, sequence: number };
        let header = HistoryHeader::committed(id, 0, number * 10, number * 10 + 9);
        let mut txn = builder.transaction(header).expect("unique id");
        let done = number / 4;
        let then = next(&mut random) % (done + 1);
        let mut read = |key: &str, version| {
            txn.read(key.as_bytes(), version, Value::Unrecorded).expect("a read");
        };
        match number % 4 {
            0 => read("left", done - 1),
            1 => read("right", done),
            2 => {
                read("left", done);
                read("right", then);
            }
            _ => {
                read("left", then);
                read("right", done);
            }
        }
        let written = match number % 4 {
            0 => Some(("left", done)),
            1 => Some(("right", done + 1)),
            _ => None,
        };
        if let Some((key, version)) = written {
            let version = Some(Version::Number(version));
            txn.write(key.as_bytes(), version, Value::Unrecorded).expect("a write");
        }
    }
    builder.finish()
}

/// A serial execution of transactions that read two keys and overwrite two, or only read four;
/// recorded with overlapping intervals. One in twenty aborts.
fn generate(transactions: u64) -> History {
    let mut builder = HistoryBuilder::new(Kind::Version);
    let mut latest = vec![0_u64; KEYS as usize];
    let mut random = 1_u64;
    for number in 1..=transactions {
        let client = number % CLIENTS;
        let id = TxnId::Numbered { node: client, sequence: number };
        let header = HistoryHeader::committed(id, client, number * 10, number * 10 + 9 * CLIENTS);
        let aborts = number % 20 == 0;
        let status = if aborts { muesli_check::Status::Aborted } else { header.status };
        let updates = number % 3 != 0;
        let keys: [u64; 4] = std::array::from_fn(|_| next(&mut random) % KEYS);
        let mut txn = builder.transaction(HistoryHeader { status, ..header }).expect("unique id");
        for (place, key) in keys.iter().enumerate() {
            let name = format!("key{key}");
            let seen = latest[*key as usize];
            let writes = updates && place >= 2 && !keys[..place].contains(key);
            if !writes {
                let own = updates && !aborts && keys[2..place.max(2)].contains(key);
                if !own {
                    txn.read(name.as_bytes(), seen, Value::Unsigned(seen)).expect("a read");
                }
            } else if !aborts {
                let version = Some(Version::Number(number));
                txn.write(name.as_bytes(), version, Value::Unsigned(number)).expect("a write");
                latest[*key as usize] = number;
            } else {
                txn.write(name.as_bytes(), None, Value::Unsigned(number)).expect("a write");
            }
        }
    }
    builder.finish()
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn report(what: &str, operations: usize, took: Duration) {
    let rate = operations as f64 / took.as_secs_f64() / 1e6;
    println!("{what:<20} {:>7.2} s  {rate:>6.2} million operations/s", took.as_secs_f64());
}

fn report_memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("{peak} ({when})");
    std::io::stdout().flush().expect("standard output");
}
