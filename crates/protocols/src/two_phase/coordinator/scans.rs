//! Ranges, put together from what the repositories that hold parts of them answer.

use std::collections::BTreeMap;

use muesli_core::parts::transaction::{ReadEntry, check_scan};
use muesli_core::parts::versions::Handle;
use muesli_core::ranges::KeyRange;
use muesli_core::recorder::value_hash;
use muesli_core::{
    Abort, Failure, Here, OpId, RepositoryId, Row, Scan, SmallBytes, SpaceId, Step, Txn,
};

use super::Coordinator;
use super::asked::{Asked, AskedPage, OperationKind, Queued, ScannedRows, SentOn};
use super::slot::Slot;
use crate::two_phase::message::moves::MovedRow;
use crate::two_phase::message::{Found, ScanReply};
use crate::two_phase::{Context, TwoPhase, Variant};

impl<V: Variant> Coordinator<V> {
    pub(in crate::two_phase) fn on_client_scan(
        &mut self,
        txn: Txn,
        scan: Scan,
        here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> Step<Vec<Row>> {
        let lists = self.open(txn).is_ok_and(|slot| slot.options.lists);
        let checked = check_scan(&scan, lists, cx.catalog, &cx.settings.limits);
        if let Err(failure) = self.open(txn).map(|_| ()).and(checked) {
            return Step::Done(Err(failure));
        }
        let range = KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() };
        let is_changed = self.open(txn).is_ok_and(|slot| slot.delays.changes_in(&range));
        if is_changed {
            return Step::Done(Err(self.footprint_violation(txn, cx)));
        }
        let empty = scan.limit == 0 || scan.hi.as_ref().is_some_and(|hi| *hi <= scan.lo);
        if empty {
            return Step::Done(Ok(Vec::new()));
        }
        let deletes = self.open(txn).map_or(0, |slot| slot.sets.deletes_in(&range));
        let limit = scan.limit.saturating_add(deletes);
        let mut groups: BTreeMap<RepositoryId, Vec<u16>> = BTreeMap::new();
        for partition in cx.catalog.partitions_of_range(scan.space, &scan.lo, scan.hi.as_ref()) {
            groups.entry(self.choose(partition, &here, cx)).or_default().push(partition);
        }
        let page = |partitions| Asked::Page(AskedPage { partitions, seen_to: None, limit });
        let groups = groups.into_iter().map(|(to, partitions)| (to, page(partitions)));
        let (rows, collected) = (Vec::new(), BTreeMap::new());
        let kind = OperationKind::Scan(ScannedRows { scan, rows, collected, edge: None });
        Step::Wait(self.ask(txn, (kind, Queued::new()), groups, cx))
    }

    pub(in crate::two_phase) fn on_scan_reply(
        &mut self,
        mut reply: ScanReply<V>,
        _here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) {
        let answer = (reply.request, reply.snapshot, &reply.committed);
        let Some((txn, request)) = self.take_answer(answer, cx) else { return };
        let suffered = V::POLICIES.installing.may_time_warp() && self.tolerates_stale_reads;
        let updates = !suffered && self.slot(txn).is_some_and(|slot| !slot.sets.writes.is_empty());
        if updates && reply.rows.iter().any(|(_, found)| !found.newest) {
            self.abort(txn, &Failure::Aborted(Abort::StaleRead), cx);
            return;
        }
        let answered = reply.rows.iter().map(|(key, found)| (key.len(), found.value.as_ref()));
        if !self.count_bytes(request.op, answered, cx) {
            return;
        }
        let operation = self.operations.get_mut(request.op.0).expect("found above");
        let (OperationKind::Scan(gathered), Asked::Page(page)) =
            (&mut operation.kind, request.asked)
        else {
            return;
        };
        gathered.take_collected(&mut reply.rows);
        let live = reply.rows.iter().filter(|(_, found)| found.value.is_some()).count();
        gathered.rows.extend(reply.rows);
        let limit = page.limit.saturating_sub(live + reply.moved.len());
        let space = gathered.scan.space;
        let stopped = match reply.seen_to {
            Some(seen_to) if limit > 0 => {
                let page = AskedPage { seen_to: Some(seen_to), limit, ..page };
                self.ask_more((txn, request.op), (request.to, Asked::Page(page)), cx);
                None
            }
            stopped => Some(stopped),
        };
        self.ask_for_rows((txn, request.op), (space, &reply.moved), cx);
        if let Some(stopped) = stopped {
            let operation = self.operations.get_mut(request.op.0).expect("found above");
            if let OperationKind::Scan(gathered) = &mut operation.kind {
                gathered.limit_to(stopped);
            }
            self.count_answer(request.op, cx);
        }
    }

    /// Asks for rows where they are that are not where static placement puts them.
    fn ask_for_rows(
        &mut self,
        (txn, op): (Txn, OpId),
        (space, moved): (SpaceId, &[MovedRow]),
        cx: &mut Context<'_, V>,
    ) {
        if moved.is_empty() {
            return;
        }
        for row in moved {
            self.learn_owner((space, row.key.clone()), (row.to, row.at));
        }
        let keys = moved.iter().map(|row| (0, space, row.key.clone())).collect();
        let Some(operation) = self.operations.get_mut(op.0) else { return };
        operation.missing += 1; // Beside the page that told of them.
        let sent_on = SentOn { keys, since: cx.now(), times: 0 };
        self.ask_on((txn, op), sent_on, None, cx);
    }

    /// All repositories answered: what was seen for sure, with the transaction's own writes.
    pub(in crate::two_phase) fn finish_scan(
        &mut self,
        txn: Txn,
        gathered: ScannedRows,
        cx: &mut Context<'_, V>,
    ) -> Vec<Row> {
        let Some(slot) = self.slot(txn) else { return Vec::new() };
        let ScannedRows { scan, mut rows, collected, edge } = gathered;
        let range = KeyRange { space: scan.space, lo: scan.lo, hi: scan.hi };
        let mut seen = range.seen(scan.reverse, edge.as_ref());
        rows.retain(|(key, _)| seen.contains(scan.space, key));
        rows.sort_by(|(a, _), (b, _)| a.cmp(b)); // Pages are sorted already, one way or the other.
        rows.dedup_by(|again, row| again.0 == row.0); // Each key lives in one place.
        if !V::POLICIES.reading.has_snapshots() {
            rows = slot.repeat_rows(&seen, rows);
        }
        let live = rows.iter().filter_map(|(key, found)| Some((key.clone(), found.value.clone()?)));
        let live: Vec<Row> = live.collect();
        let complete = edge.is_none();
        assert!(live.is_sorted_by(|a, b| a.0 < b.0), "rows of a scan out of order");
        let answer = slot.sets.overlay(&range, live, scan.reverse, scan.limit, complete);
        assert!(answer.len() <= scan.limit, "{} rows, of {} wanted", answer.len(), scan.limit);
        if let Some((last, _)) = answer.last().filter(|_| answer.len() == scan.limit) {
            if scan.reverse {
                seen.lo = last.clone().max(seen.lo);
            } else {
                seen.hi = Some(last.successor());
            }
        }
        let row_reads: Vec<_> =
            if V::POLICIES.validation.has_rows() { reads_of(&rows, &seen) } else { vec![] };
        if cx.effects.recorder.is_some() {
            // Where reads are made at no snapshot, rows may come and go between two reads.
            let collected = collected.into_iter().filter(|_| V::POLICIES.reading.has_snapshots());
            let mut noted: BTreeMap<_, _> = collected.map(|(k, at)| (k, (at, None))).collect();
            let hash = |found: &Found| found.value.as_ref().map(value_hash);
            noted.extend(rows.into_iter().map(|(key, row)| (key, (row.recorded(), hash(&row)))));
            let own = |key: &SmallBytes| slot.sets.own(scan.space, key).is_some();
            noted.retain(|key, _| seen.contains(scan.space, key) && !own(key));
            let rows: Vec<_> = noted.into_iter().map(|(key, (at, hash))| (key, at, hash)).collect();
            let (lo, hi) = (&seen.lo, seen.hi.as_ref());
            slot.sets.operations.scan(seen.space, lo, hi, rows.into_iter());
        }
        if !V::POLICIES.reading.has_snapshots() {
            slot.note_scanned(&seen, &cx.settings.limits);
        }
        if slot.keeps_reads() {
            if V::POLICIES.validation.has_rows() {
                slot.sets.reads.extend(row_reads);
            }
            slot.sets.scans.push(seen);
        }
        answer
    }
}

impl<V: Variant> Slot<V> {
    /// Where reads are made at no snapshot: the rows of a range with what was read of it before.
    fn repeat_rows(
        &mut self,
        range: &KeyRange,
        rows: Vec<(SmallBytes, Found)>,
    ) -> Vec<(SmallBytes, Found)> {
        let mut rows: BTreeMap<_, _> = rows.into_iter().collect();
        let before = self.seen.iter().filter(|((space, key), _)| range.contains(*space, key));
        let before: Vec<_> = before.map(|((_, key), found)| (key.clone(), found.clone())).collect();
        for (key, found) in rows.iter() {
            self.seen.entry((range.space, key.clone())).or_insert_with(|| found.clone());
        }
        rows.extend(before);
        rows.into_iter().collect()
    }
}

/// The rows of a range as reads of their keys.
fn reads_of(rows: &[(SmallBytes, Found)], range: &KeyRange) -> Vec<ReadEntry> {
    let inside = rows.iter().filter(|(key, _)| range.contains(range.space, key));
    let read = |(key, found): &(SmallBytes, Found)| ReadEntry {
        space: range.space,
        repository: RepositoryId(0), // A transaction that scans does not commit in one step.
        handle: Handle::NONE,
        key: key.clone(),
        version: found.version,
    };
    inside.map(read).collect()
}
