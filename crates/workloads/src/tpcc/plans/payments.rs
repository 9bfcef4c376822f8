//! Payment as a plan (clause 2.5), and how plans find customers.

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};

use super::layout::{
    CUSTOMER_NAMES, CUSTOMERS, DISTRICT_YTD, DISTRICTS, HISTORY, StoredSum, WAREHOUSE_YTD,
    WAREHOUSES,
};
use crate::tpcc::payment::PaymentInput;
use crate::tpcc::terminal::{Who, middle};

/// Adds a payment up at its warehouse and district, writes its history, and takes it off the
/// balance of the customer; what that was, in cents.
pub(in crate::tpcc) struct PlannedPayment;

impl PlannedProcedure for PlannedPayment {
    const NAME: &'static str = "tpcc-planned-payment";
    type Arguments = PaymentInput;
    type Answer = Option<i64>;

    fn plan(plan: &mut PlanBuilder<PaymentInput>) -> PlanValue<Option<i64>> {
        let (warehouse, district) = (arg!(plan, district.warehouse), arg!(plan, district.number));
        let (writer, sequence) = (arg!(plan, id.writer), arg!(plan, id.sequence));
        let resident = (arg!(plan, resident.warehouse), arg!(plan, resident.number));
        let number = customer_of(plan, resident);
        plan.update(WAREHOUSE_YTD, (warehouse,), (), |payment, sum, ()| add(payment, sum));
        plan.update(DISTRICT_YTD, (warehouse, district), (), |payment, sum, ()| add(payment, sum));
        let names = (
            plan.read(WAREHOUSES, (warehouse,)),
            plan.read(DISTRICTS, (warehouse, district)),
            number,
        );
        let key = (warehouse, district, writer, sequence);
        plan.insert(HISTORY, key, names, |payment, (warehouse, district, number)| {
            let warehouse = warehouse.as_ref().as_ref().map(|row| row.name.clone());
            let district = district.as_ref().as_ref().map(|row| row.name.clone());
            let names = [warehouse.unwrap_or_default(), district.unwrap_or_default()];
            payment.row(payment.resident.customer(*number), names)
        });
        let key = (resident.0, resident.1, number);
        let before = plan.read(CUSTOMERS, key);
        plan.update(CUSTOMERS, key, number, |payment, row, number| {
            let mut row = row?;
            row.pay(payment.resident.customer(*number), payment.district, payment.amount);
            Some(row)
        });
        plan.compute("balance", before, |payment, before| {
            before.as_ref().as_ref().map(|row| row.balance - payment.amount)
        })
    }
}

fn add(payment: &PaymentInput, sum: Option<StoredSum>) -> Option<StoredSum> {
    Some((i64::from_le_bytes(sum?) + payment.amount).to_le_bytes())
}

/// The number of the customer of a district that is looked for: of those with one last name, the
/// middle one by their first names (clause 2.5.2.2).
pub(super) fn customer_of<A: WithCustomer>(
    plan: &mut PlanBuilder<A>,
    (warehouse, district): (PlanValue<u32>, PlanValue<u8>),
) -> PlanValue<u32> {
    let by_name = |all: &A, ()| matches!(all.who(), Who::LastName(_));
    let named = plan.when_some((), by_name, |plan| {
        let last = plan.arg("who.last_name", |all: &A| match all.who() {
            Who::LastName(last) => last.clone(),
            Who::Number(_) => String::new(),
        });
        plan.scan(CUSTOMER_NAMES, (warehouse, district, last), RowRange::ALL)
    });
    plan.compute("customer", named, |all: &A, named| match (all.who(), named.as_ref()) {
        (Who::Number(number), _) => *number,
        (Who::LastName(_), Some(named)) => {
            named.get(middle(named.len())).map_or(0, |((.., number), ())| *number)
        }
        (Who::LastName(_), None) => 0,
    })
}

/// Arguments that look for a customer.
pub(super) trait WithCustomer: 'static {
    /// How it is looked for.
    fn who(&self) -> &Who;
}

impl WithCustomer for PaymentInput {
    fn who(&self) -> &Who {
        &self.who
    }
}
