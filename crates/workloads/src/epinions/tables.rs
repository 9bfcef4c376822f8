//! The tables of EPinions, by user or by item, and their rows.

use std::sync::Arc;

use muesli::plans::{PlanTable, TableUnit};
use muesli::{Index, SpaceOptions, UnitMap};
use serde::{Deserialize, Serialize};

/// What units are.
const USER: &str = "user";
const ITEM: &str = "item";

/// Users, and how often each was named anew.
pub(super) const PEOPLE: PlanTable<(u64,), Overwritten> =
    PlanTable::by_unit("epinions-user", USER, 1);
/// Items, and how often each was titled anew.
pub(super) const ITEMS: PlanTable<(u64,), Overwritten> =
    PlanTable::by_unit("epinions-item", ITEM, 1);
/// By item and user.
pub(super) const REVIEWS: PlanTable<(u64, u64), RatingRow> =
    PlanTable::by_unit("epinions-review", ITEM, 1);
/// The same by user and item.
pub(super) const REVIEWS_OF_USER: PlanTable<(u64, u64), RatingRow> =
    PlanTable::by_unit("epinions-review-of-user", USER, 1);
/// Whom the first one trusts, or not.
pub(super) const TRUST: PlanTable<(u64, u64), RatingRow> =
    PlanTable::by_unit("epinions-trust", USER, 1);
/// How often a row of a user's trust was written.
pub(super) const TRUST_CHANGES: PlanTable<(u64,), u64> =
    PlanTable::by_unit("epinions-trust-changes", USER, 1);

/// A text that is overwritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Overwritten {
    pub text: String,
    /// How often it was.
    pub updates: u64,
}

/// A number that is overwritten: a rating, or trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RatingRow {
    pub rating: u16,
    /// How often it was.
    pub updates: u64,
}

impl RatingRow {
    /// Overwritten by another one.
    pub fn with(self, rating: u16) -> RatingRow {
        RatingRow { rating, updates: self.updates + 1 }
    }
}

/// The tables: by what their rows are placed, what the values of their keys' columns are, and how
/// many of these are named by all that touches them.
pub const COLUMNS: &[(&str, TableUnit, &[&str], u16)] = &[
    (PEOPLE.name, PEOPLE.unit, &["user"], 1),
    (ITEMS.name, ITEMS.unit, &["item"], 1),
    (REVIEWS.name, REVIEWS.unit, &["item", "user"], 1),
    (REVIEWS_OF_USER.name, REVIEWS_OF_USER.unit, &["user", "item"], 1),
    (TRUST.name, TRUST.unit, &["user", "user"], 1),
    (TRUST_CHANGES.name, TRUST_CHANGES.unit, &["user"], 1),
];

/// All spaces; users and items are dealt by a hash.
pub(super) fn spaces() -> Vec<(&'static str, SpaceOptions)> {
    let (map, ordered) = (Arc::new(UnitMap::default()), Index::Ordered);
    vec![
        PEOPLE.space(ordered, &map),
        ITEMS.space(ordered, &map),
        REVIEWS.space(ordered, &map),
        REVIEWS_OF_USER.space(ordered, &map),
        TRUST.space(ordered, &map),
        TRUST_CHANGES.space(ordered, &map),
    ]
}
