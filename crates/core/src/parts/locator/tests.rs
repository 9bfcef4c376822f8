use proptest::prelude::*;

use super::*;
use crate::ids::{NodeId, RepositoryId as R, Timestamp};

fn catalog(replicas: usize) -> Catalog {
    let homes: Vec<_> = (0..4).map(NodeId).collect();
    Catalog::new(&homes, replicas, &homes).unwrap()
}

#[test]
fn moves_follow_one_another() {
    let (catalog, mut directory) = (catalog(2), OwnerDirectory::default());
    let after = |directory: &OwnerDirectory<u16>, epoch, from, to| {
        directory.after((&1, epoch), R(from), R(to), &catalog)
    };
    let first = after(&directory, 1, 1, 3).expect("it can be");
    assert_eq!(first.holders[..], [R(3), R(2)]);
    assert!(first.can_be(&catalog));
    directory.learn([(1, first)]);
    assert_eq!(after(&directory, 1, 1, 3), None, "it was done");
    assert_eq!(after(&directory, 2, 1, 3), None, "nothing is there");
    assert_eq!(after(&directory, 2, 2, 3), None, "it is there already");
    let second = after(&directory, 2, 2, 1).expect("it can be");
    assert_eq!(second.holders[..], [R(3), R(1)]);
    directory.learn([(1, second)]);
    directory.learn([(1, Owners { epoch: 1, holders: Repositories::new() })]);
    assert_eq!(directory.locate(&1, &catalog).epoch, 2, "what is old is not learnt");
    assert_eq!(directory.locate(&0, &catalog).epoch, 0);
    assert_eq!(Static.locate(&1, &catalog).holders[..], [R(1), R(2)]);
    directory.assert_invariants();
}

#[test]
fn hints_are_bounded_and_the_longest_known_goes_first() {
    let (catalog, mut hints) = (catalog(1), Hints::new(2));
    let owners = |epoch| Owners { epoch, holders: [R(3)].into_iter().collect() };
    for thing in 0..3u16 {
        hints.learn(thing, owners(1));
        hints.assert_invariants();
    }
    hints.learn(2, owners(4));
    hints.learn(2, owners(3));
    hints.learn(1, owners(0));
    hints.assert_invariants();
    let epochs = [0, 1, 2].map(|thing| hints.locate(&thing, &catalog).epoch);
    assert_eq!(epochs, [0, 1, 4]);
    let all: Vec<_> = hints.all().map(|(thing, owners)| (*thing, owners.epoch)).collect();
    assert_eq!(all, [(1, 1), (2, 4)]);
    let (holders, again) = ([R(2)].into_iter().collect::<Repositories>(), owners(4));
    hints.correct(&2, holders.clone());
    hints.correct(&7, holders);
    assert_eq!(hints.locate(&2, &catalog).holders[..], [R(2)]);
    hints.learn(2, again.clone());
    assert_eq!(hints.locate(&2, &catalog), again, "what was known before counts again");
    assert_eq!(hints.all().count(), 2, "of what was not known nothing is taken");
    hints.assert_invariants();
}

#[test]
fn who_was_asked_by_an_earlier_epoch_or_holds_nothing_refuses() {
    let (catalog, mut holdings) = (catalog(1), Holdings::default());
    let refuses =
        |holdings: &Holdings<u16>, thing, epoch| holdings.refuses((&thing, epoch), R(1), &catalog);
    assert_eq!(refuses(&holdings, 1, 0), None, "it is here from the beginning");
    assert_eq!(refuses(&holdings, 2, 0), Some(Timestamp::ZERO));
    holdings.note(1, Holding { epoch: 1, holds: false, at: Timestamp(5) });
    holdings.note(2, Holding { epoch: 3, holds: true, at: Timestamp(7) });
    assert_eq!(refuses(&holdings, 1, 1), Some(Timestamp(5)));
    assert_eq!((refuses(&holdings, 2, 3), refuses(&holdings, 2, 9)), (None, None));
    assert_eq!(refuses(&holdings, 2, 2), Some(Timestamp(7)), "its sender knows less");
    holdings.assert_invariants();
}

#[test]
#[should_panic(expected = "moves to epoch 1 after 1")]
fn a_thing_does_not_move_twice_at_once() {
    let mut holdings = Holdings::default();
    let held = Holding { epoch: 1, holds: false, at: Timestamp(5) };
    holdings.note(1u16, held);
    holdings.note(1u16, held);
}

proptest! {
    #[test]
    fn every_partition_is_on_as_many_repositories_as_asked(
        n in 1usize..9, r in 1usize..9, partitions_per_repository in 1usize..4,
    ) {
        prop_assume!(r <= n);
        let homes: Vec<_> = (0..n as u32).map(NodeId).collect();
        let catalog = Catalog::new(&homes, r, &homes).unwrap();
        let catalog = catalog.with_partitions_per_repository(partitions_per_repository).unwrap();
        prop_assert_eq!(catalog.partitions(), n * partitions_per_repository);
        for partition in 0..catalog.partitions() as u16 {
            let listed: Vec<_> = Static.replicas_of(partition, &catalog).collect();
            let all = (0..n as u16).map(R);
            let held: Vec<_> = all.filter(|&id| Static.holds(id, partition, &catalog)).collect();
            prop_assert_eq!(listed.len(), r);
            let mut sorted = listed.clone();
            sorted.sort();
            prop_assert_eq!(&sorted, &held);
            for other in 0..catalog.partitions() as u16 {
                let mut others: Vec<_> = Static.replicas_of(other, &catalog).collect();
                others.sort();
                let are_so = Static.are_colocated(partition, other, &catalog);
                prop_assert_eq!(are_so, others == sorted);
            }
        }
    }
}
