//! The store against a plain model: every version ever written, per key.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[test]
fn a_snapshot_reads_the_newest_version_at_or_below_it() {
    let mut store = Versions::new(false, 1);
    let handle = store.find_or_create(Handle::NONE, &"k".into());
    store.install(handle, Some("a".into()), Timestamp(10));
    store.install(handle, Some("b".into()), Timestamp(20));
    let read = |at: u64| store.at(handle, Timestamp(at));
    assert_eq!(read(9), Version { newest: false, ..Version::ABSENT });
    assert_eq!((read(19).at, read(19).newest), (Timestamp(10), false));
    assert_eq!((read(20).value, read(20).newest), (Some(&"b".into()), true));
}

#[test]
fn a_removed_entry_makes_its_handles_stale() {
    let mut store = Versions::new(true, 1);
    let handle = store.find_or_create(Handle::NONE, &"k".into());
    store.install(handle, Some("a".into()), Timestamp(10));
    store.install(handle, None, Timestamp(20));
    store.collect(Timestamp(19), 10);
    assert_eq!(store.len(), 1);
    store.collect(Timestamp(20), 10);
    assert!(store.is_empty() && store.find_again(handle, &"k".into()).is_none());
    let other = store.find_or_create(Handle::NONE, &"other".into());
    assert_eq!(store.find_again(handle, &"k".into()), None);
    assert_eq!(store.find_again(other, &"other".into()), Some(other));
}

#[test]
fn an_overwritten_version_leaves_no_gap_in_its_chain() {
    let mut store = Versions::new(true, 1);
    let handle = store.find_or_create(Handle::NONE, &"k".into());
    for at in [10, 20, 30] {
        store.install(handle, Some("installed".into()), Timestamp(at));
    }
    store.overwrite(handle, "alone".into(), Timestamp(40));
    let chains: Vec<_> = store.chains().map(|(_, chain)| chain).collect();
    assert_eq!(chains, [vec![Timestamp(40)]], "a chain is a tail of what was committed");
    assert_eq!(store.older_versions(), 0);
    store.collect(Timestamp(40), 10);
    store.install(handle, Some("installed".into()), Timestamp(50));
    assert_eq!(store.at(handle, Timestamp(49)).at, Timestamp(40));
}

#[test]
fn a_locked_tombstone_is_collected_later() {
    let mut store = Versions::new(true, 1);
    let handle = store.find_or_create(Handle::NONE, &"k".into());
    store.install(handle, None, Timestamp(20));
    assert!(store.lock_mut(handle).try_shared());
    store.collect(Timestamp(30), 10);
    assert_eq!(store.len(), 1);
    store.lock_mut(handle).release_shared();
    store.collect(Timestamp(30), 10);
    assert!(store.is_empty());
}

#[derive(Clone, Debug)]
enum Action {
    Install { key: u8, value: Option<u8> },
    Collect { back: u64, budget: usize },
    Lock { key: u8 },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        6 => (0u8..6, prop::option::of(any::<u8>()))
            .prop_map(|(key, value)| Action::Install { key, value }),
        2 => (0u64..12, 0usize..8).prop_map(|(back, budget)| Action::Collect { back, budget }),
        1 => (0u8..6).prop_map(|key| Action::Lock { key }),
    ];
    prop::collection::vec(action, 0..120)
}

fn name(key: u8) -> SmallBytes {
    SmallBytes::new(&vec![b'k'; usize::from(key) * 9 + 1])
}

proptest! {
    #[test]
    fn reads_at_any_live_snapshot_as_the_model_does(
        script in actions(), ordered: bool,
    ) {
        let mut store = Versions::new(ordered, 7);
        store.record_collected();
        let mut model: BTreeMap<u8, Vec<(u64, Option<u8>)>> = BTreeMap::new();
        let (mut time, mut low) = (0, 0);
        let half = script.len() / 2;
        for (step, action) in script.into_iter().enumerate() {
            if step == half {
                // Where keys are found by hash they are put in order here, and stay so.
                let keys = store.range(&SmallBytes::EMPTY, None).count();
                prop_assert!(store.is_ordered() && keys == store.len());
            }
            prop_assert!(store.is_ordered() == (ordered || step >= half));
            match action {
                Action::Install { key, value } => {
                    time += 1;
                    let handle = store.find_or_create(Handle::NONE, &name(key));
                    store.install(handle, value.map(|v| SmallBytes::new(&[v])), Timestamp(time));
                    model.entry(key).or_default().push((time, value));
                }
                Action::Collect { back, budget } => {
                    low = low.max(time.saturating_sub(back));
                    store.collect(Timestamp(low), budget);
                }
                Action::Lock { key } => {
                    let handle = store.find_or_create(Handle::NONE, &name(key));
                    prop_assert!(store.lock_mut(handle).try_shared());
                    store.lock_mut(handle).release_shared();
                    store.remove_if_unused(handle);
                }
            }
            for key in 0..6 {
                for snapshot in low..=time {
                    let versions = model.get(&key).map_or(&[][..], |versions| versions);
                    let wanted = versions.iter().rev().find(|(at, _)| *at <= snapshot);
                    let found = store.find(&name(key));
                    let read = found.map_or(Version::ABSENT, |h| store.at(h, Timestamp(snapshot)));
                    let value = read.value.map(|value| value.as_slice()[0]);
                    prop_assert_eq!(value, wanted.and_then(|(_, value)| *value));
                    let recorded = match read.at {
                        Timestamp::ZERO => store.collected(&name(key), Timestamp(snapshot)),
                        at => at,
                    };
                    prop_assert_eq!(recorded.0, wanted.map_or(0, |(at, _)| *at));
                }
            }
        }
        let empty = SmallBytes::EMPTY;
        let keys: Vec<_> = store.range(&empty, None).map(|(key, _)| key.clone()).collect();
        prop_assert!(keys.is_sorted() && keys.len() == store.len());
        store.assert_invariants();
        store.collect(Timestamp(time), usize::MAX >> 1);
        prop_assert_eq!(store.older_versions(), 0);
        let is_present = |chain: &&Vec<(u64, Option<u8>)>| {
            chain.last().is_some_and(|it| it.1.is_some())
        };
        let alive = model.values().filter(is_present).count();
        prop_assert_eq!(store.len(), alive);
    }
}
