//! `muesli check`: judges a recorded history.

use std::io::{stderr, stdout};
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli_check::command::{CheckCommand, UNREADABLE};
use muesli_check::{Level, Options, SumCheck};

#[derive(Args, Clone, Debug)]
struct CheckOptions {
    /// The history, as JSON Lines; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The level to judge it at: rr, pl2, us, eus, serializable, strict-serializable,
    /// serializable-attempts or opacity
    #[arg(long, default_value = "serializable")]
    level: Level,
    /// Keys hold lists and writes append; for files whose first line does not say so
    #[arg(long)]
    append: bool,
    /// Sessions must take effect in the order they ran
    #[arg(long)]
    session_order: bool,
    /// Real time must be respected among updates
    #[arg(long)]
    update_strict: bool,
    /// What values must add up to in every transaction that reads them all
    #[arg(long = "sum", value_name = "PREFIX:TOTAL:COUNT")]
    sums: Vec<SumCheck>,
    /// Where to draw the cycle that breaks the level, if there is one
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("check").about("Judge a recorded history").after_help(
        "Exit status: 0 the level holds, 1 it is broken, 2 the file cannot be read, or has nothing \
         to be judged, 3 it could not be decided.\n\
         `muesli bench WORKLOAD --history FILE` records one.",
    );
    CheckOptions::augment_args(command)
}

/// Runs the command.
///
/// # Errors
/// The verdict cannot be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let CheckOptions { file, level, append, session_order, update_strict, sums, dot } =
        CheckOptions::from_arg_matches(matches)?;
    let options = Options { session_order, update_strict, sums };
    let command = CheckCommand { file, level, append, options, dot };
    let mut verdict = Vec::new();
    let status = muesli_check::command::run(&command, &mut verdict)?;
    let text = String::from_utf8_lossy(&verdict);
    use std::io::Write as _;
    if status == UNREADABLE {
        write!(stderr(), "muesli: {text}")?;
    } else {
        write!(stdout(), "{text}")?;
    }
    Ok(status)
}
