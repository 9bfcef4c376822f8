//! Checkpoints of a repository, taken while it serves (see [`muesli_core::checkpoint`]).
//!
//! # What they hold
//! First the *head*, of one moment, that of the log position `L` which the checkpoint stands for:
//! the clock and the upper bound, every prepared transaction with its vote and, where it is decided
//! and waits for its turn, its place, the votes and decisions remembered, and up to where those of
//! clients may have been forgotten. Then the chains of all keys, slot by slot, each as it is when
//! its turn comes. Last the *tail*: the watermark below which versions may have been collected
//! meanwhile.
//!
//! # Why restoring and replaying gives the state
//! Locks, queue, table and memory begin as they were at `L`, and all that changes them is a record
//! after `L`, in its order: they pass through the same states as they did. Of a key, the chain
//! holds exactly what was installed before its turn came, less what was collected. Installs of one
//! key come in the order of their timestamps, because its lock lies between them. So a replayed
//! install at or below the newest version of the chain was installed before the turn, and is left
//! out; every other one came after it, and is made. A key that is removed and written anew may
//! come twice, by an old slot and by a new one; then the later chain counts alone, because the
//! tombstone that let the key be removed lies below the watermark. That a chain may be ahead of
//! the locks does no harm: nothing is served before the replay has reached the end, which lies
//! behind every turn, because the checkpoint counts only once the log is stable up to there.
//!
//! What was collected before the tail was written cannot be read at or above the tail's watermark;
//! below it nothing is read ([`Participant`] refuses, and first reads begin at it). Snapshots that
//! were served after `L` without a record lie below an upper bound, which is in the head or is
//! replayed, and the clock passes it.
//!
//! What a variant [keeps](Variant::ProtocolState) beside these lives in memory alone, with or
//! without checkpoints: a start counts a bound for it
//! ([`restarted`](crate::two_phase::VariantState::restarted)). Under each of them installs of one
//! key come in the order of their versions, those of the past too: a version never lies at or below
//! the one that it replaces.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use muesli_core::checkpoint::{HEAD_PIECE_BYTES, piece, pieces};
use muesli_core::parts::spaces::ChainKinds;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Cursor, Nanos, SmallBytes, SpaceId, Timestamp, TxnId};

use super::Participant;
use super::prepare::Restored;
use crate::two_phase::message::wire::is_call_about;
use crate::two_phase::message::{Answers, Prepare};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::table::{Prepared, Remembered, Settled, judge_settled};
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

/// What a piece begins with.
mod kind {
    pub const CLOCK: u8 = 0;
    pub const PREPARED: u8 = 1;
    pub const MEMORY: u8 = 2;
    pub const CHAINS: u8 = 3;
    pub const TAIL: u8 = 4;
    pub const ANSWERS: u8 = 5;
    pub const SETTLED: u8 = 6;
    pub const REST: u8 = 7;
    pub const LOWER_BOUNDS: u8 = 8;
    pub const LOWER_BOUND: u8 = 9;
    pub const POINTERS: u8 = 10;
    pub const POINTERS_REST: u8 = 11;
    pub const REFUSED: u8 = 12;
    pub const REBUILD: u8 = 13;
}

const CHAIN_KINDS: ChainKinds = ChainKinds { chains: kind::CHAINS, rest: kind::REST, cuts: true };

/// Keys that have moved, each with its pointer.
const POINTER_KINDS: ChainKinds =
    ChainKinds { chains: kind::POINTERS, rest: kind::POINTERS_REST, cuts: true };

/// The stage of a cursor that has handed out everything; space `n` is stage `n`, and the one
/// after the last space is the tail's.
const DONE: u32 = u32::MAX;
/// Where keys move, the stage of the pointers of the first space; then those of the others.
const FIRST_POINTERS: u32 = 1 << 24;

/// A prepared transaction: what was asked, the vote, the place if it is decided, and which of the
/// keys that it read it has locked: a bit for each, so that this adds little to what was asked.
type PreparedNow<V> = (Arc<Prepare<V>>, <V as Variant>::Yes, Option<<V as Variant>::Place>, Bits);
type Bits = Vec<u8>;
type CheckpointKeys = Vec<(SpaceId, SmallBytes)>;

impl<V: Variant> Participant<V> {
    /// Takes what must be of this moment.
    pub(in crate::two_phase) fn checkpoint_of_now(&self) -> Cursor {
        assert!(self.stalled.is_none(), "what has its turn would be restored as not even that");
        let clock = self.time.encode(HEAD_PIECE_BYTES).into_iter();
        let mut first: VecDeque<_> =
            clock.map(|piece| [&[kind::CLOCK], &piece[..]].concat()).collect();
        for prepared in
            self.table.prepared().filter(|_| self.switches.keeps(FamilySwitch::CheckpointPrepared))
        {
            first.push_back(piece(kind::PREPARED, &self.prepared_now(prepared)));
        }
        let (over, settled) = self.table.memory();
        first.extend(pieces(vec![kind::MEMORY], over, HEAD_PIECE_BYTES));
        first.extend(pieces(vec![kind::SETTLED], settled, HEAD_PIECE_BYTES));
        first.extend(pieces(vec![kind::ANSWERS], self.table.all_answers(), HEAD_PIECE_BYTES));
        let (lower_bound, lower_bounds) = self.table.lower_bounds();
        first.extend(pieces(vec![kind::LOWER_BOUNDS], lower_bounds, HEAD_PIECE_BYTES));
        first.extend(pieces(vec![kind::REFUSED], self.table.refused(), HEAD_PIECE_BYTES));
        first.extend(self.whereabouts.rebuild.as_ref().map(|_| vec![kind::REBUILD]));
        // Last: those that are known were known before it.
        first.extend((lower_bound > 0).then(|| piece(kind::LOWER_BOUND, &lower_bound)));
        Cursor { first, ..Cursor::default() }
    }

    fn prepared_now(&self, prepared: &Prepared<V>) -> PreparedNow<V> {
        let reads = &prepared.prepare.reads;
        // What is locked is some of what was read, in the same order.
        let mut shared = prepared.shared.iter().peekable();
        let is_shared = |(space, key, _): &(SpaceId, SmallBytes, _)| {
            let versions = self.spaces.get(*space);
            let is_it = |(of, handle): &&(SpaceId, _)| {
                of == space && versions.is_some_and(|it| it.key(*handle) == key)
            };
            shared.next_if(is_it).is_some()
        };
        let bits = bits(reads.iter().map(is_shared));
        assert!(shared.next().is_none(), "{} shares what others read", prepared.prepare.txn);
        (prepared.prepare.clone(), prepared.yes.clone(), prepared.decided.clone(), bits)
    }

    /// Marks this moment: the head of a checkpoint, and notes of what becomes of the keys.
    pub(in crate::two_phase) fn mark_now(&mut self) -> VecDeque<Vec<u8>> {
        self.spaces.mark();
        self.whereabouts.pointers.mark();
        self.checkpoint_of_now().first
    }

    /// Becomes what another one was at its oldest mark: restored from the head of then, and from
    /// chains that are as they were then.
    pub(in crate::two_phase) fn return_to_mark(
        &mut self,
        other: &mut Participant<V>,
        marked: VecDeque<Vec<u8>>,
        cx: &mut Context<'_, V>,
    ) -> bool {
        let low = other.time.low();
        let pointers = other.whereabouts.pointers.go_back();
        let Some((spaces, pointers)) = other.spaces.go_back().zip(pointers) else { return false };
        (self.spaces, self.whereabouts.pointers) = (spaces, pointers);
        let mut tail = vec![kind::TAIL];
        low.encode(&mut tail);
        let pieces = marked.iter().chain([&tail]);
        pieces.map(|piece| self.restore_piece(piece, cx)).all(|restored| restored.is_ok())
    }

    /// Appends the next piece.
    pub(in crate::two_phase) fn next_piece(
        &self,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if let Some(mut first) = cursor.first.pop_front() {
            out.append(&mut first);
            return true;
        }
        if cursor.step == DONE {
            return false;
        }
        let kinds =
            ChainKinds { cuts: self.switches.keeps(FamilySwitch::CutsChains), ..CHAIN_KINDS };
        if cursor.step < FIRST_POINTERS && self.spaces.next_chains(kinds, cursor, bytes, out) {
            return true;
        }
        if V::POLICIES.moving.may_move() && self.next_pointers(cursor, bytes, out) {
            return true;
        }
        cursor.step = DONE;
        out.push(kind::TAIL);
        self.time.low().encode(out);
        if V::POLICIES.locking.may_have_intervals() {
            self.unneeded.encode(out);
        }
        true
    }

    /// Appends pointers of keys that have moved, after all that are here.
    fn next_pointers(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        if cursor.step < FIRST_POINTERS {
            (cursor.step, cursor.place) = (FIRST_POINTERS, 0);
        }
        cursor.step -= FIRST_POINTERS;
        let more = self.whereabouts.pointers.next_chains(POINTER_KINDS, cursor, bytes, out);
        cursor.step += FIRST_POINTERS;
        more
    }

    /// Takes a piece.
    pub(in crate::two_phase) fn restore_piece(
        &mut self,
        piece: &[u8],
        cx: &mut Context<'_, V>,
    ) -> Result<(), WireError> {
        let mut input = Reader::new(piece);
        match u8::decode(&mut input)? {
            kind::CLOCK => {
                self.time.restore(&mut input)?;
                let known = self.time.judge_restored(cx.catalog.repositories());
                known.map_err(|_| contradiction("clock that can be"))?;
            }
            kind::PREPARED => self.restore_prepared(Wire::decode(&mut input)?, cx)?,
            kind::MEMORY => {
                let over = Vec::<Remembered<V>>::decode(&mut input)?;
                let judged = self.judge_remembered(&over);
                judged.map_err(|_| contradiction("end that can be remembered"))?;
                self.table.recall(over);
            }
            kind::SETTLED => {
                let settled = Vec::<Settled>::decode(&mut input)?;
                judge_settled(&settled).map_err(|_| contradiction("number of a transaction"))?;
                self.table.recall_settled(settled);
            }
            kind::ANSWERS => {
                for (txn, answers) in Vec::<(TxnId, Answers)>::decode(&mut input)? {
                    self.table.keep_answers(txn, answers);
                }
            }
            kind::LOWER_BOUNDS => self.table.recall_lower_bounds(Wire::decode(&mut input)?),
            kind::REFUSED => self.table.recall_refused(Wire::decode(&mut input)?),
            kind::LOWER_BOUND => self.table.recall_lower_bound(u64::decode(&mut input)?),
            kind::REBUILD if V::POLICIES.moving.may_move() => self.replay_rebuild(false),
            kind::CHAINS => self.spaces.restore_chains(&mut input, cx.catalog)?,
            kind::REST => self.spaces.restore_rest(&mut input, cx.catalog)?,
            kind::POINTERS if V::POLICIES.moving.may_move() => {
                self.whereabouts.pointers.restore_chains(&mut input, cx.catalog)?;
            }
            kind::POINTERS_REST if V::POLICIES.moving.may_move() => {
                self.whereabouts.pointers.restore_rest(&mut input, cx.catalog)?;
            }
            kind::TAIL => {
                self.unneeded = self.time.collect(&Wire::decode(&mut input)?);
                if V::POLICIES.locking.may_have_intervals() {
                    let unneeded = Timestamp::decode(&mut input)?;
                    self.unneeded = self.unneeded.min(unneeded);
                }
                self.spaces.all_mut().for_each(|space| space.order_replaced());
            }
            other => return Err(WireError::no_variant("piece of a checkpoint", 0, other)),
        }
        input.finish()
    }

    fn restore_prepared(
        &mut self,
        now: PreparedNow<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<(), WireError> {
        let shared = shared_keys(&now.0, &now.3);
        if !self.can_be(&now, &shared, cx) {
            return Err(contradiction("prepared transaction that can be"));
        }
        let (prepare, yes, decided, _) = now;
        let txn = prepare.txn;
        let restored = Restored { shared: &shared, decided: decided.as_ref() };
        self.enter_prepared(prepare, yes, Nanos(0), Some(restored), cx);
        if let Some(place) = decided {
            let owner = self.table.owner(txn).expect("just entered");
            self.table.get_mut(owner).decided = Some(place.clone());
            if self.orders_waits() {
                self.free_what_it_read(owner, &place, cx);
            }
        }
        Ok(())
    }

    /// Whether a transaction may be prepared beside those that are, in any order: bytes from
    /// outside may say anything.
    fn can_be(
        &mut self,
        now: &PreparedNow<V>,
        shared: &CheckpointKeys,
        cx: &Context<'_, V>,
    ) -> bool {
        let (prepare, yes, decided, bits) = now;
        let known = |space: &SpaceId| cx.catalog.space(*space).is_some();
        let sound = prepare.writes.iter().all(|(space, ..)| known(space))
            && prepare.reads.iter().all(|(space, ..)| known(space))
            && prepare.scans.iter().all(|range| known(&range.space))
            && prepare.delayed.iter().all(|(space, ..)| known(space))
            && bits.len() <= prepare.reads.len().div_ceil(8)
            && prepare.calls().iter().all(|call| is_call_about(call, cx.catalog))
            && self.judge_prepared(prepare, (yes, decided.as_ref()), cx.catalog).is_ok()
            && self.can_be_decided(decided.as_ref(), cx.catalog.repositories());
        let written: BTreeSet<_> =
            prepare.writes.iter().map(|(space, key, _)| (*space, key)).collect();
        sound
            && shared.iter().all(|(space, key)| {
                let lock = self.lock_of((*space, key), cx);
                !lock.is_for_writing() && !written.contains(&(*space, key))
            })
    }

    fn can_be_decided(&self, decided: Option<&V::Place>, repositories: usize) -> bool {
        let logged = |place| self.time.judge_logged_place(place, false, repositories).is_ok();
        decided.is_none_or(logged)
    }
}

fn contradiction(what: &'static str) -> WireError {
    WireError::Variant { what, at: 0, found: 0 }
}

/// A bit for each, eight to a byte; as many bytes as it takes to hold those that are set.
fn bits(all: impl Iterator<Item = bool>) -> Bits {
    let mut bits = Bits::new();
    for (at, _) in all.enumerate().filter(|(_, is_set)| *is_set) {
        bits.resize(at / 8 + 1, 0);
        bits[at / 8] |= 1 << (at % 8);
    }
    bits
}

/// The keys that a transaction read whose bits are set.
fn shared_keys<V: Variant>(prepare: &Prepare<V>, bits: &Bits) -> CheckpointKeys {
    let is_set = |at: usize| bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let reads = prepare.reads.iter().enumerate().filter(|(at, _)| is_set(*at));
    reads.map(|(_, (space, key, _))| (*space, key.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_that_were_set_and_no_more_bytes_than_it_takes() {
        for set in [&[][..], &[0], &[7], &[8], &[1, 9, 30]] {
            let found = bits((0..40).map(|at| set.contains(&at)));
            assert_eq!(found.len(), set.last().map_or(0, |last| last / 8 + 1), "{set:?}");
            let is_set = |at: &usize| found.get(at / 8).is_some_and(|it| it >> (at % 8) & 1 == 1);
            assert_eq!((0..40).filter(is_set).collect::<Vec<_>>(), set);
        }
    }
}
