//! A transaction that runs.

use muesli_core::parts::transaction::TransactionSets;
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Abort, Failure, Nanos, RepositoryId, SmallBytes, SpaceId, Staleness, Timestamp, TxnId,
    TxnOptions,
};

use crate::certified::Context;
use crate::certified::message::command::{CertifiedCommand, ReadKey, ReadRange, SeenVersion};
use crate::certified::message::moment::{CutBound, ReadMoment};
use crate::certified::message::{FoundKey, SiteSnapshot};

/// A transaction that runs.
#[derive(Clone, Debug)]
pub struct RunningTransaction {
    /// As its client wants it.
    pub options: TxnOptions,
    /// Where it is run.
    pub site: RepositoryId,
    /// When it was begun.
    pub begin: Nanos,
    /// What it writes, and all it did, for histories.
    pub sets: TransactionSets,
    /// Whether it has asked its site for anything.
    pub has_asked: bool,
    /// What it reads at, once it has read.
    pub snapshot: Option<SiteSnapshot>,
    /// Where that lies in the order of commits, or a later place; zero: that is not known.
    pub cut: Timestamp,
    /// What it has read.
    reads: Vec<ReadKey>,
    /// Ranges that it has read.
    pub ranges: Vec<ReadRange>,
}

impl RunningTransaction {
    /// One that has done nothing.
    pub fn new(options: TxnOptions, site: RepositoryId, begin: Nanos) -> RunningTransaction {
        let (sets, has_asked, snapshot, cut, reads, ranges) = Default::default();
        RunningTransaction { options, site, begin, sets, has_asked, snapshot, cut, reads, ranges }
    }

    /// Whether it reads at a cut, and is not certified.
    pub fn may_be_stale(&self) -> bool {
        self.options.staleness.is_some() && !self.options.strict
    }

    /// At what it reads from now on. Its session may have committed at another site: the cut is to
    /// be behind all that it has seen.
    pub fn moment(&self) -> ReadMoment {
        match (self.snapshot, self.options.staleness) {
            (Some(snapshot), _) => ReadMoment::Known(snapshot),
            (None, Some(Staleness { most, waits })) if self.may_be_stale() => {
                let seen = self.options.lower_bound;
                ReadMoment::Cut(CutBound { most, waits, seen })
            }
            (None, _) => ReadMoment::Present,
        }
    }

    /// Notes at what it reads.
    ///
    /// # Errors
    /// The site does not know that moment any more, or begins another incarnation.
    pub fn take_snapshot(
        &mut self,
        read: Option<SiteSnapshot>,
        cut: Timestamp,
    ) -> Result<(), Failure> {
        let read = read.ok_or(Failure::Aborted(Abort::SnapshotTooOld))?;
        self.cut = self.cut.max(cut);
        match *self.snapshot.get_or_insert(read) == read {
            true => Ok(()),
            false => Err(Failure::Aborted(Abort::SnapshotTooOld)),
        }
    }

    /// Whether it reads at a cut that was proposed since it began.
    pub fn catches_up(&self) -> bool {
        let is_fresh = self.options.staleness.is_some_and(|it| it.most == Nanos(0));
        is_fresh && self.may_be_stale() && self.snapshot.is_some()
    }

    /// Whether it has read nothing and writes nothing.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.ranges.is_empty() && self.sets.writes.is_empty()
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

    /// Its commit.
    pub fn command(&mut self, txn: TxnId) -> CertifiedCommand {
        let writes = self.sets.writes.iter();
        let writes = writes.map(|it| (it.space, it.key.clone(), it.value.clone())).collect();
        let reads = std::mem::take(&mut self.reads);
        let ranges = std::mem::take(&mut self.ranges);
        CertifiedCommand { txn, after: 0, spaces: 0, reads, ranges, writes, calls: Vec::new() }
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
