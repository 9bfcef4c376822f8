//! Where members of groups live, as the map and the node say: both go by the newest of either.
//!
//! The node hears of moves by the messages of its protocol, the map by its drivers' words. A node's
//! next life begins with its map, so the map is on the disk before anything leaves that the node
//! said under a newer placement: every way out passes [`Loop::keep_placement`] first.

use muesli_core::Protocol;

use crate::control::Control;
use crate::map::Map;
use crate::turn::{Failed, Loop};

impl<P: Protocol> Loop<P> {
    /// Keeps the placement that the node goes by, if it is newer than the map's.
    pub(crate) fn keep_placement(&mut self) {
        let Some(map) = &self.peers.map else { return };
        let machine = self.station.machine.borrow();
        let catalog = machine.node.catalog();
        if catalog.placement <= map.catalog.placement {
            return;
        }
        let map = map.with_catalog(catalog.clone());
        drop(machine);
        self.keep_map(&map);
    }

    /// Keeps a map from here on, on the disk if there is one; false, and the process stops, if that
    /// fails.
    pub(crate) fn keep_map(&mut self, map: &Map) -> bool {
        if let Some(Err(error)) = self.peers.folder.as_ref().map(|folder| folder.keep_map(map)) {
            self.failed = Some(Failed::Folder(error.to_string()));
            return false;
        }
        let map = map.clone();
        if !self.peers.targets.is_searching() && self.peers.is_client() {
            self.peers.targets.joined(&map);
        }
        self.peers.map = Some(map.clone());
        self.door.change(|standing| standing.map = Some(map));
        true
    }

    /// The repositories here, and which part they take.
    pub(crate) fn members(&self) -> Control {
        let machine = self.station.machine.borrow();
        let placement = machine.node.catalog().placement;
        Control::Members { placement, members: machine.node.posts() }
    }
}
