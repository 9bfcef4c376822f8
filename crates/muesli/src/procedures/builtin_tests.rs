//! Each built-in procedure on its own, and all of them against a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::procedures::DryRun;

fn dry_run() -> (DryRun, Space) {
    let dry_run = DryRun::new(&["other", "s"]);
    let space = dry_run.space("s");
    (dry_run, space)
}

fn refused<T>(why: &str) -> Result<T, Stop> {
    Err(Stop::Refused(why.into()))
}

#[test]
fn all_are_there_under_their_names() {
    let names: Vec<_> = all().ids().map(ToString::to_string).collect();
    let expected = [
        "add v1",
        "add-within v1",
        "append v1",
        "compare-and-set v1",
        "deposit v1",
        "get v1",
        "pay v1",
        "put v1",
        "put-missing v1",
        "receive v1",
        "scan v1",
        "withdraw v1",
    ];
    assert_eq!(names, expected);
}

#[test]
fn both_halves_of_a_transfer_decide_alike() {
    let (mut dry_run, space) = dry_run();
    dry_run.put(space, "ann", SmallBytes::new(&5i64.to_le_bytes()));
    dry_run.put(space, "cas", SmallBytes::new(&i64::MAX.to_le_bytes()));
    dry_run.put(space, "dan", "no number");
    for (from, to, amount, expected) in [
        ("ann", "bob", 6, Err("there is not enough")),
        ("ann", "cas", 1, Err("the sum does not fit")),
        ("ann", "dan", 1, Err("the value is no number")),
        ("dan", "ann", 1, Err("the value is no number")),
        ("ann", "bob", 5, Ok((0, 5))),
    ] {
        let it = Transfer::of(space, from, to, amount);
        let tell = |key: &str| vec![(space, SmallBytes::from(key))];
        // Each alone on a stage of its own, told of what the other one has.
        let (mut payer, mut receiver) = (dry_run.clone(), dry_run.clone());
        let paid = payer.run_with_shared::<Pay>(&tell(to), &it);
        let received = receiver.run_with_shared::<Receive>(&tell(from), &it);
        let expected = expected.map_err(|why| Stop::Refused(why.into()));
        assert_eq!(paid, expected.clone().map(|(left, _)| left));
        assert_eq!(received, expected.map(|(_, sum)| sum));
    }
    let alone = dry_run.run::<Pay>(&Transfer::of(space, "ann", "bob", 1));
    assert!(matches!(alone, Err(Stop::Faulty(_))), "half a transfer: {alone:?}");
}

#[test]
fn money_is_moved_where_there_is_enough_of_it() {
    let (mut dry_run, space) = dry_run();
    let (ann, bob) = (Amount::of(space, "ann", 70), Amount::of(space, "bob", 70));
    assert_eq!(dry_run.run::<Withdraw>(&ann), refused("there is not enough"));
    assert_eq!(dry_run.run::<Deposit>(&ann), Ok(70));
    assert_eq!(dry_run.run::<Withdraw>(&ann), Ok(0));
    assert_eq!(dry_run.run::<Deposit>(&bob), Ok(70));
    let much = Amount::of(space, "bob", i64::MAX);
    assert_eq!(dry_run.run::<Deposit>(&much), refused("the sum does not fit"));
    assert_eq!(dry_run.get(space, "bob").as_ref().and_then(number), Some(70));
}

#[test]
fn counters_wrap_or_stay_within_bounds() {
    let (mut dry_run, space) = dry_run();
    let much = Amount::of(space, "n", i64::MAX);
    assert_eq!(dry_run.run::<Add>(&much), Ok(i64::MAX));
    assert_eq!(dry_run.run::<Add>(&Amount::of(space, "n", 1)), Ok(i64::MIN));
    let add = |amount| Bounded { add: Amount::of(space, "b", amount), least: -2, most: 3 };
    assert_eq!(dry_run.run::<AddWithin>(&add(3)), Ok(3));
    assert_eq!(dry_run.run::<AddWithin>(&add(1)), refused("the number would leave its bounds"));
    assert_eq!(dry_run.run::<AddWithin>(&add(-5)), Ok(-2));
    assert_eq!(dry_run.run::<AddWithin>(&add(-1)), refused("the number would leave its bounds"));
}

#[test]
fn what_is_no_number_is_refused_or_left_alone() {
    let (mut dry_run, space) = dry_run();
    dry_run.put(space, "t", "text");
    let one = Amount::of(space, "t", 1);
    assert_eq!(dry_run.run::<Deposit>(&one), refused("the value is no number"));
    assert_eq!(dry_run.run::<Add>(&one), Ok(0));
    assert_eq!(dry_run.get(space, "t"), Some("text".into()));
}

#[test]
fn what_was_expected_is_replaced() {
    let (mut dry_run, space) = dry_run();
    let set = |expected: Option<&str>, new: Option<&str>| {
        let (expected, new) = (expected.map(Bytes::from), new.map(Bytes::from));
        Comparison { space, key: "k".into(), expected, new }
    };
    assert_eq!(dry_run.run::<CompareAndSet>(&set(None, Some("a"))), Ok(()));
    let other = refused("the value is another one");
    assert_eq!(dry_run.run::<CompareAndSet>(&set(None, Some("b"))), other);
    assert_eq!(dry_run.run::<CompareAndSet>(&set(Some("a"), Some("b"))), Ok(()));
    assert_eq!(dry_run.get(space, "k"), Some("b".into()));
    assert_eq!(dry_run.run::<CompareAndSet>(&set(Some("b"), None)), Ok(()));
    assert_eq!(dry_run.get(space, "k"), None);
}

#[test]
fn what_is_there_is_not_put_again() {
    let (mut dry_run, space) = dry_run();
    dry_run.put(space, "a", "old");
    let row = |key: &str| (Bytes::from(key), Some(Bytes::from("new")));
    let rows = Rows { space, rows: vec![row("a"), row("b"), ("c".into(), None)] };
    assert_eq!(dry_run.run::<PutMissing>(&rows), Ok(()));
    let found: Vec<_> = ["a", "b", "c"].map(|key| dry_run.get(space, key)).into();
    assert_eq!(found, [Some("old".into()), Some("new".into()), None]);
}

#[test]
fn bytes_are_appended() {
    let (mut dry_run, space) = dry_run();
    let more = Appended { space, key: "k".into(), bytes: "ab".into() };
    assert_eq!(dry_run.run::<Append>(&more), Ok(2));
    assert_eq!(dry_run.run::<Append>(&more), Ok(4));
    assert_eq!(dry_run.get(space, "k"), Some("abab".into()));
}

/// Writes without being allowed to, and swallows what it is told.
struct Sneaks;

impl StoredProcedure for Sneaks {
    const NAME: &'static str = "sneaks";
    const READ_ONLY: bool = true;
    type Arguments = Space;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, space: Space) -> Result<(), Stop> {
        let _ = keys.put(space, "k", "v");
        Ok(())
    }
}

/// Writes another key than it tells, after one that it does tell.
struct LeavesItsFootprint;

impl StoredProcedure for LeavesItsFootprint {
    const NAME: &'static str = "leaves its footprint";
    const TOUCHES: Option<TouchesFn<Space>> =
        Some(|spaces: &Spaces<'_>, _: &Space| changes(spaces.space("s")?, &"k".into()));
    type Arguments = Space;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, space: Space) -> Result<(), Stop> {
        keys.put(space, "k", "v")?;
        keys.put(space, "l", "v")
    }
}

#[test]
fn a_dry_run_holds_to_what_is_declared() {
    let (mut dry_run, space) = dry_run();
    assert!(matches!(dry_run.run::<Sneaks>(&space), Err(Stop::Faulty(_))));
    assert!(matches!(dry_run.run::<LeavesItsFootprint>(&space), Err(Stop::Faulty(_))));
    assert_eq!(dry_run.rows(space).count(), 0);
}

fn few() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(0u8..3, 0..3).prop_map(Bytes::from)
}

proptest! {
    #[test]
    fn rows_are_put_found_and_scanned_as_in_a_map(
        writes in prop::collection::vec((few(), prop::option::of(few())), 0..20),
        (lo, hi) in (few(), prop::option::of(few())), reverse: bool, limit in 0u64..5,
    ) {
        let (mut dry_run, space) = dry_run();
        let mut model = BTreeMap::new();
        for (key, value) in &writes {
            match value {
                Some(value) => model.insert(key.clone(), value.clone()),
                None => model.remove(key),
            };
        }
        let keys: Vec<_> = writes.iter().map(|(key, _)| key.clone()).collect();
        prop_assert_eq!(dry_run.run::<Put>(&Rows { space, rows: writes }), Ok(()));
        let expected = keys.iter().map(|key| model.get(key).cloned()).collect();
        prop_assert_eq!(dry_run.run::<Get>(&Keyed { space, keys }), Ok(expected));
        let within = |key: &Bytes| *key >= lo && hi.as_ref().is_none_or(|hi| key < hi);
        let mut rows: Vec<_> = model.into_iter().filter(|(key, _)| within(key)).collect();
        if reverse {
            rows.reverse();
        }
        rows.truncate(limit as usize);
        let ranged = Ranged { space, lo, hi, reverse, limit };
        prop_assert_eq!(dry_run.run::<Scan>(&ranged), Ok(rows));
    }
}
