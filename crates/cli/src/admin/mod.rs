//! `muesli admin`: where the members of groups and the partitions live, and how they are moved.

pub mod change;
mod members;
mod partitions;
mod status;
mod survey;

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use muesli_core::{NodeId, RepositoryId};
use muesli_group::layout;
use muesli_group::placement::Row;

use crate::names;
use crate::reach;
use crate::table;
pub use change::Admin;
pub use members::wait_for_majorities;
use survey::Survey;

const AFTER: &str = "\
A repository is kept by a group of members, each on a node of its own. A group has 9 places for \
members, and members are counted through with them: group 0 has the members 0 to 8, group 1 the \
members 9 to 17, as far as they are there. One member of a group moves at a \
time, and every other member of the group must take part. A node that is lost for good is drained \
in the same way: its members begin elsewhere, with what the others know.

`grow` gives a group one more member, which learns everything before it counts; `shrink` takes one \
away, alive or lost. Both need a majority of the group that is to be, and the group works on. Of 3 \
members 1 may be lost, of 5 members 2; an even number is no safer than the odd one below it. A \
group keeps at least 2 members. `group = 1` is no group, and cannot grow.

`partitions` and `move-partition` need a protocol that moves partitions (`granola` and its kin); \
repositories are groups there, by their numbers, where there are groups.

Where the cluster has a secret, all commands but `members`, `status` and `partitions` need it \
(`--secret-file`): servers take changes from nobody who does not prove that he knows it.

Where servers run several loops, each loop is a node of its own for `members`, `placement`, \
`move`, `grow` and `shrink`: loop L of server S is node S times loops plus L. `drain`, `join` and \
`leave` take a server as a whole, by the number that its key `node` has. No two members of a group \
live on one server.";

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
        .value_parser(names::protocols())
        .hide_possible_values(true)
        .help("The protocol of the cluster");
    let member = || Arg::new("member").required(true).value_parser(value_parser!(u16));
    let node = || Arg::new("node").required(true).value_parser(value_parser!(u32));
    let server = |help: &'static str| node().value_name("SERVER").help(help);
    let group = || {
        let group = Arg::new("group").required(true).value_parser(value_parser!(u16));
        group.help("Which group, from 0")
    };
    let address = Arg::new("address").required(true).value_name("HOST:PORT");
    Command::new("admin")
        .about("Look after a cluster: members of groups, servers, partitions")
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(connect)
        .arg(protocol)
        .arg(secret())
        .subcommand(
            Command::new("members")
                .about("Say which part each member takes, and whether each group has a majority"),
        )
        .subcommand(Command::new("status").about("Say all numbers that the servers count"))
        .subcommand(Command::new("placement").about("Say where each member is to live"))
        .subcommand(
            Command::new("move")
                .about("Move a member to another node")
                .arg(member().help("Which member, counted through all groups"))
                .arg(node().help("Where to")),
        )
        .subcommand(
            Command::new("drain")
                .about("Move all members off a server, alive or lost, to the others")
                .arg(server("Which server")),
        )
        .subcommand(
            Command::new("grow")
                .about("Give a group one more member, on another node, while it works")
                .arg(group())
                .arg(node().help("Where the new member is to live")),
        )
        .subcommand(
            Command::new("shrink")
                .about("Take a member, alive or lost, from its group, while that works")
                .arg(group())
                .arg(node().help("Where the member lives that is to go")),
        )
        .subcommands(partitions::commands())
        .subcommand(
            Command::new("leave")
                .about("Take a server that holds no members off the list, for good")
                .arg(server("Which server; its number is not used again")),
        )
        .subcommand(
            Command::new("join")
                .about("Let a new server come in, which is started with --join")
                .arg(server("Its number, the next one that is free"))
                .arg(address.help("Where the others reach it")),
        )
}

fn secret() -> Arg {
    Arg::new("secret-file")
        .long("secret-file")
        .value_name("FILE")
        .global(true)
        .value_parser(value_parser!(PathBuf))
        .help("The file of the cluster's secret, as the servers have it [env: MUESLI_SECRET_FILE]")
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let (name, matches) = matches.subcommand().expect("a subcommand is required");
    let text = |name: &str| matches.get_one::<String>(name).expect("it has a value").clone();
    let addresses = reach::addresses(&text("connect"));
    let server = || *matches.get_one::<u32>("node").expect("it is required");
    let member = || RepositoryId(*matches.get_one::<u16>("member").expect("it is required"));
    let group = || *matches.get_one::<u16>("group").expect("it is required");
    let part = |name: &str| matches.get_one::<u16>(name).copied();
    let secret =
        crate::options::secret(matches.get_one::<PathBuf>("secret-file").map(PathBuf::as_path))?;
    let said = match name {
        "partitions" => partitions::list(addresses, &text("protocol"), secret)?,
        "move-partition" => {
            let partition = part("partition").expect("it is required");
            let way = (part("from"), part("repository").expect("it is required"));
            partitions::relocate(addresses, (&text("protocol"), secret), partition, way)?
        }
        "members" => {
            let (table, broken) = members::members(&Survey::of(&addresses, None)?);
            say(&table);
            return Ok(complain(&broken));
        }
        "status" => status::status(&addresses)?,
        _ => {
            let admin = Admin::connect(addresses, &text("protocol"), secret)?;
            match name {
                "placement" => placement(&admin.row()?),
                "move" => admin.move_member(member(), NodeId(server()))?,
                "grow" => admin.grow(group(), NodeId(server()))?,
                "shrink" => admin.shrink(group(), NodeId(server()))?,
                "drain" => drain(&admin, server())?,
                "join" => admin.join(server(), &text("address"))?,
                "leave" => admin.leave(server())?,
                _ => unreachable!("every subcommand is listed here"),
            }
        }
    };
    say(&said);
    Ok(0)
}

/// Says what does not hold; the status to end with.
fn complain(broken: &[String]) -> u8 {
    for line in broken {
        let _ = writeln!(stderr(), "muesli: {line}"); // A reader that has gone away is no matter.
    }
    u8::from(!broken.is_empty())
}

fn say(text: &str) {
    let _ = writeln!(stdout(), "{text}"); // A reader that has gone away is no matter.
}

fn placement(row: &Row) -> String {
    let header = ["member", "group", "place", "node", "since", ""];
    let mut table = table::new(header.map(str::to_owned).to_vec());
    for (member, (home, since)) in (0..).map(RepositoryId).zip(&row.homes) {
        if *home == NodeId::NOWHERE {
            continue;
        }
        let (group, place) = layout::place(member);
        let numbers = [u64::from(member.0), group.into(), place.into(), home.0.into(), *since];
        let going = if row.leaving.contains(&member) { "to go" } else { "" };
        let numbers = numbers.into_iter().map(|number| number.to_string());
        table.add_row(numbers.chain([going.to_owned()]));
    }
    format!("epoch {}\n{table}", row.epoch)
}

/// Moves all members off a server, one after the other.
fn drain(admin: &Admin, server: u32) -> anyhow::Result<String> {
    let mut moved = 0;
    while let Some(said) = admin.drain_one(server)? {
        say(&said);
        moved += 1;
    }
    Ok(format!("server {server} holds no members any more; {moved} were moved"))
}
