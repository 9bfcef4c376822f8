//! Racks of a cluster on this machine: what goes between them passes links of so many packets and
//! bytes a second.
//!
//! Every connection between servers of different racks, and from the clients to servers of other
//! racks than theirs (the first), goes through this process. It takes what comes at once, so that
//! what was sent alone stays alone, and lets it leave when the uplink of the sender's rack and the
//! downlink of the receiver's have served it: each link is one server for all that share it, as in
//! the simulator. A packet is what was read at once, or each 1,448 bytes of it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli_sim::network::racks::{PACKET_BYTES, RackLoad};
use muesli_workloads::machines::racks::RackModel;

use super::ProxyAddresses;

/// Bytes taken at once.
const PIECE_BYTES: usize = 64 << 10;

/// The links of all racks, and what is needed to dial through them.
pub struct RackProxies {
    reached: ProxyAddresses,
}

struct SlowLinks {
    model: RackModel,
    /// When each rack's uplink and downlink have served what has come.
    free: Mutex<Vec<[Instant; 2]>>,
}

/// From which rack to which.
type Way = (usize, usize);

impl RackProxies {
    /// Links between the racks of servers at these addresses, dialled at `host`, which is this
    /// process's.
    ///
    /// # Errors
    /// The servers do not fill racks, or there are no ports left.
    pub fn between(
        addresses: &[String],
        model: RackModel,
        host: &str,
    ) -> anyhow::Result<RackProxies> {
        let (nodes, rack) = (addresses.len(), model.nodes);
        if rack == 0 || nodes % rack != 0 {
            bail!("{nodes} servers do not fill racks of {rack}: give a multiple of it");
        }
        let links = Arc::new(SlowLinks::new(model, nodes / rack));
        // From the first node of each rack to each node: all of a rack dial the same.
        let through = |from: usize, to: usize| match (from / rack, to / rack) {
            (from, there) if from == there => Ok(addresses[to].clone()),
            way => listen(&links, way, host, &addresses[to]),
        };
        let servers = (0..nodes).map(|to| through(0, to)).collect::<anyhow::Result<Vec<_>>>()?;
        let dial = |from: usize| -> anyhow::Result<String> {
            let below = (0..from).map(|to| Ok(format!("{to}={}", through(from, to)?)));
            Ok(below.collect::<anyhow::Result<Vec<_>>>()?.join(","))
        };
        let dial = (0..nodes).map(dial).collect::<anyhow::Result<_>>()?;
        Ok(RackProxies { reached: ProxyAddresses { servers, dial } })
    }

    /// How servers are reached.
    pub fn reached(&self) -> &ProxyAddresses {
        &self.reached
    }
}

impl SlowLinks {
    fn new(model: RackModel, racks: usize) -> SlowLinks {
        SlowLinks { model, free: Mutex::new(vec![[Instant::now(); 2]; racks]) }
    }

    /// When what has come at `now` has passed both links.
    fn pass(&self, now: Instant, (from, to): Way, bytes: u64) -> Instant {
        let load = RackLoad { packets: bytes.div_ceil(PACKET_BYTES), bytes };
        let occupied = Duration::from_nanos(self.model.link.time(load).as_nanos());
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let up = now.max(free[from][0]) + occupied;
        // Both are occupied at one time: what leaves one is at the other.
        let down = up.max(free[to][1] + occupied);
        (free[from][0], free[to][1]) = (up, down);
        down
    }
}

/// A way to dial from one rack to a server of another one; where it is dialled.
fn listen(links: &Arc<SlowLinks>, way: Way, host: &str, target: &str) -> anyhow::Result<String> {
    let listener = TcpListener::bind((host, 0)).context("no port for a link")?;
    let address = listener.local_addr()?.to_string();
    let (links, target) = (links.clone(), target.to_owned());
    let accept = move || {
        for caller in listener.incoming().flatten() {
            // A server that is not there yet is dialled again by who wants it.
            let Ok(called) = TcpStream::connect(&target) else { continue };
            let _ = carry(&links, way, &caller, &called);
        }
    };
    thread::Builder::new().name("rack-link".to_owned()).spawn(accept)?;
    Ok(address)
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
        thread::Builder::new().name("rack-link".to_owned()).spawn(take)?;
        let give = move || give(&waiting, target);
        thread::Builder::new().name("rack-link".to_owned()).spawn(give)?;
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

    fn links(nodes: usize, rack: usize) -> anyhow::Result<RackProxies> {
        let addresses: Vec<_> = (0..nodes).map(|port| format!("127.0.0.1:{}", port + 1)).collect();
        let model = RackModel { nodes: rack, link: RackLink::default() };
        RackProxies::between(&addresses, model, LOOPBACK)
    }

    #[test]
    fn servers_of_a_rack_reach_each_other_directly() {
        let links = links(4, 2).unwrap();
        let ProxyAddresses { servers, dial } = links.reached();
        assert_eq!(servers[..2], ["127.0.0.1:1", "127.0.0.1:2"]);
        assert!(servers[2..].iter().all(|at| !at.ends_with(":3") && !at.ends_with(":4")));
        assert_eq!(dial[1], "0=127.0.0.1:1");
        assert!(dial[3].contains(",2=127.0.0.1:3") && !dial[3].contains("0=127.0.0.1:1"));
        let error = self::links(4, 3).err().unwrap().to_string();
        assert_eq!(error, "4 servers do not fill racks of 3: give a multiple of it");
    }

    #[test]
    fn a_link_lets_packets_pass_at_its_rate_whoever_sends() {
        let link = RackLink { packets: 1_000, bandwidth: 0 };
        let links = SlowLinks::new(RackModel { nodes: 2, link }, 2);
        let begun = Instant::now();
        let pass = |way, bytes| links.pass(begun, way, bytes) - begun;
        assert_eq!(pass((0, 1), 10), Duration::from_millis(1));
        assert_eq!(pass((0, 1), 2 * PACKET_BYTES), Duration::from_millis(3));
        assert_eq!(pass((1, 0), 10), Duration::from_millis(1), "each way for itself");
    }

    #[test]
    fn what_is_said_arrives_in_order_and_ends_are_carried() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = server.local_addr().unwrap().to_string();
        let link = RackLink { packets: 2_000, bandwidth: 0 };
        let here = "127.0.0.1:1".to_owned();
        let links =
            RackProxies::between(&[here, there], RackModel { nodes: 1, link }, LOOPBACK).unwrap();
        let mut caller = TcpStream::connect(&links.reached().servers[1]).unwrap();
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
