//! What is checked after a run: the conditions, the accounts, and what the clients saw.

use muesli::{Db, Error};

use super::Tpcc;
use super::accounts::ExpectedTotals;
use super::conditions::{Conditions, lines_by_order};
use super::ids::ItemId;
use super::ledger::Books;
use super::mix::PROFILES;
use super::rows::Item;
use super::scale::Scale;
use super::survey::{DistrictRows, Rows, Surveyor, WarehouseRows, survey};
use crate::check::Check;

/// All that looks at the pieces of a survey.
#[derive(Debug)]
pub(super) struct Audit<'a> {
    scale: &'a Scale,
    books: &'a Books,
    conditions: Conditions,
    accounts: ExpectedTotals,
}

impl Surveyor for Audit<'_> {
    fn district(&mut self, rows: &DistrictRows) {
        let lines = lines_by_order(rows);
        self.conditions.district(rows, &lines, self.scale, self.books);
        self.accounts.district(rows, self.scale, self.books);
    }

    fn warehouse(&mut self, rows: &WarehouseRows) {
        self.conditions.warehouse(rows);
        self.accounts.warehouse(rows, self.scale);
    }

    fn items(&mut self, rows: &Rows<ItemId, Item>) {
        self.accounts.items(rows, self.scale);
    }
}

impl<'a> Audit<'a> {
    /// Nothing is looked at yet.
    pub fn new(scale: &'a Scale, books: &'a Books) -> Audit<'a> {
        Audit {
            scale,
            books,
            conditions: Conditions::default(),
            accounts: ExpectedTotals::default(),
        }
    }

    /// Everything, once all was looked at.
    pub fn checks(self) -> Vec<Check> {
        let Audit { scale, books, conditions, accounts } = self;
        let mut checks = conditions.checks();
        checks.extend(accounts.checks(scale, books));
        let whole = Check::none_wrong("snapshots are whole", &books.wrong_snapshots, String::new());
        checks.push(whole);
        let name = "orders of items that there are not roll back";
        checks.push(Check::none_wrong(name, &books.wrong_commits, profiles(books)));
        checks
    }
}

pub(super) async fn check(tpcc: &Tpcc, db: &Db) -> Result<Vec<Check>, Error> {
    let (scale, books) = (&tpcc.scale, &Books::closed(&tpcc.ledgers));
    let audit = survey(db, scale, || Audit::new(scale, books)).await?;
    Ok(audit.checks())
}

/// How often each profile ran.
fn profiles(books: &Books) -> String {
    let one = |profile| {
        let ends = books.ends.get(profile).copied().unwrap_or_default();
        format!("{} {}", profile.name(), ends.committed)
    };
    let ran: Vec<_> = PROFILES.iter().filter(|it| books.ends.contains_key(it)).map(one).collect();
    let rolled_back: u64 = books.ends.values().map(|ends| ends.rolled_back).sum();
    let (ran, skipped) = (ran.join(", "), books.skipped);
    format!("{ran}; {rolled_back} rolled back, {skipped} districts with nothing to deliver")
}
