//! The tables of AuctionMark and their rows: all that users own or sell is by user, an item by its
//! seller; what never changes is everywhere.

use std::sync::Arc;

use muesli::plans::{PlanTable, TableUnit};
use muesli::{Index, SpaceOptions, UnitMap};
use serde::{Deserialize, Serialize};

/// What units are.
const USER: &str = "user";

pub(super) const REGIONS: PlanTable<(u8,), String> = PlanTable::everywhere("auctionmark-region");
/// A category's name, and the category above it.
pub(super) const CATEGORIES: PlanTable<(u32,), (String, u32)> =
    PlanTable::everywhere("auctionmark-category");
/// Groups of attributes, each with its category.
pub(super) const GROUPS: PlanTable<(u16,), u32> = PlanTable::everywhere("auctionmark-group");
/// The attributes of a group.
pub(super) const VALUES: PlanTable<(u16, u8), String> = PlanTable::everywhere("auctionmark-value");
pub(super) const USERS: PlanTable<(u64,), AuctionUser> =
    PlanTable::by_unit("auctionmark-user", USER, 1);
/// By seller, in the order in which they were listed.
pub(super) const ITEMS: PlanTable<(u64, u32), AuctionItem> =
    PlanTable::by_unit("auctionmark-item", USER, 1);
pub(super) const ATTRIBUTES: PlanTable<(u64, u32, u8), (u16, u8)> =
    PlanTable::by_unit("auctionmark-attribute", USER, 1);
pub(super) const PICTURES: PlanTable<(u64, u32, u8), String> =
    PlanTable::by_unit("auctionmark-picture", USER, 1);
pub(super) const BIDS: PlanTable<(u64, u32, u32), AuctionBid> =
    PlanTable::by_unit("auctionmark-bid", USER, 1);
/// The bid that is the highest of an item.
pub(super) const HIGHEST_BIDS: PlanTable<(u64, u32), u32> =
    PlanTable::by_unit("auctionmark-highest-bid", USER, 1);
pub(super) const COMMENTS: PlanTable<(u64, u32, u32), ItemComment> =
    PlanTable::by_unit("auctionmark-comment", USER, 1);
pub(super) const PURCHASES: PlanTable<(u64, u32), ItemPurchase> =
    PlanTable::by_unit("auctionmark-purchase", USER, 1);
/// What a user has bought, by the buyer, the seller, and the item: its price.
pub(super) const BOUGHT: PlanTable<(u64, u64, u32), i64> =
    PlanTable::by_unit("auctionmark-bought", USER, 1);
/// What a user watches.
pub(super) const WATCHED: PlanTable<(u64, u64, u32), String> =
    PlanTable::by_unit("auctionmark-watched", USER, 1);
/// What a user was rated: by who is rated, the seller and the item, and who rates.
pub(super) const RATINGS: PlanTable<(u64, u64, u32, u64), i64> =
    PlanTable::by_unit("auctionmark-rating", USER, 1);

/// A user; money is in cents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuctionUser {
    pub name: String,
    pub region: u8,
    pub rating: i64,
    pub balance: i64,
    /// Comments on the user's items that were not answered.
    pub unanswered: i64,
    /// How many items were listed, which are numbered from 1.
    pub items: u32,
}

/// Where an item is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum AuctionStatus {
    Open,
    WaitingForPurchase,
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuctionItem {
    pub name: String,
    pub category: u32,
    pub description: String,
    pub initial_price: i64,
    pub price: i64,
    pub bids: u32,
    pub pictures: u8,
    pub attributes: u8,
    pub comments: u32,
    pub status: AuctionStatus,
    /// How often it was changed.
    pub changes: u64,
}

/// What is seen of an item: how often it has changed, what it costs, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemState {
    pub changes: u64,
    pub price: i64,
    pub status: AuctionStatus,
    pub bids: u32,
    pub comments: u32,
}

impl AuctionItem {
    pub fn state(&self) -> ItemState {
        let AuctionItem { changes, price, status, bids, comments, .. } = *self;
        ItemState { changes, price, status, bids, comments }
    }

    /// The same once more changed.
    pub fn changed(self) -> AuctionItem {
        AuctionItem { changes: self.changes + 1, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuctionBid {
    pub buyer: u64,
    pub bid: i64,
    /// What the buyer would pay.
    pub most: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemComment {
    pub buyer: u64,
    pub question: String,
    pub response: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemPurchase {
    pub buyer: u64,
    pub bid: u32,
    pub price: i64,
    /// What the buyer paid in at once.
    pub credit: i64,
}

/// The tables: by what their rows are placed, what the values of their keys' columns are, and how
/// many of these are named by all that touches them.
pub const COLUMNS: &[(&str, TableUnit, &[&str], u16)] = &[
    (REGIONS.name, REGIONS.unit, &["region"], 1),
    (CATEGORIES.name, CATEGORIES.unit, &["category"], 1),
    (GROUPS.name, GROUPS.unit, &["group"], 1),
    (VALUES.name, VALUES.unit, &["group", "value"], 2),
    (USERS.name, USERS.unit, &["user"], 1),
    (ITEMS.name, ITEMS.unit, &["user", "item"], 1),
    (ATTRIBUTES.name, ATTRIBUTES.unit, &["user", "item", "attribute"], 2),
    (PICTURES.name, PICTURES.unit, &["user", "item", "picture"], 3),
    (BIDS.name, BIDS.unit, &["user", "item", "bid"], 3),
    (HIGHEST_BIDS.name, HIGHEST_BIDS.unit, &["user", "item"], 2),
    (COMMENTS.name, COMMENTS.unit, &["user", "item", "comment"], 1),
    (PURCHASES.name, PURCHASES.unit, &["user", "item"], 2),
    (BOUGHT.name, BOUGHT.unit, &["user", "user", "item"], 1),
    (WATCHED.name, WATCHED.unit, &["user", "user", "item"], 1),
    (RATINGS.name, RATINGS.unit, &["user", "user", "item", "user"], 1),
];

/// All spaces; users are dealt by a hash.
pub(super) fn spaces() -> Vec<(&'static str, SpaceOptions)> {
    let (map, ordered) = (Arc::new(UnitMap::default()), Index::Ordered);
    vec![
        REGIONS.space(ordered, &map),
        CATEGORIES.space(ordered, &map),
        GROUPS.space(ordered, &map),
        VALUES.space(ordered, &map),
        USERS.space(ordered, &map),
        ITEMS.space(ordered, &map),
        ATTRIBUTES.space(ordered, &map),
        PICTURES.space(ordered, &map),
        BIDS.space(ordered, &map),
        HIGHEST_BIDS.space(ordered, &map),
        COMMENTS.space(ordered, &map),
        PURCHASES.space(ordered, &map),
        BOUGHT.space(ordered, &map),
        WATCHED.space(ordered, &map),
        RATINGS.space(ordered, &map),
    ]
}
