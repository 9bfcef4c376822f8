//! `muesli start`: serves, until SIGTERM or SIGINT; SIGHUP is ignored.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use muesli::server::{self, Durability, ServerOptions};
use muesli_workloads::available;

use crate::config::{Config, keys};

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
    keys::all().fold(command, |command, key| {
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
    let options: BTreeMap<_, _> = keys::all().filter_map(|key| given(key.name)).collect();
    let file = matches.get_one::<PathBuf>("config");
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    Config::check_variables(names)?;
    let variable = |name: &str| std::env::var(name).ok();
    let config = Config::read(file.map(PathBuf::as_path), variable, &options)?;
    let node = config.server.node.0;
    let data = match &config.server.durability {
        Durability::Memory => "data live in memory only and end with this process".to_owned(),
        Durability::Log(dir) => format!("data are in {}", dir.display()),
    };
    let notice = |line: &str| drop(writeln!(stdout(), "{line}"));
    let mut options = ServerOptions { notice, ..config.server };
    options.settings.procedures = available::procedures();
    server::serve(&options, config.loops, |address| {
        // Whoever started this may read the address; that it has gone away is no matter.
        let mut out = stdout();
        let _ = writeln!(out, "server {node} listens on {address}; {data}");
        let _ = out.flush();
    })?;
    let _ = writeln!(stdout(), "server {node} stopped");
    Ok(0)
}
