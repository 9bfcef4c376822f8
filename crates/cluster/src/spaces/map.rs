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
mod tests {
    use muesli_core::catalog::{ShardSites, Sites, TreePlan, TreeShape};
    use muesli_core::{Index, Partitioning, SmallBytes};
    use muesli_core::{RepositoryId, Wire};
    use proptest::prelude::*;

    use super::*;

    fn servers(count: u32) -> Vec<(NodeId, String)> {
        (0..count).map(|node| (NodeId(node), format!("127.0.0.1:{}", 7000 + node))).collect()
    }

    fn dealt(
        count: u32,
        repositories: usize,
        replicas: usize,
        group: u16,
    ) -> Result<Map, MapError> {
        let deal = Deal { repositories, replicas, partitions_per_repository: 2, group, loops: 1 };
        Map::deal(servers(count), deal)
    }

    proptest! {
        #[test]
        fn maps_come_back_from_their_bytes(count in 1u32..5, repositories in 1usize..9) {
            let group = if count < 3 { 1 } else { 3 };
            let map = dealt(count, repositories, 1, group).unwrap();
            let splits = (1..repositories).map(|at| SmallBytes::new(&[at as u8])).collect();
            let partitioning = Partitioning::Range(splits);
            let ranged = SpaceOptions { index: Index::Hash, partitioning };
            let map = map.with_space(&SpaceParts::of("a", &SpaceOptions::default())).unwrap();
            let map = map.with_space(&SpaceParts::of("b", &ranged)).unwrap();
            let moved = map.catalog.moved(RepositoryId(0), NodeId(0)).with_begun(&[0]);
            let moved = if group > 1 { moved.without(&[NodeId(count - 1)]) } else { moved };
            let map = map.with_catalog(Arc::new(moved));
            let leaves = map.catalog.homes.iter().filter(|it| **it != NodeId::NOWHERE).count();
            let plan = TreePlan::from("1".parse::<TreeShape>().unwrap());
            let map = match (leaves, count) {
                (1, _) => map.with_next_tree(Some(&plan), &[]).unwrap(),
                (_, 2) => map.with_next_tree(None, &[]).unwrap(),
                _ => map,
            };
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
        let mut parts = MapParts::from(&dealt(2, 2, 1, 1).unwrap());
        parts.homes[1].0 = NodeId(9);
        assert_eq!(Map::try_from(parts.clone()), Err(MapError::Home { repository: 1, home: 9 }));
        parts.servers.reverse();
        assert_eq!(Map::try_from(parts), Err(MapError::Order));
        assert!(dealt(2, 2, 3, 1).is_err());
        assert!(dealt(0, 2, 1, 1).is_err());
        // Found by fuzzing: members of groups may live on servers that are not known yet, but
        // without any server there is nobody to ask about them.
        let mut parts = MapParts::from(&dealt(3, 2, 1, 3).unwrap());
        for epoch in [1, 3, u64::MAX] {
            let parts = MapParts { epoch, ..parts.clone() };
            assert_eq!(Map::try_from(parts), Err(MapError::Epoch { epoch, spaces: 1 }));
        }
        parts.servers.clear();
        assert_eq!(Map::try_from(parts), Err(MapError::NoServers));
    }

    #[test]
    fn members_of_shards_live_at_the_sites_that_are_named() {
        let sites = Sites::round_robin(&["east", "west"], 4);
        let shards = ShardSites::parse("west,east west,west").unwrap();
        let map = |deal| {
            let beside =
                Beside { sites: sites.clone(), shards: Some(&shards), ..Beside::default() };
            Map::deal_beside(servers(4), deal, beside)
        };
        let deal = Deal { repositories: 4, replicas: 2, ..Deal::default() };
        let homes = [1, 0, 3, 1].map(NodeId);
        assert_eq!(*map(deal).unwrap().catalog.homes, homes);
        for (deal, part) in [
            (Deal { replicas: 1, ..deal }, "there are to be 4 with 1, each kept by 1 servers"),
            (Deal { group: 3, ..deal }, "each kept by 3 servers"),
            (Deal { loops: 4, ..deal }, "where 1 processes keep data"),
        ] {
            let error = map(deal).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn sites_are_of_servers_and_go_where_the_map_goes() {
        let east_and_west = |east: &[NodeId], west: &[NodeId]| {
            let sites = Sites::new(&[("east", east), ("west", west)]).unwrap();
            let deal = Deal { repositories: 3, ..Deal::default() };
            Map::deal_beside(servers(3), deal, Beside { sites, ..Beside::default() })
        };
        let map = east_and_west(&[NodeId(0), NodeId(2)], &[NodeId(1)]).unwrap();
        let mut bytes = Vec::new();
        MapParts::from(&map).encode(&mut bytes);
        let back = Map::try_from(MapParts::decode_all(&bytes).unwrap()).unwrap();
        assert_eq!(back.catalog.sites, map.catalog.sites);
        assert_eq!(back.catalog.sites.of(NodeId(2)), Some("east"));
        // What the file says of sites counts at the next start.
        let other = east_and_west(&[NodeId(0)], &[NodeId(1), NodeId(2)]).unwrap();
        let moved = map.moved_to(&other).expect("the same servers and repositories");
        assert_eq!(moved.catalog.sites, other.catalog.sites);
        let stranger = east_and_west(&[NodeId(7)], &[]).unwrap_err();
        assert_eq!(stranger, MapError::Placed(7));
    }

    #[test]
    fn masters_are_servers_without_repositories() {
        let deal = Deal { repositories: 4, ..Deal::default() };
        let beside = |masters| Beside { masters, ..Beside::default() };
        let map = Map::deal_beside(servers(3), deal, beside(&[NodeId(1)])).unwrap();
        assert_eq!(*map.catalog.homes, [0, 2, 0, 2].map(NodeId));
        assert_eq!(map.catalog.master_of(NodeId(1 << 31)), Some(NodeId(1)));
        let mut parts = MapParts::from(&map);
        assert_eq!(Map::try_from(parts.clone()), Ok(map.clone()));
        parts.masters = vec![NodeId(7)];
        assert_eq!(Map::try_from(parts), Err(MapError::Master(7)));
        assert_eq!(
            Map::deal_beside(servers(3), deal, beside(&[NodeId(3)])),
            Err(MapError::Master(3))
        );
        let all = [0, 1, 2].map(NodeId);
        assert_eq!(Map::deal_beside(servers(3), deal, beside(&all)), Err(MapError::OnlyMasters(3)));
        let plain = Map::deal(servers(3), deal).unwrap();
        assert_eq!((plain.newest(&map), plain.moved_to(&map)), (None, None));
        let pairs = Deal { repositories: 2, group: 2, loops: 2, ..Deal::default() };
        let map = Map::deal_beside(servers(6), pairs, beside(&[NodeId(0), NodeId(1)])).unwrap();
        assert!(map.catalog.homes.iter().all(|home| home.0 > 1));
    }

    #[test]
    fn groups_that_do_not_fit_are_refused() {
        let error = dealt(2, 2, 1, 3).unwrap_err().to_string();
        assert!(error.contains("groups of 3 on 2 nodes"), "{error}");
        assert!(dealt(3, 2, 3, 3).is_err(), "more replicas than groups");
        let map = dealt(3, 2, 2, 3).unwrap();
        let splits = (b'a'..=b'd').map(|it| SmallBytes::new(&[it])).collect();
        let ranged =
            SpaceOptions { partitioning: Partitioning::Range(splits), ..SpaceOptions::default() };
        assert!(map.with_space(&SpaceParts::of("r", &ranged)).is_err(), "five ranges of four");
        let mut parts = MapParts::from(&map);
        parts.leaving = vec![RepositoryId(0), RepositoryId(1)];
        assert_eq!(Map::try_from(parts), Err(MapError::Group { places: 18 }));
    }

    #[test]
    fn no_process_holds_two_members_of_a_group() {
        let deal =
            Deal { repositories: 5, replicas: 1, partitions_per_repository: 1, group: 3, loops: 2 };
        let map = Map::deal(servers(6), deal).unwrap();
        for members in map.catalog.homes.chunks(layout::PLACES.into()) {
            let mut processes: Vec<_> = members[..3].iter().map(|node| node.0 / 2).collect();
            processes.sort_unstable();
            assert_eq!(processes, [0, 1, 2]);
        }
    }

    #[test]
    fn of_two_maps_the_newest_of_each_is_taken() {
        let first = dealt(4, 2, 1, 3).unwrap();
        let space = SpaceParts::of("s", &SpaceOptions::default());
        let moved = first.catalog.moved(RepositoryId(0), NodeId(3));
        let moved = first.with_catalog(Arc::new(moved));
        let both = moved.with_space(&space).unwrap();
        assert_eq!(moved.newest(&first.with_space(&space).unwrap()), Some(both.clone()));
        assert_eq!(both.newest(&moved), None);
        assert_eq!(first.unplaced().newest(&both), Some(both.clone()));
        assert_eq!(first.newest(&dealt(4, 2, 1, 1).unwrap()), None);
        let left = first.with_catalog(Arc::new(first.catalog.without(&[NodeId(2)])));
        let fewer = both.newest(&left).unwrap();
        assert_eq!((fewer.there().count(), fewer.address_of(NodeId(2))), (3, None));
        assert_eq!(fewer.catalog.homes, both.catalog.homes);
        assert_eq!(both.moved_to(&first), Some(both.clone()));
        assert_eq!(both.moved_to(&dealt(3, 2, 1, 3).unwrap()), Some(both));
    }
}
