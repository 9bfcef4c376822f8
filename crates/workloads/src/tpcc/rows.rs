//! The rows of TPC-C's nine tables, as values of their spaces.
//!
//! Money is in cents, taxes and discounts in ten-thousandths, so that sums are exact. What is in
//! the key is not in the row. Three hot fields have spaces of their own, so that those who read
//! the rest of the row do not meet those who change them: W_YTD, D_YTD and D_NEXT_O_ID.

use serde::{Deserialize, Serialize};

/// Where somebody is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Address {
    pub street_1: String,
    pub street_2: String,
    pub city: String,
    pub state: String,
    pub zip: String,
}

/// A warehouse, but for W_YTD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Warehouse {
    pub name: String,
    pub address: Address,
    pub tax: u16,
}

/// A district, but for D_YTD and D_NEXT_O_ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct District {
    pub name: String,
    pub address: Address,
    pub tax: u16,
}

/// C_CREDIT: `GC` or `BC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Credit {
    Good,
    Bad,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Customer {
    pub first: String,
    pub middle: String,
    pub last: String,
    pub address: Address,
    pub phone: String,
    /// C_SINCE, in microseconds of the run's clock; rows that are there at first have 0.
    pub since: u64,
    pub credit: Credit,
    pub credit_limit: i64,
    pub discount: u16,
    pub balance: i64,
    pub ytd_payment: i64,
    pub payments: u32,
    pub deliveries: u32,
    /// C_DATA, 500 characters at most.
    pub data: String,
}

/// C_DATA is cut off here.
pub(super) const CUSTOMER_DATA: usize = 500;

/// A row of the history; H_W_ID and H_D_ID are in its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Payment {
    pub customer: super::ids::CustomerId,
    pub date: u64,
    pub amount: i64,
    pub data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// O_C_ID: its number in the order's district.
    pub customer: u32,
    pub entered: u64,
    pub carrier: Option<u8>,
    pub lines: u8,
    pub all_local: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OrderLine {
    pub item: u32,
    pub supplier: u32,
    pub delivered: Option<u64>,
    pub quantity: u8,
    pub amount: i64,
    pub district_info: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stock {
    pub quantity: u8,
    pub ytd: u64,
    pub orders: u32,
    pub remote: u32,
    /// S_DIST_01 to S_DIST_10, one behind the other.
    pub district_infos: String,
    pub data: String,
}

/// Characters of S_DIST_xx.
pub(super) const DISTRICT_INFO: usize = 24;

impl Stock {
    /// S_DIST_xx of a district.
    pub fn district_info(&self, district: u8) -> String {
        let from = (usize::from(district) - 1) * DISTRICT_INFO;
        self.district_infos.get(from..from + DISTRICT_INFO).unwrap_or_default().to_owned()
    }

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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    pub image: u32,
    pub name: String,
    pub price: i64,
    pub data: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
