//! Writing what is there at first; what is there already is left alone.

use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure};
use muesli::{arg, column};
use serde::{Deserialize, Serialize};

use crate::auctionmark::tables::{
    ATTRIBUTES, AuctionBid, AuctionItem, AuctionUser, BIDS, BOUGHT, CATEGORIES, COMMENTS, GROUPS,
    HIGHEST_BIDS, ITEMS, ItemComment, ItemPurchase, PICTURES, PURCHASES, REGIONS, USERS, VALUES,
    WATCHED,
};

/// What is everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct AuctionReference {
    pub regions: Vec<(u8, String)>,
    pub categories: Vec<(u32, (String, u32))>,
    pub groups: Vec<(u16, u32)>,
    pub values: Vec<(u16, u8, String)>,
}

/// Loads what is everywhere.
pub(in crate::auctionmark) struct LoadAuctionReference;

impl PlannedProcedure for LoadAuctionReference {
    const NAME: &'static str = "auctionmark-load-reference";
    type Arguments = AuctionReference;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<AuctionReference>) -> PlanValue<()> {
        let (regions, categories) = (arg!(plan, regions), arg!(plan, categories));
        plan.each(regions, |plan, region| {
            let number = plan.field(region.item, "region", |it| it.0);
            plan.update(REGIONS, (number,), region.item, |_, _, it| Some(it.1.clone()));
        });
        plan.each(categories, |plan, category| {
            let number = plan.field(category.item, "category", |it| it.0);
            plan.update(CATEGORIES, (number,), category.item, |_, _, it| Some(it.1.clone()));
        });
        let (groups, values) = (arg!(plan, groups), arg!(plan, values));
        plan.each(groups, |plan, group| {
            let number = plan.field(group.item, "group", |it| it.0);
            plan.update(GROUPS, (number,), group.item, |_, _, it| Some(it.1));
        });
        plan.each(values, |plan, value| {
            let group = plan.field(value.item, "group", |it| it.0);
            let number = plan.field(value.item, "value", |it| it.1);
            plan.update(VALUES, (group, number), value.item, |_, _, it| Some(it.2.clone()));
        });
        plan.nothing()
    }
}

/// An item as it is loaded. Bids are numbered from 1, and the last one is the highest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct LoadedAuction {
    pub item: u32,
    pub loaded: AuctionItem,
    pub bids: Vec<AuctionBid>,
    pub attributes: Vec<(u16, u8)>,
    pub pictures: Vec<String>,
    pub comments: Vec<ItemComment>,
    /// None or one.
    pub purchases: Vec<ItemPurchase>,
}

/// A user as it is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct LoadedSeller {
    pub user: u64,
    pub row: AuctionUser,
    pub auctions: Vec<LoadedAuction>,
    /// By seller and item, with the price.
    pub bought: Vec<(u64, u32, i64)>,
    pub watched: Vec<(u64, u32)>,
}

/// Loads all rows of a user.
pub(in crate::auctionmark) struct LoadAuctionUser;

impl PlannedProcedure for LoadAuctionUser {
    const NAME: &'static str = "auctionmark-load-user";
    type Arguments = LoadedSeller;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<LoadedSeller>) -> PlanValue<()> {
        let user = arg!(plan, user);
        plan.update(USERS, (user,), (), |loaded, row, ()| row.or_else(|| Some(loaded.row.clone())));
        let (bought, watched) = (arg!(plan, bought), arg!(plan, watched));
        plan.each(bought, |plan, bought| {
            let seller = plan.field(bought.item, "seller", |it| it.0);
            let item = plan.field(bought.item, "item", |it| it.1);
            plan.update(BOUGHT, (user, seller, item), bought.item, |_, row, it| row.or(Some(it.2)));
        });
        plan.each(watched, |plan, watched| {
            let seller = plan.field(watched.item, "seller", |it| it.0);
            let item = plan.field(watched.item, "item", |it| it.1);
            plan.update(WATCHED, (user, seller, item), (), |_, row, ()| {
                row.or_else(|| Some("watched".to_owned()))
            });
        });
        let auctions = arg!(plan, auctions);
        plan.each(auctions, |plan, auction| load_auction(plan, user, auction.item));
        plan.nothing()
    }
}

fn load_auction(
    plan: &mut PlanBuilder<LoadedSeller>,
    seller: PlanValue<u64>,
    auction: PlanValue<LoadedAuction>,
) {
    let item = column!(plan, auction, item);
    plan.update(ITEMS, (seller, item), auction, |_, row, it| {
        row.or_else(|| Some(it.loaded.clone()))
    });
    let (bids, attributes) = (column!(plan, auction, bids), column!(plan, auction, attributes));
    plan.each(bids, |plan, bid| {
        let number = plan.field(bid.place, "number", |place| *place as u32 + 1);
        plan.update(BIDS, (seller, item, number), bid.item, |_, row, it| row.or(Some(*it)));
        // The last one stays, unless there is a higher one by then.
        plan.update(HIGHEST_BIDS, (seller, item), number, |_, row, number| {
            Some(row.unwrap_or(0).max(*number))
        });
    });
    plan.each(attributes, |plan, attribute| {
        let number = plan.field(attribute.place, "number", |place| *place as u8 + 1);
        plan.update(ATTRIBUTES, (seller, item, number), attribute.item, |_, row, it| {
            row.or(Some(*it))
        });
    });
    let (pictures, comments) = (column!(plan, auction, pictures), column!(plan, auction, comments));
    plan.each(pictures, |plan, picture| {
        let number = plan.field(picture.place, "number", |place| *place as u8 + 1);
        plan.update(PICTURES, (seller, item, number), picture.item, |_, row, it| {
            row.or_else(|| Some((*it).clone()))
        });
    });
    plan.each(comments, |plan, comment| {
        let number = plan.field(comment.place, "number", |place| *place as u32 + 1);
        plan.update(COMMENTS, (seller, item, number), comment.item, |_, row, it| {
            row.or_else(|| Some((*it).clone()))
        });
    });
    let purchases = column!(plan, auction, purchases);
    plan.each(purchases, |plan, purchase| {
        plan.update(PURCHASES, (seller, item), purchase.item, |_, row, it| row.or(Some(*it)));
    });
}
