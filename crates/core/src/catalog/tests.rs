//! Placement, and what is taken of two catalogs.

use proptest::prelude::*;

use super::*;
use crate::bytes::SmallBytes;
use crate::parts::locator::Static;

fn catalog(repositories: usize, replicas: usize) -> Catalog {
    let homes: Vec<_> = (0..repositories as u32).map(NodeId).collect();
    Catalog::new(&homes, replicas, &homes).unwrap()
}

#[test]
fn impossible_numbers_are_refused() {
    assert_eq!(Catalog::new(&[], 1, &[]), Err(CatalogError::Repositories(0)));
    let error = Catalog::new(&[NodeId(0)], 2, &[]).unwrap_err();
    assert_eq!(error, CatalogError::Replicas { replicas: 2, repositories: 1 });
    let splits = Partitioning::Range(vec!["b".into(), "a".into()]);
    let options = SpaceOptions { partitioning: splits, ..SpaceOptions::default() };
    assert!(catalog(4, 1).with_space("s", options).is_err());
    assert!(
        catalog(4, 1).with_partitions_per_repository(0).is_err()
            && catalog(2, 1).with_partitions_per_repository(40_000).is_err()
    );
}

#[test]
fn each_coordinator_has_one_master_while_that_stays() {
    let nodes: Vec<_> = (0..8).map(NodeId).collect();
    let masters = [NodeId(6), NodeId(7)];
    let plain = catalog(3, 1);
    assert!(nodes.iter().all(|node| plain.master_of(*node).is_none()));
    let with = plain.with_masters(&masters);
    let of = |catalog: &Catalog| nodes.iter().map(|it| catalog.master_of(*it)).collect();
    let all: Vec<_> = of(&with);
    let round_robin = masters.iter().copied().map(Some).cycle().take(6);
    assert_eq!(all, round_robin.chain([None, None]).collect::<Vec<_>>());
    let fewer: Vec<_> = of(&with.without(&masters[..1]));
    assert!(fewer[..6].iter().all(|master| *master == Some(NodeId(7))));
    assert!(with.without(&masters).master_of(NodeId(0)).is_none());
    let behind = Catalog { placement: 0, ..catalog(3, 1) };
    assert_eq!(behind.newest(&with).map(|it| it.masters), Some(with.masters));
}

#[test]
fn sites_come_with_the_placement_and_trees_by_their_own_epoch() {
    let homes: Vec<_> = (0..3).map(NodeId).collect();
    let sites = Sites::new(&[("here", &homes[..2])]).unwrap();
    let tree = Hierarchy::balanced(3, 2, &homes).unwrap();
    let with = catalog(3, 1).with_sites(sites.clone()).with_hierarchy(tree.clone()).unwrap();
    let behind = Catalog { placement: 0, ..catalog(3, 1) };
    let newest = behind.newest(&with).unwrap();
    assert_eq!((newest.sites, newest.hierarchy.as_deref()), (sites, Some(&tree)));
    let moved = with.moved(RepositoryId(0), NodeId(2));
    let none = with.clone().with_next_tree(None);
    assert_eq!((none.tree_epoch, moved.newest(&none).unwrap().hierarchy), (2, None));
    assert_eq!(none.newest(&with), None);
    // Two trees of one epoch: both sides take the same.
    let other = Hierarchy::balanced(3, 3, &homes).unwrap();
    let (one, other) = (with.clone(), catalog(3, 1).with_hierarchy(other).unwrap());
    let taken = |it: &Catalog, than: &Catalog| it.newest(than).unwrap_or(it.clone()).hierarchy;
    assert_eq!(taken(&one, &other), taken(&other, &one));
    assert_ne!(one.hierarchy, other.hierarchy);
    let refused = catalog(4, 1).with_hierarchy(tree).err();
    assert_eq!(refused, Some(NotATree::Leaves { leaves: 3, repositories: 4 }));
}

/// Eight repositories in racks of four: the keys of a customer are split into as many ranges.
#[test]
fn ranges_side_by_side_lie_below_one_inner_node() {
    let splits = (1..8).map(|at| SmallBytes::from(format!("{}/{}", at / 4, at % 4).as_str()));
    let partitioning = Partitioning::Range(splits.collect());
    let options = SpaceOptions { partitioning, ..SpaceOptions::default() };
    let plan = TreePlan::from("2x4".parse::<TreeShape>().unwrap());
    let all = catalog(8, 1).with_space("orders", options).unwrap().with_tree(&plan, &[]).unwrap();
    let tree = all.hierarchy.clone().unwrap();
    let homes = |customer: u8| {
        let key = |order| SmallBytes::from(format!("{customer}/{order}").as_str());
        let partition = |order| RepositoryId(all.partition(SpaceId(0), &key(order)));
        (0..10).map(partition).collect::<Vec<_>>()
    };
    for customer in [0, 1] {
        let lowest = tree.lowest_above(&homes(customer)).unwrap();
        assert_eq!(tree.parent(lowest), Some(0), "{:?}", homes(customer));
    }
    let both = [homes(0), homes(1)].concat();
    assert_eq!(tree.lowest_above(&both), Some(0), "the root is above two customers");
}

#[test]
fn whoever_is_told_of_a_move_has_the_same_catalog() {
    let before = catalog(3, 1);
    let after = before.moved(RepositoryId(1), NodeId(7));
    assert_eq!((after.home(RepositoryId(1)), after.since[1]), (NodeId(7), after.placement));
    assert_eq!(after.home(RepositoryId(2)), NodeId(2));
    let stays = after.stays();
    assert_eq!(before.placed(after.placement, &stays, &[]), Some(after.clone()));
    assert_eq!(after.placed(after.placement, &stays, &[]), None);
    assert_eq!(before.placed(after.placement, &stays[1..], &[]), None);
}

#[test]
fn of_two_catalogs_the_newer_spaces_and_the_newer_homes_are_taken() {
    let first = catalog(3, 1);
    let moved = first.moved(RepositoryId(0), NodeId(2));
    let wider = first.with_space("s", SpaceOptions::default()).unwrap();
    let both = moved.with_space("s", SpaceOptions::default()).unwrap();
    assert_eq!(moved.newest(&wider), Some(both.clone()));
    assert_eq!(wider.newest(&moved), Some(both.clone()));
    assert_eq!(both.newest(&moved).or(both.newest(&wider)).or(both.newest(&first)), None);
    let begun = first.with_begun(&[3, 1]).newest(&first.with_begun(&[2, 1])).unwrap();
    assert_eq!(*begun.begun, [1, 2, 3]);
    assert_eq!(begun.newest(&first), None);
    let partitions_per_repository =
        Catalog { placement: 2, ..catalog(4, 1).with_partitions_per_repository(3).unwrap() };
    assert_eq!(first.newest(&partitions_per_repository).map(|it| it.partitions()), Some(12));
}

#[test]
fn who_has_left_stays_away_whoever_is_heard_of_last() {
    let nodes: Vec<_> = (0..4).map(NodeId).collect();
    let first = Catalog::new(&nodes[..3], 1, &nodes[..3]).unwrap();
    let grown = Catalog { coordinators: nodes[..].into(), ..first.clone() };
    let left = first.without(&[NodeId(1)]);
    let both = first.newest(&grown).unwrap().newest(&left).unwrap();
    assert_eq!(*both.coordinators, [NodeId(0), NodeId(2), NodeId(3)]);
    assert_eq!(left.newest(&grown), Some(both.clone()));
    assert_eq!(both.newest(&grown).or(both.newest(&left)).or(both.newest(&first)), None);
}

fn units(domain: &str, map: UnitMap) -> SpaceOptions {
    let units = Units::new(domain, &[UnitPart::Fixed(1)]).placed(map.into());
    SpaceOptions { partitioning: Partitioning::Unit(units), ..SpaceOptions::default() }
}

#[test]
fn keys_of_a_unit_are_in_one_partition_of_all_spaces_of_its_domain() {
    let map = || UnitMap::of_units(0, [("a".into(), 2), ("b".into(), 0)]);
    let catalog = catalog(3, 1).with_space("one", units("letter", map())).unwrap();
    let catalog = catalog.with_space("two", units("letter", map())).unwrap();
    let of = |space, key: &str| catalog.partition(SpaceId(space), &key.into());
    for rest in ["", "1", "22"] {
        for space in 0..2 {
            assert_eq!(of(space, &format!("a{rest}")), 2);
            assert_eq!(of(space, &format!("b{rest}")), 0);
            assert_eq!(of(space, &format!("z{rest}")), of(0, "z"), "by the hash of the unit");
        }
    }
    let range =
        |lo: &str, hi: &str| catalog.partitions_of_range(SpaceId(0), &lo.into(), Some(&hi.into()));
    assert_eq!((range("a", "b"), range("a1", "a7")), (2..3, 2..3));
    assert_eq!(range("a", "c"), 0..3);
    let other = catalog.with_space("three", units("letter", UnitMap::default()));
    assert!(matches!(other, Err(CatalogError::Domain { .. })), "{other:?}");
    let wrong = catalog.with_space("four", units("digit", UnitMap::of_units(0, [("7".into(), 3)])));
    assert!(matches!(wrong, Err(CatalogError::Units { .. })), "{wrong:?}");
}

#[test]
fn what_is_everywhere_is_in_a_partition_that_all_hold() {
    let partitioning = Partitioning::Everywhere;
    let options = SpaceOptions { partitioning, ..SpaceOptions::default() };
    let catalog = catalog(3, 1).with_space("s", options.clone()).unwrap();
    assert_eq!(catalog.partition(SpaceId(0), &"k".into()), EVERYWHERE);
    assert_eq!(
        catalog.partitions_of_range(SpaceId(0), &"a".into(), None),
        EVERYWHERE..EVERYWHERE + 1
    );
    assert!(catalog.has_partition(EVERYWHERE) && !catalog.has_partition(3));
    let holders: Vec<_> = Static.replicas_of(EVERYWHERE, &catalog).collect();
    assert_eq!(holders, [0, 1, 2].map(RepositoryId));
    assert!(holders.iter().all(|it| Static.holds(*it, EVERYWHERE, &catalog)));
    assert!(!Static.are_colocated(EVERYWHERE, 0, &catalog));
    let alone = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let alone = alone.with_space("s", options).unwrap();
    assert_eq!(alone.partition(SpaceId(0), &"k".into()), 0);
}

#[test]
fn a_space_can_be_asked_for_twice_but_not_changed() {
    let first = catalog(2, 1).with_space("s", SpaceOptions::default()).unwrap();
    assert_eq!(first.with_space("s", SpaceOptions::default()).unwrap(), first);
    let other = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    assert_eq!(first.with_space("s", other), Err(CatalogError::Exists("s".into())));
}

proptest! {
    #[test]
    fn a_range_touches_the_partition_of_each_of_its_keys(
        key in "[a-f]{0,3}", lo in "[a-f]{0,3}", hi in "[a-f]{0,3}", by_hash: bool,
    ) {
        let splits = vec!["b".into(), "cc".into(), "e".into()];
        let partitioning = if by_hash { Partitioning::Hash } else { Partitioning::Range(splits) };
        let options = SpaceOptions { partitioning, ..SpaceOptions::default() };
        let catalog = catalog(4, 2).with_space("s", options).unwrap();
        let (key, lo, hi): (SmallBytes, SmallBytes, SmallBytes) =
            (key.as_str().into(), lo.as_str().into(), hi.as_str().into());
        let partition = catalog.partition(SpaceId(0), &key);
        prop_assert!(partition < 4);
        if key >= lo && key < hi {
            let touched = catalog.partitions_of_range(SpaceId(0), &lo, Some(&hi));
            prop_assert!(touched.contains(&partition));
        }
        if key >= lo {
            let touched = catalog.partitions_of_range(SpaceId(0), &lo, None);
            prop_assert!(touched.contains(&partition));
        }
    }
}
