//! A member that lost its disk gets the state in one transfer, though whoever sends it is deposed
//! meanwhile with entries that nobody decides, again and again.

use std::collections::BTreeSet;
use std::rc::Rc;

use muesli::{Db, Space, Tx};
use muesli_core::NodeId;
use muesli_group::agreement::ledger::{ReplicaState, StateOnDisk};
use muesli_group::{GroupSettings, Grouped, Limits};
use muesli_protocols::score::Score;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, World};

use crate::one_group::{OneGroup, one_group};

const NODES: u32 = 3;
/// The one that loses its disk; clients are on the others.
const LOST: NodeId = NodeId(2);
const LOST_AT_MILLIS: u64 = 400;
const END_MILLIS: u64 = 1_500;
const KEYS: u64 = 3_000;
/// A transaction writes so many.
const AT_ONCE: u64 = 30;

/// What was seen from the loss of the disk until the state was there.
#[derive(Debug, Default)]
struct Seen {
    /// After how many entries the states were that were begun.
    covers: BTreeSet<u64>,
    /// How often a leader was deposed and returned to what was decided.
    returned: u64,
    is_whole: bool,
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
                let put = async move |tx: &Tx| {
                    for at in round * AT_ONCE..(round + 1) * AT_ONCE {
                        tx.put(space, (at % KEYS).to_be_bytes().to_vec(), vec![7; 40]).await?;
                    }
                    Ok::<_, muesli::Error>(())
                };
                let _ = db.transact_here(put).await; // One that fails is no matter here.
            }
        })
    })
}

/// How often leaders on the other two were deposed and returned to what was decided.
fn returned(world: &World) -> u64 {
    let each = [0, 1].into_iter().filter_map(|node| {
        world.with_node::<Grouped<Score>, _>(NodeId(node), |node| {
            node.participants().iter().map(|(_, member)| member.returned()).sum::<u64>()
        })
    });
    each.sum()
}

/// One node loses its disk; from then on each of the others is cut off in turn, so that leadership
/// moves between them.
fn run(seed: u64) -> Seen {
    let cut = |round: u64| {
        format!("{}ms+40ms partition n{}", LOST_AT_MILLIS + 15 + 70 * round, (round + seed) % 2)
    };
    let cuts: Vec<_> = (0..14).map(cut).collect();
    let loss = format!("{LOST_AT_MILLIS}ms+5ms lose n2");
    let plan = format!("horizon {END_MILLIS}ms; {loss}; {}", cuts.join("; "));
    let limits = Limits { log_bytes_max: 3 << 20, ..Limits::tight() };
    let group_settings = GroupSettings { limits, ..GroupSettings::default() };
    let OneGroup { mut world, db, space, nodes } =
        one_group(NODES, NODES, seed, &plan, group_settings);
    for (number, node) in (0..).zip(nodes).filter(|(_, node)| *node != LOST) {
        world.add_client(node, writes(&db, space, number));
    }
    let mut seen = Seen::default();
    let (mut before, mut was_lost) = (0, false);
    for step in 0..(END_MILLIS - LOST_AT_MILLIS) * 10 {
        let now =
            VirtualTime::ZERO + Span::from_millis(LOST_AT_MILLIS) + Span::from_micros(100 * step);
        world.run_until(now);
        let held = world.with_node::<Grouped<Score>, _>(LOST, |node| {
            node.participants().iter().next().map(|(_, it)| it.look(|it: &ReplicaState| it.held))
        });
        match held.flatten() {
            Some(StateOnDisk::Part { covers, .. }) => {
                if seen.covers.is_empty() {
                    before = returned(&world);
                }
                seen.covers.insert(covers);
            }
            Some(StateOnDisk::Whole) if was_lost => {
                seen.is_whole = true;
                break;
            }
            Some(StateOnDisk::Nothing) => was_lost = true,
            _ => {}
        }
        if !seen.covers.is_empty() {
            seen.returned = returned(&world) - before;
        }
    }
    world.stop_clients();
    world.run_to_end(Span::from_secs(60)).expect("everything ends");
    seen
}

#[test]
fn a_state_goes_on_though_its_sender_is_deposed() {
    let mut returned = 0;
    for seed in 0..6 {
        let seen = run(seed);
        println!("seed {seed}: {seen:?}");
        assert!(seen.is_whole, "seed {seed}: {seen:?}");
        assert_eq!(seen.covers.len(), 1, "seed {seed}: {seen:?}");
        returned += seen.returned;
    }
    assert!(returned >= 6, "leaders were deposed {returned} times meanwhile");
}
