//! A copy at a coordinator: the repository's own code over what it was told.

use muesli_core::wire::{Reader, WireError};
use muesli_core::{Timestamp, Wire};

use super::PIECES;
use crate::granola::message::{Holding, Write};
use crate::granola::participant::{Context, Participant};

impl Participant {
    /// As a copy: takes a piece of the repository.
    pub(in crate::granola) fn take_piece(
        &mut self,
        piece: &[u8],
        cx: &Context<'_>,
    ) -> Result<(), WireError> {
        let mut input = Reader::new(piece);
        match u8::decode(&mut input)? {
            kind if kind == PIECES.chains => {
                self.spaces.restore_chains(&mut input, cx.catalog)?;
            }
            kind if kind == PIECES.rest => self.spaces.restore_rest(&mut input, cx.catalog)?,
            other => return Err(WireError::no_variant("piece of a copy", 0, other)),
        }
        input.finish()
    }

    /// As a copy that has all up to `from`: takes what changed up to `upto`, and which partitions
    /// the repository holds there.
    pub(in crate::granola) fn take_changes(
        &mut self,
        (from, upto): (Timestamp, Timestamp),
        changes: Vec<(Timestamp, Vec<Write>)>,
        held: Vec<(u16, Holding)>,
        cx: &Context<'_>,
    ) {
        assert!(from < upto, "changes from {from} up to {upto}");
        self.moves.held.recall(held);
        for (at, writes) in changes.into_iter().filter(|(at, _)| *at > from) {
            self.replay_writes(at, writes, cx);
        }
        self.clock.raise(upto);
    }
}
