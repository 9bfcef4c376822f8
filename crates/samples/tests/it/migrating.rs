//! Objects that move.

use muesli_samples::migrating::{Migrating, Rules};

use super::searches::{breaks, register, search, trial};

#[test]
fn histories_under_faults_are_serializable() {
    register::<Migrating>("migrating", Rules::default());
    for (group, seeds) in [(1, 1..41), (3, 1..7)] {
        let problems = search(&trial("migrating", "append", group), seeds);
        assert_eq!(problems, Vec::<String>::new(), "groups of {group}");
    }
}

#[test]
fn an_object_that_was_given_away_and_kept_is_noticed() {
    register::<Migrating>(
        "migrating-keeping",
        Rules { keeps_what_it_gave: true, ..Rules::default() },
    );
    assert!(breaks(&search(&trial("migrating-keeping", "append", 1), 1..21)));
}

#[test]
fn without_validation_the_checker_notices() {
    register::<Migrating>(
        "migrating-trusting",
        Rules { skips_validation: true, ..Rules::default() },
    );
    assert!(breaks(&search(&trial("migrating-trusting", "append", 1), 1..21)));
}
