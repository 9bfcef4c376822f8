//! The tables of TPC-W and their rows: what browsing needs is everywhere, what a customer owns is
//! by customer, and what is left of an item is by item.

use std::sync::Arc;

use muesli::plans::{PlanTable, TableUnit};
use muesli::{Index, SpaceOptions, UnitMap};
use serde::{Deserialize, Serialize};

/// What units are.
const CUSTOMER: &str = "customer";
const ITEM: &str = "item";

/// The kinds of searches.
pub(super) const BY_AUTHOR: u8 = 0;
pub(super) const BY_TITLE: u8 = 1;
pub(super) const BY_SUBJECT: u8 = 2;

pub(super) const COUNTRIES: PlanTable<(u8,), Country> = PlanTable::everywhere("tpcw-country");
pub(super) const AUTHORS: PlanTable<(u32,), Author> = PlanTable::everywhere("tpcw-author");
/// What never changes of an item.
pub(super) const ITEMS: PlanTable<(u32,), ItemFacts> = PlanTable::everywhere("tpcw-item");
/// What Admin Confirm changes of it.
pub(super) const DETAILS: PlanTable<(u32,), ItemDetails> =
    PlanTable::everywhere("tpcw-item-details");
/// Items by what is searched for: the kind of a search, its text, and the item.
pub(super) const SEARCHES: PlanTable<(u8, String, u32), ()> = PlanTable::everywhere("tpcw-search");
/// The items of each subject that sold best, as they were counted last.
pub(super) const BEST_SELLERS: PlanTable<(u8,), BestSellers> =
    PlanTable::everywhere("tpcw-best-sellers");
/// What is left of an item.
pub(super) const STOCKS: PlanTable<(u32,), ItemStock> = PlanTable::by_unit("tpcw-stock", ITEM, 1);
pub(super) const CUSTOMERS: PlanTable<(u64,), Shopper> =
    PlanTable::by_unit("tpcw-customer", CUSTOMER, 1);
/// By customer, and by a number that follows from all of the address.
pub(super) const ADDRESSES: PlanTable<(u64, u64), PostalAddress> =
    PlanTable::by_unit("tpcw-address", CUSTOMER, 1);
/// By customer, in the order in which they were entered.
pub(super) const ORDERS: PlanTable<(u64, u32), ItemOrder> =
    PlanTable::by_unit("tpcw-order", CUSTOMER, 1);
pub(super) const ORDER_LINES: PlanTable<(u64, u32, u16), ItemOrderLine> =
    PlanTable::by_unit("tpcw-order-line", CUSTOMER, 1);
pub(super) const CHARGES: PlanTable<(u64, u32), CardCharge> =
    PlanTable::by_unit("tpcw-charge", CUSTOMER, 1);
/// A customer's cart: how often it was changed.
pub(super) const CARTS: PlanTable<(u64,), u64> = PlanTable::by_unit("tpcw-cart", CUSTOMER, 1);
/// How many of an item are in it.
pub(super) const CART_LINES: PlanTable<(u64, u32), u32> =
    PlanTable::by_unit("tpcw-cart-line", CUSTOMER, 1);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Country {
    pub name: String,
    /// For a dollar, in thousandths.
    pub exchange: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Author {
    pub first: String,
    pub last: String,
    pub biography: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemFacts {
    pub title: String,
    pub author: u32,
    pub publisher: String,
    pub subject: u8,
    pub description: String,
    /// In cents.
    pub retail_price: i64,
    pub pages: u16,
    pub backing: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemDetails {
    /// In cents.
    pub cost: i64,
    pub picture: u32,
    pub thumbnail: u32,
    /// A day.
    pub published: u32,
    pub related: [u32; 5],
    /// How often they were changed.
    pub updates: u64,
}

/// Items with how many were sold, most first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BestSellers {
    pub items: Vec<(u32, u64)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemStock {
    pub left: i64,
    /// How many were sold, and in how many lines.
    pub sold: u64,
    pub lines: u64,
    /// How often 21 were added.
    pub restocked: u64,
    /// Other items of the newest orders with this one, the newest last.
    pub bought_with: Vec<u32>,
}

/// So many other items are known of an item's newest orders.
pub(super) const BOUGHT_WITH: usize = 20;
/// So many are added where there would be fewer than ten.
pub(super) const RESTOCK: i64 = 21;

impl ItemStock {
    /// The same after so many were sold, with others.
    pub fn take(mut self, quantity: u32, others: impl Iterator<Item = u32>) -> ItemStock {
        self.left -= i64::from(quantity);
        if self.left < 10 {
            self.left += RESTOCK;
            self.restocked += 1;
        }
        self.sold += u64::from(quantity);
        self.lines += 1;
        self.bought_with.extend(others);
        let more = self.bought_with.len().saturating_sub(BOUGHT_WITH);
        self.bought_with.drain(..more);
        self
    }
}

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shopper {
    pub name: String,
    pub password: String,
    pub address: u64,
    /// In percent.
    pub discount: u8,
    pub since: u32,
    pub login: u64,
    pub expiration: u64,
    /// How often the customer came back.
    pub logins: u64,
    /// How many orders there are, which are numbered from 1.
    pub orders: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PostalAddress {
    pub street: String,
    pub city: String,
    pub zip: String,
    pub country: u8,
}

/// What an order comes to, in cents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OrderSums {
    pub goods: i64,
    pub tax: i64,
    pub total: i64,
}

impl OrderSums {
    /// That of goods that cost so much before the discount, so many pieces.
    pub fn of(cost: i64, pieces: i64, discount: u8) -> OrderSums {
        let goods = cost * (100 - i64::from(discount)) / 100;
        let tax = goods * 825 / 10_000;
        OrderSums { goods, tax, total: goods + tax + 300 + 100 * pieces }
    }
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemOrder {
    pub date: u64,
    pub sums: OrderSums,
    pub ship_type: u8,
    pub status: u8,
    pub billed_to: u64,
    pub shipped_to: u64,
    pub discount: u8,
}

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ItemOrderLine {
    pub item: u32,
    pub quantity: u32,
    /// What a piece cost then, in cents.
    pub cost: i64,
    pub comments: String,
}

/// What a card was charged for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CardCharge {
    pub kind: u8,
    pub number: u64,
    pub amount: i64,
    pub country: u8,
}

/// The tables: by what their rows are placed, what the values of their keys' columns are, and how
/// many of these are named by all that touches them.
pub const COLUMNS: &[(&str, TableUnit, &[&str], u16)] = &[
    (COUNTRIES.name, COUNTRIES.unit, &["country"], 1),
    (AUTHORS.name, AUTHORS.unit, &["author"], 1),
    (ITEMS.name, ITEMS.unit, &["item"], 1),
    (DETAILS.name, DETAILS.unit, &["item"], 1),
    (SEARCHES.name, SEARCHES.unit, &["kind", "text", "item"], 2),
    (BEST_SELLERS.name, BEST_SELLERS.unit, &["subject"], 1),
    (STOCKS.name, STOCKS.unit, &["item"], 1),
    (CUSTOMERS.name, CUSTOMERS.unit, &["customer"], 1),
    (ADDRESSES.name, ADDRESSES.unit, &["customer", "address"], 2),
    (ORDERS.name, ORDERS.unit, &["customer", "order"], 1),
    (ORDER_LINES.name, ORDER_LINES.unit, &["customer", "order", "line"], 2),
    (CHARGES.name, CHARGES.unit, &["customer", "order"], 2),
    (CARTS.name, CARTS.unit, &["customer"], 1),
    (CART_LINES.name, CART_LINES.unit, &["customer", "item"], 1),
];

/// All spaces; customers and items are dealt by a hash.
pub(super) fn spaces() -> Vec<(&'static str, SpaceOptions)> {
    let (map, ordered) = (Arc::new(UnitMap::default()), Index::Ordered);
    vec![
        COUNTRIES.space(ordered, &map),
        AUTHORS.space(ordered, &map),
        ITEMS.space(ordered, &map),
        DETAILS.space(ordered, &map),
        SEARCHES.space(ordered, &map),
        BEST_SELLERS.space(ordered, &map),
        STOCKS.space(ordered, &map),
        CUSTOMERS.space(ordered, &map),
        ADDRESSES.space(ordered, &map),
        ORDERS.space(ordered, &map),
        ORDER_LINES.space(ordered, &map),
        CHARGES.space(ordered, &map),
        CARTS.space(ordered, &map),
        CART_LINES.space(ordered, &map),
    ]
}
