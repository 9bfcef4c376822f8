//! Transactions judged by what their operations mean: whether some serial order of them explains
//! what the operations on sets and counters answered.
//!
//! Where operations commit before the transactions that they are of (open nesting), reads and
//! writes of rows say that each operation is right, and nothing about the transactions: those that
//! commute may be interleaved by rows in any way. What must hold is that all answers are those of
//! one serial order of whole transactions. It is searched for, exactly.
//!
//! # How it is searched
//!
//! What a structure holds after some transactions does not depend on their order: an `add` with
//! effect puts the key in, whenever, and a counter shows the sum. From that follows all that keeps
//! the search small:
//!
//! * a transaction is what it needs its objects to hold when it comes, and by how much it changes
//!   each of them ([`footprint`]);
//! * a search that has come to a set of transactions before, in whichever order, need not go on
//!   from it again;
//! * a transaction that changes nothing and may come now, may as well;
//! * where an object cannot come any more to hold what somebody needs, nothing needs to be tried:
//!   what is left adds so much at most, and takes away so much at most.
//!
//! Transactions that share no object are searched apart, which is enough for real time, too: atomic
//! objects of which each is linearizable are so together (Herlihy and Wing, *Linearizability*,
//! section 3.3). For other pairs it is not; orders that do not go together are searched as one.
//!
//! Transactions are tried in the order in which they are given, those of unknown outcome last. If
//! that is about the order in which they ended, a history that holds takes few steps.
//!
//! ```
//! use muesli_check::abstract_operations::{
//!     AbstractHistory, AbstractOperation as Op, AbstractTransaction, SerialOrder,
//! };
//!
//! let of = |operations: &[Op]| AbstractTransaction {
//!     operations: operations.to_vec(),
//!     ..AbstractTransaction::default()
//! };
//! let in_order = |transactions: &[AbstractTransaction]| {
//!     let transactions = transactions.to_vec();
//!     AbstractHistory { transactions, ..AbstractHistory::default() }.serial_order(1_000)
//! };
//! let first = of(&[
//!     Op::Add { set: 0, key: 1, was_new: true },
//!     Op::Contains { set: 0, key: 2, found: false },
//! ]);
//! let second = of(&[
//!     Op::Add { set: 0, key: 2, was_new: true },
//!     Op::Contains { set: 0, key: 1, found: true },
//! ]);
//! assert_eq!(in_order(&[first.clone(), second]), SerialOrder::Found(vec![0, 1]));
//! // Each says that the other's key was absent.
//! let skewed = of(&[
//!     Op::Add { set: 0, key: 2, was_new: true },
//!     Op::Contains { set: 0, key: 1, found: false },
//! ]);
//! assert!(matches!(in_order(&[first, skewed]), SerialOrder::None { .. }));
//! ```

mod footprint;
mod parts;
mod precedence;
mod search;
#[cfg(test)]
mod tests;

pub(crate) use footprint::Contents;
pub(crate) use precedence::direct_predecessors;

/// An operation of a set or a counter, and what it answered. Sets are empty and counters zero at
/// first; a transaction that comes before all others can say otherwise. Sets, keys and counters are
/// numbers, or have other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbstractOperation<N = u64> {
    /// A key was put into a set.
    Add {
        /// The set.
        set: N,
        /// The key.
        key: N,
        /// Whether it was absent.
        was_new: bool,
    },
    /// A key was taken out of a set.
    Remove {
        /// The set.
        set: N,
        /// The key.
        key: N,
        /// Whether it was there.
        was_there: bool,
    },
    /// It was looked whether a key is there.
    Contains {
        /// The set.
        set: N,
        /// The key.
        key: N,
        /// Whether it is.
        found: bool,
    },
    /// Something was added to a counter, which was not looked at.
    Increase {
        /// The counter.
        counter: N,
        /// How much.
        by: i64,
    },
    /// A counter was read.
    Read {
        /// The counter.
        counter: N,
        /// What it showed.
        value: i64,
    },
}

/// What the names in an operation are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// A set or a counter.
    Object,
    /// A key of a set.
    Key,
}

impl<N> AbstractOperation<N> {
    /// The same operation with other names, which `name` gives.
    ///
    /// # Errors
    /// What `name` says.
    pub fn try_renamed<M, E>(
        self,
        mut name: impl FnMut(N, Named) -> Result<M, E>,
    ) -> Result<AbstractOperation<M>, E> {
        let mut both = |set, key| Ok((name(set, Named::Object)?, name(key, Named::Key)?));
        Ok(match self {
            AbstractOperation::Add { set, key, was_new } => {
                let (set, key) = both(set, key)?;
                AbstractOperation::Add { set, key, was_new }
            }
            AbstractOperation::Remove { set, key, was_there } => {
                let (set, key) = both(set, key)?;
                AbstractOperation::Remove { set, key, was_there }
            }
            AbstractOperation::Contains { set, key, found } => {
                let (set, key) = both(set, key)?;
                AbstractOperation::Contains { set, key, found }
            }
            AbstractOperation::Increase { counter, by } => {
                AbstractOperation::Increase { counter: name(counter, Named::Object)?, by }
            }
            AbstractOperation::Read { counter, value } => {
                AbstractOperation::Read { counter: name(counter, Named::Object)?, value }
            }
        })
    }
}

/// A transaction: its operations in their order, and what else is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbstractTransaction {
    /// In their order.
    pub operations: Vec<AbstractOperation>,
    /// Nobody knows whether it committed: an order with it will do, and one without it.
    pub optional: bool,
    /// When it began and ended (`None`: it never did), where real time counts for it: it comes
    /// after all of these that ended before it began.
    pub interval: Option<(u64, Option<u64>)>,
}

/// Transactions that committed, or may have, and what must hold of their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbstractHistory {
    /// What put there what structures hold at first; all else is absent, or zero.
    pub start: Vec<AbstractOperation>,
    /// About in the order in which they ended.
    pub transactions: Vec<AbstractTransaction>,
    /// The first of each pair comes before the second, if both do; transactions by their places.
    pub precedes: Vec<(usize, usize)>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SerialOrder {
    /// This order explains all answers: the transactions by their places in what was given.
    Found(Vec<usize>),
    /// None does.
    None {
        /// The longest order found in which all answers are right, and nothing can come next.
        longest: Vec<usize>,
        /// What cannot come next, although all that is to come before it is there.
        stuck: Vec<usize>,
    },
    /// It was not found within so many steps as were allowed.
    Undecided,
}

/// What was found of transactions that have to do with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOrder {
    /// These, by their places in what was given.
    pub members: Vec<usize>,
    /// An order of them, if there is one.
    pub order: SerialOrder,
}

impl AbstractHistory {
    /// Looks for a serial order of all transactions that explains their answers. Looking whether
    /// one may come next is a step; it takes at most `steps` of them.
    ///
    /// # Panics
    /// A pair names a transaction that there is not.
    pub fn serial_order(&self, steps: u64) -> SerialOrder {
        let mut found = Vec::new();
        let mut undecided = false;
        for part in self.orders_of_parts(steps) {
            match part.order {
                SerialOrder::Found(_) => found.push(part),
                none @ SerialOrder::None { .. } => return none,
                SerialOrder::Undecided => undecided = true,
            }
        }
        match undecided {
            true => SerialOrder::Undecided,
            false => SerialOrder::Found(
                parts::merged(self, &found).expect("parts whose orders do not go together are one"),
            ),
        }
    }

    /// The same for transactions that have to do with each other, apart: some may be decided where
    /// others are not. Orders that were found go together.
    ///
    /// # Panics
    /// As [`serial_order`](Self::serial_order).
    pub fn orders_of_parts(&self, steps: u64) -> Vec<PartOrder> {
        parts::orders(self, steps)
    }
}
