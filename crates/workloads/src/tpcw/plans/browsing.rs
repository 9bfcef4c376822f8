//! The interactions that only look at what is everywhere, and Home.

use std::sync::Arc;

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use serde::{Deserialize, Serialize};

use crate::tpcw::tables::{
    AUTHORS, Author, BEST_SELLERS, CUSTOMERS, DETAILS, ITEMS, ItemDetails, ItemFacts, SEARCHES,
};

/// So many items are shown of a search, or of a subject.
pub(in crate::tpcw) const SHOWN: usize = 50;

/// The five items that a promoted one is related to: with their thumbnails.
pub(super) fn promoted<A: 'static>(
    plan: &mut PlanBuilder<A>,
    item: PlanValue<u32>,
) -> PlanValue<Vec<Arc<Option<ItemDetails>>>> {
    let details = plan.read(DETAILS, (item,));
    let related = plan.field(details, "related", |details| {
        details.as_ref().map_or(Vec::new(), |details| details.related.to_vec())
    });
    plan.map(related, |plan, item| plan.read(DETAILS, (item.item,)))
}

fn count_there<T>(all: &[Arc<Option<T>>]) -> usize {
    all.iter().filter(|it| it.is_some()).count()
}

/// A page about a customer, if one is known, and a promoted item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct HomeAsked {
    /// None or one.
    pub known: Vec<u64>,
    pub promoted: u32,
}

/// Interaction 1, Home: names of the customer, and how many promoted items were found.
pub(in crate::tpcw) struct HomePage;

impl PlannedProcedure for HomePage {
    const NAME: &'static str = "tpcw-home";
    type Arguments = HomeAsked;
    type Answer = (Vec<String>, usize);

    fn plan(plan: &mut PlanBuilder<HomeAsked>) -> PlanValue<(Vec<String>, usize)> {
        let (known, item) = (arg!(plan, known), arg!(plan, promoted));
        let promoted = promoted(plan, item);
        let one = plan.field(known, "customer", |known| known.first().copied());
        let customer = plan.field(one, "number", |one| one.unwrap_or(0));
        let row =
            plan.when_some(one, |_, one| one.is_some(), |plan| plan.read(CUSTOMERS, (customer,)));
        plan.compute("page", (row, promoted), |_, (row, promoted)| {
            let row = row.as_ref().as_ref().and_then(|row| row.as_ref().as_ref());
            let names = row.map(|row| row.name.clone()).into_iter().collect();
            (names, count_there(&promoted))
        })
    }
}

/// A page about a subject, or a form, with a promoted item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct SubjectAsked {
    pub subject: u8,
    pub promoted: u32,
}

/// Interaction 2, New Products: the newest items of a subject, then by title.
pub(in crate::tpcw) struct NewProducts;

impl PlannedProcedure for NewProducts {
    const NAME: &'static str = "tpcw-new-products";
    type Arguments = SubjectAsked;
    type Answer = Vec<ShownItem>;

    fn plan(plan: &mut PlanBuilder<SubjectAsked>) -> PlanValue<Vec<ShownItem>> {
        let item = arg!(plan, promoted);
        promoted(plan, item);
        let kind = plan.constant(crate::tpcw::tables::BY_SUBJECT);
        let text = plan.arg("subject.text", |asked: &SubjectAsked| asked.subject.to_string());
        let shown = searched(plan, (kind, text), RowRange::ALL);
        plan.field(shown, "newest", |shown| {
            let mut shown: Vec<ShownItem> = shown.clone();
            shown.sort_by(|a, b| (b.published, &a.title).cmp(&(a.published, &b.title)));
            shown.truncate(SHOWN);
            shown
        })
    }
}

/// Interaction 3, Best Sellers: as they were counted last.
pub(in crate::tpcw) struct BestSellersPage;

impl PlannedProcedure for BestSellersPage {
    const NAME: &'static str = "tpcw-best-sellers-page";
    type Arguments = SubjectAsked;
    type Answer = Vec<(u32, u64)>;

    fn plan(plan: &mut PlanBuilder<SubjectAsked>) -> PlanValue<Vec<(u32, u64)>> {
        let (item, subject) = (arg!(plan, promoted), arg!(plan, subject));
        promoted(plan, item);
        let best = plan.read(BEST_SELLERS, (subject,));
        let best = plan.field(best, "items", |best| {
            best.as_ref().map_or(Vec::new(), |best| best.items.clone())
        });
        let rows = plan.map(best, |plan, sold| {
            let item = plan.field(sold.item, "item", |sold| sold.0);
            item_and_author(plan, item)
        });
        plan.compute("page", (best, rows), |_, (best, rows)| {
            let known = best.iter().zip(rows.iter()).filter(|(_, row)| row.is_some());
            known.map(|(sold, _)| *sold).collect()
        })
    }
}

/// What never changes of an item, and its author, if both are there.
type WholeItem = Option<(ItemFacts, Author)>;

fn item_and_author<A: 'static>(
    plan: &mut PlanBuilder<A>,
    item: PlanValue<u32>,
) -> PlanValue<WholeItem> {
    let facts = plan.read(ITEMS, (item,));
    let author =
        plan.field(facts, "author", |facts| facts.as_ref().map_or(0, |facts| facts.author));
    let author = plan.read(AUTHORS, (author,));
    plan.compute("whole item", (facts, author), |_, (facts, author)| {
        (*facts).clone().zip((*author).clone())
    })
}

/// An item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct OfItem {
    pub item: u32,
}

/// Interaction 4, Product Detail, and 13, Admin Request: an item, its details, and its author.
pub(in crate::tpcw) struct ProductDetail;

impl PlannedProcedure for ProductDetail {
    const NAME: &'static str = "tpcw-product-detail";
    type Arguments = OfItem;
    type Answer = Option<(ItemFacts, Author, ItemDetails)>;

    fn plan(plan: &mut PlanBuilder<OfItem>) -> PlanValue<Self::Answer> {
        let item = arg!(plan, item);
        let (whole, details) = (item_and_author(plan, item), plan.read(DETAILS, (item,)));
        plan.compute("detail", (whole, details), |_, (whole, details)| {
            let (facts, author) = (*whole).clone()?;
            Some((facts, author, (*details).clone()?))
        })
    }
}

/// Interaction 5, Search Request: how many promoted items were found.
pub(in crate::tpcw) struct SearchPage;

impl PlannedProcedure for SearchPage {
    const NAME: &'static str = "tpcw-search-page";
    type Arguments = OfItem;
    type Answer = usize;

    fn plan(plan: &mut PlanBuilder<OfItem>) -> PlanValue<usize> {
        let item = arg!(plan, item);
        let promoted = promoted(plan, item);
        plan.field(promoted, "count", |promoted| count_there(promoted))
    }
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct SearchAsked {
    pub kind: u8,
    pub text: String,
    pub promoted: u32,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct ShownItem {
    pub item: u32,
    pub title: String,
    pub author: String,
    pub subject: u8,
    pub published: u32,
}

/// The items that a search finds.
fn searched<A: 'static>(
    plan: &mut PlanBuilder<A>,
    search: (PlanValue<u8>, PlanValue<String>),
    range: RowRange,
) -> PlanValue<Vec<ShownItem>> {
    let found = plan.scan(SEARCHES, search, range);
    let shown = plan.map(found, |plan, row| {
        let item = plan.field(row.item, "item", |((.., item), ())| *item);
        let (whole, details) = (item_and_author(plan, item), plan.read(DETAILS, (item,)));
        plan.compute("shown item", (item, whole, details), |_, (item, whole, details)| {
            let (facts, author) = (*whole).clone()?;
            let published = details.as_ref().as_ref()?.published;
            let (title, subject) = (facts.title, facts.subject);
            Some(ShownItem { item: *item, title, author: author.last, subject, published })
        })
    });
    plan.field(shown, "there", |shown| shown.iter().filter_map(|it| (**it).clone()).collect())
}

/// Interaction 6, Search Results: by title.
pub(in crate::tpcw) struct SearchResults;

impl PlannedProcedure for SearchResults {
    const NAME: &'static str = "tpcw-search-results";
    type Arguments = SearchAsked;
    type Answer = Vec<ShownItem>;

    fn plan(plan: &mut PlanBuilder<SearchAsked>) -> PlanValue<Vec<ShownItem>> {
        let item = arg!(plan, promoted);
        promoted(plan, item);
        let search = (arg!(plan, kind), arg!(plan, text));
        let shown = searched(plan, search, RowRange::first(SHOWN));
        plan.field(shown, "by title", |shown| {
            let mut shown: Vec<ShownItem> = shown.clone();
            shown.sort_by(|a, b| (&a.title, a.item).cmp(&(&b.title, b.item)));
            shown
        })
    }
}
