//! What operators are told of a member that is behind: how much it lacks is true while it fetches
//! entries, and while it fetches the state; in the end it lacks nothing. While it is cut off it
//! cannot tell, and says so.

use std::rc::Rc;

use muesli::{Db, Space, Tx};
use muesli_core::{Lag, NodeId, ReplicaRole};
use muesli_group::agreement::ledger::{ReplicaState, StateOnDisk};
use muesli_group::{GroupSettings, Grouped, Limits};
use muesli_protocols::score::Score;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, World};

use crate::one_group::{OneGroup, one_group};

const NODES: u32 = 3;
/// The one that is cut off, or loses its disk; clients are on the others.
const BEHIND: NodeId = NodeId(2);
const KEYS: u64 = 200;
/// What a leader may have added to the log, as it was elected, since it told how far it is.
const ADDED: u64 = 4;

/// When it is cut off, and when it is not any more.
const CUT: u64 = 100;
const HEALED: u64 = 400;
/// After so many milliseconds without a word of the others a member does not know how far it is
/// behind: it hears their last words a little after the cut, and counts them for 32 ticks of 2 ms.
const SILENT: u64 = 68;

/// What a member says of itself, and what is so.
#[derive(Clone, Debug)]
struct Member {
    role: ReplicaRole,
    /// `None`: it cannot tell.
    lag: Option<Lag>,
    decided: u64,
    /// The bytes of the log up to there.
    bytes: u64,
    held: StateOnDisk,
}

fn member(world: &World, node: NodeId) -> Option<Member> {
    let looked = world.with_node::<Grouped<Score>, _>(node, |node| {
        let lag = node.lags().into_iter().next().map(|(_, lag)| lag);
        let (_, role) = node.replica_roles().into_iter().next()?;
        let (_, member) = node.participants().iter().next()?;
        let look = |it: &ReplicaState| Member {
            role,
            lag,
            decided: it.decided,
            bytes: it.log.bytes_upto(it.decided).unwrap_or(0),
            held: it.held,
        };
        Some(member.look(look))
    });
    looked.flatten()
}

/// The one of the others that has come furthest.
fn furthest(world: &World, behind: NodeId) -> Member {
    let others = (0..NODES).map(NodeId).filter(|node| *node != behind);
    let members = others.filter_map(|node| member(world, node));
    members.max_by_key(|it| it.decided).expect("they are up")
}

/// Writes keys over and over, on one of the nodes.
fn writes(db: &Db, space: Space, number: u64) -> ClientBody {
    let db = db.independent();
    Rc::new(move |start| {
        let db = db.independent();
        Box::pin(async move {
            let mut round = number;
            while !start.stop.is_raised() {
                round += 2;
                let key = (round % KEYS).to_be_bytes().to_vec();
                let put = async move |tx: &Tx| tx.put(space, key.clone(), vec![7; 40]).await;
                let _ = db.transact_here(put).await; // One that fails is no matter here.
            }
        })
    })
}

/// A group with clients at all nodes but one.
fn written(plan: &str, limits: Limits, behind: NodeId) -> World {
    let group_settings = GroupSettings { limits, ..GroupSettings::default() };
    let OneGroup { mut world, db, space, nodes } =
        one_group(NODES, NODES, 11, plan, group_settings);
    for (number, node) in (0..).zip(nodes).filter(|(_, node)| *node != behind) {
        world.add_client(node, writes(&db, space, number));
    }
    world
}

/// The same, up to when they stop; nothing is written any more after that.
fn written_until(millis: u64, plan: &str, limits: Limits) -> World {
    let mut world = written(plan, limits, BEHIND);
    world.run_until(at(millis));
    world.stop_clients();
    world
}

fn at(millis: u64) -> VirtualTime {
    VirtualTime::ZERO + Span::from_millis(millis)
}

/// Looks at the member that is behind, and at the one that has come furthest, every 50 us.
fn watched(world: &mut World, from: u64, upto: u64) -> Vec<(Member, Member)> {
    let mut seen = Vec::new();
    for step in 0..(upto - from) * 20 {
        world.run_until(at(from) + Span::from_micros(50 * step));
        if let Some(behind) = member(world, BEHIND) {
            seen.push((behind, furthest(world, BEHIND)));
        }
    }
    seen
}

/// What one that is cut off says of itself, every millisecond until it is so no more; and whether
/// it led when it was cut off.
fn members_while_cut_off(cut: NodeId) -> (Vec<Member>, bool) {
    let plan = format!("horizon 900ms; {CUT}ms+{}ms partition n{}", HEALED - CUT, cut.0);
    let mut world = written(&plan, Limits::default(), cut);
    world.run_until(at(CUT));
    let (before, ahead) = (member(&world, cut).expect("it is up"), furthest(&world, cut));
    assert!(before.lag.is_some_and(|lag| lag.entries <= ahead.decided - before.decided));
    let mut all_seen = Vec::new();
    for millis in CUT..HEALED {
        world.run_until(at(millis));
        all_seen.push(member(&world, cut).expect("it is up"));
    }
    let missed = furthest(&world, cut).decided - before.decided;
    assert!(missed > 100, "{missed} entries were written without it");
    world.stop_clients();
    world.run_until(at(900));
    let after = member(&world, cut).expect("it is up");
    assert_eq!(after.lag, Some(Lag::default()), "it has caught up");
    (all_seen, before.role == ReplicaRole::Leads)
}

#[test]
fn a_member_that_is_cut_off_does_not_say_that_it_is_up_to_date() {
    let mut leaders = 0;
    for cut in (0..NODES).map(NodeId) {
        let (all_seen, led) = members_while_cut_off(cut);
        let expected = if led { ReplicaRole::Leads } else { ReplicaRole::Follows };
        for (millis, member) in (0..).zip(&all_seen).skip(SILENT as usize) {
            assert_eq!(member.lag, None, "{cut:?}, {millis} ms after the cut: {member:?}");
            assert_eq!(member.role, expected, "{cut:?}, {millis} ms after the cut: {member:?}");
        }
        leaders += u32::from(led);
    }
    assert_eq!(leaders, 1, "one of the cases cuts the leader off");
}

#[test]
fn a_member_that_was_cut_off_says_how_many_entries_and_bytes_it_lacks() {
    // All entries are kept, so that it fetches these.
    let limits = Limits { log_bytes_min: 300, log_bytes_max: 3 << 20, ..Limits::tight() };
    let plan = format!("horizon 900ms; {CUT}ms+{}ms partition n2", HEALED - CUT);
    let mut world = written_until(380, &plan, limits);
    world.run_until(at(HEALED - 1));
    let before = member(&world, BEHIND).expect("it is up");
    let ahead = furthest(&world, BEHIND);
    let (missed, missed_bytes) = (ahead.decided - before.decided, ahead.bytes - before.bytes);
    assert!(missed > 100, "{missed} entries were missed");
    let seen = watched(&mut world, HEALED, 900);
    assert_eq!(seen[0].0.lag, None, "it has heard of nobody yet");
    let all_seen = seen.iter().filter_map(|(behind, ahead)| Some((behind, ahead, behind.lag?)));
    let (mut exact, mut percents, mut least) = (0, Vec::new(), u64::MAX);
    for (behind, ahead, lag) in all_seen {
        let Lag { entries, bytes, percent } = lag;
        let lacks = ahead.decided - behind.decided;
        assert!(entries + ADDED >= lacks, "{behind:?} {ahead:?}");
        assert!(entries <= missed + ADDED && bytes <= missed_bytes + 100 * ADDED, "{behind:?}");
        assert!(entries <= least.saturating_add(ADDED), "{least} before {behind:?}");
        assert_eq!(entries == 0, bytes == 0, "{behind:?}");
        if entries > 0 && entries == lacks {
            assert_eq!(bytes, ahead.bytes - behind.bytes, "{behind:?} {ahead:?}");
            exact += 1;
        }
        least = least.min(entries);
        percents.extend(percent);
    }
    assert!(exact > 3, "it was seen behind {exact} times");
    assert!(
        percents.is_sorted() && percents.iter().any(|it| (1..100).contains(it)),
        "{percents:?}"
    );
    assert_eq!(seen.last().and_then(|(behind, _)| behind.lag), Some(Lag::default()));
}

#[test]
fn a_member_that_lost_its_disk_says_how_much_of_the_state_it_has() {
    let plan = "horizon 900ms; 300ms+20ms lose n2";
    let mut world = written_until(290, plan, Limits::tight());
    let seen = watched(&mut world, 300, 900);
    let mut percents = Vec::new();
    for (behind, lag) in seen.iter().filter_map(|(behind, _)| Some((behind, behind.lag?))) {
        let percent = lag.percent;
        match behind.held {
            StateOnDisk::Whole => continue,
            StateOnDisk::Nothing => assert!(percent.is_some(), "{behind:?}"),
            StateOnDisk::Part { .. } => percents.push(percent.expect("it fetches the state")),
        }
        assert!(lag.to_string().starts_with("catching up "), "{behind:?}");
    }
    assert!(percents.is_sorted(), "{percents:?}");
    percents.dedup();
    assert!(percents.iter().filter(|it| (1..100).contains(*it)).count() > 2, "{percents:?}");
    let (behind, ahead) = seen.last().expect("it came back");
    assert_eq!((behind.lag, behind.held), (Some(Lag::default()), StateOnDisk::Whole));
    assert_eq!(behind.decided, ahead.decided);
}
