//! All rows of the auctions, read once no client runs any more.

use std::collections::BTreeMap;

use muesli::{Db, Error, Place, RepositoryId};

use super::ledger::RatingKey;
use super::tables::{
    ATTRIBUTES, AuctionBid, AuctionItem, AuctionUser, BIDS, BOUGHT, CATEGORIES, COMMENTS, GROUPS,
    HIGHEST_BIDS, ITEMS, ItemComment, ItemPurchase, PICTURES, PURCHASES, RATINGS, REGIONS, USERS,
    VALUES, WATCHED,
};
use crate::reading::{copy_at, rows_of};

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

impl AuctionRows {
    pub async fn read(db: &Db, users: u64) -> Result<AuctionRows, Error> {
        let mut all = AuctionRows::default();
        for number in 0..db.catalog_of_keys().repositories() as u16 {
            let at = &Place::Repository(RepositoryId(number));
            all.copies.push(AuctionReferenceCopy {
                regions: copy_at(db, REGIONS, at).await?,
                categories: copy_at(db, CATEGORIES, at).await?,
                groups: copy_at(db, GROUPS, at).await?,
                values: copy_at(db, VALUES, at).await?,
            });
        }
        for user in 0..=users {
            all.users.extend(rows_of(db, USERS, (user,)).await?);
            all.items.extend(rows_of(db, ITEMS, (user,)).await?);
            all.attributes.extend(rows_of(db, ATTRIBUTES, (user,)).await?);
            all.pictures.extend(rows_of(db, PICTURES, (user,)).await?);
            all.bids.extend(rows_of(db, BIDS, (user,)).await?);
            all.highest.extend(rows_of(db, HIGHEST_BIDS, (user,)).await?);
            all.comments.extend(rows_of(db, COMMENTS, (user,)).await?);
            all.purchases.extend(rows_of(db, PURCHASES, (user,)).await?);
            all.bought.extend(rows_of(db, BOUGHT, (user,)).await?);
            all.watched.extend(rows_of(db, WATCHED, (user,)).await?);
            all.ratings.extend(rows_of(db, RATINGS, (user,)).await?);
        }
        Ok(all)
    }
}
