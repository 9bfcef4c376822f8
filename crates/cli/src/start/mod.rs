//! `muesli start`: serves, until SIGTERM or SIGINT; SIGHUP is ignored.

mod announce;
mod follow;
mod metrics;
mod redis;

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use muesli::server::{self, ServerOptions};
use muesli_workloads::available;

use crate::config::{Config, keys};
use announce::announce;
use metrics::{MetricsListener, MetricsSource};

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
        let arg = Arg::new(key.name)
            .long(key.option())
            .value_name(key.value)
            .help(format!("{} [default: {default}]", key.help));
        command.arg(match key.value {
            "true|false" => arg.num_args(0..=1).default_missing_value("true"),
            _ => arg,
        })
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
    let notice = |line: &str| drop(writeln!(stdout(), "{line}"));
    let mut config = Config { server: ServerOptions { notice, ..config.server }, ..config };
    config.server.settings.procedures = available::procedures();
    let metrics = match &*config.metrics {
        "" => None,
        address => Some(MetricsListener::bind(address)?),
    };
    match config.resp.is_empty() {
        true => serve(&config, metrics)?,
        false => redis::serve(&config, metrics)?,
    }
    let _ = writeln!(stdout(), "server {} stopped", config.server.node.0);
    Ok(0)
}

fn serve(config: &Config, metrics: Option<MetricsListener>) -> anyhow::Result<()> {
    let (node, loops) = (config.server.node.0, config.loops);
    server::serve(&config.server, loops, |address| {
        announce(&format!("server {node} listens on {address}; {}", config.data()));
        let address = address.to_string();
        if let Err(error) = follow::serve(config, &address) {
            announce(&format!("partitions do not follow their use: {error:#}"));
        }
        metrics::serve(metrics, vec![MetricsSource::Native { address, loops }]);
    })?;
    Ok(())
}
