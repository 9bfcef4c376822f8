//! What each client knows that it has done, or may have.

use std::collections::BTreeMap;

use super::plans::admin::NewDetails;
use super::plans::carts::CartLine;
use crate::check::Complaints;
use crate::distribution::fnv_hash;
use crate::ledgers::{NumberedUpdates, Surely};
use crate::tally::Ended;

/// What a cart has, in a number: equal ones have equal numbers.
pub(super) fn digest(lines: &[CartLine]) -> u64 {
    let mut sorted = lines.to_vec();
    sorted.sort_unstable();
    let step = |hash, line: &CartLine| {
        fnv_hash(fnv_hash(hash ^ u64::from(line.item)) ^ u64::from(line.quantity))
    };
    sorted.iter().fold(1, step)
}

/// What the transaction under way changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TpcwUpdate {
    /// A cart of this customer, and not into what is known before.
    Cart(u64),
    /// An order of this customer is entered, which empties the cart.
    Order(u64),
    /// A customer is registered.
    Customer(u64),
    /// A customer comes back.
    LogIn(u64),
    /// Details of an item.
    Details(NewDetails),
    /// The best sellers of a subject.
    Best(u8, Vec<(u32, u64)>),
}

/// What it came to, where that was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UpdateAnswer {
    /// Which change it was: of a cart, or of how often a customer came back.
    pub number: Option<u64>,
    /// What the cart has.
    pub contents: Option<u64>,
    /// An order's number, and its total.
    pub order: Option<(u32, i64)>,
}

/// Items with how many of them were sold.
pub(super) type CountedItems = Vec<(u32, u64)>;

/// What one client knows.
#[derive(Clone, Debug, Default)]
pub(super) struct TpcwLedger {
    /// Customers that it registered, and those that it set out to.
    pub registered: Surely<u64>,
    pub new_customers: Vec<u64>,
    pub logins: BTreeMap<u64, NumberedUpdates<()>>,
    /// Of each cart what it had after a change, where that is known.
    pub carts: BTreeMap<u64, NumberedUpdates<Option<u64>>>,
    /// Of each customer the orders that were entered: by number, and with their totals.
    pub orders: BTreeMap<u64, NumberedUpdates<Option<i64>>>,
    pub details: BTreeMap<u32, (Vec<NewDetails>, Vec<NewDetails>)>,
    /// The best sellers of each subject, as they were counted for sure, and perhaps.
    pub best: BTreeMap<u8, (Vec<CountedItems>, Vec<CountedItems>)>,
    /// Answers that no moment can have given, and what was to be refused.
    pub wrong_answers: Complaints,
    /// How many customers it has numbered.
    pub numbers: u64,
    under_way: Option<TpcwUpdate>,
}

impl TpcwLedger {
    /// An incarnation of the client begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle(&Ended::Unknown, UpdateAnswer::default());
    }

    /// An attempt is about to commit this.
    pub fn set_out(&mut self, update: TpcwUpdate) {
        if let TpcwUpdate::Customer(customer) | TpcwUpdate::Cart(customer) = update {
            self.new_customers.push(customer);
        }
        self.under_way = Some(update);
    }

    /// The transaction has ended.
    pub fn settle(&mut self, ended: &Ended, answer: UpdateAnswer) {
        let UpdateAnswer { number, contents, order } = answer;
        match self.under_way.take() {
            Some(TpcwUpdate::Cart(customer)) => {
                self.carts.entry(customer).or_default().note(contents, ended, number);
            }
            Some(TpcwUpdate::Order(customer)) => {
                let empty = Some(digest(&[]));
                self.carts.entry(customer).or_default().note(empty, ended, number);
                let (number, total) = order.unzip();
                let orders = self.orders.entry(customer).or_default();
                orders.note(total, ended, number.map(u64::from));
            }
            Some(TpcwUpdate::Customer(customer)) => self.registered.note(customer, ended),
            Some(TpcwUpdate::LogIn(customer)) => {
                self.logins.entry(customer).or_default().note((), ended, number);
            }
            Some(TpcwUpdate::Details(new)) => {
                let (sure, perhaps) = self.details.entry(new.item).or_default();
                match ended {
                    Ended::Committed => sure.push(new),
                    Ended::Unknown => perhaps.push(new),
                    Ended::RolledBack | Ended::Failed(_) => {}
                }
            }
            Some(TpcwUpdate::Best(subject, items)) => {
                let (sure, perhaps) = self.best.entry(subject).or_default();
                match ended {
                    Ended::Committed => sure.push(items),
                    Ended::Unknown => perhaps.push(items),
                    Ended::RolledBack | Ended::Failed(_) => {}
                }
            }
            None => {}
        }
    }

    /// Adds what another client knows.
    pub fn join(&mut self, other: &TpcwLedger) {
        self.registered.extend(&other.registered);
        self.new_customers.extend_from_slice(&other.new_customers);
        for (customer, logins) in &other.logins {
            self.logins.entry(*customer).or_default().extend(logins);
        }
        for (customer, changes) in &other.carts {
            self.carts.entry(*customer).or_default().extend(changes);
        }
        for (customer, orders) in &other.orders {
            self.orders.entry(*customer).or_default().extend(orders);
        }
        for (item, (sure, perhaps)) in &other.details {
            let own = self.details.entry(*item).or_default();
            own.0.extend_from_slice(sure);
            own.1.extend_from_slice(perhaps);
        }
        for (subject, (sure, perhaps)) in &other.best {
            let own = self.best.entry(*subject).or_default();
            own.0.extend_from_slice(sure);
            own.1.extend_from_slice(perhaps);
        }
        self.wrong_answers.extend(&other.wrong_answers);
    }
}
