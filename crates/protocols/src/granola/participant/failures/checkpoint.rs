//! Checkpoints of a repository, taken while it serves (see [`muesli_core::checkpoint`]).
//!
//! First the head, of the moment that the checkpoint stands for: the timestamps, what was voted on
//! and is not over, what is remembered, and which partitions are here. Then the newest versions of
//! all keys, slot by slot, each as it is when its turn comes. Records after that moment are
//! replayed on top. They say what was written, so that a version which a piece has already, or a
//! later one, is left as it is: writes of one key come in the order of their timestamps. Nothing
//! is run again before the replay is over.
//!
//! Keys of a partition that went meanwhile may be missing. If the record of that is lost with the
//! end of the log, the vote for the move is not: nothing of the partition is taken up until the
//! move is done again.

use std::collections::VecDeque;
use std::sync::Arc;

use muesli_core::checkpoint::{HEAD_PIECE_BYTES, piece, pieces};
use muesli_core::judgement::{has_capacity, sequence};
use muesli_core::parts::spaces::ChainKinds;
use muesli_core::parts::votes::Votes;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Cursor, Timestamp, TxnId};

use super::judge_record::judge_moves;
use crate::granola::message::{Agreement, Message, PartData, Request, evidence, wire};
use crate::granola::participant::migration::CarriedMoves;
use crate::granola::participant::outcomes::{CarriedOver, Settled};
use crate::granola::participant::{Context, Participant};

/// What a piece begins with.
mod kind {
    pub const CLOCK: u8 = 0;
    pub const VOTED: u8 = 1;
    pub const MEMORY: u8 = 2;
    pub const CHAINS: u8 = 3;
    pub const SHARED_DATA: u8 = 4;
    pub const MOVES: u8 = 5;
    pub const SETTLED: u8 = 6;
    pub const REST: u8 = 7;
    pub const FLOORS: u8 = 8;
    pub const LOWER_BOUND: u8 = 9;
}

const CHAIN_KINDS: ChainKinds = ChainKinds { chains: kind::CHAINS, rest: kind::REST, cuts: true };

/// Something voted on, and what was proposed.
type Voted = (Arc<Request>, Timestamp);

impl Participant {
    /// Takes what must be of this moment.
    pub(in super::super) fn checkpoint_of_now(&self) -> Cursor {
        assert!(self.sets.writes.is_empty(), "a checkpoint in the middle of an execution");
        let clock = (self.clock.done, self.clock.proposed, self.clock.upper_bound);
        let mut first = VecDeque::from([piece(kind::CLOCK, &clock)]);
        let logged = self.active.values().filter(|active| self.is_logged(&active.request));
        for active in logged.filter(|active| active.request.agreement != Agreement::Alone) {
            let voted: Voted = (active.request.clone(), active.proposed);
            first.push_back(piece(kind::VOTED, &voted));
        }
        let (over, settled) = self.memory.carried();
        first.extend(pieces(vec![kind::MEMORY], over, HEAD_PIECE_BYTES));
        first.extend(pieces(vec![kind::SETTLED], settled, HEAD_PIECE_BYTES));
        for (txn, shared) in self.memory.all_data() {
            let each =
                shared.into_iter().map(|shared| piece(kind::SHARED_DATA, &(txn, vec![shared])));
            first.extend(each);
        }
        let (lower_bound, lower_bounds) = self.memory.lower_bounds();
        first.extend(pieces(vec![kind::FLOORS], lower_bounds, HEAD_PIECE_BYTES));
        // Clients that are known were known before it.
        first.extend(
            (lower_bound > Timestamp::ZERO).then(|| piece(kind::LOWER_BOUND, &lower_bound)),
        );
        first.push_back(piece::<CarriedMoves>(kind::MOVES, &self.moves.carried()));
        Cursor { first, ..Cursor::default() }
    }

    /// Marks this moment: the head of a checkpoint, and notes of what becomes of the keys.
    pub(in super::super) fn mark_now(&mut self) -> VecDeque<Vec<u8>> {
        self.spaces.mark();
        self.checkpoint_of_now().first
    }

    /// Becomes what another one was at its oldest mark: restored from the head of then, and from
    /// keys that are as they were then. Where keys of a partition that went were removed since,
    /// that cannot be.
    pub(in super::super) fn return_to_mark(
        &mut self,
        other: &mut Participant,
        marked: &VecDeque<Vec<u8>>,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(spaces) = other.spaces.go_back() else { return false };
        self.spaces = spaces;
        marked.iter().map(|piece| self.restore_piece(piece, cx)).all(|restored| restored.is_ok())
    }

    /// Appends the next piece.
    pub(in super::super) fn next_piece(
        &self,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if let Some(mut first) = cursor.first.pop_front() {
            out.append(&mut first);
            return true;
        }
        self.spaces.next_chains(CHAIN_KINDS, cursor, bytes, out)
    }

    /// Takes a piece.
    pub(in super::super) fn restore_piece(
        &mut self,
        piece: &[u8],
        cx: &mut Context<'_>,
    ) -> Result<(), WireError> {
        let mut input = Reader::new(piece);
        match u8::decode(&mut input)? {
            kind::CLOCK => {
                let (done, proposed, upper_bound) = Wire::decode(&mut input)?;
                let judged = [done, proposed, upper_bound].into_iter().try_for_each(has_capacity);
                judged.map_err(|_| contradiction("clock that can be"))?;
                self.clock.raise(done);
                self.clock.restart_above(proposed);
                self.clock.restart_above(upper_bound);
            }
            kind::VOTED => self.restore_voted(Wire::decode(&mut input)?, cx)?,
            kind::MEMORY => {
                let mut over: Vec<CarriedOver> = Wire::decode(&mut input)?;
                if over.iter().any(|(txn, _)| sequence(*txn).is_err()) {
                    return Err(contradiction("end that can be remembered"));
                }
                // What was voted for and is not over comes before. Only a liar can have had a
                // member take it for both.
                over.retain(|(txn, _)| !self.active.contains_key(txn));
                self.memory.recall(over);
            }
            kind::SETTLED => {
                let settled: Vec<Settled> = Wire::decode(&mut input)?;
                if settled.iter().any(|(.., below)| *below > TxnId::SEQUENCE_MAX) {
                    return Err(contradiction("number of a transaction"));
                }
                self.memory.recall_settled(settled);
            }
            kind::SHARED_DATA => {
                let (txn, shared): (TxnId, Vec<PartData>) = Wire::decode(&mut input)?;
                self.memory.add_data(txn, shared);
            }
            kind::MOVES => {
                let moves: CarriedMoves = Wire::decode(&mut input)?;
                let judged = judge_moves(&moves, cx.catalog);
                judged.map_err(|_| contradiction("moves that can have been"))?;
                self.moves.recall(moves);
            }
            kind::FLOORS => self.memory.recall_floors(Wire::decode(&mut input)?),
            kind::LOWER_BOUND => self.memory.recall_lower_bound(Timestamp::decode(&mut input)?),
            kind::CHAINS => self.spaces.restore_chains(&mut input, cx.catalog)?,
            kind::REST => self.spaces.restore_rest(&mut input, cx.catalog)?,
            other => return Err(WireError::no_variant("piece of a checkpoint", 0, other)),
        }
        input.finish()
    }

    /// Bytes from outside may say anything: what cannot have been voted on here is refused.
    fn restore_voted(&mut self, voted: Voted, cx: &Context<'_>) -> Result<(), WireError> {
        let (request, at) = voted;
        let sound = self.judge_voted(&request, at, cx.catalog).is_ok()
            && wire::is_about(&Message::Request(request.clone()), cx.catalog);
        if !sound {
            return Err(contradiction("transaction that can be voted on"));
        }
        let votes = Votes::from_voters(self.others(&request));
        self.memory.note_vote(request.txn);
        let about = evidence::about(&request, cx.settings, cx.catalog);
        self.enter((request, about), at, votes, cx);
        Ok(())
    }
}

fn contradiction(what: &'static str) -> WireError {
    WireError::Variant { what, at: 0, found: 0 }
}
