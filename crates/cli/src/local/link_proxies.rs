//! Links between the servers of a cluster on this machine, and from clients to them: racks whose
//! links take so many packets and bytes a second, or sites that are far from each other.
//!
//! Every connection between servers of different places, racks or sites, and from clients to
//! servers of other places than theirs, goes through this process. It takes what comes at once, so
//! that what was sent alone stays alone, and lets it leave when it is due. Between racks that is
//! when the uplink of the sender's rack and the downlink of the receiver's have served it: each
//! link is one server for all that share it, as in the simulator; a packet is what was read at
//! once, or each 1,448 bytes of it. Between sites it is when half of their round trip is over.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli_sim::network::racks::{PACKET_BYTES, RackLoad};
use muesli_workloads::geography::Geography;
use muesli_workloads::machines::racks::RackModel;

use super::ProxyAddresses;
use super::addresses::free_addresses_at;

/// Bytes taken at once.
const PIECE_BYTES: usize = 64 << 10;

/// An address that is still occupied is tried so often again, after so long each time.
const BIND_TRIES: u32 = 100;
const BIND_PAUSE: Duration = Duration::from_millis(10);

/// What is between the servers of a local cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LinkModel {
    /// Nothing: all share one network.
    #[default]
    None,
    /// They fill racks by their numbers.
    Racks(RackModel),
    /// They are at these sites in turn.
    Sites(Geography),
}

impl LinkModel {
    /// How many racks or sites so many servers have.
    ///
    /// # Errors
    /// They do not fill racks, or are fewer than sites.
    fn places(&self, servers: usize) -> anyhow::Result<usize> {
        match self {
            LinkModel::None => Ok(1),
            LinkModel::Racks(RackModel { nodes: rack, .. }) => {
                if *rack == 0 || !servers.is_multiple_of(*rack) {
                    bail!("{servers} servers do not fill racks of {rack}: give a multiple of it");
                }
                Ok(servers / rack)
            }
            LinkModel::Sites(geography) => {
                let sites = geography.names().len();
                if servers < sites {
                    bail!(
                        "{servers} servers for {sites} sites: there must be one at each, or fewer \
                         sites (--sites)"
                    );
                }
                Ok(sites)
            }
        }
    }

    /// In which of them a server is.
    pub fn place(&self, server: usize) -> usize {
        match self {
            LinkModel::None => 0,
            LinkModel::Racks(racks) => server / racks.nodes,
            LinkModel::Sites(geography) => server % geography.names().len(),
        }
    }
}

/// One link: who dials there reaches a server of another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceLink {
    /// The place of who dials, and of whom it reaches.
    way: Way,
    /// Where it is dialled.
    listen: String,
    /// Where the server listens.
    target: String,
}

/// All links of a cluster, and how its servers are reached through them.
pub struct LinkPlan {
    model: LinkModel,
    /// Where the servers listen.
    addresses: Vec<String>,
    links: Vec<PlaceLink>,
}

/// From which place to which.
type Way = (usize, usize);

impl LinkPlan {
    /// Links between the places of servers at these addresses, dialled at `host`, which is this
    /// machine's. Each place has a link to each server of another one.
    ///
    /// # Errors
    /// The servers do not fill racks or sites, or there are no ports left.
    pub fn between(addresses: &[String], model: LinkModel, host: &str) -> anyhow::Result<LinkPlan> {
        let places = model.places(addresses.len())?;
        let ways = || {
            let all = addresses.iter().enumerate();
            all.flat_map(|(server, at)| (0..places).map(move |from| (from, server, at)))
                .filter(|(from, server, _)| model.place(*server) != *from)
        };
        let free = free_addresses_at(host, ways().count(), 1)?;
        let links = ways().zip(free).map(|((from, server, target), listen)| {
            let way = (from, model.place(server));
            PlaceLink { way, listen, target: target.clone() }
        });
        let links = links.collect();
        Ok(LinkPlan { addresses: addresses.to_vec(), links, model })
    }

    /// Where a server is dialled from a place.
    fn address(&self, from: usize, server: usize) -> &str {
        let target = &self.addresses[server];
        let link = self.links.iter().find(|link| link.way.0 == from && link.target == *target);
        link.map_or(target, |link| &link.listen)
    }

    /// Where all servers are dialled from a place.
    pub fn seen_from(&self, place: usize) -> Vec<String> {
        (0..self.addresses.len()).map(|server| self.address(place, server).to_owned()).collect()
    }

    /// How servers are reached: as clients of the first place are told, and as each other.
    pub fn reached(&self) -> ProxyAddresses {
        let dial = |from: usize| {
            let place = self.model.place(from);
            let below = (0..from).map(|to| format!("{to}={}", self.address(place, to)));
            below.collect::<Vec<_>>().join(",")
        };
        let dial = (0..self.addresses.len()).map(dial).collect();
        ProxyAddresses { servers: self.seen_from(0), dial }
    }

    /// Carries what is sent over the links, on threads that end with this process.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn carry(&self) -> anyhow::Result<()> {
        let links = Arc::new(SlowLinks::new(self.model.clone(), self.addresses.len()));
        self.links.iter().try_for_each(|link| listen(&links, link))
    }

    /// The links as lines of a file.
    pub fn lines(&self) -> String {
        let line = |link: &PlaceLink| {
            let (from, to) = link.way;
            format!("{from} {to} {} {}\n", link.listen, link.target)
        };
        self.links.iter().map(line).collect()
    }

    /// The links that [`lines`](Self::lines) gave.
    ///
    /// # Errors
    /// They are others.
    pub fn read(text: &str, addresses: &[String], model: LinkModel) -> anyhow::Result<LinkPlan> {
        let link = |line: &str| -> Option<PlaceLink> {
            let mut words = line.split_whitespace();
            let way = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let (listen, target) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some(PlaceLink { way, listen, target })
        };
        let read = |line| link(line).with_context(|| format!("`{line}` is no link"));
        let links = text.lines().map(read).collect::<anyhow::Result<_>>()?;
        Ok(LinkPlan { model, addresses: addresses.to_vec(), links })
    }
}

/// The links while they carry something.
struct SlowLinks {
    model: LinkModel,
    /// When each rack's uplink and downlink have served what has come.
    free: Mutex<Vec<[Instant; 2]>>,
}

impl SlowLinks {
    fn new(model: LinkModel, servers: usize) -> SlowLinks {
        SlowLinks { model, free: Mutex::new(vec![[Instant::now(); 2]; servers]) }
    }

    /// When what has come at `now` is to leave.
    fn pass(&self, now: Instant, (from, to): Way, bytes: u64) -> Instant {
        let racks = match &self.model {
            LinkModel::None => return now,
            LinkModel::Sites(geography) => {
                return now + Duration::from_nanos(geography.one_way(from, to).as_nanos());
            }
            LinkModel::Racks(racks) => racks,
        };
        let load = RackLoad { packets: bytes.div_ceil(PACKET_BYTES), bytes };
        let occupied = Duration::from_nanos(racks.link.time(load).as_nanos());
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let up = now.max(free[from][0]) + occupied;
        // Both are occupied at one time: what leaves one is at the other.
        let down = up.max(free[to][1] + occupied);
        (free[from][0], free[to][1]) = (up, down);
        down
    }
}

/// Listens at an address that was just free: whoever this process has forked has it for a moment
/// longer, until it runs its own program.
fn bind_soon(at: &str) -> std::io::Result<TcpListener> {
    for _ in 0..BIND_TRIES {
        match TcpListener::bind(at) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => thread::sleep(BIND_PAUSE),
            bound => return bound,
        }
    }
    TcpListener::bind(at)
}

/// Takes connections of a link.
fn listen(links: &Arc<SlowLinks>, link: &PlaceLink) -> anyhow::Result<()> {
    let at = &link.listen;
    let listener = bind_soon(at).with_context(|| format!("no link at {at}"))?;
    let (links, way, target) = (links.clone(), link.way, link.target.clone());
    let accept = move || {
        for caller in listener.incoming().flatten() {
            // A server that is not there yet is dialled again by who wants it.
            let Ok(called) = TcpStream::connect(&target) else { continue };
            let _ = carry(&links, way, &caller, &called);
        }
    };
    thread::Builder::new().name("link".to_owned()).spawn(accept)?;
    Ok(())
}

fn carry(
    links: &Arc<SlowLinks>,
    (from, to): Way,
    caller: &TcpStream,
    called: &TcpStream,
) -> std::io::Result<()> {
    for (source, target, way) in [(caller, called, (from, to)), (called, caller, (to, from))] {
        source.set_nodelay(true)?;
        let (mut source, target) = (source.try_clone()?, target.try_clone()?);
        let (sender, waiting) = channel();
        let links = links.clone();
        let take = move || {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let count = source.read(&mut piece).unwrap_or(0);
                let due = links.pass(Instant::now(), way, count as u64);
                if count == 0 {
                    return; // The other thread ends when it has given what was taken.
                }
                if sender.send((due, piece[..count].to_vec())).is_err() {
                    let _ = source.shutdown(Shutdown::Both); // It may be broken already.
                    return;
                }
            }
        };
        thread::Builder::new().name("link".to_owned()).spawn(take)?;
        let give = move || give(&waiting, target);
        thread::Builder::new().name("link".to_owned()).spawn(give)?;
    }
    Ok(())
}

/// Gives on what was taken, each piece when it is due.
fn give(waiting: &Receiver<(Instant, Vec<u8>)>, mut target: TcpStream) {
    while let Ok((due, piece)) = waiting.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if target.write_all(&piece).is_err() {
            return;
        }
    }
    let _ = target.shutdown(Shutdown::Write); // It may be broken already.
}

#[cfg(test)]
mod tests {
    use muesli_sim::network::racks::RackLink;

    use super::*;

    const LOOPBACK: &str = "127.0.0.1";

    fn ports(nodes: usize) -> Vec<String> {
        (0..nodes).map(|port| format!("127.0.0.1:{}", port + 1)).collect()
    }

    fn racks(nodes: usize, link: RackLink) -> LinkModel {
        LinkModel::Racks(RackModel { nodes, link })
    }

    fn plan(nodes: usize, model: LinkModel) -> anyhow::Result<LinkPlan> {
        LinkPlan::between(&ports(nodes), model, LOOPBACK)
    }

    #[test]
    fn servers_of_a_rack_reach_each_other_directly() {
        let plan = plan(4, racks(2, RackLink::default())).unwrap();
        let ProxyAddresses { servers, dial } = plan.reached();
        assert_eq!(servers[..2], ["127.0.0.1:1", "127.0.0.1:2"]);
        assert!(servers[2..].iter().all(|at| !at.ends_with(":3") && !at.ends_with(":4")));
        assert_eq!(dial[1], "0=127.0.0.1:1");
        assert!(dial[3].ends_with(",2=127.0.0.1:3") && !dial[3].starts_with("0=127.0.0.1:1,"));
        let error = self::plan(4, racks(3, RackLink::default())).err().unwrap().to_string();
        assert_eq!(error, "4 servers do not fill racks of 3: give a multiple of it");
    }

    #[test]
    fn servers_are_dealt_to_sites() {
        let sites = || LinkModel::Sites(Geography::parse("a\nb 10").unwrap());
        let plan = plan(3, sites()).unwrap();
        let seen = [0, 1].map(|site| plan.seen_from(site));
        let direct = |site: usize, server: usize| seen[site][server] == ports(3)[server];
        assert!(direct(0, 0) && !direct(0, 1) && direct(0, 2));
        assert!(!direct(1, 0) && direct(1, 1) && !direct(1, 2));
        let again = LinkPlan::read(&plan.lines(), &ports(3), sites()).unwrap();
        assert_eq!((again.links, again.addresses), (plan.links, plan.addresses));
        assert!(LinkPlan::read("0 x", &[], sites()).err().unwrap().to_string().contains("`0 x`"));
        let error = self::plan(1, sites()).err().unwrap().to_string();
        assert!(error.contains("1 servers for 2 sites"), "{error}");
    }

    #[test]
    fn a_link_lets_packets_pass_at_its_rate_whoever_sends() {
        let link = RackLink { packets: 1_000, bandwidth: 0 };
        let links = SlowLinks::new(racks(2, link), 2);
        let begun = Instant::now();
        let pass = |way, bytes| links.pass(begun, way, bytes) - begun;
        assert_eq!(pass((0, 1), 10), Duration::from_millis(1));
        assert_eq!(pass((0, 1), 2 * PACKET_BYTES), Duration::from_millis(3));
        assert_eq!(pass((1, 0), 10), Duration::from_millis(1), "each way for itself");
    }

    #[test]
    fn between_sites_all_passes_after_half_of_the_round_trip() {
        let links = SlowLinks::new(LinkModel::Sites(Geography::seven()), 7);
        let begun = Instant::now();
        let pass = |way| links.pass(begun, way, 1 << 20) - begun;
        assert_eq!([pass((0, 1)), pass((0, 1))], [Duration::from_micros(40_250); 2]);
    }

    #[test]
    fn what_is_said_arrives_in_order_and_ends_are_carried() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = server.local_addr().unwrap().to_string();
        let here = "127.0.0.1:1".to_owned();
        let slow = racks(1, RackLink { packets: 2_000, bandwidth: 0 });
        let plan = LinkPlan::between(&[here, there], slow, LOOPBACK).unwrap();
        plan.carry().unwrap();
        let mut caller = TcpStream::connect(&plan.reached().servers[1]).unwrap();
        let (mut called, _) = server.accept().unwrap();
        for number in 0..20_u8 {
            caller.write_all(&[number]).unwrap();
            thread::sleep(Duration::from_micros(100));
        }
        caller.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        called.read_to_end(&mut all).unwrap();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
    }
}
