//! What came to a repository, and what it gave away.

use std::collections::BTreeMap;

use super::Movable;
use crate::catalog::Catalog;
use crate::ids::{RepositoryId, Timestamp};
use crate::wire_struct;

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
