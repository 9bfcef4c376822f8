//! `muesli partition`: what is derived of planned procedures, where data are to be placed, and
//! partitions of servers that run, which move to where they should be.

mod draw;
mod explain;
pub mod online;
mod source;
mod suggest;

use std::io::{stdin, stdout};

use clap::{ArgMatches, Command};
use muesli_placement::units::child;

use source::CHILD;
pub use source::terms as placing_terms;

/// The command's options.
pub fn command() -> Command {
    let child = Command::new(CHILD).hide(true).about("Read a graph, place its units by METIS");
    Command::new("partition")
        .about(
            "Explain planned procedures; suggest where data are to be placed, and move them there",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(explain::command())
        .subcommand(suggest::command())
        .subcommand(draw::command())
        .subcommand(online::apply::command())
        .subcommand(online::watch::command())
        .subcommand(child)
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    match matches.subcommand() {
        Some(("explain", matches)) => explain::run(matches),
        Some(("suggest", matches)) => suggest::run(matches),
        Some(("draw", matches)) => draw::run(matches),
        Some(("apply", matches)) => online::apply::run(matches),
        Some(("watch", matches)) => online::watch::run(matches),
        Some((CHILD, _)) => {
            child::serve(&mut stdin().lock(), &mut stdout().lock())?;
            Ok(0)
        }
        _ => unreachable!("every subcommand is listed here"),
    }
}
