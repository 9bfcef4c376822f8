//! Whom a loop dials, and when it does so again.
//!
//! A server dials the servers of smaller names; the others dial it. A client first dials the
//! addresses it was given, one after the other, until somebody tells it the map; from then on it
//! dials every server of the map.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use muesli_core::{Nanos, NodeId};

use crate::mailbox::entry_point::{Command, EntryPoint};
use crate::spaces::map::Map;

/// Somebody to be dialled.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub address: String,
    /// Who should answer; `None`: whoever does.
    pub node: Option<NodeId>,
    /// Whether a connection is open or on its way.
    pub busy: bool,
    /// It has left the cluster.
    gone: bool,
    /// When to dial next.
    due: Nanos,
    pause: Duration,
}

/// All who are to be dialled, by their number.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    list: Vec<Target>,
    /// Servers that are reached at other addresses than the map says.
    others: Vec<(NodeId, String)>,
    /// Only one of the list at a time: they are addresses of a cluster that is not known yet.
    searching: bool,
    tries: usize,
}

impl Targets {
    /// Somebody of a cluster that is not known yet, whose servers are reached at the addresses of
    /// the map, or at other ones.
    pub fn anybody(addresses: &[String], others: &[(NodeId, String)]) -> Targets {
        let list = addresses.iter().map(|address| Target::new(address.clone(), None)).collect();
        Targets { list, others: others.to_vec(), searching: true, tries: 0 }
    }

    /// The servers of `map` that `me` has to dial, some of them at other addresses.
    pub fn below(map: &Map, me: NodeId, others: &[(NodeId, String)]) -> Targets {
        let mut targets = Targets { others: others.to_vec(), ..Targets::default() };
        let below = map.there().filter(|(node, _)| *node < me);
        targets.list = below.map(|(node, at)| targets.server(*node, at)).collect();
        targets
    }

    /// A server of the map, at the address where it is reached from here.
    fn server(&self, node: NodeId, at: &str) -> Target {
        let other = self.others.iter().find(|(it, _)| *it == node);
        Target::new(other.map_or(at, |(_, other)| other).to_owned(), Some(node))
    }

    /// All servers of `map`; the one that answered at `place` in the list so far is known by now.
    /// Answers its number in the new list.
    pub fn found(&mut self, map: &Map, who: NodeId) -> usize {
        self.list = map
            .there()
            .map(|(node, at)| Target { busy: *node == who, ..self.server(*node, at) })
            .collect();
        self.searching = false;
        self.list.iter().position(|target| target.node == Some(who)).unwrap_or(0)
    }

    /// Servers of a newer map that have left are not dialled again.
    pub fn left(&mut self, map: &Map) {
        for target in &mut self.list {
            target.gone |= target.node.is_some_and(|node| map.has_left(node));
        }
    }

    /// Servers of a newer map that have joined: a client dials them too.
    pub fn joined(&mut self, map: &Map) {
        let is_known = |node: NodeId| self.list.iter().any(|target| target.node == Some(node));
        let new = map.there().filter(|(node, _)| !is_known(*node));
        let new: Vec<_> = new.map(|(node, at)| self.server(*node, at)).collect();
        self.list.extend(new);
    }

    /// Whether nobody has told the map yet.
    pub fn is_searching(&self) -> bool {
        self.searching
    }

    pub fn get(&self, number: usize) -> Option<&Target> {
        self.list.get(number)
    }

    /// One that is to be dialled now; it counts as busy from here on.
    pub fn next_due(&mut self, now: Nanos) -> Option<usize> {
        if self.searching {
            if self.list.iter().any(|target| target.busy) || self.list.is_empty() {
                return None;
            }
            let number = self.tries % self.list.len();
            let due = self.list[number].due <= now;
            return due.then(|| self.take(number));
        }
        let due = |target: &Target| !target.busy && !target.gone && target.due <= now;
        let number = self.list.iter().position(due)?;
        Some(self.take(number))
    }

    fn take(&mut self, number: usize) -> usize {
        self.list[number].busy = true;
        number
    }

    /// A connection came up: the next pause is short again.
    pub fn succeeded(&mut self, number: usize, first: Duration) {
        if let Some(target) = self.list.get_mut(number) {
            target.pause = first;
        }
    }

    /// A connection is gone, or never came up: it is dialled again after a pause, which doubles
    /// and is random from half of it up, so that those who lost one node do not all come at once.
    pub fn failed(&mut self, number: usize, now: Nanos, pauses: (Duration, Duration)) {
        self.tries += 1;
        let Some(target) = self.list.get_mut(number) else { return };
        let pause = target.pause.clamp(pauses.0, pauses.1);
        let nanos = (pause.as_nanos() as u64).max(2);
        target.busy = false;
        target.due = now + Nanos(nanos / 2 + fastrand::u64(..nanos / 2));
        target.pause = (pause * 2).min(pauses.1);
    }
}

impl Target {
    fn new(address: String, node: Option<NodeId>) -> Target {
        Target { address, node, busy: false, gone: false, due: Nanos(0), pause: Duration::ZERO }
    }
}

/// Where an address leads to. Waits for the system, which may ask other machines.
///
/// # Errors
/// The address names nothing.
pub(crate) fn look_up(address: &str) -> Result<SocketAddr, String> {
    let unusable = |why: String| format!("the address `{address}` is of no use: {why}");
    let mut found = address.to_socket_addrs().map_err(|error| unusable(error.to_string()))?;
    found.next().ok_or_else(|| unusable("it names no machine".to_owned()))
}

/// Looks an address up, without keeping the loop: one that is written in numbers is known at once,
/// and a name is asked for on a thread of its own, whose answer comes as a command. `None`: it is
/// on its way.
///
/// # Errors
/// There is no thread.
pub(crate) fn begin_look_up(
    entry_point: &Arc<EntryPoint>,
    number: usize,
    address: &str,
    look_up: fn(&str) -> Result<SocketAddr, String>,
) -> Result<Option<SocketAddr>, String> {
    if let Ok(known) = address.parse() {
        return Ok(Some(known));
    }
    let (entry_point, address) = (entry_point.clone(), address.to_owned());
    let ask = move || {
        let found = look_up(&address);
        entry_point.command(Command::Found { number, address, found });
    };
    let thread = thread::Builder::new().name("muesli-names".to_owned()).spawn(ask);
    thread.map(|_| None).map_err(|error| format!("no thread to look names up: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::mailbox::signal::Signal;
    use crate::spaces::map::Deal;

    const PAUSES: (Duration, Duration) = (Duration::from_nanos(100), Duration::from_nanos(1000));

    #[test]
    fn whoever_cannot_be_reached_is_dialled_again_after_growing_pauses() {
        let servers = (0..3).map(|node| (NodeId(node), String::new())).collect();
        let map = Map::deal(servers, Deal { repositories: 3, ..Deal::default() }).unwrap();
        let mut targets = Targets::below(&map, NodeId(1), &[]);
        let mut now = Nanos(0);
        for most in [100, 200, 400, 800, 1000, 1000] {
            assert_eq!(targets.next_due(now), Some(0));
            assert_eq!(targets.next_due(now), None);
            targets.failed(0, now, PAUSES);
            let pause = targets.list[0].due - now;
            assert!((most / 2..most).contains(&pause.0), "{pause:?} of {most}");
            now = targets.list[0].due;
        }
        targets.succeeded(0, PAUSES.0);
        targets.failed(0, now, PAUSES);
        assert!((targets.list[0].due - now).0 < 100);
    }

    #[test]
    fn a_server_may_be_dialled_at_another_address_than_the_map_says() {
        let servers = (0..3).map(|node| (NodeId(node), format!("s{node}"))).collect();
        let map = Map::deal(servers, Deal { repositories: 3, ..Deal::default() }).unwrap();
        let others = [(NodeId(1), "proxy".to_owned())];
        let targets = Targets::below(&map, NodeId(2), &others);
        let addresses: Vec<_> = targets.list.iter().map(|target| &target.address[..]).collect();
        assert_eq!(addresses, ["s0", "proxy"]);
        let mut targets = Targets::anybody(&["s2".to_owned()], &others);
        assert_eq!(targets.found(&map, NodeId(2)), 2);
        let addresses: Vec<_> = targets.list.iter().map(|target| &target.address[..]).collect();
        assert_eq!(addresses, ["s0", "proxy", "s2"]);
    }

    #[test]
    fn whoever_has_left_is_not_dialled() {
        let servers = (0..4).map(|node| (NodeId(node), format!("s{node}"))).collect();
        let deal = Deal { repositories: 1, group: 3, ..Deal::default() };
        let map = Map::deal(servers, deal).unwrap();
        let fewer = map.with_catalog(std::sync::Arc::new(map.catalog.without(&[NodeId(1)])));
        let mut targets = Targets::below(&map, NodeId(3), &[]);
        targets.left(&fewer);
        let due: Vec<_> = std::iter::from_fn(|| targets.next_due(Nanos(0))).collect();
        assert_eq!(due, [0, 2]);
        assert_eq!(Targets::below(&fewer, NodeId(3), &[]).list.len(), 2);
    }

    #[test]
    fn names_are_looked_up_while_the_loop_goes_on() {
        static RESOLVER: Mutex<()> = Mutex::new(());
        let slow = |_: &str| {
            drop(RESOLVER.lock().unwrap());
            Ok("127.0.0.1:9".parse().unwrap())
        };
        let poll = mio::Poll::new().unwrap();
        let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
        let entry_point = Arc::new(EntryPoint::new(Arc::new(Signal::new(waker))));
        let commands = || std::mem::take(&mut *entry_point.commands.lock().unwrap());
        let resolver_hangs = RESOLVER.lock().unwrap();
        let numbers = begin_look_up(&entry_point, 1, "127.0.0.1:7", slow).unwrap();
        assert_eq!(numbers, Some("127.0.0.1:7".parse().unwrap()));
        assert_eq!(begin_look_up(&entry_point, 2, "name:7", slow), Ok(None));
        assert!(commands().is_empty());
        drop(resolver_hangs);
        let found = loop {
            if let Some(found) = commands().pop() {
                break found;
            }
            thread::sleep(Duration::from_millis(1));
        };
        let Command::Found { number: 2, address, found: Ok(found) } = found else {
            panic!("another command came");
        };
        assert_eq!((&*address, found), ("name:7", "127.0.0.1:9".parse().unwrap()));
    }

    #[test]
    fn a_search_tries_one_address_after_the_other() {
        let mut targets = Targets::anybody(&["a".to_owned(), "b".to_owned()], &[]);
        assert_eq!(targets.next_due(Nanos(0)), Some(0));
        assert_eq!(targets.next_due(Nanos(0)), None);
        targets.failed(0, Nanos(0), PAUSES);
        assert_eq!(targets.next_due(Nanos(0)), Some(1));
        let servers = (0..3).map(|node| (NodeId(node), String::new())).collect();
        let map = Map::deal(servers, Deal { repositories: 3, ..Deal::default() }).unwrap();
        assert_eq!(targets.found(&map, NodeId(2)), 2);
        assert_eq!((targets.next_due(Nanos(0)), targets.next_due(Nanos(0))), (Some(0), Some(1)));
        assert_eq!(targets.next_due(Nanos(0)), None);
    }
}
