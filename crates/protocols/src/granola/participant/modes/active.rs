//! A transaction that a repository has taken up and that is not over there.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use muesli_core::parts::votes::Votes;
use muesli_core::{LogPosition, Nanos, RepositoryId, Timestamp, TxnId};

use super::WaitQueue;
use crate::granola::message::Request;
use crate::granola::participant::execution::prepared::PreparedRun;

/// A transaction that is not over here.
///
/// Invariants: its place is known once all votes are there, and only then; it is bound by its place
/// or by what was proposed here, which no place lies below.
#[derive(Clone, Debug)]
pub(in super::super) struct Active {
    pub request: Arc<Request>,
    /// What stands for the request, where its client is not believed; zero elsewhere.
    pub about: u64,
    /// What was proposed here.
    pub proposed: Timestamp,
    /// Where it stands in the queue: it will not be done below this.
    pub bound: Timestamp,
    /// Which wait queue of the queue it stands in, if it is there.
    pub wait_queue: WaitQueue,
    /// The proposals of the others.
    pub votes: Votes<RepositoryId, Timestamp>,
    /// Its place, once all votes are there.
    pub place: Option<Timestamp>,
    /// In locking mode: what came of it. What has nothing here stands in the queue.
    prepared: Option<Box<PreparedRun>>,
    /// How many bytes it takes, with what came of it, about.
    bytes: usize,
    /// Where the log of this life has the vote; whoever comes after it rests on that.
    pub voted: LogPosition,
    /// When it came.
    pub since: Nanos,
    /// When it came, or when votes on it were last asked for.
    pub asked: Nanos,
}

impl Active {
    /// A transaction that is taken up now, proposed `at`: neither prepared nor logged yet.
    pub fn new(
        request: Arc<Request>,
        about: u64,
        at: Timestamp,
        votes: Votes<RepositoryId, Timestamp>,
        now: Nanos,
    ) -> Active {
        Active {
            bytes: size_of::<Active>() + request.held_bytes(),
            request,
            about,
            proposed: at,
            bound: at,
            wait_queue: WaitQueue::Placed,
            place: votes.is_complete().then_some(at),
            votes,
            prepared: None,
            voted: LogPosition(0),
            since: now,
            asked: now,
        }
    }

    /// Whether it was run, and what came of it put aside.
    pub fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// What came of it.
    pub fn into_prepared(self) -> Option<Box<PreparedRun>> {
        self.prepared
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    fn assert_invariants(&self) {
        let txn = self.request.txn;
        self.votes.assert_invariants();
        assert_eq!(self.place.is_some(), self.votes.is_complete(), "whether {txn} has its place");
        assert_eq!(self.bound, self.place.unwrap_or(self.proposed), "what binds {txn}");
        assert!(self.bound >= self.proposed, "{txn} lies below its proposal {}", self.proposed);
        assert_eq!(self.bytes, self.count_bytes(), "bytes of {txn}");
    }

    /// How many bytes it takes, counted anew.
    fn count_bytes(&self) -> usize {
        let prepared = self.prepared.as_ref().map_or(0, |prepared| prepared.held_bytes());
        size_of::<Active>() + self.request.held_bytes() + prepared
    }
}

/// The transactions that are not over here, by their ids, and how many bytes they take.
///
/// Invariants: each stands under its own id, and the bytes are those of all of them.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Actives {
    all: BTreeMap<TxnId, Active>,
    bytes: usize,
    /// Of these, those of requests that leave no more than there was.
    adding_nothing: usize,
}

impl Deref for Actives {
    type Target = BTreeMap<TxnId, Active>;

    fn deref(&self) -> &BTreeMap<TxnId, Active> {
        &self.all
    }
}

impl Actives {
    /// Takes one up.
    pub fn insert(&mut self, active: Active) {
        let txn = active.request.txn;
        self.count(active.request.may_add(), 0, active.bytes);
        let before = self.all.insert(txn, active);
        assert!(before.is_none(), "{txn} is taken up twice");
    }

    /// Takes out one that is over here.
    pub fn remove(&mut self, txn: &TxnId) -> Option<Active> {
        let active = self.all.remove(txn)?;
        self.count(active.request.may_add(), active.bytes, 0);
        Some(active)
    }

    pub fn get_mut(&mut self, txn: &TxnId) -> Option<&mut Active> {
        self.all.get_mut(txn)
    }

    /// Puts aside what came of one, if it was run; whether something was put aside before.
    ///
    /// # Panics
    /// If it is not there.
    pub fn put_aside(&mut self, txn: &TxnId, prepared: Option<Box<PreparedRun>>) -> bool {
        let active = self.all.get_mut(txn).expect("an active transaction");
        if active.prepared.is_none() && prepared.is_none() {
            return false;
        }
        let bytes = |it: &Option<Box<PreparedRun>>| it.as_ref().map_or(0, |it| it.held_bytes());
        let (before, now) = (bytes(&active.prepared), bytes(&prepared));
        assert!(before <= active.bytes, "bytes of {txn} that were not counted");
        active.bytes = active.bytes - before + now;
        let was_prepared = std::mem::replace(&mut active.prepared, prepared).is_some();
        let may_add = active.request.may_add();
        self.count(may_add, before, now);
        was_prepared
    }

    /// Something of one of them takes `now` bytes, and took `before`.
    fn count(&mut self, may_add: bool, before: usize, now: usize) {
        assert!(before <= self.bytes, "bytes under way that were not counted");
        self.bytes = self.bytes - before + now;
        if !may_add {
            self.adding_nothing = self.adding_nothing - before + now;
        }
    }

    /// How many bytes they take, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes of these are of requests that leave no more than there was.
    pub fn adding_nothing(&self) -> usize {
        self.adding_nothing
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let bytes = |(_, active): (&TxnId, &Active)| active.count_bytes();
        assert_eq!(self.bytes, self.all.iter().map(bytes).sum::<usize>(), "bytes under way");
        let adding_nothing = self.all.iter().filter(|(_, active)| !active.request.may_add());
        let adding_nothing: usize = adding_nothing.map(bytes).sum();
        assert_eq!(self.adding_nothing, adding_nothing, "bytes under way that add nothing");
        for (txn, active) in &self.all {
            assert_eq!(active.request.txn, *txn, "the id of a transaction under way");
            active.assert_invariants();
        }
    }
}
