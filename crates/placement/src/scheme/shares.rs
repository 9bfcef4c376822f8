//! What a placement is worth: how many transactions have several participants, what crosses between
//! them, and how evenly they are loaded.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{PlacedUnit, Scheme};
use crate::trace::{AccessTrace, TracedTransaction};

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
    /// How many partitions beyond the first, on average.
    pub width: f64,
    /// The transactions of the busiest partition by those of the average one.
    pub load: f64,
}

/// Counts the shares of transactions under a scheme and a placement of its units.
pub fn shares(
    trace: &AccessTrace,
    transactions: &[TracedTransaction],
    scheme: &Scheme,
    places: &impl RowPlaces,
) -> PlacementShares {
    let (mut distributed, mut crossing, mut width) = (0_u64, 0_u64, 0_u64);
    let mut loads: BTreeMap<u32, u64> = BTreeMap::new();
    for transaction in transactions {
        let of = |access| scheme.unit(trace, access).map(|unit| places.partition(unit));
        let at: Vec<Option<u32>> = transaction.accesses.iter().map(of).collect();
        let mut touched: BTreeSet<u32> = at.iter().flatten().copied().collect();
        let spans_all =
            transaction.accesses.iter().zip(&at).any(|(access, at)| access.writes && at.is_none());
        if spans_all {
            touched.extend(0..places.partitions());
        }
        let crosses = transaction.accesses.iter().zip(&at).any(|(access, here)| {
            access.needs.iter().any(|need| {
                let there = at[usize::from(*need)];
                here.is_some() && there.is_some() && there != *here
            })
        });
        distributed += u64::from(touched.len() > 1);
        crossing += u64::from(crosses);
        width += touched.len().saturating_sub(1) as u64;
        for partition in touched {
            *loads.entry(partition).or_default() += 1;
        }
    }
    let count = transactions.len().max(1) as f64;
    let (most, all) = (loads.values().max().copied().unwrap_or(0), loads.values().sum::<u64>());
    let mean = all as f64 / f64::from(places.partitions().max(1));
    PlacementShares {
        transactions: transactions.len() as u64,
        distributed: 100.0 * distributed as f64 / count,
        crossing: 100.0 * crossing as f64 / count,
        width: width as f64 / count,
        load: if all == 0 { 1.0 } else { most as f64 / mean },
    }
}
