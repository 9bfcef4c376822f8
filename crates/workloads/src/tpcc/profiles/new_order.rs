//! New-Order: a customer orders items, most of them from the own warehouse (clause 2.4).

use std::collections::BTreeMap;

use futures_util::future::{try_join, try_join3, try_join5};
use muesli::{Error, Tx};
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::parted::PartsTx;
use crate::tally::Ended;
use crate::tpcc::ids::{CustomerId, CustomerOrder, DistrictId, ItemId, LineId, StockId};
use crate::tpcc::ledger::Update;
use crate::tpcc::rows::{Order, OrderLine, Stock};
use crate::tpcc::terminal::{Terminal, there};
use crate::tpcc::{Tpcc, draws};
use crate::workload::{Seat, ended};

/// A line as it was keyed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct Wanted {
    pub item: u32,
    pub supplier: u32,
    pub quantity: u8,
}

/// An order as it was keyed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct NewOrderInput {
    pub customer: CustomerId,
    pub lines: Vec<Wanted>,
    /// Whether the last line's item is none.
    pub unused: bool,
    pub entered: u64,
}

/// What is told when an item is not there.
pub(in crate::tpcc) const UNUSED: &str = "item number is not valid";

impl Tpcc {
    pub(in crate::tpcc) async fn new_order(
        &self,
        seat: &mut Seat,
        terminal: &Terminal,
    ) -> (Ended, u32) {
        let warehouse = terminal.warehouse(&mut seat.chance);
        let entered = (seat.clock)().0 / 1_000;
        let input = &self.draw_order(warehouse, entered, &mut seat.chance);
        let client = seat.client;
        let (answer, attempts) = terminal
            .writers
            .new_order
            .transact(async |tx| {
                self.ledgers.of(client).set_out(Update::NewOrder(input.customer.district));
                match self.nesting.is_flat() {
                    true => self.enter_order(&tx, terminal, input).await,
                    false => self.enter_in_parts(tx, terminal, input).await,
                }
            })
            .await;
        if input.unused && answer.is_ok() {
            let complain = || format!("an order of {:?}", input.customer);
            self.ledgers.of(client).wrong_commits.add(complain);
        }
        (ended(answer), attempts)
    }

    pub(in crate::tpcc) fn draw_order(
        &self,
        warehouse: u32,
        entered: u64,
        chance: &mut Chance,
    ) -> NewOrderInput {
        let district = self.draw_district(warehouse, chance);
        let customer = district.customer(draws::customer(self.scale.customers, chance));
        let line = |chance: &mut Chance| {
            let remote = chance.percent(self.remote_items);
            let supplier =
                if remote { self.draw_other_warehouse(warehouse, chance) } else { warehouse };
            let (item, quantity) = (draws::item(self.scale.items, chance), chance.between(1, 10));
            Wanted { item, supplier, quantity: quantity as u8 }
        };
        let mut lines: Vec<_> = (0..chance.between(5, 15)).map(|_| line(chance)).collect();
        let unused = chance.percent(self.rollbacks);
        if let Some(last) = lines.last_mut().filter(|_| unused) {
            last.item = 0;
        }
        NewOrderInput { customer, lines, unused, entered }
    }

    /// The total that the terminal shows, in cents.
    async fn enter_order(
        &self,
        tx: &Tx,
        terminal: &Terminal,
        input: &NewOrderInput,
    ) -> Result<i64, Error> {
        let (tables, district) = (&terminal.tables, input.customer.district);
        let items: Vec<_> = input.lines.iter().map(|line| self.item(district, line.item)).collect();
        let stocks: BTreeMap<_, ()> = input.lines.iter().map(|line| (line.stock(), ())).collect();
        let stocks: Vec<_> = stocks.into_keys().collect();
        let (warehouse, district_row, next, customer, (items, rows)) = try_join5(
            tables.warehouses.get(tx, &district.warehouse),
            tables.districts.get(tx, &district),
            tables.next_order.get(tx, &district),
            tables.customers.get(tx, &input.customer),
            try_join(tables.items.get_many(tx, &items), tables.stock.get_many(tx, &stocks)),
        )
        .await?;
        let number = there(next, "D_NEXT_O_ID")?;
        let mut stock = stocks.into_iter().zip(rows).collect::<BTreeMap<_, _>>();
        tables.next_order.put(tx, &district, &(number + 1)).await?;
        let mut sum = 0;
        for ((line, item), place) in input.lines.iter().zip(items).zip(1..) {
            let price = item.ok_or_else(|| Error::rollback(UNUSED))?.price;
            let id = LineId { order: district.order(number), number: place };
            let stock = stock.get_mut(&line.stock()).and_then(Option::as_mut);
            let row = line.deliver(district, there(stock, "stock")?, price);
            sum += row.amount;
            tables.order_lines.put(tx, &id, &row).await?;
        }
        for (id, row) in &stock {
            tables.stock.put(tx, id, there(row.as_ref(), "stock")?).await?;
        }
        self.put_order(tx, terminal, input, number).await?;
        let (warehouse, row) =
            (there(warehouse, "a warehouse")?, there(district_row, "a district")?);
        Ok(total(sum, there(customer, "a customer")?.discount, [warehouse.tax, row.tax]))
    }

    /// The same, with a part for what is read of the order's head, its number, and each line.
    async fn enter_in_parts(
        &self,
        tx: PartsTx<'_>,
        terminal: &Terminal,
        input: &NewOrderInput,
    ) -> Result<i64, Error> {
        let (tables, district) = (&terminal.tables, input.customer.district);
        let read_head = async |tx: &Tx| {
            try_join3(
                tables.warehouses.get(tx, &district.warehouse),
                tables.districts.get(tx, &district),
                tables.customers.get(tx, &input.customer),
            )
            .await
        };
        let (warehouse, row, customer) = self.nesting.part(tx, read_head).await?;
        let take_number = async |tx: &Tx| {
            let number = there(tables.next_order.get(tx, &district).await?, "D_NEXT_O_ID")?;
            tables.next_order.put(tx, &district, &(number + 1)).await?;
            Ok(number)
        };
        let number = self.nesting.part(tx, take_number).await?;
        let mut sum = 0;
        for (line, place) in input.lines.iter().zip(1..) {
            let id = LineId { order: district.order(number), number: place };
            let enter = async |tx: &Tx| {
                let (item, stock) = (self.item(district, line.item), line.stock());
                let (item, row) =
                    try_join(tables.items.get(tx, &item), tables.stock.get(tx, &stock)).await?;
                let price = item.ok_or_else(|| Error::rollback(UNUSED))?.price;
                let mut left = there(row, "stock")?;
                let row = line.deliver(district, &mut left, price);
                tables.stock.put(tx, &stock, &left).await?;
                tables.order_lines.put(tx, &id, &row).await?;
                Ok(row.amount)
            };
            sum += self.nesting.part(tx, enter).await?;
        }
        let put = async |tx: &Tx| self.put_order(tx, terminal, input, number).await;
        self.nesting.rest(tx, put).await?;
        let (warehouse, row) = (there(warehouse, "a warehouse")?, there(row, "a district")?);
        Ok(total(sum, there(customer, "a customer")?.discount, [warehouse.tax, row.tax]))
    }

    async fn put_order(
        &self,
        tx: &Tx,
        terminal: &Terminal,
        input: &NewOrderInput,
        number: u32,
    ) -> Result<(), Error> {
        let (tables, customer) = (&terminal.tables, input.customer);
        let id = customer.district.order(number);
        tables.orders.put(tx, &id, &input.order()).await?;
        tables.new_orders.put(tx, &id, &()).await?;
        tables.customer_orders.put(tx, &CustomerOrder { customer, order: number }, &()).await
    }

    /// The copy of an item that a district uses.
    pub(in crate::tpcc) fn item(&self, district: DistrictId, item: u32) -> ItemId {
        let warehouse = if self.scale.item_copies { district.warehouse } else { 0 };
        ItemId { warehouse, item }
    }
}

impl NewOrderInput {
    /// Its row.
    pub(in crate::tpcc) fn order(&self) -> Order {
        let CustomerId { district, number: customer } = self.customer;
        Order {
            customer,
            entered: self.entered,
            carrier: None,
            lines: self.lines.len() as u8,
            all_local: self.lines.iter().all(|line| line.supplier == district.warehouse),
        }
    }
}

/// What the customer pays in cents for lines of this sum, with its discount and the taxes of
/// warehouse and district.
pub(in crate::tpcc) fn total(sum: i64, discount: u16, taxes: [u16; 2]) -> i64 {
    let discount = 10_000 - i64::from(discount);
    let taxes = 10_000 + i64::from(taxes[0]) + i64::from(taxes[1]);
    sum * discount / 10_000 * taxes / 10_000
}

impl Wanted {
    pub(in crate::tpcc) fn stock(&self) -> StockId {
        StockId { warehouse: self.supplier, item: self.item }
    }

    /// Takes the line from stock.
    fn deliver(&self, district: DistrictId, stock: &mut Stock, price: i64) -> OrderLine {
        stock.take(self.quantity, self.supplier != district.warehouse);
        OrderLine {
            item: self.item,
            supplier: self.supplier,
            delivered: None,
            quantity: self.quantity,
            amount: i64::from(self.quantity) * price,
            district_info: stock.district_info(district.number),
        }
    }
}
