//! The checks notice each damage, and the one that it is for.

use std::sync::Arc;

use muesli::Options;
use muesli::blocking::block_on;

use super::*;

const BYTES: usize = 30;

/// The checks that do not hold after object 5, that one client updated and wrote unread as
/// `committed` says, was replaced.
fn broken(committed: &'static [ObjectUse], shows: Option<StoredObject>) -> Vec<&'static str> {
    let given = ["objects=64".to_owned(), format!("bytes={BYTES}"), "updates=1".to_owned()];
    let values = Values::read("objects", PARAMETERS, &given).unwrap();
    let objects = Arc::new(Objects::new(&values, 1).unwrap());
    let mut options = Options { repositories: 2, ..Options::default() };
    for (name, space) in Workload::spaces(&*objects, 2) {
        options = options.space(name, space);
    }
    let db = Db::open(options).unwrap();
    let session = db.independent();
    let checks = block_on(db.run_on(0, async move || {
        Workload::load(&*objects, &session).await?;
        for used in committed {
            objects.books.set_out(0, &vec![(5, *used)]);
            objects.books.settle(0, &Ended::Committed);
        }
        let (space, key) = (session.space(SPACE)?, &objects.keys(&session)?.key(5));
        let replace = async |tx: &Tx| match shows {
            Some(object) => tx.put(space, key.clone(), object.encode(BYTES)).await,
            None => tx.delete(space, key.clone()).await,
        };
        session.transact_here(replace).await?;
        assert_eq!(Workload::load_progress(&*objects), Some((64, 64)));
        Workload::check(&*objects, &session).await
    }));
    let checks = checks.unwrap().unwrap();
    checks.iter().filter(|check| !check.ok).map(|check| check.name).collect()
}

const WHOLE: &str = "objects are there and whole";
const COUNTED: &str = "counters show every committed update";
const LAST: &str = "last writes that did not read are seen";

#[test]
fn an_object_that_is_lost_or_another_one_is_noticed() {
    assert_eq!(broken(&[], Some(StoredObject::first(5))), [""; 0]);
    assert_eq!(broken(&[], None), [WHOLE]);
    assert_eq!(broken(&[], Some(StoredObject::first(6))), [WHOLE]);
}

#[test]
fn an_update_too_few_or_too_many_is_noticed() {
    let (once, twice) =
        (StoredObject::first(5).updated(), StoredObject::first(5).updated().updated());
    assert_eq!(broken(&[ObjectUse::Update], Some(once)), [""; 0]);
    assert_eq!(broken(&[ObjectUse::Update], Some(StoredObject::first(5))), [COUNTED]);
    assert_eq!(broken(&[ObjectUse::Update], Some(twice)), [COUNTED]);
}

#[test]
fn a_lost_write_that_did_not_read_is_noticed() {
    let written = |transaction| StoredObject::written(5, BlindWrite { client: 0, transaction });
    let twice = &[ObjectUse::Blind, ObjectUse::Blind];
    assert_eq!(broken(twice, Some(written(2))), [""; 0]);
    assert_eq!(broken(twice, Some(written(1))), [LAST]);
    assert_eq!(broken(twice, Some(StoredObject::first(5))), [LAST]);
    assert_eq!(broken(twice, Some(written(2).updated())), [COUNTED]);
}
