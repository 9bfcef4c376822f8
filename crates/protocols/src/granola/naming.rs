//! Which repository holds which partition (section 7.1: naming).
//!
//! Where nobody moved a partition, the catalog says who holds it. Who holds those that were moved
//! is kept by the *name service*: the repositories that hold partition 0 in the catalog, whatever
//! has become of that partition since. Each partition has an epoch of its own, which counts its
//! moves. Coordinators keep what they have heard of it, and say in each part of a request by which
//! epoch they sent it; a repository that knows better refuses (see
//! [`moving`](super::participant::migration)).
//!
//! The thesis has one epoch for all names, kept by repositories and clients. A client that
//! refreshes a part of its map would then pass with what it did not refresh.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::{Catalog, RepositoryId};

use super::message::{Move, Owners, Part, Repositories, Request, Task};

/// Who holds the partitions that were moved, as far as is known here.
///
/// Invariants: each has moved at least once, and somebody holds it, once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    moved: BTreeMap<u16, Arc<Owners>>,
}

/// Those who keep names.
pub(super) fn name_service(catalog: &Catalog) -> impl Iterator<Item = RepositoryId> + use<> {
    catalog.replicas_of(0)
}

/// Those who hold a partition; with `owners` where it was moved.
pub(super) fn holders(
    partition: u16,
    owners: Option<&Arc<Owners>>,
    catalog: &Catalog,
) -> Repositories {
    match owners {
        Some(owners) => owners.holders.clone(),
        None => catalog.replicas_of(partition).collect(),
    }
}

impl Names {
    /// Who holds a partition; `None`: it was not moved.
    pub fn of(&self, partition: u16) -> Option<Arc<Owners>> {
        self.moved.get(&partition).cloned()
    }

    /// What others know; of each partition the later epoch counts.
    pub fn learn(&mut self, all: impl IntoIterator<Item = (u16, Owners)>) {
        for (partition, owners) in all {
            let known = self.moved.get(&partition).map_or(0, |known| known.epoch);
            if owners.epoch > known {
                self.moved.insert(partition, Arc::new(owners));
            }
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for (partition, owners) in &self.moved {
            assert!(owners.epoch > 0, "partition {partition} has moved, and never did");
            assert!(!owners.holders.is_empty(), "partition {partition} is nowhere");
            let mut holders = owners.holders.clone();
            holders.sort_unstable();
            let ascend = holders.windows(2).all(|pair| pair[0] < pair[1]);
            assert!(ascend, "partition {partition} is twice at one repository");
        }
    }

    /// Everything.
    pub fn all(&self) -> Vec<(u16, Owners)> {
        self.moved.iter().map(|(partition, owners)| (*partition, (**owners).clone())).collect()
    }

    /// Who holds a partition after a move; `None`: it cannot be.
    pub fn after(&self, order: &Move, catalog: &Catalog) -> Option<Owners> {
        let known = self.moved.get(&order.partition);
        let epoch = known.map_or(0, |known| known.epoch).checked_add(1)?;
        let mut holders = holders(order.partition, known, catalog);
        if epoch != order.epoch || holders.contains(&order.to) {
            return None;
        }
        let place = holders.iter().position(|it| *it == order.from)?;
        assert_ne!(order.from, order.to, "a partition moves to where it is");
        holders[place] = order.to;
        assert!(!holders.contains(&order.from), "{:?} gives a partition and keeps it", order.from);
        Some(Owners { epoch, holders })
    }
}

impl Part {
    /// Whether `repository` holds its partition, as its coordinator knows it.
    #[inline]
    pub(super) fn is_held_by(&self, repository: RepositoryId, catalog: &Catalog) -> bool {
        match &self.owners {
            Some(owners) => owners.holders.contains(&repository),
            None => catalog.holds(repository, self.partition),
        }
    }

    /// Those who hold its partition, as its coordinator knows it.
    pub(super) fn holders(&self, catalog: &Catalog) -> Repositories {
        holders(self.partition, self.owners.as_ref(), catalog)
    }

    /// By which epoch of its partition it was sent.
    pub(super) fn epoch(&self) -> u64 {
        self.owners.as_ref().map_or(0, |owners| owners.epoch)
    }

    /// Whether it is about keys of its partition.
    pub(super) fn is_about_keys(&self) -> bool {
        !matches!(self.task, Task::Take { .. } | Task::Move(_) | Task::Names)
    }
}

impl Request {
    /// The move that it is.
    pub(super) fn moving(&self) -> Option<&Move> {
        match &self.parts.first()?.task {
            Task::Move(order) => Some(order),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Fetched;
    use super::*;
    use muesli_core::{NodeId, RepositoryId as R};

    #[test]
    fn moves_follow_one_another() {
        let homes: Vec<_> = (0..4).map(NodeId).collect();
        let catalog = Catalog::new(&homes, 2, &homes).unwrap();
        let mut names = Names::default();
        let mut order =
            Move { partition: 1, from: R(1), to: R(3), epoch: 1, has: Fetched::default() };
        let after = names.after(&order, &catalog).expect("it can be");
        assert_eq!(after.holders[..], [R(3), R(2)]);
        names.learn([(1, after.clone())]);
        assert_eq!(names.after(&order, &catalog), None, "it was done");
        order.epoch = 2;
        assert_eq!(names.after(&order, &catalog), None, "nothing is there");
        (order.from, order.to) = (R(2), R(3));
        assert_eq!(names.after(&order, &catalog), None, "it is there already");
        order.to = R(1);
        let after = names.after(&order, &catalog).expect("it can be");
        assert_eq!(after.holders[..], [R(3), R(1)]);
        names.learn([(1, after)]);
        names.learn([(1, Owners { epoch: 1, holders: Repositories::new() })]);
        assert_eq!(names.of(1).map(|it| it.epoch), Some(2), "what is old is not learnt");
        assert_eq!(names.of(0), None);
    }
}
