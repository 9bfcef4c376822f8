//! Static placement: where everything is as long as nothing moves.
//!
//! Partition `p` is held by as many repositories as there are replicas of a key, from number `p`
//! on, round the ring; the one of keys that are everywhere, by all. Nothing but this file knows
//! that. Whoever asks by [`Static`] says that nothing moves under its protocol, or asks where a
//! thing was before its first move.

use std::sync::Arc;

use super::{Locator, Movable, Owners};
use crate::catalog::{Catalog, EVERYWHERE};
use crate::ids::RepositoryId;

/// Nothing ever moves: all is where the catalog puts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Static;

impl<K: Movable> Locator<K> for Static {
    fn moved(&self, _: &K) -> Option<&Arc<Owners>> {
        None
    }
}

impl Static {
    /// The repositories that hold a partition, its first one first.
    #[inline]
    pub fn replicas_of(
        self,
        partition: u16,
        catalog: &Catalog,
    ) -> impl Iterator<Item = RepositoryId> + use<> {
        let total = catalog.repositories() as u16;
        let (partition, count) = match partition {
            EVERYWHERE => (0, total),
            _ => (partition, catalog.replicas),
        };
        (0..count).map(move |step| {
            let at = u32::from(partition) + u32::from(step);
            RepositoryId((at % u32::from(total)) as u16)
        })
    }

    /// Whether a repository holds a partition.
    #[inline]
    pub fn holds(self, repository: RepositoryId, partition: u16, catalog: &Catalog) -> bool {
        if partition == EVERYWHERE {
            return usize::from(repository.0) < catalog.repositories();
        }
        let total = catalog.repositories() as u32;
        let first = u32::from(partition) % total;
        (u32::from(repository.0) + total - first) % total < u32::from(catalog.replicas)
    }

    /// Whether two partitions are held by the same repositories.
    #[inline]
    pub fn are_colocated(self, one: u16, other: u16, catalog: &Catalog) -> bool {
        let total = catalog.repositories();
        let is_everywhere = one == EVERYWHERE || other == EVERYWHERE;
        one == other
            || !is_everywhere && usize::from(one) % total == usize::from(other) % total
            || usize::from(catalog.replicas) == total
    }
}
