//! Checkpoints of a repository, taken while it serves (see [`muesli_core::checkpoint`]).
//!
//! First the head, of the moment that the checkpoint stands for: the timestamps, what was voted on
//! and is not over, and what is remembered. Then the newest versions of all keys, slot by slot,
//! each as it is when its turn comes. Records after that moment are replayed on top. They say what
//! was written, so that a version which a piece has already, or a later one, is left as it is:
//! writes of one key come in the order of their timestamps. Nothing is run again before the replay
//! is over.

use std::collections::VecDeque;
use std::sync::Arc;

use muesli_core::parts::versions::Chain;
use muesli_core::parts::votes::Votes;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Cursor, SmallBytes, SpaceId, Timestamp};

use super::memory::Carried;
use super::message::{Agreement, Message, Request};
use super::participant::{Context, Participant};
use super::wire;

/// What a piece begins with.
mod kind {
    pub const CLOCK: u8 = 0;
    pub const VOTED: u8 = 1;
    pub const MEMORY: u8 = 2;
    pub const CHAINS: u8 = 3;
}

/// At most so many remembered ends stand in a piece.
const MEMORY_PIECE: usize = 1024;

/// Something voted on, and what was proposed.
type Voted = (Arc<Request>, Timestamp);

impl Participant {
    /// Takes what must be of this moment.
    pub(super) fn checkpoint_of_now(&self) -> Cursor {
        let clock = (self.clock.done, self.clock.proposed, self.clock.ceiling);
        let mut pieces = VecDeque::from([piece(kind::CLOCK, &clock)]);
        let logged = self.active.values().filter(|active| active.request.is_update());
        for active in logged.filter(|active| active.request.agreement != Agreement::Alone) {
            let voted: Voted = (active.request.clone(), active.proposed);
            pieces.push_back(piece(kind::VOTED, &voted));
        }
        let (over, settled) = self.memory.carried();
        for part in over.chunks(MEMORY_PIECE) {
            let memory: Carried = (part.to_vec(), Vec::new());
            pieces.push_back(piece(kind::MEMORY, &memory));
        }
        pieces.push_back(piece::<Carried>(kind::MEMORY, &(Vec::new(), settled)));
        Cursor { first: pieces, ..Cursor::default() }
    }

    /// Appends the next piece.
    pub(super) fn next_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        if let Some(mut first) = cursor.first.pop_front() {
            out.append(&mut first);
            return true;
        }
        while (cursor.stage as usize) < self.spaces.len() {
            if self.chains_from(cursor, bytes, out) {
                return true;
            }
            (cursor.stage, cursor.place) = (cursor.stage + 1, 0);
        }
        false
    }

    /// Appends chains of the cursor's space until there are `bytes` bytes; false: there are none.
    fn chains_from(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        let space = SpaceId(cursor.stage as u16);
        let Some(store) = self.spaces.get(space) else { return false };
        let start = out.len();
        let mut count = 0_u32;
        while cursor.place < u64::from(store.slots()) && out.len() - start < bytes {
            if let Some((key, chain)) = store.chain_in(cursor.place as u32) {
                if count == 0 {
                    out.push(kind::CHAINS);
                    space.encode(out);
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

    /// Takes a piece.
    pub(super) fn restore_piece(
        &mut self,
        piece: &[u8],
        cx: &mut Context<'_>,
    ) -> Result<(), WireError> {
        let mut input = Reader::new(piece);
        match u8::decode(&mut input)? {
            kind::CLOCK => {
                let (done, proposed, ceiling) = Wire::decode(&mut input)?;
                self.clock.raise(done);
                self.clock.restart_above(proposed);
                self.clock.restart_above(ceiling);
            }
            kind::VOTED => self.restore_voted(Wire::decode(&mut input)?, cx)?,
            kind::MEMORY => self.memory.recall(Wire::decode(&mut input)?),
            kind::CHAINS => self.restore_chains(&mut input, cx)?,
            other => return Err(WireError::no_variant("piece of a checkpoint", 0, other)),
        }
        input.finish()
    }

    /// Bytes from outside may say anything: what cannot have been voted on here is refused.
    fn restore_voted(&mut self, voted: Voted, cx: &Context<'_>) -> Result<(), WireError> {
        let (request, at) = voted;
        let sound = request.participants.contains(&self.id)
            && request.is_update()
            && request.agreement != Agreement::Alone
            && !self.active.contains_key(&request.txn)
            && wire::is_about(&Message::Request(request.clone()), cx.catalog);
        if !sound {
            let what = "transaction that can be voted on";
            return Err(WireError::Variant { what, at: 0, found: 0 });
        }
        let votes = Votes::from_voters(self.others(&request));
        self.enter(request, at, votes, cx);
        Ok(())
    }

    fn restore_chains(
        &mut self,
        input: &mut Reader<'_>,
        cx: &Context<'_>,
    ) -> Result<(), WireError> {
        let at = input.position();
        let space = SpaceId::decode(input)?;
        if cx.catalog.space(space).is_none() {
            return Err(WireError::Variant { what: "space", at, found: space.0.into() });
        }
        let chains: Vec<(SmallBytes, Chain)> = Wire::decode(input)?;
        let store = self.spaces.get_or_make(space, cx.catalog);
        for (key, chain) in chains {
            store.add_chain(&key, chain);
        }
        Ok(())
    }
}

fn piece<T: Wire>(kind: u8, value: &T) -> Vec<u8> {
    let mut out = vec![kind];
    value.encode(&mut out);
    out
}
