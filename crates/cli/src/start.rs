//! `muesli start`: serves, until SIGTERM or SIGINT; SIGHUP is ignored.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::{Arg, ArgMatches, Command, value_parser};
use muesli_cluster::{Durability, Failed, Process, ServerOptions};
use muesli_workloads::available;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::config::{Config, KEYS};

const AFTER: &str = "\
Each option is also a key of the file (`key = value`, with underscores) and a variable of the \
environment (MUESLI_KEY); options come before the environment, and that before the file.";

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("start")
        .about("Serve: alone, or as one of a cluster's servers")
        .after_help(AFTER)
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("A file of keys, in TOML"),
        );
    KEYS.iter().fold(command, |command, key| {
        let default = if key.default.is_empty() { "none" } else { key.default };
        command.arg(
            Arg::new(key.name)
                .long(key.option())
                .value_name(key.value)
                .help(format!("{} [default: {default}]", key.help)),
        )
    })
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out, or the server cannot go on.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let given = |key: &'static str| Some((key, matches.get_one::<String>(key)?.clone()));
    let options: BTreeMap<_, _> = KEYS.iter().filter_map(|key| given(key.name)).collect();
    let file = matches.get_one::<PathBuf>("config");
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    Config::check_variables(names)?;
    let variable = |name: &str| std::env::var(name).ok();
    let config = Config::read(file.map(PathBuf::as_path), variable, &options)?;
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot wait for signals")?;
    // A file that may not grow is an error to be told, not the end of the process; and a terminal
    // that goes away is no matter.
    for ignored in [SIGXFSZ, SIGHUP] {
        signal_hook::flag::register(ignored, Arc::default()).context("cannot wait for signals")?;
    }
    let node = config.server.node.0;
    let data = match &config.server.durability {
        Durability::Memory => "data live in memory only and end with this process".to_owned(),
        Durability::Log(dir) => format!("data are in {}", dir.display()),
    };
    let notice = |line: &str| drop(writeln!(stdout(), "{line}"));
    let mut options = ServerOptions { notice, ..config.server };
    options.settings.procedures = available::procedures();
    let server = Process::open(&options, config.loops)?;
    let stop = server.stop();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stop.stop();
        }
    });
    // Whoever started this may read the address; that it has gone away is no matter.
    let mut out = stdout();
    let _ = writeln!(out, "server {node} listens on {}; {data}", server.address());
    let _ = out.flush();
    match server.run() {
        Err(Failed::Restart) => return Err(begin_again()),
        ended => ended?,
    }
    let _ = writeln!(out, "server {node} stopped");
    Ok(0)
}

/// Runs this very command again in this process's place, from what is on the disk. Returns only
/// where that cannot be done.
fn begin_again() -> anyhow::Error {
    let _ = writeln!(stdout(), "a member of a group goes by what its disk holds: starting again");
    let this = match std::env::current_exe() {
        Ok(this) => this,
        Err(error) => return error.into(),
    };
    let error = std::process::Command::new(this).args(std::env::args_os().skip(1)).exec();
    anyhow::Error::new(error).context("cannot start again")
}
