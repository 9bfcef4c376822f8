//! Whatever is asked for, rows stay sound.

use muesli_core::Wire;
use proptest::prelude::*;

use super::*;

const SIZE: u16 = 3;
const PLACES: u16 = layout::PLACES;
const SHAPE: Shape = Shape { group: SIZE, loops: 1 };

/// All members take part.
const ALL: fn(RepositoryId) -> Option<ReplicaRole> = |_| Some(ReplicaRole::Follows);

/// All members take part but this one, of which nothing is known.
fn but(absent: u16) -> impl Fn(RepositoryId) -> Option<ReplicaRole> {
    move |it| (it.0 != absent).then_some(ReplicaRole::Follows)
}

fn first() -> PlacementRow {
    let homes = layout::homes(4, SIZE, 5).unwrap();
    PlacementRow::of(&Catalog::new(&homes, 1, &[]).unwrap())
}

proptest! {
    #[test]
    fn whatever_is_asked_for_no_server_holds_two_of_a_group_and_epochs_follow_each_other(
        loops in 1u16..3,
        asked in prop::collection::vec((0u16..38, 0u32..10, 0u16..38, 0u8..4), 0..60),
    ) {
        let shape = Shape { group: SIZE, loops };
        let mut row = first();
        let homes = row.homes.iter_mut().filter(|(home, _)| *home != NodeId::NOWHERE);
        homes.for_each(|(home, _)| home.0 *= u32::from(loops));
        for (member, to, absent, what) in asked {
            let before = row.clone();
            let takes_part = but(absent);
            let group = member / PLACES;
            let majority = |row: &PlacementRow| {
                let all: Vec<_> = row.staying(group).collect();
                2 * all.iter().filter(|it| it.0 != absent).count() > all.len()
            };
            if what == 1 && let Ok((next, new)) = row.grown(group, NodeId(to), shape, &takes_part) {
                prop_assert!(before.home(new).is_err() && majority(&before));
                prop_assert_eq!(next.homes[usize::from(new.0)], (NodeId(to), row.epoch + 1));
                row = next;
            }
            let member = RepositoryId(member);
            if what == 2 && let Ok(next) = row.shrinking(member, &takes_part) {
                prop_assert!(before.leaving.contains(&member) || next.epoch == row.epoch + 1);
                row = next;
            }
            if row.leaving.contains(&member) && what == 3 {
                let next = row.shrunk(member, &takes_part);
                prop_assert_eq!(next.is_ok(), majority(&row));
                row = next.unwrap_or(row);
            }
            let before = row.clone();
            let RepositoryId(member) = member;
            let next = row.moved(RepositoryId(member), NodeId(to), shape, &takes_part);
            if let (0, Ok(next)) = (what, next) {
                let going = before.leaving.contains(&RepositoryId(absent));
                let there = before.home(RepositoryId(absent)).is_ok();
                let other = absent / PLACES != group || absent == member;
                prop_assert!(other || going || !there);
                prop_assert_eq!(next.epoch, before.epoch + 1);
                prop_assert_eq!(next.homes[usize::from(member)], (NodeId(to), next.epoch));
                prop_assert!(!before.left.contains(&NodeId(to)));
                row = next;
            }
            if let Ok(next) = row.without_server(to % 7, shape) {
                prop_assert!(row.homes.iter().all(|(home, _)| !next.left.contains(home)));
                row = next;
            }
            for group in 0..4 {
                let servers = row.members(group).map(|it| shape.server(row.home(it).unwrap()));
                let mut servers: Vec<_> = servers.collect();
                let members = servers.len();
                servers.sort_unstable();
                servers.dedup();
                prop_assert_eq!(servers.len(), members);
                prop_assert!(row.staying(group).count() >= layout::LEAST);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_row_or_refused(bytes: Vec<u8>) {
        let _ = PlacementRow::decode_all(&bytes);
    }
}

#[test]
fn refusals_say_what_is_in_the_way() {
    let row = first();
    let refused = |member, to, absent: u16| {
        row.moved(RepositoryId(member), NodeId(to), SHAPE, but(absent)).unwrap_err().to_string()
    };
    assert!(refused(3, 0, 99).contains("there is no member 3;"));
    assert!(refused(36, 0, 99).contains("there is no member 36;"));
    assert!(refused(0, 0, 99).contains("on node 0 already"));
    assert!(refused(0, 1, 99).contains("member 1 of the same group lives on node 1"));
    assert!(refused(0, 4, 2).contains("member 2 of the same group does not take part"));
    assert!(row.moved(RepositoryId(0), NodeId(4), SHAPE, but(0)).is_ok());
}

#[test]
fn two_members_of_a_group_on_two_loops_of_a_server_are_refused() {
    let row = first();
    let shape = Shape { group: SIZE, loops: 2 };
    // Members 0, 1 and 2 live on nodes 0, 1 and 2, which would be servers 0, 0 and 1.
    let refused = row.moved(RepositoryId(0), NodeId(3), shape, ALL).unwrap_err();
    let expected = "member 2 of the same group lives on node 2, which is another loop of the \
                server of node 3";
    assert!(refused.to_string().starts_with(expected), "{refused}");
    assert!(row.moved(RepositoryId(2), NodeId(3), shape, ALL).is_ok());
}

#[test]
fn servers_join_one_after_the_other_and_leave_once_they_are_empty() {
    let row = first().with_server(5, &["a:1".to_owned()], 5, SHAPE).unwrap();
    assert_eq!((row.epoch, row.joined.len()), (2, 1));
    let error = row.with_server(9, &["a:2".to_owned()], 6, SHAPE).unwrap_err().to_string();
    assert!(error.contains("next server to join is node 6, not node 9"), "{error}");
    let gone = row.without_server(5, SHAPE).unwrap();
    assert_eq!((gone.epoch, &gone.left[..]), (3, &[NodeId(5)][..]));
    assert_eq!(gone.without_server(5, SHAPE), Err(Refused::Left { node: NodeId(5) }));
    let back = gone.moved(RepositoryId(0), NodeId(5), SHAPE, ALL).unwrap_err();
    assert_eq!(back.to_string(), "node 5 has left the cluster");
    let error = gone.without_server(4, SHAPE).unwrap_err().to_string();
    assert!(error.contains("holds members 20, 28: `muesli admin drain 4`"), "{error}");
    let next = gone.with_server(5, &["a:3".to_owned()], 6, SHAPE);
    assert_eq!(next, Err(Refused::NotNext { server: 5, next: 6 }));
}

#[test]
fn a_server_of_two_loops_joins_and_leaves_with_both() {
    let shape = Shape { group: SIZE, loops: 2 };
    let addresses = ["a:1".to_owned(), "a:2".to_owned()];
    let row = first().with_server(3, &addresses, 6, shape).unwrap();
    assert_eq!(row.joined[1], (NodeId(7), "a:2".to_owned()));
    assert_eq!(row.without_server(3, shape).unwrap().left, [NodeId(6), NodeId(7)]);
}

#[test]
fn groups_grow_and_shrink_by_rules_that_say_what_is_in_the_way() {
    let row = first();
    let (grown, member) = row.grown(0, NodeId(3), SHAPE, ALL).unwrap();
    assert_eq!((member, grown.home(member)), (RepositoryId(3), Ok(NodeId(3))));
    assert_eq!(grown.member_on(0, NodeId(3)), Ok(member));
    let refused = |node| grown.grown(0, NodeId(node), SHAPE, ALL).unwrap_err().to_string();
    assert!(refused(3).contains("member 3 of the same group lives on node 3"));
    let few = grown
        .grown(0, NodeId(4), SHAPE, |it| ALL(it).filter(|_| it.0 < 2))
        .unwrap_err()
        .to_string();
    assert!(few.contains("only 2 take part, which is no majority"), "{few}");
    assert!(row.grown(4, NodeId(4), SHAPE, ALL).unwrap_err().to_string().contains("groups 0 to 3"));
    // One that is lost goes too, and may be asked for again.
    let going = grown.shrinking(member, but(3)).unwrap();
    assert_eq!(going.leaving, [member]);
    assert_eq!(going.shrinking(member, ALL), Ok(going.clone()));
    assert_eq!(going.moved(member, NodeId(4), SHAPE, ALL), Err(Refused::Leaving { member: 3 }));
    assert!(going.moved(RepositoryId(0), NodeId(4), SHAPE, but(3)).is_ok());
    // Nobody goes who was not told to, as whoever lives in a place that was used before.
    assert_eq!(grown.shrunk(member, ALL), Err(Refused::Stays { member: 3 }));
    let gone = going.shrunk(member, but(3)).unwrap();
    assert_eq!((gone.epoch, gone.home(member).is_err(), &gone.leaving[..]), (4, true, &[][..]));
    // The place is free once that is complete.
    let error = going.grown(0, NodeId(4), SHAPE, ALL).unwrap_err();
    assert_eq!(error, Refused::Leaving { member: 3 });
    let smaller = gone.shrinking(RepositoryId(2), ALL).unwrap();
    assert_eq!(smaller.shrinking(RepositoryId(1), ALL), Err(Refused::Least { group: 0 }));
    let none = gone.member_on(0, NodeId(3)).unwrap_err().to_string();
    assert!(none.contains("no member of group 0 lives on node 3"), "{none}");
}

#[test]
fn who_has_not_been_taken_in_yet_is_sent_elsewhere_or_taken_out() {
    let (row, new) = first().grown(0, NodeId(3), SHAPE, ALL).unwrap();
    // The group waits for member 3, whose node does not answer.
    let waits = |it: RepositoryId| (it != new).then_some(ReplicaRole::Regroups);
    let elsewhere = row.moved(new, NodeId(4), SHAPE, waits).unwrap();
    assert_eq!(elsewhere.home(new), Ok(NodeId(4)));
    assert_eq!(row.shrinking(new, waits).unwrap().leaving, [new]);
    // Nothing else goes before.
    let old = RepositoryId(0);
    assert_eq!(row.moved(old, NodeId(4), SHAPE, waits), Err(Refused::UnderWay { other: 1 }));
    assert_eq!(row.shrinking(old, waits), Err(Refused::TooFew { group: 0, now: 0 }));
    let refused = row.grown(0, NodeId(4), SHAPE, waits).unwrap_err();
    assert_eq!(refused, Refused::TooFew { group: 0, now: 0 });
    // Somebody who has no memory may be needed.
    let joins =
        |it: RepositoryId| Some(if it == old { ReplicaRole::Joins } else { ReplicaRole::Regroups });
    assert_eq!(row.moved(new, NodeId(4), SHAPE, joins), Err(Refused::UnderWay { other: 0 }));
}

#[test]
fn a_row_of_the_last_epoch_has_no_next_one() {
    let row = PlacementRow { epoch: u64::MAX, ..first() };
    let error = row.moved(RepositoryId(0), NodeId(4), SHAPE, ALL).unwrap_err();
    assert_eq!(error, Refused::LastEpoch);
    let joined = row.with_server(5, &["a:1".to_owned()], 5, SHAPE);
    assert_eq!(joined, Err(Refused::LastEpoch));
}
