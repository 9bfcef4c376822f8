//! A native client: a loop in the application's process that coordinates its transactions and
//! speaks to the servers directly.
//!
//! The client is a node without repositories. Its number is drawn at random above those of
//! servers, and its incarnation too, so that no transaction id is ever used twice. It may die at
//! any moment: participants finish its transactions by themselves.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muesli_core::{
    AnyProtocol, Catalog, Environment, Nanos, NodeId, Recorder, Settings, SpaceOptions, Timestamp,
    Traffic, catalog::CatalogError,
};
use muesli_group::layout;
use muesli_registry::Grouping;
use thiserror::Error;

use crate::connections::peers::{Peers, ProcessIdentity};
use crate::connections::targets::Targets;
use crate::dispatch::event_loop::{Loop, WAKER};
use crate::lifecycle::client_options::ClientOptions;
use crate::lifecycle::validation;
use crate::lifecycle::visit::Visit;
use crate::mailbox::entry_point::{Command, EntryPoint, Job, LoopThreadAlive};
use crate::mailbox::signal::Signal;
use crate::node::clock::ProcessClock;
use crate::node::engine::LoopEngine;
use crate::node::loop_state::LoopState;
use crate::spaces::map::Map;
use crate::spaces::parts::SpaceParts;
use crate::spaces::register::Register;
use crate::storage::log::MemoryLog;
use crate::storage::timestamp_lease::{LeaseError, TimestampLease};
use crate::wire::hello::{CLIENT_NUMBERS, ProcessKind as Kind};
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::protocol_name::spoken;

/// How long one server may take to say what kind of cluster it belongs to, before the next one is
/// asked.
const VISIT_AT_MOST: Duration = Duration::from_secs(1);

/// How long a request may wait for its answer before it is sent again.
const RETRY_AFTER: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);

/// How far a timestamp lease may go ahead.
const LEASE_AHEAD: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);

/// Why a client cannot be connected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// Nobody answered.
    #[error("no server of {addresses} answered within {within_ms} ms: {trouble}")]
    Nobody {
        /// Who was asked.
        addresses: String,
        /// For how long, in milliseconds.
        within_ms: u64,
        /// The last that went wrong.
        trouble: String,
    },
    /// The cluster wants nothing of this client.
    #[error("the cluster refused: {0}")]
    Refused(String),
    /// Rules that the limits and the times of connections break, all of them.
    #[error("these options cannot be: {}", .0.join("; "))]
    Invalid(Vec<String>),
    /// No address was given.
    #[error("no address of a server was given")]
    NoAddress,
    /// No such protocol.
    #[error("{0}")]
    Protocol(String),
    /// The timestamp lease cannot be used.
    #[error("{0}")]
    Lease(String),
    /// The system has no poller or thread left.
    #[error("the system refused: {0}")]
    System(String),
}

/// Why a space was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpaceError {
    /// The server that keeps the map said no.
    #[error("{0}")]
    Refused(String),
    /// It did not answer; the space may have been made.
    #[error("no answer from the node that keeps the map within {0} ms; ask again")]
    Timeout(u64),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

/// A connected client; its loop runs on a thread of its own.
pub struct Client {
    entry_point: Arc<EntryPoint>,
    cluster: ClusterId,
    /// Where the timestamp lease ended when the client began.
    lease_end: Option<Timestamp>,
    space_within: Duration,
    frame_bytes_max: usize,
    /// Whether the protocol keeps spaces that are everywhere.
    keeps_everywhere: bool,
    thread: Mutex<Option<JoinHandle<Option<Recorder>>>>,
}

impl Client {
    /// Connects: finds the cluster, learns its map, and connects to all of its servers, or to
    /// those that answer in time.
    ///
    /// # Errors
    /// Nobody answers, or the cluster refuses; or the timestamp lease cannot be used.
    pub fn connect(mut options: ClientOptions) -> Result<Client, ConnectError> {
        if options.addresses.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        let mut broken = validation::of_connections(&options.network, &options.limits);
        if !RETRY_AFTER.contains(&options.retry_after) {
            let [given, least, most] =
                [options.retry_after, *RETRY_AFTER.start(), *RETRY_AFTER.end()];
            broken.push(format!("`retry_after` is {given:?}; allowed are {least:?} to {most:?}"));
        }
        if !broken.is_empty() {
            return Err(ConnectError::Invalid(broken));
        }
        let (within, near) = (options.connect_within, options.near);
        let addresses = options.addresses.join(", ");
        let (group, answered) = cluster_of(&options)?;
        let lease = open_lease(&mut options, answered)?;
        let client = start((options, lease), group, answered)?;
        let status = client.entry_point.wait_until(within, |status| {
            let all = status
                .map
                .as_ref()
                .is_some_and(|map| map.there().all(|(server, _)| status.up.contains(server)));
            all || status.failed.is_some()
        });
        if let Some(why) = &status.failed {
            return Err(ConnectError::Refused(why.clone()));
        }
        if status.up.is_empty() {
            let trouble = status.trouble.clone().unwrap_or_else(|| "no answer".to_owned());
            let within_ms = within.as_millis() as u64;
            return Err(ConnectError::Nobody { addresses, within_ms, trouble });
        }
        drop(status);
        if let Some(near) = near {
            let homes = client.catalog_of_keys().homes.iter().copied().collect::<BTreeSet<_>>();
            if !homes.contains(&near) {
                let with: Vec<_> = homes.iter().map(|home| home.0.to_string()).collect();
                let (near, with) = (near.0, with.join(", "));
                let why = format!("`near` names server {near}; those with data are {with}");
                return Err(ConnectError::Invalid(vec![why]));
            }
        }
        Ok(client)
    }

    /// The cluster that it is connected to.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Spaces and placement, as they are known here by now.
    ///
    /// # Panics
    /// Never: a connected client knows the map.
    pub fn catalog(&self) -> Arc<Catalog> {
        let status = self.entry_point.status();
        status.map.as_ref().expect("it is known since connecting").catalog.clone()
    }

    /// The catalog by which keys are dealt to repositories: where groups keep these, each stands
    /// for its group.
    ///
    /// # Panics
    /// Never: a connected client knows the map.
    pub fn catalog_of_keys(&self) -> Arc<Catalog> {
        let status = self.entry_point.status();
        let map = status.map.as_ref().expect("it is known since connecting");
        if map.group > 1 { layout::inner(&map.catalog) } else { map.catalog.clone() }
    }

    /// The map, as it is known here by now.
    pub fn map(&self) -> Option<Map> {
        self.entry_point.status().map.clone()
    }

    /// Whether the protocol keeps spaces that are
    /// [everywhere](muesli_core::Partitioning::Everywhere).
    pub fn keeps_everywhere(&self) -> bool {
        self.keeps_everywhere
    }

    /// The servers that are connected now.
    pub fn servers_up(&self) -> Vec<NodeId> {
        self.entry_point.status().up.iter().copied().collect()
    }

    /// Where the timestamp lease ended when the client began: whoever used its file before has seen
    /// nothing above. `None`: the client has no lease.
    pub fn lease_end(&self) -> Option<Timestamp> {
        self.lease_end
    }

    /// Why the timestamp lease was lost, if it was; then the loop has stopped.
    pub fn lost_lease(&self) -> Option<String> {
        self.entry_point.status().lost_lease.clone()
    }

    /// How many repositories there are, as the protocol counts them.
    pub fn repositories(&self) -> u16 {
        let status = self.entry_point.status();
        status.map.as_ref().map_or(0, |map| match map.group > 1 {
            true => layout::groups(&map.catalog),
            false => map.catalog.repositories() as u16,
        })
    }

    /// Hands a job to the loop.
    ///
    /// # Errors
    /// The job back, if the loop has stopped.
    pub fn submit(&self, job: Job) -> Result<(), Job> {
        self.entry_point.submit(job)
    }

    /// Makes a space, or finds it there already. Not from a task on the loop.
    ///
    /// # Errors
    /// It exists with other options, or the node that keeps the map does not answer.
    pub fn create_space(&self, name: &str, space: &SpaceOptions) -> Result<(), SpaceError> {
        let known = self.catalog().with_space(name, space.clone());
        match known.map_err(|error: CatalogError| SpaceError::Refused(error.to_string()))? {
            same if same.epoch == self.catalog().epoch => return Ok(()),
            _ => {}
        }
        let space = SpaceParts::of(name, space);
        self.command(|answer| Command::CreateSpace(space, answer))
    }

    /// Goes by the spaces that a transaction has written, and tells the servers. Not from a task on
    /// the loop.
    ///
    /// # Errors
    /// They are not of this cluster, or the loop has stopped.
    pub fn register(&self, register: Register) -> Result<(), SpaceError> {
        self.command(|answer| Command::Register(register, answer))
    }

    /// Has the servers look at the register of spaces, which makes no sense: they write it again.
    pub fn doubt_register(&self) {
        self.entry_point.command(Command::DoubtSpaces);
    }

    /// The longest frame that goes between this client and the servers.
    pub fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    fn command(
        &self,
        command: impl FnOnce(mpsc::Sender<Option<String>>) -> Command,
    ) -> Result<(), SpaceError> {
        let (sender, receiver) = mpsc::channel();
        self.entry_point.command(command(sender));
        match receiver.recv_timeout(self.space_within) {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(SpaceError::Refused(why)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(SpaceError::Timeout(self.space_within.as_millis() as u64))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(SpaceError::Closed),
        }
    }

    /// What it has said to servers, as of its last turn.
    pub fn traffic(&self) -> Traffic {
        *self.entry_point.traffic.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Stops the loop: nothing begins any more, open transactions may end, commits are decided.
    /// What it recorded, the first time.
    pub fn close(&self) -> Option<Recorder> {
        self.entry_point.stop();
        let mut thread = self.thread.lock().unwrap_or_else(|broken| broken.into_inner());
        let mine = |it: &JoinHandle<_>| it.thread().id() == std::thread::current().id();
        if thread.as_ref().is_some_and(mine) {
            return None; // The last handle was dropped by a task of the loop.
        }
        thread.take()?.join().ok().flatten()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

/// The timestamp lease, if the client is to have one. A client with a lease is one of the cluster
/// that answered, whatever other one answers later.
fn open_lease(
    options: &mut ClientOptions,
    answered: ClusterId,
) -> Result<Option<TimestampLease>, ConnectError> {
    let Some(path) = &options.timestamp_lease else { return Ok(None) };
    if !muesli_registry::is_known(&options.protocol) {
        return Ok(None); // That is the error then.
    }
    let step = muesli_registry::timestamp_step(&options.protocol);
    let step = step.map_err(|error| ConnectError::Lease(error.to_string()))?;
    let ahead = options.timestamp_lease_ahead;
    if !LEASE_AHEAD.contains(&ahead) {
        let (least, most) = (LEASE_AHEAD.start().as_millis(), LEASE_AHEAD.end().as_millis());
        return Err(ConnectError::Lease(format!(
            "`timestamp_lease_ahead` is {} ms, and may be from {least} to {most} ms",
            ahead.as_millis()
        )));
    }
    if options.cluster == ClusterId(0) {
        options.cluster = answered;
    }
    let steps = ahead.as_nanos() as u64 / step.0;
    let lease = TimestampLease::open(path, options.cluster, steps);
    lease.map(Some).map_err(|error: LeaseError| ConnectError::Lease(error.to_string()))
}

/// How many servers keep each repository, as one of the servers says, and which cluster it is of.
/// The loop's machine depends on that, so it is asked before there is one.
fn cluster_of(options: &ClientOptions) -> Result<(u16, ClusterId), ConnectError> {
    let within = options.connect_within;
    let deadline = Instant::now() + within;
    let mut trouble = String::new();
    for address in options.addresses.iter().cycle() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match Visit::begin(address, left.min(VISIT_AT_MOST)) {
            Ok(visit) => return Ok((visit.welcome.map.group, visit.welcome.cluster)),
            Err(error) => trouble = error.to_string(),
        }
        std::thread::sleep(options.network.redial_first.min(left));
    }
    let (addresses, within_ms) = (options.addresses.join(", "), within.as_millis() as u64);
    Err(ConnectError::Nobody { addresses, within_ms, trouble })
}

fn start(
    (options, lease): (ClientOptions, Option<TimestampLease>),
    group: u16,
    cluster: ClusterId,
) -> Result<Client, ConnectError> {
    let grouping = (group > 1).then(Grouping::default);
    let protocol = muesli_registry::protocol(&options.protocol, grouping)
        .map_err(|error| ConnectError::Protocol(error.to_string()))?;
    let system = |error: std::io::Error| ConnectError::System(error.to_string());
    let poll = mio::Poll::new().map_err(system)?;
    let waker = mio::Waker::new(poll.registry(), WAKER).map_err(system)?;
    let entry_point = Arc::new(EntryPoint::new(Arc::new(Signal::new(waker))));
    let (for_loop, space_within) = (entry_point.clone(), options.space_within);
    let frame_bytes_max = options.network.frame_bytes_max;
    let lease_end = lease.as_ref().map(TimestampLease::end);
    let keeps_everywhere = protocol.keeps_everywhere();
    let run = move || {
        let alive = LoopThreadAlive(for_loop.clone());
        let peers = peers(&options, group);
        let process_kind = process_kind(&options, &*protocol, peers.me.node, group);
        process_kind.inner.borrow_mut().lease = lease;
        let mut running = Loop::new(process_kind, peers, poll, for_loop.clone(), options.network);
        running.close_within = Nanos(options.close_within.as_nanos() as u64);
        let ran = running.run();
        drop(alive);
        match ran {
            Ok(recorder) => Some(recorder),
            Err(failed) => {
                for_loop.change(|status| status.failed = Some(failed.to_string()));
                None
            }
        }
    };
    let thread = std::thread::Builder::new().name("muesli-client".to_owned());
    let thread = Mutex::new(Some(thread.spawn(run).map_err(system)?));
    Ok(Client {
        entry_point,
        cluster,
        lease_end,
        space_within,
        frame_bytes_max,
        keeps_everywhere,
        thread,
    })
}

fn peers(options: &ClientOptions, group: u16) -> Peers {
    let me = ProcessIdentity {
        cluster: options.cluster,
        protocol: spoken(&options.protocol, group),
        process_kind: Kind::Client,
        // Servers have small numbers.
        node: NodeId(fastrand::u32(CLIENT_NUMBERS)),
        data_id: DataId(fastrand::u64(1..)),
        begun: 0,
        process: 0,
        secret: options.secret.clone(),
    };
    Peers::new(me, None, None, Targets::anybody(&options.addresses, &options.dial))
}

fn process_kind(
    options: &ClientOptions,
    protocol: &dyn AnyProtocol,
    me: NodeId,
    group: u16,
) -> LoopEngine {
    let settings = Settings {
        limits: options.limits,
        procedures: options.procedures.clone(),
        actions: options.actions.clone(),
        batching: options.batching,
        caches: options.caches,
        hash_seed: fastrand::u64(..),
        retry_after: Nanos(options.retry_after.as_nanos() as u64),
        give_up_after: Nanos(options.give_up_after.as_nanos() as u64),
        ..Settings::default()
    };
    // Until the first server tells the map, there is nothing; any map is newer than epoch 0.
    let repositories = if group > 1 { usize::from(layout::PLACES) } else { 1 };
    let homes = vec![NodeId(0); repositories];
    let mut nothing = Catalog::new(&homes, 1, &[]).expect("one repository can be");
    (nothing.epoch, nothing.placement) = (0, 0);
    let nearest = options.near.map(|near| (me, near));
    let nothing = nothing.with_visiting_coordinators().with_nearest(nearest.as_slice());
    let incarnation = fastrand::u32(1..);
    let recorder = options.history.then(|| Box::new(Recorder::sampling(options.sampling)));
    let environment = Environment { recorder, ..Environment::default() };
    let (nothing, settings) = (Arc::new(nothing), Arc::new(settings));
    let machine = protocol.machine(me, incarnation, nothing, settings, environment);
    let log = Box::new(MemoryLog::default());
    let inner = LoopState::new(machine, log, options.network.frame_bytes_max);
    LoopEngine::new(options.database, inner, ProcessClock::new())
}
