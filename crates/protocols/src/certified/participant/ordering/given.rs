//! The state that a site gives to one that has none, a piece after the other.
//!
//! It is that of one moment, though the site goes on: of each key the version that a reader of that
//! moment would see, which is kept for it as for any reader. So a snapshot costs no copy of the
//! keys; what is remembered of objects, a bounded number, is copied as it begins.

use std::collections::{BTreeMap, VecDeque};

use muesli_broadcast::epochs::{PIECES_AHEAD, SnapshotPiece};
use muesli_core::checkpoint::{HEAD_PIECE_BYTES, piece};
use muesli_core::parts::versions::Chain;
use muesli_core::{Cursor, SmallBytes, SpaceId, Timestamp};

use crate::certified::participant::CertifiedSite;
use crate::certified::participant::checkpoint::{CHAIN_KINDS, kind};

/// So many slots of keys are looked at for a piece.
const LOOKED_AT_MOST: usize = 4_096;
/// So much is said of a key beside itself and its value: lengths, and the version.
const BESIDE_BYTES: usize = 24;
/// The stage of a cursor from which on nothing comes but collected deletions.
const BEHIND_KEYS: u32 = u16::MAX as u32 + 1;

/// A snapshot that another site takes.
///
/// Invariants: the pieces are the last ones before `next`.
#[derive(Clone, Debug)]
pub(in crate::certified::participant) struct GivenState {
    /// What a reader of this clock sees.
    clock: u64,
    /// Pieces that are not of keys.
    head: VecDeque<Vec<u8>>,
    /// Where the keys go on.
    cursor: Cursor,
    /// Which piece comes next.
    next: u32,
    /// Those that may be asked for again.
    pieces: BTreeMap<u32, SnapshotPiece>,
}

impl CertifiedSite {
    /// Keeps what another site takes: all that is not of this one alone.
    pub(super) fn keep_snapshot(&mut self, snapshot: u64) {
        let counters = piece(kind::COUNTERS, &((self.clock, self.counter), 0_u64));
        let cuts = piece(kind::CUTS, &self.cuts.order);
        let head = [counters, cuts].into_iter().chain(self.object_pieces());
        let head = head.chain(self.claim_pieces()).chain(self.end_pieces()).collect();
        let (clock, cursor) = (self.clock, Cursor::default());
        let given = GivenState { clock, head, cursor, next: 0, pieces: BTreeMap::new() };
        let before = self.given.insert(snapshot, given);
        assert!(before.is_none(), "snapshot {snapshot} is kept twice");
    }

    pub(super) fn free_snapshot(&mut self, snapshot: u64) {
        self.given.remove(&snapshot);
    }

    /// The clocks of snapshots that other sites take.
    pub(in crate::certified::participant) fn oldest_given(&self) -> Option<u64> {
        self.given.values().map(|given| given.clock).min()
    }

    /// A piece of a snapshot; `None`: it is not kept, or the piece was had long ago, or comes long
    /// after this.
    pub(super) fn snapshot_piece(&mut self, snapshot: u64, number: u32) -> Option<SnapshotPiece> {
        let mut given = self.given.remove(&snapshot)?;
        let is_near = number < given.next.saturating_add(PIECES_AHEAD);
        while is_near && given.next <= number && !given.is_read() {
            let piece = self.next_of_state(&mut given);
            given.pieces.insert(given.next, piece);
            given.next += 1;
            let first = given.next.saturating_sub(2 * PIECES_AHEAD);
            given.pieces.retain(|number, _| *number >= first);
        }
        assert!(given.pieces.len() <= 2 * PIECES_AHEAD as usize, "{} pieces", given.pieces.len());
        let piece = given.pieces.get(&number).cloned();
        self.given.insert(snapshot, given);
        piece
    }

    fn next_of_state(&self, given: &mut GivenState) -> SnapshotPiece {
        let head = given.head.pop_front();
        let (bytes, is_last) = match head.or_else(|| self.next_keys(given)) {
            Some(bytes) => (bytes, false),
            None => {
                // For histories: deletions that were collected.
                let mut bytes = Vec::new();
                let cursor = &mut given.cursor;
                let more =
                    self.spaces.next_chains(CHAIN_KINDS, cursor, HEAD_PIECE_BYTES, &mut bytes);
                (bytes, !more)
            }
        };
        SnapshotPiece { bytes: SmallBytes::from(bytes), is_last }
    }

    /// The next keys as a reader of the snapshot sees them; perhaps none of them. `None`: that was
    /// all.
    fn next_keys(&self, given: &mut GivenState) -> Option<Vec<u8>> {
        let cursor = &mut given.cursor;
        while cursor.step < BEHIND_KEYS {
            let space = SpaceId(cursor.step as u16);
            let slots = self.spaces.get(space).map_or(0, |store| u64::from(store.slots()));
            let (mut keys, mut bytes) = (Vec::<(SmallBytes, Chain)>::new(), 0);
            let upto = slots.min(cursor.place + LOOKED_AT_MOST as u64);
            let is_looked_at = cursor.place < upto;
            while cursor.place < upto && bytes < HEAD_PIECE_BYTES {
                if let Some((key, at, value)) = self.seen_in(space, cursor.place, given.clock) {
                    bytes += key.len() + value.as_ref().map_or(0, SmallBytes::len) + BESIDE_BYTES;
                    keys.push((key, vec![(at, value)]));
                }
                cursor.place += 1;
            }
            if is_looked_at {
                return Some(piece(kind::CHAINS, &(space, keys)));
            }
            (cursor.step, cursor.place) = (cursor.step + 1, 0);
        }
        None
    }

    /// What a reader of that clock sees of the key in a slot, if there was one.
    fn seen_in(
        &self,
        space: SpaceId,
        slot: u64,
        clock: u64,
    ) -> Option<(SmallBytes, Timestamp, Option<SmallBytes>)> {
        let store = self.spaces.get(space)?;
        let (key, newest) = store.newest_in(slot as u32)?;
        assert!(
            clock >= self.forgotten,
            "clock {clock} is given, and {} forgotten",
            self.forgotten
        );
        let seen = match self.recent.unseen_version((space, key), clock) {
            None => newest,
            Some(unseen) => store.at(store.find(key)?, Timestamp(unseen.0 - 1)),
        };
        (seen.at != Timestamp::ZERO).then(|| (key.clone(), seen.at, seen.value.cloned()))
    }
}

impl GivenState {
    /// All pieces were read once.
    fn is_read(&self) -> bool {
        self.pieces.last_key_value().is_some_and(|(_, piece)| piece.is_last)
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{
        Address, Catalog, Effects, NodeId, RepositoryId, Settings, SpaceOptions, TxnId,
    };

    use super::super::taken::TakenState;
    use super::*;
    use crate::certified::message::command::CertifiedCommand;
    use crate::certified::{Context, Switches};

    const SPACE: SpaceId = SpaceId(0);

    fn with_site(run: impl FnOnce(&mut CertifiedSite, &mut Context<'_>)) {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[]).expect("it can be");
        let catalog = catalog.with_space("all", SpaceOptions::default()).expect("a space");
        let (settings, id) = (Settings::default(), RepositoryId(0));
        let me = Address::repository(NodeId(0), id);
        let effects = &mut Effects::default();
        let cx = &mut Context { me, catalog: &catalog, settings: &settings, effects };
        let switches = Switches::default();
        run(&mut muesli_core::Participant::new(id, &settings, &switches), cx);
    }

    fn key(number: u32) -> SmallBytes {
        format!("key {number}").as_str().into()
    }

    /// A commit writes keys, or deletes them.
    fn write(site: &mut CertifiedSite, keys: &[u32], value: Option<&str>, cx: &mut Context<'_>) {
        let value = value.map(SmallBytes::from);
        let writes = keys.iter().map(|it| (SPACE, key(*it), value.clone())).collect();
        let counter = site.counter + 1;
        let txn = TxnId { node: NodeId(0), incarnation: 1, sequence: counter };
        let (reads, ranges, calls) = (Vec::new(), Vec::new(), Vec::new());
        let command = CertifiedCommand { txn, after: 0, spaces: 1, reads, ranges, writes, calls };
        site.apply(command, Timestamp::new(counter, RepositoryId(0)), cx);
    }

    /// All keys with their values, as their newest versions are.
    fn all(spaces: &muesli_core::parts::spaces::Spaces) -> BTreeMap<SmallBytes, SmallBytes> {
        let store = spaces.get(SPACE).expect("there are keys");
        let all = (0..200).filter_map(|number| {
            let handle = store.find(&key(number));
            Some((key(number), store.newest(handle?).value?.clone()))
        });
        all.collect()
    }

    #[test]
    fn what_is_taken_is_of_one_moment_though_the_giver_goes_on() {
        with_site(|site, cx| {
            let some: Vec<u32> = (0..150).collect();
            write(site, &some, Some("first"), cx);
            write(site, &some[..20], None, cx);
            let (before, counter) = (all(&site.spaces), site.counter);
            site.keep_snapshot(7);
            let mut taken = TakenState::begun(cx.settings);
            let mut number = 0;
            loop {
                // What comes in between is not seen, whether a piece had its key already or not.
                write(site, &[number % 150, 100 + number % 80], Some("second"), cx);
                write(site, &[140], None, cx);
                site.collect(cx);
                let piece = site.snapshot_piece(7, number).expect("it is kept");
                assert_eq!(site.snapshot_piece(7, number), Some(piece.clone()), "asked for again");
                taken.take(&piece.bytes, (cx.catalog, cx.now())).expect("a piece");
                number += 1;
                if piece.is_last {
                    break;
                }
            }
            assert_eq!(all(&taken.spaces), before);
            assert_eq!((taken.clock, taken.counter), (2, counter));
            assert!(site.snapshot_piece(7, number + PIECES_AHEAD).is_none(), "behind the last");
            site.free_snapshot(7);
            site.collect(cx);
            assert_eq!(site.snapshot_piece(7, 0), None);
            assert_eq!(site.recent.len(), 0, "nobody needs what it had kept");
        });
    }

    #[test]
    fn a_piece_that_is_none_is_refused() {
        with_site(|_, cx| {
            for bytes in [&[9_u8][..], &[kind::COUNTERS, 1], &[kind::CHAINS, 3, 0, 0, 0, 0, 0]] {
                let refused = super::super::taken::judge_piece(&bytes.into(), cx.catalog);
                assert!(refused.is_err(), "{bytes:?}");
            }
        });
    }
}
