//! The row of nodes that choose together: what it is after reports.

use super::*;
use crate::nesting_choice::observation::NestingObservation;

const FLAT: NestingModel = NestingModel::Flat;
const CLOSED: NestingModel = NestingModel::Closed;
const OPEN: NestingModel = NestingModel::Open;
const ALL: [NestingModel; 3] = [FLAT, CLOSED, OPEN];

const MILLIS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLIS;
/// When a test begins.
const BEGIN: u64 = 1_000_000 * SECOND;

fn report(now: u64, number: u64, slots: Vec<PooledSlot>) -> PoolReport {
    let (attempt, models) = (Some(100 * MILLIS), ALL.to_vec());
    PoolReport { now, number, attempt, models, slots, refused: None }
}

/// A row, and when the first slot begins that counts; a slot is a second long.
fn first_row() -> (PooledComparison, u64, u64) {
    let row = PooledComparison::after(None, &report(BEGIN, 0, Vec::new())).unwrap().unwrap();
    let length = row.comparison.length;
    (row, (BEGIN / length + 2) * length, length)
}

fn observed(begun: u64, committed: u64) -> PooledSlot {
    let slot = TimeSlot {
        busy: SECOND,
        committed,
        attempts: committed,
        seen: NestingObservation::default(),
    };
    PooledSlot { begun, nodes: 1, slot }
}

/// How many commits were compared by then.
fn compared(row: &PooledComparison) -> u64 {
    row.comparison.tried.iter().map(|it| it.took.committed).sum()
}

#[test]
fn reports_of_a_slot_are_added_until_it_is_complete() {
    let (mut row, from, length) = first_row();
    let mut report_slots = |now: u64, slots: &[PooledSlot]| {
        let reported = report(now, row.number, slots.to_vec());
        row = PooledComparison::after(Some(row.clone()), &reported).unwrap().unwrap();
        (compared(&row), row.nodes)
    };
    assert_eq!(
        report_slots(from + length, &[observed(from - length, 7)]),
        (0, 0),
        "before it counts"
    );
    assert_eq!(report_slots(from + length, &[observed(from, 10)]), (0, 0), "others may tell of it");
    assert_eq!(
        report_slots(from + length + 1, &[observed(from, 5), observed(from + 1, 3)]),
        (0, 0)
    );
    assert_eq!(report_slots(from + 3 * length, &[observed(from + length, 20)]), (15, 2));
    assert_eq!(report_slots(from + 3 * length, &[observed(from, 10)]), (15, 2), "too late");
    assert_eq!(
        report_slots(from + 3 * length, &[observed(from + 3 * length, 10)]),
        (15, 2),
        "not over"
    );
    assert_eq!(report_slots(from + 4 * length, &[]), (35, 1));
}

#[test]
fn what_was_observed_before_a_change_does_not_count_after_it() {
    let (row, from, length) = first_row();
    let late = report(from + length, row.number + 1, vec![observed(from, 10)]);
    let after = PooledComparison::after(Some(row), &late).unwrap().unwrap();
    let number = after.number;
    let next = report(from + 3 * length, number, Vec::new());
    let after = PooledComparison::after(Some(after), &next);
    assert_eq!(compared(&after.unwrap().unwrap()), 0);
}

#[test]
fn what_one_node_cannot_run_is_not_compared() {
    let (row, ..) = first_row();
    let mut narrow = report(BEGIN, 0, Vec::new());
    narrow.models = vec![CLOSED, OPEN];
    let after = PooledComparison::after(Some(row), &narrow).unwrap().unwrap();
    assert_eq!(after.comparison.models().collect::<Vec<_>>(), [CLOSED, OPEN]);
    let wide = PooledComparison::after(Some(after.clone()), &report(BEGIN, 0, Vec::new()));
    assert_eq!(wide.unwrap(), Some(after.clone()));
    // Only the other one tells anything for long, or that one does as well.
    let long = SLOTS_NARROW * after.comparison.length;
    let soon = report(BEGIN + long, 0, Vec::new());
    let soon = PooledComparison::after(Some(after), &soon).unwrap().unwrap();
    assert_eq!(soon.comparison.models().collect::<Vec<_>>(), [CLOSED, OPEN]);
    let next = report(BEGIN + long + 1, 0, Vec::new());
    let wide = PooledComparison::after(Some(soon.clone()), &next).unwrap().unwrap();
    assert_eq!(wide.comparison.models().collect::<Vec<_>>(), ALL);
    narrow.now = BEGIN + long;
    let narrow = PooledComparison::after(Some(soon), &narrow).unwrap().unwrap();
    assert_eq!(PooledComparison::after(Some(narrow.clone()), &next).unwrap(), {
        Some(PooledComparison { reported_at: next.now, ..narrow })
    });
}

#[test]
fn a_row_that_makes_no_sense_is_begun_anew() {
    let (row, from, length) = first_row();
    let mut broken: [PooledComparison; 9] = std::array::from_fn(|_| row.clone());
    broken[0].comparison.length = 3;
    broken[1].comparison.tried.clear();
    broken[2].comparison.model = OPEN;
    broken[2].comparison.tried.pop();
    broken[3].comparison.keep = u64::MAX;
    broken[4].comparison.length = 1 << 20;
    broken[5].from = u64::MAX;
    broken[6].narrow_at = u64::MAX;
    broken[7].open = vec![observed(from + 1, 1)];
    broken[7].reported_at = from + 2 * length;
    broken[8].open = vec![observed(from + 2 * length, 1)];
    for row in broken {
        let after = PooledComparison::after(Some(row), &report(from, 0, Vec::new()));
        let after = after.unwrap().unwrap();
        assert_eq!((after.since, after.comparison.model), (from, FLAT));
    }
}
