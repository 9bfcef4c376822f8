//! Groups grow and shrink, from two members to five, while clients work and everything fails, disks
//! that are lost among it.
//!
//! With `MUESLI_SEEDS=0..2000`, `cargo test -p muesli-group --test it sizes::everything_fails` is
//! the long search (`-- --nocapture` shows how far it is), and `MUESLI_SEEDS=7..8` repeats a seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use muesli_core::{NodeId, RepositoryId};
use muesli_group::layout;
use muesli_group::placement::PlacementRow;
use muesli_protocols::gmu::Gmu;
use muesli_protocols::score::Score;
use muesli_sim::plan::fault::{FaultKind, FaultKinds};
use muesli_sim::random::Random;

use crate::bank::{Change, GROUPS, SIZE, Scenario, all_hold, holds, run, seeds};

const NODES: u32 = 6;
const MOST: usize = 5;

/// Groups change their sizes, and what was begun is completed.
fn sizes(row: &PlacementRow, random: &mut Random, nodes: u32) -> Change {
    if let Some(member) = row.leaving.first().filter(|_| random.chance(0.5)) {
        return Change::Shrink(*member);
    }
    let group = random.below(GROUPS.into()) as u16;
    let members: Vec<_> = row.members(group).collect();
    let shrinks = members.len() >= MOST || random.chance(0.4);
    match shrinks {
        true => Change::Shrink(members[random.below(members.len() as u64) as usize]),
        false => Change::Grow(group, NodeId(random.below(nodes.into()) as u32)),
    }
}

/// The same, and members move as well.
fn sizes_and_moves(row: &PlacementRow, random: &mut Random, nodes: u32) -> Change {
    if random.chance(0.6) {
        return sizes(row, random, nodes);
    }
    let place = random.below(MOST as u64) as u16;
    let member = layout::member(random.below(GROUPS.into()) as u16, place);
    Change::Move(member, NodeId(random.below(nodes.into()) as u32))
}

#[test]
fn groups_grow_and_shrink_while_clients_work() {
    let seeds = seeds(0..4);
    let scenario = |seed| Scenario::new(seed, &FaultKinds::NONE, NODES, sizes);
    let all = all_hold::<Score>(seeds.clone(), scenario);
    all.assert_busy(seeds.clone());
    let runs = (seeds.end - seeds.start) as usize;
    assert!(all.sizes > 3 * runs, "{} changes of size in {runs} runs", all.sizes);
    assert!(all.held * 2 < all.written, "{} of {} versions are held", all.held, all.written);
}

#[test]
fn everything_fails() {
    let seeds = seeds(0..12);
    let scenario = |seed| Scenario::new(seed, &FaultKinds::all(), NODES, sizes);
    let all = all_hold::<Score>(seeds.clone(), scenario);
    all.assert_busy(seeds);
}

#[test]
fn members_move_come_and_go_while_everything_fails_but_disks() {
    let seeds = seeds(0..6);
    let kinds = FaultKinds::all().without(FaultKind::Loss);
    let scenario = |seed| Scenario::new(seed, &kinds, NODES, sizes_and_moves);
    all_hold::<Score>(seeds.clone(), scenario).assert_busy(seeds.clone());
    let seeds = seeds.start..seeds.start + 2;
    all_hold::<Gmu>(seeds.clone(), scenario).assert_busy(seeds);
}

/// A node that never answers.
const GONE: NodeId = NodeId(NODES - 1);

/// Group 0 gets a member on a node that is gone, and `next` is done about it, on and on.
fn grows_where_nobody_is(row: &PlacementRow, next: impl FnOnce(RepositoryId) -> Change) -> Change {
    let new = layout::member(0, SIZE);
    match row.home(new) {
        Err(_) => Change::Grow(0, GONE),
        Ok(home) if home == GONE && !row.leaving.contains(&new) => next(new),
        Ok(_) => Change::Shrink(new),
    }
}

fn sent_elsewhere(row: &PlacementRow, random: &mut Random, _: u32) -> Change {
    let to = NodeId(random.below(GONE.0.into()) as u32);
    grows_where_nobody_is(row, |new| Change::Move(new, to))
}

fn taken_out(row: &PlacementRow, _: &mut Random, _: u32) -> Change {
    grows_where_nobody_is(row, Change::Shrink)
}

#[test]
fn a_new_member_whose_node_is_gone_is_sent_elsewhere_or_taken_out() {
    for administration in [sent_elsewhere, taken_out] {
        let calm = Scenario::new(7, &FaultKinds::NONE, NODES, administration);
        let plan = "horizon 600ms; 1ms+598ms crash n5".parse().expect("a plan");
        let outcome = run::<Score>(&Scenario { plan, ..calm });
        assert!(outcome.sizes > 3, "{} changes of size", outcome.sizes);
        assert!(holds::<Score>(&outcome.run));
    }
}

#[test]
fn configurations_that_begin_before_the_last_has_ended_are_noticed() {
    let kinds = FaultKinds::of(&[FaultKind::Partition, FaultKind::Crash]);
    let noticed = (0..80).any(|seed| {
        let scenario = Scenario::new(seed, &kinds, NODES, sizes);
        let scenario = Scenario { ends_configurations: false, ..scenario };
        // A wrong total or an assertion of the protocol may be what is noticed.
        !catch_unwind(AssertUnwindSafe(|| holds::<Score>(&run::<Score>(&scenario).run)))
            .unwrap_or(false)
    });
    assert!(noticed);
}
