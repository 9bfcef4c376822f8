//! The replicas' chains at the end of the run.
//!
//! Each must be the tail of the chain of committed versions, from its first version on. Two
//! chains that both pass agree with each other, so likeness needs no check of its own.

use super::versions::{ChainEntry, VersionTable};
use crate::finding::{Anomaly, Findings};
use crate::history::{Atom, History, OrderLine, VersionId};

pub(super) fn check(
    history: &History,
    table: &VersionTable,
    committed: &[bool],
    findings: &mut Findings,
) {
    for order in &history.orders {
        if let Err(fault) = check_line(history, table, committed, order) {
            findings.add(Anomaly::ReplicaChain, true, || describe(history, order, &fault));
        }
    }
}

fn check_line(
    history: &History,
    table: &VersionTable,
    committed: &[bool],
    order: &OrderLine,
) -> Result<(), String> {
    for pair in order.versions.windows(2) {
        if history.compare(pair[0], pair[1]).is_ge() {
            let (first, second) = (history.show_version(pair[0]), history.show_version(pair[1]));
            return Err(format!("version {second} stands after version {first}"));
        }
    }
    let installed = |entry: &&ChainEntry| entry.last && committed[entry.writer.index()];
    let versions: Vec<VersionId> =
        order.versions.iter().copied().filter(|version| *version != VersionId::INITIAL).collect();
    for version in &versions {
        if !table.find(history, order.key, *version).iter().any(|entry| installed(&entry)) {
            let version = history.show_version(*version);
            return Err(format!("version {version} was never committed"));
        }
    }
    let mut held = versions.iter().peekable();
    let late = order.versions.first().copied().filter(|_| !versions.is_empty());
    for entry in table.of(order.key).iter().filter(installed) {
        let collected = late.is_some_and(|first| history.compare(entry.version, first).is_lt());
        if collected {
            continue;
        }
        while held.next_if(|version| history.compare(**version, entry.version).is_lt()).is_some() {}
        if held.peek() != Some(&&entry.version) {
            let version = history.show_version(entry.version);
            return Err(format!("the committed version {version} is missing"));
        }
    }
    Ok(())
}

fn describe(history: &History, order: &OrderLine, fault: &str) -> String {
    let key = history.show_key(order.key);
    match order.node {
        Atom::Unrecorded => format!("a replica's chain of {key}: {fault}"),
        node => format!("the chain of {key} on replica {}: {fault}", history.show_atom(node)),
    }
}
