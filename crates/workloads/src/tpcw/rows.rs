//! All rows of the shop, read once no client runs any more.

use std::collections::{BTreeMap, BTreeSet};

use muesli::{Db, Error, Place, RepositoryId};

use super::tables::{
    ADDRESSES, AUTHORS, Author, BEST_SELLERS, BestSellers, CART_LINES, CARTS, CHARGES, COUNTRIES,
    CUSTOMERS, CardCharge, Country, DETAILS, ITEMS, ItemDetails, ItemFacts, ItemOrder,
    ItemOrderLine, ItemStock, ORDER_LINES, ORDERS, PostalAddress, SEARCHES, STOCKS, Shopper,
};
use crate::reading::{copy_at, rows_of};

/// What a repository has of that which is everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReferenceCopy {
    pub countries: BTreeMap<(u8,), Country>,
    pub authors: BTreeMap<(u32,), Author>,
    pub items: BTreeMap<(u32,), ItemFacts>,
    pub details: BTreeMap<(u32,), ItemDetails>,
    pub searches: BTreeSet<(u8, String, u32)>,
    pub best: BTreeMap<(u8,), BestSellers>,
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShopRows {
    pub copies: Vec<ReferenceCopy>,
    pub stocks: BTreeMap<(u32,), ItemStock>,
    pub customers: BTreeMap<(u64,), Shopper>,
    pub addresses: BTreeMap<(u64, u64), PostalAddress>,
    pub orders: BTreeMap<(u64, u32), ItemOrder>,
    pub lines: BTreeMap<(u64, u32, u16), ItemOrderLine>,
    pub charges: BTreeMap<(u64, u32), CardCharge>,
    pub carts: BTreeMap<(u64,), u64>,
    pub cart_lines: BTreeMap<(u64, u32), u32>,
}

impl ShopRows {
    pub async fn read(db: &Db, items: u32, customers: &BTreeSet<u64>) -> Result<ShopRows, Error> {
        let mut all = ShopRows::default();
        for number in 0..db.catalog_of_keys().repositories() as u16 {
            let at = &Place::Repository(RepositoryId(number));
            all.copies.push(ReferenceCopy {
                countries: copy_at(db, COUNTRIES, at).await?,
                authors: copy_at(db, AUTHORS, at).await?,
                items: copy_at(db, ITEMS, at).await?,
                details: copy_at(db, DETAILS, at).await?,
                searches: copy_at(db, SEARCHES, at).await?.into_keys().collect(),
                best: copy_at(db, BEST_SELLERS, at).await?,
            });
        }
        for item in 1..=items {
            all.stocks.extend(rows_of(db, STOCKS, (item,)).await?);
        }
        for customer in customers {
            let of = (*customer,);
            all.customers.extend(rows_of(db, CUSTOMERS, of).await?);
            all.addresses.extend(rows_of(db, ADDRESSES, of).await?);
            all.orders.extend(rows_of(db, ORDERS, of).await?);
            all.lines.extend(rows_of(db, ORDER_LINES, of).await?);
            all.charges.extend(rows_of(db, CHARGES, of).await?);
            all.carts.extend(rows_of(db, CARTS, of).await?);
            all.cart_lines.extend(rows_of(db, CART_LINES, of).await?);
        }
        Ok(all)
    }
}
