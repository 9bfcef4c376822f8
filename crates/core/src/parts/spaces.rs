//! The spaces of one repository: a store each, made at its first use.

use super::versions::{Chain, Versions};
use crate::bytes::SmallBytes;
use crate::catalog::{Catalog, Index};
use crate::checkpoint::{Cursor, Rest, pieces};
use crate::ids::{SpaceId, Timestamp};
use crate::memory::Held;
use crate::wire::{Reader, Wire, WireError};

/// A key with its newest version.
pub type Newest = (SpaceId, SmallBytes, Timestamp, Option<SmallBytes>);

/// At most so many slots are looked at for a piece of keys that are wanted.
const LOOKED_MAX: u32 = 1 << 14;
/// The stages of a cursor from here on are those of collected deletions, by space.
const COLLECTED: u32 = 1 << 16;
/// What a key costs beside its bytes and its value's, about.
pub(super) const KEY_BYTES: usize = 16;
/// So many collected deletions of a key stand together.
const COLLECTED_TOGETHER: usize = 1 << 10;

/// What pieces of a checkpoint begin with that hold versions of keys.
#[derive(Clone, Copy, Debug)]
pub struct ChainKinds {
    /// Keys with their versions, of the last perhaps the oldest ones only.
    pub chains: u8,
    /// More versions of the last key.
    pub rest: u8,
    /// Whether the versions of one key may be cut. Off, a piece grows with the data, to see that
    /// noticed.
    pub cuts: bool,
}

/// Stores by the numbers of their spaces.
///
/// Invariants: those of each [store](Versions), all of which have as many marks as `marks` says.
#[derive(Clone, Debug)]
pub struct Spaces {
    stores: Vec<Option<Versions>>,
    hash_seed: u64,
    /// Whether the versions of collected deletions are remembered, for histories.
    records_collected: bool,
    /// How many [marks](Spaces::mark) there are.
    marks: usize,
}

impl Spaces {
    /// No stores yet; `hash_seed` is that of their hashes.
    pub fn new(hash_seed: u64) -> Spaces {
        Spaces { stores: Vec::new(), hash_seed, records_collected: false, marks: 0 }
    }

    /// The same stores, which remember the versions of collected deletions if `records` says so.
    /// There must be none yet.
    #[must_use]
    pub fn recording_collected(self, records: bool) -> Spaces {
        assert!(self.stores.is_empty(), "what was collected before is not known");
        Spaces { records_collected: records, ..self }
    }

    /// The store of `space`, if anything was ever put there.
    #[inline]
    pub fn get(&self, space: SpaceId) -> Option<&Versions> {
        self.stores.get(usize::from(space.0))?.as_ref()
    }

    /// The store of `space`, made if there is none.
    #[inline(always)]
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
        let mut store = Versions::new(ordered, self.hash_seed);
        if self.records_collected {
            store.record_collected();
        }
        (0..self.marks).for_each(|_| store.mark());
        self.stores[at] = Some(store);
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

    /// Appends the next piece of a checkpoint: chains of a space from where the cursor stands, of
    /// about `bytes` bytes, or longer by one version of a key; false: there are none left. A chain
    /// that is longer goes in several pieces, all of it as it was when its turn came. Stages of the
    /// cursor are numbers of spaces.
    pub fn next_chains(
        &self,
        kinds: ChainKinds,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if let Some(mut rest) = cursor.rest.take() {
            let end = out.len() + bytes;
            out.push(kinds.rest);
            rest.space.encode(out);
            rest.key.encode(out);
            encode_some(&mut rest, end, out);
            cursor.rest = Some(rest).filter(|rest| !rest.versions.is_empty());
            return true;
        }
        while (cursor.stage as usize) < self.stores.len() {
            if self.chains_of_space(kinds, cursor, bytes, out) {
                cursor.percent = self.percent(cursor);
                return true;
            }
            (cursor.stage, cursor.place) = (cursor.stage + 1, 0);
        }
        cursor.stage = cursor.stage.max(COLLECTED);
        while ((cursor.stage - COLLECTED) as usize) < self.stores.len() {
            let space = SpaceId((cursor.stage - COLLECTED) as u16);
            cursor.stage += 1;
            cursor.first.extend(self.collected_of_space(kinds.chains, space, bytes));
        }
        let next = cursor.first.pop_front();
        next.map(|mut piece| out.append(&mut piece)).is_some()
    }

    /// How much a cursor has gone over, of 100.
    fn percent(&self, cursor: &Cursor) -> u8 {
        let slots = |store: &Option<Versions>| store.as_ref().map_or(0, |it| u64::from(it.slots()));
        let before = self.stores[..cursor.stage as usize].iter().map(slots).sum::<u64>();
        let all = self.stores.iter().map(slots).sum::<u64>();
        (100 * (before + cursor.place).min(all)).checked_div(all).unwrap_or(100) as u8
    }

    /// The collected deletions of a space that are remembered, as chains that begin with version
    /// zero, as no others do. They come last: what is collected before the key's turn among the
    /// chains is here.
    fn collected_of_space(
        &self,
        kind: u8,
        space: SpaceId,
        bytes: usize,
    ) -> impl Iterator<Item = Vec<u8>> {
        let all = self.get(space).into_iter().flat_map(Versions::all_collected);
        let chains = all.flat_map(|(key, versions)| {
            versions.chunks(COLLECTED_TOGETHER).map(|some| {
                let all = std::iter::once(Timestamp::ZERO).chain(some.iter().copied());
                (key.clone(), all.map(|at| (at, None)).collect::<Chain>())
            })
        });
        let mut head = vec![kind];
        space.encode(&mut head);
        pieces(head, chains, bytes)
    }

    fn chains_of_space(
        &self,
        kinds: ChainKinds,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(store) = &self.stores[cursor.stage as usize] else { return false };
        let (start, space) = (out.len(), SpaceId(cursor.stage as u16));
        let mut count = 0_u32;
        while cursor.place < u64::from(store.slots())
            && cursor.rest.is_none()
            && out.len() - start < bytes
        {
            if let Some((key, chain)) = store.chain_in(cursor.place as u32) {
                if count == 0 {
                    out.push(kinds.chains);
                    space.encode(out);
                    count.encode(out);
                }
                key.encode(out);
                let mut rest = Rest { space, key: key.clone(), versions: chain.into() };
                encode_some(&mut rest, if kinds.cuts { start + bytes } else { usize::MAX }, out);
                cursor.rest = Some(rest).filter(|rest| !rest.versions.is_empty());
                count += 1;
            }
            cursor.place += 1;
        }
        if count > 0 {
            out[start + 3..start + 7].copy_from_slice(&count.to_le_bytes());
        }
        count > 0
    }

    /// The next keys with their newest versions, of those that are `wanted`, from where the cursor
    /// stands: about `bytes` bytes of them, and perhaps none where many are not; `None`: that was
    /// all. Stages of the cursor are numbers of spaces.
    pub fn next_newest(
        &self,
        cursor: &mut Cursor,
        bytes: usize,
        wanted: impl Fn(SpaceId, &SmallBytes) -> bool,
    ) -> Option<Vec<Newest>> {
        let (mut found, mut size, mut looked) = (Vec::new(), 0, 0);
        while (cursor.stage as usize) < self.stores.len() {
            let space = SpaceId(cursor.stage as u16);
            let store = self.stores[cursor.stage as usize].as_ref();
            let slots = store.map_or(0, |store| u64::from(store.slots()));
            while cursor.place < slots {
                if size >= bytes || looked == LOOKED_MAX {
                    return Some(found);
                }
                let slot = cursor.place as u32;
                (cursor.place, looked) = (cursor.place + 1, looked + 1);
                let newest = store.and_then(|store| store.newest_in(slot));
                if let Some((key, version)) = newest.filter(|(key, _)| wanted(space, key)) {
                    size += key.len() + version.value.map_or(0, SmallBytes::len) + KEY_BYTES;
                    found.push((space, key.clone(), version.at, version.value.cloned()));
                }
            }
            (cursor.stage, cursor.place) = (cursor.stage + 1, 0);
        }
        if cursor.stage < COLLECTED {
            cursor.stage = COLLECTED;
            found.extend(self.newest_collected(wanted));
        }
        (!found.is_empty()).then_some(found)
    }

    /// For histories: the newest collected deletions of keys that are `wanted`.
    fn newest_collected(
        &self,
        wanted: impl Fn(SpaceId, &SmallBytes) -> bool,
    ) -> impl Iterator<Item = Newest> {
        let all = self.iter().flat_map(|(space, store)| {
            store.all_collected().map(move |(key, versions)| (space, key, versions))
        });
        all.filter_map(move |(space, key, versions)| {
            let newest = versions.last().filter(|_| wanted(space, key))?;
            Some((space, key.clone(), *newest, None))
        })
    }

    /// Removes keys that `go`, of the next so many slots from where the cursor stands; false: all
    /// have been looked at. Stages of the cursor are numbers of spaces.
    pub fn remove_some(
        &mut self,
        cursor: &mut Cursor,
        slots: u64,
        go: impl Fn(SpaceId, &SmallBytes) -> bool,
    ) -> bool {
        let mut left = slots;
        while (cursor.stage as usize) < self.stores.len() {
            let space = SpaceId(cursor.stage as u16);
            if let Some(store) = &mut self.stores[cursor.stage as usize] {
                let end = u64::from(store.slots());
                while cursor.place < end {
                    if left == 0 {
                        return true;
                    }
                    store.remove_in(cursor.place as u32, |key| go(space, key));
                    (cursor.place, left) = (cursor.place + 1, left - 1);
                }
            }
            (cursor.stage, cursor.place) = (cursor.stage + 1, 0);
        }
        false
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
        let space = known_space(input, catalog)?;
        let chains: Vec<(SmallBytes, Chain)> = Wire::decode(input)?;
        let store = self.get_or_make(space, catalog);
        for (key, chain) in chains {
            match chain.split_first() {
                Some(((Timestamp::ZERO, _), collected)) => {
                    collected.iter().for_each(|(at, _)| store.add_collected(&key, *at));
                }
                _ => store.add_chain(&key, chain),
            }
        }
        Ok(())
    }

    /// The same, of a piece with more versions of a key.
    ///
    /// # Errors
    /// The same; or the key has no versions.
    pub fn restore_rest(
        &mut self,
        input: &mut Reader<'_>,
        catalog: &Catalog,
    ) -> Result<(), WireError> {
        let space = known_space(input, catalog)?;
        let at = input.position();
        let (key, rest): (SmallBytes, Chain) = Wire::decode(input)?;
        let what = "key whose first versions came before";
        let added = self.get_or_make(space, catalog).add_rest(&key, rest);
        if added { Ok(()) } else { Err(WireError::Variant { what, at, found: 0 }) }
    }

    /// Notes from now on what is replaced, so that it can be [taken back](Self::go_back), and cuts
    /// these notes here.
    pub fn mark(&mut self) {
        self.marks += 1;
        self.all_mut().for_each(Versions::mark);
    }

    /// Nobody goes back to the oldest mark: only to the next one.
    pub fn forget_mark(&mut self) {
        self.marks = self.marks.saturating_sub(1);
        self.all_mut().for_each(Versions::forget_mark);
    }

    /// All stores as they were at the oldest mark, with no key locked; none are left here. `None`:
    /// that is not known.
    pub fn go_back(&mut self) -> Option<Spaces> {
        let empty = Spaces { stores: Vec::new(), marks: 0, ..*self };
        let mut all = std::mem::replace(self, empty);
        let is_known = std::mem::take(&mut all.marks) > 0;
        let is_known = is_known && all.all_mut().all(Versions::go_back);
        is_known.then_some(all)
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for (space, store) in self.iter() {
            store.assert_invariants();
            assert_eq!(store.marks(), self.marks, "how many marks {space:?} has");
        }
    }

    /// What all of them take.
    pub fn held(&self) -> Held {
        let each = self.stores.iter().flatten().map(Versions::held);
        each.fold(Held::default(), |sum, one| Held {
            all: sum.all + one.all,
            old: sum.old + one.old,
        })
    }

    /// All stores, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Versions> {
        self.stores.iter_mut().flatten()
    }
}

/// Appends versions until `out` is as long as `end`, one at least, and takes them out of the rest.
fn encode_some(rest: &mut Rest, end: usize, out: &mut Vec<u8>) {
    let (start, mut count) = (out.len(), 0_u32);
    count.encode(out);
    while (count == 0 || out.len() < end)
        && let Some(version) = rest.versions.pop_front()
    {
        version.encode(out);
        count += 1;
    }
    out[start..start + 4].copy_from_slice(&count.to_le_bytes());
}

fn known_space(input: &mut Reader<'_>, catalog: &Catalog) -> Result<SpaceId, WireError> {
    let at = input.position();
    let space = SpaceId::decode(input)?;
    match catalog.space(space) {
        Some(_) => Ok(space),
        None => Err(WireError::Variant { what: "space", at, found: space.0.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::versions::Handle;
    use super::*;
    use crate::{NodeId, SpaceOptions};

    #[test]
    fn wanted_keys_come_piece_by_piece_and_others_can_be_removed() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        let mut spaces = Spaces::new(0);
        for number in 0..100_u8 {
            let store = spaces.get_or_make(SpaceId(u16::from(number % 2) * 2), &catalog);
            let handle = store.find_or_create(Handle::NONE, &SmallBytes::new(&[number]));
            store.install(handle, Some("value".into()), Timestamp(u64::from(number) + 1));
        }
        let third = |_: SpaceId, key: &SmallBytes| key.as_slice()[0].is_multiple_of(3);
        let (mut cursor, mut pieces, mut all) = (Cursor::default(), 0, Vec::new());
        while let Some(piece) = spaces.next_newest(&mut cursor, 60, third) {
            pieces += 1;
            all.extend(piece.into_iter().map(|(_, key, at, _)| (key.as_slice()[0], at.0)));
        }
        all.sort_unstable();
        let wanted = (0..100).step_by(3).map(|number| (number, u64::from(number) + 1));
        assert_eq!(all, wanted.collect::<Vec<_>>());
        assert!(pieces > 10, "{pieces}");
        let (mut cursor, mut steps) = (Cursor::default(), 1);
        while spaces.remove_some(&mut cursor, 30, third) {
            steps += 1;
        }
        assert_eq!(steps, 4);
        assert_eq!(spaces.iter().map(|(_, store)| store.len()).sum::<usize>(), 66);
    }

    const KINDS: ChainKinds = ChainKinds { chains: 3, rest: 6, cuts: true };

    /// Two keys, one of them with so many versions of a kilobyte.
    fn long_chain(catalog: &Catalog, versions: u64) -> Spaces {
        let mut spaces = Spaces::new(0);
        let store = spaces.get_or_make(SpaceId(0), catalog);
        for at in 1..=versions {
            let handle = store.find_or_create(Handle::NONE, &"long".into());
            store.install(handle, Some(vec![at as u8; 1_000].into()), Timestamp(at));
        }
        let handle = store.find_or_create(Handle::NONE, &"other".into());
        store.install(handle, Some("x".into()), Timestamp(versions + 1));
        spaces
    }

    #[test]
    fn a_long_chain_goes_in_several_pieces_all_of_one_moment() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let mut spaces = long_chain(&catalog, 100);
        let before: Vec<_> = spaces.get(SpaceId(0)).unwrap().chain_in(0).into_iter().collect();
        let before = format!("{before:?}");
        let (mut restored, mut cursor, mut count) = (Spaces::new(0), Cursor::default(), 0);
        loop {
            let mut piece = Vec::new();
            if !spaces.next_chains(KINDS, &mut cursor, 5_000, &mut piece) {
                break;
            }
            assert!(piece.len() < 5_000 + 1_100, "{}", piece.len());
            let mut input = Reader::new(&piece[1..]);
            match piece[0] {
                3 => restored.restore_chains(&mut input, &catalog).unwrap(),
                _ => restored.restore_rest(&mut input, &catalog).unwrap(),
            }
            count += 1;
            // The key goes, all of its versions with it, in the middle of that.
            let store = spaces.get_or_make(SpaceId(0), &catalog);
            store.remove_in(0, |key| count == 3 && *key == "long".into());
        }
        assert!(count > 20, "{count}");
        let after: Vec<_> = restored.get(SpaceId(0)).unwrap().chain_in(0).into_iter().collect();
        assert_eq!(format!("{after:?}"), before);
        assert_eq!(restored.get(SpaceId(0)).unwrap().len(), 2);
    }

    #[test]
    fn the_rest_of_a_chain_that_did_not_begin_is_refused() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let spaces = long_chain(&catalog, 2);
        let (mut cursor, mut first, mut rest) = (Cursor::default(), Vec::new(), Vec::new());
        assert!(spaces.next_chains(KINDS, &mut cursor, 1, &mut first));
        assert!(spaces.next_chains(KINDS, &mut cursor, 1, &mut rest));
        assert_eq!((first[0], rest[0]), (KINDS.chains, KINDS.rest));
        let refused = Spaces::new(0).restore_rest(&mut Reader::new(&rest[1..]), &catalog);
        assert!(matches!(refused, Err(WireError::Variant { .. })), "{refused:?}");
    }

    #[test]
    fn collected_deletions_go_in_several_pieces() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let empty = || Spaces::new(0).recording_collected(true);
        let (mut spaces, mut restored) = (empty(), empty());
        let store = spaces.get_or_make(SpaceId(0), &catalog);
        for at in 1..=5_000 {
            store.add_collected(&SmallBytes::new(&[((at - 1) / 2_500) as u8]), Timestamp(at));
        }
        let (mut cursor, mut count) = (Cursor::default(), 0);
        loop {
            let mut piece = Vec::new();
            if !spaces.next_chains(KINDS, &mut cursor, 100, &mut piece) {
                break;
            }
            assert!(piece.len() < 16 << 10, "{}", piece.len());
            restored.restore_chains(&mut Reader::new(&piece[1..]), &catalog).unwrap();
            count += 1;
        }
        assert_eq!(count, 6);
        let all = |spaces: &Spaces| {
            let store = spaces.get(SpaceId(0)).unwrap();
            store.all_collected().map(|(key, all)| (key.clone(), all.to_vec())).collect::<Vec<_>>()
        };
        assert_eq!(all(&restored), all(&spaces));
    }

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
