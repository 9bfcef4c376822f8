//! Where partitions are, and how they move to other repositories.

use anyhow::bail;
use clap::{Arg, Command, value_parser};
use muesli::{Connect, Db, PlacedPartition, RepositoryId};
use muesli_cluster::lifecycle::visit::Visit;
use muesli_cluster::wire::control::Control;
use muesli_core::Secret;

use super::survey::Survey;
use crate::reach::{self, WITHIN};
use crate::table;

/// The subcommands.
pub fn commands() -> [Command; 3] {
    let number = |name: &'static str| Arg::new(name).value_parser(value_parser!(u16));
    let from = number("from").long("from").value_name("REPOSITORY");
    [
        Command::new("partitions").about("Say which repository holds which partition"),
        Command::new("move-partition")
            .about("Move a partition with its keys to another repository, while both serve")
            .arg(number("partition").required(true).help("Which partition, from 0"))
            .arg(number("repository").required(true).help("Where to"))
            .arg(from.help("Which of its repositories gives it; without it, the last")),
        Command::new("sample")
            .about("Have all servers sample one transaction in so many, for `muesli partition`")
            .arg(
                Arg::new("one-in")
                    .required(true)
                    .value_name("N")
                    .value_parser(value_parser!(u32))
                    .help("One in so many, until a server starts again; 0: none"),
            ),
    ]
}

fn connect(addresses: Vec<String>, protocol: &str, secret: Option<Secret>) -> anyhow::Result<Db> {
    reach::first(&addresses)?;
    let protocol = protocol.to_owned();
    Ok(Db::connect_with(Connect { addresses, protocol, secret, ..Connect::default() })?)
}

/// Where all partitions are.
///
/// # Errors
/// The cluster does not answer, or its protocol moves none.
pub fn list(
    addresses: Vec<String>,
    protocol: &str,
    secret: Option<Secret>,
) -> anyhow::Result<String> {
    let db = connect(addresses, protocol, secret)?;
    Ok(show(&muesli::blocking::block_on(db.partitions())?))
}

fn show(all: &[PlacedPartition]) -> String {
    let header = ["partition", "repositories", "moves"];
    let mut table = table::new(header.map(str::to_owned).to_vec());
    for placed in all {
        let holders: Vec<_> = placed.holders.iter().map(|it| it.0.to_string()).collect();
        let row = [placed.partition.to_string(), holders.join(", "), placed.epoch.to_string()];
        table.add_row(row);
    }
    table.to_string()
}

/// Moves a partition.
///
/// # Errors
/// As [`Db::move_partition`], and where the cluster does not answer.
pub fn relocate(
    addresses: Vec<String>,
    (protocol, secret): (&str, Option<Secret>),
    partition: u16,
    (from, to): (Option<u16>, u16),
) -> anyhow::Result<String> {
    let db = connect(addresses, protocol, secret)?;
    let (from, to) = (from.map(RepositoryId), RepositoryId(to));
    let epoch = muesli::blocking::block_on(db.move_partition(partition, from, to))?;
    Ok(format!("partition {partition} is at repository {}; it has moved {epoch} times", to.0))
}

/// Has all servers sample one transaction in so many.
///
/// # Errors
/// One of them does not answer, or does not take it.
pub fn sample(
    addresses: &[String],
    secret: Option<&Secret>,
    one_in: u32,
) -> anyhow::Result<String> {
    let survey = Survey::of(addresses, secret)?;
    let mut others = Vec::new();
    for server in &survey.servers {
        let visit = Visit::begin_as_admin(&server.address, WITHIN, secret);
        let why = match visit.and_then(|mut visit| visit.ask(&Control::SampleAccesses(one_in))) {
            Ok(Control::Loads(page)) if page.one_in == one_in => continue,
            Ok(other) => format!("it answers with `{}`", other.kind()),
            Err(error) => error.to_string(),
        };
        others.push(format!("server {} at {}: {why}", server.node.0, server.address));
    }
    if !others.is_empty() {
        bail!("not all servers sample one transaction in {one_in} now: {}", others.join("; "));
    }
    let count = survey.servers.len();
    Ok(match one_in {
        0 => format!("{count} servers sample no transactions"),
        _ => format!("{count} servers sample one transaction in {one_in}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_a_line() {
        let holders = vec![RepositoryId(3), RepositoryId(0)];
        let shown = show(&[PlacedPartition { partition: 7, epoch: 2, holders }]);
        let row = shown.lines().nth(3).map(|row| row.split_whitespace().collect::<Vec<_>>());
        assert_eq!(row, Some(vec!["7", "3,", "0", "2"]), "{shown}");
    }
}
