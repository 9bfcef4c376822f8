//! The rows of TPC-C's nine tables, as values of their spaces.
//!
//! Money is in cents, taxes and discounts in ten-thousandths, so that sums are exact. What is in
//! the key is not in the row. Three hot fields have spaces of their own, so that those who read
//! the rest of the row do not meet those who change them: W_YTD, D_YTD and D_NEXT_O_ID. What is
//! looked at most comes first in a row, so that it can be read without the rest.

use serde::{Deserialize, Serialize};

/// Where somebody is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct AddressColumns {
    pub street_1: String,
    pub street_2: String,
    pub city: String,
    pub state: String,
    pub zip: String,
}

/// A warehouse, but for W_YTD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct Warehouse {
    pub tax: u16,
    pub name: String,
    pub address: AddressColumns,
}

/// A district, but for D_YTD and D_NEXT_O_ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct District {
    pub tax: u16,
    pub name: String,
    pub address: AddressColumns,
}

/// C_CREDIT: `GC` or `BC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) enum Credit {
    Good,
    Bad,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct Customer {
    pub discount: u16,
    pub balance: i64,
    pub ytd_payment: i64,
    pub payments: u32,
    pub deliveries: u32,
    /// GC or BC, the last of the fields that are looked at most.
    pub credit: Credit,
    pub first: String,
    pub middle: String,
    pub last: String,
    pub address: AddressColumns,
    pub phone: String,
    /// C_SINCE, in microseconds of the run's clock; rows that are there at first have 0.
    pub since: u64,
    pub credit_limit: i64,
    /// C_DATA, 500 characters at most.
    pub data: String,
}

/// C_DATA is cut off here.
pub(in crate::tpcc) const CUSTOMER_DATA: usize = 500;

/// A row of the history; H_W_ID and H_D_ID are in its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct Payment {
    pub customer: super::ids::CustomerId,
    pub date: u64,
    pub amount: i64,
    pub data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct Order {
    /// O_C_ID: its number in the order's district.
    pub customer: u32,
    pub entered: u64,
    pub carrier: Option<u8>,
    pub lines: u8,
    pub all_local: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct OrderLine {
    pub item: u32,
    pub supplier: u32,
    pub delivered: Option<u64>,
    pub quantity: u8,
    pub amount: i64,
    pub district_info: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct Stock {
    pub quantity: u8,
    pub ytd: u64,
    pub orders: u32,
    pub remote: u32,
    /// S_DIST_01 to S_DIST_10, one behind the other.
    pub district_infos: String,
    pub data: String,
}

/// Characters of S_DIST_xx.
pub(in crate::tpcc) const DISTRICT_INFO: usize = 24;

/// S_DIST_xx of a district, from all of them.
pub(in crate::tpcc) fn district_info(all: &str, district: u8) -> &str {
    let from = (usize::from(district) - 1) * DISTRICT_INFO;
    all.get(from..from + DISTRICT_INFO).unwrap_or_default()
}

impl Stock {
    /// S_DIST_xx of a district.
    pub fn district_info(&self, district: u8) -> String {
        district_info(&self.district_infos, district).to_owned()
    }

    /// A row of its two parts.
    pub fn of(count: StockCount, info: StockInfo) -> Stock {
        let StockCount { quantity, ytd, orders, remote } = count;
        let StockInfo { district_infos, data } = info;
        Stock { quantity, ytd, orders, remote, district_infos, data }
    }

    /// What changes of it.
    pub fn count(&self) -> StockCount {
        let Stock { quantity, ytd, orders, remote, .. } = *self;
        StockCount { quantity, ytd, orders, remote }
    }

    /// What does not change of it.
    pub fn info(self) -> StockInfo {
        StockInfo { district_infos: self.district_infos, data: self.data }
    }

    /// So many are ordered.
    pub fn take(&mut self, quantity: u8, remote: bool) {
        let mut count = self.count();
        count.take(quantity, remote);
        let StockCount { quantity, ytd, orders, remote } = count;
        (self.quantity, self.ytd, self.orders, self.remote) = (quantity, ytd, orders, remote);
    }
}

/// What changes of a row of stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct StockCount {
    pub quantity: u8,
    pub ytd: u64,
    pub orders: u32,
    pub remote: u32,
}

impl StockCount {
    /// So many are ordered; those that would run short are filled up by 91.
    pub fn take(&mut self, quantity: u8, remote: bool) {
        self.quantity = match self.quantity.checked_sub(quantity) {
            Some(left) if left >= 10 => left,
            _ => self.quantity + 91 - quantity,
        };
        self.ytd += u64::from(quantity);
        self.orders += 1;
        self.remote += u32::from(remote);
    }
}

/// What does not change of a row of stock, of which others can have copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct StockInfo {
    pub district_infos: String,
    pub data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct Item {
    pub price: i64,
    pub image: u32,
    pub name: String,
    pub data: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stock_stays_from_10_to_100(
            first in 10u8..=100, taken in prop::collection::vec((1u8..=10, any::<bool>()), 0..50),
        ) {
            let infos: String = ('a'..='j').flat_map(|it| [it; DISTRICT_INFO]).collect();
            let mut stock = Stock {
                quantity: first, ytd: 0, orders: 0, remote: 0, district_infos: infos,
                data: String::new(),
            };
            for &(quantity, remote) in &taken {
                stock.take(quantity, remote);
                prop_assert!((10..=100).contains(&stock.quantity), "{}", stock.quantity);
            }
            let filled = u64::from(stock.quantity) + stock.ytd - u64::from(first);
            prop_assert_eq!(filled % 91, 0);
            prop_assert!(filled / 91 <= u64::from(stock.orders));
            prop_assert_eq!(stock.orders as usize, taken.len());
            prop_assert_eq!(stock.remote as usize, taken.iter().filter(|it| it.1).count());
            prop_assert_eq!(stock.district_info(10), "j".repeat(DISTRICT_INFO));
        }
    }
}
