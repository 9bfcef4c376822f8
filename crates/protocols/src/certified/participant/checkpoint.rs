//! Checkpoints of a site, taken while it goes on.
//!
//! First there is what must be of one moment: the member of the broadcast, counters, how
//! transactions ended, what is remembered of objects, and who has claimed them. Then the keys come
//! as their turn does, perhaps with what later commits have written. Who restores it replays what
//! was certified after that moment by the decisions that were logged: what is there already is not
//! written again. A command whose decision was not stable has no later one with a stable decision,
//! and a checkpoint counts only once all that it may hold is stable: so such a command is certified
//! with exactly the keys that it was certified with.

use muesli_broadcast::epochs::MemberName;
use muesli_core::checkpoint::{HEAD_PIECE_BYTES, piece, pieces};
use muesli_core::parts::spaces::ChainKinds;
use muesli_core::wire::Reader;
use muesli_core::{Cursor, Nanos, NodeId, Wire as _, WireError};

use super::CertifiedSite;
use super::ends::{CoordinatorHead, KnownEnd, SiteEnds};
use crate::certified::Context;
use crate::certified::state::claimed::ClaimedObject;
use crate::certified::state::cuts::CutOrder;
use crate::certified::state::objects::ObjectMemory;

/// What a piece begins with.
pub(super) mod kind {
    pub const MEMBER: u8 = 0;
    pub const COUNTERS: u8 = 1;
    pub const COORDINATORS: u8 = 2;
    pub const ENDED: u8 = 3;
    pub const FORGOTTEN: u8 = 4;
    pub const OBJECTS: u8 = 5;
    pub const CHAINS: u8 = 6;
    pub const REST: u8 = 7;
    pub const NAME: u8 = 8;
    pub const CUTS: u8 = 9;
    pub const CLAIMED: u8 = 10;
}

pub(super) const CHAIN_KINDS: ChainKinds =
    ChainKinds { chains: kind::CHAINS, rest: kind::REST, cuts: true };

impl CertifiedSite {
    /// Takes what must be of this moment.
    pub(super) fn checkpoint_of_now(&self) -> Cursor {
        assert!(!self.is_restored, "a checkpoint of what is not replayed to its end");
        assert!(self.undecided.is_empty(), "a checkpoint in the midst of a replay");
        let member = self.member.iter().flat_map(|member| member.checkpoint());
        let member = member.map(|piece| [&[kind::MEMBER], &piece[..]].concat());
        let counters = piece(kind::COUNTERS, &((self.clock, self.counter), self.incarnation));
        let name = self.renamed.map(|name| piece(kind::NAME, &name));
        let cuts = piece(kind::CUTS, &self.cuts.order);
        let first = name.into_iter().chain(member).chain([counters, cuts]);
        let first = first.chain(self.end_pieces()).chain(self.claim_pieces());
        Cursor { first: first.chain(self.object_pieces()).collect(), ..Cursor::default() }
    }

    /// How transactions ended.
    pub(super) fn end_pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        let heads = pieces(vec![kind::COORDINATORS], self.ends.heads(), HEAD_PIECE_BYTES);
        let ended = pieces(vec![kind::ENDED], self.ends.ended(), HEAD_PIECE_BYTES);
        let forgotten = piece(kind::FORGOTTEN, &self.ends.forgotten());
        heads.into_iter().chain(ended).chain([forgotten])
    }

    /// What is remembered of objects.
    pub(super) fn object_pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        pieces(vec![kind::OBJECTS], self.objects.iter(), HEAD_PIECE_BYTES)
    }

    /// Who has claimed which objects.
    pub(super) fn claim_pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        pieces(vec![kind::CLAIMED], self.claimed.iter(), HEAD_PIECE_BYTES)
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
        self.is_restored = true;
        let now = cx.now();
        let mut input = Reader::new(piece);
        match u8::decode(&mut input)? {
            kind::MEMBER => {
                let restored = self.member(cx).restore(&piece[1..], now);
                let wrong =
                    |_| WireError::Variant { what: "member of a broadcast", at: 1, found: 0 };
                return restored.map_err(wrong).map(|_| ());
            }
            kind::NAME => self.rename(MemberName::decode(&mut input)?),
            kind::COUNTERS => {
                ((self.clock, self.counter), self.incarnation) =
                    <((u64, u64), u64)>::decode(&mut input)?;
            }
            kind::CUTS => self.cuts.restore(CutOrder::decode(&mut input)?),
            kind @ (kind::COORDINATORS | kind::ENDED | kind::FORGOTTEN) => {
                restore_ends(&mut self.ends, kind, &mut input, now)?;
            }
            kind::OBJECTS => {
                for (object, memory) in Vec::<(u64, ObjectMemory)>::decode(&mut input)? {
                    self.objects.restore(object, memory);
                }
            }
            kind::CLAIMED => {
                for (object, one) in Vec::<(u64, ClaimedObject)>::decode(&mut input)? {
                    self.claimed.restore(object, one);
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

/// Takes a piece of how transactions ended.
///
/// # Errors
/// It is none.
pub(super) fn restore_ends(
    ends: &mut SiteEnds,
    kind: u8,
    input: &mut Reader<'_>,
    now: Nanos,
) -> Result<(), WireError> {
    match kind {
        kind::COORDINATORS => {
            let heads = Vec::<CoordinatorHead>::decode(input)?;
            heads.into_iter().for_each(|head| ends.restore_head(head, now));
        }
        kind::ENDED => {
            let all = Vec::<KnownEnd>::decode(input)?;
            all.into_iter().for_each(|end| ends.restore_end(end));
        }
        _ => ends.restore_forgotten(<(Vec<NodeId>, bool)>::decode(input)?, now),
    }
    Ok(())
}
