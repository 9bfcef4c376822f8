//! The binary `muesli`: demo, benchmarks, simulation, figures of papers, history checking,
//! calibration, servers and local clusters, their users, their logs, plans and placements, exports
//! and imports, torture, shell completions.
//!
//! Exit status: 0 all is well; 1 something does not hold; 2 the command cannot be carried out, and
//! standard error says why.

mod admin;
mod bench;
mod calibrate;
mod check;
mod cluster;
mod completions;
mod config;
mod data;
mod demo;
mod local;
mod log;
mod names;
mod options;
#[cfg(test)]
mod pages;
mod partition;
mod reach;
mod reproduce;
mod shell;
mod simulate;
mod start;
mod table;
mod torture;
mod user;

use std::process::ExitCode;

use clap::Command;
use clap::error::{ContextKind, ErrorKind};

use data::{compact, export, import};

/// Loops free what other loops allocated: the system's allocator locks for that, this one does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The command could not be carried out.
const UNUSABLE: u8 = 2;

const ABOUT: &str = "Serializable transactions over any keys: embedded, simulated, and checked";

const AFTER: &str = "\
Examples:
  muesli demo                                            a first look, under a minute
  muesli bench bank --repositories 4 --replicas 2        measure transfers in this process
  muesli sim bank --seeds 1..100 --faults all            look for faults in simulated runs
  muesli bench bank --transactions 10000 --history h.jsonl && muesli check h.jsonl
  muesli reproduce bumper-fig3 --quick                   a paper's figure beside ours
  muesli start                                           a lone durable server on this machine
  muesli torture --minutes 5                             kill real processes, lose nothing";

fn command() -> Command {
    Command::new("muesli")
        .about(ABOUT)
        .after_help(AFTER)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(demo::command())
        .subcommand(bench::command())
        .subcommand(simulate::command())
        .subcommand(reproduce::command())
        .subcommand(check::command())
        .subcommand(calibrate::command())
        .subcommand(start::command())
        .subcommand(user::command())
        .subcommand(cluster::command())
        .subcommand(admin::command())
        .subcommand(partition::command())
        .subcommand(shell::command())
        .subcommand(export::command())
        .subcommand(import::command())
        .subcommand(compact::command())
        .subcommand(log::command())
        .subcommand(torture::command())
        .subcommand(completions::command())
}

fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return explain(&error),
    };
    let done = match matches.subcommand() {
        Some(("demo", matches)) => demo::run(matches),
        Some(("bench", matches)) => bench::run(matches),
        Some(("sim", matches)) => simulate::run(matches),
        Some(("reproduce", matches)) => reproduce::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("calibrate", matches)) => calibrate::run(matches),
        Some(("start", matches)) => start::run(matches),
        Some(("user", matches)) => user::run(matches),
        Some(("cluster", matches)) => cluster::run(matches),
        Some(("admin", matches)) => admin::run(matches),
        Some(("partition", matches)) => partition::run(matches),
        Some(("shell", matches)) => shell::run(matches),
        Some(("export", matches)) => export::run(matches),
        Some(("import", matches)) => import::run(matches),
        Some(("compact", matches)) => compact::run(matches),
        Some(("log", matches)) => log::run(matches),
        Some(("torture", matches)) => torture::run(matches),
        Some(("completions", matches)) => completions::run(matches, command()),
        _ => unreachable!("every subcommand is listed here"),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // Only the first line stands at the margin: the others belong to it.
            eprintln!("muesli: {}", format!("{error:#}").replace('\n', "\n  "));
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Help goes out as it is; of an error what is wrong and what is allowed, without the usage.
fn explain(error: &clap::Error) -> ExitCode {
    let help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if help.contains(&error.kind()) {
        // A reader that has gone away is no matter.
        let _ = error.print();
        return ExitCode::from(error.exit_code() as u8);
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // Where one name was meant, the others need not be listed.
    let is_meant = error.get(ContextKind::SuggestedValue).is_some();
    let lines = lines.filter(|line| !(is_meant && line.starts_with("[possible values:")));
    let printed =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let printed = printed.collect::<Vec<_>>().join("\n  ");
    eprintln!("muesli: {}", printed.trim_start_matches("error: "));
    ExitCode::from(UNUSABLE)
}
