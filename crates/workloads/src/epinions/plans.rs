//! The nine profiles of EPinions as plans.
//!
//! Two of them join what a user trusts with the reviews of an item, which are of different units:
//! trust is read in a round before, passed as an argument, and refused where it has changed.

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use serde::{Deserialize, Serialize};

use super::tables::{
    ITEMS, Overwritten, PEOPLE, REVIEWS, REVIEWS_OF_USER, RatingRow, TRUST, TRUST_CHANGES,
};
use crate::workload::{ExplainsPlan, explained};

/// The names of the plans, each with what says what is derived of it.
pub const EXPLAINED: &[(&str, ExplainsPlan)] = explained! {
    LoadPerson LoadItem ItemReviews UserReviews ItemAverage ReadTrust TrustedAverage TrustedReviews
    NameUser TitleItem RateReview RateTrust
};

/// The names of plans that are no transactions of the mix: those that load, and rounds that read
/// for another one.
pub const APART: &[&str] = &[LoadPerson::NAME, LoadItem::NAME, ReadTrust::NAME];

/// So many reviews are shown, the best first.
pub(super) const SHOWN: usize = 10;

/// Why a question about trust is refused that has changed since it was read.
pub(super) const CHANGED: &str = "trust has changed";

/// A user or an item as it is loaded, with reviews, by the other end, and whom it trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoadedReviews {
    pub of: u64,
    pub text: String,
    pub reviews: Vec<(u64, u16)>,
    pub trust: Vec<(u64, u16)>,
}

fn first(rating: u16, row: Option<RatingRow>) -> Option<RatingRow> {
    row.or(Some(RatingRow { rating, updates: 0 }))
}

fn first_text(loaded: &LoadedReviews, row: Option<Overwritten>) -> Option<Overwritten> {
    row.or_else(|| Some(Overwritten { text: loaded.text.clone(), updates: 0 }))
}

/// Writes the rows of a user that are there at first, and leaves alone those that are there.
pub(super) struct LoadPerson;

impl PlannedProcedure for LoadPerson {
    const NAME: &'static str = "epinions-load-user";
    type Arguments = LoadedReviews;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<LoadedReviews>) -> PlanValue<()> {
        let (user, reviews, trust) = (arg!(plan, of), arg!(plan, reviews), arg!(plan, trust));
        plan.update(PEOPLE, (user,), (), |loaded, row, ()| first_text(loaded, row));
        plan.update(TRUST_CHANGES, (user,), (), |_, changes, ()| changes.or(Some(0)));
        plan.each(reviews, |plan, review| {
            let item = plan.field(review.item, "item", |review| review.0);
            let key = (user, item);
            plan.update(REVIEWS_OF_USER, key, review.item, |_, row, it| first(it.1, row));
        });
        plan.each(trust, |plan, trusted| {
            let other = plan.field(trusted.item, "user", |trusted| trusted.0);
            plan.update(TRUST, (user, other), trusted.item, |_, row, it| first(it.1, row));
        });
        plan.nothing()
    }
}

/// The same of an item.
pub(super) struct LoadItem;

impl PlannedProcedure for LoadItem {
    const NAME: &'static str = "epinions-load-item";
    type Arguments = LoadedReviews;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<LoadedReviews>) -> PlanValue<()> {
        let (item, reviews) = (arg!(plan, of), arg!(plan, reviews));
        plan.update(ITEMS, (item,), (), |loaded, row, ()| first_text(loaded, row));
        plan.each(reviews, |plan, review| {
            let user = plan.field(review.item, "user", |review| review.0);
            plan.update(REVIEWS, (item, user), review.item, |_, row, it| first(it.1, row));
        });
        plan.nothing()
    }
}

/// A question about a user or an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OfOne {
    pub of: u64,
}

/// A text and the best reviews: by the other end, and rated so.
pub(super) type ShownReviews = (String, Vec<(u64, u16)>);

fn best(row: &Option<Overwritten>, rows: &[((u64, u64), RatingRow)]) -> ShownReviews {
    let mut reviews: Vec<_> = rows.iter().map(|((_, other), row)| (*other, row.rating)).collect();
    reviews.sort_by_key(|(other, rating)| (std::cmp::Reverse(*rating), *other));
    reviews.truncate(SHOWN);
    (row.as_ref().map(|row| row.text.clone()).unwrap_or_default(), reviews)
}

/// Profile 1, GetReviewItemById.
pub(super) struct ItemReviews;

impl PlannedProcedure for ItemReviews {
    const NAME: &'static str = "epinions-item-reviews";
    type Arguments = OfOne;
    type Answer = ShownReviews;

    fn plan(plan: &mut PlanBuilder<OfOne>) -> PlanValue<ShownReviews> {
        let item = arg!(plan, of);
        let row = plan.read(ITEMS, (item,));
        let reviews = plan.scan(REVIEWS, (item,), RowRange::ALL);
        plan.compute("best", (row, reviews), |_, (row, reviews)| best(&row, &reviews))
    }
}

/// Profile 2, GetReviewsByUser.
pub(super) struct UserReviews;

impl PlannedProcedure for UserReviews {
    const NAME: &'static str = "epinions-user-reviews";
    type Arguments = OfOne;
    type Answer = ShownReviews;

    fn plan(plan: &mut PlanBuilder<OfOne>) -> PlanValue<ShownReviews> {
        let user = arg!(plan, of);
        let row = plan.read(PEOPLE, (user,));
        let reviews = plan.scan(REVIEWS_OF_USER, (user,), RowRange::ALL);
        plan.compute("best", (row, reviews), |_, (row, reviews)| best(&row, &reviews))
    }
}

/// How many ratings there are, and their sum.
pub(super) type RatingSum = (u64, u64);

/// Profile 4, GetItemAverageRating.
pub(super) struct ItemAverage;

impl PlannedProcedure for ItemAverage {
    const NAME: &'static str = "epinions-item-average";
    type Arguments = OfOne;
    type Answer = RatingSum;

    fn plan(plan: &mut PlanBuilder<OfOne>) -> PlanValue<RatingSum> {
        let item = arg!(plan, of);
        let reviews = plan.scan(REVIEWS, (item,), RowRange::ALL);
        plan.field(reviews, "average", |reviews| {
            let sum = reviews.iter().map(|(_, row)| u64::from(row.rating)).sum();
            (reviews.len() as u64, sum)
        })
    }
}

/// Whom a user trusts, or not, and how often that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrustList {
    pub changes: u64,
    pub trusted: Vec<(u64, u16)>,
}

/// Reads whom a user trusts.
pub(super) struct ReadTrust;

impl PlannedProcedure for ReadTrust {
    const NAME: &'static str = "epinions-trust";
    type Arguments = OfOne;
    type Answer = TrustList;

    fn plan(plan: &mut PlanBuilder<OfOne>) -> PlanValue<TrustList> {
        let user = arg!(plan, of);
        let changes = plan.read(TRUST_CHANGES, (user,));
        let rows = plan.scan(TRUST, (user,), RowRange::ALL);
        plan.compute("trust", (changes, rows), |_, (changes, rows)| TrustList {
            changes: changes.unwrap_or(0),
            trusted: rows.iter().map(|((_, other), row)| (*other, row.rating)).collect(),
        })
    }
}

/// A question about an item to those whom a user trusts, as that was read before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OfTrusted {
    pub item: u64,
    pub user: u64,
    pub trust: TrustList,
}

fn guarded(plan: &mut PlanBuilder<OfTrusted>) -> PlanValue<u64> {
    let user = arg!(plan, user);
    let changes = plan.shared(TRUST_CHANGES, (user,));
    plan.refuse_unless(CHANGED, changes, |asked, changes| {
        changes.is_some_and(|changes| changes == asked.trust.changes)
    });
    arg!(plan, item)
}

/// Profile 3, GetAverageRatingByTrustedUser.
pub(super) struct TrustedAverage;

impl PlannedProcedure for TrustedAverage {
    const NAME: &'static str = "epinions-trusted-average";
    type Arguments = OfTrusted;
    type Answer = RatingSum;

    fn plan(plan: &mut PlanBuilder<OfTrusted>) -> PlanValue<RatingSum> {
        let item = guarded(plan);
        let reviews = plan.scan(REVIEWS, (item,), RowRange::ALL);
        plan.compute("average", reviews, |asked, reviews| {
            let is_trusted = |user: u64| asked.trust.trusted.iter().any(|it| it.0 == user);
            let trusted = reviews.iter().filter(|((_, user), _)| is_trusted(*user));
            trusted.fold((0, 0), |(count, sum), (_, row)| (count + 1, sum + u64::from(row.rating)))
        })
    }
}

/// Profile 5, GetItemReviewsByTrustedUser: all reviews, at one moment with the trust that was read.
pub(super) struct TrustedReviews;

impl PlannedProcedure for TrustedReviews {
    const NAME: &'static str = "epinions-trusted-reviews";
    type Arguments = OfTrusted;
    type Answer = Vec<(u64, u16)>;

    fn plan(plan: &mut PlanBuilder<OfTrusted>) -> PlanValue<Vec<(u64, u16)>> {
        let item = guarded(plan);
        let reviews = plan.scan(REVIEWS, (item,), RowRange::ALL);
        plan.field(reviews, "reviews", |reviews| {
            reviews.iter().map(|((_, user), row)| (*user, row.rating)).collect()
        })
    }
}

/// A text for a user or an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NewText {
    pub of: u64,
    pub text: String,
}

fn overwritten(new: &NewText, row: Option<Overwritten>) -> Option<Overwritten> {
    Some(Overwritten { text: new.text.clone(), updates: row?.updates + 1 })
}

/// Profile 6, UpdateUserName; the number of the update.
pub(super) struct NameUser;

impl PlannedProcedure for NameUser {
    const NAME: &'static str = "epinions-name-user";
    type Arguments = NewText;
    type Answer = Option<u64>;

    fn plan(plan: &mut PlanBuilder<NewText>) -> PlanValue<Option<u64>> {
        let user = arg!(plan, of);
        let before = plan.read(PEOPLE, (user,));
        plan.update(PEOPLE, (user,), (), |new, row, ()| overwritten(new, row));
        plan.field(before, "number", |row| row.as_ref().map(|row| row.updates + 1))
    }
}

/// Profile 7, UpdateItemTitle; the number of the update.
pub(super) struct TitleItem;

impl PlannedProcedure for TitleItem {
    const NAME: &'static str = "epinions-title-item";
    type Arguments = NewText;
    type Answer = Option<u64>;

    fn plan(plan: &mut PlanBuilder<NewText>) -> PlanValue<Option<u64>> {
        let item = arg!(plan, of);
        let before = plan.read(ITEMS, (item,));
        plan.update(ITEMS, (item,), (), |new, row, ()| overwritten(new, row));
        plan.field(before, "number", |row| row.as_ref().map(|row| row.updates + 1))
    }
}

/// A rating of an item by a user, or of a user by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NewRating {
    pub by: u64,
    pub of: u64,
    pub rating: u16,
}

/// Profile 8, UpdateReviewRating: of both copies; the number of the update, if there is such a
/// review.
pub(super) struct RateReview;

impl PlannedProcedure for RateReview {
    const NAME: &'static str = "epinions-rate-review";
    type Arguments = NewRating;
    type Answer = Option<u64>;

    fn plan(plan: &mut PlanBuilder<NewRating>) -> PlanValue<Option<u64>> {
        let (user, item) = (arg!(plan, by), arg!(plan, of));
        let before = plan.read(REVIEWS, (item, user));
        plan.update(REVIEWS, (item, user), (), |new, row, ()| Some(row?.with(new.rating)));
        let key = (user, item);
        plan.update(REVIEWS_OF_USER, key, (), |new, row, ()| Some(row?.with(new.rating)));
        plan.field(before, "number", |row| row.as_ref().map(|row| row.updates + 1))
    }
}

/// Profile 9, UpdateTrustRating; the number of the update, if there is such a row.
pub(super) struct RateTrust;

impl PlannedProcedure for RateTrust {
    const NAME: &'static str = "epinions-rate-trust";
    type Arguments = NewRating;
    type Answer = Option<u64>;

    fn plan(plan: &mut PlanBuilder<NewRating>) -> PlanValue<Option<u64>> {
        let (user, other) = (arg!(plan, by), arg!(plan, of));
        let before = plan.read(TRUST, (user, other));
        let is_there = plan.field(before, "is_there", |row| row.is_some());
        plan.when(
            is_there,
            |_, is_there| *is_there,
            |plan| {
                plan.update(TRUST, (user, other), (), |new, row, ()| Some(row?.with(new.rating)));
                plan.update(TRUST_CHANGES, (user,), (), |_, changes, ()| Some(changes? + 1));
            },
        );
        plan.field(before, "number", |row| row.as_ref().map(|row| row.updates + 1))
    }
}
