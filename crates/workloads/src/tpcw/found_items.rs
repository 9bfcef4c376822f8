//! Which items each search finds: they come and go with no transaction, so answers are known as far
//! as they do not depend on what was changed.

use std::collections::BTreeMap;

use super::first::FirstData;
use super::plans::browsing::{SHOWN, ShownItem};
use super::tables::BY_SUBJECT;

/// The items of each search, by their numbers.
#[derive(Debug, Default)]
pub(super) struct FoundItems {
    by_search: BTreeMap<(u8, String), Vec<u32>>,
}

impl FoundItems {
    /// Those of a shop.
    pub fn new(first: &FirstData) -> FoundItems {
        let mut all = FoundItems::default();
        for item in (1..=first.items).map(|number| first.item(number)) {
            for search in first.searches(&item) {
                all.by_search.entry(search).or_default().push(item.item);
            }
        }
        all
    }

    /// The items of a search.
    pub fn of(&self, kind: u8, text: &str) -> &[u32] {
        self.by_search.get(&(kind, text.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// The items of a subject.
    pub fn of_subject(&self, subject: u8) -> &[u32] {
        self.of(BY_SUBJECT, &subject.to_string())
    }

    /// Whether these can be the newest items of a subject.
    pub fn are_newest(&self, subject: u8, shown: &[ShownItem]) -> bool {
        let newest = shown.windows(2).all(|two| two[0].published >= two[1].published);
        let all = self.of_subject(subject);
        newest
            && shown.len() == all.len().min(SHOWN)
            && are_some_of(all, shown.iter().map(|it| it.item))
    }

    /// Whether these are the first items that a search finds, by their titles.
    pub fn are_found(&self, (kind, text): (u8, &str), shown: &[ShownItem]) -> bool {
        let in_order =
            |two: &[ShownItem]| (&two[0].title, two[0].item) < (&two[1].title, two[1].item);
        let all = self.of(kind, text);
        let mut found: Vec<u32> = shown.iter().map(|it| it.item).collect();
        found.sort_unstable();
        shown.windows(2).all(in_order) && found == all[..all.len().min(SHOWN)]
    }

    /// Whether these can be the best sellers of a subject, with how many of each were sold.
    pub fn are_best(&self, subject: u8, best: &[(u32, u64)]) -> bool {
        let in_order = |two: &[(u32, u64)]| (two[1].1, two[0].0) < (two[0].1, two[1].0);
        let all = self.of_subject(subject);
        let sold = best.iter().all(|it| it.1 > 0);
        sold && best.windows(2).all(in_order)
            && best.len() <= SHOWN
            && are_some_of(all, best.iter().map(|it| it.0))
    }
}

/// Whether all of these are in an ordered list, and each is there once.
fn are_some_of(all: &[u32], some: impl Iterator<Item = u32>) -> bool {
    let mut some: Vec<u32> = some.collect();
    some.sort_unstable();
    some.windows(2).all(|two| two[0] < two[1])
        && some.iter().all(|item| all.binary_search(item).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcw::tables::BY_AUTHOR;

    const FIRST: FirstData = FirstData { items: 400, customers: 4 };

    fn shown(item: u32, published: u32) -> ShownItem {
        let loaded = FIRST.item(item);
        let author = FIRST.author(loaded.facts.author).last;
        let (title, subject) = (loaded.facts.title, loaded.facts.subject);
        ShownItem { item, title, author, subject, published }
    }

    #[test]
    fn lists_that_are_empty_short_or_of_others_are_wrong() {
        let found = FoundItems::new(&FIRST);
        let items = found.of_subject(3).to_vec();
        assert!(items.len() > 2 && items.len() < SHOWN, "{items:?}");
        let newest: Vec<_> = items.iter().map(|item| shown(*item, 9)).collect();
        assert!(found.are_newest(3, &newest));
        assert!(!found.are_newest(3, &[]) && !found.are_newest(3, &newest[1..]));
        assert!(!found.are_newest(4, &newest));
        let mut twice = newest.clone();
        twice[1] = twice[0].clone();
        assert!(!found.are_newest(3, &twice));

        let text = FIRST.author(1).last;
        let items = found.of(BY_AUTHOR, &text);
        let mut by_title: Vec<_> = items.iter().map(|item| shown(*item, 9)).collect();
        by_title.sort_by(|a, b| (&a.title, a.item).cmp(&(&b.title, b.item)));
        assert!(found.are_found((BY_AUTHOR, &text), &by_title));
        assert!(!found.are_found((BY_AUTHOR, &text), &[]));
        assert!(!found.are_found((BY_AUTHOR, &text), &by_title[1..]));
        assert!(found.are_found((BY_AUTHOR, "nobody"), &[]));
    }

    #[test]
    fn best_sellers_are_of_their_subject_and_in_order() {
        let found = FoundItems::new(&FIRST);
        let items = found.of_subject(3);
        let (one, other) = (items[0], items[1]);
        assert!(found.are_best(3, &[]) && found.are_best(3, &[(other, 5), (one, 4)]));
        assert!(found.are_best(3, &[(one, 4), (other, 4)]));
        assert!(!found.are_best(3, &[(other, 4), (one, 4)]));
        assert!(!found.are_best(3, &[(one, 4), (other, 5)]) && !found.are_best(3, &[(one, 0)]));
        assert!(!found.are_best(4, &[(one, 4)]) && !found.are_best(3, &[(one, 5), (one, 4)]));
    }
}
