//! What is asked of a record that another member of the group has written, before it is replayed.
//!
//! A group's log holds what its leaders decided, and a leader may lie. Each member judges each
//! record by the state that the records before it have made, and leaves out what contradicts it:
//! all members come to the same state, whatever it is, and none of them ends. Nothing is asked that
//! the catalog says of spaces, which one member may know before another.
//!
//! What an honest leader logs is always taken. It may have come to timestamps that are taken from
//! nobody else ([`has_capacity`]), may have forgotten ends that other members still know, and logs
//! that a transaction is prepared that had waited while its client went on.

use muesli_core::judgement::{distinct, ensure, has_capacity, sequence};
use muesli_core::parts::locks::LockWord;
use muesli_core::{
    Catalog, Decision, Rejection, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId,
};

use crate::two_phase::Variant;
use crate::two_phase::delayed::actions::{contradicts_itself, is_open};
use crate::two_phase::message::moves::MovedKey;
use crate::two_phase::message::{Prepare, Record, Vote, Writes};
use crate::two_phase::participant::Participant;
use crate::two_phase::participant::prepare::can_write;
use crate::two_phase::table::Remembered;
use crate::two_phase::time::{Snapshot, Time};

impl<V: Variant> Participant<V> {
    /// Whether a record can come next.
    pub(in crate::two_phase) fn judge_logged(
        &self,
        record: &Record<V>,
        catalog: &Catalog,
    ) -> Result<(), Rejection> {
        let repositories = catalog.repositories();
        match record {
            Record::Prepared { prepare, at } => self.judge_prepared(prepare, (at, None), catalog),
            Record::Refused { txn, .. } => {
                sequence(*txn)?;
                ensure(self.table.owner(*txn).is_none(), Rejection::State)
            }
            Record::Decided { txn, decision } => {
                sequence(*txn)?;
                self.judge_decided(*txn, decision, repositories)
            }
            Record::Committed { at, .. } => self.time.judge_logged_place(at, true, repositories),
            Record::Ran { txn, writes, .. } => {
                sequence(*txn)?;
                self.judge_ran(*txn, writes)
            }
            Record::UpperBound { at } => has_capacity(*at),
            Record::Low { low } => low.judge(repositories).map(|_| ()),
            Record::Rebuild { .. } => Ok(()),
            Record::NewOwners { moved } | Record::KnownOwners { moved } => {
                let has_version = |it: &MovedKey| ensure(it.at > Timestamp::ZERO, Rejection::Range);
                moved.iter().try_for_each(|it| has_version(it).and_then(|()| has_capacity(it.at)))
            }
        }
    }

    /// A transaction that is prepared finds its place in the queue free, and its locks. Those for
    /// reading are left where they are not. In a checkpoint it may be decided.
    pub(in crate::two_phase) fn judge_prepared(
        &self,
        prepare: &Prepare<V>,
        (yes, decided): (&V::Yes, Option<&V::Place>),
        catalog: &Catalog,
    ) -> Result<(), Rejection> {
        sequence(prepare.txn)?;
        ensure(prepare.settled_below <= prepare.txn.sequence, Rejection::Range)?;
        let writes = !prepare.writes.is_empty();
        V::Time::judge_logged_yes(prepare.txn, writes, yes, catalog.repositories())?;
        ensure(self.table.owner(prepare.txn).is_none(), Rejection::State)?;
        ensure(self.time.can_enter(prepare.txn, yes, decided), Rejection::State)?;
        self.judge_members(&prepare.participants, catalog)?;
        for (space, key, _) in &prepare.writes {
            ensure(can_write(self.lock_at(*space, key), self.has_intervals()), Rejection::State)?;
        }
        if prepare.writes.len() > 1 {
            distinct(prepare.writes.iter().map(|(space, key, _)| (*space, key)))?;
        }
        match prepare.delays() {
            true => self.judge_delays(prepare, catalog),
            false => Ok(()),
        }
    }

    /// This repository takes part, and all who do are there, once each.
    fn judge_members(&self, all: &[RepositoryId], catalog: &Catalog) -> Result<(), Rejection> {
        ensure(all.windows(2).all(|pair| pair[0] < pair[1]), Rejection::Range)?;
        let is_there = |last: &RepositoryId| usize::from(last.0) < catalog.repositories();
        ensure(all.last().is_some_and(is_there), Rejection::Range)?;
        ensure(all.contains(&self.id), Rejection::Role)
    }

    /// What is left to the turn has its locks, with nobody but those who share them.
    fn judge_delays(&self, prepare: &Prepare<V>, catalog: &Catalog) -> Result<(), Rejection> {
        ensure(V::delays_actions(&self.protocol_switches), Rejection::State)?;
        ensure(!contradicts_itself(prepare), Rejection::Range)?;
        for (space, key, _) in &prepare.delayed {
            ensure(is_open(self.lock_at(*space, key)), Rejection::State)?;
        }
        for call in prepare.calls() {
            ensure(usize::from(call.partition) < catalog.partitions(), Rejection::Range)?;
            let has_its_lock = |lock: LockWord| lock.is_free() || call.steady && is_open(lock);
            for (space, key) in &call.keys {
                ensure(has_its_lock(self.lock_at(*space, key)), Rejection::State)?;
            }
        }
        Ok(())
    }

    fn lock_at(&self, space: SpaceId, key: &SmallBytes) -> LockWord {
        let versions = self.versions(space);
        let lock = versions.and_then(|it| Some(it.lock(it.find(key)?)));
        lock.unwrap_or_default()
    }

    /// A transaction ends once, and commits where it was prepared, and where its vote allows.
    fn judge_decided(
        &self,
        txn: TxnId,
        decision: &Decision<V::Place>,
        repositories: usize,
    ) -> Result<(), Rejection> {
        let Some(owner) = self.table.owner(txn) else {
            return ensure(matches!(decision, Decision::Abort(_)), Rejection::State);
        };
        ensure(self.table.get(owner).decided.is_none(), Rejection::State)?;
        self.judge_end(txn, decision, repositories)
    }

    /// Whether an end can be that of a transaction here: its votes may be those of liars.
    pub(in crate::two_phase) fn judge_end(
        &self,
        txn: TxnId,
        decision: &Decision<V::Place>,
        repositories: usize,
    ) -> Result<(), Rejection> {
        if let Decision::Commit(place) = decision {
            self.time.judge_logged_place(place, false, repositories)?;
        }
        ensure(self.can_end_as(txn, decision), Rejection::State)
    }

    /// Procedures have written in the turn of a transaction that was decided. What is told is told
    /// of one that is known, or is not kept.
    fn judge_ran(&self, txn: TxnId, writes: &Writes) -> Result<(), Rejection> {
        let owner = self.table.owner(txn);
        let is_decided = owner.is_some_and(|it| self.table.get(it).decided.is_some());
        ensure(is_decided || writes.is_empty(), Rejection::State)?;
        let is_kept = !self.table.is_settled(txn) && !self.table.is_of_earlier_incarnation(txn);
        ensure(!is_kept || self.table.known_vote(txn).is_some(), Rejection::State)
    }

    /// Whether ends that a piece of a checkpoint has can be: none is of a transaction that another
    /// piece has as prepared.
    pub(in crate::two_phase) fn judge_remembered(
        &self,
        over: &[Remembered<V>],
    ) -> Result<(), Rejection> {
        over.iter().try_for_each(|(txn, vote, _)| {
            sequence(*txn)?;
            ensure(!matches!(vote, Vote::Yes(_)), Rejection::Range)?;
            ensure(self.table.owner(*txn).is_none(), Rejection::State)
        })
    }
}
