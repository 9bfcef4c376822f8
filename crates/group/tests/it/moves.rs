//! Members of groups move from node to node while clients work and everything fails.
//!
//! With `MUESLI_SEEDS=0..2000`, `cargo test -p muesli-group --test it moves::everything_fails` is
//! the long search (`-- --nocapture` shows how far it is), and `MUESLI_SEEDS=7..8` repeats a seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use muesli_core::NodeId;
use muesli_group::layout;
use muesli_group::placement::PlacementRow;
use muesli_protocols::gmu::Gmu;
use muesli_protocols::score::Score;
use muesli_sim::plan::fault::{FaultKind, FaultKinds};
use muesli_sim::random::Random;

use crate::bank::{Change, GROUPS, SIZE, Scenario, all_hold, holds, run, seeds};

fn moves(_: &PlacementRow, random: &mut Random, nodes: u32) -> Change {
    let group = random.below(GROUPS.into()) as u16;
    let member = layout::member(group, random.below(SIZE.into()) as u16);
    Change::Move(member, NodeId(random.below(nodes.into()) as u32))
}

fn scenario(kinds: &FaultKinds) -> impl Fn(u64) -> Scenario {
    move |seed| Scenario::new(seed, kinds, 5, moves)
}

/// A disk that is lost while another member of its group is on its way is one too many.
fn almost_all() -> FaultKinds {
    FaultKinds::all().without(FaultKind::Loss)
}

#[test]
fn members_move_while_clients_work() {
    let seeds = seeds(0..4);
    let all = all_hold::<Score>(seeds.clone(), scenario(&FaultKinds::NONE));
    all.assert_busy(seeds);
    // Old versions go, also from those that followed when they were written.
    assert!(all.held * 2 < all.written, "{} of {} versions are held", all.held, all.written);
}

#[test]
fn everything_fails() {
    let seeds = seeds(0..12);
    all_hold::<Score>(seeds.clone(), scenario(&almost_all())).assert_busy(seeds);
}

#[test]
fn vectors_are_over_repositories_and_mind_no_moves() {
    let seeds = seeds(0..4);
    all_hold::<Gmu>(seeds.clone(), scenario(&almost_all())).assert_busy(seeds);
}

#[test]
fn members_that_go_by_an_old_placement_are_noticed() {
    let noticed = (0..12).any(|seed| {
        let scenario = scenario(&FaultKinds::of(&[FaultKind::Partition]))(seed);
        let scenario = Scenario { keeps_to_placement: false, ..scenario };
        // A wrong total or an assertion of the protocol may be what is noticed.
        !catch_unwind(AssertUnwindSafe(|| holds::<Score>(&run::<Score>(&scenario).run)))
            .unwrap_or(false)
    });
    assert!(noticed);
}
