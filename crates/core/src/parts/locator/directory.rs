//! Who holds what moved: all of it, or what was last heard of some of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Locator, Movable, Owners, Repositories};
use crate::catalog::Catalog;
use crate::ids::RepositoryId;

/// Who holds what moved, all of it.
///
/// Invariant: an epoch here is at least 1, and that of a thing only grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerDirectory<K: Movable> {
    moved: BTreeMap<K, Arc<Owners>>,
}

impl<K: Movable> Default for OwnerDirectory<K> {
    fn default() -> OwnerDirectory<K> {
        OwnerDirectory { moved: BTreeMap::new() }
    }
}

impl<K: Movable> Locator<K> for OwnerDirectory<K> {
    fn moved(&self, thing: &K) -> Option<&Arc<Owners>> {
        self.moved.get(thing)
    }
}

impl<K: Movable> OwnerDirectory<K> {
    /// What others know; of each thing the later epoch counts.
    pub fn learn(&mut self, all: impl IntoIterator<Item = (K, Owners)>) {
        for (thing, owners) in all {
            let known = self.moved.get(&thing).map_or(0, |known| known.epoch);
            if owners.epoch > known {
                self.moved.insert(thing, Arc::new(owners));
            }
        }
    }

    /// Everything, in order.
    pub fn all(&self) -> Vec<(K, Owners)> {
        self.moved.iter().map(|(thing, owners)| (thing.clone(), (**owners).clone())).collect()
    }

    /// Who holds a thing after its move number `epoch`; `None`: it cannot be that, or is done.
    pub fn after(
        &self,
        (thing, epoch): (&K, u64),
        from: RepositoryId,
        to: RepositoryId,
        catalog: &Catalog,
    ) -> Option<Owners> {
        self.locate(thing, catalog).moved(from, to).filter(|after| after.epoch == epoch)
    }

    /// Panics where an invariant does not hold.
    pub fn assert_invariants(&self) {
        for (thing, owners) in &self.moved {
            assert!(owners.epoch > 0, "{thing:?} has moved, and never did");
            assert!(!owners.holders.is_empty(), "{thing:?} is nowhere");
            let mut holders = owners.holders.clone();
            holders.sort_unstable();
            let ascend = holders.windows(2).all(|pair| pair[0] < pair[1]);
            assert!(ascend, "{thing:?} is twice at one repository");
        }
    }
}

/// Who held what moved when last heard of: as much as there is room for.
///
/// Invariant: the order lists each thing that is kept, once, and there are no more than allowed.
#[derive(Clone, Debug)]
pub struct Hints<K: Movable> {
    directory: OwnerDirectory<K>,
    /// The longest known first.
    order: VecDeque<K>,
    most: usize,
}

impl<K: Movable> Hints<K> {
    /// No hints, and room for at most so many.
    ///
    /// # Panics
    /// If there is room for none.
    pub fn new(most: usize) -> Hints<K> {
        assert!(most > 0, "room for one hint at least");
        Hints { directory: OwnerDirectory::default(), order: VecDeque::new(), most }
    }

    /// Takes a hint; the thing longest known is forgotten where there is no room.
    pub fn learn(&mut self, thing: K, owners: Owners) {
        if owners.epoch == 0 {
            return;
        }
        if self.directory.moved(&thing).is_none() {
            if self.order.len() == self.most {
                let oldest = self.order.pop_front().expect("there is room for one");
                self.directory.moved.remove(&oldest);
            }
            self.order.push_back(thing.clone());
        }
        self.directory.learn([(thing, owners)]);
    }

    /// What is known of a thing may be wrong: it is looked for at these from now on, and whatever
    /// is learnt next counts, even what was known before. Of what nothing is known nothing is
    /// taken.
    pub fn correct(&mut self, thing: &K, holders: Repositories) {
        if let Some(known) = self.directory.moved.get_mut(thing) {
            *known = Arc::new(Owners { epoch: 1, holders });
        }
    }

    /// Everything, the longest known first.
    pub fn all(&self) -> impl Iterator<Item = (&K, &Owners)> {
        self.order.iter().map(|thing| (thing, &*self.directory.moved[thing]))
    }

    /// Panics where an invariant does not hold.
    pub fn assert_invariants(&self) {
        self.directory.assert_invariants();
        assert!(self.order.len() <= self.most, "{} hints of {}", self.order.len(), self.most);
        assert_eq!(self.order.len(), self.directory.moved.len(), "the order lists what is kept");
    }
}

impl<K: Movable> Locator<K> for Hints<K> {
    fn moved(&self, thing: &K) -> Option<&Arc<Owners>> {
        self.directory.moved(thing)
    }
}
