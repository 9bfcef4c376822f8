//! Which partition a key is in.

use super::spaces::Partitioning;
use super::{Catalog, CatalogError, SpaceOptions};
use crate::bytes::SmallBytes;
use crate::ids::SpaceId;

/// The partition of keys that are everywhere: every repository holds it, and no other number names
/// it.
pub const EVERYWHERE: u16 = u16::MAX - 1;

/// How many partitions there can be.
pub const PARTITIONS_MAX: usize = EVERYWHERE as usize;

fn hashed(key: &[u8], partitions: usize) -> u16 {
    let hash = xxhash_rust::xxh3::xxh3_64(key);
    ((u128::from(hash) * partitions as u128) >> 64) as u16
}

impl Catalog {
    /// How many partitions there are: as many as repositories, or more.
    #[inline]
    pub fn partitions(&self) -> usize {
        self.homes.len() * usize::from(self.partitions_per_repository)
    }

    /// Whether a number names a partition: one of those that keys are dealt to, or that of keys
    /// that are everywhere.
    #[inline]
    pub fn has_partition(&self, partition: u16) -> bool {
        usize::from(partition) < self.partitions() || partition == EVERYWHERE
    }

    /// The partitioning of a space; of one that is not known here yet, the default.
    fn partitioning(&self, space: SpaceId) -> &Partitioning {
        self.spaces
            .get(usize::from(space.0))
            .map_or(&Partitioning::Hash, |space| &space.options.partitioning)
    }

    /// The partition that holds `key`.
    #[inline]
    pub fn partition(&self, space: SpaceId, key: &SmallBytes) -> u16 {
        if self.partitions() == 1 {
            return 0;
        }
        match self.partitioning(space) {
            Partitioning::Hash => hashed(key.as_slice(), self.partitions()),
            Partitioning::Range(splits) => splits.partition_point(|split| split <= key) as u16,
            Partitioning::Unit(units) => {
                let unit = units.unit_of(key.as_slice());
                units.map.partition(unit).unwrap_or_else(|| hashed(unit, self.partitions()))
            }
            Partitioning::Everywhere => EVERYWHERE,
        }
    }

    /// The partitions that can hold keys of `[lo, hi)`; `hi` `None` is open.
    pub fn partitions_of_range(
        &self,
        space: SpaceId,
        lo: &SmallBytes,
        hi: Option<&SmallBytes>,
    ) -> std::ops::Range<u16> {
        if self.partitions() == 1 {
            return 0..1;
        }
        match self.partitioning(space) {
            Partitioning::Hash => 0..self.partitions() as u16,
            Partitioning::Range(splits) => {
                let first = splits.partition_point(|split| split <= lo) as u16;
                let end = hi.map_or(splits.len(), |hi| splits.partition_point(|split| split < hi));
                first..(end as u16 + 1).max(first)
            }
            Partitioning::Unit(units) if units.unit_of_range(lo, hi).is_some() => {
                let only = self.partition(space, lo);
                only..only + 1
            }
            Partitioning::Unit(_) => 0..self.partitions() as u16,
            Partitioning::Everywhere => EVERYWHERE..EVERYWHERE + 1,
        }
    }

    /// Whether the keys of a space can be dealt so.
    pub(super) fn check_partitioning(
        &self,
        name: &str,
        options: &SpaceOptions,
    ) -> Result<(), CatalogError> {
        let (space, partitions) = (name.to_owned(), self.partitions());
        match &options.partitioning {
            Partitioning::Hash | Partitioning::Everywhere => Ok(()),
            Partitioning::Range(splits) => {
                let ascending = splits.windows(2).all(|pair| pair[0] < pair[1]);
                let splits = splits.len();
                let fits = ascending && splits < partitions;
                fits.then_some(()).ok_or(CatalogError::Splits { space, splits, partitions })
            }
            Partitioning::Unit(units) => {
                if units.parts.is_empty() || !units.map.is_sound(partitions) {
                    return Err(CatalogError::Units { space, partitions });
                }
                let others = self.spaces.iter().filter(|other| other.name != name);
                let differs = others.into_iter().find(|other| match &other.options.partitioning {
                    Partitioning::Unit(of) => of.domain == units.domain && of.map != units.map,
                    _ => false,
                });
                differs.map_or(Ok(()), |other| {
                    let (domain, other) = (units.domain.clone(), other.name.clone());
                    Err(CatalogError::Domain { space, domain, other })
                })
            }
        }
    }
}
