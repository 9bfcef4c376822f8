//! Transactions judged by what their operations mean: whether some serial order of them explains
//! what the operations on sets and counters answered.
//!
//! Where operations commit before the transactions that they are of (open nesting), reads and
//! writes of rows say that each operation is right, and nothing about the transactions: those that
//! commute may be interleaved by rows in any way. What must hold is that all answers are those of
//! one serial order of whole transactions. It is searched for, exactly.
//!
//! What a structure holds after some transactions does not depend on their order: an `add` with
//! effect puts the key in, whenever, and a counter shows the sum. So a search that has come to a
//! set of transactions before, in whichever order, need not go on from it again; and a transaction
//! that changes nothing and may come now, may as well. Transactions that share no object are
//! searched apart.
//!
//! ```
//! use muesli_check::abstract_operations::{
//!     AbstractOperation as Op, AbstractTransaction, SerialOrder, serial_order,
//! };
//!
//! let of = |operations: &[Op]| AbstractTransaction { operations: operations.to_vec() };
//! let (first, second) = (
//!     of(&[
//!         Op::Add { set: 0, key: 1, was_new: true },
//!         Op::Contains { set: 0, key: 2, found: false },
//!     ]),
//!     of(&[
//!         Op::Add { set: 0, key: 2, was_new: true },
//!         Op::Contains { set: 0, key: 1, found: true },
//!     ]),
//! );
//! let both = [first, second.clone()];
//! assert_eq!(serial_order(&both, &[], 1_000), SerialOrder::Found(vec![0, 1]));
//! // Each says that the other's key was absent.
//! let skewed = of(&[
//!     Op::Add { set: 0, key: 2, was_new: true },
//!     Op::Contains { set: 0, key: 1, found: false },
//! ]);
//! assert_eq!(serial_order(&[both[0].clone(), skewed], &[], 1_000), SerialOrder::None);
//! ```

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;

/// An operation of a set or a counter, and what it answered. Sets are empty and counters zero at
/// first; a transaction that comes before all others can say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbstractOperation {
    /// A key was put into a set.
    Add {
        /// The set.
        set: u64,
        /// The key.
        key: u64,
        /// Whether it was absent.
        was_new: bool,
    },
    /// A key was taken out of a set.
    Remove {
        /// The set.
        set: u64,
        /// The key.
        key: u64,
        /// Whether it was there.
        was_there: bool,
    },
    /// It was looked whether a key is there.
    Contains {
        /// The set.
        set: u64,
        /// The key.
        key: u64,
        /// Whether it is.
        found: bool,
    },
    /// Something was added to a counter, which was not looked at.
    Increase {
        /// The counter.
        counter: u64,
        /// How much.
        by: i64,
    },
    /// A counter was read.
    Read {
        /// The counter.
        counter: u64,
        /// What it showed.
        value: i64,
    },
}

/// A transaction that committed: its operations in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbstractTransaction {
    /// In their order.
    pub operations: Vec<AbstractOperation>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SerialOrder {
    /// This order explains all answers: the transactions by their places in what was given.
    Found(Vec<usize>),
    /// None does.
    None,
    /// It was not found within so many steps as were allowed.
    Undecided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Object {
    Key(u64, u64),
    Counter(u64),
}

/// What objects hold: 1 for a key that is there. Absent ones hold 0.
type Contents = BTreeMap<Object, i64>;

impl AbstractOperation {
    fn object(self) -> Object {
        use AbstractOperation::{Add, Contains, Increase, Read, Remove};
        match self {
            Add { set, key, .. } | Remove { set, key, .. } | Contains { set, key, .. } => {
                Object::Key(set, key)
            }
            Increase { counter, .. } | Read { counter, .. } => Object::Counter(counter),
        }
    }

    /// By how much it changes its object, whenever it is done.
    fn change(self) -> i64 {
        match self {
            AbstractOperation::Add { was_new, .. } => i64::from(was_new),
            AbstractOperation::Remove { was_there, .. } => -i64::from(was_there),
            AbstractOperation::Increase { by, .. } => by,
            AbstractOperation::Contains { .. } | AbstractOperation::Read { .. } => 0,
        }
    }

    /// Whether it answers so where its object holds this.
    fn fits(self, holds: i64) -> bool {
        match self {
            AbstractOperation::Add { was_new, .. } => was_new == (holds == 0),
            AbstractOperation::Remove { was_there, .. } => was_there == (holds != 0),
            AbstractOperation::Contains { found, .. } => found == (holds != 0),
            AbstractOperation::Increase { .. } => true,
            AbstractOperation::Read { value, .. } => holds == value,
        }
    }
}

impl AbstractTransaction {
    /// Whether all of its operations answer as they did, one after the other, from here.
    fn fits(&self, contents: &Contents) -> bool {
        let mut own = Contents::new();
        self.operations.iter().all(|operation| {
            let object = operation.object();
            let before = contents.get(&object).copied().unwrap_or(0);
            let changed = own.entry(object).or_default();
            let fits = operation.fits(before.wrapping_add(*changed));
            *changed = changed.wrapping_add(operation.change());
            fits
        })
    }

    /// By how much it changes each object that it changes.
    fn changes(&self) -> Contents {
        let mut changes = Contents::new();
        for operation in &self.operations {
            let change = changes.entry(operation.object()).or_default();
            *change = change.wrapping_add(operation.change());
        }
        changes.retain(|_, change| *change != 0);
        changes
    }
}

/// Looks for a serial order of these transactions that explains their answers and in which the
/// first of each pair that `precedes` names comes before the second; of each transaction that
/// takes at most `steps` steps in all.
///
/// # Panics
/// A pair names a transaction that there is not.
pub fn serial_order(
    transactions: &[AbstractTransaction],
    precedes: &[(usize, usize)],
    steps: u64,
) -> SerialOrder {
    let mut earlier = vec![Vec::new(); transactions.len()];
    precedes.iter().for_each(|(first, second)| earlier[*second].push(*first));
    let changes: Vec<_> = transactions.iter().map(AbstractTransaction::changes).collect();
    let (mut found, mut steps) = (Vec::new(), steps);
    for members in parts(transactions, precedes) {
        let mut search = OrderSearch {
            transactions,
            earlier: &earlier,
            changes: &changes,
            members,
            contents: Contents::new(),
            done: BTreeSet::new(),
            order: Vec::new(),
            tried: HashSet::new(),
            steps,
        };
        match search.go_on() {
            Some(true) => found.append(&mut search.order),
            Some(false) => return SerialOrder::None,
            None => return SerialOrder::Undecided,
        }
        steps = search.steps;
    }
    SerialOrder::Found(found)
}

/// The transactions in groups of which no two share an object or a pair.
fn parts(transactions: &[AbstractTransaction], precedes: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut leader: Vec<usize> = (0..transactions.len()).collect();
    fn find(leader: &mut [usize], mut at: usize) -> usize {
        while leader[at] != at {
            leader[at] = leader[leader[at]];
            at = leader[at];
        }
        at
    }
    let mut join = |one: usize, other: usize| {
        let (one, other) = (find(&mut leader, one), find(&mut leader, other));
        leader[one.max(other)] = one.min(other);
    };
    let mut users: BTreeMap<Object, usize> = BTreeMap::new();
    for (at, transaction) in transactions.iter().enumerate() {
        for operation in &transaction.operations {
            join(*users.entry(operation.object()).or_insert(at), at);
        }
    }
    precedes.iter().for_each(|(first, second)| join(*first, *second));
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    (0..transactions.len()).for_each(|at| parts.entry(find(&mut leader, at)).or_default().push(at));
    parts.into_values().collect()
}

struct OrderSearch<'a> {
    transactions: &'a [AbstractTransaction],
    earlier: &'a [Vec<usize>],
    changes: &'a [Contents],
    /// Those that are searched.
    members: Vec<usize>,
    /// What objects hold after those that are done, which does not depend on their order.
    contents: Contents,
    done: BTreeSet<usize>,
    order: Vec<usize>,
    /// The sets of transactions that were come to before, from which nothing was found.
    tried: HashSet<Vec<usize>>,
    /// So many more are allowed.
    steps: u64,
}

impl OrderSearch<'_> {
    /// Whether what is left can be done in some order; `None`: there are no steps left.
    fn go_on(&mut self) -> Option<bool> {
        let before = self.order.len();
        self.do_what_changes_nothing();
        if self.done.len() == self.members.len() {
            return Some(true);
        }
        if self.tried.insert(self.done.iter().copied().collect()) {
            for at in self.members.clone() {
                if !self.may_come(at) {
                    continue;
                }
                self.steps = self.steps.checked_sub(1)?;
                self.apply(at, 1);
                if self.go_on()? {
                    return Some(true);
                }
                self.apply(at, -1);
            }
        }
        while self.order.len() > before {
            let last = *self.order.last().expect("it is longer than before");
            self.apply(last, -1);
        }
        Some(false)
    }

    fn may_come(&self, at: usize) -> bool {
        let is_next = || self.earlier[at].iter().all(|first| self.done.contains(first));
        !self.done.contains(&at) && is_next() && self.transactions[at].fits(&self.contents)
    }

    /// Does all that may come now and change nothing, which cannot make anything else impossible.
    fn do_what_changes_nothing(&mut self) {
        while let Some(at) = self
            .members
            .iter()
            .copied()
            .find(|at| self.changes[*at].is_empty() && self.may_come(*at))
        {
            self.apply(at, 1);
        }
    }

    /// Does a transaction as the next one, or undoes it as the last one.
    fn apply(&mut self, at: usize, sign: i64) {
        for (object, change) in &self.changes[at] {
            let holds = self.contents.entry(*object).or_default();
            *holds = holds.wrapping_add(sign * change);
        }
        if sign > 0 {
            self.order.push(at);
            self.done.insert(at);
        } else {
            assert_eq!(self.order.pop(), Some(at), "the last one is undone first");
            self.done.remove(&at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::AbstractOperation::{Add, Contains, Increase, Read, Remove};
    use super::*;

    fn of(operations: &[AbstractOperation]) -> AbstractTransaction {
        AbstractTransaction { operations: operations.to_vec() }
    }

    fn explains(transactions: &[AbstractTransaction], order: &[usize]) -> bool {
        let mut contents = Contents::new();
        order.iter().all(|at| {
            let fits = transactions[*at].fits(&contents);
            for (object, change) in transactions[*at].changes() {
                *contents.entry(object).or_default() += change;
            }
            fits
        })
    }

    #[test]
    fn what_is_undone_and_was_seen_is_noticed() {
        // The second saw a key that the first added and, aborted, took out again; so it is not
        // there at all.
        let seen = of(&[Contains { set: 1, key: 4, found: true }]);
        assert_eq!(serial_order(&[seen], &[], 9), SerialOrder::None);
        let removed = of(&[Remove { set: 1, key: 4, was_there: true }]);
        assert_eq!(serial_order(&[removed], &[], 9), SerialOrder::None);
    }

    #[test]
    fn pairs_and_parts_are_kept() {
        let add = |key| of(&[Add { set: 0, key, was_new: true }]);
        let look = |key| of(&[Contains { set: 0, key, found: false }]);
        let all = [add(1), add(2), look(1), look(2)];
        let SerialOrder::Found(order) = serial_order(&all, &[], 99) else { panic!() };
        assert!(explains(&all, &order) && order.len() == 4);
        assert_eq!(serial_order(&all, &[(0, 2)], 99), SerialOrder::None);
        assert_eq!(serial_order(&all, &[(0, 3), (3, 2)], 99), SerialOrder::None);
        let SerialOrder::Found(order) = serial_order(&all, &[(0, 3)], 99) else { panic!() };
        assert!(explains(&all, &order));
        assert_eq!(serial_order(&all, &[], 0), SerialOrder::Undecided);
    }

    #[test]
    fn many_that_commute_are_decided_fast() {
        let mut all = vec![of(&[Increase { counter: 0, by: 1 }]); 24];
        all.push(of(&[Read { counter: 0, value: 12 }]));
        assert!(matches!(serial_order(&all, &[], 1_000), SerialOrder::Found(_)));
    }

    /// Operations with answers of a serial run, or of one that is changed in a place.
    fn transactions() -> impl Strategy<Value = Vec<AbstractTransaction>> {
        let kind = (0..5_u8, 0..2_u64, any::<bool>(), 0..3_i64);
        let operation = kind.prop_map(|(kind, key, yes, value)| match kind {
            0 => Add { set: 0, key, was_new: yes },
            1 => Remove { set: 0, key, was_there: yes },
            2 => Contains { set: 0, key, found: yes },
            3 => Increase { counter: 0, by: value - 1 },
            _ => Read { counter: 0, value: value - 1 },
        });
        let transaction = prop::collection::vec(operation, 0..3);
        prop::collection::vec(transaction.prop_map(|it| of(&it)), 0..6)
    }

    fn any_order(transactions: &[AbstractTransaction], order: &mut Vec<usize>) -> bool {
        if order.len() == transactions.len() {
            return explains(transactions, order);
        }
        (0..transactions.len()).filter(|at| !order.contains(at)).collect::<Vec<_>>().iter().any(
            |at| {
                order.push(*at);
                let found = any_order(transactions, order);
                order.pop();
                found
            },
        )
    }

    proptest! {
        #[test]
        fn the_search_agrees_with_all_orders(transactions in transactions()) {
            match serial_order(&transactions, &[], 1_000_000) {
                SerialOrder::Found(order) => {
                    let all: BTreeSet<usize> = order.iter().copied().collect();
                    prop_assert!(all.len() == transactions.len() && order.len() == all.len());
                    prop_assert!(explains(&transactions, &order));
                }
                found => {
                    prop_assert_eq!(found, SerialOrder::None);
                    prop_assert!(!any_order(&transactions, &mut Vec::new()));
                }
            }
        }
    }
}
