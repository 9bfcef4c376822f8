//! `muesli import`: a file into a database.

use std::io::{BufReader, stdin};

use anyhow::bail;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli::transfer::{Import, Imported};

use super::chosen::ChosenDatabase;
use super::progress::{ProgressLine, note};
use super::redis;

const AFTER: &str = "\
The export comes from standard input, whichever its format. Spaces are made where they are not \
there, and so is a FOLDER without a database. An import is not one transaction: rows are there \
about a mebibyte at a time, each of which is known to be whole; one that ends early says how many \
rows are there, and can be run again from the start. A row that is there with the same value is no \
matter; with another one it ends the import, unless rows are to be written over. \
`muesli import redis` takes data of Redis instead; a FOLDER of that name is `./redis`.

Examples:
  muesli import data < data.jsonl
  muesli import --connect 127.0.0.1:7400 --overwrite < notes.muesli
  muesli import redis dump.rdb --db data";

#[derive(Args, Clone, Debug)]
struct ImportOptions {
    #[command(flatten)]
    target: ChosenDatabase,
    /// Write over rows that are there with other values
    #[arg(long)]
    overwrite: bool,
    /// How many repositories a database has that is made by this
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "connect")]
    repositories: usize,
}

/// The command's options.
pub fn command() -> Command {
    let command = ImportOptions::augment_args(Command::new("import").after_help(AFTER));
    let command = command.about("Take an export, or data of Redis, into a database");
    // The options above are those of an export, and those of Redis stand below `redis`.
    command.subcommand(redis::command()).args_conflicts_with_subcommands(true)
}

/// Runs the command.
///
/// # Errors
/// The database cannot be opened or written, or the export cannot be taken to its end.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    if let Some((_, matches)) = matches.subcommand() {
        return redis::run(matches);
    }
    let options = ImportOptions::from_arg_matches(matches)?;
    let folder = options.target.place.folder.as_ref().map(|it| it.to_string_lossy());
    if folder.is_some_and(|it| it.contains("://")) {
        // Nothing of it is shown, as it may have a password.
        bail!("for the data of a Redis, give `muesli import redis redis://… --db FOLDER`");
    }
    let db = options.target.open_to_write(options.repositories)?;
    let mut line = ProgressLine::new("imported");
    let (import, input) = (Import { overwrite: options.overwrite }, stdin().lock());
    let input = BufReader::with_capacity(1 << 20, input);
    let imported = db.blocking().import(&import, input, |progress| line.show(progress));
    let took = line.end();
    let Imported { made, differ, rows, same } = imported?;
    if !made.is_empty() {
        note(&format!("made the spaces {}", made.join(", ")));
    }
    if !differ.is_empty() {
        note(&format!("spaces that have other options here, and keep them: {}", differ.join(", ")));
    }
    note(&format!("imported {rows} rows, of which {same} were there before, in {took:.1?}"));
    db.close();
    Ok(0)
}
