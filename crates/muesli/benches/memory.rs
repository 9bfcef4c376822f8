//! Memory per key, as the process has it, at a million keys of one version each, with the system's
//! allocator: `cargo bench -p muesli --bench memory`.
//!
//! Each index is measured in a process of its own: what another database left behind would count.

mod bank;

use std::time::Duration;

use muesli::{Db, Index, Options, SpaceOptions, Tx};

use bank::{key, value};

const KEYS: u64 = 1_000_000;
const KEY_AND_VALUE_BYTES: f64 = 24.0;

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("VmRSS 0");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Bytes of process memory per key beyond its key and value bytes, at a million keys.
fn memory(index: Index) -> f64 {
    let options = Options::default().space("keys", SpaceOptions { index, ..Default::default() });
    let db = Db::open(options).expect("the options are good");
    let space = db.space("keys").expect("just made");
    let load = |from: u64, to: u64| {
        let body = async move |tx: &Tx| {
            for number in from..to {
                tx.put(space, key(number), value(1)).await?;
            }
            Ok::<_, muesli::Error>(())
        };
        db.blocking().transact(body).expect("nothing is in the way");
    };
    load(0, 100);
    let before = resident_bytes();
    for part in 0..KEYS / 100 {
        load(part * 100, (part + 1) * 100);
    }
    // The allocator gives back what was outgrown after a while.
    std::thread::sleep(Duration::from_millis(500));
    load(0, 100);
    let grown = resident_bytes() - before;
    db.close();
    grown as f64 / KEYS as f64 - KEY_AND_VALUE_BYTES
}

/// What [`memory`] finds in a process of its own.
fn memory_alone(index: &str) -> String {
    let me = std::env::current_exe().expect("this program has a file");
    let output = std::process::Command::new(me).args(["alone", index]).output();
    let bytes = String::from_utf8(output.expect("this program starts").stdout);
    bytes.expect("a number").trim().to_owned()
}

fn main() {
    if std::env::args().any(|argument| argument == "alone") {
        let ordered = std::env::args().any(|argument| argument == "ordered");
        let index = if ordered { Index::Ordered } else { Index::Hash };
        println!("{:.0}", memory(index));
        return;
    }
    println!("bytes of memory a key beyond its key and value");
    println!("hash index     {:>4}", memory_alone("hash"));
    println!("ordered index  {:>4}", memory_alone("ordered"));
}
