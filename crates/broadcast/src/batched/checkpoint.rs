//! Checkpoints of a member: that of the broadcast below, and which commands its batches stood for.

use muesli_core::checkpoint::{HEAD_PIECE_BYTES, pieces};
use muesli_core::wire::{Wire, WireError};
use muesli_core::{Nanos, wire_enum, wire_struct};

use super::Batched;
use super::delivered::DeliveredBatch;
use crate::broadcast::Broadcast;
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;
use crate::member::checkpoint::{CheckpointError, holds, opened, sealed};

/// What of a checkpoint there may be many of.
#[derive(Clone, Debug)]
enum BatchEntry {
    /// A batch that is delivered.
    Delivered { id: CommandId, begun: u64, upto: u64, ids: IdSet },
    /// What stood for nothing.
    Nothing { id: CommandId, before: IdSet },
}

/// What comes last.
#[derive(Clone, Debug)]
struct BatchesEnd {
    /// So many batches are not forgotten.
    batches: u64,
    /// The largest number of an own command that was in a batch.
    last: u64,
    upto: Vec<u64>,
    delivered: IdSet,
}

/// The kinds of pieces, in the order in which they come.
const INSIDE: u8 = 0;
const BATCHES: u8 = 1;
const END: u8 = 2;

impl<B: Broadcast> Batched<B> {
    pub(super) fn pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut known = self.delivered.clone();
        known.forget(|id| self.inside.has_forgotten(id));
        let inside = self.inside.checkpoint().map(|inner| [vec![INSIDE], inner].concat());
        let batch = |(id, it): (CommandId, &DeliveredBatch)| {
            let DeliveredBatch { begun, upto, ids } = it.clone();
            BatchEntry::Delivered { id, begun, upto, ids }
        };
        let nothing =
            |(id, before): (CommandId, &IdSet)| BatchEntry::Nothing { id, before: before.clone() };
        let entries: Vec<BatchEntry> =
            known.batches().map(batch).chain(known.nothing().map(nothing)).collect();
        let (upto, delivered) = known.head();
        let end = BatchesEnd {
            batches: entries.len() as u64,
            last: self.batched,
            upto: upto.to_vec(),
            delivered: delivered.clone(),
        };
        let entries = pieces(vec![BATCHES], entries, HEAD_PIECE_BYTES);
        let end = std::iter::once(muesli_core::checkpoint::piece(END, &end));
        inside.chain(entries).chain(end).map(sealed)
    }

    pub(super) fn take_piece(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
        match opened(piece)?.split_first() {
            Some((&INSIDE, inner)) if !self.is_restored => {
                self.is_restored = self.inside.restore(inner, now)?;
                Ok(false)
            }
            Some((&BATCHES, entries)) if self.is_restored => {
                for entry in Vec::decode_all(entries)? {
                    let is_sound = match entry {
                        BatchEntry::Delivered { id, begun, upto, ids } => {
                            self.delivered.take_batch(id, DeliveredBatch { begun, upto, ids })
                        }
                        BatchEntry::Nothing { id, before } => {
                            self.delivered.take_nothing(id, before)
                        }
                    };
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
        let found = self.delivered.len() as u64;
        if found != end.batches {
            return Err(CheckpointError::Incomplete { expected: end.batches, found });
        }
        holds(end.last <= CommandId::SEQUENCE_MAX, "a number that is too large")?;
        let leaders = (0..end.upto.len() as u16).map(MemberId);
        let last = |(leader, sequence): (MemberId, &u64)| CommandId { leader, sequence: *sequence };
        let mut last = leaders.zip(&end.upto).map(last).filter(|id| id.sequence > 0);
        let is_forgotten = last.all(|id| self.inside.has_forgotten(id));
        holds(is_forgotten, "a batch is forgotten that the order has")?;
        let is_sound = self.delivered.take_head(end.upto, &end.delivered);
        holds(is_sound, "what was delivered cannot be")?;
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

wire_enum!(BatchEntry, "batch of a checkpoint" {
    0 => Delivered { id: CommandId, begun: u64, upto: u64, ids: IdSet },
    1 => Nothing { id: CommandId, before: IdSet },
});
wire_struct!(BatchesEnd { batches: u64, last: u64, upto: Vec<u64>, delivered: IdSet });
