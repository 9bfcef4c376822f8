//! Payment as procedures: one where it is paid, and one where the customer is at home, if that is
//! another warehouse (clause 2.5).

use muesli::procedures::{Keys, StoredProcedure};
use muesli::{Refuses, Stop};
use serde::{Deserialize, Serialize};

use super::hot;
use super::lookup::{customer_number, needed};
use crate::tpcc::ids::{CustomerId, DistrictId};
use crate::tpcc::layout::Layout;
use crate::tpcc::payment::PaymentInput;
use crate::tpcc::rows::{Credit, Customer, Payment as Row};

/// A payment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Paid {
    pub layout: Layout,
    pub input: PaymentInput,
}

/// The first fields of a customer's row.
#[derive(Debug, Serialize, Deserialize)]
struct PayingAccount {
    discount: u16,
    balance: i64,
    ytd_payment: i64,
    payments: u32,
    deliveries: u32,
    credit: Credit,
}

/// Adds a payment up at its warehouse and district, and writes its history; the balance that the
/// terminal shows in cents, where the customer is from here.
pub(super) struct PaymentCall;

impl StoredProcedure for PaymentCall {
    const NAME: &'static str = "tpcc-payment";
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = Paid;
    type Answer = Option<i64>;

    fn run(keys: &mut Keys<'_>, Paid { layout, input }: Paid) -> Result<Option<i64>, Stop> {
        let home = input.district.warehouse;
        hot::add_up(keys, &layout, input.district, input.amount)?;
        let number = customer_number(keys, &layout, home, input.resident, &input.who)?;
        let customer = input.resident.customer(number);
        put_history(keys, &layout, &input, customer)?;
        let is_from_here = input.resident.warehouse == home;
        is_from_here.then(|| pay(keys, &layout, &input, customer)).transpose()
    }
}

/// Writes a payment off the balance of a customer from here that pays elsewhere; its balance.
pub(super) struct PayElsewhere;

impl StoredProcedure for PayElsewhere {
    const NAME: &'static str = "tpcc-pay-elsewhere";
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = Paid;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, Paid { layout, input }: Paid) -> Result<i64, Stop> {
        let resident = input.resident;
        let number = customer_number(keys, &layout, resident.warehouse, resident, &input.who)?;
        pay(keys, &layout, &input, resident.customer(number))
    }
}

/// Writes the row of the history, with the names of warehouse and district, which come behind the
/// taxes in their rows.
fn put_history(
    keys: &mut Keys<'_>,
    layout: &Layout,
    input: &PaymentInput,
    customer: CustomerId,
) -> Result<(), Stop> {
    let (warehouse, district) = hot::rows_of(keys, layout, input.district)?;
    let (_, warehouse): (u16, &str) = hot::warehouse(layout, &warehouse)?;
    let (_, district): (u16, &str) = hot::district(layout, &district)?;
    let data = format!("{warehouse}    {district}");
    let row = Row { customer, date: input.date, amount: input.amount, data };
    keys.write(layout.tables.history, &input.id, &row)
}

/// The customer pays; its balance.
fn pay(
    keys: &mut Keys<'_>,
    layout: &Layout,
    input: &PaymentInput,
    id: CustomerId,
) -> Result<i64, Stop> {
    change(keys, layout, id, |account, whole| match whole {
        None if account.credit == Credit::Bad => false,
        None => {
            account.balance -= input.amount;
            account.ytd_payment += input.amount;
            account.payments += 1;
            true
        }
        Some(row) => {
            row.pay(id, input.district, input.amount);
            true
        }
    })
}

/// What a customer gains by a delivery.
pub(super) fn credit(
    keys: &mut Keys<'_>,
    layout: &Layout,
    (district, customer): (DistrictId, u32),
    sum: i64,
) -> Result<(), Stop> {
    let changed = change(keys, layout, district.customer(customer), |account, _| {
        account.balance += sum;
        account.deliveries += 1;
        true
    });
    changed.map(|_| ())
}

/// Changes a customer's row, by its first fields alone if `by` can, which says so; else by the
/// whole of it. The balance.
fn change(
    keys: &mut Keys<'_>,
    layout: &Layout,
    id: CustomerId,
    by: impl Fn(&mut PayingAccount, Option<&mut Customer>) -> bool,
) -> Result<i64, Stop> {
    let space = layout.tables.customers;
    let key = keys.encoded(&id);
    let found = needed(keys, space.raw(), &key, "a customer")?;
    let (mut account, rest): (PayingAccount, _) = Keys::decode_first(&found)?;
    if by(&mut account, None) {
        let value = keys.encode_before(&account, rest)?;
        keys.put(space.raw(), key, value)?;
        return Ok(account.balance);
    }
    let mut row: Customer = Keys::decode(&found)?;
    by(&mut account, Some(&mut row));
    let value = keys.encode(&row)?;
    keys.put(space.raw(), key, value)?;
    Ok(row.balance)
}
