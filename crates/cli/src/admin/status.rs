//! The numbers that servers say of themselves, beside each other.

use anyhow::bail;
use muesli_cluster::lifecycle::visit::{self, Visited};

use crate::reach::{self, WITHIN};
use crate::table;

/// A line for each number, and a column for each server of the cluster that one of these addresses
/// belongs to.
///
/// # Errors
/// No server answers.
pub fn status(addresses: &[String]) -> anyhow::Result<String> {
    let map = reach::first(addresses)?.welcome.map;
    let there = map.servers.iter().filter(|(node, _)| !map.left.contains(node));
    let asked: Vec<_> =
        there.map(|(node, address)| (node, visit::status(address, WITHIN).ok())).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in asked.iter().flat_map(|(_, visited)| visited).flat_map(|it| &it.status) {
        if !names.contains(&&**name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        bail!("no server answers");
    }
    let header = asked.iter().map(|(node, _)| format!("server {}", node.0));
    let mut table = table::new(["number".to_owned()].into_iter().chain(header).collect());
    for name in names {
        let number = |visited: &Option<Visited>| {
            let number = visited.as_ref().and_then(|visited| visited.status_of(name));
            number.map_or("-".to_owned(), |number| number.to_string())
        };
        let numbers = asked.iter().map(|(_, visited)| number(visited));
        table.add_row([name.to_owned()].into_iter().chain(numbers));
    }
    Ok(table.to_string())
}
