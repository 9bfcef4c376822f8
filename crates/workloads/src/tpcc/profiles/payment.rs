//! Payment: a customer pays, and warehouse and district add it up (clause 2.5).
//!
//! What they add up is looked at by nobody here: this is the hot spot that delayed actions take
//! away (Bumper, section VI).

use futures_util::future::try_join3;
use muesli::{Error, Tx};
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::parted::PartsTx;
use crate::tally::Ended;
use crate::tpcc::Tpcc;
use crate::tpcc::ids::{CustomerId, DistrictId, PaymentId};
use crate::tpcc::ledger::Update;
use crate::tpcc::rows::{CUSTOMER_DATA, Credit, Customer, Payment};
use crate::tpcc::terminal::{Terminal, Who, there};
use crate::workload::{Seat, ended};

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
        let (answer, attempts) = terminal
            .writers
            .payment
            .transact(async |tx| match self.nesting.is_flat() {
                true => self.pay(&tx, terminal, input).await,
                false => self.pay_in_parts(tx, terminal, input).await,
            })
            .await;
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
        self.take_from(tx, terminal, input, (id, &mut customer)).await?;
        let warehouse = there(warehouse, "a warehouse")?.name;
        let names = [warehouse, there(district_row, "a district")?.name];
        tables.history.put(tx, &input.id, &input.row(id, names)).await?;
        Ok(customer.balance)
    }

    /// The same, with a part for the customer, the district and the warehouse, which most others
    /// want: the hottest comes last.
    async fn pay_in_parts(
        &self,
        tx: PartsTx<'_>,
        terminal: &Terminal,
        input: &PaymentInput,
    ) -> Result<i64, Error> {
        let (tables, district, amount) = (&terminal.tables, input.district, input.amount);
        let pay = async |tx: &Tx| {
            let (id, mut customer) =
                tables.find_customer(tx, input.resident, &input.who, self.reads_each).await?;
            self.take_from(tx, terminal, input, (id, &mut customer)).await?;
            Ok((id, customer.balance))
        };
        let (id, balance) = self.nesting.part(tx, pay).await?;
        let add_to_district = async |tx: &Tx| {
            tables.district_ytd.add(tx, &district, amount, self.delayed).await?;
            Ok(there(tables.districts.get(tx, &district).await?, "a district")?.name)
        };
        let district_name = self.nesting.part(tx, add_to_district).await?;
        let add_to_warehouse = async |tx: &Tx| {
            let warehouse = &district.warehouse;
            tables.warehouse_ytd.add(tx, warehouse, amount, self.delayed).await?;
            Ok(there(tables.warehouses.get(tx, warehouse).await?, "a warehouse")?.name)
        };
        let warehouse_name = self.nesting.part(tx, add_to_warehouse).await?;
        let row = input.row(id, [warehouse_name, district_name]);
        let put = async |tx: &Tx| tables.history.put(tx, &input.id, &row).await;
        self.nesting.rest(tx, put).await?;
        Ok(balance)
    }

    async fn take_from(
        &self,
        tx: &Tx,
        terminal: &Terminal,
        input: &PaymentInput,
        (id, customer): (CustomerId, &mut Customer),
    ) -> Result<(), Error> {
        let amount = input.amount;
        if let Some(accounts) = terminal.accounts {
            return accounts.add(tx, &id, [-amount, amount, 1], self.delayed).await;
        }
        customer.pay(id, input.district, amount);
        terminal.tables.customers.put(tx, &id, customer).await
    }
}

impl PaymentInput {
    /// Its row, with the names of warehouse and district.
    pub(in crate::tpcc) fn row(
        &self,
        customer: CustomerId,
        [warehouse, district]: [String; 2],
    ) -> Payment {
        let data = format!("{warehouse}    {district}");
        Payment { customer, date: self.date, amount: self.amount, data }
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
