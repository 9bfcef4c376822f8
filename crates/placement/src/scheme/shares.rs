//! What a placement is worth: how many transactions have several participants, what crosses between
//! them, which of them cannot be known from the arguments, and how evenly partitions are loaded.
//!
//! A value crosses where a step needs what its own partition does not know. Who knows what was
//! found follows from step to step: of a table that is everywhere each participant can read a row,
//! but only if it knows by what; so what is read there by a row of one partition is known at that
//! partition alone. What is written everywhere must be known to all.

use serde::Serialize;

use super::{PlacedUnit, Scheme, TablePlacement};
use crate::trace::{AccessTrace, TracedAccess, TracedTransaction};

/// Says in which partition a unit is.
pub trait RowPlaces {
    /// Its partition.
    fn partition(&self, unit: PlacedUnit) -> u32;
    /// How many partitions there are.
    fn partitions(&self) -> u32;
}

/// Units by a hash, in so many partitions.
#[derive(Clone, Copy, Debug)]
pub struct ByHash(pub u32);

impl RowPlaces for ByHash {
    fn partition(&self, unit: PlacedUnit) -> u32 {
        let mut bytes = [0; 10];
        bytes[..2].copy_from_slice(&unit.domain.to_le_bytes());
        bytes[2..].copy_from_slice(&unit.value.to_le_bytes());
        let hash = xxhash_rust::xxh3::xxh3_64(&bytes);
        ((u128::from(hash) * u128::from(self.0)) >> 64) as u32
    }

    fn partitions(&self) -> u32 {
        self.0
    }
}

/// What was counted over transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PlacementShares {
    /// How many transactions.
    pub transactions: u64,
    /// Of 100, those at more than one partition.
    pub distributed: f64,
    /// Of 100, those in which a step needs what its own partition does not know.
    pub crossing: f64,
    /// Of 100, those at a partition that the arguments do not name: who calls them by what the
    /// arguments say leaves it out.
    pub misrouted: f64,
    /// How many partitions beyond the first, on average.
    pub width: f64,
    /// The transactions of the busiest partition by those of the average one.
    pub load: f64,
}

/// Where a row is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessPlace {
    /// Its partition; `None`: it is everywhere.
    pub at: Option<u32>,
    /// Whether that follows from the arguments.
    pub is_routed: bool,
}

impl AccessPlace {
    /// The place of a row by a table's rule and the partition of its unit.
    pub fn of(access: &TracedAccess, placement: TablePlacement, at: Option<u32>) -> AccessPlace {
        let is_routed = match placement {
            TablePlacement::Everywhere => true,
            TablePlacement::Column(column) => access.by_arguments >> column & 1 == 1,
        };
        AccessPlace { at, is_routed }
    }
}

/// Which participants know what an access found, or what an access needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownPlace {
    /// All of them.
    All,
    /// One partition alone.
    At(u32),
    /// None: of what is needed some is known at one partition alone, and some at another one.
    Apart,
}

impl KnownPlace {
    /// Who knows both.
    fn and(self, other: KnownPlace) -> KnownPlace {
        match (self, other) {
            (KnownPlace::All, known) | (known, KnownPlace::All) => known,
            (KnownPlace::At(one), KnownPlace::At(other)) if one == other => self,
            (KnownPlace::At(_) | KnownPlace::Apart, KnownPlace::At(_) | KnownPlace::Apart) => {
                KnownPlace::Apart
            }
        }
    }

    /// Who knows what an access finds, by who knows what it needs; and whether a value crosses for
    /// it.
    fn found(needed: KnownPlace, at: Option<u32>, writes: bool) -> (KnownPlace, bool) {
        match (at, needed) {
            (Some(here), KnownPlace::At(there)) => (KnownPlace::At(here), there != here),
            (Some(here), KnownPlace::All) => (KnownPlace::At(here), false),
            (Some(here), KnownPlace::Apart) => (KnownPlace::At(here), true),
            (None, KnownPlace::All) => (KnownPlace::All, false),
            // All participants make the same change of a copy, or it is brought to them.
            (None, KnownPlace::At(_)) if writes => (KnownPlace::All, true),
            (None, KnownPlace::At(there)) => (KnownPlace::At(there), false),
            (None, KnownPlace::Apart) => (KnownPlace::Apart, true),
        }
    }
}

/// Counts transactions of which it is known where their rows are.
#[derive(Clone, Debug)]
pub(crate) struct ShareCounter {
    /// Of each partition the last transaction that touched it, and that named it, from 1.
    touched_by: Vec<u64>,
    named_by: Vec<u64>,
    loads: Vec<u64>,
    touched: Vec<u32>,
    /// Of each access of the transaction that is counted, who knows what it found.
    known: Vec<KnownPlace>,
    transactions: u64,
    distributed: u64,
    crossing: u64,
    misrouted: u64,
    width: u64,
}

impl ShareCounter {
    pub fn new(partitions: u32) -> ShareCounter {
        let of_each = || vec![0; partitions as usize];
        ShareCounter {
            touched_by: of_each(),
            named_by: of_each(),
            loads: of_each(),
            touched: Vec::new(),
            known: Vec::new(),
            transactions: 0,
            distributed: 0,
            crossing: 0,
            misrouted: 0,
            width: 0,
        }
    }

    /// Counts a transaction, whose rows are at these places, in their order.
    pub fn add(&mut self, transaction: &TracedTransaction, places: &[AccessPlace]) {
        self.transactions += 1;
        self.touched.clear();
        let rows = || transaction.accesses.iter().zip(places);
        for (_, place) in rows() {
            if let Some(at) = place.at {
                self.touch(at, place.is_routed);
            }
        }
        if rows().any(|(access, place)| access.writes && place.at.is_none()) {
            (0..self.loads.len() as u32).for_each(|at| self.touch(at, true));
        }
        let crosses = self.crosses(transaction, places);
        let number = self.transactions;
        let is_named = |at: &u32| self.named_by[*at as usize] == number;
        self.misrouted += u64::from(!self.touched.iter().all(is_named));
        self.distributed += u64::from(self.touched.len() > 1);
        self.crossing += u64::from(crosses);
        self.width += self.touched.len().saturating_sub(1) as u64;
        for at in &self.touched {
            self.loads[*at as usize] += 1;
        }
    }

    /// Whether a step needs what its own partition does not know; of one partition all know all.
    fn crosses(&mut self, transaction: &TracedTransaction, places: &[AccessPlace]) -> bool {
        let (mut crosses, several) = (false, self.loads.len() > 1);
        self.known.clear();
        for (access, place) in transaction.accesses.iter().zip(places) {
            let needs = access.needs.iter().map(|need| self.known[usize::from(*need)]);
            let needed = needs.fold(KnownPlace::All, KnownPlace::and);
            let (known, does_cross) = KnownPlace::found(needed, place.at, access.writes);
            self.known.push(known);
            crosses |= does_cross && several;
        }
        crosses
    }

    fn touch(&mut self, at: u32, is_routed: bool) {
        let (number, place) = (self.transactions, at as usize);
        if self.touched_by[place] != number {
            self.touched_by[place] = number;
            self.touched.push(at);
        }
        if is_routed {
            self.named_by[place] = number;
        }
    }

    /// What was counted.
    pub fn shares(&self) -> PlacementShares {
        let count = self.transactions.max(1) as f64;
        let of = |counted: u64| 100.0 * counted as f64 / count;
        let (most, all) = (self.loads.iter().max(), self.loads.iter().sum::<u64>());
        let mean = all as f64 / self.loads.len().max(1) as f64;
        PlacementShares {
            transactions: self.transactions,
            distributed: of(self.distributed),
            crossing: of(self.crossing),
            misrouted: of(self.misrouted),
            width: self.width as f64 / count,
            load: most.filter(|_| all > 0).map_or(1.0, |most| *most as f64 / mean),
        }
    }
}

/// Counts the shares of transactions under a scheme and a placement of its units.
pub fn shares(
    trace: &AccessTrace,
    transactions: &[TracedTransaction],
    scheme: &Scheme,
    units: &impl RowPlaces,
) -> PlacementShares {
    let (mut counter, mut places) = (ShareCounter::new(units.partitions()), Vec::new());
    for transaction in transactions {
        places.clear();
        places.extend(transaction.accesses.iter().map(|access| {
            let at = scheme.unit(trace, access).map(|unit| units.partition(unit));
            AccessPlace::of(access, scheme.tables[usize::from(access.table)], at)
        }));
        counter.add(transaction, &places);
    }
    counter.shares()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses, each with its place, whether it writes, and what it needs.
    fn crosses(partitions: u32, all: &[(Option<u32>, bool, &[u16])]) -> bool {
        let access = |(_, writes, needs): &(Option<u32>, bool, &[u16])| TracedAccess {
            writes: *writes,
            key: vec![1],
            needs: needs.to_vec(),
            ..TracedAccess::default()
        };
        let transaction =
            TracedTransaction { procedure: 0, accesses: all.iter().map(access).collect() };
        let place = |access: &(Option<u32>, bool, &[u16])| {
            let at = access.0;
            AccessPlace { at, is_routed: true }
        };
        let mut counter = ShareCounter::new(partitions);
        counter.add(&transaction, &all.iter().map(place).collect::<Vec<_>>());
        counter.shares().crossing > 0.0
    }

    #[test]
    fn what_is_needed_crosses_unless_it_is_known_there() {
        let (here, there, copy) = (Some(1), Some(2), None);
        assert!(!crosses(4, &[(here, false, &[]), (here, true, &[0])]));
        assert!(crosses(4, &[(here, false, &[]), (there, true, &[0])]));
        assert!(!crosses(4, &[(copy, false, &[]), (here, true, &[0]), (there, true, &[0])]));
    }

    #[test]
    fn what_is_read_of_a_copy_is_known_to_those_who_know_by_what() {
        let (here, there, copy) = (Some(1), Some(2), None);
        // A copy that is read by what a row says, for a row of the same partition, or of another.
        let through = |last| [(here, false, &[][..]), (copy, false, &[0]), (last, true, &[1])];
        assert!(!crosses(4, &through(here)));
        assert!(crosses(4, &through(there)));
        // A copy is read by two rows that nobody knows both of.
        assert!(crosses(4, &[(here, false, &[]), (there, false, &[]), (copy, false, &[0, 1])]));
    }

    #[test]
    fn what_is_written_everywhere_is_known_to_all() {
        let (here, copy) = (Some(0), None);
        assert!(!crosses(4, &[(here, false, &[]), (copy, true, &[])]));
        assert!(!crosses(4, &[(copy, false, &[]), (copy, true, &[0])]));
        let by_a_row = [(here, false, &[][..]), (copy, true, &[0])];
        assert!(crosses(4, &by_a_row) && !crosses(1, &by_a_row));
    }
}
