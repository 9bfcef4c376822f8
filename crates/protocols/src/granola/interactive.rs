//! Interactive transactions over one-round ones (section 7.5), by optimistic control: reads.
//!
//! A read is a read-only transaction of one repository, and puts nothing aside there. What was
//! read is checked by the transaction that [ends](super::commit) it. Until then a transaction may
//! have seen what was never there at one time; it will not commit.

use std::collections::BTreeMap;

use muesli_core::limits::{Limit, check_size};
use muesli_core::parts::locks::KeyRange;
use muesli_core::parts::transaction::ReadEntry;
use muesli_core::parts::versions::Handle;
use muesli_core::recorder::value_hash;
use muesli_core::{
    Failure, Index, OpId, OpResult, RepositoryId, Row, Scan, SmallBytes, SpaceId, Step, Timestamp,
    Txn,
};

use super::calls::failure_of;
use super::coordinator::{Context, Coordinator, Slot, failed};
use super::message::{Answer, Found, Part, Request, Seen, Task};
use super::pages::{Look, Queued, reads_of};
use super::pending::Verdict;

/// An operation that waits for answers.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub txn: Txn,
    missing: usize,
    queued: Queued,
    /// What it was answered with so far, in bytes.
    pub bytes: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Get(SpaceId, SmallBytes),
    Many(SpaceId, Vec<SmallBytes>),
    Scan(Gathered),
}

/// The rows of a scan as they come in from the repositories.
#[derive(Clone, Debug)]
struct Gathered {
    scan: Scan,
    rows: BTreeMap<SmallBytes, Found>,
    /// The pages of partitions: what of the range each is about, when it was seen, and its keys.
    seen: Vec<(u16, KeyRange, Timestamp, Vec<SmallBytes>)>,
    /// The nearest place at which some repository stopped: what lies beyond was not seen.
    edge: Option<SmallBytes>,
}

impl Coordinator {
    pub(super) fn on_get(
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
                let kind = Kind::Get(space, key.clone());
                Step::Wait(self.read_keys(txn, kind, space, vec![key.clone()], cx))
            }
        }
    }

    pub(super) fn on_get_many(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        cx: &mut Context<'_>,
    ) -> Step<Vec<Option<SmallBytes>>> {
        let mut asked = Vec::new();
        for key in &keys {
            let sized = check_size(Limit::Key, key.len(), cx.settings.limits.key_bytes);
            let slot = match sized.and_then(|()| self.open(txn)) {
                Ok(slot) => slot,
                Err(failure) => return Step::Done(Err(failure)),
            };
            if !slot.knows(space, key) && !asked.contains(key) {
                asked.push(key.clone());
            }
        }
        if asked.is_empty() {
            let recording = cx.effects.recorder.is_some();
            return Step::Done(self.open(txn).map(|slot| slot.values(space, &keys, recording)));
        }
        Step::Wait(self.read_keys(txn, Kind::Many(space, keys), space, asked, cx))
    }

    fn read_keys(
        &mut self,
        txn: Txn,
        kind: Kind,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        cx: &mut Context<'_>,
    ) -> OpId {
        let mut parts: BTreeMap<u16, Vec<(SpaceId, SmallBytes)>> = BTreeMap::new();
        for key in keys {
            parts.entry(cx.catalog.partition(space, &key)).or_default().push((space, key));
        }
        let limits = &cx.settings.limits;
        let (mut first, mut queued) = (Vec::new(), Queued::new());
        for part in parts {
            let mut pages = reads_of(part, limits).into_iter();
            first.extend(pages.next());
            queued.extend(pages);
        }
        self.look(txn, (kind, queued), first, cx)
    }

    /// Asks the repositories that hold these partitions, each by itself.
    fn look(
        &mut self,
        txn: Txn,
        (kind, queued): (Kind, Queued),
        looks: Vec<Look>,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.next_op();
        let missing = looks.len() + queued.len();
        self.operations.insert(op.0, Operation { txn, missing, queued, bytes: 0, kind });
        for look in looks {
            self.look_at((txn, op), look, cx);
        }
        op
    }

    pub(super) fn on_scan(&mut self, txn: Txn, scan: Scan, cx: &mut Context<'_>) -> Step<Vec<Row>> {
        if let Err(failure) = self.check_scan(txn, &scan, cx) {
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
        let tasks = all.map(|partition| (partition, task.clone())).collect();
        let gathered = Gathered { scan, rows: BTreeMap::new(), seen: Vec::new(), edge: None };
        Step::Wait(self.look(txn, (Kind::Scan(gathered), Queued::new()), tasks, cx))
    }

    fn check_scan(&mut self, txn: Txn, scan: &Scan, cx: &Context<'_>) -> Result<(), Failure> {
        self.open(txn)?;
        let longest = scan.lo.len().max(scan.hi.as_ref().map_or(0, SmallBytes::len));
        check_size(Limit::Key, longest, cx.settings.limits.key_bytes)?;
        match cx.catalog.space(scan.space) {
            Some(space) if space.options.index == Index::Hash => Err(Failure::Space(format!(
                "space `{}` has a hash index and cannot be scanned; an ordered index can",
                space.name
            ))),
            Some(_) => Ok(()),
            None => Err(Failure::Space(format!("there is no space {}", scan.space.0))),
        }
    }

    /// A repository has answered a read.
    pub(super) fn on_read_end(
        &mut self,
        op: OpId,
        request: &Request,
        verdict: Verdict,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.operations.get_mut(op.0) else { return };
        let txn = operation.txn;
        let (at, answers) = match verdict {
            Verdict::Done(at, answers) => (at, answers),
            Verdict::Conflict | Verdict::Moved(_) | Verdict::Forgotten(_) => {
                let failure = Failure::Aborted(muesli_core::Abort::Locked);
                return self.abort(txn, &failure, cx);
            }
            Verdict::Refused(refusal) => return self.abort(txn, &failure_of(refusal), cx),
        };
        let Some((_, answer)) = answers.into_iter().next() else { return };
        let Some(slot) = self.slot(txn) else { return };
        slot.looked = slot.looked.max(at);
        let Part { partition, task, .. } = &request.parts[0];
        let more = match (task, answer) {
            (Task::Read(keys), Answer::Found(found)) => {
                let sized = keys.iter().map(|(_, key)| key.len()).zip(&found);
                if !self.count_bytes(op, sized, cx) {
                    return;
                }
                self.take_in_keys(txn, keys, found)
            }
            (Task::Scan { .. }, Answer::Rows(rows, complete)) => {
                let sized = rows.iter().map(|(key, found)| (key.len(), found));
                if !self.count_bytes(op, sized, cx) {
                    return;
                }
                self.take_in_page(op, (*partition, task), at, rows, complete)
            }
            _ => return,
        };
        let Some(operation) = self.operations.get_mut(op.0) else { return };
        let next = match more {
            Some(task) => Some((*partition, task)),
            None => {
                operation.missing -= 1;
                operation.queued.pop_front()
            }
        };
        match next {
            Some(look) => self.look_on(op, look, cx),
            None if operation.missing == 0 => self.finish_operation(op, cx),
            None => {}
        }
    }

    /// Keys were read; answers with a request for those that did not fit.
    fn take_in_keys(
        &mut self,
        txn: Txn,
        keys: &[(SpaceId, SmallBytes)],
        found: Vec<Found>,
    ) -> Option<Task> {
        let (answered, rest) = keys.split_at(found.len().min(keys.len()));
        let slot = self.slot(txn)?;
        for ((space, key), found) in answered.iter().zip(found) {
            slot.take_in(*space, key, found);
        }
        (!rest.is_empty()).then(|| Task::Read(rest.to_vec()))
    }

    /// A page of a scan has come; answers with a request for the next one, if there is to be one.
    fn take_in_page(
        &mut self,
        op: OpId,
        (partition, task): (u16, &Task),
        at: Timestamp,
        rows: Vec<(SmallBytes, Found)>,
        complete: bool,
    ) -> Option<Task> {
        let Task::Scan { range, reverse, limit } = task else { return None };
        let Kind::Scan(gathered) = &mut self.operations.get_mut(op.0)?.kind else { return None };
        let last = if *reverse { rows.first() } else { rows.last() };
        let seen_to = last.map(|(key, _)| key.clone()).filter(|_| !complete);
        let live = rows.iter().filter(|(_, found)| found.value.is_some());
        let keys: Vec<_> = live.map(|(key, _)| key.clone()).collect();
        let limit = limit.saturating_sub(keys.len() as u64);
        gathered.seen.push((partition, range.seen(*reverse, seen_to.as_ref()), at, keys));
        gathered.rows.extend(rows);
        let seen_to = seen_to?;
        if limit == 0 {
            gathered.stop_at(seen_to);
            return None;
        }
        let range = range.beyond(*reverse, &seen_to);
        Some(Task::Scan { range, reverse: *reverse, limit })
    }

    /// All repositories answered.
    fn finish_operation(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(Operation { txn, kind, .. }) = self.operations.remove(op.0) else { return };
        let recording = cx.effects.recorder.is_some();
        let Some(slot) = self.slot(txn) else { return };
        let result = match kind {
            Kind::Get(space, key) => OpResult::Value(slot.known(space, &key, recording).flatten()),
            Kind::Many(space, keys) => OpResult::Values(slot.values(space, &keys, recording)),
            Kind::Scan(gathered) => OpResult::Rows(slot.finish_scan(gathered, recording)),
        };
        cx.complete(op, result);
    }

    /// Whatever the transaction still waits for has failed.
    pub(super) fn fail_operations(&mut self, txn: Txn, failure: &Failure, cx: &mut Context<'_>) {
        let waiting = self.operations.iter().filter(|(_, operation)| operation.txn == txn);
        let waiting: Vec<_> = waiting.map(|(op, _)| OpId(op)).collect();
        for op in waiting {
            self.operations.remove(op.0);
            cx.complete(op, failed(failure));
        }
    }
}

impl Gathered {
    /// A repository has seen nothing beyond `last`.
    fn stop_at(&mut self, last: SmallBytes) {
        self.edge = Some(match self.edge.take() {
            Some(edge) if self.scan.reverse => edge.max(last),
            Some(edge) => edge.min(last),
            None => last,
        });
    }
}

impl Slot {
    /// The highest timestamp that its session has seen, its own reads included.
    pub(super) fn floor(&self) -> Timestamp {
        self.options.floor.max(self.looked)
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
    fn take_in(&mut self, space: SpaceId, key: &SmallBytes, found: Found) {
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
    fn finish_scan(&mut self, gathered: Gathered, recording: bool) -> Vec<Row> {
        let Gathered { scan, mut rows, seen: partitions, edge } = gathered;
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
            self.scans.push((partition, Seen { range, at, live }));
        }
        rows.retain(|key, _| seen.contains(space, key));
        if recording {
            let row = |(key, found): (&SmallBytes, &Found)| {
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
