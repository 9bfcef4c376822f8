//! What each client knows it has done, what it may have done, and what it saw wrong.

use std::collections::BTreeMap;

use crate::check::Complaints;
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::tpcc::ids::DistrictId;
use crate::tpcc::mix::Profile;

/// How often something happened for sure, and how often it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tpcc) struct Times {
    pub sure: u64,
    pub perhaps: u64,
}

impl Times {
    /// Whether it can have happened so often.
    pub fn allow(self, times: u64) -> bool {
        (self.sure..=self.sure + self.perhaps).contains(&times)
    }
}

/// What the transaction under way changes, as of its last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tpcc) enum Update {
    /// An order of a district.
    NewOrder(DistrictId),
    /// The payment with this sequence number.
    Payment(u64),
    /// One order of each of these districts.
    Delivery(Vec<DistrictId>),
}

/// How the transactions of a profile ended.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tpcc) struct Ends {
    pub committed: u64,
    pub rolled_back: u64,
    pub others: u64,
}

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
pub(in crate::tpcc) struct TpccLedger {
    /// New-Orders by district.
    pub orders: BTreeMap<DistrictId, Times>,
    /// Delivered orders by district.
    pub deliveries: BTreeMap<DistrictId, Times>,
    /// How many sequence numbers of payments were taken; they begin at 1.
    pub payments: u64,
    /// Those of them that surely did not commit.
    pub payments_failed: Vec<u64>,
    /// Those of them that may have committed.
    pub payments_perhaps: Vec<u64>,
    /// How transactions ended, by profile.
    pub ends: BTreeMap<Profile, Ends>,
    /// Districts that had nothing to deliver.
    pub skipped: u64,
    /// Snapshots in which something was missing or torn.
    pub wrong_snapshots: Complaints,
    /// Orders with an item that there is not, and that were not rolled back.
    pub wrong_commits: Complaints,
    under_way: Option<Update>,
}

impl TpccLedger {
    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle_as(None);
    }

    /// The sequence number of the next payment.
    pub fn next_payment(&mut self) -> u64 {
        self.payments += 1;
        self.payments
    }

    /// An attempt is about to commit this.
    pub fn set_out(&mut self, update: Update) {
        self.under_way = Some(update);
    }

    /// The transaction has ended.
    pub fn settle(&mut self, profile: Profile, ended: &Ended) {
        let ends = self.ends.entry(profile).or_default();
        let took_effect = match ended {
            Ended::Committed => {
                ends.committed += 1;
                Some(true)
            }
            Ended::RolledBack => {
                ends.rolled_back += 1;
                Some(false)
            }
            Ended::Failed(_) => {
                ends.others += 1;
                Some(false)
            }
            Ended::Unknown => {
                ends.others += 1;
                None
            }
        };
        self.settle_as(took_effect);
    }

    /// What is under way took effect, or not, or nobody knows.
    fn settle_as(&mut self, took_effect: Option<bool>) {
        let Some(update) = self.under_way.take() else { return };
        match (update, took_effect) {
            (Update::Payment(_), Some(true))
            | (Update::NewOrder(_) | Update::Delivery(_), Some(false)) => {}
            (Update::Payment(sequence), Some(false)) => self.payments_failed.push(sequence),
            (Update::Payment(sequence), None) => self.payments_perhaps.push(sequence),
            (Update::NewOrder(district), sure) => count(&mut self.orders, district, sure),
            (Update::Delivery(districts), sure) => {
                districts.into_iter().for_each(|it| count(&mut self.deliveries, it, sure));
            }
        }
    }
}

fn count(times: &mut BTreeMap<DistrictId, Times>, district: DistrictId, sure: Option<bool>) {
    let times = times.entry(district).or_default();
    match sure {
        Some(_) => times.sure += 1,
        None => times.perhaps += 1,
    }
}

/// The ledgers of all clients.
pub(in crate::tpcc) type Ledgers = PerClient<TpccLedger>;

/// All books together, once no client runs any more.
#[derive(Debug, Default)]
pub(in crate::tpcc) struct Books {
    pub orders: BTreeMap<DistrictId, Times>,
    pub deliveries: BTreeMap<DistrictId, Times>,
    /// Of each client: sequence numbers taken, those that failed, and those that may have.
    pub payments: Vec<(u64, Vec<u64>, Vec<u64>)>,
    pub ends: BTreeMap<Profile, Ends>,
    pub skipped: u64,
    pub wrong_snapshots: Complaints,
    pub wrong_commits: Complaints,
}

impl Books {
    pub fn closed(ledgers: &Ledgers) -> Books {
        let mut all = Books::default();
        for mut one in ledgers.all() {
            one.begin_incarnation();
            add(&mut all.orders, &one.orders);
            add(&mut all.deliveries, &one.deliveries);
            let (failed, perhaps) = (one.payments_failed.clone(), one.payments_perhaps.clone());
            all.payments.push((one.payments, failed, perhaps));
            for (profile, ends) in &one.ends {
                let sum = all.ends.entry(*profile).or_default();
                sum.committed += ends.committed;
                sum.rolled_back += ends.rolled_back;
                sum.others += ends.others;
            }
            all.skipped += one.skipped;
            all.wrong_snapshots.extend(&one.wrong_snapshots);
            all.wrong_commits.extend(&one.wrong_commits);
        }
        all
    }

    /// How often an order was entered in a district.
    pub fn orders_of(&self, district: DistrictId) -> Times {
        self.orders.get(&district).copied().unwrap_or_default()
    }

    /// How often an order of a district was delivered.
    pub fn deliveries_of(&self, district: DistrictId) -> Times {
        self.deliveries.get(&district).copied().unwrap_or_default()
    }
}

fn add(all: &mut BTreeMap<DistrictId, Times>, some: &BTreeMap<DistrictId, Times>) {
    for (district, times) in some {
        let sum = all.entry(*district).or_default();
        sum.sure += times.sure;
        sum.perhaps += times.perhaps;
    }
}

#[cfg(test)]
mod tests {
    use muesli::Error;

    use super::*;

    #[test]
    fn commits_are_booked_and_open_ends_stay_possible() {
        let district = DistrictId { warehouse: 1, number: 2 };
        let ledgers = Ledgers::new(1, |_| TpccLedger::default());
        let unknown = Ended::Unknown;
        let failed = Ended::Failed(Error::Closed);
        for ended in [Ended::Committed, Ended::RolledBack, failed, unknown] {
            let mut ledger = ledgers.of(0);
            ledger.set_out(Update::NewOrder(district));
            ledger.settle(Profile::NewOrder, &ended);
            let sequence = ledger.next_payment();
            ledger.set_out(Update::Payment(sequence));
            ledger.settle(Profile::Payment, &ended);
        }
        ledgers.of(0).set_out(Update::Delivery(vec![district, district]));
        let books = Books::closed(&ledgers);
        assert_eq!(books.orders_of(district), Times { sure: 1, perhaps: 1 });
        assert_eq!(books.deliveries_of(district), Times { sure: 0, perhaps: 2 });
        assert_eq!(books.payments, [(4, vec![2, 3], vec![4])]);
        assert!(books.orders_of(district).allow(2) && !books.orders_of(district).allow(3));
    }
}
