//! Reads of ranges, a page at a time.

use muesli_core::parts::transaction::check_scan;
use muesli_core::recorder::value_hash;
use muesli_core::{
    Answer, Failure, Here, KeyRange, OpId, Row, Scan, SmallBytes, Step, Timestamp, Txn,
};

use super::CertifiedCoordinator;
use super::keys::{at_site, site_to_read};
use super::operations::{PendingOperation, PendingReads};
use super::running::RunningTransaction;
use crate::certified::message::command::{ReadRange, RowsDigest};
use crate::certified::message::{FoundKey, Message, PageReply, PageRequest};
use crate::certified::{Certified, Context};
use crate::sizes::grow_answer;

/// How far a scan has come.
enum ScanProgress {
    /// To its end.
    Ended(Vec<Row>),
    /// More is to be asked: what is left of the range.
    Goes(KeyRange),
}

impl CertifiedCoordinator {
    pub(super) fn scan(
        &mut self,
        txn: Txn,
        scan: Scan,
        here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) -> Step {
        let lists = self.open(txn).is_ok_and(|running| running.options.lists);
        let checked = check_scan(&scan, lists, cx.catalog, &cx.settings.limits);
        let range = KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() };
        let running = match (self.open(txn), checked) {
            (Ok(running), Ok(())) => running,
            (Err(failure), _) | (_, Err(failure)) => return Step::Done(Err(failure)),
        };
        if scan.limit == 0 || scan.hi.as_ref().is_some_and(|hi| *hi <= scan.lo) {
            return Step::Done(Ok(Answer::Rows(Vec::new())));
        }
        let wanted = scan.limit.saturating_add(running.sets.deletes_in(&range));
        let op = OpId(self.next_number());
        let kind = PendingReads::Range { scan, wanted, rows: Vec::new() };
        self.look_for_rows(op, txn, (kind, range, 0), here, cx)
    }

    /// Asks for what is left of a range, or has it.
    fn look_for_rows(
        &mut self,
        op: OpId,
        txn: Txn,
        (mut kind, mut range, mut bytes): (PendingReads, KeyRange, usize),
        mut here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) -> Step {
        self.leave_lost_site(txn, cx);
        let at = self.site_of(txn);
        loop {
            let PendingReads::Range { scan, wanted, rows } = &kind else {
                unreachable!("rows are looked for")
            };
            let live = rows.iter().filter(|(_, found)| found.value.is_some()).count();
            let (request, reader) = (self.next_number(), self.reader(txn));
            let moment = self.moment_to_ask_for(txn);
            let asked = PageRequest {
                request,
                reader,
                moment,
                within: whole(scan),
                range: range.clone(),
                reverse: scan.reverse,
                limit: wanted.saturating_sub(live) as u64,
            };
            let Some(site) = site_to_read(&mut here, at, (reader, &moment), cx) else {
                let asked = Message::Page(asked);
                let operation = PendingOperation::new(txn, (request, asked), (bytes, kind), cx);
                self.wait(op, operation, cx);
                return Step::Wait(op);
            };
            let reply = at_site(site, at, cx, |site, cx| site.read_page(cx.me.node, asked, cx));
            match self.take_page(txn, reply, (&mut kind, &mut bytes), cx) {
                Ok(ScanProgress::Ended(rows)) => return Step::Done(Ok(Answer::Rows(rows))),
                Ok(ScanProgress::Goes(left)) => range = left,
                Err(failure) => {
                    self.fail(txn, &failure, cx);
                    return Step::Done(Err(failure));
                }
            }
        }
    }

    /// What a site has answered.
    pub(super) fn on_page(
        &mut self,
        reply: PageReply,
        here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) {
        let is_of_range = |kind: &PendingReads| matches!(kind, PendingReads::Range { .. });
        let taken = self.take_operation(reply.request, is_of_range);
        let Some((op, operation)) = taken else { return };
        let PendingOperation { txn, mut kind, mut bytes, .. } = operation;
        let step = match self.take_page(txn, reply, (&mut kind, &mut bytes), cx) {
            Ok(ScanProgress::Ended(rows)) => Step::Done(Ok(Answer::Rows(rows))),
            Ok(ScanProgress::Goes(left)) => {
                self.look_for_rows(op, txn, (kind, left, bytes), here, cx)
            }
            Err(failure) => {
                self.fail(txn, &failure, cx);
                Step::Done(Err(failure))
            }
        };
        if let Step::Done(answer) = step {
            cx.complete(op, answer);
        }
    }

    /// Notes a page.
    fn take_page(
        &mut self,
        txn: Txn,
        reply: PageReply,
        (kind, bytes): (&mut PendingReads, &mut usize),
        cx: &mut Context<'_>,
    ) -> Result<ScanProgress, Failure> {
        let records = cx.effects.recorder.is_some();
        self.take_snapshot(txn, reply.snapshot, reply.cut)?;
        let running = self.open(txn)?;
        let PendingReads::Range { scan, wanted, rows } = kind else {
            unreachable!("rows were looked for")
        };
        let entries = reply.rows.iter().map(|(key, found)| (key.len(), found.value.as_ref()));
        grow_answer(bytes, entries, &cx.settings.limits)?;
        rows.extend(reply.rows);
        let live = rows.iter().filter(|(_, found)| found.value.is_some()).count();
        match reply.seen_to {
            Some(seen_to) if live < *wanted => {
                Ok(ScanProgress::Goes(whole(scan).beyond(scan.reverse, &seen_to)))
            }
            edge => {
                let rows = std::mem::take(rows);
                let seen = (edge, reply.deletions);
                Ok(ScanProgress::Ended(running.has_scanned(scan, rows, seen, records)))
            }
        }
    }
}

/// All of a scan's range.
fn whole(scan: &Scan) -> KeyRange {
    KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() }
}

impl RunningTransaction {
    /// A range was read, up to this key: what is the answer, with the transaction's own writes.
    fn has_scanned(
        &mut self,
        scan: &Scan,
        mut rows: Vec<(SmallBytes, FoundKey)>,
        (edge, deletions): (Option<SmallBytes>, u64),
        records: bool,
    ) -> Vec<Row> {
        let within = whole(scan);
        let mut seen = within.seen(scan.reverse, edge.as_ref());
        rows.sort_by(|(a, _), (b, _)| a.cmp(b)); // Pages are sorted already, one way or the other.
        rows.dedup_by(|again, row| again.0 == row.0);
        let live = rows.iter().filter_map(|(key, found)| Some((key.clone(), found.value.clone()?)));
        let live: Vec<Row> = live.collect();
        assert!(live.is_sorted_by(|a, b| a.0 < b.0), "rows of a scan out of order");
        let answer = self.sets.overlay(&within, live, scan.reverse, scan.limit, edge.is_none());
        assert!(answer.len() <= scan.limit, "{} rows, of {} wanted", answer.len(), scan.limit);
        if let Some((last, _)) = answer.last().filter(|_| answer.len() == scan.limit) {
            match scan.reverse {
                true => seen.lo = last.clone().max(seen.lo),
                false => seen.hi = Some(last.successor()),
            }
        }
        rows.retain(|(key, _)| seen.contains(scan.space, key));
        let present = rows.iter().filter(|(_, found)| found.value.is_some());
        let digest = RowsDigest::of(present.map(|(key, found)| (key, found.version)));
        if records {
            let own = |key: &SmallBytes| self.sets.own(scan.space, key).is_some();
            let noted = rows.iter().filter(|(key, _)| !own(key));
            let row = |(key, found): &(SmallBytes, FoundKey)| -> (SmallBytes, Timestamp, _) {
                (key.clone(), found.recorded(), found.value.as_ref().map(value_hash))
            };
            let noted: Vec<_> = noted.map(row).collect();
            let (lo, hi) = (&seen.lo, seen.hi.as_ref());
            self.sets.operations.scan(seen.space, lo, hi, noted.into_iter());
        }
        self.ranges.push(ReadRange { within, seen, digest, deletions });
        answer
    }
}
