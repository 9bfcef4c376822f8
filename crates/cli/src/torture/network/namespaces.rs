//! Partitions by the system: every server has a network namespace of its own.
//!
//! A further namespace holds a bridge, the switch that a pair of virtual interfaces joins each
//! server to; one more pair leads to the namespace of this process, where the clients are. Nothing
//! else of this machine's network is touched: its addresses, routes and filters stay as they are,
//! and what filters forwarded packets here never sees those between servers.
//!
//! A partition is a set of routing rules, `from A to B blackhole`, where B receives: packets of A
//! are lost there without a word, whoever dialled, as by a pulled cable. Rules are obeyed in the
//! order of their numbers, and that of a namespace's own addresses is the very first: it is moved
//! back, or nothing that arrives would meet another one. What clients are to lose is dropped where
//! servers send it, so that there are no rules in the namespace of this process. Connections are
//! broken by `ss -K` at both ends.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, bail};

use super::CuttableNetwork;
use super::system::{free_network, run};
use crate::local::{Home, ProxyAddresses};
use crate::torture::plan::{Break, Party};

/// What the namespaces' names begin with; the process and what it is follow.
const NAME: &str = "muesli-";
/// What the name of this namespace's interface begins with; the process follows. A name has room
/// for 15 bytes.
const LINK: &str = "muesli";
/// Where every server listens, in its own namespace.
const PORT: u16 = 7000;
/// The last number of the clients' address, and of the first server's.
const CLIENTS: usize = 1;
const FIRST_NODE: usize = 10;
/// The number of a rule that drops, and the new one of the rule for a namespace's own addresses.
const DROPS: u32 = 100;
const OWN: u32 = 32_000;
/// The trial waits so long for an answer that is to come, and for one that is not.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
const SILENT_FOR: Duration = Duration::from_millis(200);

/// The namespaces of a cluster; they are removed when this is dropped.
pub struct Namespaces {
    names: Names,
    nodes: usize,
    /// The namespaces that are there.
    made: Vec<String>,
    /// What is lost now.
    lost: Mutex<BTreeSet<Lost>>,
}

/// How everything is called.
#[derive(Clone, Debug)]
struct Names {
    process: u32,
    /// The network, without the last number.
    prefix: String,
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
    remove_leftovers()?;
    let probe = Namespaces::make(1)?;
    let address: SocketAddr = probe.names.listens(0).parse()?;
    let refused = |within| match TcpStream::connect_timeout(&address, within) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
    };
    if !refused(ANSWERED_WITHIN) {
        bail!("nothing of {address}, in a new network namespace, is heard here");
    }
    probe.part(Party::Node(0), None, Break::Cut)?;
    if refused(SILENT_FOR) {
        bail!("`ip rule` with `blackhole` does not keep packets from a network namespace");
    }
    probe.heal()
}

/// Removes the namespaces of processes that are no more, and says so.
fn remove_leftovers() -> anyhow::Result<()> {
    let is_over = |process: u32| !Path::new(&format!("/proc/{process}")).exists();
    let left = leftovers(&run("ip netns list")?, |process| {
        process == std::process::id() || is_over(process)
    });
    for (process, names) in left {
        let link = format!("{LINK}{process}");
        if Path::new("/sys/class/net").join(&link).exists() {
            run(&format!("ip link del {link}"))?;
        }
        names.iter().try_for_each(|name| run(&format!("ip netns del {name}")).map(drop))?;
        eprintln!("muesli: removed what process {process} left: {}", names.join(", "));
    }
    Ok(())
}

/// The namespaces of this list that are of processes that are `over`, by process.
fn leftovers(list: &str, over: impl Fn(u32) -> bool) -> Vec<(u32, Vec<String>)> {
    let mut left: Vec<(u32, Vec<String>)> = Vec::new();
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let process = name.strip_prefix(NAME).and_then(|rest| rest.split_once('-'));
        let process = process.and_then(|(process, _)| process.parse().ok());
        let Some(process) = process.filter(|process| over(*process)) else { continue };
        match left.iter_mut().find(|(other, _)| *other == process) {
            Some((_, names)) => names.push(name.to_owned()),
            None => left.push((process, vec![name.to_owned()])),
        }
    }
    left
}

impl Names {
    fn switch(&self) -> String {
        format!("{NAME}{}-switch", self.process)
    }

    fn node(&self, node: usize) -> String {
        format!("{NAME}{}-{node}", self.process)
    }

    fn link(&self) -> String {
        format!("{LINK}{}", self.process)
    }

    fn address(&self, party: Party) -> String {
        let last = match party {
            Party::Node(node) => FIRST_NODE + node,
            Party::Clients => CLIENTS,
        };
        format!("{}.{last}", self.prefix)
    }

    fn listens(&self, node: usize) -> String {
        format!("{}:{PORT}", self.address(Party::Node(node)))
    }

    /// The commands that make the switch, and join this process's namespace to it.
    fn switch_lines(&self) -> Vec<String> {
        let (switch, link) = (self.switch(), self.link());
        let address = self.address(Party::Clients);
        vec![
            format!("ip -n {switch} link add bridge type bridge"),
            format!("ip -n {switch} link set bridge up"),
            format!("ip link add {link} type veth peer name clients netns {switch}"),
            format!("ip -n {switch} link set clients master bridge up"),
            format!("ip addr add {address}/24 dev {link}"),
            format!("ip link set {link} up"),
        ]
    }

    /// The commands that join a node's namespace to the switch.
    fn node_lines(&self, node: usize) -> Vec<String> {
        let (switch, name) = (self.switch(), self.node(node));
        let address = self.address(Party::Node(node));
        vec![
            format!("ip -n {switch} link add node{node} type veth peer name eth0 netns {name}"),
            format!("ip -n {switch} link set node{node} master bridge up"),
            format!("ip -n {name} addr add {address}/24 dev eth0"),
            format!("ip -n {name} link set lo up"),
            format!("ip -n {name} link set eth0 up"),
            format!("ip -n {name} rule add pref {OWN} lookup local"),
            format!("ip -n {name} rule del pref 0"),
        ]
    }

    /// The command that adds (`add`) or deletes (`del`) the rule by which this is lost; none is
    /// needed among clients.
    fn iptables_line(&self, verb: &str, lost: Lost) -> Option<String> {
        let at = match (lost.to, lost.from) {
            (Party::Node(at), _) | (Party::Clients, Party::Node(at)) => at,
            (Party::Clients, Party::Clients) => return None,
        };
        let (name, from, to) = (self.node(at), self.address(lost.from), self.address(lost.to));
        Some(format!("ip -n {name} rule {verb} pref {DROPS} from {from} to {to} blackhole"))
    }

    /// The command that breaks a party's connections with another.
    fn break_line(&self, at: Party, with: Party) -> String {
        let place = match at {
            Party::Node(node) => format!(" -N {}", self.node(node)),
            Party::Clients => String::new(),
        };
        format!("ss{place} -K -t dst {}", self.address(with))
    }
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

impl Namespaces {
    /// Makes a namespace for each of so many nodes.
    ///
    /// # Errors
    /// The command that failed, and what it said; what was made by then is removed.
    pub fn make(nodes: usize) -> anyhow::Result<Namespaces> {
        let process = std::process::id();
        let routes = run("ip -4 route show table all")?;
        let prefix = free_network(&routes, process).context("all private networks are in use")?;
        let names = Names { process, prefix };
        let mut it = Namespaces { names, nodes, made: Vec::new(), lost: Mutex::default() };
        it.add(it.names.switch(), &it.names.switch_lines())?;
        for node in 0..nodes {
            it.add(it.names.node(node), &it.names.node_lines(node))?;
        }
        Ok(it)
    }

    fn add(&mut self, name: String, lines: &[String]) -> anyhow::Result<()> {
        run(&format!("ip netns add {name}"))?;
        self.made.push(name);
        lines.iter().try_for_each(|line| run(line).map(drop))
    }

    /// Where each node is to run.
    pub fn homes(&self) -> Vec<Home> {
        let home =
            |node| Home { namespace: self.names.node(node), address: self.names.listens(node) };
        (0..self.nodes).map(home).collect()
    }

    fn lost(&self) -> MutexGuard<'_, BTreeSet<Lost>> {
        self.lost.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl CuttableNetwork for Namespaces {
    fn reached(&self) -> Option<ProxyAddresses> {
        None
    }

    fn part(&self, party: Party, from: Option<Party>, how: Break) -> anyhow::Result<()> {
        let all = lost(self.nodes, party, from, how);
        for &one in &all {
            let line = self.names.iptables_line("add", one);
            if let (Some(line), true) = (line, self.lost().insert(one)) {
                run(&line)?;
            }
        }
        // Afterwards, or they would be made again at once. Every pair comes both ways round.
        let mut broken = all.iter().filter(|_| how == Break::Cut);
        broken.try_for_each(|one| run(&self.names.break_line(one.from, one.to)).map(drop))
    }

    fn heal(&self) -> anyhow::Result<()> {
        let all = std::mem::take(&mut *self.lost());
        let mut lines = all.into_iter().filter_map(|one| self.names.iptables_line("del", one));
        lines.try_for_each(|line| run(&line).map(drop))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let link = self.names.link();
        let mut lines: Vec<_> =
            self.made.iter().map(|name| format!("ip netns del {name}")).collect();
        if Path::new("/sys/class/net").join(&link).exists() {
            lines.insert(0, format!("ip link del {link}"));
        }
        for line in lines {
            if let Err(error) = run(&line) {
                eprintln!("muesli: {error:#}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names { process: 4_194_304, prefix: "10.213.7".to_owned() }
    }

    fn iptables_lines(party: Party, from: Option<Party>, how: Break) -> Vec<String> {
        let lost = lost(3, party, from, how);
        lost.into_iter().map(|one| names().iptables_line("add", one).unwrap()).collect()
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
            .map(|one| names().break_line(one.from, one.to))
            .collect();
        let here = "ss -K -t dst 10.213.7.10";
        let there = "ss -N muesli-4194304-0 -K -t dst 10.213.7.1";
        assert_eq!(lines, [there, here]);
    }

    #[test]
    fn names_of_interfaces_have_room_for_any_process() {
        assert!(names().link().len() <= 15);
        assert_eq!(names().listens(15), "10.213.7.25:7000");
    }

    #[test]
    fn only_what_processes_left_that_are_over_is_found() {
        let list = "muesli-12-1 (id: 3)\nmuesli-12-switch\nmuesli-13-0 (id: 1)\nother\n\
                    muesli-x-1\nmuesli-12\nmuesli-14-switch\n";
        let left = leftovers(list, |process| process != 13);
        let expected = [
            (12, vec!["muesli-12-1".to_owned(), "muesli-12-switch".to_owned()]),
            (14, vec!["muesli-14-switch".to_owned()]),
        ];
        assert_eq!(left, expected);
    }
}
