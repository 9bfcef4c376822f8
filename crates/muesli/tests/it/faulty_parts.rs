//! A procedure that fails although it was declared never to, beside others that do not: what the
//! others wrote is the same on all copies, whatever else these hold.

use std::collections::BTreeMap;

use muesli::procedures::builtin::{self, Amount};
use muesli::procedures::{Keys, StoredProcedure, with};
use muesli::{Class, Db, Error, Options, Refuses, SmallBytes, Space, SpaceOptions, Stop};
use muesli_core::RepositoryId;
use muesli_core::parts::locator::Static;

/// Writes a key, and panics.
struct Fails;

impl StoredProcedure for Fails {
    const NAME: &'static str = "fails";
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = (Space, String);
    type Answer = ();

    fn run(keys: &mut Keys<'_>, (space, key): (Space, String)) -> Result<(), Stop> {
        keys.put(space, key.as_str(), "written")?;
        panic!("as it must not")
    }
}

/// A key whose partition is this one.
fn key_in(db: &Db, space: Space, partition: u16) -> String {
    let is_there =
        |key: &String| db.catalog().partition(space.id(), &key.as_str().into()) == partition;
    (0..).map(|number: u32| number.to_string()).find(is_there).unwrap()
}

#[test]
fn a_part_that_fails_takes_back_its_own_partition_on_all_copies() {
    let options = Options {
        protocol: "granola".to_owned(),
        repositories: 3,
        replicas: 2,
        loops: 3,
        history: true,
        procedures: with::<Fails>(builtin::all()),
        ..Options::default()
    };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    let keys: Vec<_> = (0..3).map(|partition| key_in(&db, space, partition)).collect();
    for failing in 0..3 {
        let other = (failing + 1) % 3;
        let (place, amount) = (space.place(keys[other].as_str()), 7);
        let deposit = Amount::of(space, keys[other].as_str(), amount);
        let call = db.call("deposit", 1).at(place, &deposit);
        let fails = (space, keys[failing].clone());
        let call = call
            .class(Class::Independent)
            .then("fails", 1)
            .at(space.place(keys[failing].as_str()), &fails);
        let error = call.wait().unwrap_err();
        assert!(matches!(&error, Error::Procedure(text) if text.contains("panicked")), "{error:?}");
    }
    let catalog = db.catalog();
    let reports = db.close();
    let chains: BTreeMap<(RepositoryId, SmallBytes), _> = reports
        .iter()
        .flat_map(|report| &report.chains)
        .flat_map(|(id, rows)| rows.iter().map(|row| ((*id, row.1.clone()), row.2.clone())))
        .collect();
    for key in keys {
        let key = SmallBytes::from(key.as_str());
        let holders = Static.replicas_of(catalog.partition(space.id(), &key), &catalog);
        let copies: Vec<_> = holders.map(|it| chains.get(&(it, key.clone())).cloned()).collect();
        assert!(copies[0].is_some() && copies[0] == copies[1], "{key:?}: {copies:?}");
    }
}
