//! Delivery: the oldest new order of each district of a warehouse, all in one transaction
//! (clause 2.7).

use futures_util::future::{try_join, try_join_all};
use muesli::{Error, KeyRange, Tx};
use serde::{Deserialize, Serialize};

use crate::tally::Ended;
use crate::tpcc::Tpcc;
use crate::tpcc::ids::DistrictId;
use crate::tpcc::ledger::Update;
use crate::tpcc::terminal::{Terminal, there};
use crate::workload::{Seat, ended};

/// What is written to the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct DeliveryInput {
    pub carrier: u8,
    pub date: u64,
}

impl DeliveryInput {
    pub(in crate::tpcc) fn draw(seat: &mut Seat) -> DeliveryInput {
        let carrier = seat.chance.between(1, 10) as u8;
        DeliveryInput { carrier, date: (seat.clock)().0 / 1_000 }
    }
}

impl Tpcc {
    pub(in crate::tpcc) async fn delivery(
        &self,
        seat: &mut Seat,
        terminal: &Terminal,
    ) -> (Ended, u32) {
        let warehouse = terminal.warehouse(&mut seat.chance);
        let input = DeliveryInput::draw(seat);
        let client = seat.client;
        let (answer, attempts) = terminal
            .writers
            .delivery
            .transact(async |tx| {
                let districts = self.scale.districts_of(warehouse);
                let found = match self.nesting.is_flat() {
                    true => {
                        try_join_all(districts.map(|it| deliver(&tx, terminal, it, input))).await?
                    }
                    // A transaction has one part at a time.
                    false => {
                        let mut found = Vec::new();
                        for district in districts {
                            let part = async |tx: &Tx| deliver(tx, terminal, district, input).await;
                            found.push(self.nesting.part(tx, part).await?);
                        }
                        found
                    }
                };
                let delivered: Vec<_> = found.into_iter().flatten().collect();
                let skipped = usize::from(self.scale.districts) - delivered.len();
                self.ledgers.of(client).set_out(Update::Delivery(delivered));
                Ok(skipped)
            })
            .await;
        if let Ok(skipped) = answer {
            self.ledgers.of(client).skipped += skipped as u64;
        }
        (ended(answer), attempts)
    }
}

/// Delivers the oldest new order of a district; `None` where there is none.
async fn deliver(
    tx: &Tx,
    terminal: &Terminal,
    district: DistrictId,
    input: DeliveryInput,
) -> Result<Option<DistrictId>, Error> {
    let tables = &terminal.tables;
    let oldest = KeyRange::prefix(&district).limit(1);
    let oldest = tables.new_orders.range(tx, oldest).await?;
    let Some(&(id, ())) = oldest.first() else { return Ok(None) };
    tables.new_orders.delete(tx, &id).await?;
    let (order, lines) =
        try_join(tables.orders.get(tx, &id), tables.order_lines.range(tx, KeyRange::prefix(&id)))
            .await?;
    let mut order = there(order, "an order")?;
    order.carrier = Some(input.carrier);
    tables.orders.put(tx, &id, &order).await?;
    let mut sum = 0;
    for (id, mut line) in lines {
        sum += line.amount;
        line.delivered = Some(input.date);
        tables.order_lines.put(tx, &id, &line).await?;
    }
    let id = district.customer(order.customer);
    let mut customer = there(tables.customers.get(tx, &id).await?, "a customer")?;
    match terminal.accounts {
        Some(accounts) => accounts.add(tx, &id, [sum, 0, 0], false).await?,
        None => customer.balance += sum,
    }
    customer.deliveries += 1;
    tables.customers.put(tx, &id, &customer).await?;
    Ok(Some(district))
}
