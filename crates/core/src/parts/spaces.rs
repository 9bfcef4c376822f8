//! The spaces of one repository: a store each, made at its first use.

use super::versions::{Chain, Versions};
use crate::bytes::SmallBytes;
use crate::catalog::{Catalog, Index};
use crate::checkpoint::Cursor;
use crate::ids::SpaceId;
use crate::wire::{Reader, Wire, WireError};

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

    /// Appends the next piece of a checkpoint, of kind `kind`: the newest chains of a space from
    /// where the cursor stands, of about `bytes` bytes; false: there are none left. Stages of the
    /// cursor are numbers of spaces.
    pub fn next_chains(
        &self,
        kind: u8,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        while (cursor.stage as usize) < self.stores.len() {
            if self.chains_of_space(kind, cursor, bytes, out) {
                return true;
            }
            (cursor.stage, cursor.place) = (cursor.stage + 1, 0);
        }
        false
    }

    fn chains_of_space(
        &self,
        kind: u8,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(store) = &self.stores[cursor.stage as usize] else { return false };
        let start = out.len();
        let mut count = 0_u32;
        while cursor.place < u64::from(store.slots()) && out.len() - start < bytes {
            if let Some((key, chain)) = store.chain_in(cursor.place as u32) {
                if count == 0 {
                    out.push(kind);
                    SpaceId(cursor.stage as u16).encode(out);
                    count.encode(out);
                }
                key.encode(out);
                chain.encode(out);
                count += 1;
            }
            cursor.place += 1;
        }
        if count > 0 {
            out[start + 3..start + 7].copy_from_slice(&count.to_le_bytes());
        }
        count > 0
    }

    /// Takes what [`next_chains`](Self::next_chains) has appended, after its kind.
    ///
    /// # Errors
    /// The bytes are none of that, or of a space that there is not. Any may be given.
    pub fn restore_chains(
        &mut self,
        input: &mut Reader<'_>,
        catalog: &Catalog,
    ) -> Result<(), WireError> {
        let at = input.position();
        let space = SpaceId::decode(input)?;
        if catalog.space(space).is_none() {
            return Err(WireError::Variant { what: "space", at, found: space.0.into() });
        }
        let chains: Vec<(SmallBytes, Chain)> = Wire::decode(input)?;
        let store = self.get_or_make(space, catalog);
        for (key, chain) in chains {
            store.add_chain(&key, chain);
        }
        Ok(())
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
