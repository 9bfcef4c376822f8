//! `cargo xtask bench`: what a transaction costs where its data lives, and a bank in one process.

use super::{Done, output, program};

/// So many transactions more are counted; what the start takes is in both runs.
const COUNTS: [u64; 2] = [1_000, 11_000];

pub fn run() -> Done {
    super::run(
        program("cargo").args(["bench", "--locked", "-p", "muesli", "--bench", "hot_path"]),
    )?;
    let has_valgrind = program("valgrind").arg("--version").output().is_ok();
    match has_valgrind {
        true => instructions()?,
        false => println!("valgrind is not there: no instructions are counted"),
    }
    let bank = ["run", "--profile", "peak", "--locked", "-p", "muesli-cli", "--", "bench", "bank"];
    super::run(program("cargo").args(bank).args(["--seconds", "5"]))
}

/// Instructions of a transaction, as BENCHMARKS.md counts them: below the loop's polling alone.
fn instructions() -> Done {
    let built = ["bench", "--locked", "-p", "muesli", "--bench", "hot_path", "--no-run"];
    let built_text = program("cargo").args(built).output().map_err(|error| error.to_string())?;
    let built_text = String::from_utf8_lossy(&built_text.stderr).into_owned();
    let (_, path) = built_text.rsplit_once('(').ok_or("cargo does not say what it has built")?;
    let path = path.split(')').next().unwrap_or_default();
    for mode in ["plain", "async", "history", "sampled", "reads"] {
        let [few, many] = COUNTS.map(|count| counted(path, mode, count));
        let each = many?.saturating_sub(few?) / (COUNTS[1] - COUNTS[0]);
        println!("{mode}: {each} instructions a transaction");
    }
    Ok(())
}

fn counted(path: &str, mode: &str, count: u64) -> Result<u64, String> {
    let file = std::env::temp_dir().join(format!("muesli-callgrind-{}", std::process::id()));
    let out = format!("--callgrind-out-file={}", file.display());
    let options = ["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*poll_ready*"];
    let mut command = program("valgrind");
    command.args(options).args([&out, path, mode, &count.to_string()]);
    output(&mut command)?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let _ = std::fs::remove_file(&file); // It is in the folder for such files.
    let line = text.lines().find_map(|line| line.strip_prefix("summary: "));
    let sum = line.and_then(|line| line.split(' ').next()).and_then(|sum| sum.parse().ok());
    sum.ok_or_else(|| "callgrind wrote no sum".to_owned())
}
