//! The profiles that only read: GetItem (1), GetUserInfo (2), and the round that reads who has won.

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use serde::{Deserialize, Serialize};

use crate::auctionmark::tables::{
    AuctionStatus, AuctionUser, BIDS, BOUGHT, COMMENTS, HIGHEST_BIDS, ITEMS, ItemState, RATINGS,
    REGIONS, USERS, WATCHED,
};

/// Why something is refused that is about an item that there is not.
pub(in crate::auctionmark) const NO_ITEM: &str = "there is no such item";

/// An item of a seller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::auctionmark) struct OfAuction {
    pub seller: u64,
    pub item: u32,
}

/// Profile 1, GetItem: the item, its seller's name, and the region's.
pub(in crate::auctionmark) struct ReadItem;

impl PlannedProcedure for ReadItem {
    const NAME: &'static str = "auctionmark-item";
    type Arguments = OfAuction;
    type Answer = (String, ItemState, Option<String>);

    fn plan(plan: &mut PlanBuilder<OfAuction>) -> PlanValue<Self::Answer> {
        let (seller, item) = (arg!(plan, seller), arg!(plan, item));
        let row = plan.read(ITEMS, (seller, item));
        plan.refuse_unless(NO_ITEM, row, |_, row| row.is_some());
        let user = plan.read(USERS, (seller,));
        let region = plan.field(user, "region", |user| user.as_ref().map_or(0, |it| it.region));
        let region = plan.read(REGIONS, (region,));
        plan.compute("item", (row, region), |_, (row, region)| {
            let row = row.as_ref().as_ref();
            let state = row.map_or(NO_STATE, |row| row.state());
            (row.map(|row| row.name.clone()).unwrap_or_default(), state, (*region).clone())
        })
    }
}

/// Of an item that there is not; nobody sees it, as that is refused.
const NO_STATE: ItemState =
    ItemState { changes: 0, price: 0, status: AuctionStatus::Closed, bids: 0, comments: 0 };

/// A question about a user: which parts are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct UserAsked {
    pub user: u64,
    pub ratings: bool,
    pub comments: bool,
    pub selling: bool,
    pub bought: bool,
    pub watched: bool,
}

/// So many rows of each part are shown.
pub(in crate::auctionmark) const SHOWN: usize = 25;

/// A user, and how many rows there are of each part, as far as they are shown.
pub(in crate::auctionmark) type UserParts = (Option<AuctionUser>, Vec<usize>);

/// Profile 2, GetUserInfo.
pub(in crate::auctionmark) struct ReadAuctionUser;

impl PlannedProcedure for ReadAuctionUser {
    const NAME: &'static str = "auctionmark-user-info";
    type Arguments = UserAsked;
    type Answer = UserParts;

    fn plan(plan: &mut PlanBuilder<UserAsked>) -> PlanValue<UserParts> {
        let user = arg!(plan, user);
        let row = plan.read(USERS, (user,));
        let region = plan.field(row, "region", |row| row.as_ref().map_or(0, |it| it.region));
        plan.read(REGIONS, (region,));
        let last = RowRange::last(SHOWN);
        let ratings = plan.when_some(
            (),
            |asked, ()| asked.ratings,
            |plan| {
                let rows = plan.scan(RATINGS, (user,), last);
                plan.field(rows, "count", Vec::len)
            },
        );
        let comments = plan.when_some(
            (),
            |asked, ()| asked.comments,
            |plan| {
                let rows = plan.scan(COMMENTS, (user,), last);
                plan.field(rows, "count", |rows| {
                    rows.iter().filter(|(_, comment)| comment.response.is_none()).count()
                })
            },
        );
        let selling = plan.when_some(
            (),
            |asked, ()| asked.selling,
            |plan| {
                let rows = plan.scan(ITEMS, (user,), last);
                plan.field(rows, "count", Vec::len)
            },
        );
        let bought = plan.when_some(
            (),
            |asked, ()| asked.bought,
            |plan| {
                let rows = plan.scan(BOUGHT, (user,), last);
                plan.field(rows, "count", Vec::len)
            },
        );
        let watched = plan.when_some(
            (),
            |asked, ()| asked.watched,
            |plan| {
                let rows = plan.scan(WATCHED, (user,), last);
                plan.field(rows, "count", Vec::len)
            },
        );
        let parts = (row, ratings, comments, selling, bought, watched);
        plan.compute("info", parts, |_, (row, ratings, comments, selling, bought, watched)| {
            let parts = [ratings, comments, selling, bought, watched];
            let counts = parts.iter().filter_map(|it| it.as_ref().as_ref().map(|it| **it));
            ((*row).clone(), counts.collect())
        })
    }
}

/// An item, and its highest bid, if it has one: the bid's number, who made it, and the price.
pub(in crate::auctionmark) type AuctionWinner = (ItemState, Option<(u32, u64)>);

/// Reads who has won an auction, or would.
pub(in crate::auctionmark) struct ReadWinner;

impl PlannedProcedure for ReadWinner {
    const NAME: &'static str = "auctionmark-winner";
    type Arguments = OfAuction;
    type Answer = Option<AuctionWinner>;

    fn plan(plan: &mut PlanBuilder<OfAuction>) -> PlanValue<Option<AuctionWinner>> {
        let (seller, item) = (arg!(plan, seller), arg!(plan, item));
        let row = plan.read(ITEMS, (seller, item));
        let highest = plan.read(HIGHEST_BIDS, (seller, item));
        let number = plan.field(highest, "bid", |highest| highest.unwrap_or(0));
        let bid = plan.read(BIDS, (seller, item, number));
        plan.compute("winner", (row, number, bid), |_, (row, number, bid)| {
            let bid = bid.as_ref().as_ref().map(|bid| (*number, bid.buyer));
            Some((row.as_ref().as_ref()?.state(), bid))
        })
    }
}
