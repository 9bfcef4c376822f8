//! Large reads of interactive transactions, a page at a time: no repository is busy with one for
//! long.
//!
//! A repository answers a scan, or a read of many keys, with at most [`page_rows`] keys or
//! [`page_bytes`] bytes, and is asked for the next page when that has come. Each page is a read of
//! its own, at a moment of its own: the end of the transaction checks at one timestamp that nothing
//! of what the pages saw has changed, as it checks all reads that were made by several requests.
//!
//! [`page_rows`]: muesli_core::Limits::page_rows
//! [`page_bytes`]: muesli_core::Limits::page_bytes

use std::collections::VecDeque;

use muesli_core::limits::{ENTRY_BYTES, Limit, check_size};
use muesli_core::{Limits, OpId, SmallBytes, SpaceId, Txn};
use smallvec::smallvec;

use super::calls::participants_of;
use super::coordinator::{Context, Coordinator, PAGES_TIMER};
use super::message::{Agreement, Found, Part, Request, Task};
use super::pending::Purpose;

/// Something to be asked of a partition.
pub(super) type Look = (u16, Task);

/// What is asked for when something else has been answered.
pub(super) type Queued = VecDeque<Look>;

impl Coordinator {
    /// Asks the repository that holds a partition.
    pub(super) fn look_at(
        &mut self,
        (txn, op): (Txn, OpId),
        (partition, task): Look,
        cx: &mut Context<'_>,
    ) {
        let slot = self.slot(txn).expect("an open transaction");
        slot.looks += 1;
        let nearby = slot.options.nearby && slot.options.read_only;
        // A copy is not to answer from before what was read already.
        let floor = if nearby { slot.floor() } else { slot.options.floor };
        let parts = smallvec![Part { partition, owners: self.names.of(partition), task }];
        let participants = participants_of(&parts, self.reader(), cx.catalog);
        let settled_below = self.settled_below();
        let request = Request {
            txn: self.next_txn_id(),
            settled_below,
            floor,
            agreement: Agreement::Alone,
            read_only: true,
            nearby,
            master: None,
            participants,
            parts,
        };
        self.ask(request, Purpose::Read(op), cx);
    }

    /// Something more is to be asked for an operation that is under way: once what was said has
    /// left, so that others run in between also where the repository is on this node.
    pub(super) fn look_on(&mut self, op: OpId, look: Look, cx: &mut Context<'_>) {
        self.pages.push_back((op, look));
        if self.pages.len() == 1 {
            cx.go_on_later(PAGES_TIMER);
        }
    }

    /// Asks for the next page that is due.
    pub(super) fn ask_for_page(&mut self, cx: &mut Context<'_>) {
        let Some((op, look)) = self.pages.pop_front() else { return };
        if !self.pages.is_empty() {
            cx.go_on_later(PAGES_TIMER);
        }
        let Some(operation) = self.operations.get(op.0) else { return }; // It has failed.
        let txn = operation.txn;
        if self.slot(txn).is_some() {
            self.look_at((txn, op), look, cx);
        }
    }

    /// Counts what an operation was answered with; false: that is more than it may have, and its
    /// transaction has ended.
    pub(super) fn count_bytes<'a>(
        &mut self,
        op: OpId,
        answered: impl Iterator<Item = (usize, &'a Found)>,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(operation) = self.operations.get_mut(op.0) else { return false };
        let size = |(key, found): (usize, &Found)| {
            ENTRY_BYTES + key + found.value.as_ref().map_or(0, SmallBytes::len)
        };
        operation.bytes += answered.map(size).sum::<usize>();
        let limit = cx.settings.limits.answer_bytes;
        let (txn, judged) = (operation.txn, check_size(Limit::Answer, operation.bytes, limit));
        if let Err(failure) = &judged {
            self.abort(txn, failure, cx);
        }
        judged.is_ok()
    }
}

/// Reads of the keys of a partition, each of so many keys and bytes at most.
pub(super) fn reads_of(
    (partition, keys): (u16, Vec<(SpaceId, SmallBytes)>),
    limits: &Limits,
) -> Vec<Look> {
    let mut pages: Vec<Vec<(SpaceId, SmallBytes)>> = Vec::new();
    let mut bytes = 0;
    for key in keys {
        let is_full = |page: &Vec<_>| page.len() >= limits.page_rows || bytes >= limits.page_bytes;
        if pages.last().is_none_or(is_full) {
            pages.push(Vec::new());
            bytes = 0;
        }
        bytes += key.1.len();
        pages.last_mut().expect("pushed above").push(key);
    }
    pages.into_iter().map(|page| (partition, Task::Read(page))).collect()
}
