//! `explain`: where a key lives, and who looks after it.

use anyhow::bail;
use muesli::blocking::block_on;
use muesli::{Index, RepositoryId, SmallBytes};
use muesli_core::ReplicaRole;
use muesli_core::catalog::Partitioning;
use muesli_core::parts::locator::Static;
use serde_json::{Map, Value};

use super::session::ShellSession;
use super::tokens::ShellToken;
use super::values;
use crate::admin::Survey;

/// What there is to say of a key.
pub fn explain(session: &mut ShellSession, tokens: &[ShellToken]) -> anyhow::Result<String> {
    let [key] = tokens else { bail!("`explain` takes a key") };
    let (name, space) = session.current()?;
    let name = name.to_owned();
    let catalog = session.db.catalog_of_keys();
    let options = catalog.space(space.id()).map(|space| space.options.clone()).unwrap_or_default();
    let partition = session.db.partition_of(space, &key.bytes[..]);
    let holders = holders(session, partition);
    let numbers =
        |all: &[RepositoryId]| all.iter().map(|it| it.0.to_string()).collect::<Vec<_>>().join(", ");
    let asked = SmallBytes::new(&key.bytes);
    let get = async move |tx: &muesli::Tx| tx.get(space, asked.clone()).await;
    let value = session.operate(0, get)?;
    let value = value.map_or("absent".to_owned(), |value| format!("{} bytes", value.len()));
    let mut lines = vec![
        ("key", values::shown(&key.bytes)),
        ("value", value),
        ("space", format!("{name}, {}", described(&options))),
        ("partition", format!("{partition} of {}", catalog.partitions())),
        ("repositories", format!("{} of {}", numbers(&holders), catalog.repositories())),
        ("replicas", catalog.replicas.to_string()),
        ("protocol", session.protocol.clone()),
    ];
    lines.extend(whereabouts(session, &holders)?);
    if session.json {
        let pairs = lines.into_iter().map(|(name, text)| (name.to_owned(), Value::String(text)));
        return Ok(Value::Object(pairs.collect::<Map<_, _>>()).to_string());
    }
    let lines = lines.iter().map(|(name, text)| format!("{name:<14}{text}"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The repositories that hold a partition: as the protocol knows them, where that moves some.
fn holders(session: &ShellSession, partition: u16) -> Vec<RepositoryId> {
    let placed = block_on(session.db.partitions()).ok();
    let placed = placed.and_then(|all| all.into_iter().find(|it| it.partition == partition));
    match placed {
        Some(placed) => placed.holders,
        None => {
            let catalog = session.db.catalog_of_keys();
            Static.replicas_of(partition, &catalog).collect()
        }
    }
}

fn described(options: &muesli::SpaceOptions) -> String {
    let index = match options.index {
        Index::Hash => "found by hash",
        Index::Ordered => "in order",
    };
    match &options.partitioning {
        Partitioning::Hash => format!("{index}, dealt by a hash of the key"),
        Partitioning::Range(splits) => {
            format!("{index}, dealt by ranges with {} splits", splits.len())
        }
        Partitioning::Unit(units) => format!("{index}, dealt {units}"),
        Partitioning::Everywhere => format!("{index}, at every repository"),
    }
}

/// Where the repositories are, and who leads those that are kept by groups.
fn whereabouts(
    session: &ShellSession,
    holders: &[RepositoryId],
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let catalog = session.db.catalog();
    if session.addresses.is_empty() {
        let home =
            |it: &RepositoryId| format!("repository {} on loop {}", it.0, catalog.home(*it).0);
        let all: Vec<_> = holders.iter().map(home).collect();
        return Ok(vec![("lives", format!("in this process: {}", all.join(", ")))]);
    }
    let survey = Survey::of(&session.addresses, None)?;
    let address = |node: muesli_core::NodeId| {
        let server = survey.servers.iter().find(|server| server.node == node);
        let address = server.map_or("an unknown address", |server| &*server.address);
        format!("node {} at {address}", node.0)
    };
    if survey.shape.group <= 1 {
        let home =
            |it: &RepositoryId| format!("repository {} on {}", it.0, address(catalog.home(*it)));
        return Ok(vec![("lives", holders.iter().map(home).collect::<Vec<_>>().join("; "))]);
    }
    let row = survey.row();
    let mut lines = Vec::new();
    for holder in holders {
        let members: Vec<_> = row.members(holder.0).collect();
        let leader = members.iter().find(|it| survey.role(&row, **it) == Some(ReplicaRole::Leads));
        let leader = leader.and_then(|it| row.home(*it).ok());
        lines.push(("leader", leader.map_or("none that is known".to_owned(), address)));
        let homes = members.iter().filter_map(|it| row.home(*it).ok());
        lines.push(("members", homes.map(address).collect::<Vec<_>>().join("; ")));
    }
    Ok(lines)
}
