//! Order-Status: what has become of a customer's newest order (clause 2.6).

use muesli::{Error, KeyRange, Tx};
use serde::{Deserialize, Serialize};

use crate::tally::Ended;
use crate::tpcc::Tpcc;
use crate::tpcc::ids::{CustomerId, OrderId};
use crate::tpcc::rows::{Order, OrderLine};
use crate::tpcc::tables::Tables;
use crate::tpcc::terminal::{Terminal, there};
use crate::workload::{Seat, ended};

/// A line as the terminal shows it: all of it but S_DIST_xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct ShownLine {
    pub item: u32,
    pub supplier: u32,
    pub delivered: Option<u64>,
    pub quantity: u8,
    pub amount: i64,
}

/// What the terminal shows of a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct StatusAsked {
    pub balance: i64,
    /// The number of its newest order, the order, and its lines.
    pub newest: Option<(u32, Order, Vec<ShownLine>)>,
}

impl ShownLine {
    /// What is shown of a line.
    pub fn of(line: &OrderLine) -> ShownLine {
        let OrderLine { item, supplier, delivered, quantity, amount, .. } = *line;
        ShownLine { item, supplier, delivered, quantity, amount }
    }
}

impl Tpcc {
    pub(in crate::tpcc) async fn order_status(
        &self,
        seat: &mut Seat,
        terminal: &Terminal,
    ) -> (Ended, u32) {
        let warehouse = terminal.warehouse(&mut seat.chance);
        let district = self.draw_district(warehouse, &mut seat.chance);
        let who = &self.draw_customer(&mut seat.chance);
        let tables = &terminal.tables;
        let (answer, attempts) = terminal
            .reader
            .transact(async |tx| {
                let find =
                    async |tx: &Tx| tables.find_customer(tx, district, who, self.reads_each).await;
                let (customer, _) = self.nesting.part(tx, find).await?;
                let look = async |tx: &Tx| match self.reads_each {
                    true => self.newest_of_all(tx, tables, customer).await,
                    false => newest_order(tx, tables, customer).await,
                };
                let Some((id, order)) = self.nesting.part(tx, look).await? else { return Ok(None) };
                let scan =
                    async |tx: &Tx| tables.order_lines.range(tx, KeyRange::prefix(&id)).await;
                let lines = self.nesting.part(tx, scan).await?;
                Ok(Some((id, order, lines)))
            })
            .await;
        if let Ok(Some((id, order, lines))) = &answer {
            let delivered = lines.iter().filter(|(_, line)| line.delivered.is_some()).count();
            self.judge_order(seat, *id, order, [lines.len(), delivered]);
        }
        (ended(answer), attempts)
    }

    /// Reads all orders that a customer's district has at first, one after the other; its newest.
    async fn newest_of_all(
        &self,
        tx: &Tx,
        tables: &Tables,
        customer: CustomerId,
    ) -> Result<Option<(OrderId, Order)>, Error> {
        let mut newest = None;
        for id in (1..=self.scale.orders).map(|number| customer.district.order(number)) {
            let order = there(tables.orders.get(tx, &id).await?, "an order")?;
            newest = Some((id, order)).filter(|it| it.1.customer == customer.number).or(newest);
        }
        Ok(newest)
    }

    /// Complains of an order that has not the lines that it says, of which so many were found, and
    /// so many of them delivered.
    pub(in crate::tpcc) fn judge_order(
        &self,
        seat: &Seat,
        id: OrderId,
        order: &Order,
        lines: [usize; 2],
    ) {
        let wrong = torn(order, lines).map(|wrong| format!("order {id:?} {wrong}"));
        self.complain_of_snapshot(seat, wrong);
    }
}

async fn newest_order(
    tx: &Tx,
    tables: &Tables,
    customer: CustomerId,
) -> Result<Option<(OrderId, Order)>, Error> {
    let newest = KeyRange::prefix(&customer).reverse().limit(1);
    let newest = tables.customer_orders.range(tx, newest).await?;
    let Some((found, ())) = newest.first() else { return Ok(None) };
    let id = customer.district.order(found.order);
    Ok(Some((id, there(tables.orders.get(tx, &id).await?, "an order")?)))
}

/// What is wrong with an order as a snapshot has it: other lines than it says, or some that are
/// delivered though it is not.
fn torn(order: &Order, [lines, delivered]: [usize; 2]) -> Option<String> {
    if lines != usize::from(order.lines) {
        return Some(format!("has {lines} lines, not {}", order.lines));
    }
    let expected = if order.carrier.is_some() { lines } else { 0 };
    (delivered != expected).then(|| format!("has {delivered} lines delivered, not {expected}"))
}
