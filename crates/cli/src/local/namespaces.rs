//! A network namespace for each server of a cluster on this machine.
//!
//! A further namespace holds a bridge, the switch that a pair of virtual interfaces joins each
//! server to; one more pair leads to the namespace of this process, where the clients are. Nothing
//! else of this machine's network is touched: its addresses, routes and filters stay as they are,
//! and what filters forwarded packets here never sees those between servers.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use super::Home;
use super::system::{free_network, run};

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
/// How many servers a network has addresses for.
const NODES_MAX: usize = 240;
/// The trial waits so long for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

/// The namespaces of a cluster; they are removed when this is dropped.
pub struct Namespaces {
    names: NamespaceNames,
    nodes: usize,
    /// The namespaces that are there.
    made: Vec<String>,
}

/// How everything is called.
#[derive(Clone, Debug)]
pub struct NamespaceNames {
    process: u32,
    /// The network, without the last number.
    prefix: String,
}

/// One namespace, after a trial of whether they can be made and take packets; what earlier
/// processes left is removed.
///
/// # Errors
/// The command that failed, and what it said.
pub fn try_out() -> anyhow::Result<Namespaces> {
    remove_leftovers()?;
    let probe = Namespaces::make(1)?;
    if !probe.answers(0, ANSWERED_WITHIN)? {
        let address = probe.names.listens(0);
        bail!("nothing of {address}, in a new network namespace, is heard here");
    }
    Ok(probe)
}

/// Removes the namespaces of processes that are no more, and says so.
fn remove_leftovers() -> anyhow::Result<()> {
    let is_over = |process: u32| !Path::new(&format!("/proc/{process}")).exists();
    let left = leftovers(&run("ip netns list")?, |process| {
        process == std::process::id() || is_over(process)
    });
    for (process, names) in left {
        remove(&format!("{LINK}{process}"), &names)?;
        eprintln!("muesli: removed what process {process} left: {}", names.join(", "));
    }
    Ok(())
}

/// Removes an interface and namespaces; what another process has removed meanwhile is no error.
fn remove(link: &str, names: &[String]) -> anyhow::Result<()> {
    let interface = Path::new("/sys/class/net").join(link);
    if interface.exists() {
        let removed = run(&format!("ip link del {link}"));
        removed.map(drop).or_else(|error| if interface.exists() { Err(error) } else { Ok(()) })?;
    }
    names.iter().try_for_each(|name| {
        let is_there = |list: String| list.split_whitespace().any(|word| word == name);
        match run(&format!("ip netns del {name}")) {
            Err(error) if is_there(run("ip netns list")?) => Err(error),
            _ => Ok(()),
        }
    })
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

impl NamespaceNames {
    /// Those of this process's namespaces, on the network with this prefix.
    pub fn new(process: u32, prefix: &str) -> NamespaceNames {
        NamespaceNames { process, prefix: prefix.to_owned() }
    }

    fn switch(&self) -> String {
        format!("{NAME}{}-switch", self.process)
    }

    /// A node's namespace.
    pub fn node(&self, node: usize) -> String {
        format!("{NAME}{}-{node}", self.process)
    }

    fn link(&self) -> String {
        format!("{LINK}{}", self.process)
    }

    /// A node's address.
    pub fn address(&self, node: usize) -> String {
        format!("{}.{}", self.prefix, FIRST_NODE + node)
    }

    /// The address of this process, where the clients are.
    pub fn clients_address(&self) -> String {
        format!("{}.{CLIENTS}", self.prefix)
    }

    fn listens(&self, node: usize) -> String {
        format!("{}:{PORT}", self.address(node))
    }

    /// The commands that make the switch, and join this process's namespace to it.
    fn switch_lines(&self) -> Vec<String> {
        let (switch, link) = (self.switch(), self.link());
        let address = self.clients_address();
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
        let address = self.address(node);
        vec![
            format!("ip -n {switch} link add node{node} type veth peer name eth0 netns {name}"),
            format!("ip -n {switch} link set node{node} master bridge up"),
            format!("ip -n {name} addr add {address}/24 dev eth0"),
            format!("ip -n {name} link set lo up"),
            format!("ip -n {name} link set eth0 up"),
        ]
    }
}

impl Namespaces {
    /// Makes a namespace for each of so many nodes.
    ///
    /// # Errors
    /// There are too many; or the command that failed, and what it said: what was made by then is
    /// removed.
    pub fn make(nodes: usize) -> anyhow::Result<Namespaces> {
        if nodes > NODES_MAX {
            bail!("{nodes} servers are too many for network namespaces: at most {NODES_MAX}");
        }
        let process = std::process::id();
        let routes = run("ip -4 route show table all")?;
        let prefix = free_network(&routes, process).context("all private networks are in use")?;
        let names = NamespaceNames::new(process, &prefix);
        let mut it = Namespaces { names, nodes, made: Vec::new() };
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

    /// How many nodes have one.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How they are called.
    pub fn names(&self) -> &NamespaceNames {
        &self.names
    }

    /// Where each node is to run.
    pub fn homes(&self) -> Vec<Home> {
        let home =
            |node| Home { namespace: self.names.node(node), address: self.names.listens(node) };
        (0..self.nodes).map(home).collect()
    }

    /// Whether a node's namespace, in which nothing listens yet, answers so.
    ///
    /// # Errors
    /// Its address is none.
    pub fn answers(&self, node: usize, within: Duration) -> anyhow::Result<bool> {
        let address: SocketAddr = self.names.listens(node).parse()?;
        Ok(match TcpStream::connect_timeout(&address, within) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        })
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

    #[test]
    fn names_of_interfaces_have_room_for_any_process() {
        let names = NamespaceNames::new(4_194_304, "10.213.7");
        assert!(names.link().len() <= 15);
        assert_eq!(names.listens(15), "10.213.7.25:7000");
        assert_eq!(names.listens(NODES_MAX - 1), "10.213.7.249:7000");
    }

    #[test]
    fn more_servers_than_addresses_are_refused() {
        let error = Namespaces::make(NODES_MAX + 1).err().unwrap().to_string();
        assert_eq!(error, "241 servers are too many for network namespaces: at most 240");
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
