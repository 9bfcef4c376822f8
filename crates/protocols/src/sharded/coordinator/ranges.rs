//! Reads of ranges: each shard that may have keys of one is asked for as many rows as are wanted of
//! all, page by page, and what they have is put together.

use std::collections::BTreeMap;

use muesli_core::Txn;
use muesli_core::parts::transaction::check_scan;
use muesli_core::recorder::value_hash;
use muesli_core::{Answer, Failure, Here, KeyRange, OpId, Row, Scan, SmallBytes, Step, Timestamp};

use super::ShardedCoordinator;
use super::operations::{ScannedPart, ShardedReads};
use super::running::ShardedTransaction;
use crate::certified::message::FoundKey;
use crate::certified::message::command::{ReadRange, RowsDigest};
use crate::sharded::locator::{ShardId, shards_of_range};
use crate::sharded::message::ShardPageReply;
use crate::sharded::{Context, Sharded};
use crate::sizes::grow_answer;

impl ShardedCoordinator {
    pub(super) fn scan(
        &mut self,
        txn: Txn,
        scan: Scan,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Step {
        let lists = self.open(txn).is_ok_and(|running| running.options.lists);
        let checked = check_scan(&scan, lists, cx.catalog, &cx.settings.limits);
        let range = whole(&scan);
        let running = match (self.open(txn), checked) {
            (Ok(running), Ok(())) => running,
            (Err(failure), _) | (_, Err(failure)) => return Step::Done(Err(failure)),
        };
        if scan.limit == 0 || scan.hi.as_ref().is_some_and(|hi| *hi <= scan.lo) {
            return Step::Done(Ok(Answer::Rows(Vec::new())));
        }
        let wanted = scan.limit.saturating_add(running.sets.deletes_in(&range));
        let parts = shards_of_range(&range, cx.catalog).into_iter().map(|shard| {
            let (rows, left, edge, deletions) = (Vec::new(), Some(range.clone()), None, 0);
            (shard, ScannedPart { rows, left, edge, deletions })
        });
        let parts = parts.collect();
        self.read(txn, ShardedReads::Range { scan, wanted, parts }, here, cx)
    }

    /// What a member has answered.
    pub(super) fn on_page(
        &mut self,
        reply: ShardPageReply,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) {
        let is_of_range = |kind: &ShardedReads| matches!(kind, ShardedReads::Range { .. });
        let taken = self.take_request(reply.request, is_of_range);
        let Some((op, shard)) = taken else { return };
        let taken = self.take_page(op, shard, reply, cx);
        self.answered(op, taken, here, cx);
    }

    /// Notes a page.
    pub(super) fn take_page(
        &mut self,
        op: OpId,
        shard: ShardId,
        reply: ShardPageReply,
        cx: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let txn = self.operations[&op].txn;
        self.take_snapshot(txn, (reply.snapshot, reply.clock))?;
        let operation = self.operations.get_mut(&op).expect("it waits");
        let ShardedReads::Range { scan, wanted, parts } = &mut operation.kind else {
            unreachable!("rows were looked for")
        };
        let entries = reply.rows.iter().map(|(key, found)| (key.len(), found.value.as_ref()));
        grow_answer(&mut operation.bytes, entries, &cx.settings.limits)?;
        let part = parts.get_mut(&shard).expect("it was asked for some");
        part.rows.extend(reply.rows);
        part.deletions = reply.deletions;
        let live = part.rows.iter().filter(|(_, found)| found.value.is_some()).count();
        part.left = match &reply.seen_to {
            Some(seen_to) if live < *wanted => Some(whole(scan).beyond(scan.reverse, seen_to)),
            Some(_) | None => None,
        };
        part.edge = reply.seen_to.filter(|_| part.left.is_none());
        Ok(())
    }
}

/// All of a scan's range.
fn whole(scan: &Scan) -> KeyRange {
    KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() }
}

impl ShardedTransaction {
    /// A range was read, by each shard up to some key: what is the answer, with the transaction's
    /// own writes.
    pub(super) fn has_scanned(
        &mut self,
        scan: &Scan,
        parts: BTreeMap<ShardId, ScannedPart>,
        records: bool,
    ) -> Vec<Row> {
        let within = whole(scan);
        let edges = parts.values().filter_map(|part| part.edge.clone());
        let edge = if scan.reverse { edges.max() } else { edges.min() };
        let mut seen = within.seen(scan.reverse, edge.as_ref());
        let of_parts = parts.into_iter().map(|(shard, part)| {
            let mut rows = part.rows;
            rows.sort_by(|(a, _), (b, _)| a.cmp(b)); // Pages are sorted already, or backwards.
            rows.dedup_by(|again, row| again.0 == row.0);
            rows.retain(|(key, _)| seen.contains(scan.space, key));
            (shard, rows, part.deletions)
        });
        let mut of_parts: Vec<_> = of_parts.collect();
        let all = of_parts.iter().flat_map(|(_, rows, _)| rows);
        let live = all.filter_map(|(key, found)| Some((key.clone(), found.value.clone()?)));
        let mut live: Vec<Row> = live.collect();
        live.sort_by(|(a, _), (b, _)| a.cmp(b));
        let answer = self.sets.overlay(&within, live, scan.reverse, scan.limit, edge.is_none());
        assert!(answer.len() <= scan.limit, "{} rows, of {} wanted", answer.len(), scan.limit);
        if let Some((last, _)) = answer.last().filter(|_| answer.len() == scan.limit) {
            match scan.reverse {
                true => seen.lo = last.clone().max(seen.lo),
                false => seen.hi = Some(last.successor()),
            }
        }
        for (_, rows, _) in &mut of_parts {
            rows.retain(|(key, _)| seen.contains(scan.space, key));
        }
        if records {
            let rows = of_parts.iter().flat_map(|(_, rows, _)| rows);
            self.note_scan(&seen, rows.cloned().collect());
        }
        for (shard, rows, deletions) in of_parts {
            let present = rows.iter().filter(|(_, found)| found.value.is_some());
            let digest = RowsDigest::of(present.map(|(key, found)| (key, found.version)));
            let (within, seen) = (within.clone(), seen.clone());
            self.has_read_range(shard, ReadRange { within, seen, digest, deletions });
        }
        answer
    }

    /// Notes for a history what was seen of a range.
    fn note_scan(&mut self, seen: &KeyRange, mut rows: Vec<(SmallBytes, FoundKey)>) {
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        let own = |key: &SmallBytes| self.sets.own(seen.space, key).is_some();
        let noted = rows.iter().filter(|(key, _)| !own(key));
        let row = |(key, found): &(SmallBytes, FoundKey)| -> (SmallBytes, Timestamp, _) {
            (key.clone(), found.recorded(), found.value.as_ref().map(value_hash))
        };
        let noted: Vec<_> = noted.map(row).collect();
        let (lo, hi) = (&seen.lo, seen.hi.as_ref());
        self.sets.operations.scan(seen.space, lo, hi, noted.into_iter());
    }
}
