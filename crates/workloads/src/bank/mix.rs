//! What a client does next, and with which accounts.

use std::sync::Arc;

use muesli::{SmallBytes, Space};
use muesli_core::parts::locator::Static;

use super::ledger::Transfer;
use crate::calls::{check_objects, check_shares};
use crate::chance::Chance;
use crate::distribution::Distribution;
use crate::parameters::{ParameterError, Values};
use crate::workload::Seat;

/// A transaction with its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BankAction {
    Transfer(Vec<Transfer>),
    /// Accounts whose sums are read, two after two.
    ReadSums(Vec<u32>),
    ReadAll,
    WriteAll,
}

/// The shares of transactions, and how accounts are chosen.
#[derive(Debug)]
pub(super) struct BankMix {
    accounts: u64,
    amount: u64,
    calls: usize,
    reads: f64,
    totals: f64,
    write_all: f64,
    hot: u64,
    hot_share: f64,
    locality: f64,
    disjoint: bool,
    /// Whether the accounts of a call are two that trade with each other alone.
    paired: bool,
    skew: Distribution,
}

/// How one client chooses.
#[derive(Debug)]
pub(super) struct BankChoice {
    skew: Distribution,
    /// Accounts that its node holds, or those that are its alone.
    own: Option<Arc<[u32]>>,
    own_share: f64,
}

impl BankMix {
    pub fn new(values: &Values, clients: u32) -> Result<BankMix, ParameterError> {
        let incompatible_with = |text: String| Err(ParameterError::Incompatible(text));
        let (accounts, calls) = (values.count("objects"), values.count("calls"));
        let mix = BankMix {
            accounts,
            amount: values.count("amount"),
            calls: calls as usize,
            reads: values.number("reads"),
            totals: values.number("totals"),
            write_all: values.number("write-all"),
            hot: values.count("hot"),
            hot_share: values.number("hot-share"),
            locality: values.number("locality"),
            disjoint: values.flag("disjoint"),
            paired: values.flag("pairs"),
            skew: Distribution::new("zipfian", accounts, values.number("theta"), 0),
        };
        check_shares(values, &["reads", "totals", "write-all"])?;
        check_objects(("calls", calls), 2, accounts)?;
        if mix.hot > accounts || (mix.hot == 0 && mix.hot_share > 0.0) {
            return incompatible_with(format!(
                "hot must be 1 to {accounts} where hot-share is not 0"
            ));
        }
        if mix.paired && (mix.disjoint || mix.locality > 0.0 || accounts % 2 == 1) {
            let text = "pairs needs an even number of objects, any of which a client may draw: not \
                        disjoint, and no locality";
            return incompatible_with(text.to_owned());
        }
        if mix.disjoint && u64::from(clients) * 2 * calls > accounts {
            let least = u64::from(clients) * 2 * calls;
            return incompatible_with(format!(
                "{clients} disjoint clients need at least {least} objects"
            ));
        }
        Ok(mix)
    }

    /// How the client of this seat chooses.
    pub fn choice(&self, seat: &Seat, space: Space, keys: &[SmallBytes]) -> BankChoice {
        let all = 0..self.accounts as u32;
        let (own, own_share) = if self.disjoint {
            let own = all.filter(|account| account % seat.clients == seat.client);
            (Some(own.collect()), 100.0)
        } else if self.locality > 0.0 {
            let catalog = seat.db.catalog_of_keys();
            let held = |account: &u32| {
                let partition = catalog.partition(space.id(), &keys[*account as usize]);
                Static
                    .replicas_of(partition, &catalog)
                    .any(|replica| catalog.home(replica) == seat.node)
            };
            let own: Arc<[u32]> = all.filter(held).collect();
            ((own.len() >= 2 * self.calls).then_some(own), self.locality)
        } else {
            (None, 0.0)
        };
        BankChoice { skew: self.skew.clone(), own, own_share }
    }

    /// The next transaction, its inputs included.
    pub fn draw(&self, choice: &mut BankChoice, chance: &mut Chance) -> BankAction {
        let kind = chance.fraction() * 100.0;
        if kind < self.reads {
            return BankAction::ReadSums(self.accounts(2 * self.calls, choice, chance));
        }
        if kind < self.reads + self.totals {
            return BankAction::ReadAll;
        }
        if kind < self.reads + self.totals + self.write_all {
            return BankAction::WriteAll;
        }
        let accounts = self.accounts(2 * self.calls, choice, chance);
        let transfers = accounts.chunks_exact(2).map(|pair| Transfer {
            from: pair[0],
            to: pair[1],
            amount: chance.between(1, self.amount) as i64,
        });
        BankAction::Transfer(transfers.collect())
    }

    /// So many different accounts.
    fn accounts(&self, many: usize, choice: &mut BankChoice, chance: &mut Chance) -> Vec<u32> {
        let local = choice.own.is_some() && chance.percent(choice.own_share);
        let own = choice.own.as_ref().filter(|_| local);
        let mut drawn: Vec<u32> = Vec::with_capacity(many);
        while drawn.len() < many {
            let account = match own {
                Some(own) => own[chance.below(own.len() as u64) as usize],
                None if chance.percent(self.hot_share) && drawn.len() < self.hot as usize => {
                    chance.below(self.hot) as u32
                }
                None => choice.skew.draw(self.accounts, chance) as u32,
            };
            if drawn.contains(&account) {
                continue;
            }
            drawn.push(account);
            // Numbered 0 and 1, 2 and 3, ..
            drawn.extend(self.paired.then_some(account ^ 1));
        }
        drawn
    }
}
