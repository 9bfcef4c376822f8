//! `muesli export`: a database as a file.

use std::io::{BufWriter, stdout};

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use muesli::transfer::{Export, ExportConsistency, ExportFormat, Exported};

use super::chosen::ChosenDatabase;
use super::progress::{ProgressLine, note};

const AFTER: &str = "\
The export goes to standard output, and says at its end how many rows it has, with a checksum: one \
without that end is none. What is in a folder is read without changing it, and nobody can write \
to it meanwhile. Of servers that run, an export shows one moment, as one transaction that only \
reads sees it; `docs/using/export.md` says what that is under each protocol.

Examples:
  muesli export data > data.jsonl
  muesli export --connect 127.0.0.1:7400 --space notes --format binary > notes.muesli
  muesli import other < data.jsonl";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// A JSON object a line
    Jsonl,
    /// Blocks of bytes: shorter and faster
    Binary,
}

#[derive(Args, Clone, Debug)]
struct ExportOptions {
    #[command(flatten)]
    target: ChosenDatabase,
    /// Only this space; may be given several times
    #[arg(long, value_name = "NAME")]
    space: Vec<String>,
    /// How it is written
    #[arg(long, value_enum, default_value = "jsonl")]
    format: FormatName,
    /// A transaction for each piece: each is of one moment, and the next one of a later one
    #[arg(long)]
    pieces: bool,
}

/// The command's options.
pub fn command() -> Command {
    // After the options: where these are in parts, the first sentence of a part is taken otherwise.
    let command = ExportOptions::augment_args(Command::new("export").after_help(AFTER));
    command.about("Write a database, or spaces of it, to a file")
}

/// Runs the command.
///
/// # Errors
/// The database cannot be read, or the file cannot be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = ExportOptions::from_arg_matches(matches)?;
    let db = options.target.open_to_read()?;
    let export = Export {
        spaces: (!options.space.is_empty()).then_some(options.space),
        format: match options.format {
            FormatName::Jsonl => ExportFormat::JsonLines,
            FormatName::Binary => ExportFormat::Binary,
        },
        consistency: match options.pieces {
            true => ExportConsistency::Pieces,
            false => ExportConsistency::Snapshot,
        },
    };
    let mut line = ProgressLine::new("exported");
    let out = BufWriter::with_capacity(1 << 20, stdout().lock());
    let exported = db.blocking().export(&export, out, |progress| line.show(progress));
    let took = line.end();
    let Exported { spaces, rows, bytes } = exported?;
    note(&format!("exported {rows} rows of {spaces} spaces, {bytes} bytes, in {took:.1?}"));
    db.close();
    Ok(0)
}
