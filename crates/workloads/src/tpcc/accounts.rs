//! What must hold beside the standard's conditions, from what the clients' books know and what the
//! load has written: no committed transaction is lost, none is there twice or in part.

use std::collections::BTreeMap;

use super::first;
use super::ids::{CustomerId, CustomerName, CustomerOrder, ItemId, OrderId, PaymentId, StockId};
use super::ledger::Books;
use super::rows::{CUSTOMER_DATA, Credit, Customer, Item, Order, OrderLine, Stock};
use super::scale::Scale;
use super::survey::{DistrictRows, Rows, WarehouseRows};
use crate::check::{Check, Complaints};

/// What order lines took from a row of stock during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    orders: u32,
    quantity: u64,
    remote: u32,
}

/// What a customer's row counts, and what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CountedOrders {
    payments: [u32; 2],
    deliveries: [u32; 2],
}

/// What does not hold so far.
#[derive(Debug, Default)]
pub(super) struct ExpectedTotals {
    numbered: Complaints,
    entered: Complaints,
    paid: Complaints,
    counted: Complaints,
    stocked: Complaints,
    priced: Complaints,
    indexed: Complaints,
    loaded: Complaints,
    taken: BTreeMap<StockId, Taken>,
    customers: BTreeMap<CustomerId, CountedOrders>,
    /// By writer.
    payments: BTreeMap<u32, Vec<u64>>,
    orders: u64,
}

impl ExpectedTotals {
    /// Looks at a district, before all warehouses.
    pub fn district(&mut self, rows: &DistrictRows, scale: &Scale, books: &Books) {
        self.orders(rows, scale, books);
        self.lines(rows, scale);
        self.history(rows);
        self.customers(rows, scale);
        self.indexes(rows);
    }

    /// Orders are numbered without gaps, those of the run are the committed New-Orders.
    fn orders(&mut self, rows: &DistrictRows, scale: &Scale, books: &Books) {
        let id = rows.id;
        for ((order, _), expected) in rows.orders.iter().zip(1..) {
            if order.number != expected {
                self.numbered.add(|| format!("{order:?} where {expected} should be"));
                break;
            }
        }
        let entered = (rows.orders.len() as u64).saturating_sub(scale.orders.into());
        self.orders += entered;
        let times = books.orders_of(id);
        if !times.allow(entered) {
            self.entered.add(|| format!("{id:?} has {entered} new ones, not {times:?}"));
        }
        let customers = first::customers_of_orders(scale, id);
        for ((order, row), customer) in rows.orders.iter().zip(customers) {
            let first = first::order(scale, id, order.number, customer);
            let carrier = first.carrier.or(row.carrier);
            if *row != (Order { carrier, ..first }) {
                self.loaded.add(|| format!("order {order:?}"));
            }
        }
    }

    /// What the lines take from stock, what they cost, and which of them are remote.
    fn lines(&mut self, rows: &DistrictRows, scale: &Scale) {
        let home = rows.id.warehouse;
        let mut remote: BTreeMap<u32, bool> = BTreeMap::new();
        for (id, line) in &rows.order_lines {
            *remote.entry(id.order.number).or_default() |= line.supplier != home;
            if id.order.number <= scale.orders {
                let first = first::order_line(scale, *id);
                let delivered = first.delivered.or(line.delivered);
                if *line != (OrderLine { delivered, ..first }) {
                    self.loaded.add(|| format!("order line {id:?}"));
                }
                continue;
            }
            let taken = StockId { warehouse: line.supplier, item: line.item };
            let taken = self.taken.entry(taken).or_default();
            taken.orders += 1;
            taken.quantity += u64::from(line.quantity);
            taken.remote += u32::from(line.supplier != home);
            let price = first::item(line.item).price;
            if line.amount != price * i64::from(line.quantity) {
                self.priced
                    .add(|| format!("{id:?}: {} of {price} for {}", line.quantity, line.amount));
            }
        }
        for (id, order) in &rows.orders {
            let remote = remote.get(&id.number).copied().unwrap_or_default();
            if order.all_local == remote {
                self.priced.add(|| format!("{id:?}: O_ALL_LOCAL is {}", order.all_local));
            }
        }
    }

    fn history(&mut self, rows: &DistrictRows) {
        for (id, payment) in &rows.history {
            self.customers.entry(payment.customer).or_default().payments[1] += 1;
            let PaymentId { writer, sequence, district } = *id;
            self.payments.entry(writer).or_default().push(sequence);
            let first = || first::payment(district.customer(sequence as u32));
            if writer == 0 && *payment != first() {
                self.loaded.add(|| format!("history {id:?}"));
            }
        }
    }

    fn customers(&mut self, rows: &DistrictRows, scale: &Scale) {
        let first_pending = scale.first_pending();
        let delivered = |number, carrier: Option<u8>| number >= first_pending && carrier.is_some();
        for (id, order) in &rows.orders {
            let customer = rows.id.customer(order.customer);
            let counted = self.customers.entry(customer).or_default();
            counted.deliveries[1] += u32::from(delivered(id.number, order.carrier));
        }
        for (id, row) in &rows.customers {
            let counted = self.customers.entry(*id).or_default();
            counted.payments[0] = row.payments;
            counted.deliveries[0] = row.deliveries;
            if !is_as_loaded(row, first::customer(scale, *id)) {
                self.loaded.add(|| format!("customer {id:?}"));
            }
        }
        if rows.customers.len() != scale.customers as usize {
            self.loaded.add(|| format!("{:?} has {} customers", rows.id, rows.customers.len()));
        }
        if rows.row != first::district(rows.id) {
            self.loaded.add(|| format!("district {:?}", rows.id));
        }
    }

    /// What is found by name and by customer is what is there.
    fn indexes(&mut self, rows: &DistrictRows) {
        let district = rows.id;
        let name = |(id, row): &(CustomerId, Customer)| {
            let (last, first) = (row.last.clone(), row.first.clone());
            CustomerName { district, last, first, customer: id.number }
        };
        let mut names: Vec<_> = rows.customers.iter().map(name).collect();
        names.sort_unstable();
        if names != rows.customer_names {
            self.indexed.add(|| format!("names of {district:?}"));
        }
        let order = |(id, row): &(OrderId, Order)| CustomerOrder {
            customer: district.customer(row.customer),
            order: id.number,
        };
        let mut orders: Vec<_> = rows.orders.iter().map(order).collect();
        orders.sort_unstable();
        if orders != rows.customer_orders {
            self.indexed.add(|| format!("orders by customer of {district:?}"));
        }
    }

    /// Looks at a warehouse, after all districts.
    pub fn warehouse(&mut self, rows: &WarehouseRows, scale: &Scale) {
        if rows.row != first::warehouse(rows.id) {
            self.loaded.add(|| format!("warehouse {}", rows.id));
        }
        if rows.stock.len() != scale.items as usize {
            self.stocked.add(|| format!("{} has {} rows", rows.id, rows.stock.len()));
        }
        for (id, row) in &rows.stock {
            let taken = self.taken.remove(id).unwrap_or_default();
            let Stock { quantity, ytd, orders, remote, .. } = *row;
            let details = Taken { orders, quantity: ytd, remote };
            if details != taken {
                self.stocked.add(|| format!("{id:?} says {details:?}, its lines {taken:?}"));
            }
            let first = first::stock(*id);
            let filled = i64::from(quantity) + ytd as i64 - i64::from(first.quantity);
            let can_be = filled % 91 == 0 && (0..=i64::from(orders)).contains(&(filled / 91));
            if !can_be || !(10..=100).contains(&quantity) {
                let details =
                    || format!("{id:?}: {quantity} left of {} less {ytd}", first.quantity);
                self.stocked.add(details);
            }
            if *row != (Stock { quantity, ytd, orders, remote, ..first }) {
                self.loaded.add(|| format!("stock {id:?}"));
            }
        }
    }

    /// Looks at the items, which nobody changes.
    pub fn items(&mut self, rows: &Rows<ItemId, Item>, scale: &Scale) {
        let copies = if scale.item_copies { scale.warehouses as usize } else { 1 };
        if rows.len() != scale.items as usize * copies {
            self.loaded.add(|| format!("there are {} items", rows.len()));
        }
        for (id, row) in rows {
            if *row != first::item(id.item) {
                self.loaded.add(|| format!("item {id:?}"));
            }
        }
    }

    /// The payments that are there are those that committed.
    fn payments(&mut self, scale: &Scale, books: &Books) {
        let loaded = self.payments.remove(&0).unwrap_or_default().len() as u64;
        let expected =
            u64::from(scale.warehouses) * u64::from(scale.districts) * u64::from(scale.customers);
        if loaded != expected {
            self.paid.add(|| format!("{loaded} of {expected} that were loaded"));
        }
        for (writer, (taken, failed, perhaps)) in (1..).zip(&books.payments) {
            let mut there = self.payments.remove(&writer).unwrap_or_default();
            there.sort_unstable();
            let (failed, perhaps) = (sorted(failed), sorted(perhaps));
            let mut there = there.into_iter().peekable();
            for sequence in 1..=*taken {
                let found = there.next_if_eq(&sequence).is_some();
                let may = perhaps.binary_search(&sequence).is_ok();
                let must = !may && failed.binary_search(&sequence).is_err();
                if found != must && !may {
                    let details = if found { "failed" } else { "committed" };
                    let there = if found { "there" } else { "not there" };
                    self.paid.add(|| format!("h{writer}.{sequence} {details} and is {there}"));
                }
            }
            if let Some(more) = there.next() {
                self.paid.add(|| format!("h{writer}.{more} is there twice, or from nowhere"));
            }
        }
        if let Some((writer, _)) = self.payments.first_key_value() {
            self.paid.add(|| format!("there is no client that wrote h{writer}"));
        }
    }

    /// Everything, once all was looked at.
    pub fn checks(mut self, scale: &Scale, books: &Books) -> Vec<Check> {
        self.payments(scale, books);
        for (id, CountedOrders { payments, deliveries }) in std::mem::take(&mut self.customers) {
            if payments[0] != payments[1] || deliveries[0] != deliveries[1] {
                let details = || {
                    format!("{id:?}: payments {payments:?}, deliveries {deliveries:?} (row, there)")
                };
                self.counted.add(details);
            }
        }
        for (id, taken) in std::mem::take(&mut self.taken) {
            self.stocked.add(|| format!("{id:?} is not there, and lines took {taken:?}"));
        }
        let check =
            |name, wrong: &Complaints, details: String| Check::none_wrong(name, wrong, details);
        let (entered, none) = (format!("{} entered", self.orders), String::new);
        vec![
            check("orders are numbered without gaps", &self.numbered, none()),
            check("orders are the committed New-Orders", &self.entered, entered),
            check("history rows are the committed Payments", &self.paid, none()),
            check("customers count payments and deliveries", &self.counted, none()),
            check("stock is what order lines left", &self.stocked, none()),
            check("order lines have prices and places", &self.priced, none()),
            check("customers and orders are found", &self.indexed, none()),
            check("loaded fields are as they were", &self.loaded, none()),
        ]
    }
}

fn sorted(numbers: &[u64]) -> Vec<u64> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers
}

/// Whether only that of a customer has changed which changes: what is counted, and C_DATA of those
/// with bad credit, to which something was prepended, and cut off what had no room.
fn is_as_loaded(row: &Customer, first: Customer) -> bool {
    let data = match row.credit {
        Credit::Good => row.data == first.data,
        Credit::Bad => row.data.len() == CUSTOMER_DATA || row.data.ends_with(&first.data),
    };
    let Customer { balance, ytd_payment, payments, deliveries, .. } = *row;
    let counted = Customer { balance, ytd_payment, payments, deliveries, ..first };
    data && *row == Customer { data: row.data.clone(), ..counted }
}
