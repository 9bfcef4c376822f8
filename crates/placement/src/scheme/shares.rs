//! What a placement is worth: how many transactions have several participants, what crosses between
//! them, which of them cannot be known from the arguments, and how evenly partitions are loaded.

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
    /// Of 100, those in which a step needs what another partition has.
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

/// Counts transactions of which it is known where their rows are.
#[derive(Clone, Debug)]
pub(crate) struct ShareCounter {
    /// Of each partition the last transaction that touched it, and that named it, from 1.
    touched_by: Vec<u64>,
    named_by: Vec<u64>,
    loads: Vec<u64>,
    touched: Vec<u32>,
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
        let crosses = rows().any(|(access, place)| {
            let needed = access.needs.iter().filter_map(|need| places[usize::from(*need)].at);
            place.at.is_some_and(|here| needed.into_iter().any(|there| there != here))
        });
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
