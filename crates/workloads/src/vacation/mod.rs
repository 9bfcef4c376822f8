//! Vacation, from STAMP: customers reserve cars, flights and rooms.
//!
//! There are three tables of resources and one of customers. A task is one of
//!
//! - *make a reservation*: look at the prices of a few resources, and reserve the dearest one of
//!   each table; or only look (`reads`), read-only;
//! - *delete a customer*: give back everything that it has reserved;
//! - *update the tables*: a few resources get 100 units more and another price, or lose 100 units.
//!
//! With `delayed=true` the counts of units are changed by delayed actions and not looked at when
//! something is reserved; then more may be reserved than there is, and `free` is below zero. All
//! else holds as ever. Inputs are drawn before the first attempt.
//!
//! Different from STAMP: rows lie under their own keys instead of in trees.

mod checks;
mod rows;
mod tasks;

use muesli::{Db, Error, Index, Space, SpaceOptions};
use rows::{
    Counts, PRICE_LEAST, PRICE_STEP, ResourceRow, TABLES, customer_key, encode_entries,
    encode_price,
};

use crate::chance::Chance;
use crate::check::{Check, Complaints};
use crate::loading::write_missing;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{Seat, Workload};

const RESOURCES: &str = "resources";
const CUSTOMERS: &str = "customers";

/// What Vacation takes.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "keys",
        "1024",
        ParameterKind::Count(1, 10_000_000),
        "Resources of each table at first, and customers.",
    ),
    Parameter::new(
        "queries",
        "4",
        ParameterKind::Count(1, 1_000),
        "Most resources that a task looks at or changes; the least is 1.",
    ),
    Parameter::new("range", "90", ParameterKind::Percent, "Share of the keys that tasks use."),
    Parameter::new("users", "90", ParameterKind::Percent, "Share of tasks that make reservations."),
    Parameter::new("reads", "50", ParameterKind::Percent, "Share of those that only look."),
    Parameter::new(
        "units",
        "100",
        ParameterKind::Count(1, 1_000_000),
        "Resources have one to five times so many units at first; updates add and take as many.",
    ),
    Parameter::new(
        "delayed",
        "false",
        ParameterKind::Flag,
        "Whether counts are changed by delayed actions, without a look at what is free.",
    ),
    NESTING_BY_ROWS,
    PATIENCE,
];

/// Vacation with its parameters.
#[derive(Debug)]
pub struct Vacation {
    keys: u32,
    /// Tasks use the numbers from 1 to this.
    range: u32,
    queries: u64,
    users: f64,
    reads: f64,
    units: i64,
    delayed: bool,
    nesting: NestingPlan,
    ledgers: PerClient<VacationLedger>,
}

/// What a client remembers.
#[derive(Debug)]
pub struct VacationMemory {
    resources: Space,
    customers: Space,
    writer: PartsDb,
    reader: PartsDb,
}

/// What a transaction adds to the units in all and to the number of customers.
type Added = [i64; 2];

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
struct VacationLedger {
    /// What committed transactions added.
    sure: Added,
    /// What others may have added.
    perhaps: Vec<Added>,
    under_way: Option<Added>,
    /// Prices that were looked at.
    looks: u64,
    wrong: Complaints,
}

impl VacationLedger {
    fn begin_incarnation(&mut self) {
        self.perhaps.extend(self.under_way.take());
    }

    fn set_out(&mut self, added: Added) {
        self.under_way = Some(added);
    }

    fn settle(&mut self, ended: &Ended) {
        let added = self.under_way.take();
        match (ended, added) {
            (Ended::Committed, Some([units, customers])) => {
                self.sure = [self.sure[0] + units, self.sure[1] + customers];
            }
            (Ended::Unknown, added) => self.perhaps.extend(added),
            (Ended::Committed | Ended::RolledBack | Ended::Failed(_), _) => {}
        }
    }
}

/// A task with its inputs.
enum VacationTask {
    Look(Vec<ResourceRow>),
    Reserve(u32, Vec<ResourceRow>),
    Delete(u32),
    /// The price is for what is added; none: it is taken away.
    Update(Vec<(ResourceRow, Option<u32>)>),
}

impl Vacation {
    /// Vacation with these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> Vacation {
        let keys = values.count("keys") as u32;
        let range = (f64::from(keys) * values.number("range") / 100.0).round() as u32;
        let nesting = NestingPlan::seldom_open(values);
        Vacation {
            keys,
            range: range.max(1),
            queries: values.count("queries"),
            users: values.number("users"),
            reads: values.number("reads"),
            units: values.count("units") as i64,
            delayed: nesting.delays(values.flag("delayed")),
            nesting,
            ledgers: PerClient::new(clients, |_| VacationLedger::default()),
        }
    }

    fn resource(&self, chance: &mut Chance) -> ResourceRow {
        let table = chance.below(TABLES.into()) as u8;
        ResourceRow { table, id: self.id(chance) }
    }

    fn id(&self, chance: &mut Chance) -> u32 {
        chance.between(1, self.range.into()) as u32
    }

    fn draw(&self, chance: &mut Chance) -> VacationTask {
        let many = chance.between(1, self.queries);
        if chance.percent(self.users) {
            let looks = chance.percent(self.reads);
            let customer = self.id(chance);
            let resources = (0..many).map(|_| self.resource(chance)).collect();
            return if looks {
                VacationTask::Look(resources)
            } else {
                VacationTask::Reserve(customer, resources)
            };
        }
        if chance.percent(50.0) {
            return VacationTask::Delete(self.id(chance));
        }
        let update = |chance: &mut Chance| {
            let resource = self.resource(chance);
            (resource, chance.percent(50.0).then(|| price(chance)))
        };
        VacationTask::Update((0..many).map(|_| update(chance)).collect())
    }

    /// The resources that are there at first, with counts and prices that are the same in every
    /// run.
    fn first(&self) -> impl Iterator<Item = (ResourceRow, Counts, u32)> {
        let all = (0..TABLES).flat_map(|table| (1..=self.keys).map(move |id| (table, id)));
        all.map(|(table, id)| {
            let mut chance = Chance::new(0, id, table.into());
            let total = self.units * chance.between(1, 5) as i64;
            let counts = Counts { used: 0, free: total, total };
            (ResourceRow { table, id }, counts, price(&mut chance))
        })
    }
}

fn price(chance: &mut Chance) -> u32 {
    PRICE_LEAST + PRICE_STEP * chance.below(5) as u32
}

impl Workload for Vacation {
    type Memory = VacationMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let hash = || SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
        vec![(RESOURCES, hash()), (CUSTOMERS, hash())]
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let rows = self.first().flat_map(|(resource, counts, price)| {
            let price = (resource.price_key(), encode_price(price));
            [price, (resource.counts_key(), counts.encode())]
        });
        write_missing(db, db.space(RESOURCES)?, rows).await?;
        let customers = (1..=self.keys).map(|id| (customer_key(id), encode_entries(&[])));
        write_missing(db, db.space(CUSTOMERS)?, customers).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<VacationMemory, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        let (resources, customers) = (seat.db.space(RESOURCES)?, seat.db.space(CUSTOMERS)?);
        let writer = self.nesting.parts_handle(seat.node, &seat.db, "tasks")?;
        let reader = self.nesting.parts_handle(seat.node, &seat.db.read_only(), "looks")?;
        Ok(VacationMemory { resources, customers, writer, reader })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut VacationMemory) -> (Ended, u32) {
        let task = self.draw(&mut seat.chance);
        self.run(seat, memory, &task).await
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}
