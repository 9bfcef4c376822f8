//! Snapshots of an ordered map, each given piece by piece, without a copy of the whole.
//!
//! A snapshot is the map as it is, and beside it the entries that have changed since its moment, as
//! they were (copy on write). To keep one costs nothing but its name. Then each change of an entry
//! that no piece has had yet costs a copy of that entry, once a snapshot; each piece costs a walk
//! over as many entries as it has, or passes over; and the memory that a snapshot takes is what has
//! changed ahead of its pieces, and the last pieces, as they may be asked for again.

use std::collections::BTreeMap;
use std::ops::Bound;

use muesli_core::wire::{Wire, WireError, encoded_bytes};

use super::message::SnapshotPiece;
use super::take::PIECES_AHEAD;

/// A piece has so many bytes, or one entry more.
const PIECE_BYTES: usize = 32 * 1024;

/// So many entries are looked at for a piece.
const LOOKED_AT_MOST: usize = 4_096;

/// Snapshots of an ordered map that are given to other members.
///
/// Whoever has the map [keeps](Self::keep) a snapshot, says of each entry that it
/// [changes](Self::before_change), and reads [pieces](Self::piece), as
/// [`EpochEffect`](super::EpochEffect) wants it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeptSnapshots<K: Ord, V> {
    piece_bytes: usize,
    open: BTreeMap<u64, KeptSnapshot<K, V>>,
}

/// A snapshot.
///
/// Invariants: what has changed is beyond what was read; pieces up to `next` were read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KeptSnapshot<K: Ord, V> {
    /// The next piece begins after this entry.
    read: Option<K>,
    is_read: bool,
    next: u32,
    /// Those that may be asked for again.
    pieces: BTreeMap<u32, SnapshotPiece>,
    /// Entries that have changed, as they were; `None`: they were not there.
    changed: BTreeMap<K, Option<V>>,
}

impl<K: Ord, V> Default for KeptSnapshots<K, V> {
    fn default() -> KeptSnapshots<K, V> {
        KeptSnapshots { piece_bytes: PIECE_BYTES, open: BTreeMap::new() }
    }
}

impl<K: Ord + Clone + Wire, V: Clone + Wire> KeptSnapshots<K, V> {
    /// None.
    pub fn new() -> KeptSnapshots<K, V> {
        KeptSnapshots::default()
    }

    /// None, whose pieces will have so many bytes, or one entry more; by default 32 KiB.
    pub fn with_pieces_of(piece_bytes: usize) -> KeptSnapshots<K, V> {
        KeptSnapshots { piece_bytes, ..KeptSnapshots::default() }
    }

    /// Keeps the map of this moment as a snapshot of this number.
    pub fn keep(&mut self, snapshot: u64) {
        let (pieces, changed) = (BTreeMap::new(), BTreeMap::new());
        let kept = KeptSnapshot { read: None, is_read: false, next: 0, pieces, changed };
        self.open.insert(snapshot, kept);
    }

    /// A snapshot is given no more.
    pub fn free(&mut self, snapshot: u64) {
        self.open.remove(&snapshot);
    }

    /// Whether none is kept: nobody need hear of changes.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// An entry is about to change, which is this now; `None`: it is not there.
    pub fn before_change(&mut self, key: &K, value: Option<&V>) {
        for kept in self.open.values_mut() {
            let is_ahead = !kept.is_read && kept.read.as_ref().is_none_or(|read| key > read);
            if is_ahead && !kept.changed.contains_key(key) {
                kept.changed.insert(key.clone(), value.cloned());
            }
        }
    }

    /// A piece of a snapshot, if it is kept and has so many; `entries` are those of the map from a
    /// bound on. Pieces are read one after the other, and the last 16 of them again.
    pub fn piece<'a, I>(
        &mut self,
        (snapshot, number): (u64, u32),
        entries: impl FnOnce(Bound<&K>) -> I,
    ) -> Option<SnapshotPiece>
    where
        I: Iterator<Item = (K, &'a V)>,
        V: 'a,
    {
        let kept = self.open.get_mut(&snapshot)?;
        if number == kept.next && !kept.is_read {
            let from = kept.read.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let piece = kept.read_on(entries(from), self.piece_bytes);
            // Who asks for a piece has all that come so far before it.
            let first = number.saturating_sub(PIECES_AHEAD);
            kept.pieces = kept.pieces.split_off(&first);
            kept.pieces.insert(number, piece);
        }
        kept.pieces.get(&number).cloned()
    }

    /// The entries in the bytes of a piece.
    ///
    /// # Errors
    /// It is no piece of such a map.
    pub fn entries(bytes: &[u8]) -> Result<Vec<(K, V)>, WireError> {
        Vec::decode_all(bytes)
    }
}

impl<K: Ord + Clone + Wire, V: Clone + Wire> KeptSnapshot<K, V> {
    /// The next piece: what is there and has not changed, and what has, as it was.
    fn read_on<'a>(
        &mut self,
        entries: impl Iterator<Item = (K, &'a V)>,
        piece_bytes: usize,
    ) -> SnapshotPiece
    where
        V: 'a,
    {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        let mut entries = entries.peekable();
        for _ in 0..LOOKED_AT_MOST {
            if bytes > piece_bytes {
                break;
            }
            let here = entries.peek().map(|(key, _)| key);
            let changed = self.changed.first_key_value().map(|(key, _)| key);
            let is_changed = changed.is_some_and(|changed| here.is_none_or(|here| changed <= here));
            let (key, value) = if is_changed {
                let (key, value) = self.changed.pop_first().expect("looked at above");
                entries.next_if(|(here, _)| *here == key);
                (key, value)
            } else if let Some((key, value)) = entries.next() {
                (key, Some(value.clone()))
            } else {
                self.is_read = true;
                break;
            };
            if let Some(value) = value {
                let entry = (key.clone(), value);
                bytes += encoded_bytes(&entry);
                piece.push(entry);
            }
            self.read = Some(key);
        }
        self.next += 1;
        let mut bytes = Vec::new();
        piece.encode(&mut bytes);
        SnapshotPiece { bytes: bytes.into(), is_last: self.is_read }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Map = BTreeMap<u64, Vec<u8>>;
    type Kept = KeptSnapshots<u64, Vec<u8>>;

    fn read(kept: &mut Kept, at: (u64, u32), map: &Map) -> Option<SnapshotPiece> {
        let entries = |from: Bound<&u64>| {
            map.range((from.cloned(), Bound::Unbounded)).map(|(key, value)| (*key, value))
        };
        kept.piece(at, entries)
    }

    fn change(kept: &mut Kept, map: &mut Map, key: u64, value: Option<Vec<u8>>) {
        kept.before_change(&key, map.get(&key));
        match value {
            Some(value) => _ = map.insert(key, value),
            None => _ = map.remove(&key),
        }
    }

    proptest! {
        /// Whatever changes between its pieces, a snapshot is the map of its moment.
        #[test]
        fn a_snapshot_is_of_its_moment(
            first in prop::collection::vec((0..400_u64, 0..9_000_usize), 0..60),
            changes in prop::collection::vec(
                (0..400_u64, prop::option::of(0..9_000_usize)),
                0..200,
            ),
            every in 1..20_usize,
        ) {
            let mut map: Map = first.into_iter().map(|(key, len)| (key, vec![1; len])).collect();
            let mut kept = Kept::new();
            kept.keep(7);
            let moment = map.clone();
            let (mut found, mut pieces) = (Map::new(), Vec::new());
            let mut changes = changes.into_iter();
            loop {
                let number = pieces.len() as u32;
                let piece = read(&mut kept, (7, number), &map).expect("it is kept");
                prop_assert!(piece.bytes.as_slice().len() < PIECE_BYTES + 9_100);
                found.extend(Kept::entries(piece.bytes.as_slice()).unwrap());
                pieces.push(piece.clone());
                for (key, len) in changes.by_ref().take(every) {
                    change(&mut kept, &mut map, key, len.map(|len| vec![2; len]));
                }
                let again = pieces.len().saturating_sub(PIECES_AHEAD as usize);
                for (number, piece) in pieces.iter().enumerate().skip(again) {
                    let at = (7, number as u32);
                    prop_assert_eq!(read(&mut kept, at, &map), Some(piece.clone()));
                }
                if piece.is_last {
                    break;
                }
            }
            prop_assert_eq!(found, moment);
            prop_assert_eq!(read(&mut kept, (7, pieces.len() as u32), &map), None);
            kept.free(7);
            prop_assert!(kept.is_empty());
        }
    }

    /// To keep a snapshot copies nothing, and a change one entry, once.
    #[test]
    fn what_does_not_change_is_not_copied() {
        let mut map: Map = (0..10_000).map(|key| (key, vec![1; 100])).collect();
        let mut kept = Kept::new();
        kept.keep(1);
        let mut pieces = 0;
        while !read(&mut kept, (1, pieces), &map).expect("it is kept").is_last {
            for key in [10_000 - u64::from(pieces), 5] {
                change(&mut kept, &mut map, key, Some(vec![2; 100]));
            }
            pieces += 1;
            let snapshot = &kept.open[&1];
            assert!(snapshot.changed.len() <= pieces as usize, "only what has changed ahead");
            assert!(snapshot.pieces.len() <= PIECES_AHEAD as usize + 1, "the last pieces");
        }
        assert!(pieces > 30, "{pieces}");
        // Entries that came since are passed over, so many at a time.
        kept.keep(2);
        for key in 20_000..30_000 {
            change(&mut kept, &mut map, key, Some(vec![2; 100]));
        }
        let mut sizes = Vec::new();
        loop {
            let piece = read(&mut kept, (2, sizes.len() as u32), &map).expect("it is kept");
            sizes.push(Kept::entries(piece.bytes.as_slice()).unwrap().len());
            if piece.is_last {
                break;
            }
        }
        assert!(sizes[sizes.len() - 2..].iter().all(|size| *size == 0), "{sizes:?}");
    }
}
