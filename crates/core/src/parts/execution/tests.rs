use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::catalog::Partitioning;
use crate::limits::Limits;
use crate::parts::locator::Static;
use crate::procedure::LocatedKey;
use crate::procedure::Procedures;
use crate::procedure::Touched;
use crate::{NodeId, SpaceOptions};

const SPACE: SpaceId = SpaceId(0);

fn key(number: u8) -> SmallBytes {
    SmallBytes::new(&[number])
}

fn scan(lo: u8, hi: u8, reverse: bool, limit: usize) -> Scan {
    Scan { space: SPACE, lo: key(lo), hi: Some(key(hi)), reverse, limit }
}

/// Adds one to each key that the arguments name, and gives what the last one was.
fn bump(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space("s")?;
    let mut last = 0;
    for &number in keys.as_slice() {
        last = store.get(space, &key(number))?.map_or(0, |value| value.as_slice()[0]);
        store.put(space, key(number), Some(key(last.wrapping_add(1))))?;
    }
    Ok(key(last))
}

fn refuse(store: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    store.put(SPACE, key(1), Some("x".into()))?;
    Err(Stop::Refused("no".into()))
}

fn panics(_: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    panic!("as it is meant to, in a test")
}

fn endless(store: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    loop {
        store.get(SPACE, &key(1))?;
    }
}

/// Goes on as if nothing had been said, and reports success.
fn deaf(store: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    let _ = store.space("nowhere");
    for number in 0..200 {
        let _ = store.get(SPACE, &key(number));
    }
    Ok("fine".into())
}

/// Writes the second key as it was told of it, after it has overwritten the first one.
fn copy(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let [first, second] = [0, 1].map(|place| key(keys.as_slice()[place]));
    store.put(SPACE, first, Some("new".into()))?;
    let shared = store.shared(SPACE, &second)?;
    Ok(shared.map_or("nobody told".into(), |value| value.unwrap_or("absent".into())))
}

fn both_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Vec<(SpaceId, SmallBytes)>, Stop> {
    let space = space("s")?;
    Ok(keys.as_slice().iter().map(|number| (space, key(*number))).collect())
}

fn first_key(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Footprint, Stop> {
    let all = Touched::Key(space("s")?, key(keys.as_slice()[0]));
    Ok(Footprint { reads: Vec::new(), writes: vec![all] })
}

fn settings() -> Settings {
    let procedures = Procedures::default()
        .with("bump", 1, Procedure::new(bump))
        .with("bump", 2, Procedure::new(bump).read_only())
        .with("bump", 3, Procedure::new(bump).touches(first_key))
        .with("copy", 1, Procedure::new(copy).shares(both_keys))
        .with("copy", 2, Procedure::new(copy).shares(both_keys).touches(first_key))
        .with("refuse", 1, Procedure::new(refuse))
        .with("panics", 1, Procedure::new(panics))
        .with("endless", 1, Procedure::new(endless))
        .with("deaf", 1, Procedure::new(deaf));
    let limits = Limits { procedure_steps: 100, ..Limits::default() };
    Settings { procedures, limits, ..Settings::default() }
}

fn catalog(repositories: u32) -> Catalog {
    let homes: Vec<_> = (0..repositories).map(NodeId).collect();
    let catalog = Catalog::new(&homes, 1, &homes).unwrap();
    catalog.with_space("s", SpaceOptions::default()).unwrap()
}

/// A repository whose keys are those of a model, all written at their own number.
fn stored(model: &BTreeMap<u8, u8>, catalog: &Catalog) -> Spaces {
    let mut spaces = Spaces::new(0);
    let versions = spaces.get_or_make(SPACE, catalog);
    for (&number, &value) in model {
        let handle = versions.find_or_create(Handle::NONE, &key(number));
        versions.install(handle, Some(key(value)), Timestamp(u64::from(number) + 1));
    }
    spaces
}

fn call(name: &str, version: u32, keys: &[u8], repositories: u32) -> Result<SmallBytes, Stop> {
    let (catalog, settings) = (catalog(repositories), settings());
    let (spaces, mut sets) = (Spaces::new(0), TransactionSets::default());
    let mut execution = Execution::new(&catalog, &settings, &spaces, &mut sets, false);
    let id = ProcedureId { name: name.into(), version };
    let partition = keys.first().map_or(0, |number| catalog.partition(SPACE, &key(*number)));
    execution.call(&id, partition, &SmallBytes::new(keys))
}

fn fault(name: &str, version: u32, keys: &[u8], repositories: u32) -> String {
    match call(name, version, keys, repositories) {
        Err(Stop::Faulty(text)) => text,
        other => panic!("{name} is not faulty: {other:?}"),
    }
}

#[test]
fn what_a_procedure_wrote_stays_in_the_sets() {
    let (catalog, settings) = (catalog(1), settings());
    let spaces = stored(&BTreeMap::from([(7, 40)]), &catalog);
    let mut sets = TransactionSets::default();
    let mut execution = Execution::new(&catalog, &settings, &spaces, &mut sets, false);
    let id = ProcedureId { name: "bump".into(), version: 1 };
    assert_eq!(execution.call(&id, 0, &SmallBytes::new(&[7, 9, 7])), Ok(key(41)));
    let reads: Vec<_> = sets.reads.iter().map(|read| (read.key.clone(), read.version)).collect();
    assert_eq!(reads, [(key(7), Timestamp(8)), (key(9), Timestamp::ZERO)]);
    assert_eq!(sets.own(SPACE, &key(7)), Some(&Some(key(42))));
    assert_eq!(sets.own(SPACE, &key(9)), Some(&Some(key(1))));
    let versions = spaces.get(SPACE).unwrap();
    let kept = versions.newest(versions.find(&key(7)).unwrap());
    assert_eq!((kept.value, versions.len()), (Some(&key(40)), 1));
}

#[test]
fn a_procedure_that_refuses_says_why() {
    assert_eq!(call("refuse", 1, &[], 1), Err(Stop::Refused("no".into())));
}

#[test]
fn what_a_procedure_may_not_do_makes_it_faulty() {
    assert!(fault("panics", 1, &[], 1).contains("panics v1: it panicked"));
    assert!(fault("endless", 1, &[], 1).contains("more than the allowed 100 steps"));
    assert!(fault("deaf", 1, &[], 1).contains("more than the allowed 100 steps"));
    assert!(fault("bump", 2, &[1], 1).contains("declared to read only"));
    assert!(fault("bump", 3, &[1, 2], 1).contains("not declared"));
    assert!(fault("bump", 1, &[1, 2, 3, 4, 5, 6], 2).contains("lives in partition"));
    assert!(fault("missing", 1, &[], 1).contains("there is no procedure missing v1 here"));
    assert_eq!(call("bump", 3, &[1, 1], 1), Ok(key(1)));
}

/// A delayed procedure sees what its repositories hold, in all of their partitions, and no more.
#[test]
fn a_delayed_procedure_touches_the_partitions_of_its_repositories() {
    let (homes, settings) = ([NodeId(0), NodeId(1)], settings());
    let splits = [1, 2, 3].map(key).to_vec();
    let options =
        SpaceOptions { partitioning: Partitioning::Range(splits), ..SpaceOptions::default() };
    let catalog =
        Catalog::new(&homes, 1, &homes).unwrap().with_partitions_per_repository(2).unwrap();
    let catalog = catalog.with_space("s", options).unwrap();
    let spaces = stored(&BTreeMap::from([(0, 5), (2, 7)]), &catalog);
    let run = |touched: &[u8]| {
        let id = ProcedureId { name: "bump".into(), version: 1 };
        let keys = touched.iter().map(|number| (SPACE, key(*number))).collect();
        let (arguments, ranges, steady) = (SmallBytes::new(touched), Vec::new(), false);
        let call =
            DelayedCall { procedure: id.clone(), arguments, partition: 0, keys, ranges, steady };
        let mut sets = TransactionSets::default();
        let neighbours = |partition| Static.are_colocated(partition, call.partition, &catalog);
        let mut execution = Execution::new(&catalog, &settings, &spaces, &mut sets, true);
        let delayed = execution.call_delayed(&call, &neighbours);
        (delayed, execution.call(&id, 0, &call.arguments))
    };
    let (delayed, alone) = run(&[0, 2]);
    assert_eq!(delayed, Ok(key(7)));
    let confined = "key `\u{2}` lives in partition 2; allowed are the keys of partition 0";
    assert_eq!(alone, Err(Stop::Faulty(format!("procedure bump v1: {confined}"))));
    let (Err(Stop::Faulty(text)), _) = run(&[0, 1]) else { panic!("partition 1 is elsewhere") };
    assert!(text.ends_with("partition 0 and of those that the same repositories hold"), "{text}");
}

proptest! {
    #[test]
    fn scans_see_what_is_stored_and_own_writes(
        model in prop::collection::btree_map(0u8..40, any::<u8>(), 0..20),
        writes in prop::collection::btree_map(0u8..40, prop::option::of(any::<u8>()), 0..8),
        lo in 0u8..40, hi in 0u8..42, reverse: bool, limit in 0usize..12,
        repositories in 1u32..4,
    ) {
        let (catalog, settings) = (catalog(repositories), settings());
        let here = |number: &u8| catalog.partition(SPACE, &key(*number)) == 0;
        let mut model = model;
        model.retain(|number, _| repositories == 1 || here(number));
        let spaces = stored(&model, &catalog);
        let mut sets = TransactionSets::default();
        let mut execution = Execution::new(&catalog, &settings, &spaces, &mut sets, true);
        for (number, value) in writes.iter().filter(|(number, _)| here(number)) {
            execution.put(SPACE, key(*number), value.map(key)).unwrap();
            match value {
                Some(value) => model.insert(*number, *value),
                None => model.remove(number),
            };
        }
        let rows = execution.scan(&scan(lo, hi, reverse, limit)).unwrap();
        let inside = model.iter().filter(|(number, _)| (lo..hi).contains(number));
        let row = |(number, value): (&u8, &u8)| (key(*number), key(*value));
        let mut wanted: Vec<_> = inside.map(row).collect();
        if reverse {
            wanted.reverse();
        }
        wanted.truncate(limit);
        prop_assert_eq!(&rows, &wanted);
        // Whatever was answered lies in what was noted as seen.
        let seen = |key: &SmallBytes| sets.scans.iter().any(|range| range.contains(SPACE, key));
        let own = |key: &SmallBytes| sets.own(SPACE, key).is_some();
        prop_assert!(rows.iter().all(|(key, _)| seen(key) || own(key)));
    }
}

#[test]
fn what_is_told_is_what_was_there_before_wherever_it_lives() {
    let (catalog, settings) = (catalog(2), settings());
    let partition_of = |number: &u8| catalog.partition(SPACE, &key(*number));
    let of =
        |partition: u16| (0..50).filter(|it| partition_of(it) == partition).collect::<Vec<u8>>();
    let (here, elsewhere) = (of(0), of(1));
    let spaces = stored(&BTreeMap::from([(here[0], 7), (here[1], 8)]), &catalog);
    let id = ProcedureId { name: "copy".into(), version: 1 };
    let found = |shared: Option<u8>, second: u8| {
        let (mut sets, value) = (TransactionSets::default(), key(9));
        let version = Version { at: Timestamp(3), value: Some(&value), newest: true };
        let lookup = |_: SpaceId, wanted: &SmallBytes| {
            shared.filter(|number| key(*number) == *wanted).map(|_| version)
        };
        let execution = Execution::new(&catalog, &settings, &spaces, &mut sets, false);
        let mut execution = execution.sharing(shared.map(|_| &lookup as SharedDataFn<'_>));
        execution.call(&id, 0, &SmallBytes::new(&[here[0], second]))
    };
    // Nobody tells: what is here, without the procedure's own writes, and of others nothing.
    assert_eq!(found(None, here[0]), Ok(key(7)));
    assert_eq!(found(None, here[1]), Ok(key(8)));
    assert_eq!(found(None, elsewhere[0]), Ok("nobody told".into()));
    assert_eq!(found(Some(elsewhere[0]), elsewhere[0]), Ok(key(9)));
    let nobody = found(Some(elsewhere[0]), here[1]);
    assert!(matches!(nobody, Err(Stop::Faulty(_))), "nobody tells of it: {nobody:?}");
}

#[test]
fn told_are_keys_of_the_partition_that_may_be_touched() {
    let (catalog, settings) = (catalog(2), settings());
    let known = |version| {
        let id = ProcedureId { name: "copy".into(), version };
        *settings.procedures.get(&id).unwrap()
    };
    let all = SmallBytes::new(&(0..20).collect::<Vec<u8>>());
    for partition in [0, 1] {
        let partition_of = |number: &u8| catalog.partition(SPACE, &key(*number)) == partition;
        let expected: Vec<_> = (0..20).filter(partition_of).map(|it| (SPACE, key(it))).collect();
        assert_eq!(shared_keys(&known(1), partition, &catalog, &all), expected);
        let first: Vec<_> = expected.into_iter().filter(|(_, it)| *it == key(0)).collect();
        assert_eq!(shared_keys(&known(2), partition, &catalog, &all), first);
    }
}

#[test]
fn no_more_is_read_than_the_limits_of_bytes_and_steps_allow() {
    let (catalog, mut settings) = (catalog(1), settings());
    let model: BTreeMap<u8, u8> = (0..200).map(|number| (number, number)).collect();
    let spaces = stored(&model, &catalog);
    let faulty = |settings: &Settings, run: &dyn Fn(&mut Execution<'_>) -> Result<(), Stop>| {
        let mut sets = TransactionSets::default();
        let mut execution = Execution::new(&catalog, settings, &spaces, &mut sets, false);
        match run(&mut execution) {
            Err(Stop::Faulty(text)) => (text, execution.steps),
            other => panic!("{other:?}"),
        }
    };
    // The whole range takes more steps than there are; no row is looked at beyond the first.
    let all = |execution: &mut Execution<'_>| execution.scan(&scan(0, 200, false, 500)).map(drop);
    let (text, steps) = faulty(&settings, &all);
    assert!(text.contains("100 steps"), "{text}");
    assert_eq!(steps, 101);
    // A key of a byte with a value of a byte counts 18.
    settings.limits.answer_bytes = 180;
    let (text, steps) = faulty(&settings, &all);
    assert!(text.contains("180 bytes were read (`answer_bytes_max`)"), "{text}");
    assert_eq!(steps, 12);
    let again = |execution: &mut Execution<'_>| {
        (0..50).try_for_each(|_| execution.get(SPACE, &key(3)).map(drop))
    };
    let (text, steps) = faulty(&settings, &again);
    assert!(text.contains("180 bytes were read (`answer_bytes_max`)"), "{text}");
    assert_eq!(steps, 11);
}

#[test]
fn what_is_everywhere_is_read_in_each_partition_and_written_in_its_own() {
    let homes = [NodeId(0), NodeId(1)];
    let partitioning = Partitioning::Everywhere;
    let options = SpaceOptions { partitioning, ..SpaceOptions::default() };
    let catalog = Catalog::new(&homes, 1, &homes).unwrap().with_space("s", options).unwrap();
    let (settings, spaces) = (settings(), stored(&BTreeMap::from([(7, 40)]), &catalog));
    for partition in [0, 1, EVERYWHERE] {
        let mut sets = TransactionSets::default();
        let mut execution = Execution::new(&catalog, &settings, &spaces, &mut sets, true);
        execution.partition = partition;
        assert!(Store::is_here(&execution, SPACE, &key(7), false));
        let own = partition == EVERYWHERE;
        assert_eq!(Store::is_here(&execution, SPACE, &key(7), true), own);
        assert_eq!(execution.get(SPACE, &key(7)), Ok(Some(key(40))));
        assert_eq!(execution.scan(&scan(0, 9, false, 5)), Ok(vec![(key(7), key(40))]));
        let written = execution.put(SPACE, key(7), None);
        match written {
            Ok(()) => assert!(own, "written in partition {partition}"),
            Err(Stop::Faulty(text)) => {
                assert!(text.contains("is written by fragments of all repositories"), "{text}");
                assert!(!own, "{text}");
            }
            refused @ Err(Stop::Refused(_)) => panic!("{refused:?}"),
        }
    }
}

/// Touches the first two keys.
fn two_places(_: &Catalog, _: &SmallBytes) -> Result<Vec<LocatedKey>, Stop> {
    let located = |number| LocatedKey { space: SPACE, key: key(number), writes: true };
    Ok(vec![located(1), located(200)])
}

#[test]
fn calls_that_lack_a_fragment_are_told_which_ones_they_need() {
    let splits = Partitioning::Range(vec![key(100)]);
    let options = SpaceOptions { partitioning: splits, ..SpaceOptions::default() };
    let homes = [NodeId(0), NodeId(1)];
    let catalog = Catalog::new(&homes, 1, &homes).unwrap().with_space("s", options).unwrap();
    let procedure = Procedure::new(bump).at(two_places);
    let procedures = Procedures::default().with("bump", 1, procedure);
    let settings = Settings { procedures, ..Settings::default() };
    let (spaces, id) = (Spaces::new(0), ProcedureId { name: "bump".into(), version: 1 });
    for (named, fits) in [(&[0, 1][..], true), (&[1, 0], true), (&[0], false), (&[0, 1, 1], false)]
    {
        let mut sets = TransactionSets::default();
        let mut execution = Execution::new(&catalog, &settings, &spaces, &mut sets, false);
        let ended = execution.call_among(named, (&id, 0), &SmallBytes::new(&[1]));
        assert_eq!(ended.is_ok(), fits, "{named:?}: {ended:?}");
    }
}
