//! Each check, and a mistake that it has to find.

use super::*;
use crate::auctionmark::ledger::AuctionUpdate;
use crate::auctionmark::tables::{AuctionBid, ItemComment};
use crate::tally::Ended;

const FIRST: FirstAuctions = FirstAuctions { users: 12, items: 8, communities: 2, mixing: 5.0 };

/// What is loaded, at two repositories.
fn loaded() -> AuctionRows {
    let mut rows = AuctionRows { copies: vec![reference(); 2], ..AuctionRows::default() };
    for user in FIRST.all() {
        let seller = user.user;
        rows.users.insert((seller,), user.row);
        let watched = user.watched.iter().map(|it| ((seller, it.0, it.1), "watched".to_owned()));
        rows.watched.extend(watched);
        rows.bought.extend(user.bought.iter().map(|it| ((seller, it.0, it.1), it.2)));
        for of in user.auctions {
            let item = of.item;
            rows.items.insert((seller, item), of.loaded);
            let numbered = |number: u32| (seller, item, number);
            let bids = (1..).zip(of.bids).map(|(number, bid)| (numbered(number), bid));
            rows.bids.extend(bids);
            let highest = rows.items[&(seller, item)].bids;
            rows.highest.extend((highest > 0).then_some(((seller, item), highest)));
            let comments = (1..).zip(of.comments).map(|(number, it)| (numbered(number), it));
            rows.comments.extend(comments);
            let pictures = (1..).zip(of.pictures).map(|(number, it)| ((seller, item, number), it));
            rows.pictures.extend(pictures);
            let attributes =
                (1..).zip(of.attributes).map(|(number, it)| ((seller, item, number), it));
            rows.attributes.extend(attributes);
            rows.purchases.extend(of.purchases.into_iter().map(|it| ((seller, item), it)));
        }
    }
    rows
}

/// An item that waits for its purchase is bought, and its buyer rates the seller.
fn after_a_purchase() -> (AuctionRows, AuctionLedger, (u64, u32)) {
    let (mut rows, mut known) = (loaded(), AuctionLedger::default());
    let is_waiting = |(_, row): &(&(u64, u32), &super::super::tables::AuctionItem)| {
        row.status == AuctionStatus::WaitingForPurchase
    };
    let (key, row) = rows.items.iter().find(is_waiting).map(|it| (*it.0, it.1.clone())).unwrap();
    let (bid, price) = (row.bids, row.price);
    let buyer = rows.bids[&(key.0, key.1, bid)].buyer;
    let mut closed = row.changed();
    closed.status = AuctionStatus::Closed;
    known.set_out(AuctionUpdate::Purchase(key.0, key.1));
    known.settle(&Ended::Committed, None, Some(closed.state()));
    let rating = (key.0, key.0, key.1, buyer);
    known.set_out(AuctionUpdate::Rating(rating));
    known.settle(&Ended::Committed, None, None);
    rows.items.insert(key, closed);
    rows.purchases.insert(key, ItemPurchase { buyer, bid, price, credit: price + 5 });
    rows.bought.insert((buyer, key.0, key.1), price);
    rows.ratings.insert(rating, -1);
    let seller = rows.users.get_mut(&(key.0,)).unwrap();
    (seller.balance, seller.rating) = (seller.balance + price, seller.rating - 1);
    rows.users.get_mut(&(buyer,)).unwrap().balance += 5;
    (rows, known, key)
}

fn are_right(rows: &AuctionRows, known: &AuctionLedger) -> [bool; 7] {
    let audit = AuctionAudit::new(&FIRST, rows, known);
    let all = [
        audit.users(),
        audit.listings(),
        audit.items(),
        audit.parts(),
        audit.bids(),
        audit.purchases(),
        audit.committed(),
    ];
    all.map(|wrong| wrong == Complaints::default())
}

#[test]
fn what_is_loaded_and_what_was_committed_is_right() {
    assert_eq!(are_right(&loaded(), &AuctionLedger::default()), [true; 7]);
    let (rows, known, _) = after_a_purchase();
    assert_eq!(are_right(&rows, &known), [true; 7]);
}

#[test]
fn each_check_finds_what_it_is_for() {
    let (rows, known, key) = after_a_purchase();
    let buyer = rows.purchases[&key].buyer;
    let spoilt = |check: usize, what: &str, spoil: &dyn Fn(&mut AuctionRows)| {
        let mut spoilt = rows.clone();
        spoil(&mut spoilt);
        assert!(!are_right(&spoilt, &known)[check], "{what}");
    };
    spoilt(0, "the seller was not paid", &|it| {
        it.users.get_mut(&(key.0,)).unwrap().balance -= 1;
    });
    spoilt(0, "a rating that does not count", &|it| {
        it.users.get_mut(&(key.0,)).unwrap().rating += 1;
    });
    spoilt(0, "a comment that is not counted", &|it| {
        let comment = ItemComment { buyer, question: String::new(), response: None };
        it.comments.insert((key.0, key.1, 9), comment);
    });
    spoilt(1, "an item that nobody listed", &|it| {
        let user = it.users.get_mut(&(key.0,)).unwrap();
        user.items += 1;
        let row = it.items[&key].clone();
        it.items.insert((key.0, user.items), row);
    });
    spoilt(1, "an item that went", &|it| _ = it.items.remove(&key));
    spoilt(2, "a change that was lost", &|it| it.items.get_mut(&key).unwrap().changes = 0);
    spoilt(2, "another price", &|it| it.items.get_mut(&key).unwrap().price += 1);
    spoilt(3, "a picture too few", &|it| _ = it.pictures.remove(&(key.0, key.1, 1)));
    spoilt(3, "an attribute of no item", &|it| _ = it.attributes.insert((key.0, 999, 1), (1, 1)));
    spoilt(3, "something is not watched any more", &|it| _ = it.watched.pop_first());
    spoilt(3, "something is watched that was not", &|it| {
        it.watched.insert((1, 1, 99), String::new());
    });
    spoilt(3, "a copy that differs", &|it| _ = it.copies[1].groups.insert((1,), 7_000));
    spoilt(4, "a bid that is missing", &|it| _ = it.bids.remove(&(key.0, key.1, 1)));
    spoilt(4, "a bid that is higher than the highest", &|it| {
        let count = it.items[&key].bids + 1;
        it.items.get_mut(&key).unwrap().bids = count;
        let bid = AuctionBid { buyer, bid: 1 << 40, most: 1 << 40 };
        it.bids.insert((key.0, key.1, count), bid);
    });
    spoilt(4, "a seller's own bid", &|it| {
        it.bids.get_mut(&(key.0, key.1, 1)).unwrap().buyer = key.0;
    });
    spoilt(5, "the buyer does not have it", &|it| _ = it.bought.remove(&(buyer, key.0, key.1)));
    spoilt(5, "it is not closed", &|it| {
        it.items.get_mut(&key).unwrap().status = AuctionStatus::Open;
    });
    spoilt(5, "a rating without a purchase", &|it| {
        it.ratings.insert((buyer, key.0, 999, key.0), 1);
    });
    spoilt(6, "a purchase that nobody committed", &|it| {
        let purchase = it.purchases[&key];
        it.purchases.insert((key.0, 998), purchase);
    });
    spoilt(6, "a purchase that was lost", &|it| _ = it.purchases.remove(&key));
    spoilt(6, "a rating that was lost", &|it| it.ratings.clear());
}
