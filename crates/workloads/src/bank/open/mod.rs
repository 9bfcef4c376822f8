//! Changes of accounts as open children: each commits at once, under an abstract lock on its
//! account, and is undone by the opposite amount.
//!
//! Who reads all accounts takes no locks. With one for each account it would be kept out by whoever
//! is at work anywhere, and would keep out all; one lock for the whole bank would be a row that
//! each transaction writes. It reads in one snapshot what may still be undone
//! ([`OpenNesting::undecided`]), and computes what there is without that.

pub(super) mod loans;
mod locks;
pub(super) mod transfers;

use std::ops::Range;

use muesli::open_nesting::{NestingSwitch, OpenNesting};
use muesli::{Db, Error, Space, Tx};

use super::account::Account;
use super::account_rows::{AccountChange, AccountRows};
use super::books::AccountBooks;
use crate::nesting::{NestingPlan, open_layer};
use locks::AccountModes;

/// Undoes changes of accounts.
const UNDO: &str = "accounts/undo";

/// The layer, and the modes of locks on accounts.
#[derive(Clone, Debug)]
pub(super) struct OpenAccounts {
    pub layer: OpenNesting,
    modes: AccountModes,
}

impl OpenAccounts {
    /// The layer of a workload, if its parts may be open children.
    pub fn new(
        (books, plan): (&AccountBooks, &NestingPlan),
        broken: Option<NestingSwitch>,
        db: &Db,
    ) -> Result<Option<OpenAccounts>, Error> {
        if !plan.may_be_open() {
            return Ok(None);
        }
        let (rows, space) = (books.rows.clone(), AccountRows::space_of(db)?);
        let layer = broken.into_iter().fold(open_layer::layer(plan, db)?, OpenNesting::without);
        let layer = if books.roots.is_on() { layer.recorded() } else { layer };
        let layer = layer.handler(UNDO, move |tx, changes: Vec<AccountChange>| {
            let rows = rows.clone();
            Box::pin(async move { rows.undo(tx, space, &changes).await })
        });
        Ok(Some(OpenAccounts { layer, modes: AccountModes::new(books.overdraft)? }))
    }

    /// What accounts from one up to another hold, without what may still be undone.
    pub async fn read_decided(
        &self,
        (rows, tx, space): (&AccountRows, &Tx, Space),
        accounts: Range<u32>,
    ) -> Result<Vec<Account>, Error> {
        let mut found = rows.read(tx, space, accounts.clone()).await?;
        for changes in self.layer.undecided::<Vec<AccountChange>>(tx, UNDO).await? {
            for (account, by) in changes.into_iter().filter(|(it, _)| accounts.contains(it)) {
                let at = (account - accounts.start) as usize;
                found[at] = found[at].before(by);
            }
        }
        Ok(found)
    }
}
