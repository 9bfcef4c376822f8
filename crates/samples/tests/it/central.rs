//! The protocol to start from.

use muesli::{Db, Options, SpaceOptions, Tx};
use muesli_samples::central::{Central, Switches};

use super::searches::{breaks, in_groups, register, search, seeded_run};

#[test]
fn histories_under_faults_are_serializable() {
    register::<Central>("central", Switches::default());
    let problems = search(&seeded_run("central", "append"), 1..41);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn histories_of_groups_under_faults_are_serializable() {
    register::<Central>("central-grouped", Switches::default());
    let problems = search(&in_groups(seeded_run("central-grouped", "append")), 1..21);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn without_validation_the_checker_notices() {
    register::<Central>("central-broken", Switches { skips_validation: true });
    assert!(breaks(&search(&seeded_run("central-broken", "append"), 1..21)));
}

#[test]
fn an_embedded_database_has_it_by_name() {
    register::<Central>("central-embedded", Switches::default());
    let options = Options { protocol: "central-embedded".into(), ..Options::default() };
    let db = Db::open(options.space("numbers", SpaceOptions::default())).unwrap();
    let space = db.space("numbers").unwrap();
    db.blocking().transact(async move |tx: &Tx| tx.put(space, "k", "v").await).unwrap();
    let get = async move |tx: &Tx| tx.get(space, "k").await;
    assert_eq!(db.blocking().transact(get).unwrap(), Some("v".into()));
}
