//! What a user of batches chooses, and the rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use super::batch::BatchLimits;

breakable! {
    /// What batches keep to.
    enum BatchSwitch {
        /// Commands of a batch that touch the same object come after each other.
        NamesWithin = "names_within_batches",
        /// A member that comes back names no command as it has named another one.
        RemembersNumbers = "remembers_numbers_of_batches",
    }
}

/// What its user chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchedSwitches<S> {
    /// How large batches are.
    pub limits: BatchLimits,
    /// Of the broadcast that orders them.
    pub inside: S,
    pub(super) broken: Broken<BatchSwitch>,
}

impl<S> BatchedSwitches<S> {
    /// Batches of this size, ordered so.
    pub fn new(limits: BatchLimits, inside: S) -> BatchedSwitches<S> {
        BatchedSwitches { limits, inside, broken: Broken::default() }
    }
}

impl<S: Default> Sabotage<BatchSwitch> for BatchedSwitches<S> {
    fn set(&mut self, switch: BatchSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
