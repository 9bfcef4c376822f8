//! `muesli shell`: a prompt on a database.

mod calls;
mod explain;
mod help;
mod interrupt;
mod prompt;
mod running;
mod session;
mod tokens;
mod values;
mod watch;

use std::io::{BufRead, IsTerminal, stdin};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli::{Connect, Db, Durable, Options};
use muesli_workloads::available;
use muesli_workloads::history::by_versions;
use serde_json::Map;

use crate::bench::write_history;
use crate::data::folders::stored_or_new;
use crate::data::progress::note;
use crate::names;
use crate::reach;
use running::run_line;
use session::ShellSession;

const AFTER: &str = "\
Without --open and --connect it is an empty database in memory. Commands come from -c, or from \
standard input where that is no terminal, and end with the first one that cannot be carried out; \
else there is a prompt, with completion by the tabulator and a history in `~/.muesli_history`. \
`help` lists the commands.

Examples:
  muesli shell --open data
  muesli shell --connect 127.0.0.1:7400
  muesli shell --open data -c 'use notes; put a \"two words\"; scan' -c count
  echo 'scan prefix user: limit 10' | muesli shell --open data --space users --json";

#[derive(Args, Clone, Debug)]
struct ShellOptions {
    /// Open the database in a folder, which is made if it is not there
    #[arg(long, value_name = "FOLDER", conflicts_with = "connect")]
    open: Option<PathBuf>,
    /// Change nothing of the folder; others may read it meanwhile
    #[arg(long, requires = "open")]
    read_only: bool,
    /// Servers that run, with commas between
    #[arg(long, value_name = "ADDRESS")]
    connect: Option<String>,
    /// The protocol of the servers, or of a database that is made
    #[arg(long, value_name = "NAME", default_value = "score", value_parser = names::protocols())]
    protocol: String,
    /// The file of the cluster's secret, where its servers ask clients for it
    #[arg(long, value_name = "FILE", requires = "connect")]
    secret_file: Option<PathBuf>,
    /// The space that commands are about
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// Carry out these commands, with `;` between, and end; may be given several times
    #[arg(short, long, value_name = "COMMANDS")]
    command: Vec<String>,
    /// Answer with a JSON object a line
    #[arg(long)]
    json: bool,
    /// Record what transactions do, and write it to a file that `muesli check` reads
    #[arg(long, value_name = "FILE")]
    histories: Option<PathBuf>,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("shell").about("A prompt on a database").after_help(AFTER);
    ShellOptions::augment_args(command)
}

/// Runs the command.
///
/// # Errors
/// The database cannot be opened, or a command that no person types cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = ShellOptions::from_arg_matches(matches)?;
    let (db, protocol) = open(&options)?;
    let addresses = options.connect.as_deref().map(reach::addresses).unwrap_or_default();
    let mut session = ShellSession::new(db.clone(), addresses, protocol, options.json);
    session.histories = options.histories.as_ref().map(|path| path.display().to_string());
    if let Some(name) = &options.space {
        session.space = Some((name.clone(), db.space(name)?));
    }
    let done = carry_out(&options, &mut session);
    if session.end() {
        note("what was not committed was given up");
    }
    let catalog = db.catalog();
    let reports = db.close();
    if let Some(path) = &options.histories {
        let history = by_versions(&reports, &catalog, Map::new());
        write_history(&history.context("what was recorded is no history")?, path)?;
    }
    done.map(|()| 0)
}

/// Carries out what was given, or what comes.
fn carry_out(options: &ShellOptions, session: &mut ShellSession) -> anyhow::Result<()> {
    for line in &options.command {
        if !run_line(session, line)? {
            return Ok(());
        }
    }
    if !options.command.is_empty() {
        return Ok(());
    }
    if stdin().is_terminal() {
        return prompt::run(session);
    }
    for (number, line) in stdin().lock().lines().enumerate() {
        let line = line.context("standard input cannot be read")?;
        let more = run_line(session, &line);
        if !more.with_context(|| format!("line {}", number + 1))? {
            return Ok(());
        }
    }
    Ok(())
}

/// The database, and its protocol.
fn open(options: &ShellOptions) -> anyhow::Result<(Db, String)> {
    let (protocol, history) = (options.protocol.clone(), options.histories.is_some());
    let procedures = available::procedures();
    if let Some(addresses) = &options.connect {
        let addresses = reach::addresses(addresses);
        reach::first(&addresses)?;
        let secret = crate::options::secret(options.secret_file.as_deref())?;
        let connect = Connect {
            addresses,
            protocol: protocol.clone(),
            secret,
            procedures,
            history,
            ..Connect::default()
        };
        return Ok((Db::connect_with(connect)?, protocol));
    }
    let new = Options { protocol, procedures, ..Options::default() };
    let stored = match &options.open {
        None => new,
        Some(folder) => stored_or_new(folder, new, options.read_only)?,
    };
    let stored = Options { history, ..stored };
    if options.read_only && !stored.durable.as_ref().is_some_and(|it: &Durable| it.read_only) {
        bail!("there is nothing to be read");
    }
    let protocol = stored.protocol.clone();
    Ok((Db::open(stored)?, protocol))
}
