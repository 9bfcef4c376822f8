use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::plan::fault::{FaultKind, FaultKinds};
use crate::random::Seed;

fn shape(kinds: FaultKinds) -> PlanShape {
    let horizon = VirtualTime::ZERO + Span::from_secs(8);
    PlanShape { nodes: 5, clients: 10, horizon, kinds, trees: 3, faults_max: 12 }
}

#[test]
fn plans_print_as_documented() {
    let text = "horizon 8s; 12ms+300ms crash n3; 40ms+1s partition n0,n1; 50ms+1ms vanish 7; \
                55ms+20ms break n1 n4; 60ms+2s partition-out n0; 70ms+2s partition-in n2; \
                75ms+2s lose n4; 76ms+2s fail-sync n1; \
                80ms+5ms pause n2; 90ms+1s slow n2 x8; 1s+1s disk n2 x30; \
                2s+900ms skew n1 +35ms -200ppm; 3s+20ms tree 2 n0,n3";
    assert_eq!(text.parse::<Plan>().map(|plan| plan.to_string()), Ok(text.into()));
    let calm = Plan::calm(VirtualTime::ZERO + Span::from_secs(1));
    assert_eq!(calm.to_string(), "horizon 1s");
    assert_eq!("horizon 1s".parse(), Ok(calm));
}

#[test]
fn wrong_plans_are_refused_with_what_is_allowed() {
    let refused = [
        ("", "begins with its horizon"),
        ("12ms+3ms crash n1", "begins with its horizon"),
        ("horizon 8s; crash n1", "begin and length before it"),
        ("horizon 8s; 1s crash n1", "begin and length before it"),
        ("horizon 8s; 1s+1s flood n1", "no fault: expected one of"),
        ("horizon 8s; 7s+2s crash n1", "must end by then"),
    ];
    for (text, reason) in refused {
        let error = text.parse::<Plan>().expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn every_kind_is_drawn_by_some_seed_and_only_kinds_asked_for() {
    for kind in FaultKind::ALL {
        let kinds = FaultKinds::of(&[kind]);
        let plans = (0..50).map(|seed| shape(kinds.clone()).draw(Seed::new(seed)));
        let names = plans.flat_map(|plan| plan.faults().to_vec()).map(|timed| {
            let text = timed.fault.to_string();
            text.split(' ').next().unwrap_or_default().to_owned()
        });
        let names: BTreeSet<String> = names.collect();
        let expected: &[&str] = match kind {
            FaultKind::Crash => &["crash"],
            FaultKind::Client => &["vanish"],
            FaultKind::Partition => &["partition", "partition-in", "partition-out"],
            FaultKind::Link => &["break"],
            FaultKind::Pause => &["pause", "slow"],
            FaultKind::Disk => &["disk"],
            FaultKind::Skew => &["skew"],
            FaultKind::Loss => &["lose"],
            FaultKind::Sync => &["fail-sync"],
            FaultKind::Tree => &["tree"],
        };
        assert!(names.iter().map(String::as_str).eq(expected.iter().copied()), "{names:?}");
    }
}

#[test]
fn one_disk_is_lost_at_most() {
    for seed in 0..200 {
        let plan = shape(FaultKinds::all()).draw(Seed::new(seed));
        let lost = |timed: &&TimedFault| matches!(timed.fault, Fault::LoseDisk(_));
        assert!(plan.faults().iter().filter(lost).count() <= 1, "{plan}");
    }
}

#[test]
fn no_tree_changes_where_there_is_no_other() {
    let treeless = PlanShape { trees: 0, ..shape(FaultKinds::all()) };
    let without =
        PlanShape { kinds: FaultKinds::all().without(FaultKind::Tree), ..shape(FaultKinds::NONE) };
    for seed in 0..50 {
        assert_eq!(treeless.draw(Seed::new(seed)), without.draw(Seed::new(seed)));
    }
}

#[test]
fn nothing_is_drawn_where_nothing_can_fail() {
    assert!(shape(FaultKinds::NONE).draw(Seed::new(1)).faults().is_empty());
    let lone = PlanShape { nodes: 1, clients: 0, ..shape(FaultKinds::all()) };
    for seed in 0..50 {
        for timed in lone.draw(Seed::new(seed)).faults() {
            let impossible =
                matches!(timed.fault, Fault::Partition(..) | Fault::Break(..) | Fault::Vanish(_));
            assert!(!impossible, "{timed}");
        }
    }
}

proptest! {
    #[test]
    fn drawn_plans_read_back_and_end_by_the_horizon(seed: u64, faults_max in 0..60_u32) {
        let shape = PlanShape { faults_max, ..shape(FaultKinds::all()) };
        let plan = shape.draw(Seed::new(seed));
        prop_assert_eq!(plan.to_string().parse(), Ok(plan.clone()));
        prop_assert_eq!(&shape.draw(Seed::new(seed)), &plan);
        prop_assert!(plan.faults().iter().all(|timed| timed.repaired_at() <= plan.horizon()));
        prop_assert!(plan.faults().is_sorted_by_key(|timed| timed.at));
        prop_assert!(plan.faults().len() <= faults_max as usize);
        if let Some(first) = plan.faults().first() {
            prop_assert!(!plan.without(0).faults().contains(first) || plan.faults().len() > 1);
            prop_assert_eq!(plan.without(0).faults().len(), plan.faults().len() - 1);
        }
    }

    #[test]
    fn no_text_panics(text in "(horizon [0-9]{0,3}m?s)?[;+ a-z0-9]{0,40}") {
        let _ = text.parse::<Plan>();
    }
}
