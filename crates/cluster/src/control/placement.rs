//! Where members of groups live, as the map and the node say: both go by the newest of either.
//!
//! The node hears of moves by the messages of its protocol, the map by its drivers' words. A node's
//! next life begins with its map, so the map is on the disk before anything leaves that the node
//! said under a newer placement: every way out passes [`Loop::keep_placement`] first.

use std::sync::Arc;

use crate::dispatch::event_loop::Loop;
use crate::dispatch::failure::LoopFailure;
use crate::spaces::map::Map;
use crate::wire::control::Control;

impl Loop {
    /// Keeps the placement that the node goes by, and which groups it knows to have begun, if the
    /// map does not know of it.
    pub(crate) fn keep_placement(&mut self) {
        let Some(map) = &self.peers.map else { return };
        let inner = self.loop_engine.inner.borrow();
        let catalog = inner.machine.catalog();
        let begun = catalog.begun.len() > map.catalog.begun.len();
        if catalog.placement <= map.catalog.placement && !begun {
            return;
        }
        let Some(newest) = map.catalog.newest(catalog) else { return };
        let map = map.with_catalog(Arc::new(newest));
        drop(inner);
        self.keep_map(&map);
    }

    /// Keeps a map from here on, on the disk if there is one; false, and the process stops, if that
    /// fails.
    pub(crate) fn keep_map(&mut self, map: &Map) -> bool {
        if let Some(Err(error)) = self.peers.folder.as_ref().map(|folder| folder.keep_map(map)) {
            self.failed = Some(LoopFailure::Folder(error.to_string()));
            return false;
        }
        let map = map.clone();
        self.peers.targets.left(&map);
        if !self.peers.targets.is_searching() && self.peers.is_client() {
            self.peers.targets.joined(&map);
        }
        self.peers.map = Some(map.clone());
        self.entry_point.change(|status| status.map = Some(map));
        true
    }

    /// The repositories here, and which part they take.
    pub(crate) fn members(&self) -> Control {
        let inner = self.loop_engine.inner.borrow();
        let placement = inner.machine.catalog().placement;
        let (members, lags) = (inner.machine.replica_roles(), inner.machine.lags());
        Control::Members { placement, members, lags }
    }
}
