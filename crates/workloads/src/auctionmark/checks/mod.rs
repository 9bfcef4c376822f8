//! What must hold after a run: money, bids, comments, purchases and ratings add up, items are what
//! the last change left, and nothing came or went but what committed.

use std::collections::{BTreeMap, BTreeSet};

use muesli::{Db, Error};

use super::AuctionMark;
use super::first::{CATEGORIES, FirstAuctions, GROUPS, REGIONS, VALUES};
use super::ledger::AuctionLedger;
use super::plans::listing::FEE;
use super::plans::loads::LoadedSeller;
use super::rows::{AuctionReferenceCopy, AuctionRows};
use super::tables::{AuctionStatus, ItemPurchase};
use crate::check::{Check, Complaints};

/// The rows beside what there was at first, and what clients know.
#[derive(Debug)]
struct AuctionAudit<'a> {
    rows: &'a AuctionRows,
    known: &'a AuctionLedger,
    first: BTreeMap<u64, LoadedSeller>,
}

impl<'a> AuctionAudit<'a> {
    fn new(
        first: &FirstAuctions,
        rows: &'a AuctionRows,
        known: &'a AuctionLedger,
    ) -> AuctionAudit<'a> {
        let first = first.all().into_iter().map(|user| (user.user, user)).collect();
        AuctionAudit { rows, known, first }
    }

    /// Whether a purchase was there at first.
    fn is_loaded(&self, seller: u64, item: u32) -> bool {
        let auctions = self.first.get(&seller).map_or(&[][..], |user| &user.auctions);
        auctions.iter().any(|it| it.item == item && !it.purchases.is_empty())
    }

    /// Purchases in the run.
    fn new_purchases(&self) -> impl Iterator<Item = ((u64, u32), &ItemPurchase)> {
        let all = self.rows.purchases.iter().map(|(key, purchase)| (*key, purchase));
        all.filter(|((seller, item), _)| !self.is_loaded(*seller, *item))
    }

    /// What users own, how they are rated, and what they have not answered follows from the rest.
    fn users(&self) -> Complaints {
        let mut wrong = Complaints::default();
        let mut money: BTreeMap<u64, i64> = BTreeMap::new();
        for ((seller, _), purchase) in self.new_purchases() {
            *money.entry(seller).or_default() += purchase.price;
            *money.entry(purchase.buyer).or_default() += purchase.credit - purchase.price;
        }
        if !self.rows.users.keys().map(|it| it.0).eq(self.first.keys().copied()) {
            wrong.add(|| "users came or went".to_owned());
        }
        for ((user,), row) in &self.rows.users {
            let Some(first) = self.first.get(user).map(|it| &it.row) else { continue };
            let listed = i64::from(row.items) - i64::from(first.items);
            let balance = first.balance + money.get(user).copied().unwrap_or(0) - FEE * listed;
            let ratings = self.rows.ratings.range((*user, 0, 0, 0)..=(*user, u64::MAX, !0, !0));
            let rating = first.rating + ratings.map(|(_, rating)| *rating).sum::<i64>();
            let comments = self.rows.comments.range((*user, 0, 0)..=(*user, u32::MAX, u32::MAX));
            let unanswered = comments.filter(|(_, it)| it.response.is_none()).count() as i64;
            let found = (row.balance, row.rating, row.unanswered);
            let named = (&row.name, row.region) == (&first.name, first.region);
            if !named || found != (balance, rating, unanswered) {
                let expected = (balance, rating, unanswered);
                wrong.add(|| format!("user {user}: {row:?}, not {expected:?}"));
            }
        }
        wrong
    }

    /// Items are numbered without gaps by their sellers, and were listed by who committed that.
    fn listings(&self) -> Complaints {
        let (mut wrong, none) = (Complaints::default(), Default::default());
        for ((user,), row) in &self.rows.users {
            let items = self.rows.items.range((*user, 0)..=(*user, u32::MAX));
            let first = self.first.get(user).map_or(0, |it| u64::from(it.row.items));
            let listed = self.known.listings.get(user).unwrap_or(&none).after(first);
            let counted = listed.in_order(u64::from(row.items).saturating_sub(first));
            if !items.map(|(key, _)| key.1).eq(1..=row.items) {
                wrong.add(|| format!("items of {user} are not 1 to {}", row.items));
            }
            if let Err(text) = counted {
                wrong.add(|| format!("items of {user}: {text}"));
            }
        }
        for (seller, _) in self.rows.items.keys() {
            if !self.rows.users.contains_key(&(*seller,)) {
                wrong.add(|| format!("an item of {seller}, who is nobody"));
            }
        }
        wrong
    }

    /// Each item is what the last change left.
    fn items(&self) -> Complaints {
        let (mut wrong, none) = (Complaints::default(), Default::default());
        for ((seller, item), row) in &self.rows.items {
            let first = self.first.get(seller).and_then(|it| it.auctions.get(*item as usize - 1));
            let state = row.state();
            let is_loaded = match first {
                Some(first) => first.loaded.state() == state,
                None => state.status == AuctionStatus::Open && state.bids == 0,
            };
            let known = self.known.items.get(&(*seller, *item)).unwrap_or(&none);
            let is_left_by = |it: Option<_>| it.is_none_or(|it| it == state);
            if let Err(text) = known.judge_last(row.changes, is_loaded, is_left_by) {
                wrong.add(|| format!("item {item} of {seller}: {text}: {state:?}"));
            }
        }
        for changed in self.known.items.keys() {
            if !self.rows.items.contains_key(changed) {
                wrong.add(|| format!("{changed:?} was changed and is not there"));
            }
        }
        wrong
    }

    /// The rows of each item are as many as it counts, and none is of no item.
    fn parts(&self) -> Complaints {
        let (mut wrong, rows) = (Complaints::default(), self.rows);
        for (key @ (seller, item), row) in &rows.items {
            let all = (*seller, *item, 0)..=(*seller, *item, u8::MAX);
            let attributes = rows.attributes.range(all.clone()).count();
            let pictures = rows.pictures.range(all).count();
            let all = (*seller, *item, 0)..=(*seller, *item, u32::MAX);
            let comments = rows.comments.range(all).map(|(key, _)| key.2);
            let counted = (usize::from(row.attributes), usize::from(row.pictures));
            if !comments.eq(1..=row.comments) || (attributes, pictures) != counted {
                wrong.add(|| format!("item {key:?}: {row:?}, {attributes} and {pictures}"));
            }
        }
        let of_attributes = rows.attributes.keys().map(|it| (it.0, it.1));
        let of_pictures = rows.pictures.keys().map(|it| (it.0, it.1));
        let of_comments = rows.comments.keys().map(|it| (it.0, it.1));
        let of_bids = rows.bids.keys().map(|it| (it.0, it.1));
        let mut all: BTreeSet<_> = of_attributes.chain(of_pictures).chain(of_comments).collect();
        all.extend(of_bids.chain(rows.highest.keys().copied()));
        for orphan in all.iter().filter(|it| !rows.items.contains_key(it)) {
            wrong.add(|| format!("rows of {orphan:?}, which is no item"));
        }
        let watched_by = |of: &LoadedSeller| {
            of.watched.iter().map(|it| (of.user, it.0, it.1)).collect::<Vec<_>>()
        };
        let watched: BTreeSet<_> = self.first.values().flat_map(watched_by).collect();
        let found: BTreeSet<_> = rows.watched.keys().copied().collect();
        for other in found.symmetric_difference(&watched) {
            wrong.add(|| format!("{other:?} came to what is watched, or went"));
        }
        for (reference, copy) in rows.copies.iter().map(|copy| (reference(), copy)) {
            if reference != *copy {
                wrong.add(|| "what never changes has changed".to_owned());
            }
        }
        wrong
    }

    /// Bids are as many as the item counts, the highest one is it, and the price is between.
    fn bids(&self) -> Complaints {
        let (mut wrong, rows) = (Complaints::default(), self.rows);
        for (key @ (seller, item), row) in &rows.items {
            let bids = rows.bids.range((*seller, *item, 0)..=(*seller, *item, u32::MAX));
            let bids: Vec<_> = bids.map(|(key, bid)| (key.2, *bid)).collect();
            let highest = rows.highest.get(key).copied();
            let most = bids.iter().map(|(_, bid)| bid.most).max();
            let won = highest.and_then(|highest| bids.iter().find(|it| it.0 == highest));
            let is_right = match (won, most) {
                (None, None) => highest.is_none() && row.price == row.initial_price,
                (Some((_, won)), Some(most)) => {
                    won.most == most && (row.initial_price..=won.most).contains(&row.price)
                }
                _ => false,
            };
            let is_numbered = bids.iter().map(|it| it.0).eq(1..=row.bids);
            let own = bids.iter().any(|(_, bid)| bid.buyer == *seller);
            if !is_right || !is_numbered || own {
                wrong.add(|| format!("bids on {key:?}: {bids:?}, {highest:?}, {row:?}"));
            }
        }
        wrong
    }

    /// What was bought is closed, at its price, by who had the highest bid, and the buyer has it;
    /// what is closed has no bids or was bought.
    fn purchases(&self) -> Complaints {
        let (mut wrong, rows) = (Complaints::default(), self.rows);
        for ((seller, item), purchase) in &rows.purchases {
            let row = rows.items.get(&(*seller, *item));
            let bid = rows.bids.get(&(*seller, *item, purchase.bid));
            let is_won = rows.highest.get(&(*seller, *item)) == Some(&purchase.bid)
                && bid.is_some_and(|bid| bid.buyer == purchase.buyer);
            let is_closed = row.is_some_and(|row| {
                row.status == AuctionStatus::Closed && row.price == purchase.price
            });
            let bought = rows.bought.get(&(purchase.buyer, *seller, *item));
            if !is_won || !is_closed || bought != Some(&purchase.price) {
                wrong.add(|| format!("purchase of {seller}.{item}: {purchase:?}, {row:?}"));
            }
        }
        for (buyer, seller, item) in rows.bought.keys() {
            let purchase = rows.purchases.get(&(*seller, *item));
            if purchase.is_none_or(|purchase| purchase.buyer != *buyer) {
                wrong.add(|| format!("{buyer} has {seller}.{item}, and did not buy it"));
            }
        }
        for (key, row) in &rows.items {
            let is_bought = rows.purchases.contains_key(key);
            let fits = match row.status {
                AuctionStatus::Open => !is_bought,
                AuctionStatus::WaitingForPurchase => !is_bought && row.bids > 0,
                AuctionStatus::Closed => is_bought || row.bids == 0,
            };
            if !fits {
                wrong.add(|| format!("item {key:?} is {:?}, {} bids", row.status, row.bids));
            }
        }
        for (receiver, seller, item, giver) in rows.ratings.keys() {
            let buyer = rows.purchases.get(&(*seller, *item)).map(|purchase| purchase.buyer);
            let ends = BTreeSet::from([*receiver, *giver]);
            if buyer.is_none_or(|buyer| ends != BTreeSet::from([*seller, buyer])) {
                wrong.add(|| format!("{giver} rated {receiver} for {seller}.{item}"));
            }
        }
        wrong
    }

    /// Purchases, ratings and answers are those that committed.
    fn committed(&self) -> Complaints {
        let mut wrong = Complaints::default();
        let purchases = self.new_purchases().map(|it| it.0).collect();
        self.known.purchases.judge(&purchases, &mut wrong);
        self.known.ratings.judge(&self.rows.ratings.keys().copied().collect(), &mut wrong);
        let is_new = |(seller, item, number): &(u64, u32, u32)| {
            *number > 1 || !self.is_loaded(*seller, *item)
        };
        let answered = self.rows.comments.iter().filter(|(_, it)| it.response.is_some());
        let answered = answered.map(|(key, _)| *key).filter(is_new).collect();
        self.known.answers.judge(&answered, &mut wrong);
        wrong
    }
}

/// What is everywhere.
fn reference() -> AuctionReferenceCopy {
    let values = (0..GROUPS).flat_map(|group| (0..VALUES).map(move |value| (group, value)));
    AuctionReferenceCopy {
        regions: (0..REGIONS).map(|it| ((it,), FirstAuctions::region(it))).collect(),
        categories: (0..CATEGORIES).map(|it| ((it,), FirstAuctions::category(it))).collect(),
        groups: (0..GROUPS).map(|it| ((it,), FirstAuctions::group(it))).collect(),
        values: values.map(|it| (it, FirstAuctions::value(it.0, it.1))).collect(),
    }
}

pub(super) async fn check(auctions: &AuctionMark, db: &Db) -> Result<Vec<Check>, Error> {
    let mut all = AuctionLedger::default();
    for mut ledger in auctions.ledgers.all() {
        ledger.begin_incarnation();
        all.join(&ledger);
    }
    let rows = AuctionRows::read(&db.read_only(), auctions.first.users).await?;
    let audit = AuctionAudit::new(&auctions.first, &rows, &all);
    let none = String::new;
    let users = format!("{} users, {} items", rows.users.len(), rows.items.len());
    let bids = format!("{} bids", rows.bids.len());
    let bought = format!("{} purchases, {} ratings", rows.purchases.len(), rows.ratings.len());
    Ok(vec![
        Check::none_wrong("money, ratings and comments add up", &audit.users(), users),
        Check::none_wrong("items were listed by who committed that", &audit.listings(), none()),
        Check::none_wrong("items are what the last change left", &audit.items(), none()),
        Check::none_wrong("items have the rows that they count", &audit.parts(), none()),
        Check::none_wrong("the highest bid has the price", &audit.bids(), bids),
        Check::none_wrong("what was bought is closed and paid", &audit.purchases(), bought),
        Check::none_wrong("what was done is what committed", &audit.committed(), none()),
        Check::none_wrong("answers have what there is", &all.wrong_answers, none()),
    ])
}

#[cfg(test)]
mod tests;
