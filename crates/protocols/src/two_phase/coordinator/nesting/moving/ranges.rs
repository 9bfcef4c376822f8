//! Ranges that were scanned are looked at once more: they are scanned at the new snapshot, page by
//! page. What was there at the old one is there no more, or beside it something is, exactly where
//! some row, deleted ones included, has a version above the old snapshot: deletions are kept for
//! as long as the transaction may still go on there.
//!
//! Where keys move, rows that are elsewhere were read there one by one, and are looked at as other
//! keys are. One that was not read has come to be since.

use std::collections::BTreeMap;

use muesli_core::parts::watermark::Bound;
use muesli_core::{Abort, Failure, Here, RepositoryId};

use super::LevelsLookedAt;
use crate::two_phase::coordinator::Coordinator;
use crate::two_phase::coordinator::asked::{Asked, AskedPage, OperationKind, ScannedRange};
use crate::two_phase::coordinator::slot::Slot;
use crate::two_phase::message::ScanReply;
use crate::two_phase::message::moves::MovedRow;
use crate::two_phase::policy::{FamilySwitch, Switches};
use crate::two_phase::time::Snapshot;
use crate::two_phase::{Context, TwoPhase, Variant};

impl<V: Variant> Slot<V> {
    /// The ranges that are to be looked at, with the levels that have scanned them.
    pub(super) fn ranges_to_look_at(
        &self,
        has_ranges: bool,
        looks: LevelsLookedAt,
        switches: &Switches,
    ) -> Vec<ScannedRange> {
        if !has_ranges || !switches.keeps(FamilySwitch::LooksAtRanges) {
            return Vec::new();
        }
        let innermost = self.sets.depth();
        let scanned = self.sets.scans.iter().enumerate();
        let ranges = scanned.map(|(place, range)| {
            let level = self.sets.level_of_scan(place);
            ScannedRange { level, range: range.clone() }
        });
        ranges.filter(|it| looks.has(it.level, innermost)).collect()
    }
}

impl<V: Variant> Coordinator<V> {
    /// Whom to ask for a look at a range, and for what.
    pub(super) fn range_looks(
        &self,
        look: ScannedRange,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> Vec<(RepositoryId, Asked)> {
        let (range, limit) = (&look.range, usize::MAX);
        let mut groups: BTreeMap<RepositoryId, Vec<u16>> = BTreeMap::new();
        for partition in cx.catalog.partitions_of_range(range.space, &range.lo, range.hi.as_ref()) {
            groups.entry(self.choose(partition, here, cx)).or_default().push(partition);
        }
        let page = |(to, partitions)| {
            let look = Some(look.clone());
            (to, Asked::Page(AskedPage { look, partitions, seen_to: None, limit }))
        };
        groups.into_iter().map(page).collect()
    }

    /// A repository has looked at a page of a range.
    pub(in crate::two_phase::coordinator) fn on_range_look(
        &mut self,
        reply: ScanReply<V>,
        cx: &mut Context<'_, V>,
    ) {
        if self.requests.get(reply.request).is_none_or(|request| request.held) {
            return;
        }
        let Some(request) = self.requests.remove(reply.request) else { return };
        let Some(operation) = self.operations.get(request.op.0) else { return };
        let txn = operation.txn;
        self.observed.join(&reply.committed);
        let Some(at) = reply.snapshot else {
            return self.abort(txn, &Failure::Aborted(Abort::SnapshotTooOld), cx);
        };
        self.observed.join(&at);
        let Some(slot) = self.slot(txn) else { return };
        let moving = slot.moving.as_ref().expect("what was scanned is looked at for a move");
        if moving.to.as_ref() != Some(&at) {
            return self.issue(txn, reply.request, request, cx); // Nobody was asked for that.
        }
        let from = moving.from.at();
        let Asked::Page(page) = request.asked else { return };
        let Some(look) = &page.look else { return };
        let last_reads = slot.sets.last_reads();
        let is_unread = |row: &MovedRow| last_reads.find(look.range.space, &row.key).is_none();
        let has_changed = reply.rows.iter().any(|(_, found)| found.version > from)
            || reply.moved.iter().any(is_unread);
        let level = look.level;
        let operation = self.operations.get_mut(request.op.0).expect("found above");
        let OperationKind::Versions(versions) = &mut operation.kind else { return };
        if has_changed {
            let (outermost, innermost) = versions.ranges.unwrap_or((level, level));
            versions.ranges = Some((outermost.min(level), innermost.max(level)));
        }
        match reply.seen_to {
            Some(seen_to) if !has_changed => {
                let page = AskedPage { seen_to: Some(seen_to), ..page };
                self.ask_more((txn, request.op), (request.to, Asked::Page(page)), cx);
            }
            _ => self.count_answer(request.op, cx),
        }
    }
}
