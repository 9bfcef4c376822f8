//! `muesli check FILE`, given its parsed options.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::{Checker, History, Kind, Level, Options, Verdict};

/// The history satisfies the level.
pub const HOLDS: u8 = 0;
/// The history breaks the level.
pub const BROKEN: u8 = 1;
/// The file cannot be read as a history, or the DOT file cannot be written.
pub const UNREADABLE: u8 = 2;

/// The options of the command.
#[derive(Clone, Debug)]
pub struct CheckCommand {
    /// The history to judge.
    pub file: PathBuf,
    /// The level to judge it at.
    pub level: Level,
    /// Whether a file without a `meta` line is of kind "append".
    pub append: bool,
    /// What to judge beyond the level.
    pub options: Options,
    /// Where to draw the cycle, if one is found.
    pub dot: Option<PathBuf>,
}

/// Judges the file and reports to `out`; returns the exit code.
///
/// # Errors
/// Only if `out` cannot be written to; everything else is an exit code and a line on `out`.
pub fn run(command: &CheckCommand, out: &mut impl Write) -> io::Result<u8> {
    let file = command.file.display();
    let history = match open(command) {
        Ok(history) => history,
        Err(reason) => {
            writeln!(out, "{file}: {reason}")?;
            return Ok(UNREADABLE);
        }
    };
    if history.kind() == Kind::Append && !command.options.sums.is_empty() {
        writeln!(out, "{file}: sums need the values of a history of kind \"version\"")?;
        return Ok(UNREADABLE);
    }
    let verdict = Checker::new(&history).check(command.level, &command.options);
    write!(out, "{verdict}")?;
    if let Some(dot) = &command.dot
        && let Err(error) = draw(&verdict, dot)
    {
        writeln!(out, "{}: cannot write: {error}", dot.display())?;
        return Ok(UNREADABLE);
    }
    Ok(if verdict.holds() { HOLDS } else { BROKEN })
}

fn open(command: &CheckCommand) -> Result<History, String> {
    let file = File::open(&command.file).map_err(|error| format!("cannot open: {error}"))?;
    let kind = command.append.then_some(Kind::Append);
    History::read_as(BufReader::with_capacity(1 << 16, file), kind).map_err(|e| e.to_string())
}

fn draw(verdict: &Verdict, path: &Path) -> io::Result<()> {
    match verdict.to_dot() {
        Some(dot) => std::fs::write(path, dot),
        None => Ok(()),
    }
}
