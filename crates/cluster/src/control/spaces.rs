//! The map while the cluster runs: who makes spaces, and how everybody hears of them.
//!
//! Without groups one server, the home of the first repository, keeps the map: whoever wants a
//! space asks it. It tells everybody who is connected before it answers, over the same connections,
//! so whoever asked knows the space when it has the answer. With groups the database itself keeps
//! the spaces ([`register`](crate::spaces::register)), and whoever made one there tells the servers
//! that there is something new, which they read for themselves: nobody's word is taken for it. A
//! server
//! that has not heard of a space yet leaves messages about it out, which are said again.

use std::sync::mpsc;

use muesli_core::client::Task;
use muesli_core::judgement::ensure;
use muesli_core::{Catalog, Nanos, NodeId, Rejection};

use crate::connections::connection::ConnectionState;
use crate::dispatch::event_loop::Loop;
use crate::mailbox::entry_point::Command;
use crate::spaces::limits;
use crate::spaces::map::Map;
use crate::spaces::parts::{MapParts, SpaceParts};
use crate::spaces::register::Register;
use crate::spaces::row_reader::{self, Read, RegisterReader};
use crate::wire::control::Control;
use crate::wire::frame::FrameKind;
use crate::wire::hello::ProcessKind;
use crate::wire::judgement::{NoSuccessor, judge_map, judge_sender};
use crate::wire::refusal::Reason;

impl Loop {
    /// A message from another driver: it is judged, and counted.
    pub(crate) fn on_control(&mut self, place: usize, control: Control, now: Nanos) {
        let state = self.peers.at(place).map(|connection| connection.state);
        let Some(ConnectionState::Up { node, process_kind, .. }) = state else { return };
        let kind = control.kind();
        let judged = match judge_sender(&control, process_kind, self.peers.me.process_kind) {
            Ok(()) => self.take_control((place, node), control, now),
            Err(reason) => {
                self.refuse_sender(place, process_kind, &control, now);
                Err(reason)
            }
        };
        self.peers.judged.count(kind, judged);
    }

    /// Takes what its sender may say.
    fn take_control(
        &mut self,
        (place, node): (usize, NodeId),
        control: Control,
        now: Nanos,
    ) -> Result<(), Rejection> {
        match control {
            Control::CreateSpace { request, space } => {
                let refused = self.create_space(&space).err();
                let judged = ensure(refused.is_none(), Rejection::State);
                self.send_control(place, &Control::SpaceCreated { request, refused });
                judged
            }
            Control::SpaceCreated { request, refused } => {
                let asked = self.peers.asked.get(&request);
                ensure(asked.is_some_and(|(map_server, _)| *map_server == node), Rejection::State)?;
                if let Some((_, answer)) = self.peers.asked.remove(&request) {
                    let _ = answer.send(refused); // Whoever asked may have gone.
                }
                Ok(())
            }
            Control::Map(parts) => {
                let map = Map::try_from(parts).map_err(|_| Rejection::Catalog)?;
                self.learn_map(map, now).map_err(|why| why.reason())?;
                self.peers.met.insert(node);
                self.peers.fresh &= !self.peers.unmet().is_empty();
                Ok(())
            }
            Control::Place(parts) => self.on_place(place, parts, now),
            Control::SpacesMade(epoch) => {
                let map = self.peers.map.as_ref().filter(|map| map.group > 1);
                let known = map.ok_or(Rejection::Role)?.catalog.epoch;
                ensure(self.peers.readings.observe(epoch, known), Rejection::Range)?;
                self.read_spaces(now);
                Ok(())
            }
            Control::AskMembers => {
                let members = self.members();
                self.send_control(place, &members);
                Ok(())
            }
            Control::AskStatus => {
                let status = self.status();
                self.send_control(place, &Control::Status(status));
                Ok(())
            }
            Control::AskAccesses(_)
            | Control::AskLoads(_)
            | Control::AskSizes(_)
            | Control::SampleAccesses(_) => self.answer_about_accesses(place, &control),
            Control::Status(_)
            | Control::Members { .. }
            | Control::Accesses(_)
            | Control::Loads(_)
            | Control::Sizes(_) => Err(Rejection::Role),
        }
    }

    /// An administrator says where members are to live.
    fn on_place(&mut self, place: usize, parts: MapParts, now: Nanos) -> Result<(), Rejection> {
        let made = Map::try_from(parts).map_err(|error| (Rejection::Catalog, error.to_string()));
        let learned = made.and_then(|map| {
            let learned = self.learn_map(map, now);
            learned.map_err(|error| (error.reason(), error.to_string()))
        });
        if let Err((reason, why)) = learned {
            self.refuse(place, Reason::Misunderstood, format!("the placement: {why}"), now);
            return Err(reason);
        }
        let members = self.members();
        self.send_control(place, &members);
        Ok(())
    }

    /// Tells whoever may not say what changes the cluster, and closes. What else nobody should
    /// say here is left out.
    fn refuse_sender(
        &mut self,
        place: usize,
        process_kind: ProcessKind,
        control: &Control,
        now: Nanos,
    ) {
        let name = process_kind.name();
        let text = match control {
            Control::Place(_) if process_kind != ProcessKind::Admin => format!(
                "{name} may not say where members live; an administrator may, who knows the \
                 cluster's secret (`muesli admin --secret-file`)"
            ),
            Control::SampleAccesses(_) if process_kind != ProcessKind::Admin => format!(
                "{name} may not say which transactions are sampled; an administrator may, who \
                 knows the cluster's secret (`muesli admin --secret-file`)"
            ),
            Control::CreateSpace { .. } | Control::SpacesMade(_) if !process_kind.is_node() => {
                format!(
                    "{name} may not make spaces; a client may, which proves the cluster's secret \
                     where the servers ask it to (`clients_need_secret`)"
                )
            }
            _ => return,
        };
        self.peers.unproven += 1;
        self.refuse(place, Reason::Unproven, text, now);
    }

    /// A map that another process says: it is gone by as far as it is newer, if it goes on from
    /// the one known here. Spaces that the database itself keeps are read there instead.
    pub(crate) fn learn_map(&mut self, map: Map, now: Nanos) -> Result<(), NoSuccessor> {
        let Some(known) = &self.peers.map else {
            self.on_map(map);
            return Ok(());
        };
        judge_map(known, &map)?;
        let (before, received) = (known.catalog.epoch, map.catalog.epoch);
        let is_server = self.peers.me.process_kind == ProcessKind::Server;
        // One that joins knows of no space where it could read.
        if !is_server || map.group <= 1 || before == 0 || received <= before {
            self.on_map(map);
            return Ok(());
        }
        let mut without_spaces = Catalog::clone(&map.catalog);
        without_spaces.epoch = 0;
        self.on_map(map.with_catalog(without_spaces.into()));
        self.peers.readings.observe(received, before);
        self.read_spaces(now);
        Ok(())
    }

    /// Reads the register, if it was said to have more spaces than are known here.
    pub(crate) fn read_spaces(&mut self, now: Nanos) {
        let Some(map) = self.peers.map.as_ref().filter(|map| map.group > 1) else { return };
        let Some(space) = map.catalog.space_named(crate::spaces::register::SPACE) else { return };
        let is_server = self.peers.me.process_kind == ProcessKind::Server;
        if !is_server || !self.peers.readings.begin(map.catalog.epoch, now) {
            return;
        }
        let entry_point = self.entry_point.clone();
        let (database, frame_bytes_max) = (self.loop_engine.database, self.network.frame_bytes_max);
        let reader = RegisterReader {
            database,
            space,
            map: map.clone(),
            frame_bytes_max,
            keeps_everywhere: self.peers.keeps_everywhere,
        };
        let task: Task = Box::pin(async move {
            let read = row_reader::register(reader).await;
            entry_point.command(Command::SpacesRead(read));
        });
        self.spawn(task);
    }

    /// The register was read, or could not be. It is gone by wherever it is newer than the map,
    /// whatever was said of it.
    pub(crate) fn spaces_read(&mut self, read: Read) {
        let now = self.loop_engine.inner.borrow().now();
        let Some(map) = &self.peers.map else { return };
        let known = map.catalog.epoch;
        let next = match read {
            Read::Row(None) => Ok(map.clone()),
            Read::Row(Some(register)) => {
                register.grown_from(map).map_err(|error| error.to_string())
            }
            Read::Mended(why) => {
                Err(format!("{why}. The row was written again, as the spaces are known here"))
            }
            Read::Failed(why) => {
                self.peers.readings.fail(now);
                return self.tell_unread(why);
            }
        };
        match next {
            Ok(next) => {
                self.peers.reported_unread = None;
                self.peers.readings.end(next.catalog.epoch > known, now);
                self.on_map(next);
            }
            Err(why) => {
                self.peers.readings.end(false, now);
                self.tell_unread(why);
            }
        }
        self.read_spaces(now);
    }

    /// Another thread has found that the register makes no sense: the servers are to look at it.
    pub(crate) fn doubt_spaces(&mut self) {
        let known = self.peers.map.as_ref().map_or(0, |map| map.catalog.epoch);
        self.tell_servers(&Control::SpacesMade(known.saturating_add(1)));
    }

    fn tell_servers(&mut self, message: &Control) {
        let is_server =
            |state| matches!(state, ConnectionState::Up { process_kind: ProcessKind::Server, .. });
        let all = self.peers.all().filter(|(_, connection)| is_server(connection.state));
        let servers: Vec<_> = all.map(|(place, _)| place).collect();
        servers.into_iter().for_each(|place| self.send_control(place, message));
    }

    /// Tells those who look after this server why it does not learn of new spaces, once each.
    fn tell_unread(&mut self, why: String) {
        if self.peers.reported_unread.as_ref() != Some(&why) {
            (self.notice)(&format!("the spaces cannot be read: {why}"));
            self.peers.reported_unread = Some(why);
        }
    }

    pub(crate) fn send_control(&mut self, place: usize, control: &Control) {
        self.frame(place, FrameKind::Control, control);
    }

    /// Another thread wants a space.
    pub(crate) fn ask_for_space(
        &mut self,
        space: SpaceParts,
        answer: mpsc::Sender<Option<String>>,
    ) {
        let map_server = self.peers.map.as_ref().and_then(Map::map_server);
        if map_server == Some(self.peers.me.node) {
            let _ = answer.send(self.create_space(&space).err());
            return;
        }
        let inner = self.loop_engine.inner.borrow();
        let place_of =
            |map_server: NodeId| Some((map_server, inner.outside.outbox.place_of(map_server)?));
        let found = map_server.and_then(place_of);
        drop(inner);
        let Some((map_server, place)) = found else {
            let why = "the node that keeps the map is not connected; try again later";
            let _ = answer.send(Some(why.to_owned()));
            return;
        };
        self.peers.requests += 1;
        let request = self.peers.requests;
        self.peers.asked.insert(request, (map_server, answer));
        self.send_control(place, &Control::CreateSpace { request, space });
    }

    /// Another thread has made spaces by a transaction: goes by them, and tells the servers.
    pub(crate) fn take_spaces(&mut self, register: &Register) -> Result<(), String> {
        let map = self.peers.map.as_ref().ok_or("there is no map yet")?;
        let next = register.grown_from(map).map_err(|error| error.to_string())?;
        let message = Control::SpacesMade(next.catalog.epoch);
        self.on_map(next);
        self.tell_servers(&message);
        Ok(())
    }

    /// Makes a space, if this is who decides.
    fn create_space(&mut self, space: &SpaceParts) -> Result<(), String> {
        space.options().judge_everywhere(&space.name, self.peers.keeps_everywhere)?;
        let map = self.peers.map.as_ref().ok_or("there is no map yet")?;
        match map.map_server() {
            Some(map_server) if map_server == self.peers.me.node => {}
            Some(map_server) => {
                return Err(format!("node {} makes the spaces, not this one", map_server.0));
            }
            None => return Err("spaces of groups are made by a transaction".to_owned()),
        }
        let unmet = self.peers.unmet();
        if self.peers.fresh && !unmet.is_empty() {
            let names: Vec<_> = unmet.iter().map(|node| node.0.to_string()).collect();
            let names = names.join(", ");
            return Err(format!("the others may know of more spaces; looking for nodes {names}"));
        }
        let next = map.with_space(space).map_err(|error| error.to_string())?;
        if next != *map {
            let fits = limits::judge_frame(&MapParts::from(&next), self.network.frame_bytes_max);
            fits.map_err(|error| error.to_string())?;
        }
        self.on_map(next);
        Ok(())
    }

    /// A map: if it is newer than the one that is known, everybody hears of it.
    pub(crate) fn on_map(&mut self, map: Map) {
        let Some(map) = self.peers.map.as_ref().map_or(Some(map.clone()), |it| it.newest(&map))
        else {
            return;
        };
        if !self.keep_map(&map) {
            return;
        }
        self.loop_engine.inner.borrow_mut().place(map.catalog.clone());
        if self.peers.me.process_kind == ProcessKind::Server {
            let places: Vec<_> = self.peers.all().map(|(place, _)| place).collect();
            for place in places {
                self.tell_map(place);
            }
            if self.has_left() {
                self.entry_point.stop();
            }
        }
    }

    /// Whether this server was taken off the list.
    pub(crate) fn has_left(&self) -> bool {
        let me = &self.peers.me;
        let map = self.peers.map.as_ref().filter(|_| me.process_kind == ProcessKind::Server);
        map.is_some_and(|map| map.has_left(me.node))
    }

    /// Tells whoever is at `place` the map, if it goes by it.
    pub(crate) fn tell_map(&mut self, place: usize) {
        let up = self.peers.at(place).map(|connection| connection.state);
        if let Some(ConnectionState::Up {
            process_kind: ProcessKind::Server | ProcessKind::Client,
            ..
        }) = up
            && self.peers.me.process_kind == ProcessKind::Server
            && let Some(map) = &self.peers.map
        {
            let map = Control::Map(MapParts::from(map));
            self.send_control(place, &map);
        }
    }
}
