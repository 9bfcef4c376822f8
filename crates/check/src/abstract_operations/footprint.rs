//! What a transaction needs and changes, whatever comes before it.

use std::collections::BTreeMap;

use super::AbstractOperation;

/// What an operation is about: a key of a set, or a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AbstractObject {
    Key(u64, u64),
    Counter(u64),
}

/// What objects hold: 1 for a key that is there. Those that are not named hold 0.
pub(crate) type Contents = BTreeMap<AbstractObject, i128>;

/// A transaction as the search has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AbstractFootprint {
    /// What objects must hold when it comes; these are all the objects that it has looked at.
    pub needs: Contents,
    /// By how much it changes each object that it changes.
    pub changes: Contents,
}

impl AbstractOperation {
    pub(crate) fn object(self) -> AbstractObject {
        use AbstractOperation::{Add, Contains, Increase, Read, Remove};
        match self {
            Add { set, key, .. } | Remove { set, key, .. } | Contains { set, key, .. } => {
                AbstractObject::Key(set, key)
            }
            Increase { counter, .. } | Read { counter, .. } => AbstractObject::Counter(counter),
        }
    }

    /// By how much it changes its object, whenever it is done.
    pub(crate) fn change(self) -> i128 {
        match self {
            AbstractOperation::Add { was_new, .. } => i128::from(was_new),
            AbstractOperation::Remove { was_there, .. } => -i128::from(was_there),
            AbstractOperation::Increase { by, .. } => i128::from(by),
            AbstractOperation::Contains { .. } | AbstractOperation::Read { .. } => 0,
        }
    }

    /// What its object holds where it answers so, if its answer tells.
    pub(crate) fn holds(self) -> Option<i128> {
        match self {
            AbstractOperation::Add { was_new, .. } => Some(i128::from(!was_new)),
            AbstractOperation::Remove { was_there, .. } => Some(i128::from(was_there)),
            AbstractOperation::Contains { found, .. } => Some(i128::from(found)),
            AbstractOperation::Increase { .. } => None,
            AbstractOperation::Read { value, .. } => Some(i128::from(value)),
        }
    }
}

impl AbstractFootprint {
    /// That of these operations, one after the other; `None` where no contents at all explain their
    /// answers.
    pub fn of(operations: &[AbstractOperation]) -> Option<AbstractFootprint> {
        let mut footprint = AbstractFootprint::default();
        for operation in operations {
            let object = operation.object();
            let changed = footprint.changes.entry(object).or_default();
            if let Some(holds) = operation.holds() {
                let need = holds - *changed;
                if *footprint.needs.entry(object).or_insert(need) != need {
                    return None;
                }
            }
            *changed += operation.change();
        }
        footprint.changes.retain(|_, change| *change != 0);
        let is_key = |object: &AbstractObject| matches!(object, AbstractObject::Key(..));
        let possible = |need: &i128| (0..=1).contains(need);
        let all_possible = footprint.needs.iter().all(|(at, need)| !is_key(at) || possible(need));
        all_possible.then_some(footprint)
    }
}
