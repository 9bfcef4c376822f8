//! What is there at first: a function of the parameters alone.

use std::collections::BTreeSet;

use super::plans::loads::{LoadedAuction, LoadedSeller};
use super::tables::{
    AuctionBid, AuctionItem, AuctionStatus, AuctionUser, ItemComment, ItemPurchase,
};
use crate::chance::Chance;
use crate::distribution::fnv_hash;

/// How many regions there are, categories, groups of attributes, and attributes of each.
pub(super) const REGIONS: u8 = 75;
pub(super) const CATEGORIES: u32 = 400;
pub(super) const GROUPS: u16 = 100;
pub(super) const VALUES: u8 = 6;

/// Streams of chance, apart from those of clients.
const OF_USERS: u64 = 5 << 40;
const OF_ITEMS: u64 = 6 << 40;

/// The users and items at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstAuctions {
    pub users: u64,
    /// The most items that a user has at first.
    pub items: u32,
    pub communities: u64,
    pub mixing: f64,
}

impl FirstAuctions {
    pub fn community(&self, user: u64) -> u64 {
        fnv_hash(user) % self.communities
    }

    pub fn draw_user(&self, chance: &mut Chance) -> u64 {
        chance.between(1, self.users)
    }

    /// Somebody who may buy of a seller: of its community in most cases.
    pub fn draw_buyer(&self, seller: u64, chance: &mut Chance) -> u64 {
        let (mixes, near) = (chance.percent(self.mixing), self.community(seller));
        for _ in 0..64 * self.communities {
            let user = self.draw_user(chance);
            if user != seller && (mixes || self.community(user) == near) {
                return user;
            }
        }
        1 + seller % self.users
    }

    /// How many items a user has at first: few of most.
    pub fn items_of(&self, user: u64) -> u32 {
        let fraction = Chance::new(OF_USERS | user, 0, 0).fraction();
        (1.0 / (1.0 - fraction * 0.999)) as u32 % (self.items + 1)
    }

    pub fn region(number: u8) -> String {
        format!("region {number}")
    }

    /// A category, and the one above it.
    pub fn category(number: u32) -> (String, u32) {
        (format!("category {number}"), number / 8)
    }

    pub fn value(group: u16, value: u8) -> String {
        format!("value {value} of group {group}")
    }

    /// A group's category.
    pub fn group(group: u16) -> u32 {
        (fnv_hash(group.into()) % u64::from(CATEGORIES)) as u32
    }

    pub fn user(&self, user: u64) -> AuctionUser {
        AuctionUser {
            name: format!("user {user}"),
            region: (fnv_hash(user) % u64::from(REGIONS)) as u8,
            rating: (fnv_hash(user ^ 7) % 100) as i64,
            balance: (100_000 + fnv_hash(user ^ 9) % 900_000) as i64,
            unanswered: 0,
            items: self.items_of(user),
        }
    }

    /// Where an item is at first: six of ten are open, two wait, and two are sold.
    pub fn status(seller: u64, item: u32) -> AuctionStatus {
        match fnv_hash(seller << 20 ^ u64::from(item)) % 10 {
            0..6 => AuctionStatus::Open,
            6..8 => AuctionStatus::WaitingForPurchase,
            _ => AuctionStatus::Closed,
        }
    }

    /// An item as it is loaded, with its bids, the last of which is the highest.
    pub fn auction(&self, seller: u64, item: u32) -> LoadedAuction {
        let mut chance = Chance::new(OF_ITEMS | (seller << 8 ^ u64::from(item)), 0, 0);
        let status = FirstAuctions::status(seller, item);
        let least = u64::from(status != AuctionStatus::Open);
        let initial_price = chance.between(100, 10_000) as i64;
        let count = chance.between(least, 4) as u32;
        let step = |number: u32| initial_price + initial_price * i64::from(number) / 40;
        let bid = |number: u32, chance: &mut Chance| {
            let buyer = self.draw_buyer(seller, chance);
            AuctionBid { buyer, bid: step(number), most: step(number) }
        };
        let bids: Vec<_> = (0..count).map(|number| bid(number, &mut chance)).collect();
        let price = bids.last().map_or(initial_price, |bid| bid.bid);
        let sold = bids.last().filter(|_| status == AuctionStatus::Closed);
        let purchase =
            sold.map(|bid| ItemPurchase { buyer: bid.buyer, bid: count, price, credit: price });
        let comment = sold.map(|bid| ItemComment {
            buyer: bid.buyer,
            question: format!("question of {}", bid.buyer),
            response: Some(format!("response of {seller}")),
        });
        let attribute = |number: u8| {
            let group = (fnv_hash(u64::from(item) ^ u64::from(number)) % u64::from(GROUPS)) as u16;
            (group, number % VALUES)
        };
        let attributes: Vec<_> = (0..chance.between(1, 4) as u8).map(attribute).collect();
        let pictures: Vec<_> =
            (0..chance.between(1, 4)).map(|number| format!("picture {number}")).collect();
        let loaded = AuctionItem {
            name: format!("item {item} of {seller}"),
            category: chance.below(CATEGORIES.into()) as u32,
            description: format!("{:064x}", fnv_hash(seller ^ u64::from(item))),
            initial_price,
            price,
            bids: count,
            pictures: pictures.len() as u8,
            attributes: attributes.len() as u8,
            comments: u32::from(comment.is_some()),
            status,
            changes: 0,
        };
        let comments = comment.into_iter().collect();
        let purchases = purchase.into_iter().collect();
        LoadedAuction { item, loaded, bids, attributes, pictures, comments, purchases }
    }

    /// What a user watches, which never changes: by seller and item.
    pub fn watched_by(&self, user: u64) -> BTreeSet<(u64, u32)> {
        let watched = |number: u64| (1 + (user + number * 7) % self.users, 1_u32);
        (1..=fnv_hash(user) % 4).map(watched).collect()
    }

    /// A user as it is loaded, with all that it sells.
    pub fn loaded(&self, user: u64) -> LoadedSeller {
        let auctions = 1..=self.items_of(user);
        LoadedSeller {
            user,
            row: self.user(user),
            auctions: auctions.map(|item| self.auction(user, item)).collect(),
            bought: Vec::new(),
            watched: self.watched_by(user).into_iter().collect(),
        }
    }

    /// All users, each with what it has bought.
    pub fn all(&self) -> Vec<LoadedSeller> {
        let mut all: Vec<_> = (1..=self.users).map(|user| self.loaded(user)).collect();
        for place in 0..all.len() {
            let seller = all[place].user;
            for auction in all[place].auctions.clone() {
                for purchase in &auction.purchases {
                    let bought = (seller, auction.item, purchase.price);
                    all[purchase.buyer as usize - 1].bought.push(bought);
                }
            }
        }
        all
    }
}
