//! TPC-C as [plans](muesli::plans): the five transactions as steps, of which class, footprint and
//! fragments are derived.
//!
//! All rows of a warehouse are of one unit. Three tables that nobody writes are everywhere: items,
//! the half of a row of stock that never changes, which an order line of another warehouse shows,
//! and the customers by their names, of which the history has the number. As the standard has its
//! rows, those two would have to cross between warehouses, and neither New-Order nor Payment would
//! be of one round.
//!
//! Keys and rows are those of [the other workloads](super), and so are loads, draws and checks;
//! [`procedures`](super::procedures) has the same written by hand, with a copy of what never
//! changes at each warehouse.

pub(super) mod deliveries;
pub(crate) mod layout;
pub(super) mod orders;
pub(super) mod payments;
pub(super) mod reading;
#[cfg(test)]
mod tests;

use muesli::Procedures;
use muesli::plans::{PlannedProcedureError, with};

use crate::workload::{ExplainsPlan, explained};
use deliveries::PlannedDelivery;
use orders::PlannedOrder;
use payments::PlannedPayment;
use reading::{PlannedOrderStatus, PlannedStockLevel};

/// The names of the plans, each with what says what is derived of it.
pub const EXPLAINED: &[(&str, ExplainsPlan)] = explained! {
    PlannedOrder PlannedPayment PlannedOrderStatus PlannedDelivery PlannedStockLevel
};

/// The plans.
///
/// # Errors
/// One of them cannot be in one round.
pub fn procedures() -> Result<Procedures, PlannedProcedureError> {
    let orders = with::<PlannedOrder>(Procedures::default())?;
    let reading = with::<PlannedOrderStatus>(with::<PlannedPayment>(orders)?)?;
    with::<PlannedDelivery>(with::<PlannedStockLevel>(reading)?)
}
