//! `cargo xtask profile FILE`: what `perf record` has written, by parts of the system.

use xtask::profile;

use super::{Done, output, program};

/// Prints where the time went.
pub fn run(file: &str, of_thread: Option<&str>) -> Done {
    let mut perf = program("perf");
    let own = std::env::current_dir().map_err(|error| error.to_string())?.join(file);
    perf.args(["report", "--stdio", "--no-children", "--sort", "sym", "--percent-limit", "0"]);
    perf.args(["--percentage", "relative", "-g", "none", "-i"]).arg(own);
    if let Some(name) = of_thread {
        perf.args(["--comm", name]);
    }
    let parts = profile::by_parts(&output(&mut perf)?);
    match parts.is_empty() {
        true => Err(format!("{file} has no samples")),
        false => {
            print!("{}", profile::drawn(&parts));
            Ok(())
        }
    }
}
