//! A server process with several loops, one per core.
//!
//! Each loop is a node: it has repositories, connections, a port and a log of its own, and shares
//! nothing with the others. Its number and its port are counted up from those of the process, so
//! that all servers of a cluster, which must have as many loops, know each other's loops from the
//! list of servers alone. Loops of one process speak to each other as to all others, with the same
//! frames and handshakes, but over pipes in memory, without the system (`mailbox/pipe.rs`). A
//! client speaks to every loop directly, over a connection each; so little is said between loops
//! but where votes climb a tree, or a transaction is finished without its client.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{self, JoinHandle};

use muesli_core::NodeId;
use muesli_core::catalog::Sites;

use crate::connections::neighbours::Neighbours;
use crate::dispatch::failure::LoopFailure;
use crate::lifecycle::options::{Durability, ServerOptions};
use crate::lifecycle::server::{Server, StopServer};
use crate::lifecycle::start_error::StartError;
use crate::storage::loop_folders::{folder_of_loop, make_loop_folders};

/// A process that is set up; [`run`](Process::run) serves.
pub struct Process {
    first: Server,
    others: Vec<JoinHandle<Result<(), LoopFailure>>>,
    stops: StopAll,
}

/// Stops all loops of a process, from any thread.
#[derive(Clone, Default)]
pub struct StopAll(Arc<Mutex<Stops>>);

#[derive(Default)]
struct Stops {
    stopped: bool,
    loops: Vec<StopServer>,
}

impl StopAll {
    /// Tells the loops to stop; each ends what is under way, for a second at most.
    pub fn stop(&self) {
        let mut stops = self.lock();
        stops.stopped = true;
        stops.loops.iter().for_each(StopServer::stop);
    }

    fn add(&self, stop: StopServer) {
        let mut stops = self.lock();
        if stops.stopped {
            stop.stop();
        }
        stops.loops.push(stop);
    }

    fn lock(&self) -> MutexGuard<'_, Stops> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// Where a loop ends, or panics, the others are told to stop.
struct StopsOthers(StopAll);

impl Drop for StopsOthers {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Process {
    /// Sets up a process with so many loops: all of them listen from here on. The options are
    /// those of the process, with one entry for each process in the lists of servers.
    ///
    /// # Errors
    /// Options that cannot be, or an address that cannot be listened on.
    pub fn open(options: &ServerOptions, loops: usize) -> Result<Process, StartError> {
        if let Durability::Log(path) = &options.durability {
            make_loop_folders(path, loops)?;
        }
        let stops = StopAll::default();
        let neighbours = Neighbours::default();
        let first = Server::open_beside(of_loop(options, 0, loops)?, &neighbours)?;
        stops.add(first.stop());
        let mut others = Vec::new();
        for number in 1..loops {
            match start(of_loop(options, number, loops)?, &neighbours, &stops) {
                Ok(thread) => others.push(thread),
                Err(error) => {
                    stops.stop();
                    return Err(error);
                }
            }
        }
        Ok(Process { first, others, stops })
    }

    /// Where its first loop listens.
    pub fn address(&self) -> SocketAddr {
        self.first.address()
    }

    /// What stops it.
    pub fn stop(&self) -> StopAll {
        self.stops.clone()
    }

    /// Serves, with this thread as the first loop's, until it is stopped.
    ///
    /// # Errors
    /// A loop cannot go on; the others were stopped then.
    pub fn run(self) -> Result<(), LoopFailure> {
        let stops_others = StopsOthers(self.stops);
        let mut ended = self.first.run();
        drop(stops_others);
        for thread in self.others {
            let other = thread.join().unwrap_or(Err(LoopFailure::Panicked));
            ended = ended.and(other);
        }
        ended
    }
}

/// Opens and runs a loop on a thread of its own.
fn start(
    options: ServerOptions,
    neighbours: &Neighbours,
    stops: &StopAll,
) -> Result<JoinHandle<Result<(), LoopFailure>>, StartError> {
    let (sender, receiver) = mpsc::channel();
    let (all, neighbours) = (stops.clone(), neighbours.clone());
    let name = format!("muesli-loop-{}", options.node.0);
    let run = move || {
        let server = match Server::open_beside(options, &neighbours) {
            Ok(server) => server,
            Err(error) => {
                let _ = sender.send(Err(error)); // Whoever opens the process waits for it.
                return Ok(());
            }
        };
        let _ = sender.send(Ok(server.stop()));
        let _stops_others = StopsOthers(all);
        server.run()
    };
    let thread = thread::Builder::new().name(name).spawn(run).map_err(StartError::Poll)?;
    let opened = receiver.recv().map_err(|gone| StartError::Poll(std::io::Error::other(gone)))?;
    stops.add(opened?);
    Ok(thread)
}

/// Where the loops of servers are.
fn sites_of_loops<L: Iterator<Item = NodeId>>(
    sites: &Sites,
    loops_of: impl Fn(&NodeId) -> L,
) -> Sites {
    let all = sites.all().map(|(name, nodes)| (name, nodes.iter().flat_map(&loops_of).collect()));
    let all: Vec<(&str, Vec<NodeId>)> = all.collect();
    Sites::new(&all).expect("no server was at two")
}

/// The options of one of a process's loops.
fn of_loop(
    options: &ServerOptions,
    number: usize,
    loops: usize,
) -> Result<ServerOptions, StartError> {
    if loops <= 1 {
        return Ok(options.clone());
    }
    let all_of = |process: &NodeId| {
        let process = *process;
        (0..loops).map(move |number| node_of(process, number, loops))
    };
    let alone = [(options.node, options.listen.clone())];
    let servers = if options.servers.is_empty() { &alone[..] } else { &options.servers };
    let durability = match &options.durability {
        Durability::Memory => Durability::Memory,
        Durability::Log(path) => Durability::Log(folder_of_loop(path, number, loops)),
    };
    let mut group_limits = options.group_limits;
    group_limits.log_bytes_max /= loops as u64;
    Ok(ServerOptions {
        group_limits,
        node: node_of(options.node, number, loops),
        listen: shifted(&options.listen, number)?,
        loops,
        servers: each_loop(servers, loops)?,
        dial: each_loop(&options.dial, loops)?,
        masters: options.masters.iter().flat_map(all_of).collect(),
        validator_servers: options.validator_servers.iter().flat_map(all_of).collect(),
        sites: sites_of_loops(&options.sites, all_of),
        durability,
        ..options.clone()
    })
}

/// The list of servers with an entry for each loop.
fn each_loop(
    servers: &[(NodeId, String)],
    loops: usize,
) -> Result<Vec<(NodeId, String)>, StartError> {
    let all = servers.iter().flat_map(|server| (0..loops).map(move |number| (server, number)));
    all.map(|((node, at), number)| Ok((node_of(*node, number, loops), shifted(at, number)?)))
        .collect()
}

fn node_of(process: NodeId, number: usize, loops: usize) -> NodeId {
    NodeId(process.0 * loops as u32 + number as u32)
}

/// An address with a port that is so much higher.
fn shifted(address: &str, by: usize) -> Result<String, StartError> {
    let ports_error = || StartError::Ports(address.to_owned());
    let (host, port) = address.rsplit_once(':').ok_or_else(ports_error)?;
    let port: u16 = port.parse().map_err(|_| ports_error())?;
    let port = port.checked_add(by as u16).filter(|_| port > 0).ok_or_else(ports_error)?;
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_counted_up_from_their_processes() {
        let servers = [(NodeId(0), "a:10".to_owned()), (NodeId(1), "[::1]:20".to_owned())];
        let options = ServerOptions {
            node: NodeId(1),
            listen: "0.0.0.0:20".to_owned(),
            servers: servers.to_vec(),
            durability: Durability::Log("data".into()),
            masters: vec![NodeId(1)],
            validator_servers: vec![NodeId(0)],
            sites: Sites::new(&[("east", &[NodeId(1)])]).unwrap(),
            ..ServerOptions::default()
        };
        let last = of_loop(&options, 1, 2).unwrap();
        assert_eq!((last.node, &*last.listen), (NodeId(3), "0.0.0.0:21"));
        assert_eq!(last.masters, [NodeId(2), NodeId(3)]);
        assert!(last.sites.are_colocated(NodeId(2), NodeId(3)));
        assert_eq!(last.sites.of(NodeId(1)), None);
        assert_eq!(last.validator_servers, [NodeId(0), NodeId(1)]);
        let ports_error = ["a:10", "a:11", "[::1]:20", "[::1]:21"].map(str::to_owned);
        assert_eq!(last.servers, (0..).map(NodeId).zip(ports_error).collect::<Vec<_>>());
        assert_eq!(last.durability, Durability::Log("data/loop-1".into()));
        assert_eq!(of_loop(&options, 0, 1).unwrap().listen, options.listen);
        let any = ServerOptions { listen: "a:0".to_owned(), ..options };
        assert!(matches!(of_loop(&any, 1, 2), Err(StartError::Ports(_))));
    }
}
