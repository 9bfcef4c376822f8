//! The map of a cluster: its servers with their addresses, and the catalog.
//!
//! Over the wire it goes as plain [`MapParts`]; [`Map::try_from`] looks whether they make sense
//! before anybody relies on them.

use std::sync::Arc;

use muesli_core::catalog::CatalogError;
use muesli_core::{Catalog, Index, NodeId, Rule, SmallBytes, SpaceOptions, wire_struct};
use thiserror::Error;

/// A map as it goes over the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapParts {
    /// The servers, and where they listen.
    pub servers: Vec<(NodeId, String)>,
    /// The catalog's epoch.
    pub epoch: u64,
    /// The home of each repository.
    pub homes: Vec<NodeId>,
    /// How many repositories hold each key.
    pub replicas: u16,
    /// The spaces, in the order of their numbers.
    pub spaces: Vec<SpaceParts>,
}

/// A space as it goes over the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceParts {
    /// Its name.
    pub name: String,
    /// Whether it has an ordered index.
    pub ordered: bool,
    /// Where its partitions are split; `None` is by hash.
    pub splits: Option<Vec<SmallBytes>>,
}

wire_struct!(SpaceParts { name: String, ordered: bool, splits: Option<Vec<SmallBytes>> });
wire_struct!(MapParts {
    servers: Vec<(NodeId, String)>,
    epoch: u64,
    homes: Vec<NodeId>,
    replicas: u16,
    spaces: Vec<SpaceParts>,
});

/// A map that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The servers, and where they listen; in the order of their names.
    pub servers: Arc<[(NodeId, String)]>,
    /// Spaces and placement.
    pub catalog: Arc<Catalog>,
}

/// Why a map makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// The catalog cannot be.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A repository lives on a server that there is not.
    #[error("repository {repository} lives on node {home}, which is not a server of the cluster")]
    Home {
        /// The repository.
        repository: usize,
        /// Its home.
        home: u32,
    },
    /// Two servers of one name, or out of order.
    #[error("the servers are not told in the order of their names")]
    Order,
}

impl Map {
    /// A map of `servers` with `repositories` dealt to them in turn.
    ///
    /// # Errors
    /// Numbers out of range.
    pub fn deal(
        servers: Vec<(NodeId, String)>,
        repositories: usize,
        replicas: usize,
    ) -> Result<Map, MapError> {
        let names: Vec<_> = servers.iter().map(|(node, _)| *node).collect();
        let count = names.len().max(1);
        let homes: Vec<_> =
            (0..repositories).filter_map(|at| names.get(at % count).copied()).collect();
        let catalog = Catalog::new(&homes, replicas, &names)?.with_visiting_coordinators();
        Map { servers: servers.into(), catalog: Arc::new(catalog) }.checked()
    }

    /// The same servers with another catalog.
    pub fn with_catalog(&self, catalog: Arc<Catalog>) -> Map {
        Map { servers: self.servers.clone(), catalog }
    }

    /// This map's catalog with the addresses of `now`; `None` where servers or placement differ.
    pub fn moved_to(&self, now: &Map) -> Option<Map> {
        let names = |map: &Map| map.servers.iter().map(|(node, _)| *node).collect::<Vec<_>>();
        let placed = |map: &Map| (map.catalog.homes.clone(), map.catalog.replicas);
        let same = names(self) == names(now) && placed(self) == placed(now);
        let (servers, catalog) = (now.servers.clone(), self.catalog.clone());
        same.then_some(Map { servers, catalog })
    }

    /// Where `node` listens.
    pub fn address_of(&self, node: NodeId) -> Option<&str> {
        self.servers.iter().find(|(server, _)| *server == node).map(|(_, address)| &**address)
    }

    /// Who decides on spaces: the home of the first repository.
    pub fn keeper(&self) -> NodeId {
        self.catalog.homes[0]
    }

    fn checked(self) -> Result<Map, MapError> {
        if !self.servers.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(MapError::Order);
        }
        let stranger = |home: &NodeId| self.address_of(*home).is_none();
        if let Some(repository) = self.catalog.homes.iter().position(stranger) {
            let home = self.catalog.homes[repository].0;
            return Err(MapError::Home { repository, home });
        }
        Ok(self)
    }
}

impl SpaceParts {
    /// As a space's name and options.
    pub fn of(name: &str, options: &SpaceOptions) -> SpaceParts {
        let splits = match &options.rule {
            Rule::Hash => None,
            Rule::Range(splits) => Some(splits.clone()),
        };
        SpaceParts { name: name.to_owned(), ordered: options.index == Index::Ordered, splits }
    }

    /// The options.
    pub fn options(&self) -> SpaceOptions {
        let index = if self.ordered { Index::Ordered } else { Index::Hash };
        let rule = self.splits.clone().map_or(Rule::Hash, Rule::Range);
        SpaceOptions { index, rule }
    }
}

impl From<&Map> for MapParts {
    fn from(map: &Map) -> MapParts {
        let catalog = &map.catalog;
        let spaces = catalog.spaces().iter();
        MapParts {
            servers: map.servers.to_vec(),
            epoch: catalog.epoch,
            homes: catalog.homes.to_vec(),
            replicas: catalog.replicas,
            spaces: spaces.map(|space| SpaceParts::of(&space.name, &space.options)).collect(),
        }
    }
}

impl TryFrom<MapParts> for Map {
    type Error = MapError;

    fn try_from(parts: MapParts) -> Result<Map, MapError> {
        let names: Vec<_> = parts.servers.iter().map(|(node, _)| *node).collect();
        let catalog = Catalog::new(&parts.homes, usize::from(parts.replicas), &names)?;
        let mut catalog = catalog.with_visiting_coordinators();
        for space in &parts.spaces {
            catalog = catalog.with_space(&space.name, space.options())?;
        }
        catalog.epoch = parts.epoch;
        Map { servers: parts.servers.into(), catalog: Arc::new(catalog) }.checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muesli_core::Wire;
    use proptest::prelude::*;

    fn servers(count: u32) -> Vec<(NodeId, String)> {
        (0..count).map(|node| (NodeId(node), format!("127.0.0.1:{}", 7000 + node))).collect()
    }

    proptest! {
        #[test]
        fn maps_come_back_from_their_bytes(count in 1u32..5, repositories in 1usize..9) {
            let map = Map::deal(servers(count), repositories, 1).unwrap();
            let splits = (1..repositories).map(|at| SmallBytes::new(&[at as u8])).collect();
            let ranged = SpaceOptions { index: Index::Hash, rule: Rule::Range(splits) };
            let catalog = map.catalog.with_space("a", SpaceOptions::default()).unwrap();
            let map = map.with_catalog(Arc::new(catalog.with_space("b", ranged).unwrap()));
            let mut bytes = Vec::new();
            MapParts::from(&map).encode(&mut bytes);
            let back = Map::try_from(MapParts::decode_all(&bytes).unwrap());
            prop_assert_eq!(back, Ok(map));
        }

        #[test]
        fn any_bytes_are_a_map_or_refused(bytes: Vec<u8>) {
            if let Ok(parts) = MapParts::decode_all(&bytes) {
                let _ = Map::try_from(parts);
            }
        }
    }

    #[test]
    fn maps_that_make_no_sense_are_refused() {
        let mut parts = MapParts::from(&Map::deal(servers(2), 2, 1).unwrap());
        parts.homes[1] = NodeId(9);
        assert_eq!(Map::try_from(parts.clone()), Err(MapError::Home { repository: 1, home: 9 }));
        parts.servers.reverse();
        assert_eq!(Map::try_from(parts), Err(MapError::Order));
        assert!(Map::deal(servers(2), 2, 3).is_err());
        assert!(Map::deal(Vec::new(), 2, 1).is_err());
    }
}
