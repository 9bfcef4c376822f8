//! A client of TPC-C: its tables, its warehouse, and how it finds customers.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use muesli::{Db, Error, Key, KeyRange, Tx};
use muesli_core::parts::locator::Static;
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::parted::PartsDb;
use crate::tpcc::draws::{self, When};
use crate::tpcc::ids::{CustomerId, DistrictId};
use crate::tpcc::mix::{self, Mix, Profile};
use crate::tpcc::rows::Customer;
use crate::tpcc::scale::Scale;
use crate::tpcc::tables::{Accounts, Tables};
use crate::tpcc::{Home, Tpcc};
use crate::workload::{Pause, Seat};

/// What a client of TPC-C remembers.
#[derive(Debug)]
pub struct Terminal {
    pub(in crate::tpcc) tables: Tables,
    /// For each of the profiles that write, by which their parts are told apart.
    pub(in crate::tpcc) writers: Writers,
    pub(in crate::tpcc) reader: PartsDb,
    /// Where what customers have paid is apart from their rows.
    pub(in crate::tpcc) accounts: Option<Accounts>,
    /// The warehouses that it works for, one of which is drawn each time.
    homes: Vec<u32>,
    /// What it has keyed in, where it waited for that.
    keyed: Rc<Cell<Option<Profile>>>,
}

/// Handles for profiles that write.
#[derive(Debug)]
pub(in crate::tpcc) struct Writers {
    pub new_order: PartsDb,
    pub payment: PartsDb,
    pub delivery: PartsDb,
}

/// How a customer is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcc) enum Who {
    Number(u32),
    LastName(String),
}

impl Terminal {
    /// The terminal of a seat; it waits as the workload wants it to.
    pub(in crate::tpcc) fn begin(
        tpcc: &Tpcc,
        seat: &mut Seat,
        tables: Tables,
    ) -> Result<Terminal, Error> {
        let homes = homes(tpcc, seat, &tables);
        let keyed = Rc::default();
        if tpcc.think > 0.0 {
            seat.pause = Some(waits(tpcc, seat.db.clone(), seat.pause.take(), &keyed));
        }
        let accounts = tpcc.scale.balance_apart.then(|| Accounts::of(&seat.db)).transpose()?;
        let handle = |db: &Db, place| tpcc.nesting.parts_handle(seat.node, db, place);
        let writers = Writers {
            new_order: handle(&seat.db, "new-orders")?,
            payment: handle(&seat.db, "payments")?,
            delivery: handle(&seat.db, "deliveries")?,
        };
        let reader = handle(&seat.db.read_only(), "looks")?;
        Ok(Terminal { tables, writers, reader, accounts, homes, keyed })
    }

    /// What it runs next.
    pub(in crate::tpcc) fn next_profile(&self, mix: &Mix, chance: &mut Chance) -> Profile {
        self.keyed.take().unwrap_or_else(|| mix.draw(chance))
    }

    /// The warehouse of the next transaction.
    pub(in crate::tpcc) fn warehouse(&self, chance: &mut Chance) -> u32 {
        self.homes[chance.below(self.homes.len() as u64) as usize]
    }
}

/// The warehouses of a seat.
fn homes(tpcc: &Tpcc, seat: &Seat, tables: &Tables) -> Vec<u32> {
    let all: Vec<u32> = tpcc.scale.all_warehouses().collect();
    let by_number = |among: &[u32]| vec![among[seat.client as usize % among.len()]];
    match tpcc.home {
        Home::Any => all,
        Home::Client => by_number(&all),
        Home::Node => {
            let (catalog, space) = (seat.db.catalog_of_keys(), tables.warehouses.raw().id());
            let held = |warehouse: &u32| {
                let partition = catalog.partition(space, &warehouse.encoded());
                Static
                    .replicas_of(partition, &catalog)
                    .any(|replica| catalog.home(replica) == seat.node)
            };
            let held: Vec<u32> = all.iter().copied().filter(held).collect();
            if held.is_empty() { by_number(&all) } else { held }
        }
    }
}

/// Waits between transactions, after what the driver does there.
fn waits(tpcc: &Tpcc, db: Db, driver: Option<Pause>, keyed: &Rc<Cell<Option<Profile>>>) -> Pause {
    let (mix, factor, keyed, last) = (tpcc.mix, tpcc.think, keyed.clone(), Cell::new(None));
    Box::new(move |chance: &mut Chance| {
        let next = mix.draw(chance);
        keyed.set(Some(next));
        let seconds = mix::wait(last.replace(Some(next)), next, chance) * factor;
        let (before, db) = (driver.as_ref().map(|pause| pause(chance)), db.clone());
        Box::pin(async move {
            if let Some(before) = before {
                before.await;
            }
            // A closed database is noticed by the transaction that follows.
            let _ = db.sleep(Duration::from_secs_f64(seconds)).await;
        })
    })
}

impl Tpcc {
    /// Notes what is wrong with a snapshot that a client has seen, if anything is.
    pub(in crate::tpcc) fn complain_of_snapshot(&self, seat: &Seat, wrong: Option<String>) {
        if let Some(wrong) = wrong {
            self.ledgers.of(seat.client).wrong_snapshots.add(|| wrong);
        }
    }

    /// A customer to look for.
    pub(in crate::tpcc) fn draw_customer(&self, chance: &mut Chance) -> Who {
        let Scale { customers, .. } = self.scale;
        if chance.percent(self.by_name) {
            let number = draws::name(self.scale.names(), When::Run, chance);
            Who::LastName(draws::last_name(number))
        } else {
            Who::Number(draws::customer(customers, chance))
        }
    }

    /// One of a warehouse's districts.
    pub(in crate::tpcc) fn draw_district(&self, warehouse: u32, chance: &mut Chance) -> DistrictId {
        let number = chance.between(1, self.scale.districts.into()) as u8;
        DistrictId { warehouse, number }
    }

    /// Another warehouse than this one, if there is any.
    pub(in crate::tpcc) fn draw_other_warehouse(&self, than: u32, chance: &mut Chance) -> u32 {
        if self.scale.warehouses == 1 {
            return than;
        }
        let other = chance.between(1, u64::from(self.scale.warehouses) - 1) as u32;
        if other < than { other } else { other + 1 }
    }
}

impl Tables {
    /// The customer that is looked for: of those with one last name, the middle one by their
    /// first names (clause 2.5.2.2). With `each`, all of those are read.
    pub(in crate::tpcc) async fn find_customer(
        &self,
        tx: &Tx,
        district: DistrictId,
        who: &Who,
        each: bool,
    ) -> Result<(CustomerId, Customer), Error> {
        let number = match who {
            Who::Number(number) => *number,
            Who::LastName(last) => {
                let range = KeyRange::prefix(&(district, last.as_str()));
                let named = self.customer_names.range(tx, range).await?;
                for (name, ()) in named.iter().filter(|_| each) {
                    self.customers.get(tx, &district.customer(name.customer)).await?;
                }
                there(named.get(middle(named.len())), "a customer's name")?.0.customer
            }
        };
        let id = district.customer(number);
        let row = self.customers.get(tx, &id).await?;
        Ok((id, there(row, "a customer")?))
    }
}

/// The place of the middle one of so many.
pub(in crate::tpcc) fn middle(count: usize) -> usize {
    count.div_ceil(2).saturating_sub(1)
}

/// What must be there.
///
/// # Errors
/// It is not.
pub(in crate::tpcc) fn there<T>(found: Option<T>, what: &str) -> Result<T, Error> {
    found.ok_or_else(|| Error::Codec(format!("{what} is missing")))
}
