//! Vacation on home copies: each copy is a small agency with tables of its own.
//!
//! A task makes a reservation: it asks for the prices of `keys` resources, drawn from as many of
//! each table, and reserves the dearest one of each table for a customer. A read-only one stops
//! after the prices. A local update reserves and writes its private key; a remote one asks another
//! agency for the prices and writes its private key there. Each number of a resource (used, free,
//! total, price) is a row of its own, as in the port. The other tasks (`users` says how many make
//! reservations) count resources by a delayed action on a row that nobody reads: the only delayed
//! action of the port's Vacation.
//!
//! Numbers are drawn from 0 and rows are numbered from 1, so that one of the numbers has no
//! resource, and the last row is never asked for; the port has it so. A customer's row counts its
//! reservations of each table; the port appends them to a list.

mod updates;

use muesli::{Db, Error, Space, SpaceOptions, Tx};

use super::ledger::Ledgers;
use super::rows::{eight_bytes, key, number};
use super::{HOMES, Homes, PRIVATE};
use crate::chance::Chance;
use crate::check::{Check, Complaints};
use crate::loading::write_missing;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb, PartsTx};
use crate::reading::read_many;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};
use updates::{HomeAttempt, decode_held, encode_held};

const SPACE: &str = "home-vacation";
const TABLES: u32 = 3;
/// Kinds of rows: of the agency, its manager (never changes) and its count of resources; of a
/// resource, whether it is there, its numbers and its price; of a customer, whether it is there,
/// and its reservations.
const MANAGER: u8 = b'm';
const RESOURCES: u8 = b'#';
const THERE: u8 = b'o';
const USED: u8 = b'u';
const FREE: u8 = b'f';
const TOTAL: u8 = b't';
const PRICE: u8 = b'$';
const CUSTOMER: u8 = b'c';
const HELD: u8 = b'h';
/// What the count of resources is at first.
const RESOURCES_FIRST: i64 = 100;
/// Which of the ledger's sums is which.
const RESERVED: usize = 0;
const COUNTED: usize = 1;

/// What Vacation on home copies takes.
pub const PARAMETERS: &[Parameter] = &[
    HOMES,
    Parameter::new(
        "keys",
        "8",
        ParameterKind::Count(2, 100_000),
        "Resources of each table, customers, and resources that a task asks for.",
    ),
    Parameter::new("users", "98", ParameterKind::Percent, "Share of tasks that make reservations."),
    Parameter::new(
        "reads",
        "51",
        ParameterKind::Percent,
        "Share of those that only ask for prices.",
    ),
    Parameter::new(
        "remote",
        "5",
        ParameterKind::Percent,
        "Share of updates that use another copy.",
    ),
    Parameter::new(
        "units",
        "100",
        ParameterKind::Count(1, 1_000_000_000),
        "Resources have one to five times so many units at first.",
    ),
    Parameter::new(
        "delayed",
        "true",
        ParameterKind::Flag,
        "Whether resources are counted by delayed actions, or by a read and a write.",
    ),
    NESTING_BY_ROWS,
    PATIENCE,
];

/// Vacation on home copies.
#[derive(Debug)]
pub struct HomeVacation {
    homes: Homes,
    count: u32,
    users: f64,
    reads: f64,
    remote: f64,
    units: i64,
    delayed: bool,
    nesting: NestingPlan,
    ledgers: Ledgers,
}

/// What a client remembers.
#[derive(Debug)]
pub struct HomeVacationMemory {
    space: Space,
    writer: PartsDb,
    reader: PartsDb,
}

/// A resource: its table and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HomeResource {
    table: u32,
    id: u32,
}

/// A task with its inputs.
#[derive(Clone, Debug)]
enum HomeTask {
    /// Asks for prices at home.
    Ask(Vec<HomeResource>),
    /// Asks for prices at a copy; at home, reserves for a customer.
    Reserve { home: u32, remote: bool, customer: u32, asked: Vec<HomeResource> },
    /// Counts a resource of a copy.
    Count(u32),
}

impl HomeVacation {
    /// With these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> HomeVacation {
        let nesting = NestingPlan::seldom_open(values);
        HomeVacation {
            homes: Homes::new(values),
            count: values.count("keys") as u32,
            users: values.number("users"),
            reads: values.number("reads"),
            remote: values.number("remote"),
            units: values.count("units") as i64,
            delayed: nesting.delays(values.flag("delayed")),
            nesting,
            ledgers: Ledgers::new(clients),
        }
    }

    fn draw(&self, client: u32, chance: &mut Chance) -> HomeTask {
        let makes_reservation = chance.percent(self.users);
        let remote = chance.percent(self.remote);
        let to = chance.below(self.homes.0.into()) as u32;
        let home = if remote { to } else { self.homes.of(client) };
        if !makes_reservation {
            return HomeTask::Count(home);
        }
        let customer = chance.below(self.count.into()) as u32;
        let resource = |chance: &mut Chance| HomeResource {
            table: chance.below(TABLES.into()) as u32,
            id: chance.below(self.count.into()) as u32,
        };
        let asked = (0..self.count).map(|_| resource(chance)).collect();
        if chance.percent(self.reads) {
            return HomeTask::Ask(asked);
        }
        HomeTask::Reserve { home, remote, customer, asked }
    }

    /// The units and the price that a resource has at first, the same in every run.
    fn first(&self, home: u32, resource: HomeResource) -> (i64, i64) {
        let mut chance = Chance::new(0, home, self.row(resource) + 1);
        let units = self.units * chance.between(1, 5) as i64;
        (units, 50 + 10 * chance.below(5) as i64)
    }

    /// The number of a resource's rows.
    fn row(&self, resource: HomeResource) -> u32 {
        resource.table * (self.count + 1) + resource.id
    }

    /// The dearest of these resources of each table that is there.
    async fn dearest(
        &self,
        tx: PartsTx<'_>,
        (space, home): (Space, u32),
        asked: &[HomeResource],
    ) -> Result<[Option<HomeResource>; TABLES as usize], Error> {
        let manager = async |tx: &Tx| tx.get(space, key(home, MANAGER, 0)).await;
        let manager = self.nesting.rest(tx, manager).await?;
        manager.ok_or_else(|| Error::Codec(format!("agency {home} has no manager")))?;
        let mut best: [Option<(i64, HomeResource)>; TABLES as usize] = [None; TABLES as usize];
        for resource in asked {
            let row = self.row(*resource);
            let look = async |tx: &Tx| self.price(tx, (space, home), row).await;
            let Some(price) = self.nesting.part(tx, look).await? else { continue };
            let best = &mut best[resource.table as usize];
            if best.is_none_or(|(other, _)| price > other) {
                *best = Some((price, *resource));
            }
        }
        Ok(best.map(|found| found.map(|(_, resource)| resource)))
    }

    /// The price of a resource, if it is there.
    async fn price(
        &self,
        tx: &Tx,
        (space, home): (Space, u32),
        row: u32,
    ) -> Result<Option<i64>, Error> {
        if tx.get(space, key(home, THERE, row)).await?.is_none() {
            return Ok(None);
        }
        number(tx.get(space, key(home, FREE, row)).await?.as_ref(), "what is free")?;
        let price = tx.get(space, key(home, PRICE, row)).await?;
        number(price.as_ref(), "a price").map(Some)
    }

    async fn ask(
        &self,
        seat: &Seat,
        memory: &HomeVacationMemory,
        asked: &[HomeResource],
    ) -> (Ended, u32) {
        let at = (memory.space, self.homes.of(seat.client));
        let (answer, attempts) =
            memory.reader.transact(async |tx| self.dearest(tx, at, asked).await.map(|_| ())).await;
        (ended(answer), attempts)
    }

    async fn update(
        &self,
        seat: &Seat,
        memory: &HomeVacationMemory,
        task: &HomeTask,
    ) -> (Ended, u32) {
        let (client, space) = (seat.client, memory.space);
        let number = self.ledgers.of(client).next_number();
        let (answer, attempts) = memory
            .writer
            .transact(async |tx| {
                self.ledgers.of(client).begin_attempt();
                let attempt = |home| HomeAttempt { vacation: self, tx, space, home, client };
                match task {
                    HomeTask::Ask(_) => unreachable!("reads only"),
                    HomeTask::Count(home) => {
                        self.ledgers.of(client).add(COUNTED, 1);
                        attempt(*home).rest(async |rest| rest.count().await).await
                    }
                    HomeTask::Reserve { home, remote, customer, asked } => {
                        let attempt = attempt(*home);
                        let dearest = self.dearest(tx, (space, *home), asked).await?;
                        if !remote {
                            attempt.reserve(*customer, dearest).await?;
                        }
                        let private = key(*home, PRIVATE, client);
                        self.ledgers.of(client).write(private.clone(), number);
                        attempt.rest(async |rest| rest.write_private(&private, number).await).await
                    }
                }
            })
            .await;
        let ended = ended(answer);
        self.ledgers.of(client).settle(&ended);
        (ended, attempts)
    }
}

impl Workload for HomeVacation {
    type Memory = HomeVacationMemory;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        vec![(SPACE, self.homes.space(repositories))]
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let space = db.space(SPACE)?;
        for home in self.homes.all() {
            let row = |kind, row, value| (key(home, kind, row), eight_bytes(value));
            let mut rows = vec![row(MANAGER, 0, 0), row(RESOURCES, 0, RESOURCES_FIRST)];
            for resource in self.resources() {
                let ((units, price), at) = (self.first(home, resource), self.row(resource));
                rows.extend([row(THERE, at, 0), row(USED, at, 0), row(FREE, at, units)]);
                rows.extend([row(TOTAL, at, units), row(PRICE, at, price)]);
            }
            for customer in 1..=self.count {
                rows.push(row(CUSTOMER, customer, 0));
                rows.push((key(home, HELD, customer), encode_held([0; TABLES as usize])));
            }
            write_missing(db, space, rows.into_iter()).await?;
        }
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<HomeVacationMemory, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        let writer = self.nesting.parts_handle(seat.node, &seat.db, "updates")?;
        let reader = self.nesting.parts_handle(seat.node, &seat.db.read_only(), "questions")?;
        Ok(HomeVacationMemory { space: seat.db.space(SPACE)?, writer, reader })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut HomeVacationMemory) -> (Ended, u32) {
        match self.draw(seat.client, &mut seat.chance) {
            HomeTask::Ask(asked) => self.ask(seat, memory, &asked).await,
            update => self.update(seat, memory, &update).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let space = db.space(SPACE)?;
        let [reserved, counted] = self.ledgers.close();
        let (mut sound, mut wrong) = (Complaints::default(), Complaints::default());
        let (mut all_used, mut counts) = (0, 0);
        for home in self.homes.all() {
            let used = self.check_resources(db, (space, home), &mut sound).await?;
            let held = self.held(db, (space, home)).await?;
            if used != held {
                wrong.add(|| format!("agency {home}: {used:?} in use, {held:?} reserved"));
            }
            all_used += used.iter().sum::<i64>();
            let count = read_many(db, space, &[key(home, RESOURCES, 0)]).await?.remove(0);
            counts += number(count.as_ref(), "a count of resources")? - RESOURCES_FIRST;
        }
        let booked = |name, found: i64, bounds: std::ops::RangeInclusive<i64>| Check {
            name,
            ok: bounds.contains(&found),
            details: format!("{found} of {bounds:?}"),
        };
        Ok(vec![
            Check::none_wrong("resources are sound", &sound, format!("{} agencies", self.homes.0)),
            Check::none_wrong("units in use are those reserved", &wrong, String::new()),
            booked("reservations are those that committed", all_used, reserved),
            booked("resources are counted once", counts, counted),
            self.ledgers.check_writes(db, space).await?,
            self.ledgers.check_reads(),
        ])
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}

impl HomeVacation {
    fn resources(&self) -> impl Iterator<Item = HomeResource> + use<> {
        let count = self.count;
        (0..TABLES).flat_map(move |table| (1..=count).map(move |id| HomeResource { table, id }))
    }

    /// The units in use of each table of an agency, whose resources must be sound.
    async fn check_resources(
        &self,
        db: &Db,
        (space, home): (Space, u32),
        wrong: &mut Complaints,
    ) -> Result<[i64; TABLES as usize], Error> {
        let kinds = [USED, FREE, TOTAL, PRICE];
        let rows = self.resources().map(|resource| self.row(resource));
        let keys: Vec<_> = rows.flat_map(|row| kinds.map(|kind| key(home, kind, row))).collect();
        let values = read_many(db, space, &keys).await?;
        let mut in_use = [0; TABLES as usize];
        for (resource, values) in self.resources().zip(values.as_chunks::<4>().0) {
            let first = self.first(home, resource);
            let numbers: Result<Vec<i64>, _> =
                values.iter().map(|value| number(value.as_ref(), "a number")).collect();
            match numbers.as_deref() {
                Ok([used, free, total, price])
                    if *used >= 0
                        && *free >= 0
                        && used + free == *total
                        && (*total, *price) == first =>
                {
                    in_use[resource.table as usize] += used;
                }
                found => wrong.add(|| format!("agency {home}, {resource:?}: {found:?}")),
            }
        }
        Ok(in_use)
    }

    /// What the customers of an agency hold of each table.
    async fn held(
        &self,
        db: &Db,
        (space, home): (Space, u32),
    ) -> Result<[i64; TABLES as usize], Error> {
        let keys: Vec<_> = (0..=self.count).map(|customer| key(home, HELD, customer)).collect();
        let mut all = [0; TABLES as usize];
        for value in read_many(db, space, &keys).await?.iter().flatten() {
            let held = decode_held(Some(value))?;
            all.iter_mut().zip(held).for_each(|(all, held)| *all += held);
        }
        Ok(all)
    }
}
