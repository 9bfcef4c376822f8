//! Checkpoints of a member, taken while it goes on.
//!
//! First there is what must be of one moment: the member of the broadcast, the clock, transactions
//! and how they ended, and what is remembered of objects. Then the keys come as their turn does,
//! perhaps with what later transactions have written. Who restores it replays what was certified
//! after that moment by what was logged of it: what is there already is not written again. A
//! transaction whose certification was not stable has none after it that is, and a checkpoint
//! counts only once all that it may hold is stable: so such a one is certified with exactly the
//! keys that it was certified with.

use muesli_broadcast::Broadcast as _;
use muesli_core::checkpoint::{HEAD_PIECE_BYTES, piece, pieces};
use muesli_core::parts::spaces::ChainKinds;
use muesli_core::wire::Reader;
use muesli_core::{Cursor, Decision, TxnId, Wire as _, WireError};

use super::transaction::PreparedTransaction;
use super::{ShardClient, ShardMember};
use crate::certified::message::command::CallsEnd;
use crate::certified::state::objects::ObjectMemory;
use crate::sharded::Context;

/// What a piece begins with.
mod kind {
    pub const MEMBER: u8 = 0;
    pub const COUNTERS: u8 = 1;
    pub const SETTLED: u8 = 2;
    pub const ENDED: u8 = 3;
    pub const OBSERVED: u8 = 4;
    pub const OBJECTS: u8 = 5;
    pub const CHAINS: u8 = 6;
    pub const REST: u8 = 7;
    pub const CALLS: u8 = 8;
    pub const TRANSACTIONS: u8 = 9;
}

const CHAIN_KINDS: ChainKinds = ChainKinds { chains: kind::CHAINS, rest: kind::REST, cuts: true };

impl ShardMember {
    /// Takes what must be of this moment.
    pub(super) fn checkpoint_of_now(&self) -> Cursor {
        assert!(!self.is_replaying, "a checkpoint in the midst of a replay");
        let member = self.member.iter().flat_map(|member| member.checkpoint());
        let member = member.map(|piece| [&[kind::MEMBER], &piece[..]].concat());
        let counters = piece(kind::COUNTERS, &(self.clock, self.horizon));
        let settled = pieces(vec![kind::SETTLED], self.outcomes.coordinators(), HEAD_PIECE_BYTES);
        let ended = pieces(vec![kind::ENDED], self.outcomes.ended(), HEAD_PIECE_BYTES);
        let observed = self.clients.iter().map(|(&node, it)| {
            let (incarnation, sequence) = it.from;
            TxnId { node, incarnation, sequence }
        });
        let observed = pieces(vec![kind::OBSERVED], observed, HEAD_PIECE_BYTES);
        let objects = pieces(vec![kind::OBJECTS], self.objects.iter(), HEAD_PIECE_BYTES);
        let calls = self.calls.iter().map(|(txn, end)| (*txn, end.clone()));
        let calls = pieces(vec![kind::CALLS], calls, HEAD_PIECE_BYTES);
        let all = self.transactions.iter().map(|(txn, it)| (txn, it.prepared.clone()));
        let all = pieces(vec![kind::TRANSACTIONS], all, HEAD_PIECE_BYTES);
        let first = member.chain([counters]).chain(settled).chain(ended).chain(calls);
        let first = first.chain(observed).chain(objects).chain(all);
        Cursor { first: first.collect(), ..Cursor::default() }
    }

    /// Appends the next piece.
    pub(super) fn next_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        match cursor.first.pop_front() {
            Some(mut first) => {
                out.append(&mut first);
                true
            }
            None => self.spaces.next_chains(CHAIN_KINDS, cursor, bytes, out),
        }
    }

    /// Takes a piece.
    pub(super) fn restore_piece(
        &mut self,
        piece: &[u8],
        cx: &mut Context<'_>,
    ) -> Result<(), WireError> {
        (self.is_restored, self.is_replaying) = (true, true);
        let now = cx.now();
        let mut input = Reader::new(piece);
        match u8::decode(&mut input)? {
            kind::MEMBER => {
                let restored = self.member(cx).restore(&piece[1..], now);
                let wrong =
                    |_| WireError::Variant { what: "member of a broadcast", at: 1, found: 0 };
                return restored.map_err(wrong).map(|_| ());
            }
            kind::COUNTERS => {
                (self.clock, self.horizon) = <(u64, u64)>::decode(&mut input)?;
            }
            kind::SETTLED => {
                for txn in Vec::<TxnId>::decode(&mut input)? {
                    let _ = self.outcomes.ask(txn, txn.sequence);
                }
            }
            kind::ENDED => {
                for (txn, decision) in Vec::<(TxnId, Decision)>::decode(&mut input)? {
                    self.outcomes.decide(txn, decision);
                }
            }
            kind::CALLS => self.calls.extend(Vec::<(TxnId, CallsEnd)>::decode(&mut input)?),
            kind::OBSERVED => {
                for TxnId { node, incarnation, sequence } in Vec::decode(&mut input)? {
                    let from = (incarnation, sequence);
                    // What lay unread in an earlier incarnation is gone, however far it had come.
                    self.clients.insert(node, ShardClient { at: now, from, until: from });
                }
            }
            kind::OBJECTS => {
                for (object, memory) in Vec::<(u64, ObjectMemory)>::decode(&mut input)? {
                    self.objects.restore(object, memory);
                }
            }
            kind::TRANSACTIONS => {
                for (txn, prepared) in Vec::<(TxnId, PreparedTransaction)>::decode(&mut input)? {
                    if self.transactions.has(txn) {
                        return Err(WireError::Variant { what: "transaction", at: 1, found: 0 });
                    }
                    self.insert(txn, prepared, cx);
                }
            }
            kind::CHAINS => self.spaces.restore_chains(&mut input, cx.catalog)?,
            kind::REST => self.spaces.restore_rest(&mut input, cx.catalog)?,
            other => {
                return Err(WireError::Variant { what: "piece", at: 0, found: other.into() });
            }
        }
        Ok(())
    }
}
