//! The map while the cluster runs: who makes spaces, and how everybody hears of them.
//!
//! One server, the home of the first repository, keeps the map: whoever wants a space asks it. It
//! tells everybody who is connected before it answers, over the same connections, so whoever asked
//! knows the space when it has the answer. A server that has not heard of it yet leaves messages
//! about it out, which are said again.

use std::sync::{Arc, mpsc};

use muesli_core::{Nanos, Protocol};

use crate::connection::Stage;
use crate::control::Control;
use crate::frame::Kind;
use crate::hello::Station;
use crate::map::{Map, MapParts, SpaceParts};
use crate::turn::{Failed, Loop};

impl<P: Protocol> Loop<P> {
    /// A message from another driver.
    pub(crate) fn on_control(&mut self, place: usize, control: Control) {
        match control {
            Control::CreateSpace { request, space } => {
                let refused = self.create_space(&space).err();
                self.say(place, &Control::SpaceCreated { request, refused });
            }
            Control::SpaceCreated { request, refused } => {
                if let Some(answer) = self.peers.asked.remove(&request) {
                    let _ = answer.send(refused); // Whoever asked may have gone.
                }
            }
            Control::Map(parts) => {
                // From a server only, and only if it makes sense.
                let server = self.peers.at(place).is_some_and(|connection| !connection.is_guest());
                if let (true, Ok(map)) = (server, Map::try_from(parts)) {
                    self.on_map(map);
                }
            }
            Control::AskStatus => {
                let status = self.status();
                self.say(place, &Control::Status(status));
            }
            Control::Status(_) => {}
        }
    }

    fn say(&mut self, place: usize, control: &Control) {
        self.station.machine.borrow_mut().outbox.to(place).frame(Kind::Control, control);
    }

    /// Another thread wants a space.
    pub(crate) fn ask_for_space(
        &mut self,
        space: SpaceParts,
        answer: mpsc::Sender<Option<String>>,
    ) {
        let keeper = self.peers.map.as_ref().map(Map::keeper);
        if keeper == Some(self.peers.me.node) {
            let _ = answer.send(self.create_space(&space).err());
            return;
        }
        let machine = self.station.machine.borrow();
        let place = keeper.and_then(|keeper| machine.outbox.place_of(keeper));
        drop(machine);
        let Some(place) = place else {
            let why = "the node that keeps the map is not connected; try again later";
            let _ = answer.send(Some(why.to_owned()));
            return;
        };
        self.peers.requests += 1;
        let request = self.peers.requests;
        self.peers.asked.insert(request, answer);
        self.say(place, &Control::CreateSpace { request, space });
    }

    /// Makes a space, if this is who decides.
    fn create_space(&mut self, space: &SpaceParts) -> Result<(), String> {
        let map = self.peers.map.as_ref().ok_or("there is no map yet")?;
        if map.keeper() != self.peers.me.node {
            return Err(format!("node {} makes the spaces, not this one", map.keeper().0));
        }
        let next = map.catalog.with_space(&space.name, space.options());
        let next = next.map_err(|error| error.to_string())?;
        let next = map.with_catalog(Arc::new(next));
        self.on_map(next);
        Ok(())
    }

    /// A map: if it is newer than the one that is known, everybody hears of it.
    pub(crate) fn on_map(&mut self, map: Map) {
        let known = self.peers.map.as_ref().map(|map| map.catalog.epoch);
        if known.is_some_and(|epoch| epoch >= map.catalog.epoch) {
            return;
        }
        if let Some(Err(error)) = self.peers.folder.as_ref().map(|folder| folder.keep_map(&map)) {
            self.failed = Some(Failed::Folder(error.to_string()));
            return;
        }
        self.station.machine.borrow_mut().node.reconfigure(map.catalog.clone());
        self.peers.map = Some(map.clone());
        self.door.change(|standing| standing.map = Some(map));
        if self.peers.me.station == Station::Server {
            let places: Vec<_> = self.peers.all().map(|(place, _)| place).collect();
            for place in places {
                self.tell_map(place);
            }
        }
    }

    /// Tells whoever is at `place` the map, if it goes by it.
    pub(crate) fn tell_map(&mut self, place: usize) {
        let up = self.peers.at(place).map(|connection| connection.stage);
        if let Some(Stage::Up { station: Station::Server | Station::Client, .. }) = up
            && self.peers.me.station == Station::Server
            && let Some(map) = &self.peers.map
        {
            let map = Control::Map(MapParts::from(map));
            self.say(place, &map);
        }
    }

    /// How this process does.
    fn status(&self) -> Vec<(String, u64)> {
        let machine = self.station.machine.borrow();
        let (coordinated, in_doubt) = machine.node.unfinished();
        let ups = |wanted: Station| {
            let all = self.peers.all();
            let up = |stage| matches!(stage, Stage::Up { station, .. } if station == wanted);
            all.filter(|(_, connection)| up(connection.stage)).count() as u64
        };
        let now: Nanos = machine.now();
        let lines = [
            ("node", u64::from(self.peers.me.node.0)),
            ("ready", u64::from(self.peers.unmet().is_empty())),
            ("epoch", self.peers.map.as_ref().map_or(0, |map| map.catalog.epoch)),
            ("servers", ups(Station::Server)),
            ("clients", ups(Station::Client)),
            ("connections", self.peers.count() as u64),
            ("repositories", machine.node.participants().len() as u64),
            ("in-doubt", in_doubt as u64),
            ("coordinating", coordinated as u64),
            ("tasks", self.tasks() as u64),
            ("messages-sent", machine.counts.sent),
            ("messages-unsent", machine.counts.unsent),
            ("messages-oversize", machine.counts.oversize),
            ("messages-astray", self.peers.astray),
            ("connections-misunderstood", self.peers.misunderstood),
            ("connections-turned-away", self.peers.turned_away),
            ("checkpoints", machine.counts.checkpoints),
            ("time-ms", now.as_millis()),
        ];
        lines.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}
