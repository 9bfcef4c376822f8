//! What a coordinator asks of replicas on other nodes, until it is answered.
//!
//! An operation is what the client waits for; it has one request per repository that is asked.
//! The first read of a transaction fixes its snapshot, so while one is under way elsewhere all
//! other requests of the transaction are held; where reads are forwarded, several repositories that
//! are asked first are asked at once. Where each repository fixes a part of it
//! ([`is_side_by_side`](crate::two_phase::policy::ReadPolicy::is_side_by_side)), they go out
//! together, and an answer that does not fit what others have fixed meanwhile is asked for once
//! more.

mod locks;
mod repeats;

use std::collections::BTreeSet;

use muesli_core::parts::locator::Static;
use muesli_core::parts::transaction::ReadEntry;
use muesli_core::parts::versions::Handle;
use muesli_core::parts::watermark::Bound;
use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, Answer, Failure, Here, OpId, RepositoryId, Scan, Txn};
use smallvec::smallvec;

use super::Coordinator;
use super::asked::{
    Asked, AskedKey, AskedKeys, Groups, OperationKind, PendingRequest, Queued, SentOn,
    WaitingOperation,
};
use super::owners::divide_answer;
use super::pages::first_pages;
use super::slot::Slot;
use crate::two_phase::message::{
    LockRequest, Message, ReadReply, ReadRequest, ReadWants, ScanRequest,
};
use crate::two_phase::time::Snapshot;
use crate::two_phase::{Context, Time, TwoPhase, Variant};

/// So many keys go in the request that fixes a snapshot.
const FIRST_KEYS_MAX: usize = 8;

impl<V: Variant> Coordinator<V> {
    /// Asks for keys: one request per repository. In the first one of a transaction without a
    /// snapshot go few, so that the others follow as soon as the snapshot is known.
    pub(in crate::two_phase) fn ask_keys(
        &mut self,
        txn: Txn,
        kind: OperationKind,
        keys: AskedKeys,
        here: &Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> OpId {
        let alone = !V::POLICIES.reading.is_side_by_side()
            && self.slot(txn).is_some_and(|slot| slot.snapshot.is_none());
        let begins_here = alone && V::POLICIES.reading.is_forwarded();
        let groups = self.by_replica(keys, alone && !begins_here, here, cx);
        if begins_here && groups.len() > 1 {
            self.begin_at_own_clock(txn);
        }
        let (first, queued) = first_pages(groups, &cx.settings.limits);
        let groups = first.into_iter().map(|(to, keys)| (to, Asked::Keys(keys)));
        self.ask(txn, (kind, queued), groups, cx)
    }

    /// Keys by the replica that is asked for them; few for the first one, if it is asked alone.
    pub(in crate::two_phase) fn by_replica(
        &self,
        keys: AskedKeys,
        alone: bool,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> Groups {
        self.by_place(keys, alone, |key| self.whom_to_ask((key.1, &key.2), here, cx))
    }

    /// Keys by the repository that is asked for them, as `place` says.
    pub(in crate::two_phase) fn by_place(
        &self,
        keys: AskedKeys,
        alone: bool,
        place: impl Fn(&AskedKey) -> RepositoryId,
    ) -> Groups {
        let mut groups = Groups::new();
        for key in keys {
            let to = place(&key);
            let first_is_full =
                alone && groups.first().is_some_and(|(_, keys)| keys.len() >= FIRST_KEYS_MAX);
            let mut open = groups.iter_mut().skip(usize::from(first_is_full));
            match open.find(|(known, _)| *known == to) {
                Some((_, group)) => group.push(key),
                None => groups.push((to, smallvec![key])),
            }
        }
        groups
    }

    pub(in crate::two_phase) fn ask(
        &mut self,
        txn: Txn,
        (kind, queued): (OperationKind, Queued),
        groups: impl ExactSizeIterator<Item = (RepositoryId, Asked)>,
        cx: &mut Context<'_, V>,
    ) -> OpId {
        let op = self.next_op();
        let missing = groups.len() + queued.len();
        assert!(missing > 0, "operation {} asks nobody", op.0);
        self.operations.insert(op.0, WaitingOperation { txn, missing, queued, bytes: 0, kind });
        let now = cx.now();
        for (to, asked) in groups {
            self.next_request += 1;
            let request = PendingRequest::new(op, to, asked, now);
            self.issue(txn, self.next_request, request, cx);
        }
        self.set_sweep_timer(cx);
        op
    }

    /// The least snapshot of the transaction that a request is of; of what looks at what it has
    /// read, the one that it moves from.
    pub(in crate::two_phase) fn base_of(&self, request: &PendingRequest) -> Option<&V::Snapshot> {
        let txn = self.operations.get(request.op.0)?.txn;
        let slot = self.slots.get(txn.slot as usize)?;
        let moves = slot.moving.as_ref().filter(|_| self.looks_again(request.op));
        let base = moves.map_or(&slot.base, |moving| &moving.from);
        (slot.running && slot.generation == txn.generation).then_some(base)
    }

    /// Sends a request, or holds it while the snapshot is being fixed.
    pub(in crate::two_phase) fn issue(
        &mut self,
        txn: Txn,
        id: u64,
        request: PendingRequest,
        cx: &mut Context<'_, V>,
    ) {
        let to = request.to;
        let is_free = matches!(request.asked, Asked::Lock(..)) || self.looks_again(request.op);
        let before = self.requests.insert(id, PendingRequest { held: true, ..request });
        assert!(before.is_none(), "request {id} is open already");
        let slot = self.slot(txn).expect("a transaction that has not ended");
        if is_free {
            self.send_request(id, cx);
        } else if slot.may_read_at(to) {
            let fixes = !V::POLICIES.reading.is_side_by_side() && !slot.is_fixed_at(to);
            slot.fixing = slot.fixing.or(fixes.then_some(id));
            self.send_request(id, cx);
        } else {
            slot.held.push(id);
        }
    }

    /// The request that an answer is to, and its transaction, which reads at the answer's snapshot
    /// from now on; `None`: nothing more is to be done about it. What is held back was not sent, or
    /// is to be sent again: what comes of that is its answer.
    pub(in crate::two_phase) fn take_answer(
        &mut self,
        (id, snapshot, committed): (u64, Option<V::Snapshot>, &V::Snapshot),
        cx: &mut Context<'_, V>,
    ) -> Option<(Txn, PendingRequest)> {
        if self.requests.get(id)?.held {
            return None;
        }
        let request = self.requests.remove(id)?;
        let txn = self.operations.get(request.op.0)?.txn;
        self.observed.join(committed);
        match snapshot {
            Some(at) => self.fix_snapshot(txn, (id, request), at, cx).map(|it| (txn, it)),
            None => {
                self.on_too_old(txn, (id, request), cx);
                None
            }
        }
    }

    /// The replica of a partition to ask: one on this node, else in turn.
    pub(in crate::two_phase) fn choose(
        &self,
        partition: u16,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> RepositoryId {
        let nth = (self.next_request % u64::from(cx.catalog.replicas)) as usize;
        let local = Static.replicas_of(partition, cx.catalog).find(|&replica| here.holds(replica));
        let chosen = local.or_else(|| Static.replicas_of(partition, cx.catalog).nth(nth));
        chosen.expect("every partition has its replicas")
    }

    fn send_request(&mut self, id: u64, cx: &mut Context<'_, V>) {
        let Some(request) = self.requests.get_mut(id) else { return };
        assert!(request.held, "request {id} is sent as if it were new");
        request.held = false;
        (request.sent, request.quiet) = (cx.now(), cx.now());
        let (to, op) = (request.to, request.op.0);
        let operation = self.operations.get(op).expect("requests have operations");
        let txn = operation.txn;
        let suffered = V::POLICIES.installing.may_time_warp() && self.tolerates_stale_reads;
        let Some(slot) = self.slot(txn) else { return };
        let (mut snapshot, mut first) = (slot.reads_at().clone(), slot.snapshot.is_none());
        let (answers, forwards) = (slot.answers, slot.forwards(suffered));
        let moving = slot.moving.as_ref();
        let target = moving.map(|it| it.to.clone().ok_or_else(|| it.from.as_lower_bound()));
        self.requests.get_mut(id).expect("found above").answers = answers;
        let reader = self.reader(txn);
        let asked = &self.requests.get(id).expect("found above").asked;
        let kind = &self.operations.get(op).expect("found above").kind;
        let message = match (asked, kind) {
            (Asked::Keys(keys), kind) => {
                let mut wanted = if forwards { ReadWants::NewestValues } else { ReadWants::Values };
                if let OperationKind::Versions(_) = kind {
                    wanted = ReadWants::Versions;
                    let target = target.expect("what was read is looked at for a move");
                    first = target.is_err();
                    snapshot = target.unwrap_or_else(|present| present);
                }
                let known = self.known_copies(keys, wanted, cx.catalog);
                let keys = keys.iter().map(|(_, space, key)| (*space, key.clone())).collect();
                let request = id;
                Message::Read(ReadRequest { request, snapshot, first, wanted, reader, keys, known })
            }
            (Asked::Page(page), OperationKind::Scan(gathered)) => {
                let Scan { space, lo, hi, reverse, .. } = gathered.scan.clone();
                let whole = KeyRange { space, lo, hi };
                let seen_to = page.seen_to.as_ref();
                let range = seen_to.map_or(whole.clone(), |to| whole.beyond(reverse, to));
                Message::Scan(Box::new(ScanRequest {
                    request: id,
                    snapshot,
                    first,
                    reader,
                    range,
                    partitions: page.partitions.clone(),
                    reverse,
                    limit: page.limit,
                }))
            }
            (Asked::Lock(space, key), _) => {
                let (space, key) = (*space, key.clone());
                Message::Lock(LockRequest { request: id, reader, space, key })
            }
            (
                Asked::Page(_),
                OperationKind::Get(_)
                | OperationKind::Many(_)
                | OperationKind::Lock
                | OperationKind::Versions(_),
            ) => {
                unreachable!("pages are asked by scans only")
            }
        };
        cx.send_to_repository(to, message);
    }

    /// A request was answered at `snapshot`: the transaction reads there from now on. `None`: what
    /// was learnt since it was asked for does not fit, and it was asked for once more.
    pub(in crate::two_phase) fn fix_snapshot(
        &mut self,
        txn: Txn,
        (request, asked): (u64, PendingRequest),
        snapshot: V::Snapshot,
        cx: &mut Context<'_, V>,
    ) -> Option<PendingRequest> {
        self.observed.join(&snapshot);
        if V::POLICIES.reading.can_move() && self.has_moved(txn, &snapshot) {
            self.next_request += 1;
            self.issue(txn, self.next_request, asked, cx);
            return None;
        }
        let is_keys = matches!(asked.asked, Asked::Keys(_));
        if is_keys && self.is_ahead(txn, &snapshot) {
            return Some(asked); // It is to move there.
        }
        if V::POLICIES.reading.is_side_by_side() {
            let known = self.slot(txn)?.snapshot.clone();
            if known.is_some_and(|known| !V::Time::fits(&self.switches, &known, &snapshot)) {
                self.issue(txn, request, asked, cx);
                return None;
            }
        }
        let slot = self.slot(txn)?;
        slot.learn(snapshot);
        if slot.fixing == Some(request) {
            slot.fixing = None;
        }
        if slot.fixing.is_none() && !slot.held.is_empty() {
            self.issue_held(txn, cx);
        }
        Some(asked)
    }

    /// The snapshot is known: what waited for that goes out.
    pub(in crate::two_phase) fn issue_held(&mut self, txn: Txn, cx: &mut Context<'_, V>) {
        let Some(slot) = self.slot(txn) else { return };
        for id in std::mem::take(&mut slot.held) {
            if let Some(request) = self.requests.remove(id) {
                self.issue(txn, id, request, cx);
            }
        }
    }

    /// A repository reads no more at what a request said. If it did not say what others have
    /// answered since, it is asked for once more: the watermark may have followed that.
    pub(in crate::two_phase) fn on_too_old(
        &mut self,
        txn: Txn,
        (id, request): (u64, PendingRequest),
        cx: &mut Context<'_, V>,
    ) {
        let learnt = |slot: &mut Slot<V>| slot.answers != request.answers;
        if V::POLICIES.reading.is_side_by_side() && self.slot(txn).is_some_and(learnt) {
            self.issue(txn, id, request, cx);
        } else {
            self.abort(txn, &Failure::Aborted(Abort::SnapshotTooOld), cx);
        }
    }

    pub(in crate::two_phase) fn on_read_reply(
        &mut self,
        mut reply: ReadReply<V>,
        here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        if reply.snapshot.is_some() && reply.found.is_empty() {
            return; // Of no key: no answer at all, and the request goes out again.
        }
        let is_look = |it: &PendingRequest| self.looks_again(it.op);
        if self.requests.get(reply.request).is_some_and(is_look) {
            return self.on_versions(reply, cx);
        }
        let at = reply.snapshot.take();
        let answer = (reply.request, at.clone(), &reply.committed);
        let Some((txn, request)) = self.take_answer(answer, cx) else { return };
        match at.filter(|at| self.is_ahead(txn, at)) {
            Some(at) => self.forward(txn, at, (request, reply), &here, cx),
            None => self.take_keys(txn, request, reply, cx),
        }
    }

    /// A transaction has read keys at its snapshot.
    pub(in crate::two_phase) fn take_keys(
        &mut self,
        txn: Txn,
        request: PendingRequest,
        mut reply: ReadReply<V>,
        cx: &mut Context<'_, V>,
    ) {
        let suffered = V::POLICIES.installing.may_time_warp() && self.tolerates_stale_reads;
        let Asked::Keys(mut keys) = request.asked else { return };
        let is_row = (self.operations.get(request.op.0))
            .is_some_and(|it| matches!(it.kind, OperationKind::Scan(_)));
        let lost = self.take_copies(&keys, &mut reply, cx.catalog);
        let answered = reply.found.iter().map(|found| (0, found.value.as_ref()));
        if !self.count_bytes(request.op, answered, cx) {
            return;
        }
        let rest: AskedKeys = keys.drain(reply.found.len().min(keys.len())..).collect();
        assert_eq!(keys.len(), reply.found.len(), "keys that were answered");
        for it in reply.moved.iter() {
            if let Some((_, space, key)) = keys.get(it.place as usize) {
                self.learn_owner((*space, key.clone()), (it.to, it.at));
            }
        }
        let moved = reply.moved.iter().map(|it| it.place as usize);
        assert!(lost.iter().all(|place| *place < keys.len()), "a copy of what was not asked for");
        let elsewhere: BTreeSet<_> = moved.chain(lost).collect();
        let is_elsewhere = |at| elsewhere.contains(&at);
        let (answered, moved) = divide_answer(keys.into_iter().zip(reply.found), is_elsewhere);
        for ((place, space, key), found) in answered {
            let recording = cx.effects.recorder.is_some();
            let Some(slot) = self.slot(txn) else { return };
            let found = slot.repeated(space, &key, found);
            let is_row = is_row && V::keys_move(cx.catalog);
            if recording && !is_row {
                slot.sets.operations.read(space, &key, found.recorded(), found.value.as_ref());
            }
            let (handle, version) = (Handle::NONE, found.version);
            let row = is_row.then(|| key.clone());
            let read = ReadEntry { space, repository: request.to, handle, key, version };
            if let Err(reason) = slot.note(read, found.newest, suffered) {
                self.abort(txn, &Failure::Aborted(reason), cx);
                return;
            }
            match self.operations.get_mut(request.op.0).map(|operation| &mut operation.kind) {
                Some(OperationKind::Get(value)) => *value = found.value,
                Some(OperationKind::Many(values)) => values[place] = found.value,
                Some(OperationKind::Scan(gathered)) if row.is_some() => {
                    gathered.rows.extend(row.map(|key| (key, found)));
                }
                Some(OperationKind::Scan(_) | OperationKind::Lock | OperationKind::Versions(_))
                | None => {
                    unreachable!("keys are asked by gets only")
                }
            }
        }
        match rest.is_empty() {
            true if moved.is_empty() => self.count_answer(request.op, cx),
            false if moved.is_empty() => {
                self.ask_more((txn, request.op), (request.to, Asked::Keys(rest)), cx);
            }
            is_all => {
                let rest = (!is_all).then_some((request.to, rest));
                let sent_on =
                    SentOn { keys: moved, since: request.since, times: request.redirects };
                self.ask_on((txn, request.op), sent_on, rest, cx);
            }
        }
    }

    pub(in crate::two_phase) fn count_answer(&mut self, op: OpId, cx: &mut Context<'_, V>) {
        let Some(operation) = self.operations.get_mut(op.0) else { return };
        assert!(operation.missing > 0, "operation {} waited for nothing", op.0);
        operation.missing -= 1;
        let txn = operation.txn;
        if let Some((to, keys)) = operation.queued.pop_front() {
            return self.ask_more((txn, op), (to, Asked::Keys(keys)), cx);
        }
        if operation.missing > 0 {
            return;
        }
        let operation = self.operations.remove(op.0).expect("found above");
        let result = match operation.kind {
            OperationKind::Get(value) => Ok(Answer::Value(value)),
            OperationKind::Lock => Ok(Answer::Written),
            OperationKind::Versions(versions) => {
                return self.finish_move(txn, op, versions, cx);
            }
            OperationKind::Many(values) => Ok(Answer::Values(values)),
            OperationKind::Scan(gathered) => {
                Ok(Answer::Rows(self.finish_scan(operation.txn, gathered, cx)))
            }
        };
        cx.complete(op, result);
    }
}
