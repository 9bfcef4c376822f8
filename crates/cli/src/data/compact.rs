//! `muesli compact`: the files of a database, as short as they can be.

use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli::{Compacted, Db};

use super::folders::stored;

const AFTER: &str = "\
It takes a checkpoint, and removes what that covers: older checkpoints, and files of the log. A \
running database does it by itself now and then, and keeps one more checkpoint. Meanwhile the \
folder takes as much more as all data take. A program does it while it runs with `Db::compact`.";

#[derive(Args, Clone, Debug)]
struct CompactOptions {
    /// The folder of an embedded database, or the `data_dir` of a lone server that has stopped
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// The command's options.
pub fn command() -> Command {
    let about = "Make the files of a database that nobody has open as short as they can be";
    CompactOptions::augment_args(Command::new("compact").about(about).after_help(AFTER))
}

/// Runs the command.
///
/// # Errors
/// The database cannot be opened, or not be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = CompactOptions::from_arg_matches(matches)?;
    let db = Db::open(stored(&options.folder, false)?)?;
    let Compacted { before, after } = db.compact()?;
    db.close();
    // A reader that has gone away is no matter.
    let _ = writeln!(stdout(), "{before} bytes before, {after} bytes after");
    Ok(0)
}
