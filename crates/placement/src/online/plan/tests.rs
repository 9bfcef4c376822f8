//! Moves that pay are found, and others are not.

use fastrand::Rng;
use muesli_core::{NodeId, Timestamp, TxnId};

use super::super::LivePartition;
use super::*;

const PARTITIONS: u16 = 32;

/// Partitions dealt to repositories in turn, each with so many rows.
fn dealt(repositories: u16, rows: u64) -> LivePlacement {
    let partition = |number: u16| LivePartition {
        holder: number % repositories,
        rows,
        bytes: 100 * rows,
        fragments: 10,
    };
    LivePlacement { repositories, partitions: (0..PARTITIONS).map(partition).collect() }
}

fn samples(count: u64, mut touched: impl FnMut(&mut Rng) -> Vec<u16>) -> Vec<AccessSample> {
    let mut chance = Rng::with_seed(7);
    let mut sample = |sequence| {
        let mut partitions = touched(&mut chance);
        partitions.sort_unstable();
        partitions.dedup();
        let txn = TxnId { node: NodeId(0), incarnation: 1, sequence };
        AccessSample { txn, at: Timestamp(sequence), partitions }
    };
    (0..count).map(&mut sample).collect()
}

/// Neighbours are used in one transaction, and lie at different repositories.
fn neighbours(chance: &mut Rng) -> Vec<u16> {
    let one = chance.u16(..PARTITIONS);
    vec![one, one ^ 1]
}

fn planned(rate: f64, terms: &MoveTerms) -> MovePlan {
    plan_moves(&dealt(2, 1_000), &samples(3_000, neighbours), (10.0, rate), terms)
}

#[test]
fn partitions_that_are_used_with_each_other_come_to_one_repository() {
    let plan = planned(1_000.0, &MoveTerms::default());
    assert_eq!(plan.verdict, MoveVerdict::Pays);
    assert_eq!(plan.moves.len(), usize::from(PARTITIONS / 2), "one of each two");
    for shares in [plan.in_sample, plan.fresh] {
        assert_eq!((shares.before.distributed, shares.after.distributed), (100.0, 0.0));
        assert!(shares.after.load < 1.2, "{shares:?}");
    }
    let each = |it: &PlannedMove| it.from != it.to && it.rows == 1_000 && it.pay_back_s < 60.0;
    assert!(plan.moves.iter().all(each), "{:?}", plan.moves);
    assert_eq!((plan.rows, plan.bytes), (16_000, 1_600_000));
    assert!(plan.pay_back_s.is_some_and(|it| it < 10.0), "{plan:?}");
    assert_eq!(plan.loads.iter().map(|it| it.before).collect::<Vec<_>>(), [16.0, 16.0]);
    let after: f64 = plan.loads.iter().map(|it| it.after).sum();
    assert!((after - 32.0).abs() < 1e-9, "{:?}", plan.loads);
    // The same samples give the same plan.
    assert_eq!(planned(1_000.0, &MoveTerms::default()), plan);
}

#[test]
fn nothing_moves_where_it_does_not_pay() {
    // So little is done that the moves would pay for themselves after hours.
    let slow = planned(0.1, &MoveTerms::default());
    assert_eq!((slow.verdict, slow.moves.len()), (MoveVerdict::NothingPays, 0));
    assert_eq!(slow.fresh.before, slow.fresh.after);
    assert_eq!(slow.pay_back_s, None);
    let idle = planned(0.0, &MoveTerms::default());
    assert_eq!(idle.verdict, MoveVerdict::Idle);
    // Rows that cost too much.
    let terms = MoveTerms { row_us: 1e6, ..MoveTerms::default() };
    assert_eq!(planned(1_000.0, &terms).verdict, MoveVerdict::NothingPays);
    let few =
        plan_moves(&dealt(2, 10), &samples(150, neighbours), (1.0, 1e3), &MoveTerms::default());
    assert_eq!(few.verdict, MoveVerdict::FewSamples { samples: 150, least: 200 });
    let none = plan_moves(&dealt(2, 10), &[], (1.0, 1e3), &MoveTerms::default());
    assert_eq!((none.moves.len(), none.samples), (0, 0));
}

#[test]
fn what_is_chance_is_not_learnt() {
    // Any two partitions: what the learnt ones have in common the fresh ones have not.
    let any = |chance: &mut Rng| vec![chance.u16(..PARTITIONS), chance.u16(..PARTITIONS)];
    for count in [300, 2_000] {
        let samples = samples(count, any);
        let plan = plan_moves(&dealt(2, 10), &samples, (10.0, 1e4), &MoveTerms::default());
        let (before, after) = (plan.fresh.before.distributed, plan.fresh.after.distributed);
        assert!(after <= before + 8.0, "{plan:?}");
        let refuses = MoveTerms { worth: 60.0, load_worth: 9.0, ..MoveTerms::default() };
        let plan = plan_moves(&dealt(2, 10), &samples, (10.0, 1e4), &refuses);
        assert!(plan.moves.is_empty() && plan.fresh.before == plan.fresh.after, "{plan:?}");
        assert_eq!(plan.verdict, MoveVerdict::NotFresh);
    }
}

#[test]
fn a_hot_partition_leaves_a_full_repository() {
    // Partitions 0 to 3 do nine tenths of the work, all at repository 0.
    let hot = |chance: &mut Rng| match chance.u8(..10) {
        0 => vec![chance.u16(..PARTITIONS)],
        _ => vec![chance.u16(..4)],
    };
    let mut placement = dealt(2, 1_000);
    placement.partitions[..4].iter_mut().for_each(|it| it.holder = 0);
    let terms = MoveTerms::default();
    let plan = plan_moves(&placement, &samples(3_000, hot), (10.0, 20_000.0), &terms);
    assert_eq!(plan.verdict, MoveVerdict::Pays, "{plan:?}");
    assert!(plan.fresh.before.load > 1.8 && plan.fresh.after.load < 1.3, "{plan:?}");
    let hot: Vec<_> = plan.moves.iter().filter(|it| it.partition < 4).collect();
    assert_eq!(hot.len(), 2, "{:?}", plan.moves);
}

#[test]
fn moves_keep_within_the_budget() {
    let rows = MoveTerms { rows_most: 5_500, ..MoveTerms::default() };
    let plan = planned(1_000.0, &rows);
    assert_eq!((plan.moves.len(), plan.rows), (5, 5_000));
    let one = MoveTerms::default().cost_ms(1_000, 100_000);
    let time = MoveTerms { ms_most: 3.5 * one, ..MoveTerms::default() };
    assert_eq!(planned(1_000.0, &time).moves.len(), 3);
    let none = MoveTerms { rows_most: 999, ..MoveTerms::default() };
    assert_eq!(planned(1_000.0, &none).verdict, MoveVerdict::OverBudget);
}

#[test]
fn any_placement_and_samples_give_a_plan_that_can_be_made() {
    let mut chance = Rng::with_seed(3);
    for round in 0..60 {
        let repositories = 1 + chance.u16(..5);
        let mut placement = dealt(repositories, 0);
        for partition in &mut placement.partitions {
            let large = chance.bool();
            partition.holder = chance.u16(..repositories);
            partition.rows = if large { chance.u64(..) } else { chance.u64(..1_000) };
            partition.bytes = partition.rows;
            partition.fragments = chance.u64(..);
        }
        let width = 1 + chance.usize(..6);
        let samples = samples(chance.u64(..900), |chance| {
            (0..width).map(|_| chance.u16(..PARTITIONS)).collect()
        });
        let rate = [0.0, 1.0, 1e5, f64::NAN, f64::INFINITY][round % 5];
        let plan = plan_moves(&placement, &samples, (0.0, rate), &MoveTerms::default());
        for planned in &plan.moves {
            let now = placement.partitions[usize::from(planned.partition)].holder;
            assert!(planned.from == now && planned.to != now && planned.to < repositories);
        }
        let moved: std::collections::BTreeSet<_> =
            plan.moves.iter().map(|it| it.partition).collect();
        assert_eq!(moved.len(), plan.moves.len(), "each once");
    }
}
