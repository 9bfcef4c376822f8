//! A server: a process that holds repositories. One loop, which is one node.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use mio::Interest;
use muesli_core::recorder::accesses::AccessSampler;
use muesli_core::{AnyMachine, AnyProtocol, Environment, Nanos, Settings};
use muesli_group::Limits;
use muesli_registry::{Grouping, NoMasters, check_shards, check_tree};
use muesli_threads::ThreadsError;

use crate::connections::heights::Heights;
use crate::connections::neighbours::Neighbours;
use crate::connections::peers::{Peers, ProcessIdentity};
use crate::connections::targets::Targets;
use crate::dispatch::event_loop::{LISTENER, Loop, WAKER};
use crate::dispatch::failure::LoopFailure;
use crate::lifecycle::lookout::look_out;
use crate::lifecycle::options::{Durability, ServerOptions};
use crate::lifecycle::start_error::StartError;
use crate::lifecycle::{open_files, validation};
use crate::mailbox::entry_point::EntryPoint;
use crate::mailbox::signal::Signal;
use crate::node::clock::ProcessClock;
use crate::node::engine::LoopEngine;
use crate::node::loop_state::LoopState;
use crate::spaces::error::MapError;
use crate::spaces::limits;
use crate::spaces::map::{Beside, Deal, Map};
use crate::spaces::parts::MapParts;
use crate::storage::folder::{Folder, FolderOwner};
use crate::storage::log::MemoryLog;
use crate::storage::write_ahead::LogFiles;
use crate::wire::hello::ProcessKind as Kind;
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::proof;
use crate::wire::protocol_name::spoken;
use crate::wire::refusal::left;

/// A server that is set up; [`run`](Server::run) serves.
pub struct Server {
    address: SocketAddr,
    entry_point: Arc<EntryPoint>,
    serve: Box<dyn FnOnce() -> Result<(), LoopFailure>>,
}

/// Stops a server, from any thread.
#[derive(Clone)]
pub struct StopServer(Arc<EntryPoint>);

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
        Server::open_beside(options, &Neighbours::default())
    }

    /// As [`open`](Server::open), beside other loops of the process.
    pub(crate) fn open_beside(
        options: ServerOptions,
        neighbours: &Neighbours,
    ) -> Result<Server, StartError> {
        let tick = Nanos(options.group_tick.as_nanos() as u64);
        let disk_ticks_max = (options.group_disk.as_nanos() as u64).div_ceil(tick.0.max(1));
        let limits = Limits { disk_ticks_max, ..options.group_limits };
        let grouping = Grouping { tick, accepts_loss: options.accepts_loss, limits };
        let grouping = (options.group > 1).then_some(grouping);
        let protocol = muesli_registry::protocol(&options.protocol, grouping)?;
        open(options, protocol, neighbours)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What stops it.
    pub fn stop(&self) -> StopServer {
        StopServer(self.entry_point.clone())
    }

    /// Serves on this thread, until it is stopped.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn run(self) -> Result<(), LoopFailure> {
        (self.serve)()
    }
}

fn open(
    options: ServerOptions,
    protocol: Arc<dyn AnyProtocol>,
    neighbours: &Neighbours,
) -> Result<Server, StartError> {
    if options.cluster == ClusterId(0) {
        return Err(StartError::Cluster);
    }
    let broken = validation::broken(&options);
    if !broken.is_empty() {
        return Err(StartError::Invalid(broken));
    }
    if !options.masters.is_empty() && !protocol.has_masters() {
        return Err(NoMasters { name: options.protocol }.into());
    }
    check_tree(&options.protocol, options.tree.is_some())?;
    check_shards(&options.protocol, options.shards.is_some())?;
    let listener = listen(&options.listen)?;
    let address = listener.local_addr().map_err(StartError::Poll)?;
    if options.secret.is_none() && !options.trusts_network && !address.ip().is_loopback() {
        return Err(StartError::Unprotected { address });
    }
    let (map, group) = (map_of(&options, address)?, options.group.max(1));
    let poll = mio::Poll::new().map_err(StartError::Poll)?;
    let mut listener = mio::net::TcpListener::from_std(listener);
    let registry = poll.registry();
    registry.register(&mut listener, LISTENER, Interest::READABLE).map_err(StartError::Poll)?;
    let waker = mio::Waker::new(registry, WAKER).map_err(StartError::Poll)?;
    let entry_point = Arc::new(EntryPoint::new(Arc::new(Signal::new(waker))));
    let network = open_files::network_within_limit(&options, map.servers.len())?;
    let clock = ProcessClock::troubled(options.trouble.as_deref());
    let prepared =
        prepare(&options, &*protocol, (map, clock.now().as_millis()), entry_point.clone())?;
    judge_frame(&prepared.map, &options)?;
    let for_loop = entry_point.clone();
    let presence = neighbours.join(options.node, entry_point.clone());
    let neighbours = neighbours.clone();
    let serve = move || {
        let _presence = presence; // Until it ends, and if it panics.
        let ReadyServer { inner, map, data_id, begun, begins, folder, fresh } = prepared;
        let me = ProcessIdentity {
            cluster: options.cluster,
            protocol: spoken(&options.protocol, group),
            process_kind: Kind::Server,
            node: options.node,
            data_id,
            begun,
            process: fastrand::u64(1..),
            secret: options.secret.clone(),
        };
        look_out(for_loop.clone(), &map, options.node, options.secret.clone());
        let targets = Targets::below(&map, options.node, &options.dial);
        let process_kind = LoopEngine::new(0, inner, clock);
        let mut peers = Peers::new(me, Some(map), Some(listener), targets);
        peers.heights = Heights::recall(&folder.as_ref().map(Folder::recalled).unwrap_or_default());
        (peers.folder, peers.fresh, peers.begins) = (folder, fresh, begins);
        (peers.clients_prove, peers.neighbours) = (options.clients_prove, neighbours);
        let mut serving = Loop::new(process_kind, peers, poll, for_loop, network);
        serving.notice = options.notice;
        serving.run().map(drop)
    };
    Ok(Server { address, entry_point, serve: Box::new(serve) })
}

/// The map of the cluster as the options say it.
fn map_of(options: &ServerOptions, address: SocketAddr) -> Result<Map, StartError> {
    let mut servers = options.servers.clone();
    if servers.is_empty() {
        servers.push((options.node, address.to_string()));
    }
    let ServerOptions { repositories, replicas, partitions_per_repository, loops, .. } = *options;
    let group = options.group.max(1);
    let deal = Deal { repositories, replicas, partitions_per_repository, group, loops };
    // Whoever joins hears of the tree.
    let tree = options.tree.as_ref().filter(|_| !options.joins);
    let (masters, validators) = (&options.masters[..], &options.validator_servers[..]);
    let (sites, shards) = (options.sites.clone(), options.shards.as_ref());
    let beside = Beside { masters, tree, validators, sites, shards };
    let map = Map::deal_beside(servers, deal, beside)?;
    let map = match options.joins {
        true if group <= 1 => return Err(StartError::Joins),
        true => map.unplaced(),
        false => map,
    };
    match map.address_of(options.node) {
        Some(_) => Ok(map),
        None => Err(StartError::NotListed(options.node.0)),
    }
}

/// Whether the map fits into a frame of this server.
fn judge_frame(map: &Map, options: &ServerOptions) -> Result<(), MapError> {
    Ok(limits::judge_frame(&MapParts::from(map), options.network.frame_bytes_max)?)
}

/// A server's node with what it held before, and who it is.
struct ReadyServer {
    inner: LoopState,
    map: Map,
    data_id: DataId,
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
    entry_point: Arc<EntryPoint>,
) -> Result<ReadyServer, StartError> {
    let most = options.network.frame_bytes_max;
    let Durability::Log(path) = &options.durability else {
        let data_id = DataId::draw(options.accepts_loss);
        let machine = machine(options, protocol, &map, (data_id, fastrand::u32(1..)))?;
        let inner = LoopState::new(machine, Box::new(MemoryLog::default()), most);
        let (begun, begins) = (wall_millis, true);
        return Ok(ReadyServer { inner, map, data_id, begun, begins, folder: None, fresh: true });
    };
    // Nothing is changed before the folder is locked and its data are known to be this server's.
    let folder = Folder::open(path)?;
    let spoken = spoken(&options.protocol, options.group);
    let owner = FolderOwner { cluster: options.cluster, node: options.node, protocol: spoken };
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
    let data_id = DataId(me.data_id);
    let mut machine = machine(options, protocol, &map, (data_id, me.starts))?;
    let wake = move || entry_point.signal.raise();
    let files = LogFiles {
        options: muesli_log::Options {
            owner: me.data_id,
            segment_bytes: options.log_segment_bytes,
            backlog_bytes: options.log_backlog_bytes,
            ..muesli_log::Options::default()
        },
        checkpoint_bytes: options.checkpoint_bytes,
        trouble: options.trouble.clone(),
    };
    let log = folder.open_log(files, &mut *machine, options.notice, wake)?;
    let inner = LoopState::new(machine, Box::new(log), most);
    let begun = me.begun;
    Ok(ReadyServer { inner, map, data_id, begun, begins, folder: Some(folder), fresh })
}

/// So many may wait to be accepted, if the system lets them.
const WAITING_MAX: i32 = 4_096;

fn listen(address: &str) -> Result<TcpListener, StartError> {
    let listen_error = |error| StartError::Listen { address: address.to_owned(), error };
    let addresses: Vec<_> = address.to_socket_addrs().map_err(listen_error)?.collect();
    let listener = TcpListener::bind(&addresses[..]).map_err(listen_error)?;
    listener.set_nonblocking(true).map_err(listen_error)?;
    // The system makes who finds no place wait for a second; and the library asks for 128 places.
    rustix::net::listen(&listener, WAITING_MAX).map_err(|error| listen_error(error.into()))?;
    Ok(listener)
}

fn machine(
    options: &ServerOptions,
    protocol: &dyn AnyProtocol,
    map: &Map,
    (data_id, incarnation): (DataId, u32),
) -> Result<Box<dyn AnyMachine>, ThreadsError> {
    let settings = Settings {
        hash_seed: fastrand::u64(..),
        // A group agrees on its log also where no disk keeps it.
        logging: options.durability != Durability::Memory || options.group > 1,
        lost_disk: data_id.replaces_lost(),
        secret: options.secret.clone(),
        issuer: Some(proof::issuer(options.cluster, options.secret.as_ref())),
        parallel: muesli_threads::parallel(options.procedure_threads)?,
        ..options.settings.clone()
    };
    let (catalog, settings) = (map.catalog.clone(), Arc::new(settings));
    let sampler = AccessSampler::new(options.sample_one_in, options.samples_kept);
    let environment = Environment { accesses: Some(Box::new(sampler)), ..Environment::default() };
    Ok(protocol.machine(options.node, incarnation, catalog, settings, environment))
}
