//! A transaction that runs.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::parts::transaction::TransactionSets;
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Catalog, Nanos, OpId, RepositoryId, SmallBytes, SpaceId, Staleness, Timestamp, TxnId,
    TxnOptions,
};

use crate::certified::message::FoundKey;
use crate::certified::message::command::{CertifiedCommand, ReadKey, ReadRange, SeenVersion};
use crate::sharded::Context;
use crate::sharded::locator::{ShardId, shard_of_key};

/// An end that waits until its transaction lies beyond the clocks of all shards.
#[derive(Clone, Debug)]
pub struct DeferredEnd {
    /// Who waits.
    pub op: OpId,
    /// The procedures of each shard, and the shard of each procedure; none: it has read nothing,
    /// and writes.
    pub calls: Option<(BTreeMap<ShardId, CertifiedCommand>, Vec<ShardId>)>,
}

/// A transaction that runs.
#[derive(Clone, Debug)]
pub struct ShardedTransaction {
    /// As its client wants it.
    pub options: TxnOptions,
    /// When it was begun.
    begin: Nanos,
    /// What it writes, and all it did, for histories.
    pub sets: TransactionSets,
    /// The members that it has asked for anything.
    pub asked: BTreeSet<RepositoryId>,
    /// What it reads at, once that is known.
    pub snapshot: Option<Timestamp>,
    /// The request whose answer says that.
    pub choosing: Option<u64>,
    /// The largest clock of a shard that it was told of.
    pub clock: u64,
    /// It lies beyond the clocks of all shards, as a strict one is to, or beyond what they were a
    /// while ago, as one is to that may be stale; or it need not.
    pub is_beyond_clocks: bool,
    /// What waits until it does.
    pub ends: Option<DeferredEnd>,
    /// What it has read.
    reads: Vec<ReadKey>,
    /// Ranges that it has read, each with the shard whose keys of it they are.
    ranges: Vec<(ShardId, ReadRange)>,
}

impl ShardedTransaction {
    /// One that has done nothing.
    pub fn new(options: TxnOptions, begin: Nanos) -> ShardedTransaction {
        let (sets, asked, snapshot, choosing, reads, ranges) = Default::default();
        let is_beyond_clocks = !options.strict && options.staleness.is_none();
        let (clock, ends) = (0, None);
        ShardedTransaction {
            options,
            begin,
            sets,
            asked,
            snapshot,
            choosing,
            clock,
            is_beyond_clocks,
            ends,
            reads,
            ranges,
        }
    }

    /// A key was read.
    pub fn has_read(&mut self, space: SpaceId, key: SmallBytes, found: &FoundKey, records: bool) {
        if records {
            self.sets.operations.read(space, &key, found.recorded(), found.value.as_ref());
        }
        let seen = match found.value {
            Some(_) => SeenVersion::Present { version: found.version },
            None => SeenVersion::Absent { deletions: found.deletions },
        };
        self.reads.push(ReadKey { space, key, seen });
    }

    /// A part of a range was read, that of a shard.
    pub fn has_read_range(&mut self, shard: ShardId, range: ReadRange) {
        assert_eq!(range.within.space, range.seen.space, "a range of two spaces");
        self.ranges.push((shard, range));
    }

    /// Whether it reads at a moment that is as old as its client permits.
    pub fn may_be_stale(&self) -> bool {
        self.options.staleness.is_some() && !self.options.strict
    }

    /// How old the clocks may be that it is to lie beyond, and whether to wait for them.
    pub fn clock_age(&self) -> (Nanos, bool) {
        match self.options.staleness {
            Some(Staleness { most, waits }) if self.may_be_stale() => (most, waits),
            _ => (Nanos(0), true),
        }
    }

    /// Whether it has read something.
    pub fn has_reads(&self) -> bool {
        !self.reads.is_empty() || !self.ranges.is_empty()
    }

    /// Its commit: what each shard has to do with it.
    pub fn commands(
        &mut self,
        txn: TxnId,
        catalog: &Catalog,
    ) -> BTreeMap<ShardId, CertifiedCommand> {
        let seen = self.snapshot.map_or(0, Timestamp::counter);
        let after = self.options.lower_bound.counter().max(seen);
        let mut all = BTreeMap::new();
        let empty = || {
            let (spaces, reads, ranges, writes, calls) = Default::default();
            CertifiedCommand { txn, after, spaces, reads, ranges, writes, calls }
        };
        for read in std::mem::take(&mut self.reads) {
            let shard = shard_of_key(read.space, &read.key, catalog);
            all.entry(shard).or_insert_with(empty).reads.push(read);
        }
        for (shard, range) in std::mem::take(&mut self.ranges) {
            all.entry(shard).or_insert_with(empty).ranges.push(range);
        }
        for write in &self.sets.writes {
            let shard = shard_of_key(write.space, &write.key, catalog);
            let command = all.entry(shard).or_insert_with(empty);
            command.writes.push((write.space, write.key.clone(), write.value.clone()));
        }
        all
    }

    /// Writes it into the history of the node, if there is one.
    pub fn record(
        &self,
        id: TxnId,
        status: Status,
        ended: (Option<Nanos>, Option<Timestamp>),
        cx: &mut Context<'_>,
    ) {
        if let Some(recorder) = &mut cx.effects.recorder {
            self.sets.record(id, (self.begin, &self.options), status, ended, recorder);
        }
    }

    /// Writes it into a history, not ended.
    pub fn record_at(&self, id: TxnId, status: Status, recorder: &mut Recorder) {
        self.sets.record(id, (self.begin, &self.options), status, (None, None), recorder);
    }
}
