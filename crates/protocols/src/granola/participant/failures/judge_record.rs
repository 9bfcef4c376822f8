//! What is asked of a record that another member of the group has written, before it is replayed.
//!
//! A group's log holds what its leaders decided, and a leader may lie. Each member judges each
//! record by the state that the records before it have made, and leaves out what contradicts it:
//! all members come to the same state, whatever it is, and none of them ends. Nothing is asked that
//! the catalog says of spaces, which one member may know before another; and what an honest leader
//! logs is always taken, though its own timestamps may lie above all that are taken from others.

use muesli_core::judgement::{ensure, has_capacity, sequence};
use muesli_core::parts::spaces::Newest;
use muesli_core::{Catalog, Rejection, Timestamp};

use crate::granola::message::wire::is_placed;
use crate::granola::message::{Agreement, Record, Request};
use crate::granola::participant::Participant;
use crate::granola::participant::migration::CarriedMoves;

impl Participant {
    /// Whether a record can come next.
    pub(in super::super) fn judge_logged(
        &self,
        record: &Record,
        catalog: &Catalog,
    ) -> Result<(), Rejection> {
        match record {
            Record::Voted { request, at } => self.judge_voted(request, *at, catalog),
            Record::Against { txn, ballot } => {
                sequence(*txn)?;
                ensure(ballot.end_against().is_some(), Rejection::Range)?;
                ensure(!self.active.contains_key(txn), Rejection::State)
            }
            Record::Done { txn, at, .. } => {
                sequence(*txn)?;
                has_capacity(*at)
            }
            Record::SharedData { txn, .. } => {
                sequence(*txn)?;
                let is_known = self.active.contains_key(txn) || self.memory.get(*txn).is_some();
                ensure(is_known, Rejection::State)
            }
            Record::Dropped { txn, .. } => {
                sequence(*txn)?;
                ensure(self.active.contains_key(txn), Rejection::State)
            }
            Record::Staged { partition, keys, .. } => self.judge_staged(*partition, keys, catalog),
            Record::Reached { at } | Record::UpperBound { at } => has_capacity(*at),
        }
    }

    /// What several repositories take part in, this one among them, is voted for once.
    pub(in super::super) fn judge_voted(
        &self,
        request: &Request,
        at: Timestamp,
        catalog: &Catalog,
    ) -> Result<(), Rejection> {
        sequence(request.txn)?;
        has_capacity(at)?;
        has_capacity(request.lower_bound)?;
        ensure(request.settled_below <= request.txn.sequence, Rejection::Range)?;
        ensure(request.participants.contains(&self.id), Rejection::Role)?;
        ensure(request.agreement != Agreement::Alone, Rejection::Range)?;
        ensure(request.participants.len() > 1, Rejection::Range)?;
        ensure(is_placed(request, catalog), Rejection::Catalog)?;
        ensure(self.is_logged(request), Rejection::State)?;
        ensure(!self.active.contains_key(&request.txn), Rejection::State)
    }

    /// Keys are fetched of a partition that is not here.
    fn judge_staged(
        &self,
        partition: u16,
        keys: &[Newest],
        catalog: &Catalog,
    ) -> Result<(), Rejection> {
        ensure(usize::from(partition) < catalog.partitions(), Rejection::Catalog)?;
        ensure(!self.holds(partition, catalog), Rejection::State)?;
        keys.iter().try_for_each(|(_, _, at, _)| has_capacity(*at))
    }
}

/// Whether moves that a piece of a checkpoint carries are of partitions and repositories that are
/// there.
pub(in super::super) fn judge_moves(
    (held, names, loose): &CarriedMoves,
    catalog: &Catalog,
) -> Result<(), Rejection> {
    let is_there = |partition: &u16| usize::from(*partition) < catalog.partitions();
    let named = names.iter().map(|(partition, _)| partition);
    let partitions = held.iter().map(|(partition, _)| partition).chain(named).chain(loose);
    ensure(partitions.into_iter().all(is_there), Rejection::Catalog)?;
    held.iter().try_for_each(|(_, held)| has_capacity(held.at))?;
    ensure(names.iter().all(|(_, owners)| owners.can_be(catalog)), Rejection::Catalog)
}
