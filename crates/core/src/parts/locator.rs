//! Where things are, as a role knows it: keys, partitions, or whatever a protocol moves.
//!
//! What never moved is where the catalog puts it ([`Movable::first_holders`]). What moved has
//! [`Owners`]: who holds it since its latest move, whose number is their *epoch*. Whoever moves
//! things keeps an [`OwnerDirectory`]; who only asks keeps [`Hints`], which may be stale and are
//! bounded. Each request says by which epoch it was sent, and a repository that came to hold a
//! thing or gave it away knows since which epoch ([`Holdings`]): it refuses a request that was sent
//! by an earlier one, and says where to look. So a stale hint costs a round, and never a wrong
//! answer.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::ids::{RepositoryId, SpaceId, Timestamp};
use crate::wire_struct;

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
        catalog.replicas_of(*self).collect()
    }

    fn is_first_at(&self, repository: RepositoryId, catalog: &Catalog) -> bool {
        catalog.holds(repository, *self)
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

/// Nothing ever moves: all is where the catalog puts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Static;

impl<K: Movable> Locator<K> for Static {
    fn moved(&self, _: &K) -> Option<&Arc<Owners>> {
        None
    }
}

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

/// What a repository knows of a thing that it gave away or was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The thing's epoch since then.
    pub epoch: u64,
    /// Whether it is here.
    pub holds: bool,
    /// When it came or went.
    pub at: Timestamp,
}

wire_struct!(Holding { epoch: u64, holds: bool, at: Timestamp });

/// The things that came to a repository or went from it.
///
/// Invariant: an epoch here is at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdings<K: Movable> {
    held: BTreeMap<K, Holding>,
}

impl<K: Movable> Default for Holdings<K> {
    fn default() -> Holdings<K> {
        Holdings { held: BTreeMap::new() }
    }
}

impl<K: Movable> Holdings<K> {
    /// Whether `me` holds a thing.
    pub fn holds(&self, thing: &K, me: RepositoryId, catalog: &Catalog) -> bool {
        let held = self.held.get(thing);
        held.map_or_else(|| thing.is_first_at(me, catalog), |held| held.holds)
    }

    /// What is known of a thing that came or went.
    pub fn of(&self, thing: &K) -> Option<Holding> {
        self.held.get(thing).copied()
    }

    /// The epoch of a thing, as far as is known here.
    pub fn epoch(&self, thing: &K) -> u64 {
        self.held.get(thing).map_or(0, |held| held.epoch)
    }

    /// Whether a request for a thing, sent by this epoch of it, is to be refused by `me`: it is not
    /// here, or its sender does not know who holds it. Then, since when that is known.
    pub fn refuses(
        &self,
        (thing, epoch): (&K, u64),
        me: RepositoryId,
        catalog: &Catalog,
    ) -> Option<Timestamp> {
        let known = self.held.get(thing);
        let (since, at) = known.map_or((0, Timestamp::ZERO), |held| (held.epoch, held.at));
        (epoch < since || !self.holds(thing, me, catalog)).then_some(at)
    }

    /// A thing came or went.
    ///
    /// # Panics
    /// If that is not a later epoch of it than any before.
    pub fn note(&mut self, thing: K, held: Holding) {
        let known = self.epoch(&thing);
        assert!(held.epoch > known, "{thing:?} moves to epoch {} after {known}", held.epoch);
        self.held.insert(thing, held);
    }

    /// Everything, in order.
    pub fn all(&self) -> impl Iterator<Item = (&K, &Holding)> {
        self.held.iter()
    }

    /// Whether nothing ever came or went.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes over what another one knew.
    pub fn recall(&mut self, all: impl IntoIterator<Item = (K, Holding)>) {
        self.held.extend(all);
    }

    /// Panics where an invariant does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.held.values().all(|it| it.epoch > 0), "what came or went has moved");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{NodeId, RepositoryId as R};

    fn catalog(replicas: usize) -> Catalog {
        let homes: Vec<_> = (0..4).map(NodeId).collect();
        Catalog::new(&homes, replicas, &homes).unwrap()
    }

    #[test]
    fn moves_follow_one_another() {
        let (catalog, mut directory) = (catalog(2), OwnerDirectory::default());
        let after = |directory: &OwnerDirectory<u16>, epoch, from, to| {
            directory.after((&1, epoch), R(from), R(to), &catalog)
        };
        let first = after(&directory, 1, 1, 3).expect("it can be");
        assert_eq!(first.holders[..], [R(3), R(2)]);
        assert!(first.can_be(&catalog));
        directory.learn([(1, first)]);
        assert_eq!(after(&directory, 1, 1, 3), None, "it was done");
        assert_eq!(after(&directory, 2, 1, 3), None, "nothing is there");
        assert_eq!(after(&directory, 2, 2, 3), None, "it is there already");
        let second = after(&directory, 2, 2, 1).expect("it can be");
        assert_eq!(second.holders[..], [R(3), R(1)]);
        directory.learn([(1, second)]);
        directory.learn([(1, Owners { epoch: 1, holders: Repositories::new() })]);
        assert_eq!(directory.locate(&1, &catalog).epoch, 2, "what is old is not learnt");
        assert_eq!(directory.locate(&0, &catalog).epoch, 0);
        assert_eq!(Static.locate(&1, &catalog).holders[..], [R(1), R(2)]);
        directory.assert_invariants();
    }

    #[test]
    fn hints_are_bounded_and_the_longest_known_goes_first() {
        let (catalog, mut hints) = (catalog(1), Hints::new(2));
        let owners = |epoch| Owners { epoch, holders: [R(3)].into_iter().collect() };
        for thing in 0..3u16 {
            hints.learn(thing, owners(1));
            hints.assert_invariants();
        }
        hints.learn(2, owners(4));
        hints.learn(2, owners(3));
        hints.learn(1, owners(0));
        hints.assert_invariants();
        let epochs = [0, 1, 2].map(|thing| hints.locate(&thing, &catalog).epoch);
        assert_eq!(epochs, [0, 1, 4]);
    }

    #[test]
    fn who_was_asked_by_an_earlier_epoch_or_holds_nothing_refuses() {
        let (catalog, mut holdings) = (catalog(1), Holdings::default());
        let refuses = |holdings: &Holdings<u16>, thing, epoch| {
            holdings.refuses((&thing, epoch), R(1), &catalog)
        };
        assert_eq!(refuses(&holdings, 1, 0), None, "it is here from the beginning");
        assert_eq!(refuses(&holdings, 2, 0), Some(Timestamp::ZERO));
        holdings.note(1, Holding { epoch: 1, holds: false, at: Timestamp(5) });
        holdings.note(2, Holding { epoch: 3, holds: true, at: Timestamp(7) });
        assert_eq!(refuses(&holdings, 1, 1), Some(Timestamp(5)));
        assert_eq!((refuses(&holdings, 2, 3), refuses(&holdings, 2, 9)), (None, None));
        assert_eq!(refuses(&holdings, 2, 2), Some(Timestamp(7)), "its sender knows less");
        holdings.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "moves to epoch 1 after 1")]
    fn a_thing_does_not_move_twice_at_once() {
        let mut holdings = Holdings::default();
        let held = Holding { epoch: 1, holds: false, at: Timestamp(5) };
        holdings.note(1u16, held);
        holdings.note(1u16, held);
    }
}
