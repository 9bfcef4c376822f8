//! The options of `muesli admin`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, value_parser};

use super::partitions;
use crate::names;
use crate::options::tree;

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

Where the cluster has a secret, all commands but `members`, `status`, `tree` and `partitions` need \
it (`--secret-file`): servers take changes from nobody who does not prove that he knows it.

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
    Command::new("admin")
        .about("Look after a cluster: members of groups, servers, partitions")
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(connect)
        .arg(protocol)
        .arg(secret())
        .subcommands(questions())
        .subcommands(changes())
        .subcommand(tree_command())
        .subcommands(partitions::commands())
}

fn secret() -> Arg {
    Arg::new("secret-file")
        .long("secret-file")
        .value_name("FILE")
        .global(true)
        .value_parser(value_parser!(PathBuf))
        .help("The file of the cluster's secret, as the servers have it [env: MUESLI_SECRET_FILE]")
}

/// What is asked and changes nothing.
fn questions() -> [Command; 3] {
    [
        Command::new("members")
            .about("Say which part each member takes, and whether each group has a majority"),
        Command::new("status")
            .about("Say all numbers that the servers count")
            .arg(
                Arg::new("watch")
                    .long("watch")
                    .value_name("SECONDS")
                    .num_args(0..=1)
                    .default_missing_value("2")
                    .value_parser(value_parser!(f64))
                    .help("Again and again after so long, with changes a second [default: 2]"),
            )
            .arg(
                Arg::new("times")
                    .long("times")
                    .value_name("N")
                    .requires("watch")
                    .value_parser(value_parser!(u64).range(1..))
                    .help("So many times, and not for ever"),
            ),
        Command::new("placement").about("Say where each member is to live"),
    ]
}

/// The tree of validators: shown, and changed.
fn tree_command() -> Command {
    let seconds = Arg::new("seconds").long("seconds").value_name("S").default_value("1");
    let seconds = seconds.value_parser(value_parser!(f64));
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    let text = Arg::new("tree").required(true).value_name("SHAPE|FILE|none");
    let validators = Arg::new("validators").long("validators").value_name("N").default_value("1");
    let validators = validators.value_parser(value_parser!(u16).range(1..=64));
    let on = Arg::new("on").long("on").value_name("NODE,…").value_delimiter(',');
    let on = on.value_parser(tree::node);
    let set = Command::new("set")
        .about("Give the cluster another tree, while it works")
        .arg(text.help("How many children the inner nodes of each level have, or a file"))
        .arg(validators.help("How many validators each inner node has"))
        .arg(on.help("Where they live, in turn [default: beside the data]"));
    Command::new("tree")
        .about("Draw the tree of validators, with what each of them does")
        .arg(seconds.help("For how long they are looked at"))
        .arg(json.help("As JSON"))
        .subcommand(set)
}

/// What moves members, and lets servers come and go.
fn changes() -> [Command; 6] {
    let member = || Arg::new("member").required(true).value_parser(value_parser!(u16));
    let node = || Arg::new("node").required(true).value_parser(value_parser!(u32));
    let server = |help: &'static str| node().value_name("SERVER").help(help);
    let group = || {
        let group = Arg::new("group").required(true).value_parser(value_parser!(u16));
        group.help("Which group, from 0")
    };
    let address = Arg::new("address").required(true).value_name("HOST:PORT");
    [
        Command::new("move")
            .about("Move a member to another node")
            .arg(member().help("Which member, counted through all groups"))
            .arg(node().help("Where to")),
        Command::new("drain")
            .about("Move all members off a server, alive or lost, to the others")
            .arg(server("Which server")),
        Command::new("grow")
            .about("Give a group one more member, on another node, while it works")
            .arg(group())
            .arg(node().help("Where the new member is to live")),
        Command::new("shrink")
            .about("Take a member, alive or lost, from its group, while that works")
            .arg(group())
            .arg(node().help("Where the member lives that is to go")),
        Command::new("leave")
            .about("Take a server that holds no members off the list, for good")
            .arg(server("Which server; its number is not used again")),
        Command::new("join")
            .about("Let a new server come in, which is started with --join")
            .arg(server("Its number, the next one that is free"))
            .arg(address.help("Where the others reach it")),
    ]
}
