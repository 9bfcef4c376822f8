//! Large reads, a page at a time: neither a repository nor a link is busy with one for long.
//!
//! A scan, or a read of many keys, is a chain of requests: a repository answers one page of it, up
//! to [`page_rows`] keys or [`page_bytes`] bytes, and is asked for the next one when that has come.
//! So at most one page of an operation is under way from each repository, and others are served in
//! between. All pages are read at the transaction's snapshot, as any two of its reads are.
//!
//! The next page of a repository on the coordinator's own node is asked for by a timer without
//! delay: a call would go on until the whole range is read, and nobody else would run.
//!
//! [`page_rows`]: muesli_core::Limits::page_rows
//! [`page_bytes`]: muesli_core::Limits::page_bytes

use muesli_core::limits::Limits;
use muesli_core::{OpId, RepositoryId, SmallBytes, Txn};

use super::asked::{Asked, AskedKeys, Groups, PendingRequest, Queued};
use super::{Coordinator, CoordinatorTimer};
use crate::sizes::grow_answer;
use crate::two_phase::{Context, Variant};

/// Puts what is asked for beyond the first page of each repository aside.
pub(in crate::two_phase) fn first_pages(groups: Groups, limits: &Limits) -> (Groups, Queued) {
    let fits = |keys: &AskedKeys| {
        let bytes = || keys.iter().map(|(_, _, key)| key.len()).sum::<usize>();
        keys.len() == 1 || keys.len() <= limits.page_rows && bytes() < limits.page_bytes
    };
    if groups.iter().all(|(_, keys)| fits(keys)) {
        return (groups, Queued::new());
    }
    let (mut first, mut queued) = (Groups::new(), Queued::new());
    for (to, keys) in groups {
        assert!(!keys.is_empty(), "{to:?} is asked for nothing");
        let mut pages = pages_of(keys, limits.page_rows, limits.page_bytes).into_iter();
        first.extend(pages.next().map(|page| (to, page)));
        queued.extend(pages.map(|page| (to, page)));
    }
    (first, queued)
}

impl<V: Variant> Coordinator<V> {
    /// Something more is asked of a repository for an operation that is under way.
    pub(in crate::two_phase) fn ask_more(
        &mut self,
        (txn, op): (Txn, OpId),
        (to, asked): (RepositoryId, Asked),
        cx: &mut Context<'_, V>,
    ) {
        let request = PendingRequest::new(op, to, asked, cx.now());
        self.ask_also(txn, request, cx);
    }

    /// The same of a request that perhaps was asked elsewhere before.
    pub(in crate::two_phase) fn ask_also(
        &mut self,
        txn: Txn,
        request: PendingRequest,
        cx: &mut Context<'_, V>,
    ) {
        self.next_request += 1;
        let id = self.next_request;
        if cx.catalog.home(request.to) != self.id {
            return self.issue(txn, id, request, cx);
        }
        let before = self.requests.insert(id, request);
        assert!(before.is_none(), "request {id} is open already");
        self.pages.push_back(id);
        if self.pages.len() == 1 {
            cx.defer(CoordinatorTimer::Pages);
        }
    }

    /// Asks a repository here for the next page that is due.
    pub(in crate::two_phase) fn ask_for_page(&mut self, cx: &mut Context<'_, V>) {
        let Some(id) = self.pages.pop_front() else { return };
        if !self.pages.is_empty() {
            cx.defer(CoordinatorTimer::Pages);
        }
        let Some(request) = self.requests.get(id) else { return }; // Its transaction has ended.
        let Some(operation) = self.operations.get(request.op.0) else { return };
        let txn = operation.txn;
        assert!(request.held, "page {id} was asked for before its turn");
        if let Some(request) = self.requests.remove(id) {
            self.issue(txn, id, request, cx);
        }
    }

    /// Counts what an operation was answered with; false: that is more than it may have, and its
    /// transaction has ended.
    pub(in crate::two_phase) fn count_bytes<'a>(
        &mut self,
        op: OpId,
        answered: impl Iterator<Item = (usize, Option<&'a SmallBytes>)>,
        cx: &mut Context<'_, V>,
    ) -> bool {
        let Some(operation) = self.operations.get_mut(op.0) else { return false };
        let grown = grow_answer(&mut operation.bytes, answered, &cx.settings.limits);
        let txn = operation.txn;
        grown.inspect_err(|failure| self.abort(txn, failure, cx)).is_ok()
    }
}

/// Keys in pages of so many keys and bytes at most; a page has one key at least.
fn pages_of(keys: AskedKeys, rows: usize, bytes: usize) -> Vec<AskedKeys> {
    let mut pages: Vec<AskedKeys> = Vec::new();
    let (mut size, count) = (0, keys.len());
    for key in keys {
        let full = pages.last().is_none_or(|page| page.len() >= rows || size >= bytes);
        if full {
            pages.push(AskedKeys::new());
            size = 0;
        }
        size += key.2.len();
        pages.last_mut().expect("pushed above").push(key);
    }
    assert!(pages.iter().all(|page| (1..=rows.max(1)).contains(&page.len())), "a page too large");
    assert_eq!(pages.iter().map(AskedKeys::len).sum::<usize>(), count, "keys of all pages");
    pages
}

#[cfg(test)]
mod tests {
    use muesli_core::SpaceId;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_hold_all_keys_in_order_and_none_is_too_large(
            lengths in prop::collection::vec(0usize..40, 0..60), rows in 1usize..9,
            bytes in 1usize..90,
        ) {
            let key = |(place, length): (usize, &usize)| {
                (place, SpaceId(1), SmallBytes::from(vec![7; *length]))
            };
            let keys: AskedKeys = lengths.iter().enumerate().map(key).collect();
            let pages = pages_of(keys.clone(), rows, bytes);
            for page in &pages {
                let before_last = &page[..page.len() - 1];
                let size: usize = before_last.iter().map(|(_, _, key)| key.len()).sum();
                prop_assert!(page.len() <= rows && size < bytes);
            }
            let all: AskedKeys = pages.into_iter().flatten().collect();
            prop_assert_eq!(all, keys);
        }
    }
}
