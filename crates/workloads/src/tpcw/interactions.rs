//! What a client does: the interactions, and what it makes of their answers.

use muesli::plans::PlannedProcedure;
use muesli::{Db, Error};

use super::first::{FirstData, SUBJECTS, syllables};
use super::ledger::{TpcwUpdate, UpdateAnswer, digest};
use super::plans::admin::{ConfirmAdmin, CountBestSellers, CountedBest, NewDetails, ReadStock};
use super::plans::browsing::{
    BestSellersPage, HomeAsked, HomePage, NewProducts, OfItem, ProductDetail, SHOWN, SearchAsked,
    SearchPage, SearchResults, ShownItem, SubjectAsked,
};
use super::plans::buying::{CHANGED, ConfirmOrder, ConfirmedCart, EnteredSums};
use super::plans::carts::{CartChange, CartContents, CartLine, ChangeCart, OfCustomer, ReadCart};
use super::plans::customers::{
    DisplayOrder, DisplayedOrder, KNOWN, LogIn, NewShopper, OrderAskedFor, ReadCustomer,
    RegisterCustomer, ReturningShopper,
};
use super::tables::{BY_AUTHOR, BY_SUBJECT, BY_TITLE};
use super::{FilledCart, Tpcw};
use crate::tally::Ended;
use crate::workload::{CallAttempts, Seat, call_plan, ended};

/// So often a cart is bought that changes meanwhile.
const ROUNDS: u32 = 20;
/// So many filled carts a client keeps; the oldest is forgotten.
const FILLED_MOST: usize = 100;

impl Tpcw {
    /// Asks a question, and judges the answer.
    async fn ask<P: PlannedProcedure<Answer: std::fmt::Debug>>(
        &self,
        seat: &mut Seat,
        arguments: &P::Arguments,
        is_right: impl FnOnce(&P::Answer) -> bool,
    ) -> (Ended, u32) {
        let (answer, attempts) = look_up::<P>(seat, arguments).await;
        self.ledgers.of(seat.client).wrong_answers.judge(P::NAME, &answer, is_right);
        (ended(answer), attempts)
    }

    /// Sets out to change something, and settles it.
    async fn change<P: PlannedProcedure>(
        &self,
        seat: &mut Seat,
        update: TpcwUpdate,
        arguments: &P::Arguments,
        answered: impl FnOnce(&P::Answer) -> UpdateAnswer,
    ) -> (Result<P::Answer, Error>, u32) {
        self.ledgers.of(seat.client).set_out(update);
        let (answer, attempts) = call_plan::<P>(&seat.db, &mut seat.several, arguments).await;
        let what = answer.as_ref().map(answered).unwrap_or_default();
        let how = ended(answer.as_ref().map_err(Clone::clone));
        self.ledgers.of(seat.client).settle(&how, what);
        (answer, attempts)
    }

    /// Interactions 1 to 6, and 13.
    pub(super) async fn browse(&self, seat: &mut Seat, number: usize) -> (Ended, u32) {
        let promoted = self.draw_item(&mut seat.chance);
        let subject = seat.chance.below(SUBJECTS.into()) as u8;
        match number {
            1 => {
                let customer = self.draw_customer(&mut seat.chance);
                let is_known = seat.chance.percent(80.0);
                let known: Vec<u64> = is_known.then_some(customer).into_iter().collect();
                let names: Vec<String> = known.iter().map(|it| syllables(*it, 1)).collect();
                let asked = HomeAsked { known, promoted };
                self.ask::<HomePage>(seat, &asked, |page| *page == (names, 5)).await
            }
            2 => {
                let asked = SubjectAsked { subject, promoted };
                let found = self.found();
                let is_right = |shown: &Vec<ShownItem>| {
                    let of_subject = shown.iter().all(|it| it.subject == subject);
                    of_subject && found.are_newest(subject, shown)
                };
                self.ask::<NewProducts>(seat, &asked, is_right).await
            }
            3 => self.best_sellers(seat, SubjectAsked { subject, promoted }).await,
            5 => {
                let of = OfItem { item: promoted };
                self.ask::<SearchPage>(seat, &of, |found| *found == 5).await
            }
            6 => self.search(seat, promoted).await,
            _ => {
                let (loaded, of) = (self.first.item(promoted), OfItem { item: promoted });
                let author = self.first.author(loaded.facts.author);
                self.ask::<ProductDetail>(seat, &of, |found| {
                    found.as_ref().is_some_and(|it| (&it.0, &it.1) == (&loaded.facts, &author))
                })
                .await
            }
        }
    }

    async fn search(&self, seat: &mut Seat, promoted: u32) -> (Ended, u32) {
        let chance = &mut seat.chance;
        let (kind, text) = match chance.below(3) as u8 {
            BY_AUTHOR => (BY_AUTHOR, syllables(chance.below(self.first.searched_authors()), 7)),
            BY_TITLE => (BY_TITLE, syllables(chance.below(self.first.searched_titles()), 7)),
            _ => (BY_SUBJECT, chance.below(SUBJECTS.into()).to_string()),
        };
        let (asked, found) = (SearchAsked { kind, text: text.clone(), promoted }, self.found());
        self.ask::<SearchResults>(seat, &asked, |shown| {
            let is_of_it = |it: &ShownItem| match kind {
                BY_AUTHOR => it.author == text,
                BY_TITLE => it.title == text,
                _ => it.subject.to_string() == text,
            };
            shown.iter().all(is_of_it) && found.are_found((kind, &text), shown)
        })
        .await
    }

    /// Looks at the best sellers of a subject; now and then they are counted before that, from what
    /// each of its items has sold.
    async fn best_sellers(&self, seat: &mut Seat, asked: SubjectAsked) -> (Ended, u32) {
        let found = self.found();
        if !seat.chance.percent(self.recounts) {
            let is_right = |best: &Vec<(u32, u64)>| found.are_best(asked.subject, best);
            return self.ask::<BestSellersPage>(seat, &asked, is_right).await;
        }
        let (mut items, mut all_attempts) = (Vec::new(), CallAttempts::default());
        for item in found.of_subject(asked.subject).iter().copied() {
            let (stock, attempts) = look_up::<ReadStock>(seat, &OfItem { item }).await;
            all_attempts.add(attempts);
            match stock {
                Ok(stock) => items.push((item, stock.map_or(0, |stock| stock.sold))),
                Err(error) => return (ended::<()>(Err(error)), all_attempts.all()),
            }
        }
        items.retain(|(_, sold)| *sold > 0);
        items.sort_by_key(|(item, sold)| (std::cmp::Reverse(*sold), *item));
        items.truncate(SHOWN);
        let update = TpcwUpdate::Best(asked.subject, items.clone());
        let counted = CountedBest { subject: asked.subject, items };
        let none = |(): &()| UpdateAnswer::default();
        let (done, attempts) = self.change::<CountBestSellers>(seat, update, &counted, none).await;
        all_attempts.add(attempts);
        (ended(done), all_attempts.all())
    }

    /// Interaction 7.
    pub(super) async fn change_cart(
        &self,
        seat: &mut Seat,
        filled: &mut Vec<FilledCart>,
    ) -> (Ended, u32) {
        let again = !filled.is_empty() && seat.chance.percent(30.0);
        let mut cart = match again {
            true => filled.swap_remove(seat.chance.below(filled.len() as u64) as usize),
            false => self.new_cart(seat),
        };
        let mut change = CartChange {
            customer: cart.customer,
            added: Vec::new(),
            refreshed: Vec::new(),
            promoted: self.draw_item(&mut seat.chance),
        };
        if cart.lines.is_empty() || seat.chance.percent(50.0) {
            change.added.push(self.draw_wanted(cart.customer, &mut seat.chance));
        } else {
            let several = cart.lines.len() > 1;
            let line = cart.lines[seat.chance.below(cart.lines.len() as u64) as usize];
            let quantity = match several {
                true => seat.chance.below(10) as u32,
                false => seat.chance.between(1, 10) as u32,
            };
            change.refreshed.push(CartLine { quantity, ..line });
        }
        let update = TpcwUpdate::Cart(cart.customer);
        let answered = |(contents, _): &(CartContents, i64)| UpdateAnswer {
            number: Some(contents.changes),
            contents: Some(digest(&contents.lines)),
            order: None,
        };
        let (answer, attempts) = self.change::<ChangeCart>(seat, update, &change, answered).await;
        let is_right = |(contents, price): &(CartContents, i64)| {
            let lines = &contents.lines;
            let holds = |item: &u32| lines.iter().any(|line| line.item == *item);
            let are_whole = lines.iter().all(|line| line.quantity > 0);
            !lines.is_empty() && are_whole && *price > 0 && change.added.iter().all(holds)
        };
        self.ledgers.of(seat.client).wrong_answers.judge(ChangeCart::NAME, &answer, is_right);
        if let Ok((contents, _)) = &answer {
            cart.lines.clone_from(&contents.lines);
            filled.push(cart);
            if filled.len() > FILLED_MOST {
                filled.remove(0);
            }
        }
        (ended(answer), attempts)
    }

    /// A cart that has nothing yet, as far as the client knows: of a customer who is known, in
    /// eight of ten cases.
    fn new_cart(&self, seat: &mut Seat) -> FilledCart {
        let is_registered = seat.chance.percent(80.0);
        let customer = match is_registered {
            true => self.draw_customer(&mut seat.chance),
            false => {
                let mut ledger = self.ledgers.of(seat.client);
                ledger.numbers += 1;
                self.first.customers + (ledger.numbers << 20 | u64::from(seat.client + 1))
            }
        };
        FilledCart { customer, is_registered, lines: Vec::new() }
    }

    /// Interactions 8 and 11, whose pages are forms.
    pub(super) async fn ask_for_name(&self, seat: &mut Seat) -> (Ended, u32) {
        let customer = self.draw_customer(&mut seat.chance);
        let is_right = |name: &Option<String>| *name == Some(syllables(customer, 1));
        self.ask::<ReadCustomer>(seat, &OfCustomer { customer }, is_right).await
    }

    /// Interaction 9: of a customer with a cart, who is registered if it is new.
    pub(super) async fn request(&self, seat: &mut Seat, filled: &mut [FilledCart]) -> (Ended, u32) {
        let place = seat.chance.below(filled.len() as u64) as usize;
        let Some(cart) = filled.get_mut(place) else {
            let customer = self.draw_customer(&mut seat.chance);
            return self.log_in(seat, customer).await;
        };
        if cart.is_registered {
            let customer = cart.customer;
            return self.log_in(seat, customer).await;
        }
        let address = FirstData::address(seat.chance.below(1 << 30));
        let (customer, discount) = (cart.customer, seat.chance.below(51) as u8);
        let shopper = FirstData::shopper(customer, discount, &address);
        let new = NewShopper { customer, shopper, address };
        let update = TpcwUpdate::Customer(customer);
        let none = |_: &i64| UpdateAnswer::default();
        let (answer, attempts) = self.change::<RegisterCustomer>(seat, update, &new, none).await;
        cart.is_registered |= is_registered_by(&answer);
        let mut ledger = self.ledgers.of(seat.client);
        if answer.is_err() && cart.is_registered && !ledger.registered.perhaps.contains(&customer) {
            // Its number is this client's own, and all that it set out to do was answered.
            ledger.wrong_answers.add(|| format!("customer {customer} is known, and was new"));
        }
        (ended(answer), attempts)
    }

    async fn log_in(&self, seat: &mut Seat, customer: u64) -> (Ended, u32) {
        let is_refused = seat.chance.percent(self.refused);
        let password = syllables(customer, 1).to_lowercase() + if is_refused { "?" } else { "" };
        let now = (seat.clock)().0;
        let asked = ReturningShopper { customer, password, now };
        let answered = |(number, _): &(u64, i64)| UpdateAnswer {
            number: Some(*number),
            ..UpdateAnswer::default()
        };
        let update = TpcwUpdate::LogIn(customer);
        let (answer, attempts) = self.change::<LogIn>(seat, update, &asked, answered).await;
        let mut ledger = self.ledgers.of(seat.client);
        ledger.wrong_answers.judge(LogIn::NAME, &answer, |_| !is_refused);
        (ended(answer), attempts)
    }

    /// Interaction 10: buys a cart that the client has filled. Without one it fills one, or makes
    /// its customer known.
    pub(super) async fn confirm(
        &self,
        seat: &mut Seat,
        filled: &mut Vec<FilledCart>,
    ) -> (Ended, u32) {
        let Some(place) = filled.iter().position(|cart| cart.is_registered) else {
            return match filled.is_empty() {
                true => self.change_cart(seat, filled).await,
                false => self.request(seat, filled).await,
            };
        };
        let customer = filled.remove(place).customer;
        let mut all_attempts = CallAttempts::default();
        for _ in 0..ROUNDS {
            let (cart, attempts) = look_up::<ReadCart>(seat, &OfCustomer { customer }).await;
            all_attempts.add(attempts);
            let cart = match cart {
                Ok(cart) => cart,
                Err(error) => return (ended::<()>(Err(error)), all_attempts.all()),
            };
            let (answer, attempts) = self.buy(seat, customer, cart).await;
            all_attempts.add(attempts);
            if !matches!(&answer, Err(Error::Refused(why)) if why == CHANGED) {
                return (ended(answer), all_attempts.all());
            }
            all_attempts.begin_anew();
        }
        (Ended::RolledBack, all_attempts.all())
    }

    /// Buys a cart as it was read. One that somebody else has bought by then is refused.
    async fn buy(
        &self,
        seat: &mut Seat,
        customer: u64,
        cart: CartContents,
    ) -> (Result<EnteredSums, Error>, u32) {
        let elsewhere = seat.chance.percent(5.0);
        let address = FirstData::address(seat.chance.below(1 << 30));
        let sent_to = elsewhere.then(|| (FirstData::address_number(&address), address.clone()));
        let (changes, pieces) =
            (cart.changes + 1, cart.lines.iter().map(|it| i64::from(it.quantity)).sum::<i64>());
        let confirmed = ConfirmedCart {
            customer,
            cart,
            sent_to: sent_to.into_iter().collect(),
            ship_type: seat.chance.below(6) as u8,
            date: (seat.clock)().0,
            card: (seat.chance.below(5) as u8, seat.chance.below(1 << 50)),
            country: address.country,
        };
        let answered = |(number, sums): &EnteredSums| UpdateAnswer {
            number: Some(changes),
            contents: None,
            order: Some((*number, sums.total)),
        };
        let update = TpcwUpdate::Order(customer);
        let (answer, attempts) =
            self.change::<ConfirmOrder>(seat, update, &confirmed, answered).await;
        let is_right = |(_, sums): &EnteredSums| {
            sums.total == sums.goods + sums.tax + 300 + 100 * pieces && pieces > 0
        };
        self.ledgers.of(seat.client).wrong_answers.judge(ConfirmOrder::NAME, &answer, is_right);
        (answer, attempts)
    }

    /// Interaction 12.
    pub(super) async fn display(&self, seat: &mut Seat) -> (Ended, u32) {
        let customer = self.draw_customer(&mut seat.chance);
        let is_refused = seat.chance.percent(self.refused);
        let password = syllables(customer, 1).to_lowercase() + if is_refused { "?" } else { "" };
        let asked = OrderAskedFor { customer, password };
        let had_order = !self.first.customer(customer).order.is_empty();
        self.ask::<DisplayOrder>(seat, &asked, |found| {
            !is_refused && is_displayed(found, had_order)
        })
        .await
    }

    /// Interaction 14: reads with what an item was bought, and changes its details everywhere.
    pub(super) async fn administer(&self, seat: &mut Seat) -> (Ended, u32) {
        let item = self.draw_item(&mut seat.chance);
        let (stock, attempts) = look_up::<ReadStock>(seat, &OfItem { item }).await;
        let mut all_attempts = CallAttempts::default();
        all_attempts.add(attempts);
        let bought_with = match stock {
            Ok(stock) => stock.map_or(Vec::new(), |stock| stock.bought_with),
            Err(error) => return (ended::<()>(Err(error)), all_attempts.all()),
        };
        let new = NewDetails {
            item,
            cost: seat.chance.between(100, 999_999) as i64,
            picture: seat.chance.below(1 << 30) as u32,
            published: 25_000 + seat.chance.below(1 << 16) as u32,
            related: self.most_bought(item, bought_with),
        };
        let update = TpcwUpdate::Details(new.clone());
        let none = |(): &()| UpdateAnswer::default();
        let (done, attempts) = self.change::<ConfirmAdmin>(seat, update, &new, none).await;
        all_attempts.add(attempts);
        (ended(done), all_attempts.all())
    }

    /// The five items that are in a list most often, filled up with those that follow.
    fn most_bought(&self, item: u32, list: Vec<u32>) -> [u32; 5] {
        let mut counts = std::collections::BTreeMap::<u32, u32>::new();
        list.iter().for_each(|it| *counts.entry(*it).or_default() += 1);
        let mut all: Vec<_> = counts.into_iter().collect();
        all.sort_by_key(|(item, count)| (std::cmp::Reverse(*count), *item));
        let bought = all.into_iter().map(|it| it.0);
        let mut related: Vec<u32> = bought.take(5).collect();
        related.extend(self.first.five_from(item));
        std::array::from_fn(|place| related[place])
    }
}

/// Whether a customer whom a client has numbered is known after this answer: one who is refused as
/// known was registered by an attempt that was not answered.
fn is_registered_by(answer: &Result<i64, Error>) -> bool {
    match answer {
        Ok(_) => true,
        Err(Error::Refused(why)) => why == KNOWN,
        Err(_) => false,
    }
}

/// Whether an order can be a customer's newest one, of a customer who had one at first, or had not.
fn is_displayed(found: &Option<DisplayedOrder>, had_order: bool) -> bool {
    let Some(order) = found else { return !had_order };
    let (lines, there) = order.lines;
    let is_paid = order.charged == Some(order.total);
    order.number > 0 && lines > 0 && there == lines && is_paid && order.addresses == 2
}

/// Runs a plan that only reads.
async fn look_up<P: PlannedProcedure>(
    seat: &mut Seat,
    arguments: &P::Arguments,
) -> (Result<P::Answer, Error>, u32) {
    let reader: Db = seat.db.read_only();
    call_plan::<P>(&reader, &mut seat.several, arguments).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_an_order_is_shown_one() {
        let order =
            DisplayedOrder { number: 1, total: 9, charged: Some(9), lines: (2, 2), addresses: 2 };
        assert!(is_displayed(&Some(order.clone()), true) && is_displayed(&None, false));
        assert!(!is_displayed(&None, true));
        for wrong in [
            DisplayedOrder { charged: None, ..order.clone() },
            DisplayedOrder { lines: (0, 0), ..order.clone() },
            DisplayedOrder { lines: (2, 1), ..order.clone() },
            DisplayedOrder { addresses: 1, ..order },
        ] {
            assert!(!is_displayed(&Some(wrong), false));
        }
    }

    #[test]
    fn a_customer_who_is_refused_as_known_is_registered() {
        assert!(is_registered_by(&Ok(1)));
        assert!(is_registered_by(&Err(Error::Refused(KNOWN.into()))));
        assert!(!is_registered_by(&Err(Error::Refused("other".into()))));
        assert!(!is_registered_by(&Err(Error::AnswerLost)));
    }
}
