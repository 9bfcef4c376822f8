//! Payment: a customer pays, and warehouse and district add it up (clause 2.5).
//!
//! What they add up is looked at by nobody here: this is the hot spot that delayed actions take
//! away (Bumper, section VI).

use futures_util::future::try_join3;
use muesli::{Error, Tx};
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::tally::Ended;
use crate::tpcc::Tpcc;
use crate::tpcc::ids::{CustomerId, DistrictId, PaymentId};
use crate::tpcc::ledger::Update;
use crate::tpcc::rows::{CUSTOMER_DATA, Credit, Customer, Payment};
use crate::tpcc::terminal::{Terminal, Who, there};
use crate::workload::{Seat, ended, transact};

/// A payment as it was keyed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) struct PaymentInput {
    /// The district that is paid.
    pub district: DistrictId,
    /// The customer's.
    pub resident: DistrictId,
    pub who: Who,
    pub amount: i64,
    pub id: PaymentId,
    pub date: u64,
}

impl Tpcc {
    pub(in crate::tpcc) async fn payment(
        &self,
        seat: &mut Seat,
        terminal: &Terminal,
    ) -> (Ended, u32) {
        let warehouse = terminal.warehouse(&mut seat.chance);
        let sequence = self.ledgers.of(seat.client).next_payment();
        self.ledgers.of(seat.client).set_out(Update::Payment(sequence));
        let (writer, date) = (seat.client + 1, (seat.clock)().0 / 1_000);
        let input = &self.draw_payment(warehouse, (writer, sequence), date, &mut seat.chance);
        let (answer, attempts) =
            transact(&seat.db, async |tx| self.pay(tx, terminal, input).await).await;
        (ended(answer), attempts)
    }

    pub(in crate::tpcc) fn draw_payment(
        &self,
        warehouse: u32,
        (writer, sequence): (u32, u64),
        date: u64,
        chance: &mut Chance,
    ) -> PaymentInput {
        let district = self.draw_district(warehouse, chance);
        let resident = if chance.percent(self.remote_payments) && self.scale.warehouses > 1 {
            let other = self.draw_other_warehouse(warehouse, chance);
            self.draw_district(other, chance)
        } else {
            district
        };
        let (who, amount) = (self.draw_customer(chance), chance.between(100, 500_000) as i64);
        PaymentInput {
            district,
            resident,
            who,
            amount,
            id: PaymentId { district, writer, sequence },
            date,
        }
    }

    /// The balance that the terminal shows, in cents; that of the load where balances are apart.
    async fn pay(&self, tx: &Tx, terminal: &Terminal, input: &PaymentInput) -> Result<i64, Error> {
        let (tables, district, amount) = (&terminal.tables, input.district, input.amount);
        let (warehouse, district_row, (id, mut customer)) = try_join3(
            tables.warehouses.get(tx, &district.warehouse),
            tables.districts.get(tx, &district),
            tables.find_customer(tx, input.resident, &input.who, self.reads_each),
        )
        .await?;
        tables.warehouse_ytd.add(tx, &district.warehouse, amount, self.delayed).await?;
        tables.district_ytd.add(tx, &district, amount, self.delayed).await?;
        if let Some(accounts) = terminal.accounts {
            accounts.add(tx, &id, [-amount, amount, 1], self.delayed).await?;
        } else {
            customer.pay(id, district, amount);
            tables.customers.put(tx, &id, &customer).await?;
        }
        let warehouse = there(warehouse, "a warehouse")?.name;
        let data = format!("{warehouse}    {}", there(district_row, "a district")?.name);
        let payment = Payment { customer: id, date: input.date, amount, data };
        tables.history.put(tx, &input.id, &payment).await?;
        Ok(customer.balance)
    }
}

impl Customer {
    /// The customer pays this amount to a district.
    pub(in crate::tpcc) fn pay(&mut self, id: CustomerId, district: DistrictId, amount: i64) {
        self.balance -= amount;
        self.ytd_payment += amount;
        self.payments += 1;
        if self.credit == Credit::Bad {
            let CustomerId { district: home, number } = id;
            let paid = format!(
                "{number} {} {} {} {} {}.{:02} ",
                home.number,
                home.warehouse,
                district.number,
                district.warehouse,
                amount / 100,
                amount % 100,
            );
            self.data.insert_str(0, &paid);
            self.data.truncate(CUSTOMER_DATA);
        }
    }
}
