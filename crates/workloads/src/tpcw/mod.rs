//! TPC-W, the database part: an on-line bookstore, whose fourteen interactions are each one
//! transaction, and [plans].
//!
//! What browsing needs is everywhere, what a customer owns is by customer, and what is left of an
//! item is by item: so Buy Confirm is at one customer and each item of its cart. Customers and
//! items belong to communities, in which most purchases are, by hashes of their numbers.
//!
//! Instead of counters of carts, customers and orders, which all would write, clients number new
//! customers, a customer has one cart, and numbers its orders. Interactions are drawn by the
//! weights of a mix, with no chain from page to page; a client keeps the carts that it has filled.
//!
//! Deviation: best sellers are those of all orders, and not of the newest 3,333: they are counted
//! from what each item has sold, by some of those who look at them.
//! Deviation: what an item was bought with is known of its own newest orders, and not of the last
//! 10,000 of all; images are numbers, and cards are charged without asking anybody.
//! Deviation: a search shows the first items that it finds, by title among these.
//!
//! Source: TPC-W, as java-tpcw and TPCw-benchmark have it.

mod checks;
mod first;
mod found_items;
mod interactions;
mod ledger;
pub(crate) mod plans;
mod rows;
pub(crate) mod tables;

pub use plans::procedures;

use std::sync::OnceLock;

use muesli::{Db, Error, SpaceOptions};

use self::plans::carts::CartLine;
use self::plans::loads::{
    LoadCustomer, LoadItems, LoadReference, LoadStock, LoadedItems, LoadedStock, ReferenceRows,
};
use crate::chance::Chance;
use crate::check::Check;
use crate::distribution::fnv_hash;
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, load_by_plan};
use first::{COUNTRIES, FirstData, SUBJECTS};
use found_items::FoundItems;
use ledger::TpcwLedger;

/// What TPC-W takes.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new("items", "1000", ParameterKind::Count(10, 1_000_000), "Items."),
    Parameter::new("customers", "2880", ParameterKind::Count(2, 1_000_000), "Customers at first."),
    Parameter::new(
        "mix",
        "ordering",
        ParameterKind::Choice(&["browsing", "shopping", "ordering"]),
        "How often each interaction is.",
    ),
    Parameter::new(
        "communities",
        "40",
        ParameterKind::Count(1, 100_000),
        "Communities that customers and items belong to.",
    ),
    Parameter::new(
        "mixing",
        "5",
        ParameterKind::Percent,
        "Share of items in carts that are drawn among all, and not in the customer's community.",
    ),
    Parameter::new(
        "refused",
        "1",
        ParameterKind::Percent,
        "Share of customers who come back with a wrong password, which is refused.",
    ),
    Parameter::new(
        "recounts",
        "10",
        ParameterKind::Percent,
        "Share of looks at best sellers before which they are counted anew.",
    ),
];

/// Shares of the interactions in hundredths of a percent, by their numbers: browsing, shopping,
/// ordering.
const SHARES: [[u64; 14]; 3] = [
    [2900, 1100, 1100, 2100, 1200, 1100, 200, 82, 75, 69, 30, 25, 10, 9],
    [1600, 500, 500, 1700, 2000, 1700, 1160, 300, 260, 120, 75, 66, 10, 9],
    [912, 46, 46, 1235, 1453, 1308, 1353, 1286, 1273, 1018, 25, 22, 12, 11],
];

/// TPC-W with its parameters.
#[derive(Debug)]
pub struct Tpcw {
    first: FirstData,
    shares: [u64; 14],
    communities: u64,
    mixing: f64,
    refused: f64,
    recounts: f64,
    ledgers: PerClient<TpcwLedger>,
    found: OnceLock<FoundItems>,
}

/// A cart that a client has filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledCart {
    customer: u64,
    is_registered: bool,
    /// As it was seen last.
    lines: Vec<CartLine>,
}

/// So many items, or authors, are loaded by one call, which may have so many steps: each is written
/// at all repositories.
const LOADED_AT_ONCE: usize = 100;

impl Tpcw {
    /// TPC-W with these parameters, for so many clients.
    ///
    /// # Errors
    /// More communities than items or customers.
    pub fn new(values: &Values, clients: u32) -> Result<Tpcw, ParameterError> {
        values.refuse_empty_communities("items")?;
        values.refuse_empty_communities("customers")?;
        let (items, customers) = (values.count("items") as u32, values.count("customers"));
        let mixes = ["browsing", "shopping", "ordering"];
        let mix = mixes.iter().position(|mix| *mix == values.word("mix")).unwrap_or(2);
        Ok(Tpcw {
            first: FirstData { items, customers },
            shares: SHARES[mix],
            communities: values.count("communities"),
            mixing: values.number("mixing"),
            refused: values.number("refused"),
            recounts: values.number("recounts"),
            ledgers: PerClient::new(clients, |_| TpcwLedger::default()),
            found: OnceLock::new(),
        })
    }

    /// What each search finds, which never changes.
    fn found(&self) -> &FoundItems {
        self.found.get_or_init(|| FoundItems::new(&self.first))
    }

    fn community(&self, number: u64) -> u64 {
        fnv_hash(number) % self.communities
    }

    /// A customer that was there at first, by the specification's NURand.
    fn draw_customer(&self, chance: &mut Chance) -> u64 {
        let (most, count) = (self.first.drawn_with_customer(), self.first.customers);
        1 + (chance.between(0, most) | chance.between(1, count)) % count
    }

    fn draw_item(&self, chance: &mut Chance) -> u32 {
        chance.between(1, self.first.items.into()) as u32
    }

    /// An item that a customer may want: of its community in most cases.
    fn draw_wanted(&self, customer: u64, chance: &mut Chance) -> u32 {
        let (mixes, near) = (chance.percent(self.mixing), self.community(customer));
        for _ in 0..64 * self.communities {
            let item = self.draw_item(chance);
            if mixes || self.community(!u64::from(item)) == near {
                return item;
            }
        }
        self.draw_item(chance)
    }

    /// What is everywhere beside items, in as many calls as it needs.
    fn reference(&self) -> Vec<ReferenceRows> {
        let first = ReferenceRows {
            countries: (1..=COUNTRIES).map(|it| (it, FirstData::country(it))).collect(),
            authors: Vec::new(),
            subjects: (0..SUBJECTS).collect(),
        };
        let authors: Vec<_> = (1..=self.first.authors()).collect();
        let loaded = |numbers: &[u32]| ReferenceRows {
            authors: numbers.iter().map(|it| (*it, self.first.author(*it))).collect(),
            ..ReferenceRows::default()
        };
        [first].into_iter().chain(authors.chunks(LOADED_AT_ONCE).map(loaded)).collect()
    }

    async fn load_everywhere(&self, db: &Db) -> Result<(), Error> {
        load_by_plan::<LoadReference>(db, self.reference()).await?;
        let all: Vec<_> = (1..=self.first.items).map(|item| self.first.item(item)).collect();
        let loaded = |items: &[plans::loads::LoadedItem]| {
            let of = |item| {
                let searches = self.first.searches(item);
                searches.map(|(kind, text)| (kind, text, item.item))
            };
            LoadedItems { items: items.to_vec(), searches: items.iter().flat_map(of).collect() }
        };
        load_by_plan::<LoadItems>(db, all.chunks(LOADED_AT_ONCE).map(loaded).collect()).await
    }
}

impl Workload for Tpcw {
    type Memory = Vec<FilledCart>;

    fn spaces(&self, _: usize) -> Vec<(&'static str, SpaceOptions)> {
        tables::spaces()
    }

    fn is_one_round(&self) -> bool {
        true
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        self.load_everywhere(db).await?;
        let stock = |item| LoadedStock { item, stock: FirstData::stock(item) };
        load_by_plan::<LoadStock>(db, (1..=self.first.items).map(stock).collect()).await?;
        let customers = (1..=self.first.customers).map(|number| self.first.customer(number));
        load_by_plan::<LoadCustomer>(db, customers.collect()).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<Vec<FilledCart>, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        Ok(Vec::new())
    }

    async fn transact(&self, seat: &mut Seat, filled: &mut Vec<FilledCart>) -> (Ended, u32) {
        let mut at = seat.chance.below(self.shares.iter().sum());
        let mut number = 0;
        while at >= self.shares[number] {
            at -= self.shares[number];
            number += 1;
        }
        match number + 1 {
            1..=6 | 13 => self.browse(seat, number + 1).await,
            7 => self.change_cart(seat, filled).await,
            8 | 11 => self.ask_for_name(seat).await,
            9 => self.request(seat, filled).await,
            10 => self.confirm(seat, filled).await,
            12 => self.display(seat).await,
            _ => self.administer(seat).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tpcw(given: &[&str]) -> Result<Tpcw, ParameterError> {
        let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
        Tpcw::new(&Values::read("tpcw", PARAMETERS, &given).unwrap(), 1)
    }

    #[test]
    fn authors_are_loaded_some_at_a_time() {
        let tpcw = tpcw(&["items=600000"]).unwrap();
        let all = tpcw.reference();
        assert!(all.iter().all(|it| it.authors.len() <= LOADED_AT_ONCE));
        let authors = all.iter().flat_map(|it| &it.authors).map(|it| it.0);
        assert!(authors.eq(1..=150_000));
        let subjects: usize = all.iter().map(|it| it.subjects.len()).sum();
        assert_eq!(subjects, usize::from(SUBJECTS));
    }

    #[test]
    fn more_communities_than_there_can_be_are_refused() {
        assert!(tpcw(&["items=40", "customers=40"]).is_ok());
        for few in [["items=39", "customers=40"], ["items=40", "customers=39"]] {
            let text = tpcw(&few).unwrap_err().to_string();
            assert!(
                text.contains("`communities=40` is more than") && text.contains("39"),
                "{text}"
            );
        }
    }
}
