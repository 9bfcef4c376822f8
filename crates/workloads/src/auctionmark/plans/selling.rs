//! What happens between two users: NewPurchase (8), and NewFeedback (6).

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure};
use serde::{Deserialize, Serialize};

use crate::auctionmark::tables::{
    AuctionItem, AuctionStatus, AuctionUser, BOUGHT, ITEMS, ItemPurchase, PURCHASES, RATINGS, USERS,
};

/// Why a purchase is refused of an item that has changed since it was read.
pub(in crate::auctionmark) const CHANGED: &str = "the item has changed";
/// Why one is refused for which there is too little money.
pub(in crate::auctionmark) const TOO_LITTLE: &str = "the buyer has too little money";

/// A purchase, by what was read of the item before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct WonItem {
    pub seller: u64,
    pub item: u32,
    pub changes: u64,
    pub bid: u32,
    pub buyer: u64,
    pub price: i64,
    /// What the buyer pays in.
    pub credit: i64,
}

/// Profile 8, NewPurchase.
pub(in crate::auctionmark) struct BuyItem;

impl PlannedProcedure for BuyItem {
    const NAME: &'static str = "auctionmark-buy";
    type Arguments = WonItem;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<WonItem>) -> PlanValue<()> {
        let (seller, item, buyer) = (arg!(plan, seller), arg!(plan, item), arg!(plan, buyer));
        let row = plan.shared(ITEMS, (seller, item));
        plan.refuse_unless(CHANGED, row, |won, row| {
            row.as_ref().as_ref().is_some_and(|row| {
                row.status == AuctionStatus::WaitingForPurchase && row.changes == won.changes
            })
        });
        let user = plan.shared(USERS, (buyer,));
        plan.refuse_unless(TOO_LITTLE, user, |won, user| {
            user.as_ref().as_ref().is_some_and(|user| user.balance + won.credit >= won.price)
        });
        plan.insert(PURCHASES, (seller, item), (), |won, ()| {
            let WonItem { buyer, bid, price, credit, .. } = *won;
            ItemPurchase { buyer, bid, price, credit }
        });
        plan.update(ITEMS, (seller, item), (), |_, row, ()| {
            row.map(|row| AuctionItem { status: AuctionStatus::Closed, ..row }.changed())
        });
        plan.update(USERS, (seller,), (), |won, row, ()| {
            row.map(|row| AuctionUser { balance: row.balance + won.price, ..row })
        });
        plan.insert(BOUGHT, (buyer, seller, item), (), |won, ()| won.price);
        plan.update(USERS, (buyer,), (), |won, row, ()| {
            row.map(|row| AuctionUser { balance: row.balance + won.credit - won.price, ..row })
        });
        plan.nothing()
    }
}

/// A rating of the seller of an item by its buyer, or of the buyer by the seller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct NewUserRating {
    pub receiver: u64,
    pub seller: u64,
    pub item: u32,
    pub giver: u64,
    pub rating: i64,
}

/// Profile 6, NewFeedback: refused where the giver has rated that before, or nothing was bought.
pub(in crate::auctionmark) struct RateUser;

impl PlannedProcedure for RateUser {
    const NAME: &'static str = "auctionmark-rate-user";
    type Arguments = NewUserRating;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<NewUserRating>) -> PlanValue<()> {
        let (receiver, seller) = (arg!(plan, receiver), arg!(plan, seller));
        let (item, giver) = (arg!(plan, item), arg!(plan, giver));
        let bought = plan.shared(PURCHASES, (seller, item));
        plan.refuse_unless("it was not bought by one from the other", bought, |new, bought| {
            let buyer = bought.as_ref().as_ref().map(|bought| bought.buyer);
            let ends = (new.receiver, new.giver);
            buyer.is_some_and(|buyer| ends == (new.seller, buyer) || ends == (buyer, new.seller))
        });
        let key = (receiver, seller, item, giver);
        let rated = plan.shared(RATINGS, key);
        plan.refuse_unless("it was rated before", rated, |_, rated| rated.is_none());
        plan.insert(RATINGS, key, (), |new, ()| new.rating);
        plan.update(USERS, (receiver,), (), |new, row, ()| {
            row.map(|row| AuctionUser { rating: row.rating + new.rating, ..row })
        });
        plan.nothing()
    }
}
