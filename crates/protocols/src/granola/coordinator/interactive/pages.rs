//! Large reads of interactive transactions, a page at a time: no repository is busy with one for
//! long.
//!
//! A repository answers a scan, or a read of many keys, with at most [`page_rows`] keys or
//! [`page_bytes`] bytes, and is asked for the next page when that has come. Of a scan all entries
//! count that it looks at, also those of partitions that nobody asked for. What is wanted of
//! several of its partitions is asked for at once, and the page is one for all of them; where there
//! are more than [`PARTS_MAX`], one such lot after the other. Each page is a read of its own, at a
//! moment of its own: the end of the transaction checks at one timestamp that nothing of what the
//! pages saw has changed, as it checks all reads that were made by several requests.
//!
//! [`page_rows`]: muesli_core::Limits::page_rows
//! [`page_bytes`]: muesli_core::Limits::page_bytes

use std::collections::{BTreeMap, VecDeque};

use muesli_core::parts::locator::Locator;
use muesli_core::{Limits, OpId, RepositoryId, SmallBytes, SpaceId, Txn};

use crate::granola::coordinator::calls::participants_of;
use crate::granola::coordinator::{Context, Coordinator, GranolaCoordinatorTimer, Purpose};
use crate::granola::locator::holders;
use crate::granola::message::{Few, FoundVersion, Part, Repositories, Request, Task};
use crate::sizes::grow_answer;

/// So many partitions are asked at once: what a request takes has an end.
pub(in super::super) const PARTS_MAX: usize = 64;

/// Something to be asked of partitions, mostly of one repository; of one partition at least.
pub(in super::super) type Look = Vec<(u16, Task)>;

/// What is asked for when something else has been answered, by repositories.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Queued(BTreeMap<RepositoryId, VecDeque<Look>>);

impl Queued {
    /// Puts something aside.
    pub fn push(&mut self, of: RepositoryId, look: Look) {
        self.0.entry(of).or_default().push_back(look);
    }

    /// Takes the first of each repository.
    pub fn first_of_each(&mut self) -> Vec<Look> {
        self.0.values_mut().filter_map(VecDeque::pop_front).collect()
    }

    /// Takes the next one of a repository.
    pub fn next(&mut self, of: RepositoryId) -> Option<Look> {
        self.0.get_mut(&of)?.pop_front()
    }

    /// Takes one of whatever repository.
    pub fn any(&mut self) -> Option<Look> {
        self.0.values_mut().find_map(VecDeque::pop_front)
    }
}

impl Coordinator {
    /// The first of those who hold a partition, as far as that is known here.
    pub(in super::super) fn holder(&self, partition: u16, cx: &Context<'_>) -> RepositoryId {
        let moved = self.names.moved(&partition).cloned();
        holders(partition, moved.as_ref(), cx.catalog)[0]
    }

    /// Sorts by the repositories that hold partitions.
    pub(in super::super) fn by_repositories<T>(
        &self,
        all: impl IntoIterator<Item = (u16, T)>,
        cx: &Context<'_>,
    ) -> BTreeMap<RepositoryId, Vec<(u16, T)>> {
        let mut sorted: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (partition, what) in all {
            sorted.entry(self.holder(partition, cx)).or_default().push((partition, what));
        }
        sorted
    }

    /// Asks the repositories that hold partitions, each by itself: mostly that is one, but
    /// partitions may have moved since they were put aside together.
    pub(in super::super) fn look_at(
        &mut self,
        (txn, op): (Txn, OpId),
        look: Look,
        cx: &mut Context<'_>,
    ) {
        let part = |(partition, task)| Part {
            partition,
            owners: self.names.moved(&partition).cloned(),
            task,
        };
        assert!((1..=PARTS_MAX).contains(&look.len()), "{} partitions at once", look.len());
        let parts: Few<Part> = look.into_iter().map(part).collect();
        let holders = parts[0].holders(cx.catalog);
        if parts[1..].iter().all(|part| part.holders(cx.catalog) == holders) {
            return self.read_parts((txn, op), parts, cx);
        }
        let mut apart: BTreeMap<Repositories, Few<Part>> = BTreeMap::new();
        for part in parts {
            apart.entry(part.holders(cx.catalog)).or_default().push(part);
        }
        if let Some(operation) = self.operations.get_mut(op.0) {
            assert!(operation.waiting > 0, "operation {} asks, and waits for nothing", op.0);
            operation.waiting += apart.len() - 1;
        }
        apart.into_values().for_each(|parts| self.read_parts((txn, op), parts, cx));
    }

    /// Asks a repository that holds these partitions.
    fn read_parts(&mut self, (txn, op): (Txn, OpId), parts: Few<Part>, cx: &mut Context<'_>) {
        let Some(slot) = self.slot(txn) else { return };
        slot.looks += 1;
        let follower_read = slot.options.follower_reads && slot.options.read_only;
        // A copy is not to answer from before what was read already.
        let lower_bound = if follower_read { slot.lower_bound() } else { slot.options.lower_bound };
        let participants = participants_of(&parts, self.reader(), cx.catalog);
        let settled_below = self.settled_below();
        let request = Request {
            settled_below,
            lower_bound,
            read_only: true,
            follower_read,
            ..Request::new(self.next_txn_id(), participants, parts)
        };
        self.ask(request, Purpose::Read(op), cx);
    }

    /// Something more is to be asked for an operation that is under way: once what was said has
    /// left, so that others run in between also where the repository is on this node.
    pub(in super::super) fn look_on(&mut self, op: OpId, look: Look, cx: &mut Context<'_>) {
        self.pages.push_back((op, look));
        if self.pages.len() == 1 {
            cx.defer(GranolaCoordinatorTimer::Pages);
        }
    }

    /// Asks for the next page that is due.
    pub(in super::super) fn ask_for_page(&mut self, cx: &mut Context<'_>) {
        let Some((op, look)) = self.pages.pop_front() else { return };
        if !self.pages.is_empty() {
            cx.defer(GranolaCoordinatorTimer::Pages);
        }
        let Some(operation) = self.operations.get(op.0) else { return }; // It has failed.
        let txn = operation.txn;
        if self.slot(txn).is_some() {
            self.look_at((txn, op), look, cx);
        }
    }

    /// Counts what an operation was answered with; false: that is more than it may have, and its
    /// transaction has ended.
    pub(in super::super) fn count_bytes<'a>(
        &mut self,
        op: OpId,
        answered: impl Iterator<Item = (usize, &'a FoundVersion)>,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(operation) = self.operations.get_mut(op.0) else { return false };
        let entries = answered.map(|(key, found)| (key, found.value.as_ref()));
        let grown = grow_answer(&mut operation.bytes, entries, &cx.settings.limits);
        let txn = operation.txn;
        grown.inspect_err(|failure| self.abort(txn, failure, cx)).is_ok()
    }
}

/// Reads of the keys of partitions, each of so many keys, bytes and partitions at most, and of one
/// key at least.
pub(in super::super) fn reads_of(
    partitions: Vec<(u16, Vec<(SpaceId, SmallBytes)>)>,
    limits: &Limits,
) -> Vec<Look> {
    let mut pages: Vec<BTreeMap<u16, Vec<(SpaceId, SmallBytes)>>> = Vec::new();
    let (mut rows, mut bytes) = (0, 0);
    for (partition, keys) in partitions {
        for key in keys {
            let is_full = rows >= limits.page_rows || bytes >= limits.page_bytes;
            let has_capacity = |page: &BTreeMap<u16, Vec<_>>| {
                !is_full && (page.len() < PARTS_MAX || page.contains_key(&partition))
            };
            if !pages.last().is_some_and(has_capacity) {
                pages.push(BTreeMap::new());
                (rows, bytes) = (0, 0);
            }
            (rows, bytes) = (rows + 1, bytes + key.1.len());
            let page = pages.last_mut().expect("pushed above");
            page.entry(partition).or_default().push(key);
        }
    }
    let fits = |page: &BTreeMap<u16, Vec<_>>| (1..=PARTS_MAX).contains(&page.len());
    assert!(pages.iter().all(fits), "a page of no partition, or of too many");
    let look = |page: BTreeMap<u16, Vec<_>>| {
        page.into_iter().map(|(partition, keys)| (partition, Task::Read(keys))).collect()
    };
    pages.into_iter().map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_all_keys_in_order_and_none_is_too_large() {
        let key = |at: u32| (SpaceId(1), SmallBytes::new(&at.to_be_bytes()));
        let partitions = |many: u16, each: u32| {
            let keys = |of: u16| (0..each).map(|at| key(u32::from(of) * each + at)).collect();
            (0..many).map(|of| (3 * of, keys(of))).collect::<Vec<_>>()
        };
        for (many, each, rows, bytes) in
            [(1, 10, 4, 99), (3, 5, 4, 99), (3, 5, 99, 9), (200, 1, 999, 9_999), (2, 0, 4, 99)]
        {
            let limits = Limits { page_rows: rows, page_bytes: bytes, ..Limits::default() };
            let pages = reads_of(partitions(many, each), &limits);
            let mut all = Vec::new();
            for page in pages {
                let keys = |(of, task): (u16, Task)| match task {
                    Task::Read(keys) => keys.into_iter().map(move |key| (of, key)),
                    other => panic!("{other:?}"),
                };
                assert!((1..=PARTS_MAX).contains(&page.len()), "{} partitions", page.len());
                let keys: Vec<_> = page.into_iter().flat_map(keys).collect();
                assert!(keys.len() <= rows && (keys.len() - 1) * 4 < bytes, "{}", keys.len());
                all.extend(keys);
            }
            let wanted = partitions(many, each).into_iter();
            let wanted: Vec<_> =
                wanted.flat_map(|(of, keys)| keys.into_iter().map(move |it| (of, it))).collect();
            assert_eq!(all, wanted);
        }
    }
}
