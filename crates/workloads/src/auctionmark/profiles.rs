//! What a client does: the profiles, and what it makes of their answers.

use muesli::Error;
use muesli::plans::PlannedProcedure;

use super::first::{CATEGORIES, FirstAuctions, GROUPS, VALUES};
use super::ledger::AuctionUpdate;
use super::plans::bidding::{CloseAuction, OfferedBid, PlaceBid, TOO_LOW};
use super::plans::listing::{
    AnswerComment, CommentAnswer, CommentItem, ListItem, NewDescription, NewListing, NewQuestion,
    UpdateItem,
};
use super::plans::reading::{
    OfAuction, ReadAuctionUser, ReadItem, ReadWinner, SHOWN, UserAsked, UserParts,
};
use super::plans::selling::{BuyItem, CHANGED, NewUserRating, RateUser, WonItem};
use super::tables::{AuctionItem, AuctionStatus, ItemState};
use super::{AuctionMark, KnownAuctions};
use crate::chance::Chance;
use crate::distribution::fnv_hash;
use crate::tally::Ended;
use crate::workload::{CallAttempts, Seat, call_plan, ended};

/// So often an item is bought that changes meanwhile.
const ROUNDS: u32 = 20;
/// So many items of each kind a client remembers; the oldest is forgotten.
const KNOWN_MOST: usize = 1_000;
/// The most that is offered, and so the highest price.
const PRICE_MOST: i64 = 1 << 40;
/// So often an item of a status is looked for among those that were loaded.
const DRAWS: usize = 50;

fn remember<T>(list: &mut Vec<T>, one: T) {
    list.push(one);
    if list.len() > KNOWN_MOST {
        list.remove(0);
    }
}

fn any<T: Copy>(list: &[T], chance: &mut Chance) -> Option<T> {
    list.get(chance.below(list.len() as u64) as usize).copied()
}

fn take<T>(list: &mut Vec<T>, chance: &mut Chance) -> Option<T> {
    let place = chance.below(list.len() as u64) as usize;
    (place < list.len()).then(|| list.swap_remove(place))
}

impl KnownAuctions {
    /// The price of an item, as the client has seen it.
    fn see_price(&mut self, of: OfAuction, price: i64) {
        if self.prices.len() >= KNOWN_MOST {
            self.prices.clear();
        }
        self.prices.insert(of, price);
    }

    /// What a bidder would pay for an item: the price that was seen last, or the one at first, and
    /// twice up to half of a step of 2.5 % more.
    fn offer(&self, of: OfAuction, first: &FirstAuctions, chance: &mut Chance) -> i64 {
        let at_first = || match of.item <= first.items_of(of.seller) {
            true => first.auction(of.seller, of.item).loaded.price,
            false => 10_000,
        };
        let price = self.prices.get(&of).copied().unwrap_or_else(at_first);
        let more =
            |price: i64, chance: &mut Chance| price + chance.below(price as u64 / 80 + 1) as i64;
        let bid = more(price, chance);
        more(bid, chance).min(PRICE_MOST)
    }
}

/// How many rows of its parts a user had at first. None of them goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FirstParts {
    selling: usize,
    bought: usize,
    /// None comes, either.
    watched: usize,
}

impl FirstParts {
    /// Whether so many rows can be shown of the parts that were asked for.
    fn are_shown(&self, asked: &UserAsked, shown: &[usize]) -> bool {
        let from = |least: usize| least.min(SHOWN)..=SHOWN;
        let watched = self.watched.min(SHOWN);
        let parts = [
            (asked.ratings, from(0)),
            (asked.comments, from(0)),
            (asked.selling, from(self.selling)),
            (asked.bought, from(self.bought)),
            (asked.watched, watched..=watched),
        ];
        let asked: Vec<_> = parts.into_iter().filter(|it| it.0).map(|it| it.1).collect();
        shown.len() == asked.len() && asked.iter().zip(shown).all(|(fits, it)| fits.contains(it))
    }
}

impl AuctionMark {
    fn parts_at_first(&self, user: u64) -> FirstParts {
        let bought = self.bought_first.get_or_init(|| {
            self.first.all().into_iter().map(|it| (it.user, it.bought.len())).collect()
        });
        FirstParts {
            selling: self.first.items_of(user) as usize,
            bought: bought.get(&user).copied().unwrap_or(0),
            watched: self.first.watched_by(user).len(),
        }
    }

    /// Sets out to change something, and settles it: with a number, or how the item is then.
    async fn change<P: PlannedProcedure>(
        &self,
        seat: &mut Seat,
        update: AuctionUpdate,
        arguments: &P::Arguments,
        answered: impl FnOnce(&P::Answer) -> (Option<u64>, Option<ItemState>),
    ) -> (Result<P::Answer, Error>, u32) {
        self.ledgers.of(seat.client).set_out(update);
        let (answer, attempts) = call_plan::<P>(&seat.db, &mut seat.several, arguments).await;
        let (number, state) = answer.as_ref().map(answered).unwrap_or_default();
        let how = ended(answer.as_ref().map_err(Clone::clone));
        self.ledgers.of(seat.client).settle(&how, number, state);
        (answer, attempts)
    }

    /// An item that was there at first, and had this status then, if one is found.
    fn draw_loaded(&self, status: Option<AuctionStatus>, chance: &mut Chance) -> OfAuction {
        let mut found = OfAuction { seller: 1, item: 1 };
        for _ in 0..DRAWS {
            let seller = self.first.draw_user(chance);
            let count = self.first.items_of(seller);
            if count == 0 {
                continue;
            }
            found = OfAuction { seller, item: chance.between(1, count.into()) as u32 };
            let is = FirstAuctions::status(found.seller, found.item);
            if status.is_none_or(|status| status == is) {
                break;
            }
        }
        found
    }

    /// An open item: one that the client knows, or one that was open at first.
    fn draw_open(&self, known: &KnownAuctions, chance: &mut Chance) -> OfAuction {
        let own = chance.percent(50.0).then(|| any(&known.open, chance)).flatten();
        own.unwrap_or_else(|| self.draw_loaded(Some(AuctionStatus::Open), chance))
    }

    /// Profile 1.
    pub(super) async fn look_at_item(
        &self,
        seat: &mut Seat,
        known: &mut KnownAuctions,
    ) -> (Ended, u32) {
        let of = self.draw_loaded(None, &mut seat.chance);
        let is_there = of.item <= self.first.items_of(of.seller);
        let reader = seat.db.read_only();
        let (answer, attempts) = call_plan::<ReadItem>(&reader, &mut seat.several, &of).await;
        let is_right = |(name, state, region): &(String, ItemState, Option<String>)| {
            let named = *name == format!("item {} of {}", of.item, of.seller);
            let priced = state.price > 0 && (state.bids > 0 || state.status != WAITING);
            is_there && named && priced && region.is_some()
        };
        self.ledgers.of(seat.client).wrong_answers.judge(ReadItem::NAME, &answer, is_right);
        if let Ok((_, state, _)) = &answer {
            known.see_price(of, state.price);
        }
        (ended(answer), attempts)
    }

    /// Profile 2: each part is asked for by itself.
    pub(super) async fn look_at_user(&self, seat: &mut Seat) -> (Ended, u32) {
        let user = self.first.draw_user(&mut seat.chance);
        let chance = &mut seat.chance;
        let asked = UserAsked {
            user,
            ratings: chance.percent(25.0),
            comments: chance.percent(10.0),
            selling: chance.percent(10.0),
            bought: chance.percent(10.0),
            watched: chance.percent(10.0),
        };
        let reader = seat.db.read_only();
        let (answer, attempts) =
            call_plan::<ReadAuctionUser>(&reader, &mut seat.several, &asked).await;
        let first = self.parts_at_first(user);
        let is_right = |(row, parts): &UserParts| {
            let named = row.as_ref().is_some_and(|row| row.name == format!("user {user}"));
            named && first.are_shown(&asked, parts)
        };
        let mut ledger = self.ledgers.of(seat.client);
        ledger.wrong_answers.judge(ReadAuctionUser::NAME, &answer, is_right);
        (ended(answer), attempts)
    }

    /// Profile 3: one of twenty is for an item that ended, and is refused.
    pub(super) async fn bid(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let is_late = seat.chance.percent(5.0);
        let of = match is_late {
            true => self.draw_loaded(Some(AuctionStatus::Closed), &mut seat.chance),
            false => self.draw_open(known, &mut seat.chance),
        };
        let ends = FirstAuctions::status(of.seller, of.item) == AuctionStatus::Closed;
        let is_late = is_late && ends && of.item <= self.first.items_of(of.seller);
        let buyer = self.first.draw_buyer(of.seller, &mut seat.chance);
        let most = known.offer(of, &self.first, &mut seat.chance);
        let offered = OfferedBid { seller: of.seller, item: of.item, buyer, most };
        let update = AuctionUpdate::Item(of.seller, of.item);
        let (answer, attempts) =
            self.change::<PlaceBid>(seat, update, &offered, |state| (None, *state)).await;
        let is_right = |state: &Option<ItemState>| {
            let is_open = |it: ItemState| it.status == AuctionStatus::Open && it.bids > 0;
            !is_late && state.is_some_and(is_open)
        };
        self.ledgers.of(seat.client).wrong_answers.judge(PlaceBid::NAME, &answer, is_right);
        match &answer {
            Ok(state) => {
                remember(&mut known.open, of);
                state.iter().for_each(|state| known.see_price(of, state.price));
            }
            Err(Error::Refused(why)) if why == TOO_LOW => known.see_price(of, most + most / 40),
            Err(_) => {}
        }
        (ended(answer), attempts)
    }

    /// Profile 4.
    pub(super) async fn comment(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let own = any(&known.bought, &mut seat.chance).map(|it| it.0);
        let of =
            own.unwrap_or_else(|| self.draw_loaded(Some(AuctionStatus::Closed), &mut seat.chance));
        let buyer = self.first.draw_buyer(of.seller, &mut seat.chance);
        let question = format!("{:032x}", fnv_hash(seat.chance.below(1 << 40)));
        let asked = NewQuestion { seller: of.seller, item: of.item, buyer, question };
        let update = AuctionUpdate::Item(of.seller, of.item);
        let (answer, attempts) =
            self.change::<CommentItem>(seat, update, &asked, |state| (None, *state)).await;
        if let Ok(Some(state)) = &answer {
            remember(&mut known.comments, (of, state.comments));
        }
        (ended(answer), attempts)
    }

    /// Profile 5; without a comment to answer, an item is looked at.
    pub(super) async fn answer(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let Some((of, comment)) = take(&mut known.comments, &mut seat.chance) else {
            return self.look_at_item(seat, known).await;
        };
        let OfAuction { seller, item } = of;
        let response = format!("{:032x}", fnv_hash(seat.chance.below(1 << 40)));
        let given = CommentAnswer { seller, item, comment, response };
        let update = AuctionUpdate::Answer(seller, item, comment);
        let (answer, attempts) =
            self.change::<AnswerComment>(seat, update, &given, |()| (None, None)).await;
        (ended(answer), attempts)
    }

    /// Profile 6: of the seller by the buyer, or the reverse, half each.
    pub(super) async fn rate(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let own = any(&known.bought, &mut seat.chance);
        let (of, buyer) = own.unwrap_or_else(|| {
            let of = self.draw_loaded(Some(AuctionStatus::Closed), &mut seat.chance);
            let bought = self.first.auction(of.seller, of.item).purchases;
            (of, bought.first().map_or(of.seller, |purchase| purchase.buyer))
        });
        let OfAuction { seller, item } = of;
        let (receiver, giver) =
            if seat.chance.percent(50.0) { (seller, buyer) } else { (buyer, seller) };
        let rating = seat.chance.between(0, 2) as i64 - 1;
        let new = NewUserRating { receiver, seller, item, giver, rating };
        let update = AuctionUpdate::Rating((receiver, seller, item, giver));
        let (answer, attempts) =
            self.change::<RateUser>(seat, update, &new, |()| (None, None)).await;
        let mut ledger = self.ledgers.of(seat.client);
        ledger.wrong_answers.judge(RateUser::NAME, &answer, |()| receiver != giver);
        (ended(answer), attempts)
    }

    /// Profile 7.
    pub(super) async fn list(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let seller = self.first.draw_user(&mut seat.chance);
        let chance = &mut seat.chance;
        let attribute = |_| (chance.below(GROUPS.into()) as u16, chance.below(VALUES.into()) as u8);
        let attributes: Vec<_> = (0..3).map(attribute).collect();
        let count = chance.between(1, 3);
        let pictures: Vec<_> = (0..count).map(|number| format!("picture {number}")).collect();
        let initial_price = chance.between(100, 10_000) as i64;
        let row = AuctionItem {
            name: format!("new item of {seller}"),
            category: chance.below(CATEGORIES.into()) as u32,
            description: format!("{:064x}", fnv_hash(chance.below(1 << 40))),
            initial_price,
            price: initial_price,
            bids: 0,
            pictures: pictures.len() as u8,
            attributes: attributes.len() as u8,
            comments: 0,
            status: AuctionStatus::Open,
            changes: 0,
        };
        let new = NewListing { seller, row, attributes, pictures };
        let update = AuctionUpdate::Listing(seller);
        let (answer, attempts) =
            self.change::<ListItem>(seat, update, &new, |number| (Some(*number), None)).await;
        if let Ok(number) = &answer {
            let of = OfAuction { seller, item: *number as u32 };
            remember(&mut known.open, of);
            known.see_price(of, initial_price);
        }
        (ended(answer), attempts)
    }

    /// Profile 8: reads who has won, and buys; again, where the item has changed by then.
    pub(super) async fn purchase(
        &self,
        seat: &mut Seat,
        known: &mut KnownAuctions,
    ) -> (Ended, u32) {
        let own = take(&mut known.waiting, &mut seat.chance);
        let of = own.unwrap_or_else(|| self.draw_loaded(Some(WAITING), &mut seat.chance));
        let is_refused = seat.chance.percent(self.refused);
        let mut all_attempts = CallAttempts::default();
        for _ in 0..ROUNDS {
            let reader = seat.db.read_only();
            let (found, attempts) = call_plan::<ReadWinner>(&reader, &mut seat.several, &of).await;
            all_attempts.add(attempts);
            let (state, bid, buyer) = match found {
                Ok(Some((state, Some((bid, buyer))))) => (state, bid, buyer),
                Ok(_) => return (Ended::RolledBack, all_attempts.all()),
                Err(error) => return (ended::<()>(Err(error)), all_attempts.all()),
            };
            let (changes, price) = (state.changes, state.price);
            let credit = if is_refused { -(1 << 60) } else { price };
            let OfAuction { seller, item } = of;
            let won = WonItem { seller, item, changes, bid, buyer, price, credit };
            let after = ItemState { changes: changes + 1, status: AuctionStatus::Closed, ..state };
            let update = AuctionUpdate::Purchase(seller, item);
            let (answer, attempts) =
                self.change::<BuyItem>(seat, update, &won, |()| (None, Some(after))).await;
            all_attempts.add(attempts);
            let is_right = |(): &()| !is_refused && state.status == WAITING;
            self.ledgers.of(seat.client).wrong_answers.judge(BuyItem::NAME, &answer, is_right);
            if answer.is_ok() {
                remember(&mut known.bought, (of, buyer));
            }
            let has_changed = matches!(&answer, Err(Error::Refused(why)) if why == CHANGED);
            if !has_changed || state.status != WAITING {
                return (ended(answer), all_attempts.all());
            }
            all_attempts.begin_anew();
        }
        (Ended::RolledBack, all_attempts.all())
    }

    /// Profile 9.
    pub(super) async fn update(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let OfAuction { seller, item } = self.draw_open(known, &mut seat.chance);
        let text = format!("{:064x}", fnv_hash(seat.chance.below(1 << 40)));
        let drops_attribute = seat.chance.percent(25.0);
        let new = NewDescription { seller, item, text, drops_attribute };
        let update = AuctionUpdate::Item(seller, item);
        let (answer, attempts) =
            self.change::<UpdateItem>(seat, update, &new, |state| (None, *state)).await;
        (ended(answer), attempts)
    }

    /// Ends an auction.
    pub(super) async fn end(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let own = take(&mut known.open, &mut seat.chance);
        let of =
            own.unwrap_or_else(|| self.draw_loaded(Some(AuctionStatus::Open), &mut seat.chance));
        let update = AuctionUpdate::Item(of.seller, of.item);
        let (answer, attempts) =
            self.change::<CloseAuction>(seat, update, &of, |state| (None, *state)).await;
        let is_right = |state: &Option<ItemState>| {
            state.is_some_and(|it| (it.status == WAITING) == (it.bids > 0))
        };
        self.ledgers.of(seat.client).wrong_answers.judge(CloseAuction::NAME, &answer, is_right);
        if let Ok(Some(state)) = &answer
            && state.status == WAITING
        {
            remember(&mut known.waiting, of);
        }
        (ended(answer), attempts)
    }
}

const WAITING: AuctionStatus = AuctionStatus::WaitingForPurchase;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: FirstAuctions = FirstAuctions { users: 50, items: 8, communities: 2, mixing: 5.0 };

    #[test]
    fn bids_go_by_the_price_that_was_seen() {
        let (mut known, mut chance) = (KnownAuctions::default(), Chance::new(1, 0, 0));
        let seller = (1..=50).find(|user| FIRST.items_of(*user) > 0).unwrap();
        let of = OfAuction { seller, item: 1 };
        let at_first = FIRST.auction(seller, 1).loaded.price;
        for price in [at_first, 80, 1_000_000, PRICE_MOST - 1] {
            if price != at_first {
                known.see_price(of, price);
            }
            let most = PRICE_MOST.min(price + price / 40 + price / 6_400 + 2);
            let offers: Vec<_> = (0..200).map(|_| known.offer(of, &FIRST, &mut chance)).collect();
            assert!(offers.iter().all(|it| (price..=most).contains(it)), "{price}: {offers:?}");
            assert!(offers.iter().any(|it| *it > price), "{price}: {offers:?}");
        }
    }

    #[test]
    fn parts_of_a_user_are_not_fewer_than_at_first() {
        let asked = UserAsked {
            user: 1,
            ratings: true,
            comments: false,
            selling: true,
            bought: true,
            watched: true,
        };
        let first = FirstParts { selling: 30, bought: 2, watched: 3 };
        assert!(first.are_shown(&asked, &[0, 25, 2, 3]) && first.are_shown(&asked, &[9, 25, 4, 3]));
        for wrong in
            [&[0, 24, 2, 3][..], &[0, 25, 1, 3], &[0, 25, 2, 2], &[0, 25, 2, 4], &[26, 25, 2, 3]]
        {
            assert!(!first.are_shown(&asked, wrong), "{wrong:?}");
        }
        assert!(!first.are_shown(&asked, &[0, 25, 2]) && !first.are_shown(&asked, &[]));
    }
}
