//! Operations that read: each asks the shards that it needs, at one timestamp, which the answer to
//! the first request of the transaction says.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{
    Abort, Answer, Failure, Here, KeyRange, Nanos, OpId, RepositoryId, Role, Scan, SmallBytes,
    SpaceId, Step, Timestamp, Txn,
};

use super::ShardedCoordinator;
use crate::certified::message::FoundKey;
use crate::sharded::locator::ShardId;
use crate::sharded::message::{ClockBound, Message, ShardKeysRequest, ShardPageRequest};
use crate::sharded::participant::ReadStep;
use crate::sharded::{Context, Sharded};

/// An operation that waits.
#[derive(Clone, Debug)]
pub struct ShardedOperation {
    /// Whose.
    pub txn: Txn,
    /// When the operation began.
    pub since: Nanos,
    /// Bytes of what was answered so far.
    pub bytes: usize,
    /// What it reads.
    pub kind: ShardedReads,
    /// The shards that were asked, and have not answered.
    pub asked: BTreeMap<ShardId, AskedShard>,
}

/// A shard that was asked.
#[derive(Clone, Copy, Debug)]
pub struct AskedShard {
    /// The number of the request.
    pub request: u64,
    /// Which member.
    pub to: RepositoryId,
    /// When that was, the last time, and the first time at this member.
    pub sent: Nanos,
    /// When it was first asked.
    pub since: Nanos,
}

/// What is asked of a member.
enum ShardRequest {
    Keys(ShardKeysRequest),
    Page(ShardPageRequest),
    /// The request's number, and how old the clock may be.
    Clock(u64, ClockBound),
}

/// What an operation reads.
#[derive(Clone, Debug)]
pub enum ShardedReads {
    /// Keys.
    Keys {
        /// Their space.
        space: SpaceId,
        /// Whether one was asked for by itself.
        single: bool,
        /// What is known so far, by place.
        values: Vec<Option<SmallBytes>>,
        /// Those that are not known, with their places, in order.
        missing: BTreeMap<ShardId, Vec<(usize, SmallBytes)>>,
    },
    /// The clocks of all shards, for the coordinator itself.
    Clocks {
        /// The shards that have not answered.
        missing: BTreeSet<ShardId>,
        /// The largest one so far.
        most: u64,
    },
    /// A range.
    Range {
        /// As it was asked for.
        scan: Scan,
        /// How many rows are wanted, those that the transaction has deleted among them.
        wanted: usize,
        /// What each shard has of it.
        parts: BTreeMap<ShardId, ScannedPart>,
    },
}

/// What a shard has of a range, as far as that is known.
#[derive(Clone, Debug)]
pub struct ScannedPart {
    /// Rows, in the order of the scan.
    pub rows: Vec<(SmallBytes, FoundKey)>,
    /// What is still to be seen of it; `None`: enough is known.
    pub left: Option<KeyRange>,
    /// Up to which key it was seen; `None`: to its end.
    pub edge: Option<SmallBytes>,
    /// How many deletions there had been of keys of its objects.
    pub deletions: u64,
}

impl ShardedReads {
    /// The shards of which something is missing.
    fn lacking(&self) -> Vec<ShardId> {
        match self {
            ShardedReads::Keys { missing, .. } => missing.keys().copied().collect(),
            ShardedReads::Clocks { missing, .. } => missing.iter().copied().collect(),
            ShardedReads::Range { parts, .. } => {
                let lacking = parts.iter().filter(|(_, part)| part.left.is_some());
                lacking.map(|(shard, _)| *shard).collect()
            }
        }
    }
}

impl ShardedCoordinator {
    /// An operation begins.
    pub(super) fn read(
        &mut self,
        txn: Txn,
        kind: ShardedReads,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Step {
        let op = OpId(self.next_number());
        let (since, bytes, asked) = (cx.now(), 0, BTreeMap::new());
        let operation = ShardedOperation { txn, since, bytes, kind, asked };
        let before = self.operations.insert(op, operation);
        assert!(before.is_none(), "{op:?} begins twice");
        self.go_on(op, here, cx)
    }

    /// Asks for what is missing of an operation, or has it.
    pub(super) fn go_on(
        &mut self,
        op: OpId,
        mut here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Step {
        loop {
            let Some(operation) = self.operations.get(&op) else { return Step::Wait(op) };
            let txn = operation.txn;
            let lacking = operation.kind.lacking();
            if lacking.is_empty() {
                let operation = self.operations.remove(&op).expect("just seen");
                assert!(operation.asked.is_empty(), "{op:?} has all, and asks");
                return Step::Done(self.answer(operation, cx));
            }
            let is_asked = |shard: &ShardId| operation.asked.contains_key(shard);
            let next = lacking.into_iter().find(|shard| !is_asked(shard));
            let running = &self.running[&txn.slot];
            let asks_clocks = matches!(operation.kind, ShardedReads::Clocks { .. });
            if !asks_clocks && !running.is_beyond_clocks {
                self.ask_clocks(txn, here, cx);
                return Step::Wait(op);
            }
            let is_open = asks_clocks || running.snapshot.is_some() || running.choosing.is_none();
            let Some(shard) = next.filter(|_| is_open) else { return Step::Wait(op) };
            let request = self.next_number();
            let to = self.nearest.of(shard, 0, (self.node, cx.catalog), cx.now());
            let asked = AskedShard { request, to, sent: cx.now(), since: cx.now() };
            if let Err(failure) = self.ask(op, (shard, asked), here.reborrow(), cx) {
                let operation = self.operations.remove(&op).expect("just seen");
                for asked in operation.asked.values() {
                    self.requests.remove(&asked.request);
                }
                self.fail(txn, &failure, cx);
                return Step::Done(Err(failure));
            }
        }
    }

    /// Asks a member, which may answer at once.
    fn ask(
        &mut self,
        op: OpId,
        (shard, asked): (ShardId, AskedShard),
        mut here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let txn = self.operations[&op].txn;
        let read = self.request(op, (shard, asked.request), cx);
        if !matches!(read, ShardRequest::Clock(..)) {
            let running = self.running.get_mut(&txn.slot).expect("a transaction that runs");
            running.asked.insert(asked.to);
            if running.snapshot.is_none() {
                running.choosing = Some(asked.request);
            }
        }
        if let Some(member) = here.repository(asked.to) {
            let node = self.node;
            let mut there = cx.at(Role::Repository(asked.to));
            match &read {
                ShardRequest::Keys(keys) => match member.read_keys(node, keys, &mut there) {
                    ReadStep::Answered(reply) => return self.take_keys(op, shard, reply, cx),
                    ReadStep::Waits(_) => {}
                },
                ShardRequest::Page(page) => match member.read_page(node, page, &mut there) {
                    ReadStep::Answered(reply) => return self.take_page(op, shard, reply, cx),
                    ReadStep::Waits(_) => {}
                },
                ShardRequest::Clock(..) => {}
            }
        }
        cx.send_to_repository(asked.to, message(read));
        let before = self.requests.insert(asked.request, (op, shard));
        assert!(before.is_none(), "request {} is of two operations", asked.request);
        let operation = self.operations.get_mut(&op).expect("it waits");
        operation.asked.insert(shard, asked);
        Ok(())
    }

    /// What is asked of a shard for an operation.
    fn request(
        &self,
        op: OpId,
        (shard, request): (ShardId, u64),
        cx: &Context<'_>,
    ) -> ShardRequest {
        let operation = &self.operations[&op];
        let running = &self.running[&operation.txn.slot];
        let (reader, snapshot) = (self.reader(operation.txn), running.snapshot);
        let from = Timestamp::new(self.reads_from, RepositoryId(0));
        let at_least = running.options.lower_bound.max(from);
        match &operation.kind {
            ShardedReads::Keys { space, missing, .. } => {
                let page = missing[&shard].iter().take(cx.settings.limits.page_rows);
                let keys = page.map(|(_, key)| (*space, key.clone())).collect();
                ShardRequest::Keys(ShardKeysRequest { request, reader, snapshot, at_least, keys })
            }
            ShardedReads::Clocks { .. } => {
                let (most, waits) = running.clock_age();
                let seen = self.issued.counter();
                ShardRequest::Clock(request, ClockBound { most, waits, seen })
            }
            ShardedReads::Range { scan, wanted, parts } => {
                let part = &parts[&shard];
                let (lo, hi) = (scan.lo.clone(), scan.hi.clone());
                let within = KeyRange { space: scan.space, lo, hi };
                let range = part.left.clone().expect("it is asked for more");
                let live = part.rows.iter().filter(|(_, found)| found.value.is_some()).count();
                let (reverse, limit) = (scan.reverse, wanted.saturating_sub(live) as u64);
                ShardRequest::Page(ShardPageRequest {
                    request,
                    reader,
                    snapshot,
                    at_least,
                    within,
                    range,
                    reverse,
                    limit,
                })
            }
        }
    }

    /// A request was not answered: it is sent again, perhaps to another member.
    pub(super) fn ask_again(
        &mut self,
        op: OpId,
        shard: ShardId,
        to: RepositoryId,
        cx: &mut Context<'_>,
    ) {
        let now = cx.now();
        let operation = self.operations.get_mut(&op).expect("it waits");
        let asked = operation.asked.get_mut(&shard).expect("it was asked");
        if asked.to != to {
            (asked.to, asked.since) = (to, now);
        }
        asked.sent = now;
        let (request, txn) = (asked.request, operation.txn);
        let known = self.requests.get(&request);
        assert_eq!(known, Some(&(op, shard)), "request {request} is of another operation");
        let read = self.request(op, (shard, request), cx);
        if !matches!(read, ShardRequest::Clock(..)) {
            self.running.get_mut(&txn.slot).expect("a transaction that runs").asked.insert(to);
        }
        cx.send_to_repository(to, message(read));
    }

    /// Takes the operation and the shard that a request is of, if there is one of such a kind.
    pub(super) fn take_request(
        &mut self,
        request: u64,
        is_such: impl Fn(&ShardedReads) -> bool,
    ) -> Option<(OpId, ShardId)> {
        let (op, shard) = *self.requests.get(&request)?;
        let operation = self.operations.get_mut(&op).expect("a request is of an operation");
        if !is_such(&operation.kind) {
            return None;
        }
        let asked = operation.asked.remove(&shard).map(|asked| asked.request);
        assert_eq!(asked, Some(request), "the request of {op:?} to {shard:?}");
        self.requests.remove(&request);
        Some((op, shard))
    }

    /// After an answer: the operation goes on, and so do others of its transaction that have waited
    /// for its timestamp.
    pub(super) fn answered(
        &mut self,
        op: OpId,
        taken: Result<(), Failure>,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) {
        let txn = self.operations[&op].txn;
        if let Err(failure) = taken {
            self.fail(txn, &failure, cx);
            return;
        }
        self.go_on_all(txn, here, cx);
    }

    /// All operations of a transaction go on.
    pub(super) fn go_on_all(
        &mut self,
        txn: Txn,
        mut here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) {
        let all = self.operations.iter().filter(|(_, it)| it.txn == txn);
        for op in all.map(|(op, _)| *op).collect::<Vec<_>>() {
            // One of them may have failed, and all with it.
            if let Step::Done(answer) = self.go_on(op, here.reborrow(), cx) {
                cx.complete(op, answer);
            }
        }
    }

    /// Notes at what a transaction reads.
    ///
    /// # Errors
    /// The member does not have versions of that time any more.
    pub(super) fn take_snapshot(
        &mut self,
        txn: Txn,
        (read, clock): (Option<Timestamp>, u64),
    ) -> Result<(), Failure> {
        self.issued = self.issued.max(Timestamp::new(clock, RepositoryId(0)));
        let running = self.open(txn)?;
        running.choosing = None;
        running.clock = running.clock.max(clock);
        let too_old = Failure::Aborted(Abort::SnapshotTooOld);
        let Some(read) = read else {
            self.reads_from = self.reads_from.max(clock); // Beyond what is forgotten there.
            return Err(too_old);
        };
        let known = *running.snapshot.get_or_insert(read);
        self.issued = self.issued.max(read);
        if known == read { Ok(()) } else { Err(too_old) }
    }

    fn answer(
        &mut self,
        operation: ShardedOperation,
        cx: &mut Context<'_>,
    ) -> Result<Answer, Failure> {
        match operation.kind {
            ShardedReads::Keys { single: true, mut values, .. } => {
                Ok(Answer::Value(values.swap_remove(0)))
            }
            ShardedReads::Keys { values, .. } => Ok(Answer::Values(values)),
            ShardedReads::Clocks { .. } => unreachable!("the coordinator asks for itself"),
            ShardedReads::Range { scan, parts, .. } => {
                let records = cx.effects.recorder.is_some();
                let running = self.open(operation.txn)?;
                Ok(Answer::Rows(running.has_scanned(&scan, parts, records)))
            }
        }
    }

    /// All operations of a transaction fail that wait.
    pub(super) fn fail_operations(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        let waiting = self.operations.extract_if(.., |_, operation| operation.txn == txn);
        let waiting: Vec<_> = waiting.collect();
        for (op, operation) in waiting {
            for asked in operation.asked.values() {
                self.requests.remove(&asked.request);
            }
            if !matches!(operation.kind, ShardedReads::Clocks { .. }) {
                cx.complete(op, Err(failure.clone()));
            }
        }
        if let Some(running) = self.running.get_mut(&txn.slot) {
            running.choosing = None;
        }
    }
}

fn message(read: ShardRequest) -> Message {
    match read {
        ShardRequest::Keys(request) => Message::Keys(request),
        ShardRequest::Page(request) => Message::Page(request),
        ShardRequest::Clock(request, bound) => Message::AskClock { request, bound },
    }
}
