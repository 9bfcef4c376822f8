//! The map of a cluster: its servers with their addresses, and the catalog.
//!
//! Where repositories live on groups of servers, the catalog names the members of the groups
//! (`muesli_group::layout`), and has a space of its own for the row that says where members live.
//! Servers, those that have left, spaces and placement are decided in different places and only
//! ever grow, so of two maps the [newest](Map::newest) of each is taken.
//!
//! Over the wire it goes as plain [`MapParts`]; [`Map::try_from`] looks whether they make sense
//! before anybody relies on them.

use std::sync::Arc;

use muesli_core::{Catalog, NodeId, SpaceOptions};
use muesli_group::layout;
use muesli_group::placement::SPACE;

use crate::spaces::deal::{at_sites, homes, round_robin};
use crate::spaces::error::MapError;
use crate::spaces::limits;
use crate::spaces::parts::{MapParts, SpaceParts, TreeParts};

pub use crate::spaces::deal::{Beside, Deal};

/// A map that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The servers, and where they listen; in the order of their names. Those that have left are
    /// kept, so that their names are not used again.
    pub servers: Arc<[(NodeId, String)]>,
    /// How many servers kept each repository at first.
    pub group: u16,
    /// How many servers, one after the other, are loops of one process.
    pub loops: u16,
    /// Spaces and placement, and who has left.
    pub catalog: Arc<Catalog>,
}

impl Map {
    /// A map of `servers` with repositories dealt to them in turn.
    ///
    /// # Errors
    /// Numbers out of range.
    pub fn deal(servers: Vec<(NodeId, String)>, deal: Deal) -> Result<Map, MapError> {
        Map::deal_beside(servers, deal, Beside::default())
    }

    /// A map of `servers` with repositories dealt in turn to those of them that are neither masters
    /// nor there for validators.
    ///
    /// # Errors
    /// Numbers out of range, others that are no servers, or all of them; or a tree that does not
    /// fit.
    pub fn deal_beside(
        servers: Vec<(NodeId, String)>,
        deal: Deal,
        beside: Beside<'_>,
    ) -> Result<Map, MapError> {
        let Beside { masters, tree, validators, sites, shards } = beside;
        let names: Vec<_> = servers.iter().map(|(node, _)| *node).collect();
        if let Some(stranger) = validators.iter().find(|node| !names.contains(node)) {
            return Err(MapError::Validator(stranger.0));
        }
        let Deal { repositories, replicas, partitions_per_repository, group, .. } = deal;
        let is_left = |node: &NodeId| !masters.contains(node) && !validators.contains(node);
        let keep: Vec<_> = names.iter().copied().filter(is_left).collect();
        if keep.is_empty() && !names.is_empty() {
            return Err(MapError::OnlyMasters(names.len()));
        }
        let homes = match shards {
            Some(shards) => at_sites(&keep, deal, (shards, &sites))?,
            None if group > 1 => homes(&keep, deal)?,
            None => round_robin(&keep, repositories),
        };
        let catalog = Catalog::new(&homes, replicas, &names)?
            .with_partitions_per_repository(partitions_per_repository)?;
        let catalog = catalog.with_visiting_coordinators().with_masters(masters);
        let catalog = catalog.with_sites(sites.clone());
        let catalog = match group > 1 {
            true => catalog.with_space(SPACE, SpaceOptions::default())?,
            false => catalog,
        };
        let catalog = match tree {
            None => catalog,
            Some(tree) if group > 1 => layout::with_tree(&catalog, tree, validators)?,
            Some(tree) => catalog.with_tree(tree, validators)?,
        };
        let (servers, loops) =
            (servers.into(), u16::try_from(deal.loops.max(1)).unwrap_or(u16::MAX));
        Map { servers, group, loops, catalog: Arc::new(catalog) }.checked()
    }

    /// This map as a server has it that comes into a cluster that runs already: it knows whom to
    /// ask, and that any placement and any spaces that it hears of are newer.
    pub fn unplaced(&self) -> Map {
        let mut catalog = Catalog::clone(&self.catalog);
        let first = self.servers.first().map_or(NodeId(0), |(first, _)| *first);
        let there = |home: &NodeId| if *home == NodeId::NOWHERE { *home } else { first };
        catalog.homes = catalog.homes.iter().map(there).collect();
        (catalog.epoch, catalog.placement) = (0, 0);
        (catalog.tree_epoch, catalog.hierarchy) = (0, None);
        self.with_catalog(Arc::new(catalog))
    }

    /// The same servers with another catalog.
    pub fn with_catalog(&self, catalog: Arc<Catalog>) -> Map {
        Map { catalog, ..self.clone() }
    }

    /// The same with one more space.
    ///
    /// # Errors
    /// The space exists with other options, does not fit the repositories, or is over a limit.
    pub fn with_space(&self, space: &SpaceParts) -> Result<Map, MapError> {
        let is_new = self.catalog.space_named(&space.name).is_none();
        if is_new {
            let count = self.catalog.spaces().len() + 1;
            limits::judge_new(count, std::slice::from_ref(space))?;
        }
        let catalog = self.catalog.with_space(&space.name, space.options())?;
        let map = self.with_catalog(Arc::new(catalog)).checked()?;
        if is_new {
            limits::judge_map(&MapParts::from(&map))?;
        }
        Ok(map)
    }

    /// The newest of this map and another one of the same cluster. `None`: the other one has
    /// nothing new, or is of another cluster.
    pub fn newest(&self, other: &Map) -> Option<Map> {
        if self.shape() != other.shape() {
            return None;
        }
        let more = other.servers.len() > self.servers.len();
        let servers = if more { &other.servers } else { &self.servers };
        let catalog = self.catalog.newest(&other.catalog);
        if !more && catalog.is_none() {
            return None;
        }
        let catalog = catalog.map_or_else(|| self.catalog.clone(), Arc::new);
        Some(Map { servers: servers.clone(), catalog, ..self.clone() })
    }

    /// What a cluster keeps for ever.
    pub(crate) fn shape(&self) -> (usize, [u16; 4], &[NodeId]) {
        let Catalog { replicas, partitions_per_repository, ref masters, .. } = *self.catalog;
        (
            self.catalog.repositories(),
            [replicas, partitions_per_repository, self.group, self.loops],
            masters,
        )
    }

    /// The servers that have not left.
    pub fn there(&self) -> impl Iterator<Item = &(NodeId, String)> {
        self.servers.iter().filter(|(node, _)| !self.has_left(*node))
    }

    /// Whether a server has left for good.
    pub fn has_left(&self, node: NodeId) -> bool {
        self.catalog.left.contains(&node)
    }

    /// This map with the addresses and sites of `now`; `None` where it is of other servers or
    /// repositories. Where there are groups, members may have moved, and servers may have joined.
    pub fn moved_to(&self, now: &Map) -> Option<Map> {
        let names = |map: &Map| map.servers.iter().map(|(node, _)| *node).collect::<Vec<_>>();
        let (before, after) = (names(self), names(now));
        let same = match self.group > 1 {
            true => before.starts_with(&after),
            false => before == after && self.catalog.homes == now.catalog.homes,
        };
        let same = same && !self.differs_in_tree(now);
        let joined = &self.servers[after.len().min(before.len())..];
        let servers = now.servers.iter().chain(joined).cloned().collect();
        let catalog = Catalog::clone(&self.catalog).with_sites(now.catalog.sites.clone());
        let moved = || Map { servers, catalog: Arc::new(catalog), ..self.clone() };
        (same && self.shape() == now.shape()).then(moved)
    }

    /// What keeps this map, as it was kept, from being [moved](Self::moved_to) to another one.
    pub fn differences(&self, now: &Map) -> Vec<String> {
        let names = |map: &Map| map.servers.iter().map(|(node, _)| node.0).collect::<Vec<_>>();
        let masters = |map: &Map| map.catalog.masters.iter().map(|it| it.0).collect::<Vec<_>>();
        let numbers = |map: &Map| {
            let Catalog { replicas, partitions_per_repository, .. } = *map.catalog;
            let repositories = map.catalog.repositories();
            let repositories = if map.group > 1 {
                repositories / usize::from(layout::PLACES)
            } else {
                repositories
            };
            [
                ("repositories", repositories),
                ("replicas", replicas.into()),
                ("spread", partitions_per_repository.into()),
                ("group", map.group.into()),
                ("loops", map.loops.into()),
            ]
        };
        let pairs = numbers(self).into_iter().zip(numbers(now));
        let mut all: Vec<_> = pairs
            .filter(|(before, after)| before != after)
            .map(|((name, before), (_, after))| format!("`{name}` was {before} and is {after}"))
            .collect();
        for (name, before, after) in
            [("servers", names(self), names(now)), ("masters", masters(self), masters(now))]
        {
            if before != after {
                all.push(format!("the nodes of `{name}` were {before:?} and are {after:?}"));
            }
        }
        if self.differs_in_tree(now) {
            let (before, after) = (self.tree_text(), now.tree_text());
            all.push(format!(
                "`tree` was {before} and is {after}; `muesli admin tree set` changes it"
            ));
        }
        if all.is_empty() {
            all.push("its repositories live on other servers".to_owned());
        }
        all
    }

    /// Where `node` listens, if it is a server that has not left.
    pub fn address_of(&self, node: NodeId) -> Option<&str> {
        self.there().find(|(server, _)| *server == node).map(|(_, address)| &**address)
    }

    /// Who decides on spaces: the home of the first repository. Where that may move, nobody does,
    /// but the database itself ([`register`](crate::spaces::register)).
    pub fn map_server(&self) -> Option<NodeId> {
        (self.group <= 1).then(|| self.catalog.homes[0])
    }

    pub(super) fn checked(self) -> Result<Map, MapError> {
        if !self.servers.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(MapError::Order);
        }
        if self.servers.is_empty() {
            return Err(MapError::NoServers);
        }
        let (epoch, spaces) = (self.catalog.epoch, self.catalog.spaces().len());
        if epoch > 0 && epoch != spaces as u64 + 1 {
            return Err(MapError::Epoch { epoch, spaces });
        }
        let is_server = |node: NodeId| self.servers.iter().any(|(server, _)| *server == node);
        if let Some(stranger) = self.catalog.left.iter().find(|&&node| !is_server(node)) {
            return Err(MapError::Left(stranger.0));
        }
        if let Some(stranger) = self.catalog.masters.iter().find(|&&node| !is_server(node)) {
            return Err(MapError::Master(stranger.0));
        }
        let stranger = self.catalog.sites.nodes().find(|&node| !is_server(node));
        if let Some(stranger) = stranger {
            return Err(MapError::Placed(stranger.0));
        }
        self.check_tree()?;
        if self.group > 1 {
            if !layout::is_sound(&self.catalog) {
                return Err(MapError::Group { places: self.catalog.repositories() });
            }
            layout::try_inner(&self.catalog)?;
            // A member may live on a server that joined, of which is heard next.
            return Ok(self);
        }
        let stranger = |home: &NodeId| self.address_of(*home).is_none();
        if let Some(repository) = self.catalog.homes.iter().position(stranger) {
            let home = self.catalog.homes[repository].0;
            return Err(MapError::Home { repository, home });
        }
        Ok(self)
    }
}

impl From<&Map> for MapParts {
    fn from(map: &Map) -> MapParts {
        let catalog = &map.catalog;
        let spaces = catalog.spaces().iter();
        MapParts {
            servers: map.servers.to_vec(),
            group: map.group,
            loops: map.loops,
            left: catalog.left.to_vec(),
            epoch: catalog.epoch,
            placement: catalog.placement,
            homes: catalog.stays(),
            leaving: catalog.leaving.to_vec(),
            begun: catalog.begun.to_vec(),
            replicas: catalog.replicas,
            partitions_per_repository: catalog.partitions_per_repository,
            masters: catalog.masters.to_vec(),
            sites: catalog.sites.clone(),
            spaces: spaces.map(|space| SpaceParts::of(&space.name, &space.options)).collect(),
            tree: (catalog.tree_epoch > 0).then(|| TreeParts {
                epoch: catalog.tree_epoch,
                tree: catalog.hierarchy.as_deref().cloned(),
            }),
        }
    }
}

impl TryFrom<MapParts> for Map {
    type Error = MapError;

    fn try_from(parts: MapParts) -> Result<Map, MapError> {
        let names: Vec<_> = parts.servers.iter().map(|(node, _)| *node).collect();
        let (homes, since): (Vec<_>, Vec<_>) = parts.homes.iter().copied().unzip();
        let catalog = Catalog::new(&homes, usize::from(parts.replicas), &names)?;
        let catalog =
            catalog.with_partitions_per_repository(usize::from(parts.partitions_per_repository))?;
        let catalog = catalog.with_visiting_coordinators().with_masters(&parts.masters);
        let mut catalog = catalog.with_sites(parts.sites);
        for space in &parts.spaces {
            catalog = catalog.with_space(&space.name, space.options())?;
        }
        (catalog.epoch, catalog.placement) = (parts.epoch, parts.placement);
        if let Some(TreeParts { epoch, tree }) = parts.tree {
            (catalog.tree_epoch, catalog.hierarchy) = (epoch, tree.map(Arc::new));
        }
        (catalog.since, catalog.leaving) = (since.into(), parts.leaving.into());
        let catalog = Arc::new(catalog.without(&parts.left).with_begun(&parts.begun));
        let MapParts { group, loops, .. } = parts;
        Map { servers: parts.servers.into(), group, loops, catalog }.checked()
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
