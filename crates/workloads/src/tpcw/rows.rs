//! All rows of the shop, read once no client runs any more.

use std::collections::{BTreeMap, BTreeSet};

use muesli::plans::PlanTable;
use muesli::{Db, Error, Key, Place, RepositoryId, SmallBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tables::{
    ADDRESSES, AUTHORS, Author, BEST_SELLERS, BestSellers, CART_LINES, CARTS, CHARGES, COUNTRIES,
    CUSTOMERS, CardCharge, Country, DETAILS, ITEMS, ItemDetails, ItemFacts, ItemOrder,
    ItemOrderLine, ItemStock, ORDER_LINES, ORDERS, PostalAddress, SEARCHES, STOCKS, Shopper,
};
use crate::reading::rows_at;

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

/// Rows of a table at a repository.
async fn copy<K: Key + Ord, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    at: &Place,
) -> Result<BTreeMap<K, V>, Error> {
    let space = db.space(table.name)?.typed();
    Ok(rows_at(db, space, at, &SmallBytes::EMPTY).await?.into_iter().collect())
}

/// Adds the rows of a table that begin with a number.
async fn add<K: Key + Ord, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    first: SmallBytes,
    all: &mut BTreeMap<K, V>,
) -> Result<(), Error> {
    let space = db.space(table.name)?;
    all.extend(rows_at(db, space.typed(), &space.place(first.clone()), &first).await?);
    Ok(())
}

impl ShopRows {
    pub async fn read(db: &Db, items: u32, customers: &BTreeSet<u64>) -> Result<ShopRows, Error> {
        let mut all = ShopRows::default();
        for number in 0..db.catalog_of_keys().repositories() as u16 {
            let at = &Place::Repository(RepositoryId(number));
            all.copies.push(ReferenceCopy {
                countries: copy(db, COUNTRIES, at).await?,
                authors: copy(db, AUTHORS, at).await?,
                items: copy(db, ITEMS, at).await?,
                details: copy(db, DETAILS, at).await?,
                searches: copy(db, SEARCHES, at).await?.into_keys().collect(),
                best: copy(db, BEST_SELLERS, at).await?,
            });
        }
        for item in 1..=items {
            add(db, STOCKS, (item,).encoded(), &mut all.stocks).await?;
        }
        for customer in customers {
            let of = || (*customer,).encoded();
            add(db, CUSTOMERS, of(), &mut all.customers).await?;
            add(db, ADDRESSES, of(), &mut all.addresses).await?;
            add(db, ORDERS, of(), &mut all.orders).await?;
            add(db, ORDER_LINES, of(), &mut all.lines).await?;
            add(db, CHARGES, of(), &mut all.charges).await?;
            add(db, CARTS, of(), &mut all.carts).await?;
            add(db, CART_LINES, of(), &mut all.cart_lines).await?;
        }
        Ok(all)
    }
}
