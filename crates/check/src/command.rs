//! `muesli check FILE`, given its parsed options.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::{Checker, History, Kind, Level, Options, Verdict};

/// The history satisfies the level.
pub const HOLDS: u8 = 0;
/// The history breaks the level.
pub const BROKEN: u8 = 1;
/// It could not be decided: the search for an order of the roots was too long.
pub const UNDECIDED: u8 = 3;
/// The file cannot be read as a history, has nothing to be judged, or the DOT file cannot be
/// written.
pub const UNREADABLE: u8 = 2;

/// The options of the command.
#[derive(Clone, Debug)]
pub struct CheckCommand {
    /// The history to judge; `-` is standard input.
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
    if history.transactions() == 0 {
        writeln!(out, "{file}: a history without transactions, which shows nothing")?;
        return Ok(UNREADABLE);
    }
    let checker = Checker::new(&history);
    if let Some(sum) = command.options.sums.iter().find(|sum| checker.readers_of(sum) == 0) {
        let prefix = String::from_utf8_lossy(&sum.prefix);
        writeln!(
            out,
            "{file}: no transaction reads {} keys that begin with `{prefix}`, so their sum is not \
             judged",
            sum.count
        )?;
        return Ok(UNREADABLE);
    }
    let verdict = checker.check(command.level, &command.options);
    write!(out, "{verdict}")?;
    if let Some(dot) = &command.dot
        && let Err(error) = draw(&verdict, dot)
    {
        writeln!(out, "{}: cannot write: {error}", dot.display())?;
        return Ok(UNREADABLE);
    }
    Ok(match (verdict.is_broken(), verdict.holds()) {
        (true, _) => BROKEN,
        (false, true) => HOLDS,
        (false, false) => UNDECIDED,
    })
}

fn open(command: &CheckCommand) -> Result<History, String> {
    let kind = command.append.then_some(Kind::Append);
    let input: Box<dyn BufRead> = if command.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&command.file).map_err(|error| format!("cannot open: {error}"))?;
        Box::new(BufReader::with_capacity(1 << 16, file))
    };
    History::read_as(input, kind).map_err(|error| error.to_string())
}

fn draw(verdict: &Verdict, path: &Path) -> io::Result<()> {
    match verdict.to_dot() {
        Some(dot) => std::fs::write(path, dot),
        None => Ok(()),
    }
}
