//! `cargo xtask`: what those who work on Muesli do often.

mod tasks;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask TASK

  check                           formatting, lints, fuzz targets compile, all tests
  sim [PROTOCOL ...]              the searches of each commit, of these protocols or of all
      --first SEED                the first seed [default: of the commit]
      --times N                   so many times as many seeds [default: 1]
      --nesting                   instead those of the nesting models: 2,000 seeds for each
                                  protocol and model at production's pace, in hours
      --ordering                  instead those of the protocols that order commits by a
                                  broadcast: 2,000 seeds for each, likewise
      --list                      only say what would be run
      --built                     with the program that `cargo test --workspace` has built
  clients [LIBRARY ...]           programs of Python, Node.js, Go and Java over redis-py, ioredis,
                                  node-redis, go-redis and jedis, each against a server; fetches
                                  the libraries
      --built                     with the program that `cargo test --workspace` has built
  python                          builds the wheel of the Python package, installs it in a venv,
                                  checks its types and tests it; fetches maturin, pytest and mypy
      --built                     with the program that `cargo test --workspace` has built
      --release                   optimized, and measured
  explore                         every state of every small scope; tests look at the first of
                                  those that have many
  transcripts [NAME]              write the transcripts' output anew; then read the difference
  trace WORKLOAD SEED [OPTION ...]
                                  run a seed of `muesli sim` again, and write into traces/ its
                                  trace, its histories, and a drawing of the cycle in each
  bench                           the hot path (instructions, where valgrind is there), and a bank
  profile FILE [THREAD]           what `perf record -o FILE` has written, by parts of the system;
                                  of all threads, or of those of a name
  compile-times [TYPE ...]        the processor time that protocols add to the release build
  left                            lower the numbers of retired words and of names used twice";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["check"] => tasks::check::run(),
        ["sim", ref rest @ ..] => tasks::sim::run(rest),
        ["clients", ref rest @ ..] => tasks::clients::run(rest),
        ["python", ref rest @ ..] => tasks::python::run(rest),
        ["explore"] => tasks::explore::run(),
        ["transcripts", ref rest @ ..] if rest.len() < 2 => tasks::transcripts::run(rest),
        ["trace", workload, seed, ref rest @ ..] => tasks::trace::run(workload, seed, rest),
        ["bench"] => tasks::bench::run(),
        ["profile", file] => tasks::profile::run(file, None),
        ["profile", file, thread] => tasks::profile::run(file, Some(thread)),
        ["compile-times", ref rest @ ..] => tasks::compile_times::compile_times(rest),
        ["left"] => tasks::left::run(),
        ["--help" | "help"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(format!("this is no task\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
