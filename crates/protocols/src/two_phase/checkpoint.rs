//! Checkpoints of a repository, taken while it serves (see [`muesli_core::checkpoint`]).
//!
//! # What they hold
//! First the *head*, of one moment, that of the log position `L` which the checkpoint stands for:
//! the clock and the ceiling, every prepared transaction with its vote and, where it is decided and
//! waits for its turn, its place, and the votes and decisions remembered.
//! Then the chains of all keys, slot by slot, each as it is when its turn comes. Last the *tail*:
//! the watermark below which versions may have been collected meanwhile.
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
//! were served after `L` without a record lie below a ceiling, which is in the head or is
//! replayed, and the clock passes it.
//!
//! What a variant [keeps](Variant::Keeper) beside these lives in memory alone, with or without
//! checkpoints: a start counts a bound for it ([`Variant::restarted`]). Under each of them installs
//! of one key come in the order of their versions, those of the past too: a version never lies at
//! or below the one that it replaces.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use muesli_core::checkpoint::piece;
use muesli_core::parts::versions::Handle;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{Cursor, Nanos, SmallBytes, SpaceId, TxnId};

use super::Variant;
use super::message::{Answers, Prepare};
use super::participant::{Context, Participant};
use super::table::{Memory, Prepared};
use super::time::Time;
use super::turns::contradicts_itself;
use super::wire::is_call_about;

/// What a piece begins with.
mod kind {
    pub const CLOCK: u8 = 0;
    pub const PREPARED: u8 = 1;
    pub const MEMORY: u8 = 2;
    pub const CHAINS: u8 = 3;
    pub const TAIL: u8 = 4;
    pub const ANSWERS: u8 = 5;
}

/// The stage of a cursor that has handed out everything; space `n` is stage `n`, and the one
/// after the last space is the tail's.
const DONE: u32 = u32::MAX;
/// At most so many remembered votes stand in a piece.
const MEMORY_PIECE: usize = 1024;

/// A prepared transaction: what was asked, the vote, the place if it is decided, and which of the
/// keys that it read it has locked.
type PreparedNow<V> = (Arc<Prepare<V>>, <V as Variant>::Yes, Option<<V as Variant>::Place>, Keys);
type Keys = Vec<(SpaceId, SmallBytes)>;

impl<V: Variant> Participant<V> {
    /// Takes what must be of this moment.
    pub(super) fn checkpoint_of_now(&self) -> Cursor {
        let mut clock = vec![kind::CLOCK];
        self.time.encode(&mut clock);
        let mut pieces = VecDeque::from([clock]);
        for prepared in self.table.prepared().filter(|_| self.rules.checkpoint_prepared) {
            pieces.push_back(piece(kind::PREPARED, &self.prepared_now(prepared)));
        }
        let (over, settled) = self.table.memory();
        for part in over.chunks(MEMORY_PIECE) {
            let memory: Memory<V> = (part.to_vec(), Vec::new());
            pieces.push_back(piece(kind::MEMORY, &memory));
        }
        pieces.push_back(piece::<Memory<V>>(kind::MEMORY, &(Vec::new(), settled)));
        for part in self.table.all_answers().chunks(MEMORY_PIECE) {
            pieces.push_back(piece::<Vec<(TxnId, Answers)>>(kind::ANSWERS, &part.to_vec()));
        }
        Cursor { first: pieces, ..Cursor::default() }
    }

    fn prepared_now(&self, prepared: &Prepared<V>) -> PreparedNow<V> {
        let key = |(space, handle): &(SpaceId, Handle)| {
            let versions = self.spaces.get(*space).expect("a key of it is locked");
            (*space, versions.key(*handle).clone())
        };
        let shared = prepared.shared.iter().map(key).collect();
        (prepared.prepare.clone(), prepared.yes.clone(), prepared.decided.clone(), shared)
    }

    /// Marks this moment: the head of a checkpoint, and notes of what becomes of the keys.
    pub(super) fn mark_now(&mut self) -> VecDeque<Vec<u8>> {
        self.spaces.mark();
        self.checkpoint_of_now().first
    }

    /// Becomes what another one was at its oldest mark: restored from the head of then, and from
    /// chains that are as they were then.
    pub(super) fn return_to_mark(
        &mut self,
        other: &mut Participant<V>,
        marked: VecDeque<Vec<u8>>,
        cx: &mut Context<'_, V>,
    ) -> bool {
        let low = other.time.low();
        let Some(spaces) = other.spaces.go_back() else { return false };
        self.spaces = spaces;
        let mut tail = vec![kind::TAIL];
        low.encode(&mut tail);
        let pieces = marked.iter().chain([&tail]);
        pieces.map(|piece| self.restore_piece(piece, cx)).all(|restored| restored.is_ok())
    }

    /// Appends the next piece.
    pub(super) fn next_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        if let Some(mut first) = cursor.first.pop_front() {
            out.append(&mut first);
            return true;
        }
        if cursor.stage == DONE {
            return false;
        }
        if self.spaces.next_chains(kind::CHAINS, cursor, bytes, out) {
            return true;
        }
        cursor.stage = DONE;
        out.push(kind::TAIL);
        self.time.low().encode(out);
        true
    }

    /// Takes a piece.
    pub(super) fn restore_piece(
        &mut self,
        piece: &[u8],
        cx: &mut Context<'_, V>,
    ) -> Result<(), WireError> {
        let mut input = Reader::new(piece);
        match u8::decode(&mut input)? {
            kind::CLOCK => self.time.restore(&mut input)?,
            kind::PREPARED => self.restore_prepared(Wire::decode(&mut input)?, cx)?,
            kind::MEMORY => {
                self.table.recall(Memory::<V>::decode(&mut input)?);
            }
            kind::ANSWERS => {
                for (txn, answers) in Vec::<(TxnId, Answers)>::decode(&mut input)? {
                    self.table.keep_answers(txn, answers);
                }
            }
            kind::CHAINS => self.spaces.restore_chains(&mut input, cx.catalog)?,
            kind::TAIL => {
                self.unneeded = self.time.collect(&Wire::decode(&mut input)?);
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
        let contradiction =
            WireError::Variant { what: "prepared transaction that can be", at: 0, found: 0 };
        if !self.can_be(&now, cx) {
            return Err(contradiction);
        }
        let (prepare, yes, decided, shared) = now;
        let txn = prepare.txn;
        self.enter_prepared(prepare, yes.clone(), Nanos(0), Some(&shared), cx);
        if let Some(place) = decided {
            let owner = self.table.owner(txn).expect("just entered");
            self.time.decided(txn, &yes, &place, owner);
            self.table.get_mut(owner).decided = Some(place.clone());
            if self.orders_waits() {
                self.free_what_it_read(owner, &place, cx);
            }
        }
        Ok(())
    }

    /// Whether a transaction may be prepared beside those that are, in any order: bytes from
    /// outside may say anything.
    fn can_be(&mut self, now: &PreparedNow<V>, cx: &Context<'_, V>) -> bool {
        let (prepare, yes, decided, shared) = now;
        let known = |space: &SpaceId| cx.catalog.space(*space).is_some();
        let mut reads = prepare.reads.iter().map(|(space, key, _)| (*space, key));
        let sound = prepare.writes.iter().all(|(space, ..)| known(space))
            && prepare.reads.iter().all(|(space, ..)| known(space))
            && prepare.scans.iter().all(|range| known(&range.space))
            && prepare.delayed.iter().all(|(space, ..)| known(space))
            && shared.iter().all(|it| reads.any(|read| read == (it.0, &it.1)))
            && self.table.owner(prepare.txn).is_none()
            && self.time.can_enter(prepare.txn, yes, decided.as_ref())
            && prepare.calls().iter().all(|call| is_call_about(call, cx.catalog))
            && !contradicts_itself(prepare);
        let mut written = BTreeSet::new();
        sound
            && prepare.writes.iter().all(|(space, key, _)| {
                self.lock_of((*space, key), cx).is_free() && written.insert((*space, key))
            })
            && shared.iter().all(|(space, key)| {
                let lock = self.lock_of((*space, key), cx);
                !lock.is_for_writing() && !written.contains(&(*space, key))
            })
            && self.delayed_are_open(prepare, cx)
    }
}
