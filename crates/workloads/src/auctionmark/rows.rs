//! All rows of the auctions, read once no client runs any more.

use std::collections::BTreeMap;

use muesli::plans::PlanTable;
use muesli::{Db, Error, Key, Place, RepositoryId, SmallBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ledger::RatingKey;
use super::tables::{
    ATTRIBUTES, AuctionBid, AuctionItem, AuctionUser, BIDS, BOUGHT, CATEGORIES, COMMENTS, GROUPS,
    HIGHEST_BIDS, ITEMS, ItemComment, ItemPurchase, PICTURES, PURCHASES, RATINGS, REGIONS, USERS,
    VALUES, WATCHED,
};
use crate::reading::rows_at;

/// What a repository has of that which is everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuctionReferenceCopy {
    pub regions: BTreeMap<(u8,), String>,
    pub categories: BTreeMap<(u32,), (String, u32)>,
    pub groups: BTreeMap<(u16,), u32>,
    pub values: BTreeMap<(u16, u8), String>,
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuctionRows {
    pub copies: Vec<AuctionReferenceCopy>,
    pub users: BTreeMap<(u64,), AuctionUser>,
    pub items: BTreeMap<(u64, u32), AuctionItem>,
    pub attributes: BTreeMap<(u64, u32, u8), (u16, u8)>,
    pub pictures: BTreeMap<(u64, u32, u8), String>,
    pub bids: BTreeMap<(u64, u32, u32), AuctionBid>,
    pub highest: BTreeMap<(u64, u32), u32>,
    pub comments: BTreeMap<(u64, u32, u32), ItemComment>,
    pub purchases: BTreeMap<(u64, u32), ItemPurchase>,
    pub bought: BTreeMap<(u64, u64, u32), i64>,
    pub watched: BTreeMap<(u64, u64, u32), String>,
    pub ratings: BTreeMap<RatingKey, i64>,
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

/// Adds the rows of a table that are of a user.
async fn add<K: Key + Ord, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    user: u64,
    all: &mut BTreeMap<K, V>,
) -> Result<(), Error> {
    let (space, first) = (db.space(table.name)?, (user,).encoded());
    all.extend(rows_at(db, space.typed(), &space.place(first.clone()), &first).await?);
    Ok(())
}

impl AuctionRows {
    pub async fn read(db: &Db, users: u64) -> Result<AuctionRows, Error> {
        let mut all = AuctionRows::default();
        for number in 0..db.catalog_of_keys().repositories() as u16 {
            let at = &Place::Repository(RepositoryId(number));
            all.copies.push(AuctionReferenceCopy {
                regions: copy(db, REGIONS, at).await?,
                categories: copy(db, CATEGORIES, at).await?,
                groups: copy(db, GROUPS, at).await?,
                values: copy(db, VALUES, at).await?,
            });
        }
        for user in 0..=users {
            add(db, USERS, user, &mut all.users).await?;
            add(db, ITEMS, user, &mut all.items).await?;
            add(db, ATTRIBUTES, user, &mut all.attributes).await?;
            add(db, PICTURES, user, &mut all.pictures).await?;
            add(db, BIDS, user, &mut all.bids).await?;
            add(db, HIGHEST_BIDS, user, &mut all.highest).await?;
            add(db, COMMENTS, user, &mut all.comments).await?;
            add(db, PURCHASES, user, &mut all.purchases).await?;
            add(db, BOUGHT, user, &mut all.bought).await?;
            add(db, WATCHED, user, &mut all.watched).await?;
            add(db, RATINGS, user, &mut all.ratings).await?;
        }
        Ok(all)
    }
}
