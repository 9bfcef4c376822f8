//! What clients ask for, profile by profile: inputs as on the interactive API, and one call each.

use std::collections::BTreeSet;

use muesli::plans::{self, PlannedProcedure};
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
use crate::tpcc::new_order::NewOrderInput;
use crate::tpcc::payment::PaymentInput;
use crate::tpcc::plans::deliveries::{DeliveryOrder, PlannedDelivery};
use crate::tpcc::plans::orders::PlannedOrder;
use crate::tpcc::plans::payments::PlannedPayment;
use crate::tpcc::plans::reading::{
    LevelQuestion, OrderQuestion, PlannedOrderStatus, PlannedStockLevel,
};
use crate::workload::{Seat, ended};

impl Desk {
    /// Where a warehouse lives.
    fn at(&self, warehouse: u32) -> Place {
        self.terminal.tables.warehouses.place(&warehouse)
    }

    /// The fragment of a procedure at a warehouse.
    fn fragment<P: StoredProcedure>(
        &self,
        warehouse: u32,
        arguments: &P::Arguments,
    ) -> Result<Fragment, Error> {
        procedures::fragment::<P>(self.at(warehouse), arguments)
    }

    /// The same, where it is the only one.
    fn alone<P: StoredProcedure>(
        &self,
        warehouse: u32,
        arguments: &P::Arguments,
    ) -> Result<Vec<Fragment>, Error> {
        self.fragment::<P>(warehouse, arguments).map(|fragment| vec![fragment])
    }

    /// The fragments of a New-Order: at home, and at each other warehouse that supplies a line.
    fn order(&self, db: &Db, home: u32, input: NewOrderInput) -> Result<Vec<Fragment>, Error> {
        let Some(layout) = self.layout else { return db.plan_fragments::<PlannedOrder>(&input) };
        let suppliers: BTreeSet<u32> = input.lines.iter().map(|line| line.supplier).collect();
        let lines = input.lines.clone();
        let at_home = self.fragment::<NewOrder>(home, &EnteredOrder { layout, input });
        let supply = |warehouse: u32| {
            let supplied = Supplied { layout, warehouse, lines: lines.clone() };
            self.fragment::<Supply>(warehouse, &supplied)
        };
        let others = suppliers.into_iter().filter(|supplier| *supplier != home).map(supply);
        std::iter::once(at_home).chain(others).collect()
    }

    /// Those of a Payment: at home, and where the customer lives, if that is elsewhere.
    fn payment(&self, db: &Db, home: u32, input: PaymentInput) -> Result<Vec<Fragment>, Error> {
        let Some(layout) = self.layout else { return db.plan_fragments::<PlannedPayment>(&input) };
        let resident = input.resident.warehouse;
        let paid = Paid { layout, input };
        let at_home = self.fragment::<PaymentCall>(home, &paid);
        let elsewhere = (resident != home).then(|| self.fragment::<PayElsewhere>(resident, &paid));
        std::iter::once(at_home).chain(elsewhere).collect()
    }
}

/// Runs a call, and counts the attempts.
async fn invoke(db: &Db, fragments: Result<Vec<Fragment>, Error>) -> (Result<Invoked, Error>, u32) {
    match fragments {
        Ok(fragments) => db.invoke_here(Call { class: Class::Auto, fragments }).await,
        Err(error) => (Err(error), 1),
    }
}

/// What a call answered: of a plan, who knows it; else the first fragment, which ran `P`.
fn answered<P, Q>(desk: &Desk, done: Result<Invoked, Error>) -> Result<P::Answer, Error>
where
    P: StoredProcedure,
    Q: PlannedProcedure<Answer = P::Answer>,
{
    let done = done?;
    if desk.layout.is_none() {
        return plans::answer::<Q>(&done);
    }
    let missing = || Error::Codec("a call was answered without a result".to_owned());
    procedures::answer::<P>(done.results.first().ok_or_else(missing)?)
}

impl TpccProcedures {
    pub(super) async fn new_order(&self, seat: &mut Seat, desk: &Desk) -> (Ended, u32) {
        let home = desk.terminal.warehouse(&mut seat.chance);
        let entered = (seat.clock)().0 / 1_000;
        let input = self.tpcc.draw_order(home, entered, &mut seat.chance);
        let (customer, unused) = (input.customer, input.unused);
        let fragments = desk.order(&seat.db, home, input);
        seat.several = fragments.as_ref().is_ok_and(|all| all.len() > 1);
        self.ledger(seat).set_out(Update::NewOrder(customer.district));
        let (done, attempts) = invoke(&seat.db, fragments).await;
        let answer = answered::<NewOrder, PlannedOrder>(desk, done);
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
        let fragments = desk.payment(&seat.db, home, input);
        seat.several = fragments.as_ref().is_ok_and(|all| all.len() > 1);
        let (done, attempts) = invoke(&seat.db, fragments).await;
        (ended(answered::<PaymentCall, PlannedPayment>(desk, done)), attempts)
    }

    pub(super) async fn order_status(&self, seat: &mut Seat, desk: &Desk) -> (Ended, u32) {
        let home = desk.terminal.warehouse(&mut seat.chance);
        let district = self.tpcc.draw_district(home, &mut seat.chance);
        let who = self.tpcc.draw_customer(&mut seat.chance);
        let reader = &desk.terminal.reader;
        let fragments = match desk.layout {
            None => reader.plan_fragments::<PlannedOrderStatus>(&OrderQuestion { district, who }),
            Some(layout) => desk.alone::<OrderStatus>(home, &OrderAsked { layout, district, who }),
        };
        let (done, attempts) = invoke(reader, fragments).await;
        let answer = answered::<OrderStatus, PlannedOrderStatus>(desk, done);
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
        let fragments = match desk.layout {
            None => {
                let districts = (1..=districts).collect();
                let delivery = DeliveryOrder { warehouse, districts, input };
                seat.db.plan_fragments::<PlannedDelivery>(&delivery)
            }
            Some(layout) => {
                let round = DeliveryRound { layout, warehouse, districts, input };
                desk.alone::<Deliver>(warehouse, &round)
            }
        };
        // Until it is answered, any of them may have been delivered to.
        let all = self.tpcc.scale.districts_of(warehouse).collect();
        self.ledger(seat).set_out(Update::Delivery(all));
        let (done, attempts) = invoke(&seat.db, fragments).await;
        let answer = answered::<Deliver, PlannedDelivery>(desk, done);
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
        let reader = &desk.terminal.reader;
        let fragments = match desk.layout {
            None => {
                let question = LevelQuestion { district, threshold };
                reader.plan_fragments::<PlannedStockLevel>(&question)
            }
            Some(layout) => desk.alone::<StockLevel>(home, &Looked { layout, district, threshold }),
        };
        let (done, attempts) = invoke(reader, fragments).await;
        let answer = answered::<StockLevel, PlannedStockLevel>(desk, done);
        if let Ok(level) = &answer {
            self.tpcc.judge_level(seat, district, *level);
        }
        (ended(answer), attempts)
    }
}
