//! What transactions are drawn from, which may change from phase to phase, and which keys are there
//! at first.

use muesli_core::Nanos;

use super::structure::StructureKind;
use crate::calls::check_shares;
use crate::chance::Chance;
use crate::parameters::{Parameter, ParameterError, ParameterKind as Takes, Values};

/// How long a phase is.
pub(super) const PHASE: Parameter = Parameter::new(
    "phase",
    "0",
    Takes::Count(0, 3_600_000),
    "Milliseconds after which `narrow` and `phase-reads` hold, and after as many again `objects` \
     and `reads`; 0: always these.",
);
/// How many keys there are in every other one.
pub(super) const NARROW: Parameter = Parameter::new(
    "narrow",
    "0",
    Takes::Count(0, 10_000_000),
    "How many of the keys there are to choose from in every other `phase`; 0: all.",
);
/// Who only reads in every other one.
pub(super) const PHASE_READS: Parameter = Parameter::new(
    "phase-reads",
    "95",
    Takes::Percent,
    "Share of transactions whose calls only look whether a key is there, in every other `phase`.",
);

/// What transactions are drawn from, from phase to phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetPhases {
    /// How many keys there are.
    pub keys: u64,
    reads: f64,
    /// The same in every other phase.
    others: (u64, f64),
    /// Zero: there are no phases.
    phase: Nanos,
}

impl SetPhases {
    /// As the parameters say; of so many keys, for transactions of so many calls.
    ///
    /// # Errors
    /// In some phase there are fewer than a transaction calls.
    pub fn new(values: &Values, (keys, calls): (u64, u64)) -> Result<SetPhases, ParameterError> {
        let (phase, narrow) = (Nanos(values.count("phase") * 1_000_000), values.count("narrow"));
        if narrow > 0 && !(calls..=keys).contains(&narrow) {
            let text = format!(
                "narrow must be {calls} to {keys} where there are {calls} calls and {keys} \
                 objects, or 0; it is {narrow}"
            );
            return Err(ParameterError::Incompatible(text));
        }
        check_shares(values, &["reads", "walks"])?;
        check_shares(values, &["phase-reads", "walks"])?;
        let narrow = if narrow == 0 { keys } else { narrow };
        let others = (narrow, values.number("phase-reads"));
        Ok(SetPhases { keys, reads: values.number("reads"), others, phase })
    }

    /// How many keys there are at this time, and which share of transactions only reads.
    pub fn at(&self, now: Nanos) -> (u64, f64) {
        match now.0.checked_div(self.phase.0) {
            Some(number) if number % 2 == 1 => self.others,
            _ => (self.keys, self.reads),
        }
    }
}

/// So many different keys.
pub(super) fn distinct(many: usize, keys: u64, chance: &mut Chance) -> Vec<u64> {
    let mut drawn: Vec<u64> = Vec::with_capacity(many);
    while drawn.len() < many {
        let key = chance.below(keys);
        // Where most are taken already, the next free one.
        let free = (0..keys).map(|step| (key + step) % keys).find(|key| !drawn.contains(key));
        drawn.extend(free);
    }
    drawn
}

/// The keys that are there at first, the same in every run. In falling order they are added at
/// the front of a list, without a search; a tree gets its shape from a random order.
pub(super) fn initial(kind: StructureKind, many: u64, keys: u64) -> Vec<u64> {
    let mut chance = Chance::new(0, 0, 0);
    let mut all = hashbrown::HashSet::new();
    let mut drawn = Vec::new();
    while (drawn.len() as u64) < many {
        let key = chance.below(keys);
        if all.insert(key) {
            drawn.push(key);
        }
    }
    if !kind.is_tree() {
        drawn.sort_unstable_by(|a, b| b.cmp(a));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_distinct_and_in_range(many in 0usize..20, more in 0u64..20, seed: u64) {
            let keys = many as u64 + more + 1;
            let mut chance = Chance::new(seed, 0, 1);
            let first = initial(StructureKind::Tree, many as u64, keys);
            for drawn in [distinct(many, keys, &mut chance), first] {
                prop_assert_eq!(drawn.len(), many);
                let all: std::collections::BTreeSet<_> = drawn.iter().collect();
                prop_assert!(all.len() == many && drawn.iter().all(|key| *key < keys));
            }
        }
    }

    #[test]
    fn every_other_phase_is_another() {
        let second = |at: u64| Nanos(at * 1_000_000_000);
        let phases = SetPhases { keys: 100, reads: 20.0, others: (10, 90.0), phase: second(2) };
        let at = [0, 1, 2, 3, 4, 6].map(|at| phases.at(second(at)));
        let (first, other) = ((100, 20.0), (10, 90.0));
        assert_eq!(at, [first, first, other, other, first, other]);
        let steady = SetPhases { phase: Nanos(0), ..phases };
        assert_eq!(steady.at(second(3)), first);
    }
}
