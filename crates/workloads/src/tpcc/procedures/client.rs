//! What clients ask for, profile by profile: inputs as on the interactive API, and one call each.

use std::collections::BTreeSet;

use muesli::procedures::{self, StoredProcedure};
use muesli::{Call, Class, Db, Error, Fragment, Invoked, Place};

use super::deliveries::{Deliver, DeliveryRound};
use super::orders::{EnteredOrder, NewOrder, Supplied, Supply};
use super::payments::{Paid, PayElsewhere, PaymentCall};
use super::reading::{Looked, OrderAsked, OrderStatus, StockLevel};
use super::{Desk, TpccProcedures};
use crate::tally::Ended;
use crate::tpcc::delivery::DeliveryInput as Delivery;
use crate::tpcc::ids::DistrictId;
use crate::tpcc::ledger::Update;
use crate::workload::{Seat, ended};

impl Desk {
    /// Where a warehouse lives.
    fn at(&self, warehouse: u32) -> Place {
        self.layout.tables.warehouses.place(&warehouse)
    }

    /// The fragment of a procedure at a warehouse.
    fn fragment<P: StoredProcedure>(
        &self,
        warehouse: u32,
        arguments: &P::Arguments,
    ) -> Result<Fragment, Error> {
        procedures::fragment::<P>(self.at(warehouse), arguments)
    }
}

/// Runs a call, and counts the attempts.
async fn invoke(db: &Db, fragments: Result<Vec<Fragment>, Error>) -> (Result<Invoked, Error>, u32) {
    match fragments {
        Ok(fragments) => db.invoke_here(Call { class: Class::Auto, fragments }).await,
        Err(error) => (Err(error), 1),
    }
}

/// What the first fragment answered, which ran `P`.
fn first<P: StoredProcedure>(done: Result<Invoked, Error>) -> Result<P::Answer, Error> {
    let done = done?;
    let missing = || Error::Codec("a call was answered without a result".to_owned());
    procedures::answer::<P>(done.results.first().ok_or_else(missing)?)
}

impl TpccProcedures {
    pub(super) async fn new_order(&self, seat: &mut Seat, desk: &Desk) -> (Ended, u32) {
        let home = desk.terminal.warehouse(&mut seat.chance);
        let entered = (seat.clock)().0 / 1_000;
        let input = self.tpcc.draw_order(home, entered, &mut seat.chance);
        let (customer, unused, layout) = (input.customer, input.unused, desk.layout);
        let suppliers: BTreeSet<u32> = input.lines.iter().map(|line| line.supplier).collect();
        let lines = input.lines.clone();
        let at_home = desk.fragment::<NewOrder>(home, &EnteredOrder { layout, input });
        let supply = |warehouse: u32| {
            let supplied = Supplied { layout, warehouse, lines: lines.clone() };
            desk.fragment::<Supply>(warehouse, &supplied)
        };
        let others = suppliers.into_iter().filter(|supplier| *supplier != home).map(supply);
        let fragments: Result<Vec<_>, _> = std::iter::once(at_home).chain(others).collect();
        seat.several = fragments.as_ref().is_ok_and(|all| all.len() > 1);
        self.ledger(seat).set_out(Update::NewOrder(customer.district));
        let (done, attempts) = invoke(&seat.db, fragments).await;
        let answer = first::<NewOrder>(done);
        let refused = matches!(answer, Err(Error::Refused(_)));
        if (unused && answer.is_ok()) || (!unused && refused) {
            let complain = || format!("an order of {customer:?}");
            self.ledger(seat).wrong_commits.add(complain);
        }
        (ended(answer), attempts)
    }

    pub(super) async fn payment(&self, seat: &mut Seat, desk: &Desk) -> (Ended, u32) {
        let home = desk.terminal.warehouse(&mut seat.chance);
        let sequence = self.ledger(seat).next_payment();
        self.ledger(seat).set_out(Update::Payment(sequence));
        let (writer, date) = (seat.client + 1, (seat.clock)().0 / 1_000);
        let input = self.tpcc.draw_payment(home, (writer, sequence), date, &mut seat.chance);
        let resident = input.resident.warehouse;
        let paid = Paid { layout: desk.layout, input };
        let mut fragments = vec![desk.fragment::<PaymentCall>(home, &paid)];
        if resident != home {
            fragments.push(desk.fragment::<PayElsewhere>(resident, &paid));
        }
        seat.several = fragments.len() > 1;
        let (done, attempts) = invoke(&seat.db, fragments.into_iter().collect()).await;
        (ended(first::<PaymentCall>(done)), attempts)
    }

    pub(super) async fn order_status(&self, seat: &mut Seat, desk: &Desk) -> (Ended, u32) {
        let home = desk.terminal.warehouse(&mut seat.chance);
        let district = self.tpcc.draw_district(home, &mut seat.chance);
        let who = self.tpcc.draw_customer(&mut seat.chance);
        let asked = OrderAsked { layout: desk.layout, district, who };
        let fragment = desk.fragment::<OrderStatus>(home, &asked);
        let (done, attempts) = invoke(&desk.terminal.reader, fragment.map(|it| vec![it])).await;
        let answer = first::<OrderStatus>(done);
        if let Ok(status) = &answer
            && let Some((number, order, lines)) = &status.newest
        {
            let delivered = lines.iter().filter(|line| line.delivered.is_some()).count();
            let counted = [lines.len(), delivered];
            self.tpcc.judge_order(seat, district.order(*number), order, counted);
        }
        (ended(answer), attempts)
    }

    pub(super) async fn delivery(&self, seat: &mut Seat, desk: &Desk) -> (Ended, u32) {
        let warehouse = desk.terminal.warehouse(&mut seat.chance);
        let districts = self.tpcc.scale.districts;
        let input = Delivery::draw(seat);
        let round = DeliveryRound { layout: desk.layout, warehouse, districts, input };
        // Until it is answered, any of them may have been delivered to.
        let all = self.tpcc.scale.districts_of(warehouse).collect();
        self.ledger(seat).set_out(Update::Delivery(all));
        let fragment = desk.fragment::<Deliver>(warehouse, &round);
        let (done, attempts) = invoke(&seat.db, fragment.map(|it| vec![it])).await;
        let answer = first::<Deliver>(done);
        if let Ok(numbers) = &answer {
            let delivered = numbers.iter().map(|&number| DistrictId { warehouse, number });
            let mut ledger = self.ledger(seat);
            ledger.set_out(Update::Delivery(delivered.collect()));
            ledger.skipped += u64::from(districts).saturating_sub(numbers.len() as u64);
        }
        (ended(answer), attempts)
    }

    pub(super) async fn stock_level(&self, seat: &mut Seat, desk: &Desk) -> (Ended, u32) {
        let home = desk.terminal.warehouse(&mut seat.chance);
        let district = self.tpcc.draw_district(home, &mut seat.chance);
        let threshold = seat.chance.between(10, 20) as u8;
        let looked = Looked { layout: desk.layout, district, threshold };
        let fragment = desk.fragment::<StockLevel>(home, &looked);
        let (done, attempts) = invoke(&desk.terminal.reader, fragment.map(|it| vec![it])).await;
        let answer = first::<StockLevel>(done);
        if let Ok(level) = &answer {
            self.tpcc.judge_level(seat, district, *level);
        }
        (ended(answer), attempts)
    }
}
