//! What happens to an open auction: NewBid (3), and its end.

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure};
use serde::{Deserialize, Serialize};

use super::reading::{NO_ITEM, OfAuction};
use crate::auctionmark::tables::{
    AuctionBid, AuctionItem, AuctionStatus, BIDS, HIGHEST_BIDS, ITEMS, ItemState,
};

/// Why a bid or an end is refused of an auction that has ended.
pub(in crate::auctionmark) const ENDED: &str = "the auction has ended";
/// Why a bid is refused that is too low.
pub(in crate::auctionmark) const TOO_LOW: &str = "the bid is too low";

/// A bid that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct OfferedBid {
    pub seller: u64,
    pub item: u32,
    pub buyer: u64,
    /// What the buyer would pay.
    pub most: i64,
}

/// What a bid leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BidEffect {
    /// What is inserted under a number.
    inserted: Option<(u32, AuctionBid)>,
    /// The highest bid so far as it is from then on.
    former: Option<(u32, AuctionBid)>,
    /// The highest bid, and the price.
    highest: u32,
    price: i64,
}

impl BidEffect {
    /// The bid of somebody, on an item with this highest bid; none: it is too low.
    fn of(
        offered: &OfferedBid,
        item: &AuctionItem,
        highest: Option<(u32, AuctionBid)>,
    ) -> Option<BidEffect> {
        let OfferedBid { buyer, most, .. } = *offered;
        let (number, step) = (item.bids + 1, item.initial_price / 40);
        let Some((first, former)) = highest else {
            let price = item.initial_price;
            let inserted = Some((number, AuctionBid { buyer, bid: price, most }));
            let fits = most >= price;
            return fits.then_some(BidEffect { inserted, former: None, highest: number, price });
        };
        if former.buyer == buyer {
            // Who has the highest bid raises it, and pays no more for that.
            let raised = AuctionBid { bid: item.price, most, ..former };
            let (highest, price) = (first, item.price);
            let effect =
                BidEffect { inserted: None, former: Some((first, raised)), highest, price };
            return (most >= former.most).then_some(effect);
        }
        if most < item.price {
            return None;
        }
        if most > former.most {
            let price = item.price.max(most.min(former.most + step));
            let inserted = Some((number, AuctionBid { buyer, bid: price, most }));
            return Some(BidEffect { inserted, former: None, highest: number, price });
        }
        let price = item.price.max(former.most.min(most + step));
        let inserted = Some((number, AuctionBid { buyer, bid: most, most }));
        let former = Some((first, AuctionBid { bid: price, ..former }));
        Some(BidEffect { inserted, former, highest: first, price })
    }
}

/// Bids on an item; how it is then.
pub(in crate::auctionmark) struct PlaceBid;

impl PlannedProcedure for PlaceBid {
    const NAME: &'static str = "auctionmark-bid";
    type Arguments = OfferedBid;
    type Answer = Option<ItemState>;

    fn plan(plan: &mut PlanBuilder<OfferedBid>) -> PlanValue<Option<ItemState>> {
        let (seller, item) = (arg!(plan, seller), arg!(plan, item));
        let row = plan.read(ITEMS, (seller, item));
        plan.refuse_unless(NO_ITEM, row, |_, row| row.is_some());
        plan.refuse_unless(ENDED, row, |_, row| is_open(&row));
        let highest = plan.read(HIGHEST_BIDS, (seller, item));
        let first = plan.field(highest, "bid", |highest| highest.unwrap_or(0));
        let former = plan.read(BIDS, (seller, item, first));
        let effect =
            plan.compute("effect", (row, first, former), |offered, (row, first, former)| {
                let former = former.as_ref().as_ref().map(|former| (*first, *former));
                BidEffect::of(offered, row.as_ref().as_ref()?, former)
            });
        plan.refuse_unless(TOO_LOW, effect, |_, effect| effect.is_some());
        let number = plan.field(effect, "number", |effect| {
            effect.and_then(|it| it.inserted).map_or(0, |it| it.0)
        });
        plan.when(
            number,
            |_, number| *number > 0,
            |plan| {
                plan.update(BIDS, (seller, item, number), effect, |_, row, effect| {
                    effect.and_then(|it| it.inserted).map(|it| it.1).or(row)
                });
            },
        );
        plan.when(
            effect,
            |_, effect| effect.is_some_and(|it| it.former.is_some()),
            |plan| {
                plan.update(BIDS, (seller, item, first), effect, |_, row, effect| {
                    effect.and_then(|it| it.former).map(|it| it.1).or(row)
                });
            },
        );
        plan.update(HIGHEST_BIDS, (seller, item), effect, |_, row, effect| {
            effect.map(|it| it.highest).or(row)
        });
        plan.update(ITEMS, (seller, item), effect, |_, row, effect| after(row, *effect));
        plan.compute("after", (row, effect), |_, (row, effect)| {
            after((*row).clone(), *effect).map(|row| row.state())
        })
    }
}

fn is_open(row: &Option<AuctionItem>) -> bool {
    row.as_ref().is_some_and(|row| row.status == AuctionStatus::Open)
}

/// An item after a bid.
fn after(row: Option<AuctionItem>, effect: Option<BidEffect>) -> Option<AuctionItem> {
    let (row, effect) = (row?, effect?);
    let bids = row.bids + u32::from(effect.inserted.is_some());
    Some(AuctionItem { bids, price: effect.price, ..row }.changed())
}

/// Ends an auction: it waits for its purchase, or is closed where nobody has bid; how it is then.
pub(in crate::auctionmark) struct CloseAuction;

impl PlannedProcedure for CloseAuction {
    const NAME: &'static str = "auctionmark-close";
    type Arguments = OfAuction;
    type Answer = Option<ItemState>;

    fn plan(plan: &mut PlanBuilder<OfAuction>) -> PlanValue<Option<ItemState>> {
        let (seller, item) = (arg!(plan, seller), arg!(plan, item));
        let row = plan.read(ITEMS, (seller, item));
        plan.refuse_unless(NO_ITEM, row, |_, row| row.is_some());
        plan.refuse_unless(ENDED, row, |_, row| is_open(&row));
        plan.update(ITEMS, (seller, item), (), |_, row, ()| row.map(ended));
        plan.field(row, "after", |row| row.clone().map(|row| ended(row).state()))
    }
}

fn ended(row: AuctionItem) -> AuctionItem {
    let status = match row.bids {
        0 => AuctionStatus::Closed,
        _ => AuctionStatus::WaitingForPurchase,
    };
    AuctionItem { status, ..row }.changed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bids_raise_the_price_and_the_highest_one_wins() {
        let first = crate::auctionmark::first::FirstAuctions {
            users: 9,
            items: 3,
            communities: 1,
            mixing: 0.0,
        };
        let loaded = first.auction(1, 1).loaded;
        let item = AuctionItem { initial_price: 400, price: 500, bids: 2, ..loaded };
        let offered = |buyer, most| OfferedBid { seller: 1, item: 1, buyer, most };
        let highest = (2, AuctionBid { buyer: 5, bid: 500, most: 600 });
        let of = |buyer, most| BidEffect::of(&offered(buyer, most), &item, Some(highest));
        // A higher one is the highest from then on, for a step above what the former would pay.
        let won = of(6, 700).unwrap();
        assert_eq!((won.highest, won.price, won.inserted.unwrap().0), (3, 610, 3));
        assert_eq!(of(6, 605).unwrap().price, 605);
        // A lower one raises what the former pays, and is kept.
        let lost = of(6, 550).unwrap();
        assert_eq!((lost.highest, lost.price, lost.former.unwrap().1.bid), (2, 560, 560));
        assert_eq!(lost.former.unwrap().1.most, 600);
        assert!(of(6, 499).is_none() && of(5, 599).is_none());
        let raised = of(5, 650).unwrap();
        assert_eq!((raised.inserted, raised.price), (None, 500));
        assert_eq!(raised.former.unwrap().1.most, 650);
        let begun = BidEffect::of(&offered(6, 450), &item, None).unwrap();
        assert_eq!((begun.price, begun.highest), (400, 3));
    }
}
