//! `cargo xtask trace`: a failing seed, taken apart.

use std::fs;
use std::path::Path;

use xtask::files;

use super::{Done, muesli, program};

const NEXT: &str = "\
Next:
  1. Make it small: give the plan back by --plan without one fault after the other; fewer
     --transactions, --clients, --nodes.
  2. Read the cycle: each edge names the key and the versions behind it. The trace has every event.
  3. Write the exchange down as a page under crates/protocols/tests/transcripts, and fill it by
     `cargo xtask transcripts NAME`.";

pub fn run(workload: &str, seed: &str, options: &[&str]) -> Done {
    if seed.parse::<u64>().is_err() {
        return Err(format!("`{seed}` is no seed: trace WORKLOAD SEED [OPTION ...]"));
    }
    let muesli = muesli()?;
    let muesli = muesli.to_string_lossy();
    let folder = format!("traces/{workload}-{seed}");
    let at = files::root().join(&folder);
    fs::create_dir_all(&at).map_err(|error| format!("{}: {error}", at.display()))?;
    let trace = format!("{folder}/trace.txt");
    let given = ["sim", workload, "--seeds", seed, "--trace", &trace, "--history", &folder];
    let failed = super::run(program(&muesli).args(given).args(options)).err();
    for history in histories(&at)? {
        let history = format!("{folder}/{history}");
        let drawing = history.replace(".jsonl", ".dot");
        // That a level does not hold is what one wants to see.
        let _ = super::run(program(&muesli).args(["check", &history, "--dot", &drawing]));
    }
    println!(
        "\n{folder} has the trace, the histories, and a drawing of each cycle that was found."
    );
    println!("{}", if failed.is_some() { NEXT } else { "The seed holds." });
    Ok(())
}

fn histories(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut histories: Vec<_> = names.filter(|name| name.ends_with(".jsonl")).collect();
    histories.sort();
    Ok(histories)
}
