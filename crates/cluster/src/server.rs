//! A server: a process that holds repositories. One loop, which is one node.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mio::Interest;
use muesli_core::{AnyMachine, AnyProtocol, Environment, Nanos, NodeId, Secret, Settings};
use muesli_group::Limits;
use muesli_log::{Cut, Opened, Sequence};
use muesli_registry::{Grouping, NoMasters, NoProtocol, canonical_name, stored_name};
use muesli_threads::ThreadsError;
use thiserror::Error;

use crate::clock::Clock;
use crate::door::Door;
use crate::durable::LogFiles;
use crate::files;
use crate::folder::{Folder, FolderError, Owner};
use crate::handshake::left;
use crate::heights::Heights;
use crate::hello::{ClusterId, Life, Station as Kind};
use crate::log::Memory;
use crate::lookout::look_out;
use crate::loop_state::LoopState;
use crate::map::{Deal, Map, MapError};
use crate::network::Network;
use crate::peers::{Identity, Peers};
use crate::proof;
use crate::rules;
use crate::signal::Signal;
use crate::space_limits;
use crate::station::LoopEngine;
use crate::targets::Targets;
use crate::turn::{Failed, LISTENER, Loop, WAKER};

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The cluster it belongs to; every server is given the same number, and not zero.
    pub cluster: ClusterId,
    /// Its name, one of those of `servers`.
    pub node: NodeId,
    /// Where it listens, as `host:port`; port 0 takes any that is free.
    pub listen: String,
    /// All servers of the cluster with the addresses at which others reach them. Empty: this one
    /// is alone, and reached where it listens.
    pub servers: Vec<(NodeId, String)>,
    /// Servers that this one reaches at another address than others do, as behind a proxy.
    pub dial: Vec<(NodeId, String)>,
    /// How many repositories hold the keys, dealt to the servers in turn.
    pub repositories: usize,
    /// How many repositories hold each key.
    pub replicas: usize,
    /// How many partitions there are for each repository.
    pub spread: usize,
    /// How many servers keep each repository; 1 is no group.
    pub group: u16,
    /// The time between two ticks of a group's consensus: a leader that is silent for about ten is
    /// followed by another.
    pub group_tick: Duration,
    /// A member of a group whose disk makes nothing stable for so long leaves leading to others.
    pub group_disk: Duration,
    /// How much members of groups keep and send at a time.
    pub group_limits: Limits,
    /// How many loops each process of the cluster runs.
    pub loops: usize,
    /// How many threads of each loop run procedures that have nothing to do with each other, its
    /// own included, under protocols that can; with 1 they are run one after the other.
    pub procedure_threads: usize,
    /// Whether it comes into a cluster of groups that runs already: it holds no members at first.
    pub joins: bool,
    /// Whether members that lost their memory go on with what the others know where a majority of
    /// their group has lost it: what only those knew is lost then.
    pub accepts_loss: bool,
    /// Which of the servers decide for the clients instead of each for itself, under protocols that
    /// have masters: `sinfonia`. They hold no repositories.
    pub masters: Vec<NodeId>,
    /// The protocol, by name; `muesli_registry::names` lists them.
    pub protocol: String,
    /// Size limits and times of the protocol; its seed, whether it logs and who runs its
    /// procedures are set at the start.
    pub settings: Settings,
    /// What survives the process.
    pub durability: Durability,
    /// A file of the log that has grown to so many bytes is followed by another one.
    pub log_segment_bytes: u64,
    /// When the log has grown by so many bytes of records, a checkpoint begins; 0: never.
    pub checkpoint_bytes: u64,
    /// With more bytes than this waiting for the disk, nothing is read from clients.
    pub log_backlog_bytes: usize,
    /// A file that says how the log's disk is to misbehave, for tests; see [`crate::trouble`].
    pub trouble: Option<PathBuf>,
    /// The cluster's secret, the same on all its servers: servers and administrators prove that
    /// they know it. Without one everybody is believed who can reach this server.
    pub secret: Option<Secret>,
    /// Whether clients have to prove the secret, too.
    pub clients_prove: bool,
    /// Without a secret: whether to listen where other machines can connect to, all the same.
    pub trusts_network: bool,
    /// Where what those who look after it should know is told, a line each.
    pub notice: fn(&str),
    /// Limits and times of connections.
    pub network: Network,
}

/// What survives a server's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing.
    #[default]
    Memory,
    /// Everything that was promised, in a log in this folder.
    Log(PathBuf),
}

impl Default for ServerOptions {
    /// A lone server that listens on the loopback interface.
    fn default() -> ServerOptions {
        ServerOptions {
            cluster: ClusterId(1),
            node: NodeId(0),
            listen: "127.0.0.1:7400".to_owned(),
            servers: Vec::new(),
            dial: Vec::new(),
            repositories: 1,
            replicas: 1,
            spread: 1,
            group: 1,
            group_tick: Duration::from_millis(20),
            group_disk: Duration::from_millis(400),
            group_limits: Limits::default(),
            loops: 1,
            procedure_threads: 1,
            joins: false,
            accepts_loss: false,
            masters: Vec::new(),
            protocol: "score".to_owned(),
            settings: Settings::default(),
            durability: Durability::Memory,
            log_segment_bytes: 64 << 20,
            checkpoint_bytes: 256 << 20,
            log_backlog_bytes: 64 << 20,
            trouble: None,
            secret: None,
            clients_prove: false,
            trusts_network: false,
            notice: |_| {},
            network: Network::default(),
        }
    }
}

/// Why a server cannot be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// Everybody who can reach the server could pass for a server or an administrator.
    #[error(
        "{address} can be reached from other machines, and there is no secret: whoever connects \
         could pass for a server of the cluster or for its administrator. Give all servers the \
         same `secret_file` (as made by `openssl rand -hex 32`), listen on a loopback address, or, \
         on a network that you trust, set `trust_network = true`"
    )]
    Unprotected {
        /// Where it would listen.
        address: SocketAddr,
    },
    /// Rules that the options break, all of them.
    #[error("this configuration cannot be: {}", .0.join("; "))]
    Rules(Vec<String>),
    /// Servers, repositories or replicas that cannot be.
    #[error(transparent)]
    Map(#[from] MapError),
    /// It is none of its own cluster's servers.
    #[error("node {0} is none of the servers of its cluster")]
    NotListed(u32),
    /// A number that means something else.
    #[error("cluster 0 stands for any cluster; give another number")]
    Cluster,
    /// Nobody can join where repositories stay where they are.
    #[error("a server can join a cluster of groups only: `group` is 1")]
    Joins,
    /// No such protocol.
    #[error(transparent)]
    Protocol(#[from] NoProtocol),
    /// Masters that the protocol does not have.
    #[error(transparent)]
    Masters(#[from] NoMasters),
    /// The server's files.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The map that was kept is another one than the one configured.
    #[error("the data in this folder belong to another cluster, which cannot be changed here: {0}")]
    OtherMap(String),
    /// It was taken off the cluster's list.
    #[error("{0}")]
    Left(String),
    /// Several loops need ports that can be counted up.
    #[error("{0}: with several loops, an address must end in a port above 0, counted up by loop")]
    Ports(String),
    /// The folder was written by another number of loops.
    #[error("the data in this folder are those of {before} loops, not of {loops}")]
    OtherLoops {
        /// As many wrote it.
        before: usize,
        /// As many are to run now.
        loops: usize,
    },
    /// Threads that there cannot be.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// The system lets the process open too few files.
    #[error(
        "the limit of open files (`ulimit -n`) is {limit}, and {used} are open: {room} are left \
         for connections beside those that the log needs; at least {least} are wanted"
    )]
    Files {
        /// The limit.
        limit: u64,
        /// How many are open already.
        used: u64,
        /// How many are left for connections.
        room: u64,
        /// How many there must be.
        least: u64,
    },
    /// The system has no poller.
    #[error("the system refused to wait for connections: {0}")]
    Poll(std::io::Error),
}

/// A server that is set up; [`run`](Server::run) serves.
pub struct Server {
    address: SocketAddr,
    door: Arc<Door>,
    serve: Box<dyn FnOnce() -> Result<(), Failed>>,
}

/// Stops a server, from any thread.
#[derive(Clone)]
pub struct StopServer(Arc<Door>);

impl StopServer {
    /// Tells the server to stop: it ends what is under way, for a second at most.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Server {
    /// Sets a server up: it listens from here on.
    ///
    /// # Errors
    /// Options that cannot be, or an address that cannot be listened on.
    pub fn open(options: ServerOptions) -> Result<Server, StartError> {
        let tick = Nanos(options.group_tick.as_nanos() as u64);
        let disk_ticks_max = (options.group_disk.as_nanos() as u64).div_ceil(tick.0.max(1));
        let limits = Limits { disk_ticks_max, ..options.group_limits };
        let grouping = Grouping { tick, accepts_loss: options.accepts_loss, limits };
        let grouping = (options.group > 1).then_some(grouping);
        let protocol = muesli_registry::protocol(&options.protocol, grouping)?;
        open(options, protocol)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What stops it.
    pub fn stop(&self) -> StopServer {
        StopServer(self.door.clone())
    }

    /// Serves on this thread, until it is stopped.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn run(self) -> Result<(), Failed> {
        (self.serve)()
    }
}

fn open(options: ServerOptions, protocol: Arc<dyn AnyProtocol>) -> Result<Server, StartError> {
    if options.cluster == ClusterId(0) {
        return Err(StartError::Cluster);
    }
    let broken = rules::broken(&options);
    if !broken.is_empty() {
        return Err(StartError::Rules(broken));
    }
    if !options.masters.is_empty() && !protocol.has_masters() {
        return Err(NoMasters { name: options.protocol }.into());
    }
    let listener = listen(&options.listen)?;
    let address = listener.local_addr().map_err(StartError::Poll)?;
    if options.secret.is_none() && !options.trusts_network && !address.ip().is_loopback() {
        return Err(StartError::Unprotected { address });
    }
    let mut servers = options.servers.clone();
    if servers.is_empty() {
        servers.push((options.node, address.to_string()));
    }
    let ServerOptions { repositories, replicas, spread, loops, .. } = options;
    let group = options.group.max(1);
    let deal = Deal { repositories, replicas, spread, group, loops };
    let map = Map::deal_beside(servers, deal, &options.masters)?;
    let map = match options.joins {
        true if group <= 1 => return Err(StartError::Joins),
        true => map.unplaced(),
        false => map,
    };
    if map.address_of(options.node).is_none() {
        return Err(StartError::NotListed(options.node.0));
    }
    let poll = mio::Poll::new().map_err(StartError::Poll)?;
    let mut listener = mio::net::TcpListener::from_std(listener);
    let registry = poll.registry();
    registry.register(&mut listener, LISTENER, Interest::READABLE).map_err(StartError::Poll)?;
    let waker = mio::Waker::new(registry, WAKER).map_err(StartError::Poll)?;
    let door = Arc::new(Door::new(Arc::new(Signal::new(waker))));
    let network = files::network_within_limit(&options, map.servers.len())?;
    let clock = Clock::troubled(options.trouble.as_deref());
    let prepared = prepare(&options, &*protocol, (map, clock.now().as_millis()), door.clone())?;
    judge_frame(&prepared.map, &options)?;
    let (for_loop, over) = (door.clone(), door.clone());
    let serve = move || {
        let ReadyServer { inner, map, life, begun, begins, folder, fresh } = prepared;
        let me = Identity {
            cluster: options.cluster,
            protocol: spoken(&options.protocol, group),
            station: Kind::Server,
            node: options.node,
            life,
            begun,
            process: fastrand::u64(1..),
            secret: options.secret.clone(),
        };
        look_out(for_loop.clone(), &map, options.node, options.secret.clone());
        let targets = Targets::below(&map, options.node, &options.dial);
        let station = LoopEngine::new(0, inner, clock);
        let mut peers = Peers::new(me, Some(map), Some(listener), targets);
        peers.heights = Heights::recall(&folder.as_ref().map(Folder::heard).unwrap_or_default());
        (peers.folder, peers.fresh, peers.begins) = (folder, fresh, begins);
        peers.clients_prove = options.clients_prove;
        let mut serving = Loop::new(station, peers, poll, for_loop, network);
        serving.notice = options.notice;
        let ended = serving.run().map(drop);
        over.stop();
        ended
    };
    Ok(Server { address, door, serve: Box::new(serve) })
}

/// Whether the map fits into a frame of this server.
fn judge_frame(map: &Map, options: &ServerOptions) -> Result<(), MapError> {
    Ok(space_limits::judge_frame(map, options.network.frame_bytes_max)?)
}

/// What servers and clients of a cluster speak: the protocol, and that of groups around it.
pub(crate) fn spoken(protocol: &str, group: u16) -> String {
    let name = stored_name(protocol);
    if group > 1 { format!("{name} in groups of {group}") } else { name.to_owned() }
}

/// Whether two say the same protocol, under whichever of its names.
pub(crate) fn is_same_protocol(one: &str, other: &str) -> bool {
    fn parts(spoken: &str) -> (&str, &str) {
        let (name, groups) = spoken.split_at(spoken.find(' ').unwrap_or(spoken.len()));
        (canonical_name(name), groups)
    }
    parts(one) == parts(other)
}

/// A server's node with what it held before, and who it is.
struct ReadyServer {
    inner: LoopState,
    map: Map,
    life: Life,
    /// When that began.
    begun: u64,
    /// It began with this start.
    begins: bool,
    folder: Option<Folder>,
    /// It had no files.
    fresh: bool,
}

fn prepare(
    options: &ServerOptions,
    protocol: &dyn AnyProtocol,
    (map, wall_millis): (Map, u64),
    door: Arc<Door>,
) -> Result<ReadyServer, StartError> {
    let most = options.network.frame_bytes_max;
    let Durability::Log(path) = &options.durability else {
        let machine = machine(options, protocol, &map, fastrand::u32(1..))?;
        let inner = LoopState::new(machine, Box::new(Memory::default()), most);
        let life = Life(fastrand::u64(1..));
        let (begun, begins) = (wall_millis, true);
        return Ok(ReadyServer { inner, map, life, begun, begins, folder: None, fresh: true });
    };
    // Nothing is changed before the folder is locked and its data are known to be this server's.
    let folder = Folder::open(path)?;
    let spoken = spoken(&options.protocol, options.group);
    let owner = Owner { cluster: options.cluster, node: options.node, protocol: spoken };
    let before = folder.identity(&owner)?;
    let kept = folder.map()?;
    let fresh = kept.is_none();
    let map = match kept {
        Some(kept) => {
            let differences = || kept.differences(&map).join("; ");
            kept.moved_to(&map).ok_or_else(|| StartError::OtherMap(differences()))?
        }
        None => map,
    };
    if map.has_left(options.node) {
        return Err(StartError::Left(left(options.node)));
    }
    let begins = before.is_none() || options.accepts_loss;
    let me = folder.begin(before, owner, options.accepts_loss, wall_millis)?;
    folder.keep_map(&map)?;
    let mut machine = machine(options, protocol, &map, me.starts)?;
    let wake = move || door.signal.raise();
    let files = LogFiles {
        options: muesli_log::Options {
            owner: me.life,
            segment_bytes: options.log_segment_bytes,
            backlog_bytes: options.log_backlog_bytes,
            ..muesli_log::Options::default()
        },
        checkpoint_bytes: options.checkpoint_bytes,
        trouble: options.trouble.clone(),
    };
    let (log, opened) = folder.open_log(files, &mut *machine, options.notice, wake)?;
    tell(&opened, options.notice);
    let inner = LoopState::new(machine, Box::new(log), most);
    let (life, begun) = (Life(me.life), me.begun);
    Ok(ReadyServer { inner, map, life, begun, begins, folder: Some(folder), fresh })
}

/// Tells what the log held.
fn tell(opened: &Opened, notice: fn(&str)) {
    if let Some(cut) = &opened.cut {
        notice(&what_was_cut(cut, opened.last));
    }
    for (file, why) in &opened.unusable {
        notice(&format!("the checkpoint {file} could not be used, and an older one was: {why}"));
    }
    match opened.checkpoint {
        Some(covers) => notice(&format!(
            "a checkpoint held the first {} records, and the log the next {}",
            covers.0, opened.records
        )),
        None => notice(&format!("the log held {} records", opened.records)),
    }
}

/// Which kind of broken tail was cut, behind the log's last record.
fn what_was_cut(cut: &Cut, last: Sequence) -> String {
    let Cut { file, offset, bytes, what, later } = cut;
    let found = match later {
        None => {
            "nothing whole follows, as when the process or its power ended while it was written"
                .to_owned()
        }
        Some(last) => format!(
            "whole records up to {last} follow, as when the power failed while it was written, or \
             when a byte was damaged after it was synced; only then was anybody told of it"
        ),
    };
    format!(
        "{file} broke off after record {last}: {bytes} bytes of a last batch, which no mark says \
         were stable, were cut at byte {offset} ({what}; {found})"
    )
}

fn listen(address: &str) -> Result<TcpListener, StartError> {
    let told = |error| StartError::Listen { address: address.to_owned(), error };
    let addresses: Vec<_> = address.to_socket_addrs().map_err(told)?.collect();
    let listener = TcpListener::bind(&addresses[..]).map_err(told)?;
    listener.set_nonblocking(true).map_err(told)?;
    Ok(listener)
}

fn machine(
    options: &ServerOptions,
    protocol: &dyn AnyProtocol,
    map: &Map,
    incarnation: u32,
) -> Result<Box<dyn AnyMachine>, ThreadsError> {
    let settings = Settings {
        hash_seed: fastrand::u64(..),
        // A group agrees on its log also where no disk keeps it.
        logging: options.durability != Durability::Memory || options.group > 1,
        secret: options.secret.clone(),
        issuer: Some(proof::issuer(options.cluster, options.secret.as_ref())),
        parallel: muesli_threads::parallel(options.procedure_threads)?,
        ..options.settings.clone()
    };
    let (catalog, settings) = (map.catalog.clone(), Arc::new(settings));
    let environment = Environment::default();
    Ok(protocol.machine(options.node, incarnation, catalog, settings, environment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_broken_tail_is_told() {
        let what = "its checksum is wrong";
        let torn = Cut { file: "log-1".to_owned(), offset: 80, bytes: 30, what, later: None };
        let told = what_was_cut(&torn, Sequence(7));
        assert_eq!(
            told,
            "log-1 broke off after record 7: 30 bytes of a last batch, which no mark says were \
             stable, were cut at byte 80 (its checksum is wrong; nothing whole follows, as when \
             the process or its power ended while it was written)"
        );
        let gap = Cut { later: Some(Sequence(9)), ..torn };
        let told = what_was_cut(&gap, Sequence(7));
        assert_eq!(
            told,
            "log-1 broke off after record 7: 30 bytes of a last batch, which no mark says were \
             stable, were cut at byte 80 (its checksum is wrong; whole records up to 9 follow, \
             as when the power failed while it was written, or when a byte was damaged after it \
             was synced; only then was anybody told of it)"
        );
    }
}
