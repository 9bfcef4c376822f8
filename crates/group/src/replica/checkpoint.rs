//! The checkpoint of a member: what it knows, and the pieces of its participant's.
//!
//! It is begun at a moment, stands for the entries that the participant has applied by then, and
//! may hold effects of those that it applies until the last piece is taken. Where the member leads,
//! not all of these are decided. It is published once they are, and the record that says so is in
//! the log; if the member is deposed before, it is given up. So whoever restores it knows at least
//! so many entries as decided, and replays them before it does anything else.

use std::collections::VecDeque;

use muesli_core::wire::{Wire, WireError};
use muesli_core::{Cursor, LoggedRole, Protocol, Readiness};

use super::Replica;
use crate::agreement::entry::Entry;
use crate::agreement::ledger::Change;
use crate::inside::Context;

/// What a piece is of.
mod kind {
    /// What the member knows: a record.
    pub const MEMBER: u8 = 0;
    /// The participant.
    pub const PARTICIPANT: u8 = 1;
}

impl<P: Protocol> Replica<P> {
    /// Takes what must be of this moment.
    pub(super) fn checkpoint_of_now(&self) -> Option<Cursor> {
        // One that fetches entries needs its disk for them, and is of more use a little later.
        if !self.has_state() || self.fetching.is_some() {
            return None;
        }
        let mut cursor = self.inner.begin_checkpoint()?;
        let upto = self.applied;
        let lazy = |entries: &[Entry]| entries.iter().map(|it| it.0.len() as u64).sum::<u64>();
        let bytes_max = self.group_settings.limits.piece_bytes;
        cursor.around = self.ledger.look(|it| {
            let bytes = it.log.bytes_upto(upto).unwrap_or(it.log.bytes() + lazy(&self.lazy));
            let known = Change::Adopted(Box::new(it.summary()));
            let mut pieces = VecDeque::from([piece(vec![known, Change::Restored { upto, bytes }])]);
            let mut from = upto;
            while from < it.length() {
                let chunk = it.log.chunk(from, it.length(), bytes_max);
                let length = chunk.len() as u64;
                pieces.push_back(piece(vec![Change::Entries(from, chunk)]));
                from += length;
            }
            pieces
        });
        cursor.taken_from = (self.generation, upto);
        Some(cursor)
    }

    /// Appends the next piece.
    pub(super) fn next_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        if cursor.taken_from.0 != self.generation {
            return false; // It will not count.
        }
        if let Some(mut piece) = cursor.around.pop_front() {
            out.append(&mut piece);
            return true;
        }
        out.push(kind::PARTICIPANT);
        let more = self.inner.checkpoint_piece(cursor, bytes, out);
        if !more {
            out.pop();
        }
        cursor.taken_from.1 = self.applied;
        more
    }

    /// Whether all is decided that the pieces may hold effects of.
    pub(super) fn readiness(&self, cursor: &Cursor) -> Readiness {
        let (generation, applied) = cursor.taken_from;
        if generation != self.generation {
            return Readiness::Void;
        }
        let decided = self.ledger.look(|it| it.decided);
        match applied <= decided || !self.group_settings.publishes_decided {
            true => Readiness::Ready,
            false => Readiness::Waits,
        }
    }

    /// Takes a piece.
    pub(super) fn restore_piece(
        &mut self,
        piece: &[u8],
        cx: &mut Context<'_, P>,
    ) -> Result<(), WireError> {
        match piece.split_first() {
            Some((&kind::MEMBER, piece)) => {
                for change in Vec::decode_all(piece)? {
                    self.restore_change(change);
                }
                Ok(())
            }
            Some((&kind::PARTICIPANT, piece)) => {
                let (role, inner) = (self.role(), &mut self.inner);
                self.inside.run(role, cx, |cx| inner.restore(piece, cx)).0
            }
            Some((&other, _)) => Err(WireError::no_variant("piece of a member", 0, other)),
            None => Err(WireError::no_variant("piece of a member", 0, 0)),
        }
    }

    fn restore_change(&mut self, change: Change) {
        if let Change::Restored { upto, .. } = change {
            self.start_over();
            self.applied = upto;
        }
        self.ledger.replay(vec![change]);
        self.is_void = false;
    }
}

fn piece(changes: Vec<Change>) -> Vec<u8> {
    let mut piece = vec![kind::MEMBER];
    changes.encode(&mut piece);
    piece
}
