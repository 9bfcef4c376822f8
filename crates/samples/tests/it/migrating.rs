//! Objects that move.

use muesli_samples::migrating::{Migrating, Rules};

use super::searches::{breaks, register, search, trial};

#[test]
fn histories_under_faults_are_serializable() {
    register::<Migrating>("migrating", Rules::default());
    let problems = search(&trial("migrating", "append"), 1..41);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn an_object_that_was_given_away_and_kept_is_noticed() {
    register::<Migrating>(
        "migrating-keeping",
        Rules { keeps_what_it_gave: true, ..Rules::default() },
    );
    // What is lost shows in what clients read, before any history is judged.
    let problems = search(&trial("migrating-keeping", "append"), 1..21);
    assert!(problems.iter().any(|it| !it.contains("not scanned")), "{problems:?}");
}

#[test]
fn without_validation_the_checker_notices() {
    register::<Migrating>(
        "migrating-trusting",
        Rules { skips_validation: true, ..Rules::default() },
    );
    assert!(breaks(&search(&trial("migrating-trusting", "append"), 1..21)));
}
