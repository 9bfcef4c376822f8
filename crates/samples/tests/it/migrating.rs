//! Objects that move.

use muesli_core::parts::locator::{Hints, Holding, Holdings, Locator, Owners};
use muesli_core::{
    Address, Catalog, Here, NodeId, Participant, Rejection, RepositoryId, Sender, Settings,
    SpaceOptions, Timestamp, View,
};
use muesli_samples::migrating::{Key, Migrating, ObjectOwner, Switches};

use super::searches::{breaks, in_groups, register, search, seeded_run};

#[test]
fn histories_under_faults_are_serializable() {
    register::<Migrating>("migrating", Switches::default());
    let problems = search(&seeded_run("migrating", "append"), 1..41);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn an_object_that_was_given_away_and_kept_is_noticed() {
    register::<Migrating>(
        "migrating-keeping",
        Switches { keeps_what_it_gave: true, ..Switches::default() },
    );
    // What is lost shows in what clients read, before any history is judged.
    let problems = search(&seeded_run("migrating-keeping", "append"), 1..21);
    assert!(problems.iter().any(|it| !it.contains("not scanned")), "{problems:?}");
}

#[test]
fn histories_of_groups_under_faults_are_serializable() {
    register::<Migrating>("migrating-grouped", Switches::default());
    let problems = search(&in_groups(seeded_run("migrating-grouped", "append")), 1..21);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn without_validation_the_checker_notices() {
    register::<Migrating>(
        "migrating-trusting",
        Switches { skips_validation: true, ..Switches::default() },
    );
    assert!(breaks(&search(&seeded_run("migrating-trusting", "append"), 1..21)));
}

/// Static placement would look for the object where it was first, and refuse it where it is.
#[test]
fn the_contract_finds_an_object_where_the_locator_says() {
    let homes = [NodeId(0), NodeId(1)];
    let catalog = Catalog::new(&homes, 1, &homes).unwrap();
    let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
    let (space, settings) = (catalog.space_named("s").unwrap(), Settings::default());
    let mut keys = (0u8..).map(|number| (space, [number].as_slice().into()));
    let key: Key = keys.find(|(space, key)| catalog.partition(*space, key) == 0).unwrap();
    let [first, second] = [RepositoryId(0), RepositoryId(1)];
    let owner = ObjectOwner::new(second, &settings, &Switches::default());
    let mut participants = [(second, owner)];
    let mut here = Here::<Migrating>::new(&mut participants);

    let (mut hints, mut holdings) = (Hints::new(1), Holdings::default());
    let me = Address::repository(NodeId(1), second);
    let from = Address::coordinator(NodeId(0));
    let (catalog, settings, sender) = (&catalog, &settings, Sender::Member);
    let view = View { me, from, sender, catalog, settings };
    let judged = |holdings: &Holdings<Key>| {
        view.key(space, |repository| holdings.holds(&key, repository, catalog))
    };
    let owners = hints.locate(&key, catalog).holders;
    assert_eq!(owners[..], [first]);
    assert!(here.first_of(owners.into_iter()).is_none());
    assert_eq!(judged(&holdings), Err(Rejection::Catalog));

    let owners = Owners { epoch: 1, holders: [second].into_iter().collect() };
    hints.learn(key.clone(), owners);
    holdings.note(key.clone(), Holding { epoch: 1, holds: true, at: Timestamp(1) });
    let found = here.first_of(hints.locate(&key, catalog).holders.into_iter());
    assert_eq!(found.map(|(repository, _)| repository), Some(second));
    assert_eq!(judged(&holdings), Ok(()));
}
