//! Maps that can be and such that cannot, their parts, and what moves with them.

use muesli_core::catalog::{ShardSites, Sites, TreePlan, TreeShape};
use muesli_core::{Index, Partitioning, SmallBytes};
use muesli_core::{RepositoryId, Wire};
use proptest::prelude::*;

use super::*;

fn servers(count: u32) -> Vec<(NodeId, String)> {
    (0..count).map(|node| (NodeId(node), format!("127.0.0.1:{}", 7000 + node))).collect()
}

fn dealt(count: u32, repositories: usize, replicas: usize, group: u16) -> Result<Map, MapError> {
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
        let beside = Beside { sites: sites.clone(), shards: Some(&shards), ..Beside::default() };
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
    assert_eq!(Map::deal_beside(servers(3), deal, beside(&[NodeId(3)])), Err(MapError::Master(3)));
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
