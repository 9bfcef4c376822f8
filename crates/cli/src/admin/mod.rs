//! `muesli admin`: where the members of groups and the partitions live, and how they are moved.

pub mod change;
mod members;
mod options;
mod partitions;
mod status;
mod survey;
mod tree;

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;
use muesli_core::{NodeId, RepositoryId, Secret};
use muesli_group::layout;
use muesli_group::placement::PlacementRow;
use muesli_registry::check_tree;

use crate::reach;
use crate::table;
pub use change::Admin;
pub use members::wait_for_majorities;
pub use options::command;
use status::StatusWatch;
pub use survey::Survey;

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
    let printed = match name {
        "partitions" => partitions::list(addresses, &text("protocol"), secret)?,
        "move-partition" => {
            let partition = part("partition").expect("it is required");
            let way = (part("from"), part("repository").expect("it is required"));
            partitions::relocate(addresses, (&text("protocol"), secret), partition, way)?
        }
        "sample" => {
            let one_in = *matches.get_one::<u32>("one-in").expect("it is required");
            partitions::sample(&addresses, secret.as_ref(), one_in)?
        }
        "members" => {
            let (table, broken) = members::members(&Survey::of(&addresses, None)?);
            print_line(&table);
            return Ok(complain(&broken));
        }
        "status" => match matches.get_one::<f64>("watch") {
            None => status::status(&addresses)?,
            Some(seconds) => {
                let every = Duration::try_from_secs_f64(*seconds);
                let every =
                    every.map_err(|_| anyhow::anyhow!("`--watch`: not {seconds} seconds"))?;
                let times = matches.get_one::<u64>("times").copied();
                status::watch(&addresses, StatusWatch { every, times })?;
                return Ok(0);
            }
        },
        "tree" => look_at_tree(&addresses, &text("protocol"), secret, matches)?,
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
    print_line(&printed);
    Ok(0)
}

/// Draws the tree, or sets another one.
fn look_at_tree(
    addresses: &[String],
    protocol: &str,
    secret: Option<Secret>,
    matches: &ArgMatches,
) -> anyhow::Result<String> {
    let Some(("set", matches)) = matches.subcommand() else {
        let seconds = *matches.get_one::<f64>("seconds").expect("it has a default");
        return tree::show(addresses, seconds, matches.get_flag("json"));
    };
    let text = matches.get_one::<String>("tree").expect("it is required");
    let validators = *matches.get_one::<u16>("validators").expect("it has a default");
    let apart: Vec<_> = matches.get_many::<NodeId>("on").unwrap_or_default().copied().collect();
    let plan = tree::plan(text, validators)?;
    check_tree(protocol, plan.is_some())?;
    tree::set(addresses, secret.as_ref(), plan.as_ref(), &apart)
}

/// Says what does not hold; the status to end with.
fn complain(broken: &[String]) -> u8 {
    for line in broken {
        let _ = writeln!(stderr(), "muesli: {line}"); // A reader that has gone away is no matter.
    }
    u8::from(!broken.is_empty())
}

fn print_line(text: &str) {
    let _ = writeln!(stdout(), "{text}"); // A reader that has gone away is no matter.
}

fn placement(row: &PlacementRow) -> String {
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
    while let Some(printed) = admin.drain_one(server)? {
        print_line(&printed);
        moved += 1;
    }
    Ok(format!("server {server} holds no members any more; {moved} were moved"))
}
