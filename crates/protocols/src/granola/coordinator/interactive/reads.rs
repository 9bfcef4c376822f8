//! Interactive transactions over one-round ones (section 7.5), by optimistic control: reads.
//!
//! A read is a read-only transaction of one repository, and puts nothing aside there. What was
//! read is checked by the transaction that [ends](super::commit) it. Until then a transaction may
//! have seen what was never there at one time; it will not commit.

use std::collections::BTreeMap;

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::parts::listed::each_once;
use muesli_core::parts::transaction::{ReadEntry, check_scan};
use muesli_core::parts::versions::Handle;
use muesli_core::ranges::KeyRange;
use muesli_core::recorder::value_hash;
use muesli_core::{
    Answer, Failure, OpId, RepositoryId, Row, Scan, SmallBytes, SpaceId, Step, Timestamp, Txn,
};

use super::pages::{Look, PARTS_MAX, Queued, reads_of};
use crate::granola::coordinator::{Context, Coordinator, InteractiveSlot, RequestVerdict};
use crate::granola::message::{Few, FoundVersion, Part, PartAnswer, Request, SeenRange, Task};

/// An operation that waits for answers.
#[derive(Clone, Debug)]
pub(in super::super) struct InteractiveOperation {
    pub txn: Txn,
    /// Requests that are not answered, or about to be sent.
    pub waiting: usize,
    queued: Queued,
    /// What it was answered with so far, in bytes.
    pub bytes: usize,
    kind: ReadKind,
}

#[derive(Clone, Debug)]
enum ReadKind {
    Get(SpaceId, SmallBytes),
    Many(SpaceId, Vec<SmallBytes>),
    Scan(GatheredRows),
}

/// What was asked of partitions and what came of it, seen up to one key.
type Pages<'a> = Vec<(u16, &'a Task, Vec<(SmallBytes, FoundVersion)>)>;

/// The rows of a scan as they come in from the repositories.
#[derive(Clone, Debug)]
struct GatheredRows {
    scan: Scan,
    rows: BTreeMap<SmallBytes, FoundVersion>,
    /// The pages of partitions: what of the range each is about, when it was seen, and its keys.
    seen: Vec<(u16, KeyRange, Timestamp, Vec<SmallBytes>)>,
    /// The nearest place at which some repository stopped: what lies beyond was not seen.
    edge: Option<SmallBytes>,
}

impl Coordinator {
    pub(in super::super) fn on_get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        cx: &mut Context<'_>,
    ) -> Step<Option<SmallBytes>> {
        let recording = cx.effects.recorder.is_some();
        let known = check_size(Limit::Key, key.len(), cx.settings.limits.key_bytes);
        match known.and_then(|()| Ok(self.open(txn)?.known(space, key, recording))) {
            Err(failure) => Step::Done(Err(failure)),
            Ok(Some(value)) => Step::Done(Ok(value)),
            Ok(None) => {
                let kind = ReadKind::Get(space, key.clone());
                Step::Wait(self.read_keys(txn, kind, space, vec![key.clone()], cx))
            }
        }
    }

    pub(in super::super) fn on_get_many(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        cx: &mut Context<'_>,
    ) -> Step<Vec<Option<SmallBytes>>> {
        let most = cx.settings.limits.key_bytes;
        let sized = keys.iter().try_for_each(|key| check_size(Limit::Key, key.len(), most));
        let slot = match sized.and_then(|()| self.open(txn)) {
            Ok(slot) => slot,
            Err(failure) => return Step::Done(Err(failure)),
        };
        let unknown = keys.iter().filter(|key| !slot.knows(space, key));
        let asked: Vec<_> = each_once(unknown).cloned().collect();
        if asked.is_empty() {
            let recording = cx.effects.recorder.is_some();
            return Step::Done(self.open(txn).map(|slot| slot.values(space, &keys, recording)));
        }
        Step::Wait(self.read_keys(txn, ReadKind::Many(space, keys), space, asked, cx))
    }

    fn read_keys(
        &mut self,
        txn: Txn,
        kind: ReadKind,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        cx: &mut Context<'_>,
    ) -> OpId {
        let mut parts: BTreeMap<u16, Vec<(SpaceId, SmallBytes)>> = BTreeMap::new();
        for key in keys {
            parts.entry(cx.catalog.partition(space, &key)).or_default().push((space, key));
        }
        let limits = &cx.settings.limits;
        let looks = self.by_repositories(parts, cx).into_values();
        let looks = looks.flat_map(|parts| reads_of(parts, limits)).collect();
        self.look(txn, kind, looks, cx)
    }

    /// Asks for the first of these of each repository, and puts the others aside.
    fn look(&mut self, txn: Txn, kind: ReadKind, looks: Vec<Look>, cx: &mut Context<'_>) -> OpId {
        let op = self.next_op();
        let mut queued = Queued::default();
        looks.into_iter().for_each(|look| queued.push(self.holder(look[0].0, cx), look));
        let first = queued.first_of_each();
        let waiting = first.len();
        assert!(waiting > 0, "operation {} asks nobody", op.0);
        self.operations.insert(op.0, InteractiveOperation { txn, waiting, queued, bytes: 0, kind });
        for look in first {
            self.look_at((txn, op), look, cx);
        }
        op
    }

    pub(in super::super) fn on_scan(
        &mut self,
        txn: Txn,
        scan: Scan,
        cx: &mut Context<'_>,
    ) -> Step<Vec<Row>> {
        let lists = self.open(txn).is_ok_and(|slot| slot.options.lists);
        let checked = check_scan(&scan, lists, cx.catalog, &cx.settings.limits);
        if let Err(failure) = self.open(txn).map(|_| ()).and(checked) {
            return Step::Done(Err(failure));
        }
        if scan.limit == 0 || scan.hi.as_ref().is_some_and(|hi| *hi <= scan.lo) {
            return Step::Done(Ok(Vec::new()));
        }
        let range = KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() };
        let deletes = self.slot(txn).map_or(0, |slot| slot.sets.deletes_in(&range));
        let limit = scan.limit.saturating_add(deletes) as u64;
        let task = Task::Scan { range, reverse: scan.reverse, limit };
        let all = cx.catalog.partitions_of_range(scan.space, &scan.lo, scan.hi.as_ref());
        let tasks = all.map(|partition| (partition, task.clone()));
        let looks = self.by_repositories(tasks, cx).into_values();
        let chunked = |all: Look| all.chunks(PARTS_MAX).map(Look::from).collect::<Vec<_>>();
        let looks = looks.flat_map(chunked).collect();
        let gathered = GatheredRows { scan, rows: BTreeMap::new(), seen: Vec::new(), edge: None };
        Step::Wait(self.look(txn, ReadKind::Scan(gathered), looks, cx))
    }

    /// A repository has answered a read.
    pub(in super::super) fn on_read_end(
        &mut self,
        op: OpId,
        request: &Request,
        verdict: RequestVerdict,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.operations.get_mut(op.0) else { return };
        let txn = operation.txn;
        let (at, answers) = match verdict {
            RequestVerdict::Done(at, answers) => (at, answers),
            RequestVerdict::Conflict | RequestVerdict::Moved(_) | RequestVerdict::Forgotten(_) => {
                let failure = Failure::Aborted(muesli_core::Abort::Locked);
                return self.abort(txn, &failure, cx);
            }
            RequestVerdict::Refused(refusal) => {
                return self.abort(txn, &Failure::from(refusal), cx);
            }
        };
        let Some(slot) = self.slot(txn) else { return };
        slot.read_at = slot.read_at.max(at);
        let Some(more) = self.take_in_answers((txn, op), request, (at, answers), cx) else {
            // Nobody answers it any more: it is to be tried again.
            return self.abort(txn, &Failure::Aborted(muesli_core::Abort::Locked), cx);
        };
        let here = self.holder(request.parts[0].partition, cx);
        let Some(operation) = self.operations.get_mut(op.0) else { return };
        let next = Some(more).filter(|more| !more.is_empty());
        let next = next.or_else(|| operation.queued.next(here));
        // Whoever held a partition when it was put aside may hold it no more.
        let is_last = operation.waiting == 1;
        let next = next.or_else(|| if is_last { operation.queued.any() } else { None });
        match next {
            Some(look) => self.look_on(op, look, cx),
            None if is_last => self.finish_operation(op, cx),
            None => {
                assert!(operation.waiting > 1, "operation {} waited for nothing", op.0);
                operation.waiting -= 1;
            }
        }
    }

    /// Takes in what a repository answered; with what is to be asked for next, of the same
    /// partitions. Nothing: the answer is too much, or none to what was asked.
    fn take_in_answers(
        &mut self,
        (txn, op): (Txn, OpId),
        request: &Request,
        (at, answers): (Timestamp, Few<(u16, PartAnswer)>),
        cx: &mut Context<'_>,
    ) -> Option<Look> {
        if answers.len() != request.parts.len() {
            return None;
        }
        let mut more = Look::new();
        let mut pages: BTreeMap<Option<SmallBytes>, Pages<'_>> = BTreeMap::new();
        for (number, answer) in answers {
            let Part { partition, task, .. } = request.parts.get(usize::from(number))?;
            match (task, answer) {
                (Task::Read(keys), PartAnswer::Found(found)) => {
                    let sized = keys.iter().map(|(_, key)| key.len()).zip(&found);
                    if !self.count_bytes(op, sized, cx) {
                        return None;
                    }
                    let rest = self.take_in_keys(txn, keys, found);
                    more.extend(rest.map(|task| (*partition, task)));
                }
                (Task::Scan { .. }, PartAnswer::Rows(rows, seen_to)) => {
                    let sized = rows.iter().map(|(key, found)| (key.len(), found));
                    if !self.count_bytes(op, sized, cx) {
                        return None;
                    }
                    pages.entry(seen_to).or_default().push((*partition, task, rows));
                }
                _ => return None,
            }
        }
        for (seen_to, pages) in pages {
            more.extend(self.take_in_pages(op, at, pages, seen_to));
        }
        Some(more)
    }

    /// Keys were read; answers with a request for those that did not fit.
    fn take_in_keys(
        &mut self,
        txn: Txn,
        keys: &[(SpaceId, SmallBytes)],
        found: Vec<FoundVersion>,
    ) -> Option<Task> {
        let (answered, rest) = keys.split_at(found.len().min(keys.len()));
        let slot = self.slot(txn)?;
        for ((space, key), found) in answered.iter().zip(found) {
            slot.take_in(*space, key, found);
        }
        (!rest.is_empty()).then(|| Task::Read(rest.to_vec()))
    }

    /// A page of a scan has come, with the rows of several partitions; answers with requests for
    /// the next one, if there is to be one.
    fn take_in_pages(
        &mut self,
        op: OpId,
        at: Timestamp,
        pages: Pages<'_>,
        seen_to: Option<SmallBytes>,
    ) -> Look {
        let Some(operation) = self.operations.get_mut(op.0) else { return Look::new() };
        let ReadKind::Scan(gathered) = &mut operation.kind else { return Look::new() };
        let (mut live, mut asked) = (0, Vec::new());
        for (partition, task, rows) in pages {
            let Task::Scan { range, reverse, .. } = task else { continue };
            let present = rows.iter().filter(|(_, found)| found.value.is_some());
            let keys: Vec<_> = present.map(|(key, _)| key.clone()).collect();
            live += keys.len() as u64;
            gathered.seen.push((partition, range.seen(*reverse, seen_to.as_ref()), at, keys));
            gathered.rows.extend(rows);
            asked.push((partition, task));
        }
        let Some(seen_to) = seen_to else { return Look::new() };
        let next = |(partition, task): (u16, &Task)| {
            let Task::Scan { range, reverse, limit } = task else { return None };
            let limit = limit.saturating_sub(live);
            let range = range.beyond(*reverse, &seen_to);
            (limit > 0).then_some((partition, Task::Scan { range, reverse: *reverse, limit }))
        };
        let more: Look = asked.into_iter().filter_map(next).collect();
        if more.is_empty() {
            gathered.stop_at(seen_to);
        }
        more
    }

    /// All repositories answered.
    fn finish_operation(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(InteractiveOperation { txn, kind, .. }) = self.operations.remove(op.0) else {
            return;
        };
        let recording = cx.effects.recorder.is_some();
        let Some(slot) = self.slot(txn) else { return };
        let result = match kind {
            ReadKind::Get(space, key) => {
                Ok(Answer::Value(slot.known(space, &key, recording).flatten()))
            }
            ReadKind::Many(space, keys) => Ok(Answer::Values(slot.values(space, &keys, recording))),
            ReadKind::Scan(gathered) => Ok(Answer::Rows(slot.finish_scan(gathered, recording))),
        };
        cx.complete(op, result);
    }

    /// Whatever the transaction still waits for has failed.
    pub(in super::super) fn fail_operations(
        &mut self,
        txn: Txn,
        failure: &Failure,
        cx: &mut Context<'_>,
    ) {
        let waiting = self.operations.iter().filter(|(_, operation)| operation.txn == txn);
        let waiting: Vec<_> = waiting.map(|(op, _)| OpId(op)).collect();
        for op in waiting {
            self.operations.remove(op.0);
            cx.complete(op, Err(failure.clone()));
        }
    }
}

impl GatheredRows {
    /// A repository has seen nothing beyond `last`.
    fn stop_at(&mut self, last: SmallBytes) {
        self.edge = Some(match self.edge.take() {
            Some(edge) if self.scan.reverse => edge.max(last),
            Some(edge) => edge.min(last),
            None => last,
        });
    }
}

impl InteractiveSlot {
    /// The highest timestamp that its session has seen, its own reads included.
    pub(in super::super) fn lower_bound(&self) -> Timestamp {
        self.options.lower_bound.max(self.read_at)
    }

    fn knows(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.sets.own(space, key).is_some() || self.seen.contains_key(&(space, key.clone()))
    }

    /// The value of a key that was written or read before.
    fn known(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        recording: bool,
    ) -> Option<Option<SmallBytes>> {
        if let Some(own) = self.sets.own(space, key) {
            let own = own.clone();
            if recording {
                self.sets.operations.read_own(space, key, own.as_ref());
            }
            return Some(own);
        }
        let found = self.seen.get(&(space, key.clone()))?;
        if recording {
            self.sets.operations.read(space, key, found.recorded(), found.value.as_ref());
        }
        Some(found.value.clone())
    }

    fn values(
        &mut self,
        space: SpaceId,
        keys: &[SmallBytes],
        recording: bool,
    ) -> Vec<Option<SmallBytes>> {
        keys.iter().map(|key| self.known(space, key, recording).flatten()).collect()
    }

    /// A key was read; what was read of it before stays.
    fn take_in(&mut self, space: SpaceId, key: &SmallBytes, found: FoundVersion) {
        if self.seen.contains_key(&(space, key.clone())) {
            return;
        }
        self.sets.reads.push(ReadEntry {
            space,
            repository: RepositoryId(0), // Nobody asks: the check goes by partitions.
            handle: Handle::NONE,
            key: key.clone(),
            version: found.version,
        });
        self.seen.insert((space, key.clone()), found);
    }

    /// What was seen for sure of a range, with the transaction's own writes.
    fn finish_scan(&mut self, gathered: GatheredRows, recording: bool) -> Vec<Row> {
        let GatheredRows { scan, mut rows, seen: partitions, edge } = gathered;
        let space = scan.space;
        let range = KeyRange { space, lo: scan.lo, hi: scan.hi };
        let mut seen = range.seen(scan.reverse, edge.as_ref());
        rows.retain(|key, _| seen.contains(space, key));
        let live = rows.iter().filter_map(|(key, found)| Some((key.clone(), found.value.clone()?)));
        let complete = edge.is_none();
        let live: Vec<Row> = live.collect();
        let answer = self.sets.overlay(&range, live, scan.reverse, scan.limit, complete);
        if let Some((last, _)) = answer.last().filter(|_| answer.len() == scan.limit) {
            if scan.reverse {
                seen.lo = last.clone().max(seen.lo);
            } else {
                seen.hi = Some(last.successor());
            }
        }
        for (partition, page, at, keys) in partitions {
            let Some(range) = page.common(&seen) else { continue };
            let live = keys.iter().filter(|key| range.contains(space, key)).count() as u64;
            self.scans.push((partition, SeenRange { range, at, live }));
        }
        rows.retain(|key, _| seen.contains(space, key));
        if recording {
            let row = |(key, found): (&SmallBytes, &FoundVersion)| {
                (key.clone(), found.recorded(), found.value.as_ref().map(value_hash))
            };
            let others = rows.iter().filter(|(key, _)| self.sets.own(space, key).is_none());
            let all: Vec<_> = others.map(row).collect();
            self.sets.operations.scan(space, &seen.lo, seen.hi.as_ref(), all.into_iter());
        }
        // What only the history needs was not read.
        rows.retain(|_, found| found.collected == Timestamp::ZERO);
        for (key, found) in rows {
            self.take_in(space, &key, found);
        }
        answer
    }
}
