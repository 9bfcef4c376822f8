//! Broadcast and certification as layers.

use muesli_registry::{Grouping, NoProtocol, protocol};
use muesli_samples::ordered::Ordered;
use muesli_samples::ordered::broadcast::Sequencer;
use muesli_samples::ordered::certify::{Nothing, ReadsAreNewest};

use super::searches::{breaks, register, search, seeded_run};

#[test]
fn histories_under_faults_are_serializable() {
    register::<Ordered<Sequencer, ReadsAreNewest>>("ordered", ());
    let problems = search(&seeded_run("ordered", "append"), 1..41);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn without_certification_the_checker_notices() {
    register::<Ordered<Sequencer, Nothing>>("ordered-broken", ());
    assert!(breaks(&search(&seeded_run("ordered-broken", "append"), 1..21)));
}

#[test]
fn groups_refuse_what_replicates_itself() {
    register::<Ordered<Sequencer, ReadsAreNewest>>("ordered-alone", ());
    let refused = protocol("ordered-alone", Some(Grouping::default())).err();
    assert_eq!(refused, Some(NoProtocol::InGroups { name: "ordered-alone" }));
}
