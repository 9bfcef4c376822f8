//! The numbers that servers say of themselves, beside each other; once, or again and again.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use muesli_cluster::lifecycle::visit;
use muesli_cluster::{NumberKind, STATUS_NUMBERS};
use muesli_core::NodeId;

use crate::reach::{self, WITHIN};
use crate::table;

/// How often numbers are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatusWatch {
    /// The time between two looks.
    pub every: Duration,
    /// So many times; `None`: for ever.
    pub times: Option<u64>,
}

/// What all servers have said, one after the other.
struct StatusLook {
    /// Of each server what it has said; `None`: it did not answer.
    servers: BTreeMap<NodeId, Option<AnsweredLook>>,
}

/// What a server has said, and when.
struct AnsweredLook {
    at: Instant,
    numbers: Vec<(String, u64)>,
}

impl StatusLook {
    fn of(addresses: &[String]) -> anyhow::Result<StatusLook> {
        let map = reach::first(addresses)?.welcome.map;
        let there = map.servers.iter().filter(|(node, _)| !map.left.contains(node));
        let asked = there.map(|(node, address)| {
            let answered = visit::status(address, WITHIN).ok();
            let look = |numbers| AnsweredLook { at: Instant::now(), numbers };
            (*node, answered.map(|visited| look(visited.status)))
        });
        Ok(StatusLook { servers: asked.collect() })
    }

    fn number(&self, server: &NodeId, name: &str) -> Option<u64> {
        let look = self.servers.get(server)?.as_ref()?;
        look.numbers.iter().find(|(it, _)| it == name).map(|(_, number)| *number)
    }

    /// All names, each once, in the order in which they are said.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.servers.values().flatten().flat_map(|look| &look.numbers) {
            if !names.contains(&&**name) {
                names.push(name);
            }
        }
        names
    }

    /// A line for each number, and a column for each server; what grows with its change a second
    /// since `before`.
    fn table(&self, before: Option<&StatusLook>) -> anyhow::Result<String> {
        let names = self.names();
        if names.is_empty() {
            bail!("no server answers");
        }
        let header = self.servers.keys().map(|node| format!("server {}", node.0));
        let mut table = table::new(["number".to_owned()].into_iter().chain(header).collect());
        for name in names {
            let cell = |server: &NodeId| match self.number(server, name) {
                None => "-".to_owned(),
                Some(number) => match before.and_then(|it| self.rate(it, server, name)) {
                    None => number.to_string(),
                    Some(rate) => format!("{number} (+{rate:.0}/s)"),
                },
            };
            let cells = self.servers.keys().map(cell);
            table.add_row([name.to_owned()].into_iter().chain(cells));
        }
        Ok(table.to_string())
    }

    /// By how much a number has grown a second, if it is one that only grows. After a restart of
    /// the server it begins anew, and there is none.
    fn rate(&self, before: &StatusLook, server: &NodeId, name: &str) -> Option<f64> {
        let known = STATUS_NUMBERS.iter().find(|it| it.name == name)?;
        let (now, then) = (self.number(server, name)?, before.number(server, name)?);
        let at = |look: &StatusLook| Some(look.servers.get(server)?.as_ref()?.at);
        let seconds = at(self)?.duration_since(at(before)?).as_secs_f64().max(1e-3);
        let grows = known.kind == NumberKind::Counter && now >= then;
        grows.then(|| (now - then) as f64 / seconds)
    }
}

/// A line for each number, and a column for each server of the cluster that one of these addresses
/// belongs to.
///
/// # Errors
/// No server answers.
pub fn status(addresses: &[String]) -> anyhow::Result<String> {
    StatusLook::of(addresses)?.table(None)
}

/// The same again and again, with what was done a second since the look before.
///
/// # Errors
/// No server answers.
pub fn watch(addresses: &[String], watching: StatusWatch) -> anyhow::Result<()> {
    let mut before: Option<StatusLook> = None;
    let mut looks = 0;
    while watching.times.is_none_or(|times| looks < times) {
        if looks > 0 {
            thread::sleep(watching.every);
        }
        let look = StatusLook::of(addresses)?;
        let shown = look.table(before.as_ref())?;
        if writeln!(stdout(), "{shown}\n").and_then(|()| stdout().flush()).is_err() {
            return Ok(()); // The reader has gone away.
        }
        (before, looks) = (Some(look), looks + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(after: u64, numbers: Option<&[(&str, u64)]>) -> StatusLook {
        let at = Instant::now() + Duration::from_secs(after);
        let owned = |it: &[(&str, u64)]| {
            let numbers = it.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
            AnsweredLook { at, numbers }
        };
        StatusLook { servers: BTreeMap::from([(NodeId(0), numbers.map(owned))]) }
    }

    #[test]
    fn what_grows_is_shown_with_its_rate() {
        let before = look(0, Some(&[("messages-sent", 100), ("in-doubt", 1)]));
        let after = look(2, Some(&[("messages-sent", 300), ("in-doubt", 3)]));
        let shown = after.table(Some(&before)).unwrap();
        assert!(shown.contains("300 (+100/s)"), "{shown}");
        assert!(!shown.contains("3 (+"), "in-doubt goes up and down: {shown}");
        let restarted = look(4, Some(&[("messages-sent", 7)]));
        assert!(!restarted.table(Some(&after)).unwrap().contains('+'), "it began anew");
        assert!(look(0, None).table(None).is_err(), "nobody answers");
    }
}
