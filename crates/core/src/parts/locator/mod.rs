//! Where things are, as a role knows it: keys, partitions, or whatever a protocol moves.
//!
//! What never moved is where static placement puts it ([`Static`], which alone knows that). What
//! moved has [`Owners`]: who holds it since its latest move, whose number is their *epoch*. Whoever
//! moves things keeps an [`OwnerDirectory`]; who only asks keeps [`Hints`], which may be stale and
//! are bounded. Each request says by which epoch it was sent, and a repository that came to hold a
//! thing or gave it away knows since which epoch ([`Holdings`]): it refuses a request that was sent
//! by an earlier one, and says where to look. So a stale hint costs a round, and never a wrong
//! answer.

mod copies;
mod directory;
mod holdings;
mod static_placement;

use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::ids::{RepositoryId, SpaceId};
use crate::wire_struct;

pub use copies::{COPY_BYTES_LEAST, ValueCopies};
pub use directory::{Hints, OwnerDirectory};
pub use holdings::{Holding, Holdings};
pub use static_placement::Static;

/// A few repositories.
pub type Repositories = SmallVec<[RepositoryId; 8]>;

/// Something that can be at one repository or another.
pub trait Movable: Clone + Ord + Debug {
    /// Who holds it where it never moved, the first one first.
    fn first_holders(&self, catalog: &Catalog) -> Repositories;
    /// Whether a repository is among them.
    fn is_first_at(&self, repository: RepositoryId, catalog: &Catalog) -> bool;
}

/// A partition, by its number.
impl Movable for u16 {
    fn first_holders(&self, catalog: &Catalog) -> Repositories {
        Static.replicas_of(*self, catalog).collect()
    }

    fn is_first_at(&self, repository: RepositoryId, catalog: &Catalog) -> bool {
        Static.holds(repository, *self, catalog)
    }
}

/// A key.
impl Movable for (SpaceId, SmallBytes) {
    fn first_holders(&self, catalog: &Catalog) -> Repositories {
        catalog.partition(self.0, &self.1).first_holders(catalog)
    }

    fn is_first_at(&self, repository: RepositoryId, catalog: &Catalog) -> bool {
        catalog.partition(self.0, &self.1).is_first_at(repository, catalog)
    }
}

/// Who holds something that moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    /// How often it moved; 0: never.
    pub epoch: u64,
    /// Who holds it.
    pub holders: Repositories,
}

wire_struct!(Owners { epoch: u64, holders: Repositories });

impl Owners {
    /// Whether they can be: as many as hold a thing, all there, once each.
    pub fn can_be(&self, catalog: &Catalog) -> bool {
        let mut holders = self.holders.clone();
        holders.sort_unstable();
        holders.dedup();
        holders.len() == self.holders.len()
            && holders.len() == usize::from(catalog.replicas)
            && holders.iter().all(|it| usize::from(it.0) < catalog.repositories())
    }

    /// They, after one of them gave the thing to another repository; `None`: that cannot be.
    pub fn moved(&self, from: RepositoryId, to: RepositoryId) -> Option<Owners> {
        let epoch = self.epoch.checked_add(1)?;
        let mut holders = self.holders.clone();
        if holders.contains(&to) {
            return None;
        }
        let place = holders.iter().position(|it| *it == from)?;
        holders[place] = to;
        assert!(!holders.contains(&from), "{from:?} gives a thing and keeps it");
        Some(Owners { epoch, holders })
    }
}

/// Tells where things are.
pub trait Locator<K: Movable> {
    /// Who holds a thing that moved, as far as is known here; `None`: it never did.
    fn moved(&self, thing: &K) -> Option<&Arc<Owners>>;

    /// Who holds a thing, and since which epoch, as far as is known here.
    fn locate(&self, thing: &K, catalog: &Catalog) -> Owners {
        match self.moved(thing) {
            Some(owners) => (**owners).clone(),
            None => Owners { epoch: 0, holders: thing.first_holders(catalog) },
        }
    }
}

#[cfg(test)]
mod tests;
