//! Sinfonia: many seeds, with all faults; and what goes wrong where its master does not wait for
//! all votes.

use muesli_protocols::granola::Rules;

use super::clients::Mix;
use super::seeds::{ALL, seeds, try_seeds};
use super::worlds::Shape;

fn shape(faults: &'static str) -> Shape {
    Shape { rules: Rules::sinfonia(), faults, ..Shape::new(ALL) }
}

#[test]
fn all_classes() {
    try_seeds(&shape("none"), seeds(10));
    try_seeds(&Shape { replicas: 2, ..shape("none") }, seeds(5));
}

#[test]
fn all_classes_under_every_kind_of_fault() {
    try_seeds(&shape("all"), seeds(20));
    try_seeds(&Shape { replicas: 2, ..shape("all") }, seeds(5));
}

#[test]
fn masters_and_participants_that_crash() {
    let mix = Mix { single: 1, independent: 2, coordinated: 4, look: 2, interactive: 0, keys: 5 };
    try_seeds(&Shape { faults: "crash,client,link", mix, ..shape("all") }, seeds(15));
}

#[test]
fn a_master_that_does_not_wait_for_all_votes_is_noticed() {
    let rules = Rules { master_waits: false, ..Rules::sinfonia() };
    let mix = Mix { single: 2, independent: 2, coordinated: 6, look: 2, interactive: 0, keys: 4 };
    let broken = Shape { rules, mix, ..shape("none") };
    let noticed = (0..10).filter_map(|seed| broken.run(seed, false).problem).count();
    assert!(noticed > 0);
}
