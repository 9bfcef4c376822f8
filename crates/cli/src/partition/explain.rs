//! What is derived of a plan: its class and why, its steps and where they are, and its refusals.

use std::io::{Write, stdout};

use anyhow::anyhow;
use clap::{Arg, ArgAction, ArgMatches, Command};
use muesli_workloads::planned::{find, plans};

use crate::names::{nearest, question};

/// The command's options.
pub fn command() -> Command {
    let procedure = Arg::new("procedure").required(true).value_name("PROCEDURE");
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    Command::new("explain")
        .about("Say what is derived of a planned procedure: class, places, refusals")
        .after_help(after_help())
        .arg(procedure.help("The name of a procedure that is a plan"))
        .arg(json.help("As JSON"))
}

fn after_help() -> String {
    let mut text = "Procedures that are plans, by the workloads that call them:".to_owned();
    let mut workload = "";
    for plan in plans() {
        if plan.workload != workload {
            workload = plan.workload;
            text += &format!("\n  {workload}");
        }
        text += &format!("\n    {}", plan.name);
    }
    text
}

/// Runs the command.
///
/// # Errors
/// There is no such plan.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let name = matches.get_one::<String>("procedure").expect("it is required");
    let plan = find(name).map_err(|error| {
        let meant = nearest(name, plans().map(|plan| plan.name));
        anyhow!("{error}{}", question(meant))
    })?;
    let explanation = plan.explanation();
    let text = match matches.get_flag("json") {
        true => serde_json::to_string_pretty(&explanation)? + "\n",
        false => explanation.to_string(),
    };
    let _ = write!(stdout(), "{text}"); // A reader that has gone away is no matter.
    Ok(0)
}
