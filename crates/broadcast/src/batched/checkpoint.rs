//! Checkpoints of a member: that of the broadcast below, and which commands its batches stood for.

use muesli_core::checkpoint::{HEAD_PIECE_BYTES, pieces};
use muesli_core::wire::{Wire, WireError};
use muesli_core::{Nanos, wire_struct};
use xxhash_rust::xxh3::xxh3_64;

use super::Batched;
use super::delivered::DeliveredBatch;
use crate::broadcast::Broadcast;
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;
use crate::member::checkpoint::{CheckpointError, holds};

/// A batch that is delivered.
#[derive(Clone, Debug)]
struct BatchEntry {
    id: CommandId,
    begun: u64,
    ids: IdSet,
    before: IdSet,
}

/// What comes last.
#[derive(Clone, Debug)]
struct BatchesEnd {
    /// So many batches are not forgotten.
    batches: u64,
    /// The largest number of an own command that was in a batch.
    last: u64,
    upto: Vec<u64>,
    forgotten: IdSet,
}

/// The kinds of pieces, in the order in which they come.
const INSIDE: u8 = 0;
const BATCHES: u8 = 1;
const END: u8 = 2;

impl<B: Broadcast> Batched<B> {
    pub(super) fn pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut delivered = self.delivered.clone();
        delivered.forget(|id| self.inside.has_forgotten(id));
        let inside = self.inside.checkpoint().map(|inner| [vec![INSIDE], inner].concat());
        let entry = |(id, it): (CommandId, &DeliveredBatch)| BatchEntry {
            id,
            begun: it.begun,
            ids: it.ids.clone(),
            before: it.before.clone(),
        };
        let entries: Vec<BatchEntry> = delivered.entries().map(entry).collect();
        let (upto, forgotten) = delivered.forgotten();
        let end = BatchesEnd {
            batches: entries.len() as u64,
            last: self.batched,
            upto: upto.to_vec(),
            forgotten: forgotten.clone(),
        };
        let entries = pieces(vec![BATCHES], entries, HEAD_PIECE_BYTES);
        let end = std::iter::once(muesli_core::checkpoint::piece(END, &end));
        inside.chain(entries).chain(end).map(|mut piece| {
            xxh3_64(&piece).encode(&mut piece);
            piece
        })
    }

    pub(super) fn take_piece(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
        let (bytes, sum) = piece.split_last_chunk().ok_or(CheckpointError::Damaged)?;
        if xxh3_64(bytes) != u64::from_le_bytes(*sum) {
            return Err(CheckpointError::Damaged);
        }
        match bytes.split_first() {
            Some((&INSIDE, inner)) if !self.is_restored => {
                self.is_restored = self.inside.restore(inner, now)?;
                Ok(false)
            }
            Some((&BATCHES, entries)) if self.is_restored => {
                for BatchEntry { id, begun, ids, before } in Vec::decode_all(entries)? {
                    let batch = DeliveredBatch { begun, ids, before };
                    let is_sound = self.delivered.take_entry(id, batch);
                    holds(is_sound, "a batch that cannot be")?;
                }
                Ok(false)
            }
            Some((&END, end)) if self.is_restored => self.finish(BatchesEnd::decode_all(end)?),
            other => {
                let found = other.map_or(0, |(kind, _)| *kind);
                Err(WireError::no_variant("piece of a checkpoint", 0, found).into())
            }
        }
    }

    fn finish(&mut self, end: BatchesEnd) -> Result<bool, CheckpointError> {
        let found = self.delivered.entries().count() as u64;
        if found != end.batches {
            return Err(CheckpointError::Incomplete { expected: end.batches, found });
        }
        holds(end.last <= CommandId::SEQUENCE_MAX, "a number that is too large")?;
        let leaders = (0..end.upto.len() as u16).map(MemberId);
        let last = |(leader, sequence): (MemberId, &u64)| CommandId { leader, sequence: *sequence };
        let mut last = leaders.zip(&end.upto).map(last).filter(|id| id.sequence > 0);
        let is_forgotten = last.all(|id| self.inside.has_forgotten(id));
        holds(is_forgotten, "a batch is forgotten that the order has")?;
        let is_sound = self.delivered.take_forgotten(end.upto, end.forgotten);
        holds(is_sound, "what is forgotten cannot be")?;
        let own = self.delivered.last_of(self.me);
        holds(own <= end.last, "an own command beyond the last one")?;
        self.is_restored = false;
        (self.named, self.batched) = (end.last, end.last);
        self.take_own();
        holds(self.batched == end.last, "an own batch beyond the last command")?;
        self.forget();
        Ok(true)
    }
}

wire_struct!(BatchEntry { id: CommandId, begun: u64, ids: IdSet, before: IdSet });
wire_struct!(BatchesEnd { batches: u64, last: u64, upto: Vec<u64>, forgotten: IdSet });
