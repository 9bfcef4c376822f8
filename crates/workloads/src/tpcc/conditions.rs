//! The twelve consistency conditions of the standard (clause 3.3.2), as the snapshot of a
//! [`survey`](super::survey) has them.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::CustomerId;
use super::ledger::Books;
use super::scale::Scale;
use super::survey::{DistrictRows, WarehouseRows};
use crate::check::{Check, Complaints};

/// The conditions' names, by their numbers less one.
const NAMES: [&str; 12] = [
    "condition 1: W_YTD is the sum of D_YTD",
    "condition 2: D_NEXT_O_ID follows the newest order and new-order",
    "condition 3: new-orders have no gaps",
    "condition 4: O_OL_CNT add up to the order lines",
    "condition 5: orders without a carrier are the new-orders",
    "condition 6: an order has O_OL_CNT lines",
    "condition 7: lines are delivered where their order is",
    "condition 8: W_YTD is the sum of its history",
    "condition 9: D_YTD is the sum of its history",
    "condition 10: C_BALANCE is delivered lines less payments",
    "condition 11: orders less new-orders are those delivered",
    "condition 12: C_BALANCE and C_YTD_PAYMENT are the delivered lines",
];

/// What an order's lines say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub count: u64,
    pub delivered: u64,
    pub amount: i64,
}

/// The lines of a district by their orders' numbers.
pub(super) fn lines_by_order(rows: &DistrictRows) -> BTreeMap<u32, Lines> {
    let mut by_order: BTreeMap<u32, Lines> = BTreeMap::new();
    for (id, line) in &rows.order_lines {
        let lines = by_order.entry(id.order.number).or_default();
        lines.count += 1;
        lines.delivered += u64::from(line.delivered.is_some());
        lines.amount += line.amount;
    }
    by_order
}

/// What a warehouse's districts add up to.
#[derive(Clone, Copy, Debug, Default)]
struct ConditionSums {
    ytd: i64,
    history: i64,
}

/// What a customer's row says, and what its orders and payments do.
#[derive(Clone, Copy, Debug, Default)]
struct ConditionAccount {
    balance: i64,
    ytd_payment: i64,
    delivered: i64,
    paid: i64,
}

/// What does not hold so far.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    wrong: [Complaints; 12],
    districts: u64,
    orders: u64,
    sums: BTreeMap<u32, ConditionSums>,
    accounts: BTreeMap<CustomerId, ConditionAccount>,
}

impl Conditions {
    /// Looks at a district, before its warehouse.
    pub fn district(
        &mut self,
        rows: &DistrictRows,
        lines: &BTreeMap<u32, Lines>,
        scale: &Scale,
        books: &Books,
    ) {
        self.districts += 1;
        self.orders += rows.orders.len() as u64;
        self.numbers(rows);
        self.orders(rows, lines);
        self.sums(rows);
        self.deliveries(rows, scale, books);
        self.accounts(rows, lines);
    }

    fn complain(&mut self, condition: usize, what: impl FnOnce() -> String) {
        self.wrong[condition - 1].add(what);
    }

    /// Conditions 2 and 3.
    fn numbers(&mut self, rows: &DistrictRows) {
        let DistrictRows { id, next_order, .. } = *rows;
        let newest = rows.orders.last().map_or(0, |(order, _)| order.number);
        let pending = rows.new_orders.last().map_or(newest, |order| order.number);
        if newest + 1 != next_order || pending != newest {
            let details = || format!("{id:?}: next {next_order}, newest {newest} and {pending}");
            self.complain(2, details);
        }
        if let (Some(first), Some(last)) = (rows.new_orders.first(), rows.new_orders.last()) {
            let (numbers, there) = (last.number - first.number + 1, rows.new_orders.len());
            if numbers as usize != there {
                let details = || format!("{id:?}: {there} from {first:?} to {last:?}");
                self.complain(3, details);
            }
        }
    }

    /// Conditions 4 to 7.
    fn orders(&mut self, rows: &DistrictRows, lines: &BTreeMap<u32, Lines>) {
        let counted: u64 = rows.orders.iter().map(|(_, order)| u64::from(order.lines)).sum();
        let there = rows.order_lines.len();
        if counted != there as u64 {
            self.complain(4, || format!("{:?}: {counted} counted, {there} there", rows.id));
        }
        let mut pending: BTreeSet<u32> = rows.new_orders.iter().map(|id| id.number).collect();
        let mut orphans = lines.clone();
        for (id, order) in &rows.orders {
            let lines = orphans.remove(&id.number).unwrap_or_default();
            if pending.remove(&id.number) != order.carrier.is_none() {
                self.complain(5, || format!("{id:?} with carrier {:?}", order.carrier));
            }
            if lines.count != u64::from(order.lines) {
                self.complain(6, || format!("{id:?} has {}, not {}", lines.count, order.lines));
            }
            let delivered = if order.carrier.is_some() { lines.count } else { 0 };
            if lines.delivered != delivered {
                let details = || format!("{id:?}: {} delivered, not {delivered}", lines.delivered);
                self.complain(7, details);
            }
        }
        for number in pending {
            self.complain(5, || format!("no order for {:?}", rows.id.order(number)));
        }
        for (number, lines) in orphans {
            let order = rows.id.order(number);
            self.complain(6, || format!("no order for {} lines of {order:?}", lines.count));
        }
    }

    /// Condition 9; and what 1 and 8 need.
    fn sums(&mut self, rows: &DistrictRows) {
        let history: i64 = rows.history.iter().map(|(_, payment)| payment.amount).sum();
        if rows.ytd != history {
            self.complain(9, || format!("{:?} has {}, not {history}", rows.id, rows.ytd));
        }
        let sums = self.sums.entry(rows.id.warehouse).or_default();
        sums.ytd += rows.ytd;
        sums.history += history;
    }

    /// Condition 11. As the standard has it, it holds before the first delivery only; afterwards
    /// the deliveries that committed count, too.
    fn deliveries(&mut self, rows: &DistrictRows, scale: &Scale, books: &Books) {
        let first = u64::from(scale.first_pending() - 1);
        let times = books.deliveries_of(rows.id);
        let delivered = (rows.orders.len() as u64).wrapping_sub(rows.new_orders.len() as u64);
        if !times.allow(delivered.wrapping_sub(first)) {
            let details = || format!("{:?}: {delivered}, not {first} and {times:?}", rows.id);
            self.complain(11, details);
        }
    }

    /// What 10 and 12 need.
    fn accounts(&mut self, rows: &DistrictRows, lines: &BTreeMap<u32, Lines>) {
        for (id, row) in &rows.customers {
            let account = self.accounts.entry(*id).or_default();
            account.balance = row.balance;
            account.ytd_payment = row.ytd_payment;
        }
        for (id, order) in rows.orders.iter().filter(|(_, order)| order.carrier.is_some()) {
            let account = self.accounts.entry(rows.id.customer(order.customer)).or_default();
            account.delivered += lines.get(&id.number).map_or(0, |lines| lines.amount);
        }
        for (_, payment) in &rows.history {
            self.accounts.entry(payment.customer).or_default().paid += payment.amount;
        }
    }

    /// Conditions 1 and 8.
    pub fn warehouse(&mut self, rows: &WarehouseRows) {
        let sums = self.sums.get(&rows.id).copied().unwrap_or_default();
        let details = |sum| move || format!("{} has {}, not {sum}", rows.id, rows.ytd);
        if rows.ytd != sums.ytd {
            self.complain(1, details(sums.ytd));
        }
        if rows.ytd != sums.history {
            self.complain(8, details(sums.history));
        }
    }

    /// All twelve, once everything was looked at.
    pub fn checks(mut self) -> Vec<Check> {
        for (id, account) in std::mem::take(&mut self.accounts) {
            let ConditionAccount { balance, ytd_payment, delivered, paid } = account;
            if balance != delivered - paid {
                self.complain(10, || format!("{id:?}: {balance}, not {delivered} less {paid}"));
            }
            if balance + ytd_payment != delivered {
                let details = || format!("{id:?}: {balance} and {ytd_payment}, not {delivered}");
                self.complain(12, details);
            }
        }
        let looked = format!("{} districts, {} orders", self.districts, self.orders);
        let named = NAMES.into_iter().zip(&self.wrong);
        named.map(|(name, wrong)| Check::none_wrong(name, wrong, looked.clone())).collect()
    }
}
