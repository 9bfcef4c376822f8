//! What is asked of a message between drivers before it touches any state.
//!
//! The bytes are decoded and a sender is known by now; what it says may still be anything. Who may
//! say what is asked first, and then whether it agrees with what is known here: a map goes on from
//! the one that is known, an answer was asked for. What is rejected is counted by the kind of the
//! message and the [reason](Rejection), and changes nothing else.
//!
//! What this does not do: a member, or an administrator, that has proven the secret may say what
//! another one could have decided, as that a repository moves. That is believed.

use std::collections::BTreeMap;

use muesli_core::judgement::{Rejections, ensure};
use muesli_core::{NodeId, Rejection};
use muesli_group::layout;
use muesli_group::placement::EPOCHS_AHEAD_MAX;
use thiserror::Error;

use crate::spaces::map::Map;
use crate::wire::control::Control;
use crate::wire::hello::ProcessKind;

/// Messages between drivers that came, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judged {
    taken: BTreeMap<&'static str, u64>,
    rejected: Rejections,
}

impl Judged {
    /// One of this kind was taken, or rejected.
    pub fn count(&mut self, kind: &'static str, judged: Result<(), Rejection>) {
        match judged {
            Ok(()) => *self.taken.entry(kind).or_default() += 1,
            Err(reason) => self.rejected.count(kind, reason),
        }
    }

    /// How many there were, all together and of each kind that there was.
    pub fn lines(&self) -> Vec<(String, u64)> {
        let mut rejected: BTreeMap<_, u64> = BTreeMap::new();
        for (kind, _, count) in self.rejected.iter() {
            *rejected.entry(kind).or_default() += count;
        }
        let all = [
            ("controls-taken".to_owned(), self.taken.values().sum()),
            ("controls-rejected".to_owned(), self.rejected.total()),
        ];
        let each = |verdict: &'static str, counts: BTreeMap<&'static str, u64>| {
            counts.into_iter().map(move |(kind, count)| (format!("{kind}-{verdict}"), count))
        };
        let taken = each("taken", self.taken.clone());
        all.into_iter().chain(taken).chain(each("rejected", rejected)).collect()
    }
}

/// Whether a process of this kind may say this to one of that.
///
/// # Errors
/// It may not, or nobody says it there.
pub(crate) fn judge_sender(
    control: &Control,
    from: ProcessKind,
    me: ProcessKind,
) -> Result<(), Rejection> {
    let to_server = me == ProcessKind::Server;
    match control {
        Control::CreateSpace { .. } | Control::SpacesMade(_) => {
            ensure(from.is_node(), Rejection::Sender)?;
            ensure(to_server, Rejection::Role)
        }
        Control::Place(_) | Control::SampleAccesses(_) => {
            ensure(from == ProcessKind::Admin, Rejection::Sender)?;
            ensure(to_server, Rejection::Role)
        }
        Control::Map(_) => ensure(from == ProcessKind::Server, Rejection::Sender),
        Control::SpaceCreated { .. } => {
            ensure(from == ProcessKind::Server, Rejection::Sender)?;
            // Servers ask for no spaces.
            ensure(!to_server, Rejection::Role)
        }
        Control::AskStatus
        | Control::AskMembers
        | Control::AskAccesses(_)
        | Control::AskLoads(_)
        | Control::AskSizes(_) => ensure(to_server, Rejection::Role),
        // Only visits ask, and they are no loops.
        Control::Status(_)
        | Control::Members { .. }
        | Control::Accesses(_)
        | Control::Loads(_)
        | Control::Sizes(_) => Err(Rejection::Role),
    }
}

/// Why a map does not go on from the one that is known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum NoSuccessor {
    #[error("it is of another cluster: {0}")]
    Shape(String),
    #[error("it does not list node {0}, which is a server of the cluster")]
    Server(u32),
    #[error(
        "its placement is of epoch {found}, and that known here of epoch {known}: so far ahead \
         there is none"
    )]
    Placement { known: u64, found: u64 },
    #[error("repositories stay where they are in a cluster without groups")]
    Stays,
    #[error(
        "member {member} lives where it does since epoch {since}, in a placement of epoch {found}"
    )]
    Since { member: usize, since: u64, found: u64 },
    #[error(
        "member {member} lives on node {found} since epoch {since} of the placement, and it is \
         known to live on node {known} since then"
    )]
    Home { member: usize, since: u64, known: u32, found: u32 },
    #[error("member {member} lives on node {home}, which is to leave; move it first")]
    Left { member: usize, home: u32 },
    #[error(
        "its tree is {found}, and that known here {known}: all servers of a cluster are started \
         with the same `tree`, and `muesli admin tree set` changes it for all"
    )]
    Tree { known: String, found: String },
    #[error(
        "its tree is of epoch {found}, and that known here of epoch {known}: so far ahead there is \
         none"
    )]
    TreeEpoch { known: u64, found: u64 },
    #[error("group {0} has begun, which there is not")]
    Begun(u16),
    #[error("its spaces, of epoch {found}, do not begin with those known here, of epoch {known}")]
    Spaces { known: u64, found: u64 },
}

impl NoSuccessor {
    /// The reason that is counted.
    pub fn reason(&self) -> Rejection {
        match self {
            NoSuccessor::Shape(_) | NoSuccessor::Server(_) | NoSuccessor::Begun(_) => {
                Rejection::Catalog
            }
            NoSuccessor::Placement { .. }
            | NoSuccessor::Since { .. }
            | NoSuccessor::TreeEpoch { .. } => Rejection::Range,
            NoSuccessor::Stays
            | NoSuccessor::Home { .. }
            | NoSuccessor::Left { .. }
            | NoSuccessor::Tree { .. }
            | NoSuccessor::Spaces { .. } => Rejection::State,
        }
    }
}

/// Whether a map that somebody says can come after the one known, or before it: each part of it
/// that is newer.
///
/// # Errors
/// It contradicts what is known.
pub(crate) fn judge_map(known: &Map, received: &Map) -> Result<(), NoSuccessor> {
    if known.shape() != received.shape() {
        return Err(NoSuccessor::Shape(known.differences(received).join("; ")));
    }
    if received.servers.len() > known.servers.len() {
        let lists = |node: NodeId| received.servers.iter().any(|(it, _)| *it == node);
        if let Some((node, _)) = known.servers.iter().find(|(node, _)| !lists(*node)) {
            return Err(NoSuccessor::Server(node.0));
        }
    }
    judge_placement(known, received)?;
    judge_tree(known, received)?;
    let groups = if received.group > 1 { layout::groups(&received.catalog) } else { 0 };
    if let Some(group) = received.catalog.begun.iter().find(|group| **group >= groups) {
        return Err(NoSuccessor::Begun(*group));
    }
    let (before, after) = (&known.catalog, &received.catalog);
    // Who has heard of no spaces yet takes any: a server that joins begins so.
    let grows = before.epoch > 0 && after.epoch > before.epoch;
    if grows && !after.spaces().starts_with(before.spaces()) {
        return Err(NoSuccessor::Spaces { known: before.epoch, found: after.epoch });
    }
    Ok(())
}

/// A server that joins has heard of no tree yet.
fn judge_tree(known: &Map, received: &Map) -> Result<(), NoSuccessor> {
    let joins = known.catalog.placement == 0 || received.catalog.placement == 0;
    if !joins && known.differs_in_tree(received) {
        let (known, found) = (known.tree_text(), received.tree_text());
        return Err(NoSuccessor::Tree { known, found });
    }
    let (known, found) = (known.catalog.tree_epoch, received.catalog.tree_epoch);
    if found.saturating_sub(known) > EPOCHS_AHEAD_MAX {
        return Err(NoSuccessor::TreeEpoch { known, found });
    }
    Ok(())
}

fn judge_placement(known: &Map, received: &Map) -> Result<(), NoSuccessor> {
    let (before, after) = (&known.catalog, &received.catalog);
    let (was, found) = (before.placement, after.placement);
    let homes = || after.homes.iter().zip(&*after.since).enumerate();
    if let Some((member, (home, _))) = homes().find(|(_, (home, _))| received.has_left(**home)) {
        return Err(NoSuccessor::Left { member, home: home.0 });
    }
    if found <= was {
        return Ok(());
    }
    if found - was > EPOCHS_AHEAD_MAX {
        return Err(NoSuccessor::Placement { known: was, found });
    }
    if known.group <= 1 {
        return Err(NoSuccessor::Stays);
    }
    if let Some((member, (_, since))) = homes().find(|(_, (_, since))| **since > found) {
        return Err(NoSuccessor::Since { member, since: *since, found });
    }
    // A server that joins knows no homes.
    let stays = before.homes.iter().zip(&*before.since).filter(|_| was > 0);
    for ((member, (home, since)), (known, known_since)) in homes().zip(stays) {
        if since == known_since && home != known {
            let (known, found) = (known.0, home.0);
            return Err(NoSuccessor::Home { member, since: *since, known, found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use muesli_core::catalog::{TreePlan, TreeShape};
    use muesli_core::recorder::accesses::{AccessPage, LoadPage};
    use muesli_core::recorder::partition_sizes::{SizeCursor, SizePage};
    use muesli_core::{Catalog, RepositoryId, SpaceOptions};

    use super::*;
    use crate::spaces::map::Deal;
    use crate::spaces::parts::{MapParts, SpaceParts};

    fn map(group: u16) -> Map {
        let servers = (0..4).map(|node| (NodeId(node), format!("a:{node}"))).collect();
        Map::deal(servers, Deal { repositories: 2, group, ..Deal::default() }).unwrap()
    }

    fn with_space(map: &Map, name: &str) -> Map {
        map.with_space(&SpaceParts::of(name, &SpaceOptions::default())).unwrap()
    }

    /// What is said of a map that differs from the one known in this.
    fn after(known: &Map, change: impl FnOnce(&mut MapParts)) -> Result<(), NoSuccessor> {
        let mut parts = MapParts::from(known);
        change(&mut parts);
        judge_map(known, &Map::try_from(parts).unwrap())
    }

    #[test]
    fn maps_that_go_on_from_the_known_one_and_older_ones_are_taken() {
        for group in [1, 3] {
            let first = map(group);
            let second = with_space(&with_space(&first, "a"), "b");
            for (known, received) in [(&first, &second), (&second, &first), (&first, &first)] {
                assert_eq!(judge_map(known, received), Ok(()));
            }
        }
        let first = map(3);
        let moved = first.catalog.moved(RepositoryId(0), NodeId(3));
        let moved = first.with_catalog(moved.with_begun(&[1]).into());
        assert_eq!((judge_map(&first, &moved), judge_map(&moved, &first)), (Ok(()), Ok(())));
        // One that joins knows nothing, and tells that; and it takes what it hears.
        let joins = moved.unplaced();
        assert_eq!((judge_map(&moved, &joins), judge_map(&joins, &moved)), (Ok(()), Ok(())));
        let more = after(&first, |it| it.servers.push((NodeId(4), "a:4".to_owned())));
        assert_eq!(more, Ok(()));
    }

    #[test]
    fn maps_of_other_clusters_and_other_spaces_are_not() {
        for group in [1, 3] {
            let known = with_space(&map(group), "a");
            let other = with_space(&with_space(&map(group), "b"), "c");
            let (was, found) = (known.catalog.epoch, other.catalog.epoch);
            let refused = NoSuccessor::Spaces { known: was, found };
            assert_eq!(judge_map(&known, &other), Err(refused));
            let wider = after(&known, |it| it.partitions_per_repository = 2);
            assert!(matches!(wider, Err(NoSuccessor::Shape(why)) if why.contains("`spread`")));
            let other = after(&known, |it| {
                it.servers = (4..9).map(|node| (NodeId(node), String::new())).collect();
                it.homes.iter_mut().for_each(|(home, _)| home.0 = home.0 % 5 + 4);
            });
            assert_eq!(other, Err(NoSuccessor::Server(0)));
            let begun = after(&known, |it| it.begun = vec![2]);
            assert_eq!(begun, Err(NoSuccessor::Begun(2)));
        }
    }

    #[test]
    fn placements_that_nobody_can_have_made_are_not() {
        let known = map(3);
        let far = after(&known, |it| it.placement = u64::MAX);
        assert_eq!(far, Err(NoSuccessor::Placement { known: 1, found: u64::MAX }));
        let home = after(&known, |it| (it.placement, it.homes[0].0) = (2, NodeId(3)));
        let refused = NoSuccessor::Home { member: 0, since: 0, known: 0, found: 3 };
        assert_eq!(home, Err(refused));
        let since = after(&known, |it| (it.placement, it.homes[0].1) = (2, 3));
        assert_eq!(since, Err(NoSuccessor::Since { member: 0, since: 3, found: 2 }));
        let left = after(&known, |it| it.left = vec![NodeId(0)]);
        assert_eq!(left, Err(NoSuccessor::Left { member: 0, home: 0 }));
        let alone = map(1);
        let moved = after(&alone, |it| (it.placement, it.homes[0].0) = (2, NodeId(3)));
        assert_eq!(moved, Err(NoSuccessor::Stays));
    }

    #[test]
    fn trees_are_those_of_all_or_newer_ones() {
        let plan = |shape: &str| TreePlan::from(shape.parse::<TreeShape>().unwrap());
        let (two, one) = (plan("2"), plan("2x1"));
        for group in [1, 3] {
            let map = map(group);
            let next = |map: &Map, plan| map.with_next_tree(Some(plan), &[]).unwrap();
            let started = |plan| {
                let tree = next(&map, plan).catalog.hierarchy.as_deref().unwrap().clone();
                let catalog = Catalog::clone(&map.catalog).with_first_tree(tree);
                map.with_catalog(catalog.into())
            };
            let (first, other) = (started(&two), started(&one));
            assert_eq!(judge_map(&first, &first), Ok(()));
            for (known, received) in [(&first, &other), (&other, &first), (&map, &first)] {
                let error = judge_map(known, received).unwrap_err().to_string();
                let both = [known.tree_text(), received.tree_text()];
                assert!(both.iter().all(|tree| error.contains(tree)), "{error}: {both:?}");
            }
            let (newer, joins) = (next(&first, &one), first.unplaced());
            for (known, received) in [(&first, &newer), (&newer, &map), (&other, &newer)] {
                assert_eq!(judge_map(known, received), Ok(()));
            }
            let joined = (judge_map(&first, &joins), judge_map(&joins, &first));
            assert!(group == 1 || joined == (Ok(()), Ok(())), "{joined:?}");
            let far = after(&first, |it| it.tree.as_mut().unwrap().epoch = u64::MAX);
            assert_eq!(far, Err(NoSuccessor::TreeEpoch { known: 1, found: u64::MAX }));
        }
    }

    #[test]
    fn who_may_say_what_is_asked_first() {
        let (everybody, me) = (
            [ProcessKind::Server, ProcessKind::Client, ProcessKind::Probe, ProcessKind::Admin],
            ProcessKind::Server,
        );
        let may = |control: &Control| {
            let may_send = |from: &&ProcessKind| judge_sender(control, **from, me).is_ok();
            everybody.iter().filter(may_send).map(|it| it.name()).collect::<Vec<_>>()
        };
        let space = Control::CreateSpace { request: 1, space: SpaceParts::default() };
        assert_eq!(may(&space), ["a server", "a client"]);
        assert_eq!(may(&Control::SpacesMade(3)), ["a server", "a client"]);
        assert_eq!(may(&Control::Map(MapParts::default())), ["a server"]);
        assert_eq!(may(&Control::Place(MapParts::default())), ["an administrator"]);
        assert_eq!(may(&Control::SampleAccesses(1)), ["an administrator"]);
        let asked = [Control::AskStatus, Control::AskAccesses(0), Control::AskLoads(0)];
        for question in asked.iter().chain([&Control::AskSizes(SizeCursor::default())]) {
            assert_eq!(may(question).len(), 4, "{question:?}");
        }
        assert_eq!(may(&Control::Accesses(AccessPage::default())), [""; 0]);
        assert_eq!(may(&Control::Loads(LoadPage::default())), [""; 0]);
        assert_eq!(may(&Control::Sizes(SizePage::default())), [""; 0]);
        assert_eq!(may(&Control::SpaceCreated { request: 1, refused: None }), [""; 0]);
        assert_eq!(may(&Control::Status(Vec::new())), [""; 0]);
    }

    #[test]
    fn what_is_judged_is_counted_by_kind() {
        let mut judged = Judged::default();
        judged.count("map", Ok(()));
        judged.count("map", Err(Rejection::Range));
        judged.count("map", Err(Rejection::State));
        judged.count("place", Err(Rejection::Sender));
        let lines = judged.lines();
        let of = |name: &str| lines.iter().find(|(it, _)| it == name).map(|(_, count)| *count);
        assert_eq!((of("controls-taken"), of("controls-rejected")), (Some(1), Some(3)));
        assert_eq!((of("map-taken"), of("map-rejected")), (Some(1), Some(2)));
        assert_eq!((of("place-taken"), of("place-rejected")), (None, Some(1)));
    }
}
