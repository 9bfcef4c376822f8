//! `cargo xtask compile-times`: the processor time that each protocol adds to the program's release
//! build. The sources of the last commit are built in a folder of their own, with all protocols in
//! the table and then without each; what is built again are the crates that know of protocols, and
//! the program is linked.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use xtask::files;

use super::{Done, program, run};

/// The types of protocols, as the table has them.
const PROTOCOLS: [&str; 8] = [
    "Score",
    "Bumper",
    "Gmu",
    "TwoPhaseCommit",
    "Tfa",
    "RepeatableRead",
    "NonGenuineMultiversioning",
    "Granola",
];
/// Where the table is.
const TABLE: &str = "crates/protocols/src/lib.rs";
/// What the kernel counts processor time in: ticks of a second.
const TICKS: f64 = 100.0;

pub fn compile_times(named: &[&str]) -> Done {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = files::root().join(target).join("compile-times");
    let sources = folder.join("sources");
    fs::create_dir_all(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    let into = format!("git archive HEAD | tar -x -C {}", sources.display());
    run(program("sh").args(["-c", &into]))?;
    let table = fs::read_to_string(sources.join(TABLE)).map_err(|error| error.to_string())?;
    let one = PROTOCOLS[1..].iter().fold(table.clone(), |table, it| without(&table, it));
    println!("what all have in common, first, with {} alone", PROTOCOLS[0]);
    build(&folder, &one)?;
    let all = build(&folder, &table)?;
    println!("| protocol | processor time it adds |\n| --- | --- |");
    println!("| all {} | {all:.0} s |", PROTOCOLS.len());
    for protocol in PROTOCOLS {
        if named.is_empty() || named.contains(&protocol) {
            let rest = build(&folder, &without(&table, protocol))?;
            println!("| {protocol} | {:.1} s |", all - rest);
        }
    }
    Ok(())
}

/// The table without a protocol, under all of its names.
fn without(table: &str, protocol: &str) -> String {
    let (head, rest) = table.split_once("\nprotocols! {\n").expect("the file has the table");
    let (rows, tail) = rest.split_once("\n}\n").expect("the table has an end");
    let of_protocol = |row: &&str| !row.contains(&format!("::{protocol},"));
    let rows: Vec<_> = rows.split_inclusive(';').filter(of_protocol).collect();
    format!("{head}\nprotocols! {{\n{}\n}}\n{tail}", rows.concat())
}

/// Builds the program with this table; the processor time that it took.
fn build(folder: &Path, table: &str) -> Result<f64, String> {
    let sources: PathBuf = folder.join("sources");
    fs::write(sources.join(TABLE), table).map_err(|error| error.to_string())?;
    let before = processor_time()?;
    let mut cargo = program("cargo");
    cargo.args(["build", "--quiet", "--release", "--locked", "-p", "muesli-cli"]);
    cargo.current_dir(&sources).env("CARGO_TARGET_DIR", folder.join("target"));
    run(cargo.env_remove("CARGO_INCREMENTAL"))?;
    Ok(processor_time()? - before)
}

/// What all programs have taken that were run and have ended, in seconds.
fn processor_time() -> Result<f64, String> {
    let text = fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    // The name of the program, in brackets, may have spaces.
    let fields: Vec<_> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = fields[13..15].iter().filter_map(|field| field.parse::<u64>().ok());
    Ok(ticks.sum::<u64>() as f64 / TICKS)
}
