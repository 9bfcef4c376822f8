//! The spaces of one repository: a store each, made at its first use.

use super::versions::Versions;
use crate::catalog::{Catalog, Index};
use crate::ids::SpaceId;

/// Stores by the numbers of their spaces.
#[derive(Clone, Debug)]
pub struct Spaces {
    stores: Vec<Option<Versions>>,
    hash_seed: u64,
}

impl Spaces {
    /// No stores yet; `hash_seed` is that of their hashes.
    pub fn new(hash_seed: u64) -> Spaces {
        Spaces { stores: Vec::new(), hash_seed }
    }

    /// The store of `space`, if anything was ever put there.
    #[inline]
    pub fn get(&self, space: SpaceId) -> Option<&Versions> {
        self.stores.get(usize::from(space.0))?.as_ref()
    }

    /// The store of `space`, made if there is none.
    #[inline]
    pub fn get_or_make(&mut self, space: SpaceId, catalog: &Catalog) -> &mut Versions {
        let at = usize::from(space.0);
        if !matches!(self.stores.get(at), Some(Some(_))) {
            self.make(space, catalog);
        }
        self.stores[at].as_mut().expect("made above")
    }

    #[cold]
    fn make(&mut self, space: SpaceId, catalog: &Catalog) {
        let at = usize::from(space.0);
        if self.stores.len() <= at {
            self.stores.resize_with(at + 1, || None);
        }
        let ordered = catalog.space(space).is_none_or(|s| s.options.index == Index::Ordered);
        self.stores[at] = Some(Versions::new(ordered, self.hash_seed));
    }

    /// How many numbers of spaces are in use, those without a store included.
    pub fn len(&self) -> usize {
        self.stores.len()
    }

    /// Whether there are no stores.
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// All stores, by the numbers of their spaces.
    pub fn iter(&self) -> impl Iterator<Item = (SpaceId, &Versions)> {
        let all = self.stores.iter().enumerate();
        all.filter_map(|(space, store)| Some((SpaceId(space as u16), store.as_ref()?)))
    }

    /// All stores, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Versions> {
        self.stores.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeId, SpaceOptions};

    #[test]
    fn stores_are_made_as_their_spaces_are_defined() {
        let hash = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        let catalog = catalog.with_space("a", SpaceOptions::default()).unwrap();
        let catalog = catalog.with_space("b", hash).unwrap();
        let mut spaces = Spaces::new(0);
        assert!(spaces.is_empty() && spaces.get(SpaceId(1)).is_none());
        assert!(!spaces.get_or_make(SpaceId(1), &catalog).is_ordered());
        assert!(spaces.get(SpaceId(0)).is_none() && spaces.get(SpaceId(1)).is_some());
        assert!(spaces.get_or_make(SpaceId(0), &catalog).is_ordered());
        let all: Vec<_> = spaces.iter().map(|(space, _)| space).collect();
        assert_eq!(
            (all, spaces.len(), spaces.all_mut().count()),
            (vec![SpaceId(0), SpaceId(1)], 2, 2,)
        );
    }
}
