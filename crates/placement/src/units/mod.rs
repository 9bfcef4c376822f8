//! Which units are used together, and in which partition each of them should be.

pub mod child;
mod first;
mod graph;
mod refinement;

pub use first::{FirstPlacement, first_placement};
pub use graph::UnitGraph;
pub use refinement::{Refined, RefinementTerms, refine, refine_priced};

use std::collections::BTreeMap;

use crate::scheme::{ByHash, PlacedUnit, RowPlaces};

/// The partition of each unit; of those that it does not name, a hash says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPlacement {
    /// How many partitions there are.
    pub partitions: u32,
    /// The units that were seen.
    pub units: BTreeMap<PlacedUnit, u32>,
}

impl RowPlaces for UnitPlacement {
    fn partition(&self, unit: PlacedUnit) -> u32 {
        let named = self.units.get(&unit).copied();
        named.unwrap_or_else(|| ByHash(self.partitions).partition(unit))
    }

    fn partitions(&self) -> u32 {
        self.partitions
    }
}
