//! `muesli calibrate`: measures what a node's work costs on this machine, for the simulator.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use jiff::tz::TimeZone;
use muesli_sim::hardware::costs::Costs;
use muesli_workloads::calibration;

#[derive(Args, Clone, Debug)]
struct CalibrateOptions {
    /// Where the figures are written [default: calibration-DATE.txt]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("calibrate")
        .about("Measure what a node's work costs on this machine")
        .after_help(
            "Takes some seconds, and wants a quiet machine. The simulator's own figures were \
             written by it; they are kept with their date.",
        );
    CalibrateOptions::augment_args(command)
}

/// Runs the command.
///
/// # Errors
/// It cannot be measured, or the figures cannot be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = CalibrateOptions::from_arg_matches(matches)?;
    let date = jiff::Timestamp::now().to_zoned(TimeZone::UTC).date().to_string();
    let path = options.out.unwrap_or_else(|| format!("calibration-{date}.txt").into());
    // Here and below: a reader that has gone away is no matter.
    let progress = |part: &str| drop(writeln!(stderr(), "measuring {part} ..."));
    let costs = calibration::measured(progress).context("cannot measure")?;
    let text = table(&costs, &date);
    let _ = write!(stdout(), "{text}");
    let message = || format!("cannot write the figures to {}", path.display());
    std::fs::write(&path, &text).with_context(message)?;
    let _ = writeln!(stderr(), "written to {}", path.display());
    Ok(0)
}

/// The table of costs, as the simulator reads it.
fn table(costs: &Costs, date: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let s = if cores == 1 { "" } else { "s" };
    format!(
        "# Costs of a node's work, measured by `muesli calibrate` on {date} ({}, {cores} \
         core{s}).\n{costs}",
        processor(),
    )
}

/// What the system calls its processor, where it says so; else the kind that this was built for.
fn processor() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().filter_map(|line| line.split_once(':'));
    let mut model = model.filter(|(name, _)| name.trim() == "model name");
    model.next().map_or(std::env::consts::ARCH, |(_, model)| model.trim()).to_owned()
}
