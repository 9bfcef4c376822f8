//! Partitions by the system: every server has a network namespace of its own
//! ([`Namespaces`]).
//!
//! A partition is a set of routing rules, `from A to B blackhole`, where B receives: packets of A
//! are lost there without a word, whoever dialled, as by a pulled cable. Rules are obeyed in the
//! order of their numbers, and that of a namespace's own addresses is the very first: it is moved
//! back, or nothing that arrives would meet another one. What clients are to lose is dropped where
//! servers send it, so that there are no rules in the namespace of this process. Connections are
//! broken by `ss -K` at both ends.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::bail;

use super::CuttableNetwork;
use crate::local::namespaces::{self, NamespaceNames, Namespaces};
use crate::local::system::run;
use crate::local::{Home, ProxyAddresses};
use crate::torture::plan::{Break, Party};

/// The number of a rule that drops, and the new one of the rule for a namespace's own addresses.
const DROPS: u32 = 100;
const OWN: u32 = 32_000;
/// The trial waits so long for an answer that is not to come.
const SILENT_FOR: Duration = Duration::from_millis(200);

/// The namespaces of a cluster, and what is lost between them.
pub struct CuttableNamespaces {
    spaces: Namespaces,
    /// What is lost now.
    lost: Mutex<BTreeSet<Lost>>,
}

/// Packets of one party to another are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lost {
    from: Party,
    to: Party,
}

/// Whether namespaces can be made, take packets, and lose them when told to; what earlier
/// processes left is removed.
///
/// # Errors
/// The command that failed, and what it said.
pub fn try_out() -> anyhow::Result<()> {
    let probe = CuttableNamespaces::of(namespaces::try_out()?)?;
    probe.part(Party::Node(0), None, Break::Cut)?;
    if probe.spaces.answers(0, SILENT_FOR)? {
        bail!("`ip rule` with `blackhole` does not keep packets from a network namespace");
    }
    probe.heal()
}

fn address(names: &NamespaceNames, party: Party) -> String {
    match party {
        Party::Node(node) => names.address(node),
        Party::Clients => names.clients_address(),
    }
}

/// The commands after which rules of routing come before a namespace's own addresses.
fn priority_lines(names: &NamespaceNames, node: usize) -> [String; 2] {
    let name = names.node(node);
    [
        format!("ip -n {name} rule add pref {OWN} lookup local"),
        format!("ip -n {name} rule del pref 0"),
    ]
}

/// The command that adds (`add`) or deletes (`del`) the rule by which this is lost; none is
/// needed among clients.
fn iptables_line(names: &NamespaceNames, verb: &str, lost: Lost) -> Option<String> {
    let at = match (lost.to, lost.from) {
        (Party::Node(at), _) | (Party::Clients, Party::Node(at)) => at,
        (Party::Clients, Party::Clients) => return None,
    };
    let (name, from, to) = (names.node(at), address(names, lost.from), address(names, lost.to));
    Some(format!("ip -n {name} rule {verb} pref {DROPS} from {from} to {to} blackhole"))
}

/// The command that breaks a party's connections with another.
fn break_line(names: &NamespaceNames, at: Party, with: Party) -> String {
    let place = match at {
        Party::Node(node) => format!(" -N {}", names.node(node)),
        Party::Clients => String::new(),
    };
    format!("ss{place} -K -t dst {}", address(names, with))
}

/// What is lost when `party` is cut off from another of so many nodes and the clients, or from all.
fn lost(nodes: usize, party: Party, from: Option<Party>, how: Break) -> Vec<Lost> {
    let all = (0..nodes).map(Party::Node).chain([Party::Clients]);
    let others = all.filter(|other| *other != party && from.is_none_or(|from| from == *other));
    let both = |other| {
        let inbound = (how != Break::Outbound).then_some(Lost { from: other, to: party });
        let outbound = (how != Break::Inbound).then_some(Lost { from: party, to: other });
        inbound.into_iter().chain(outbound)
    };
    others.flat_map(both).collect()
}

impl CuttableNamespaces {
    /// Makes a namespace for each of so many nodes.
    ///
    /// # Errors
    /// The command that failed, and what it said; what was made by then is removed.
    pub fn make(nodes: usize) -> anyhow::Result<CuttableNamespaces> {
        CuttableNamespaces::of(Namespaces::make(nodes)?)
    }

    fn of(spaces: Namespaces) -> anyhow::Result<CuttableNamespaces> {
        let lines = (0..spaces.nodes()).flat_map(|node| priority_lines(spaces.names(), node));
        lines.into_iter().try_for_each(|line| run(&line).map(drop))?;
        Ok(CuttableNamespaces { spaces, lost: Mutex::default() })
    }

    /// Where each node is to run.
    pub fn homes(&self) -> Vec<Home> {
        self.spaces.homes()
    }

    fn lost(&self) -> MutexGuard<'_, BTreeSet<Lost>> {
        self.lost.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl CuttableNetwork for CuttableNamespaces {
    fn reached(&self) -> Option<ProxyAddresses> {
        None
    }

    fn part(&self, party: Party, from: Option<Party>, how: Break) -> anyhow::Result<()> {
        let all = lost(self.spaces.nodes(), party, from, how);
        for &one in &all {
            let line = iptables_line(self.spaces.names(), "add", one);
            if let (Some(line), true) = (line, self.lost().insert(one)) {
                run(&line)?;
            }
        }
        // Afterwards, or they would be made again at once. Every pair comes both ways round.
        let mut broken = all.iter().filter(|_| how == Break::Cut);
        broken.try_for_each(|one| run(&break_line(self.spaces.names(), one.from, one.to)).map(drop))
    }

    fn heal(&self) -> anyhow::Result<()> {
        let all = std::mem::take(&mut *self.lost());
        let mut lines =
            all.into_iter().filter_map(|one| iptables_line(self.spaces.names(), "del", one));
        lines.try_for_each(|line| run(&line).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> NamespaceNames {
        NamespaceNames::new(4_194_304, "10.213.7")
    }

    fn iptables_lines(party: Party, from: Option<Party>, how: Break) -> Vec<String> {
        let lost = lost(3, party, from, how);
        lost.into_iter().map(|one| iptables_line(&names(), "add", one).unwrap()).collect()
    }

    #[test]
    fn a_rule_drops_where_packets_arrive_and_never_among_the_clients() {
        let (one, two) = (Party::Node(1), Party::Node(2));
        let to_one = "ip -n muesli-4194304-1 rule add pref 100 \
                      from 10.213.7.12 to 10.213.7.11 blackhole";
        let to_two = "ip -n muesli-4194304-2 rule add pref 100 \
                      from 10.213.7.11 to 10.213.7.12 blackhole";
        assert_eq!(iptables_lines(one, Some(two), Break::Both), [to_one, to_two]);
        assert_eq!(iptables_lines(one, Some(two), Break::Cut), [to_one, to_two]);
        assert_eq!(iptables_lines(one, Some(two), Break::Inbound), [to_one]);
        assert_eq!(iptables_lines(one, Some(two), Break::Outbound), [to_two]);
        let to_clients = "ip -n muesli-4194304-1 rule add pref 100 \
                          from 10.213.7.11 to 10.213.7.1 blackhole";
        assert_eq!(iptables_lines(Party::Clients, Some(one), Break::Inbound), [to_clients]);
    }

    #[test]
    fn a_party_is_cut_off_from_all_others() {
        assert_eq!(iptables_lines(Party::Node(0), None, Break::Both).len(), 6);
        let inbound = iptables_lines(Party::Node(0), None, Break::Inbound);
        assert_eq!(inbound.len(), 3);
        assert!(
            inbound.iter().all(|line| line.contains("-0 rule") && line.contains("to 10.213.7.10 "))
        );
        let outbound = iptables_lines(Party::Clients, None, Break::Outbound);
        assert_eq!(outbound.len(), 3);
        assert!(outbound.iter().all(|line| line.contains("from 10.213.7.1 to")), "{outbound:?}");
    }

    #[test]
    fn connections_are_broken_at_both_ends() {
        let lines: Vec<_> = lost(1, Party::Clients, None, Break::Cut)
            .into_iter()
            .map(|one| break_line(&names(), one.from, one.to))
            .collect();
        let here = "ss -K -t dst 10.213.7.10";
        let there = "ss -N muesli-4194304-0 -K -t dst 10.213.7.1";
        assert_eq!(lines, [there, here]);
    }
}
