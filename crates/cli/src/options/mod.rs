//! Options that several commands share, and what they say about workloads.

pub mod tree;

use std::fmt::Write as _;
use std::path::Path;

use clap::{ArgMatches, Args, Command};
use muesli_core::Secret;
use muesli_workloads::available::{Description, WORKLOADS};

/// The variable that names the file of a cluster's secret, for clients and administrators as for
/// servers.
const SECRET_VARIABLE: &str = "MUESLI_SECRET_FILE";

/// The secret of the file that was given, or else of the one that the environment names.
///
/// # Errors
/// There is such a file, and it holds no secret.
pub fn secret(given: Option<&Path>) -> anyhow::Result<Option<Secret>> {
    let named = std::env::var_os(SECRET_VARIABLE);
    let path = given.or(named.as_deref().map(Path::new));
    Ok(path.map(muesli_cluster::read_secret).transpose()?)
}

/// One subcommand per workload, each with the options of `A` and the workload's parameters in
/// its help.
pub fn workload_commands<A: Args>(command: Command) -> Command {
    let command = command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand_help_heading("Workloads")
        .subcommand_value_name("WORKLOAD");
    WORKLOADS.iter().fold(command, |command, workload| {
        let one = Command::new(workload.name)
            .about(workload.about)
            .after_help(parameters(workload))
            .after_long_help(parameters(workload));
        command.subcommand(A::augment_args(one))
    })
}

/// The workload that was asked for, and its options.
pub fn chosen(matches: &ArgMatches) -> (&'static Description, &ArgMatches) {
    let (name, matches) = matches.subcommand().expect("a workload is required");
    let found = WORKLOADS.iter().find(|workload| workload.name == name);
    (found.expect("the subcommands are the workloads"), matches)
}

fn parameters(workload: &Description) -> String {
    let mut text = "Parameters (--param name=value):\n".to_owned();
    for parameter in workload.parameters {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {}={}\n          {} Takes {}.",
            parameter.name, parameter.default, parameter.help, parameter.kind
        );
    }
    text
}
