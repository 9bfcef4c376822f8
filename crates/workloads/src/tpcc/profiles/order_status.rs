//! Order-Status: what has become of a customer's newest order (clause 2.6).

use muesli::{Error, KeyRange, Tx};

use crate::tally::Ended;
use crate::tpcc::Tpcc;
use crate::tpcc::ids::{DistrictId, LineId, OrderId};
use crate::tpcc::rows::{Order, OrderLine};
use crate::tpcc::terminal::{Terminal, Who, there};
use crate::workload::{Seat, ended, transact};

/// An order and its lines, as one snapshot has them.
type Status = Option<(OrderId, Order, Vec<(LineId, OrderLine)>)>;

impl Tpcc {
    pub(in crate::tpcc) async fn order_status(
        &self,
        seat: &mut Seat,
        terminal: &Terminal,
    ) -> (Ended, u32) {
        let warehouse = terminal.warehouse(&mut seat.chance);
        let district = self.draw_district(warehouse, &mut seat.chance);
        let who = &self.draw_customer(&mut seat.chance);
        let (answer, attempts) = transact(&terminal.reader, async |tx| match self.reads_each {
            true => self.newest_of_all(tx, terminal, district, who).await,
            false => newest_order(tx, terminal, district, who).await,
        })
        .await;
        if let Ok(Some((id, order, lines))) = &answer {
            let delivered = lines.iter().filter(|(_, line)| line.delivered.is_some()).count();
            self.judge_order(seat, *id, order, [lines.len(), delivered]);
        }
        (ended(answer), attempts)
    }

    /// Reads all orders that a district has at first, one after the other; the customer's newest.
    async fn newest_of_all(
        &self,
        tx: &Tx,
        terminal: &Terminal,
        district: DistrictId,
        who: &Who,
    ) -> Result<Status, Error> {
        let tables = &terminal.tables;
        let (customer, _) = tables.find_customer(tx, district, who, true).await?;
        let mut newest = None;
        for id in (1..=self.scale.orders).map(|number| district.order(number)) {
            let order = there(tables.orders.get(tx, &id).await?, "an order")?;
            newest = Some((id, order)).filter(|it| it.1.customer == customer.number).or(newest);
        }
        let Some((id, order)) = newest else { return Ok(None) };
        let lines = tables.order_lines.range(tx, KeyRange::prefix(&id)).await?;
        Ok(Some((id, order, lines)))
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
        if let Some(wrong) = torn(order, lines) {
            let complain = || format!("order {id:?} {wrong}");
            self.ledgers.of(seat.client).wrong_snapshots.add(complain);
        }
    }
}

async fn newest_order(
    tx: &Tx,
    terminal: &Terminal,
    district: DistrictId,
    who: &Who,
) -> Result<Status, Error> {
    let tables = &terminal.tables;
    let (customer, _) = tables.find_customer(tx, district, who, false).await?;
    let newest = KeyRange::prefix(&customer).reverse().limit(1);
    let newest = tables.customer_orders.range(tx, newest).await?;
    let Some((found, ())) = newest.first() else { return Ok(None) };
    let id = district.order(found.order);
    let order = there(tables.orders.get(tx, &id).await?, "an order")?;
    let lines = tables.order_lines.range(tx, KeyRange::prefix(&id)).await?;
    Ok(Some((id, order, lines)))
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
