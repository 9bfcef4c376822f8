use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::AbstractOperation::{Add, Contains, Increase, Read, Remove};
use super::*;

fn of(operations: &[AbstractOperation]) -> AbstractTransaction {
    AbstractTransaction { operations: operations.to_vec(), ..AbstractTransaction::default() }
}

fn history(transactions: &[AbstractTransaction]) -> AbstractHistory {
    AbstractHistory { transactions: transactions.to_vec(), ..AbstractHistory::default() }
}

fn is_none(order: &SerialOrder) -> bool {
    matches!(order, SerialOrder::None { .. })
}

/// What objects hold, kept without footprints.
#[derive(Clone, Debug, Default)]
struct SetsModel {
    keys: BTreeSet<(u64, u64)>,
    counters: BTreeMap<u64, i64>,
}

impl SetsModel {
    /// Whether it answers so; then it is done.
    fn answers(&mut self, operation: AbstractOperation) -> bool {
        match operation {
            Add { set, key, was_new } => self.keys.insert((set, key)) == was_new,
            Remove { set, key, was_there } => self.keys.remove(&(set, key)) == was_there,
            Contains { set, key, found } => self.keys.contains(&(set, key)) == found,
            Increase { counter, by } => {
                *self.counters.entry(counter).or_default() += by;
                true
            }
            Read { counter, value } => self.counters.get(&counter).copied().unwrap_or(0) == value,
        }
    }
}

/// Whether an order is what is asked for.
fn explains(history: &AbstractHistory, order: &[usize]) -> bool {
    let mut model = SetsModel::default();
    history.start.iter().for_each(|operation| {
        model.answers(*operation);
    });
    let transactions = &history.transactions;
    let place = |at: usize| order.iter().position(|it| *it == at);
    let is_kept = |first: usize, second: usize| match (place(first), place(second)) {
        (Some(first), Some(second)) => first < second,
        _ => true,
    };
    let span = |at: usize| transactions[at].interval;
    let in_time = |first: usize, second: usize| match (span(first), span(second)) {
        (Some((_, Some(end))), Some((begin, _))) if end < begin => is_kept(first, second),
        _ => true,
    };
    let all = 0..transactions.len();
    all.clone().all(|at| transactions[at].optional || place(at).is_some())
        && history.precedes.iter().all(|(first, second)| is_kept(*first, *second))
        && all.clone().all(|first| all.clone().all(|second| in_time(first, second)))
        && order.iter().all(|at| transactions[*at].operations.iter().all(|it| model.answers(*it)))
}

#[test]
fn what_is_undone_and_was_seen_is_noticed() {
    // The second saw a key that the first added and, aborted, took out again; so it is not there
    // at all.
    let seen = of(&[Contains { set: 1, key: 4, found: true }]);
    assert!(is_none(&history(&[seen]).serial_order(9)));
    let removed = of(&[Remove { set: 1, key: 4, was_there: true }]);
    let order = history(&[removed]).serial_order(9);
    assert_eq!(order, SerialOrder::None { longest: vec![], stuck: vec![0] });
}

#[test]
fn pairs_and_parts_are_kept() {
    let add = |key| of(&[Add { set: 0, key, was_new: true }]);
    let look = |key| of(&[Contains { set: 0, key, found: false }]);
    let all = [add(1), add(2), look(1), look(2)];
    let with = |precedes: &[(usize, usize)]| AbstractHistory {
        precedes: precedes.to_vec(),
        ..history(&all)
    };
    let found = |history: &AbstractHistory| match history.serial_order(99) {
        SerialOrder::Found(order) => order.len() == 4 && explains(history, &order),
        _ => false,
    };
    assert!(found(&with(&[])) && found(&with(&[(0, 3)])));
    assert!(is_none(&with(&[(0, 2)]).serial_order(99)));
    assert!(is_none(&with(&[(0, 3), (3, 2)]).serial_order(99)), "parts that do not go together");
    assert_eq!(history(&all).serial_order(0), SerialOrder::Undecided);
}

#[test]
fn what_is_there_at_first_needs_nobody_who_added_it() {
    let start = vec![Add { set: 0, key: 1, was_new: true }, Increase { counter: 0, by: 7 }];
    let all = [
        of(&[Remove { set: 0, key: 1, was_there: true }, Read { counter: 0, value: 7 }]),
        of(&[Add { set: 0, key: 1, was_new: false }, Increase { counter: 0, by: 1 }]),
    ];
    assert!(is_none(&history(&all).serial_order(99)));
    let order = AbstractHistory { start, ..history(&all) }.serial_order(99);
    assert!(is_none(&order), "the first removes it before the counter is raised");
    let second = of(&[Add { set: 0, key: 1, was_new: true }, Increase { counter: 0, by: 1 }]);
    let start = vec![Add { set: 0, key: 1, was_new: true }, Increase { counter: 0, by: 7 }];
    let order = AbstractHistory { start, ..history(&[second, all[0].clone()]) }.serial_order(99);
    assert_eq!(order, SerialOrder::Found(vec![1, 0]));
}

#[test]
fn who_may_not_have_committed_is_taken_where_that_explains_answers() {
    let maybe =
        AbstractTransaction { optional: true, ..of(&[Add { set: 0, key: 1, was_new: true }]) };
    let look = |found| of(&[Contains { set: 0, key: 1, found }]);
    for (looked, order) in [
        (vec![look(false)], Some(vec![1])),
        (vec![look(true)], Some(vec![0, 1])),
        (vec![look(true), look(false)], Some(vec![2, 0, 1])),
    ] {
        let all = [vec![maybe.clone()], looked].concat();
        let order = order.map_or(SerialOrder::Undecided, SerialOrder::Found);
        assert_eq!(history(&all).serial_order(99), order);
    }
    let timed = |transaction: AbstractTransaction, begin, end| AbstractTransaction {
        interval: Some((begin, end)),
        ..transaction
    };
    let all = [timed(maybe, 5, None), timed(look(true), 1, Some(3))];
    assert!(is_none(&history(&all).serial_order(99)), "it began too late");
}

/// One that changes nothing could come at once, but would keep another one from coming, which need
/// not come but by itself.
#[test]
fn who_changes_nothing_waits_for_one_who_may_have_to_come_before() {
    let look = of(&[Contains { set: 0, key: 0, found: false }]);
    let removes =
        [Contains { set: 0, key: 0, found: false }, Remove { set: 0, key: 1, was_there: true }];
    let removes = AbstractTransaction { optional: true, ..of(&removes) };
    let adds = of(&[Add { set: 0, key: 1, was_new: true }]);
    let start = vec![Add { set: 0, key: 1, was_new: true }];
    let all =
        AbstractHistory { start, transactions: vec![look, removes, adds], precedes: vec![(1, 0)] };
    let SerialOrder::Found(order) = all.serial_order(99) else { panic!("there is an order") };
    assert!(explains(&all, &order), "{order:?}");
}

#[test]
fn many_that_commute_are_decided_fast() {
    let mut all = vec![of(&[Increase { counter: 0, by: 1 }]); 24];
    all.push(of(&[Read { counter: 0, value: 12 }]));
    assert!(matches!(history(&all).serial_order(1_000), SerialOrder::Found(_)));
    all.push(of(&[Read { counter: 0, value: 25 }]));
    assert!(is_none(&history(&all).serial_order(1_000)), "more than all together");
}

#[test]
fn long_histories_need_no_deep_stack() {
    let long = 50_000_u64;
    let all: Vec<_> = (0..long)
        .flat_map(|key| {
            let key = key % 100;
            [
                of(&[Add { set: 0, key, was_new: true }]),
                of(&[Remove { set: 0, key, was_there: true }]),
            ]
        })
        .chain([of(&(0..100)
            .map(|key| Contains { set: 0, key, found: false })
            .collect::<Vec<_>>())])
        .collect();
    let count = all.len();
    let SerialOrder::Found(order) = history(&all).serial_order(10_000_000) else { panic!() };
    assert_eq!(order.len(), count);
}

/// Operations of a serial run, with answers that may be others.
fn operation() -> impl Strategy<Value = AbstractOperation> {
    (0..5_u8, 0..2_u64, any::<bool>(), 0..3_i64).prop_map(|(kind, key, yes, value)| match kind {
        0 => Add { set: 0, key, was_new: yes },
        1 => Remove { set: 0, key, was_there: yes },
        2 => Contains { set: 0, key, found: yes },
        3 => Increase { counter: 0, by: value - 1 },
        _ => Read { counter: 0, value: value - 1 },
    })
}

fn transaction() -> impl Strategy<Value = AbstractTransaction> {
    let operations = prop::collection::vec(operation(), 0..3);
    let interval = prop::option::of((0..9_u64, prop::option::of(0..4_u64)));
    (operations, prop::bool::weighted(0.2), interval).prop_map(|(operations, optional, span)| {
        let interval = span.map(|(begin, long)| (begin, long.map(|long| begin + long)));
        AbstractTransaction { operations, optional, interval }
    })
}

fn any_history() -> impl Strategy<Value = AbstractHistory> {
    let start = prop_oneof![
        2 => Just(Vec::new()),
        1 => Just(vec![Add { set: 0, key: 1, was_new: true }, Increase { counter: 0, by: 1 }]),
    ];
    let pairs = prop::collection::vec((0..5_usize, 0..5_usize), 0..3);
    (start, prop::collection::vec(transaction(), 0..6), pairs).prop_map(
        |(start, transactions, pairs)| {
            let count = transactions.len();
            let is_pair =
                |(first, second): &(usize, usize)| first != second && first.max(second) < &count;
            let precedes = pairs.into_iter().filter(is_pair).collect();
            AbstractHistory { start, transactions, precedes }
        },
    )
}

fn any_order(history: &AbstractHistory, order: &mut Vec<usize>) -> bool {
    if explains(history, order) {
        return true;
    }
    let left: Vec<_> = (0..history.transactions.len()).filter(|at| !order.contains(at)).collect();
    left.into_iter().any(|at| {
        order.push(at);
        let found = any_order(history, order);
        order.pop();
        found
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_search_agrees_with_all_orders(history in any_history()) {
        match history.serial_order(1_000_000) {
            SerialOrder::Found(order) => {
                let all: BTreeSet<usize> = order.iter().copied().collect();
                prop_assert_eq!(all.len(), order.len());
                // What changes nothing and need not be there is left out.
                prop_assert!(explains(&history, &order));
            }
            found => {
                prop_assert!(is_none(&found));
                prop_assert!(!any_order(&history, &mut Vec::new()));
            }
        }
    }
}
