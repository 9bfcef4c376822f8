//! Vector clocks: for every repository, how far its commits are known.
//!
//! An entry is a *number* that a repository gave to a commit: a counter, and the transaction that
//! it was given to. The counter alone orders the commits of a repository; the transaction makes
//! the number nobody else's, so that "number n was applied here" says that one certain transaction
//! was, and not merely as many as that.

use std::fmt;

use crate::ids::{NodeId, RepositoryId, TxnId};
use crate::wire::{Reader, Wire, WireError};
use crate::wire_struct;

use super::watermark::Bound;

/// A number that a repository gave to a commit; zero is before all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// Orders the commits of a repository.
    pub counter: u64,
    /// Whose number it is.
    pub by: TxnId,
}

wire_struct!(Number { counter: u64, by: TxnId });

impl Number {
    /// Before every commit.
    pub const ZERO: Number =
        Number { counter: 0, by: TxnId { node: NodeId(0), incarnation: 0, sequence: 0 } };

    /// A number of a transaction that `repository` alone took part in and that has no id.
    pub fn local(counter: u64, repository: RepositoryId) -> Number {
        let node = NodeId(u32::from(repository.0));
        Number { counter, by: TxnId { node, incarnation: u32::MAX, sequence: u64::MAX } }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.counter)
    }
}

/// A number for every repository; those that are not there are zero.
///
/// Invariant: the last entry is not zero, so that equal clocks have equal entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VectorClock {
    /// Its last one is not zero.
    entries: Vec<Number>,
}

impl VectorClock {
    /// The entry of a repository.
    #[inline]
    pub fn get(&self, repository: RepositoryId) -> Number {
        self.entries.get(usize::from(repository.0)).copied().unwrap_or(Number::ZERO)
    }

    /// Sets the entry of a repository.
    pub fn set(&mut self, repository: RepositoryId, number: Number) {
        let place = usize::from(repository.0);
        if self.entries.len() <= place {
            self.entries.resize(place + 1, Number::ZERO);
        }
        self.entries[place] = number;
        self.trim();
    }

    /// Whether every entry is at most that of `other`.
    pub fn is_within(&self, other: &VectorClock) -> bool {
        let others = other.entries.iter().copied().chain(std::iter::repeat(Number::ZERO));
        self.entries.iter().zip(others).all(|(own, other)| *own <= other)
    }

    /// How many repositories it has entries for, from the first to the last that is not zero.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether all entries are zero.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The largest counter of all entries.
    pub fn largest_counter(&self) -> u64 {
        self.entries.iter().map(|number| number.counter).max().unwrap_or(0)
    }

    /// Checks the invariant.
    ///
    /// # Panics
    /// It does not hold.
    pub fn assert_invariants(&self) {
        assert_ne!(self.entries.last(), Some(&Number::ZERO), "a clock that ends with nothing");
    }

    fn trim(&mut self) {
        while self.entries.last() == Some(&Number::ZERO) {
            self.entries.pop();
        }
    }
}

impl Bound for VectorClock {
    fn join(&mut self, other: &VectorClock) {
        if self.entries.len() < other.entries.len() {
            self.entries.resize(other.entries.len(), Number::ZERO);
        }
        for (own, other) in self.entries.iter_mut().zip(&other.entries) {
            *own = (*own).max(*other);
        }
    }

    fn meet(&mut self, other: &VectorClock) {
        self.entries.truncate(other.entries.len());
        for (own, other) in self.entries.iter_mut().zip(&other.entries) {
            *own = (*own).min(*other);
        }
        self.trim();
    }
}

impl fmt::Display for VectorClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (place, number) in self.entries.iter().enumerate() {
            write!(f, "{}{number}", if place > 0 { " " } else { "" })?;
        }
        f.write_str("]")
    }
}

impl Wire for VectorClock {
    const LEAST_BYTES: usize = 4;

    fn encode(&self, out: &mut Vec<u8>) {
        self.entries.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<VectorClock, WireError> {
        let mut clock = VectorClock { entries: Vec::decode(input)? };
        clock.trim();
        Ok(clock)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = Number> {
        (0u64..4, 0u64..3).prop_map(|(counter, sequence)| Number {
            counter,
            by: TxnId { node: NodeId(1), incarnation: 1, sequence },
        })
    }

    fn clock() -> impl Strategy<Value = VectorClock> {
        prop::collection::vec(number(), 0..5).prop_map(|numbers| {
            let mut clock = VectorClock::default();
            for (place, number) in numbers.into_iter().enumerate() {
                clock.set(RepositoryId(place as u16), number);
            }
            clock
        })
    }

    #[test]
    fn a_number_is_of_its_transaction() {
        let of = |counter, node, sequence| Number {
            counter,
            by: TxnId { node: NodeId(node), incarnation: 1, sequence },
        };
        assert!(of(1, 9, 9) < of(2, 0, 0));
        assert!(of(2, 0, 7) < of(2, 1, 1));
        assert_ne!(Number::local(3, RepositoryId(0)), Number::local(3, RepositoryId(1)));
    }

    proptest! {
        #[test]
        fn join_and_meet_are_the_least_above_and_the_greatest_below(a in clock(), b in clock()) {
            let (mut join, mut meet) = (a.clone(), a.clone());
            join.join(&b);
            meet.meet(&b);
            for place in (0..6).map(RepositoryId) {
                prop_assert_eq!(join.get(place), a.get(place).max(b.get(place)));
                prop_assert_eq!(meet.get(place), a.get(place).min(b.get(place)));
            }
            prop_assert!(a.is_within(&join) && b.is_within(&join));
            prop_assert!(meet.is_within(&a) && meet.is_within(&b));
            prop_assert_eq!(a.is_within(&b), join == b);
            prop_assert_eq!(a.is_within(&b), meet == a);
        }

        #[test]
        fn comes_back_from_its_bytes(a in clock(), noise in any::<Vec<u8>>()) {
            let mut bytes = Vec::new();
            a.encode(&mut bytes);
            prop_assert_eq!(VectorClock::decode_all(&bytes), Ok(a));
            let _ = VectorClock::decode_all(&noise);
        }
    }
}
