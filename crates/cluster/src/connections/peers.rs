//! The connections of a loop, by their places, and what is known of who is at their other ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, mpsc};

use mio::net::TcpListener;
use muesli_core::{Nanos, NodeId, Secret};

use crate::connections::connection::Connection;
use crate::connections::heights::{Heights, Keeping};
use crate::connections::neighbours::Neighbours;
use crate::connections::stream::Stream;
use crate::connections::targets::Targets;
use crate::spaces::map::Map;
use crate::spaces::row_reader::Readings;
use crate::storage::folder::Folder;
use crate::wire::hello::ProcessKind;
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::judgement::Judged;
use crate::wire::protocol_name;
use crate::wire::refusal::{self, LossRemedy};

/// Who this process is.
#[derive(Clone, Debug)]
pub(crate) struct ProcessIdentity {
    pub cluster: ClusterId,
    /// As it was chosen by name.
    pub protocol: String,
    pub process_kind: ProcessKind,
    pub node: NodeId,
    pub data_id: DataId,
    /// When that began, by its clock: milliseconds since 1970.
    pub begun: u64,
    /// Drawn by this process.
    pub process: u64,
    /// The cluster's secret, where this process knows one.
    pub secret: Option<Secret>,
}

/// The connections of a loop.
pub(crate) struct Peers {
    pub me: ProcessIdentity,
    /// `None` for a client that has found nobody yet.
    pub map: Option<Map>,
    pub listener: Option<TcpListener>,
    /// Where newer maps are kept.
    pub folder: Option<Folder>,
    pub targets: Targets,
    /// The lives of the servers, this one's included.
    pub data_ids: BTreeMap<NodeId, DataId>,
    /// Whether the protocol's nodes give the data of a lost disk back.
    exchanges_members: bool,
    /// Whether they may come back with nothing, where each key has one copy.
    may_start_empty: bool,
    /// Whether the protocol keeps spaces that are everywhere.
    pub keeps_everywhere: bool,
    /// How far the logs of the other servers had come.
    pub heights: Heights,
    /// When these were last kept, and what is under way.
    pub heights_kept: Nanos,
    pub keeping: Arc<Keeping>,
    /// This server's data have begun with this process, or what came after an older copy was
    /// accepted as lost.
    pub begins: bool,
    /// Servers that have told their maps at least once.
    pub met: BTreeSet<NodeId>,
    /// Whether this process began without any memory: it knows no space but those that the others
    /// tell it of.
    pub fresh: bool,
    /// Messages about what is not on this map.
    pub astray: u64,
    /// Messages between drivers that came.
    pub judged: Judged,
    /// Spaces asked for, by request, and of which server.
    pub asked: BTreeMap<u64, (NodeId, mpsc::Sender<Option<String>>)>,
    pub requests: u64,
    /// Connections closed because of what came over them.
    pub misunderstood: u64,
    /// Whether clients have to prove the cluster's secret, too.
    pub clients_prove: bool,
    /// Connections and messages refused for want of a proof, or of a role that may say so.
    pub unproven: u64,
    /// When the register of spaces is read.
    pub readings: Readings,
    /// The last that went wrong with that, as those who look after this server were told.
    pub reported_unread: Option<String>,
    /// The last refusal of another server that was told to those who look after this one.
    pub reported_refusal: Option<String>,
    /// Room that was given for long frames under way, in bytes.
    pub incoming: usize,
    /// Who waits for such room, in the order of asking.
    pub awaiting_capacity: VecDeque<usize>,
    /// Connections refused because there were too many.
    pub refused_at_limit: u64,
    /// So much waits to be sent that nothing is read from clients.
    pub all_crowded: bool,
    /// The other loops of this process.
    pub neighbours: Neighbours,
    places: Vec<Option<Connection>>,
    /// The places of connections that are pipes, of which no poller tells.
    pipes: Vec<usize>,
    free: Vec<usize>,
    open: usize,
    readable: Vec<usize>,
}

impl Peers {
    pub fn new(
        me: ProcessIdentity,
        map: Option<Map>,
        listener: Option<TcpListener>,
        targets: Targets,
    ) -> Peers {
        let mut data_ids = BTreeMap::new();
        if me.process_kind == ProcessKind::Server {
            data_ids.insert(me.node, me.data_id);
        }
        let exchanges_members = muesli_registry::exchanges_members(&me.protocol);
        let may_start_empty = muesli_registry::may_start_empty(&me.protocol);
        let keeps_everywhere = protocol_name::keeps_everywhere(&me.protocol);
        Peers {
            me,
            map,
            listener,
            folder: None,
            targets,
            data_ids,
            exchanges_members,
            may_start_empty,
            keeps_everywhere,
            heights: Heights::default(),
            heights_kept: Nanos(0),
            keeping: Arc::default(),
            begins: false,
            met: BTreeSet::new(),
            fresh: true,
            astray: 0,
            judged: Judged::default(),
            asked: BTreeMap::new(),
            requests: 0,
            misunderstood: 0,
            clients_prove: false,
            unproven: 0,
            readings: Readings::default(),
            reported_unread: None,
            reported_refusal: None,
            incoming: 0,
            awaiting_capacity: VecDeque::new(),
            refused_at_limit: 0,
            all_crowded: false,
            neighbours: Neighbours::default(),
            places: Vec::new(),
            pipes: Vec::new(),
            free: Vec::new(),
            open: 0,
            readable: Vec::new(),
        }
    }

    /// A place that nobody has.
    pub fn free_place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        })
    }

    pub fn put(&mut self, place: usize, connection: Connection) {
        if matches!(connection.stream, Stream::Pipe(_)) {
            self.pipes.push(place);
        }
        self.places[place] = Some(connection);
        self.open += 1;
    }

    pub fn at(&self, place: usize) -> Option<&Connection> {
        self.places.get(place)?.as_ref()
    }

    pub fn at_mut(&mut self, place: usize) -> Option<&mut Connection> {
        self.places.get_mut(place)?.as_mut()
    }

    /// Takes a connection out; its place is free.
    pub fn remove(&mut self, place: usize) -> Option<Connection> {
        let connection = self.places.get_mut(place)?.take()?;
        self.incoming -= connection.capacity;
        self.awaiting_capacity.retain(|waiting| *waiting != place);
        self.pipes.retain(|pipe| *pipe != place);
        self.free.push(place);
        self.open -= 1;
        Some(connection)
    }

    /// How many connections there are.
    pub fn count(&self) -> usize {
        self.open
    }

    /// All connections with their places.
    pub fn all(&self) -> impl Iterator<Item = (usize, &Connection)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, connection)| Some((place, connection.as_ref()?)))
    }

    /// All connections with their places, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (usize, &mut Connection)> {
        let places = self.places.iter_mut().enumerate();
        places.filter_map(|(place, connection)| Some((place, connection.as_mut()?)))
    }

    /// Looks at all pipes: notes those with something to read, and gives the places of those that
    /// have space again.
    pub fn look_at_pipes(&mut self) -> (bool, Vec<usize>) {
        let (mut any, mut writable) = (false, Vec::new());
        for place in &self.pipes {
            let Some(connection) = self.places[*place].as_mut() else { continue };
            let Stream::Pipe(pipe) = &connection.stream else { continue };
            if pipe.take_readable() {
                any = true;
                connection.readable = true;
                self.readable.push(*place);
            }
            if pipe.take_writable() {
                writable.push(*place);
            }
        }
        (any, writable)
    }

    /// There is something to read at `place`.
    pub fn note_readable(&mut self, place: usize) {
        self.readable.push(place);
    }

    /// Where there may be something to read; each place once.
    pub fn take_readable(&mut self) -> Vec<usize> {
        let mut readable = std::mem::take(&mut self.readable);
        readable.sort_unstable();
        readable.dedup();
        readable
    }

    /// Whether there is something to read at a place that is `wanted`.
    pub fn any_readable(&self, wanted: impl Fn(&Connection, usize) -> bool) -> bool {
        let mut places = self.readable.iter().filter_map(|&at| Some((self.at(at)?, at)));
        places.any(|(connection, place)| wanted(connection, place))
    }

    /// Whether this process runs transactions for an application.
    pub fn is_client(&self) -> bool {
        self.me.process_kind == ProcessKind::Client
    }

    /// Whether a server that has lost its data may come back: members of groups learn from the
    /// others what they have forgotten.
    pub fn forgives(&self) -> bool {
        self.map.as_ref().is_some_and(|map| map.group > 1)
    }

    /// Whether a server whose disk was lost comes back as another member, to which the others give
    /// its data.
    pub fn exchanges_members(&self) -> bool {
        self.exchanges_members
    }

    /// Whether a server whose disk was lost may come back with nothing, and finds what others hold.
    fn starts_empty(&self) -> bool {
        let is_alone = |map: &Map| map.group <= 1 && map.catalog.replicas == 1;
        self.may_start_empty && self.map.as_ref().is_some_and(is_alone)
    }

    /// Whether data of this life may take the place of those that were known, though no group keeps
    /// them: the loss is declared, and others give the data back, or know where what is left is.
    pub fn may_replace(&self, data_id: DataId) -> bool {
        let may = self.exchanges_members || self.starts_empty();
        may && data_id.replaces_lost().is_some()
    }

    /// Whether every server of the map was met, and all say that they lost their disks.
    pub fn all_lost(&self) -> bool {
        let lost = |node: &NodeId| {
            self.data_ids.get(node).is_some_and(|data_id| data_id.replaces_lost().is_some())
        };
        let mut servers = self.map.iter().flat_map(Map::there).peekable();
        servers.peek().is_some() && self.unmet().is_empty() && servers.all(|(node, _)| lost(node))
    }

    /// What the server is told that has lost its data, or whoever knew them.
    pub fn lost(&self, node: NodeId) -> String {
        let remedy = match (self.exchanges_members, self.starts_empty()) {
            (true, _) => LossRemedy::OthersGiveBack,
            (false, true) => LossRemedy::StartsEmpty,
            (false, false) => LossRemedy::StartAnew,
        };
        refusal::lost(node, remedy)
    }

    /// Whether two who know these lives of a server may speak to each other: they are one, or one
    /// replaces the other.
    pub fn are_compatible(&self, one: DataId, other: DataId) -> bool {
        one == other || self.may_replace(one) || self.may_replace(other)
    }

    /// The lives as they are told to others.
    pub fn data_ids(&self) -> Vec<(NodeId, DataId)> {
        self.data_ids.iter().map(|(node, data_id)| (*node, *data_id)).collect()
    }

    /// Whom this server has to meet before it serves clients. One that remembers the map and is of
    /// groups needs a majority, as groups do; others need everybody.
    pub fn awaited(&self) -> Vec<NodeId> {
        let unmet = self.unmet();
        let (servers, group) =
            self.map.as_ref().map_or((0, 1), |it| (it.there().count(), it.group));
        let enough = group > 1 && !self.fresh && unmet.len() * 2 < servers;
        if enough { Vec::new() } else { unmet }
    }

    /// The servers of the map that were never met, this one left out.
    pub fn unmet(&self) -> Vec<NodeId> {
        let servers = self.map.iter().flat_map(Map::there);
        let others = servers.map(|(node, _)| *node).filter(|node| *node != self.me.node);
        others.filter(|node| !self.met.contains(node)).collect()
    }
}
