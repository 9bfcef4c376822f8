//! `muesli admin`: where the members of groups live, and how they are moved.

mod change;
mod survey;

use std::io::{Write, stdout};

use anyhow::{Context, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use muesli_core::{NodeId, RepositoryId};
use muesli_group::layout;
use muesli_group::placement::Row;

use crate::table;
pub use change::Admin;
use survey::Survey;

const AFTER: &str = "\
A repository is kept by a group of members, each on a node of its own. Members are counted \
through: with groups of 3, group 0 has the members 0, 1 and 2. One member of a group moves at a \
time, and every other member of the group must take part. A node that is lost for good is drained \
in the same way: its members begin elsewhere, with what the others know.";

/// The command's options.
pub fn command() -> Command {
    let connect = Arg::new("connect")
        .long("connect")
        .value_name("HOST:PORT,…")
        .global(true)
        .default_value("127.0.0.1:7400")
        .help("Addresses of servers; one that answers is enough");
    let protocol = Arg::new("protocol")
        .long("protocol")
        .value_name("NAME")
        .global(true)
        .default_value("score")
        .help("The protocol of the cluster");
    let member = || Arg::new("member").required(true).value_parser(value_parser!(u16));
    let node = || Arg::new("node").required(true).value_parser(value_parser!(u32));
    let address = Arg::new("address").required(true).value_name("HOST:PORT");
    Command::new("admin")
        .about("Look after a cluster of groups")
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(connect)
        .arg(protocol)
        .subcommand(Command::new("members").about("Say which part each member takes"))
        .subcommand(Command::new("placement").about("Say where each member is to live"))
        .subcommand(
            Command::new("move")
                .about("Move a member to another node")
                .arg(member().help("Which member, counted through all groups"))
                .arg(node().help("Where to")),
        )
        .subcommand(
            Command::new("drain")
                .about("Move all members off a node, alive or lost, to the others")
                .arg(node().help("Which node")),
        )
        .subcommand(
            Command::new("join")
                .about("Let a new server come in, which is started with --join")
                .arg(node().help("Its number, the next one that is free"))
                .arg(address.help("Where the others reach it")),
        )
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let (name, matches) = matches.subcommand().expect("a subcommand is required");
    let text = |name: &str| matches.get_one::<String>(name).expect("it has a value").clone();
    let addresses: Vec<_> = text("connect").split(',').map(str::to_owned).collect();
    let node = || NodeId(*matches.get_one::<u32>("node").expect("it is required"));
    let member = || RepositoryId(*matches.get_one::<u16>("member").expect("it is required"));
    let said = match name {
        "members" => members(&Survey::of(&addresses)?),
        _ => {
            let admin = Admin::connect(addresses, &text("protocol"))?;
            match name {
                "placement" => placement(&admin.row()?, &admin.survey()?),
                "move" => admin.move_member(member(), node())?,
                "drain" => drain(&admin, node())?,
                "join" => admin.join(node(), &text("address"))?,
                _ => unreachable!("every subcommand is listed here"),
            }
        }
    };
    say(&said);
    Ok(0)
}

fn say(text: &str) {
    let _ = writeln!(stdout(), "{text}"); // A reader that has gone away is no matter.
}

fn members(survey: &Survey) -> String {
    let header = ["member", "group", "place", "node", "part", "placement"];
    let mut table = table::new(header.map(str::to_owned).to_vec());
    for server in &survey.servers {
        let Some((placement, posts)) = &server.answer else {
            let row = ["-", "-", "-", &server.node.0.to_string(), "does not answer", "-"];
            table.add_row(row.map(str::to_owned));
            continue;
        };
        for (member, post) in posts {
            let (group, place) = layout::place(*member, survey.group);
            let numbers = [u32::from(member.0), u32::from(group), u32::from(place), server.node.0];
            let part = format!("{post:?}").to_lowercase();
            let row = numbers.map(|number| number.to_string()).into_iter();
            table.add_row(row.chain([part, placement.to_string()]));
        }
    }
    table.to_string()
}

fn placement(row: &Row, survey: &Survey) -> String {
    let header = ["member", "group", "place", "node", "since"];
    let mut table = table::new(header.map(str::to_owned).to_vec());
    for (member, (home, since)) in (0..).map(RepositoryId).zip(&row.homes) {
        let (group, place) = layout::place(member, survey.group);
        let numbers = [u64::from(member.0), group.into(), place.into(), home.0.into(), *since];
        table.add_row(numbers.map(|number| number.to_string()));
    }
    format!("epoch {}\n{table}", row.epoch)
}

/// Moves all members off a node, one after the other.
fn drain(admin: &Admin, node: NodeId) -> anyhow::Result<String> {
    let mut moved = 0;
    loop {
        let (row, survey) = (admin.row()?, admin.survey()?);
        let here = row.homes.iter().position(|(home, _)| *home == node);
        let Some(member) = here.map(|at| RepositoryId(at as u16)) else { break };
        let to = target(&row, &survey, member, node)
            .with_context(|| format!("member {} finds no other node", member.0))?;
        say(&admin.move_member(member, to)?);
        moved += 1;
    }
    if !admin.survey()?.servers.iter().any(|server| server.node == node) {
        bail!("there is no node {}", node.0);
    }
    Ok(format!("node {} holds no members any more; {moved} were moved", node.0))
}

/// The node with the fewest members that answers and holds none of a member's group.
fn target(row: &Row, survey: &Survey, member: RepositoryId, from: NodeId) -> Option<NodeId> {
    let others: Vec<_> =
        row.others(member, survey.group).filter_map(|other| row.home(other).ok()).collect();
    let up = survey.servers.iter().filter(|server| server.answer.is_some());
    let free = up.map(|server| server.node).filter(|it| *it != from && !others.contains(it));
    free.min_by_key(|node| row.homes.iter().filter(|(home, _)| home == node).count())
}
