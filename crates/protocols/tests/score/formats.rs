//! Golden files of formats: messages, records and checkpoints.

use std::collections::BTreeSet;
use std::fs;

use muesli_core::Protocol;
use muesli_protocols::score::{Score, Snapshots};
use muesli_protocols::{Choice, NAMES, choose};

use crate::clusters::cluster;
use crate::harness::checkpoint_samples;
use crate::harness::samples::{self, folder};
use crate::two_phase::checkpoint_page;

/// A protocol by the name of its family.
struct Family;
impl Choice for Family {
    type Output = &'static str;

    fn chosen<P: Protocol>(self, _: P::Switches) -> &'static str {
        P::NAME
    }
}

#[test]
fn bytes_of_this_version_mean_what_they_meant() {
    samples::bytes_mean_what_they_meant::<Score>(cluster, "score", None);
}

#[test]
fn checkpoints_of_protocols_with_two_phases_are_as_they_were() {
    checkpoint_page::of_two_phases::<Snapshots>();
}

#[test]
fn every_protocol_has_its_samples() {
    let families: BTreeSet<_> =
        NAMES.iter().map(|name| choose(name, Family).ok().expect("it is listed")).collect();
    for family in families {
        let path = folder().join(format!("{family}.txt"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let of = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
        assert!(of("message ") > 4 && of("record ") > 1, "{}", path.display());
    }
}

#[test]
fn a_field_that_comes_or_goes_or_changes_places_is_noticed() {
    let text = fs::read_to_string(folder().join("score.txt")).expect("SCORe's page");
    let reads = |page: &str| samples::reading::<Score>(page).0;
    assert!(reads(&text).is_empty());
    let first = text.lines().next().expect("a sample");
    assert!(!reads(&text.replacen(first, &format!("{first}00"), 1)).is_empty());
    assert!(!reads(&text.replacen(first, &first[..first.len() - 2], 1)).is_empty());
    let meaning = text.lines().nth(1).expect("its meaning");
    assert!(!reads(&text.replacen(meaning, &format!("{meaning} and more"), 1)).is_empty());
}

#[test]
fn each_kind_of_piece_has_its_sample() {
    let of = |name: &str| choose(name, Family).ok().expect("it is listed");
    let families: BTreeSet<_> = NAMES.iter().map(|name| of(name)).collect();
    let others = ["granola", "alvin", "sharded"];
    let two_phases = families.into_iter().filter(|family| !others.contains(family));
    let kinds: BTreeSet<_> = two_phases.flat_map(checkpoint_samples::kinds_of_page).collect();
    let read = checkpoint_samples::kinds(checkpoint_page::two_phase::<Snapshots>);
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), read);
}
