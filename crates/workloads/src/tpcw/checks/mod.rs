//! What must hold after a run: orders are whole and paid, what is left of items follows from them,
//! carts and customers are what was committed last, and what is everywhere is the same everywhere.

use std::collections::{BTreeMap, BTreeSet};

use muesli::{Db, Error};

use super::Tpcw;
use super::first::{COUNTRIES, FirstData, SUBJECTS};
use super::ledger::{TpcwLedger, digest};
use super::plans::carts::CartLine;
use super::plans::loads::LoadedCustomer;
use super::rows::{ReferenceCopy, ShopRows};
use super::tables::{ItemStock, OrderSums, RESTOCK};
use crate::check::{Check, Complaints};

/// The rows of a shop beside what there was at first, and what clients know.
#[derive(Debug)]
struct ShopAudit<'a> {
    first: FirstData,
    rows: &'a ShopRows,
    known: &'a TpcwLedger,
    loaded: BTreeMap<u64, LoadedCustomer>,
}

impl<'a> ShopAudit<'a> {
    fn new(first: FirstData, rows: &'a ShopRows, known: &'a TpcwLedger) -> ShopAudit<'a> {
        let loaded = (1..=first.customers).map(|number| (number, first.customer(number)));
        ShopAudit { first, rows, known, loaded: loaded.collect() }
    }

    /// How many orders of a customer were loaded.
    fn orders_first(&self, customer: u64) -> u64 {
        self.loaded.get(&customer).map_or(0, |it| it.order.len() as u64)
    }

    fn lines_of(&self, customer: u64, order: u32) -> Vec<&super::tables::ItemOrderLine> {
        let range = (customer, order, 0)..=(customer, order, u16::MAX);
        self.rows.lines.range(range).map(|it| it.1).collect()
    }

    /// Each order has lines, one charge, and addresses, and comes to what it must; no line or
    /// charge is of none.
    fn orders(&self) -> Complaints {
        let (mut wrong, rows) = (Complaints::default(), self.rows);
        let of_lines: BTreeSet<_> = rows.lines.keys().map(|it| (it.0, it.1)).collect();
        let of_charges: BTreeSet<_> = rows.charges.keys().copied().collect();
        let orders: BTreeSet<_> = rows.orders.keys().copied().collect();
        for order in orders.symmetric_difference(&of_lines) {
            wrong.add(|| format!("order {order:?} without lines, or lines without it"));
        }
        for order in orders.symmetric_difference(&of_charges) {
            wrong.add(|| format!("order {order:?} without a charge, or a charge without it"));
        }
        for ((customer, number), order) in &rows.orders {
            let lines = self.lines_of(*customer, *number);
            let charge = rows.charges.get(&(*customer, *number));
            let is_paid = charge.is_some_and(|it| it.amount == order.sums.total);
            let to = [order.billed_to, order.shipped_to];
            let is_sent = to.iter().all(|it| rows.addresses.contains_key(&(*customer, *it)));
            let is_of_items = lines.iter().all(|it| (1..=self.first.items).contains(&it.item));
            let is_summed = if u64::from(*number) <= self.orders_first(*customer) {
                let OrderSums { goods, tax, total } = order.sums;
                total == goods + tax + 300 + 100 * lines.len() as i64
            } else {
                let cost = lines.iter().map(|it| it.cost * i64::from(it.quantity)).sum();
                let pieces = lines.iter().map(|it| i64::from(it.quantity)).sum();
                order.sums == OrderSums::of(cost, pieces, order.discount)
            };
            if !(is_paid && is_sent && is_of_items && is_summed) {
                wrong.add(|| format!("order {number} of {customer}: {order:?}, {lines:?}"));
            }
        }
        wrong
    }

    /// Orders are numbered without gaps, and are those that committed, with their totals.
    fn committed_orders(&self) -> Complaints {
        let (mut wrong, none) = (Complaints::default(), Default::default());
        let mut all: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for (customer, number) in self.rows.orders.keys() {
            all.entry(*customer).or_default().insert(*number);
        }
        let noted = self.known.orders.keys().copied();
        let customers = self.rows.customers.keys().map(|it| it.0);
        let customers: BTreeSet<u64> = noted.chain(customers).chain(all.keys().copied()).collect();
        for customer in customers {
            let numbers = all.remove(&customer).unwrap_or_default();
            let count = numbers.len() as u32;
            let counted = self.rows.customers.get(&(customer,)).map_or(0, |row| row.orders);
            if !numbers.iter().copied().eq(1..=count) || count != counted {
                wrong.add(|| format!("orders of {customer}: {numbers:?}, counted {counted}"));
                continue;
            }
            let first = self.orders_first(customer);
            let known = self.known.orders.get(&customer).unwrap_or(&none);
            let in_order = known.after(first).in_order(u64::from(count).saturating_sub(first));
            match in_order {
                Err(text) => wrong.add(|| format!("orders of {customer}: {text}")),
                Ok(orders) => {
                    for (number, total) in (first as u32 + 1..).zip(orders) {
                        let found = self.rows.orders[&(customer, number)].sums.total;
                        if total.flatten().is_some_and(|total| total != found) {
                            wrong.add(|| format!("order {number} of {customer} is {found}"));
                        }
                    }
                }
            }
        }
        wrong
    }

    /// What is left of each item follows from the lines of new orders.
    fn stocks(&self) -> Complaints {
        let (mut wrong, mut sold) = (Complaints::default(), BTreeMap::<u32, (u64, u64)>::new());
        for ((customer, number, _), line) in &self.rows.lines {
            if u64::from(*number) > self.orders_first(*customer) {
                let of = sold.entry(line.item).or_default();
                *of = (of.0 + u64::from(line.quantity), of.1 + 1);
            }
        }
        for item in 1..=self.first.items {
            let (quantity, lines) = sold.get(&item).copied().unwrap_or_default();
            let Some(stock) = self.rows.stocks.get(&(item,)) else {
                wrong.add(|| format!("item {item} has no stock"));
                continue;
            };
            let ItemStock { left, restocked, .. } = *stock;
            let added = RESTOCK * restocked as i64;
            let expected = FirstData::stock(item).left - quantity as i64 + added;
            let is_right = left == expected && restocked <= lines;
            if !is_right || (stock.sold, stock.lines) != (quantity, lines) {
                wrong.add(|| format!("item {item}: {stock:?}, sold {quantity} in {lines} lines"));
            }
        }
        wrong
    }

    /// Customers are those that were loaded and registered, and came back as often as committed.
    fn customers(&self) -> Complaints {
        let (mut wrong, none) = (Complaints::default(), Default::default());
        let mut expected = self.known.registered.clone();
        expected.sure.extend(1..=self.first.customers);
        expected.judge(&self.rows.customers.keys().map(|it| it.0).collect(), &mut wrong);
        for ((customer,), row) in &self.rows.customers {
            let named = FirstData::shopper(*customer, 0, &FirstData::address(0));
            let is_named = row.name == named.name && row.password == named.password;
            let address = self.rows.addresses.get(&(*customer, row.address));
            if !is_named || address.is_none() || row.discount > 50 {
                wrong.add(|| format!("customer {customer}: {row:?}"));
            }
            let logins = self.known.logins.get(customer).unwrap_or(&none);
            if let Err(text) = logins.in_order(row.logins) {
                wrong.add(|| format!("customer {customer} came back: {text}"));
            }
        }
        for ((customer, number), address) in &self.rows.addresses {
            let is_numbered = *number == FirstData::address_number(address);
            if !is_numbered || !(1..=COUNTRIES).contains(&address.country) {
                wrong.add(|| format!("address {number} of {customer}: {address:?}"));
            }
        }
        wrong
    }

    /// Each cart has what the last change left in it.
    fn carts(&self) -> Complaints {
        let (mut wrong, none) = (Complaints::default(), Default::default());
        let mut contents: BTreeMap<u64, Vec<CartLine>> = BTreeMap::new();
        for ((customer, item), quantity) in &self.rows.cart_lines {
            let line = CartLine { item: *item, quantity: *quantity };
            contents.entry(*customer).or_default().push(line);
            if *quantity == 0 || !self.rows.carts.contains_key(&(*customer,)) {
                wrong.add(|| format!("a line of {customer}'s cart: {line:?}"));
            }
        }
        let noted = self.known.carts.keys().copied();
        let carts: BTreeSet<u64> = self.rows.carts.keys().map(|it| it.0).chain(noted).collect();
        for customer in carts {
            let count = self.rows.carts.get(&(customer,)).copied().unwrap_or(0);
            let found = digest(contents.get(&customer).map_or(&[], Vec::as_slice));
            let known = self.known.carts.get(&customer).unwrap_or(&none);
            let is_left_by = |it: Option<u64>| it.is_none_or(|it| it == found);
            if let Err(text) = known.judge_last(count, found == digest(&[]), is_left_by) {
                wrong.add(|| format!("cart of {customer}: {text}"));
            }
        }
        wrong
    }

    /// What a repository has to have of that which is everywhere, but for what is changed.
    fn reference(&self) -> ReferenceCopy {
        let mut copy = ReferenceCopy {
            countries: (1..=COUNTRIES).map(|it| ((it,), FirstData::country(it))).collect(),
            authors: (1..=self.first.authors()).map(|it| ((it,), self.first.author(it))).collect(),
            best: (0..SUBJECTS).map(|it| ((it,), Default::default())).collect(),
            ..ReferenceCopy::default()
        };
        for item in (1..=self.first.items).map(|number| self.first.item(number)) {
            let searches = self.first.searches(&item).map(|(kind, text)| (kind, text, item.item));
            copy.searches.extend(searches);
            copy.items.insert((item.item,), item.facts);
            copy.details.insert((item.item,), item.details);
        }
        copy
    }

    /// What is everywhere is the same everywhere: as it was loaded, or as it was changed.
    fn copies(&self) -> Complaints {
        let (mut wrong, first) = (Complaints::default(), self.reference());
        for copy in &self.rows.copies {
            if *copy != self.rows.copies[0] {
                wrong.add(|| "two repositories have different copies".to_owned());
            }
            let constant = (&copy.countries, &copy.authors, &copy.items, &copy.searches);
            if constant != (&first.countries, &first.authors, &first.items, &first.searches) {
                wrong.add(|| "what never changes has changed".to_owned());
            }
            let subjects = copy.best.keys().eq(first.best.keys());
            if !subjects || !copy.details.keys().eq(first.details.keys()) {
                wrong.add(|| "details of items or subjects came or went".to_owned());
            }
        }
        let Some(copy) = self.rows.copies.first() else { return wrong };
        for ((item,), row) in &copy.details {
            let none = Default::default();
            let (sure, perhaps) = self.known.details.get(item).unwrap_or(&none);
            let least = sure.len() as u64;
            let is_counted = (least..=least + perhaps.len() as u64).contains(&row.updates);
            let is_written = match row.updates {
                0 => first.details.get(&(*item,)) == Some(row),
                _ => sure.iter().chain(perhaps).any(|new| {
                    let found = (row.cost, row.picture, row.thumbnail, row.published);
                    found == (new.cost, new.picture, new.picture, new.published)
                        && row.related == new.related
                }),
            };
            let there = row.related.iter().all(|it| (1..=self.first.items).contains(it));
            if !(is_counted && is_written && there) {
                wrong.add(|| format!("item {item}: {row:?}, changed {least} times"));
            }
        }
        for ((subject,), row) in &copy.best {
            let none = Default::default();
            let (sure, perhaps) = self.known.best.get(subject).unwrap_or(&none);
            let is_loaded = sure.is_empty() && row.items.is_empty();
            if !is_loaded && !sure.contains(&row.items) && !perhaps.contains(&row.items) {
                wrong.add(|| format!("best sellers of {subject}: {row:?}"));
            }
        }
        wrong
    }
}

pub(super) async fn check(tpcw: &Tpcw, db: &Db) -> Result<Vec<Check>, Error> {
    let mut all = TpcwLedger::default();
    for mut ledger in tpcw.ledgers.all() {
        ledger.begin_incarnation();
        all.join(&ledger);
    }
    let first = tpcw.first;
    let customers = (1..=first.customers).chain(all.new_customers.iter().copied()).collect();
    let rows = ShopRows::read(&db.read_only(), first.items, &customers).await?;
    let audit = ShopAudit::new(first, &rows, &all);
    let none = String::new;
    let orders = format!("{} orders, {} lines", rows.orders.len(), rows.lines.len());
    let customers = format!("{} customers", rows.customers.len());
    let copies = format!("at each of {} repositories", rows.copies.len());
    let carts = format!("{} lines in {} carts", rows.cart_lines.len(), rows.carts.len());
    Ok(vec![
        Check::none_wrong("orders are whole and paid", &audit.orders(), orders),
        Check::none_wrong("orders are those that committed", &audit.committed_orders(), none()),
        Check::none_wrong("what is left follows from orders", &audit.stocks(), none()),
        Check::none_wrong("customers are those that registered", &audit.customers(), customers),
        Check::none_wrong("carts are what the last change left", &audit.carts(), carts),
        Check::none_wrong("copies are the same everywhere", &audit.copies(), copies),
        Check::none_wrong("answers have what there is", &all.wrong_answers, none()),
    ])
}

#[cfg(test)]
mod tests;
