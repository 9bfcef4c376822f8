//! Lists that grow: each transaction reads some lists and appends to others.
//!
//! Every appended element is unique, so the lists themselves show in which order their
//! transactions took effect; a history of it needs no version numbers of the database, and judges
//! it from the outside. A list that has become long is left alone and another key takes its
//! place, because long lists make histories large and show nothing new. At the end a fresh client
//! reads every list.
//!
//! With `nesting` each read and each append is a part.

mod checks;
mod lists;
pub mod procedures;

use std::sync::atomic::{AtomicU64, Ordering};

use muesli::open_nesting::NestingSwitch;
use muesli::{Db, Error, Space, SpaceOptions, Tx};
use muesli_core::Nanos;

use crate::check::Check;
use crate::distribution::{self, Distribution};
use crate::list_history::{ListHistory, ListOperation, Notebooks};
use crate::marks::{self, Marks};
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb, PartsTx};
use crate::tally::Ended;
use crate::workload::{Clock, Seat, Workload, ended};
use lists::{encode, key_of, read};

/// The space with the lists.
pub const SPACE: &str = "lists";

/// What the list workload takes, in one round or not.
const PARAMETERS_OF_BOTH: [Parameter; 8] = [
    Parameter::new(
        "keys",
        "20",
        ParameterKind::Count(1, 1_000_000),
        "How many lists are in use at a time.",
    ),
    Parameter::new(
        "operations",
        "4",
        ParameterKind::Count(1, 100),
        "The most reads and appends in one transaction; the least is 1.",
    ),
    Parameter::new("appends", "50", ParameterKind::Percent, "Share of the operations that append."),
    Parameter::new(
        "length",
        "100",
        ParameterKind::Count(1, 100_000),
        "How many appends a list takes before another takes its place.",
    ),
    Parameter::new(
        "distribution",
        "uniform",
        ParameterKind::Choice(distribution::NAMES),
        "How lists are chosen.",
    ),
    Parameter::new(
        "theta",
        "0.99",
        ParameterKind::Number(0.0, 1.0),
        "Skew of the zipfian and latest distributions.",
    ),
    marks::PARAMETER,
    marks::BLIND,
];

/// What the list workload takes.
pub const PARAMETERS: &[Parameter] = &{
    let mut all = [NESTING_BY_ROWS; PARAMETERS_OF_BOTH.len() + 2];
    all[PARAMETERS_OF_BOTH.len()] = PATIENCE;
    let mut at = 0;
    while at < PARAMETERS_OF_BOTH.len() {
        all[at] = PARAMETERS_OF_BOTH[at];
        at += 1;
    }
    all
};

/// The list-append workload.
#[derive(Debug)]
pub struct Append {
    lists: u64,
    operations: u64,
    appends: f64,
    length: u64,
    distribution: Distribution,
    /// Appends drawn so far, by list in use.
    drawn: Box<[AtomicU64]>,
    marks: Marks,
    nesting: NestingPlan,
    notebooks: Notebooks,
}

/// What a client of the list workload remembers.
#[derive(Debug)]
pub struct AppendMemory {
    space: Space,
    db: PartsDb,
    distribution: Distribution,
}

/// One operation before it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlannedOperation {
    Read(u64),
    Append(u64),
}

impl Append {
    /// The workload with these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> Append {
        Append::with(values, clients, NestingPlan::seldom_open(values))
    }

    /// For tests: breaks a rule of open nesting.
    #[doc(hidden)]
    pub fn without(self, switch: NestingSwitch) -> Append {
        Append { nesting: self.nesting.without(switch), ..self }
    }

    fn with(values: &Values, clients: u32, nesting: NestingPlan) -> Append {
        let lists = values.count("keys");
        let (name, theta) = (values.word("distribution"), values.number("theta"));
        Append {
            lists,
            operations: values.count("operations"),
            appends: values.number("appends"),
            length: values.count("length"),
            distribution: Distribution::new(name, lists, theta, 0),
            drawn: (0..lists).map(|_| AtomicU64::new(0)).collect(),
            marks: Marks::new(values),
            nesting,
            notebooks: Notebooks::new(clients),
        }
    }

    fn draw(&self, seat: &mut Seat, memory: &mut AppendMemory) -> Vec<PlannedOperation> {
        let many = seat.chance.between(1, self.operations);
        let mut planned = Vec::with_capacity(many as usize);
        for _ in 0..many {
            let list = memory.distribution.draw(self.lists, &mut seat.chance);
            let drawn = &self.drawn[list as usize];
            let appends = seat.chance.percent(self.appends);
            let number = drawn.fetch_add(u64::from(appends), Ordering::Relaxed);
            let key = list + self.lists * (number / self.length);
            planned.push(if appends {
                PlannedOperation::Append(key)
            } else {
                PlannedOperation::Read(key)
            });
        }
        planned
    }

    /// Every key that may have been used.
    fn keys(&self) -> impl Iterator<Item = u64> {
        self.drawn.iter().zip(0..).flat_map(move |(drawn, list)| {
            let rounds = drawn.load(Ordering::Relaxed) / self.length;
            (0..=rounds).map(move |round| list + self.lists * round)
        })
    }

    fn begin_attempt(&self, client: u32, now: Nanos) {
        let mut notebook = self.notebooks.of(client);
        match self.nesting.has_checkpoints() {
            true => notebook.begin_or_go_on(now),
            false => notebook.begin(now),
        }
    }

    async fn perform(
        &self,
        tx: PartsTx<'_>,
        space: Space,
        client: u32,
        planned: &[PlannedOperation],
    ) -> Result<(), Error> {
        for (done, planned) in planned.iter().enumerate() {
            let part = async |tx: &Tx| {
                // What an attempt of the part noted that was undone did not happen.
                self.notebooks.of(client).keep(done);
                match *planned {
                    PlannedOperation::Read(key) => {
                        let list = read(tx, space, key).await?;
                        self.notebooks.of(client).note(ListOperation::Read { key, list });
                    }
                    PlannedOperation::Append(key) => {
                        let mut list = read(tx, space, key).await?;
                        let element = self.notebooks.note_append(client, key);
                        list.push(element);
                        tx.put(space, key_of(key), encode(&list)).await?;
                    }
                }
                Ok(())
            };
            self.nesting.part(tx, part).await?;
        }
        Ok(())
    }
}

impl Workload for Append {
    type Memory = AppendMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let lists = (SPACE, SpaceOptions::default());
        std::iter::once(lists).chain(self.marks.space()).collect()
    }

    async fn load(&self, _: &Db) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<AppendMemory, Error> {
        self.notebooks.of(seat.client).begin_incarnation(seat.incarnation);
        let db = self.nesting.parts_handle(seat.node, &seat.db, "lists")?;
        let (space, distribution) = (seat.db.space(SPACE)?, self.distribution.clone());
        Ok(AppendMemory { space, db, distribution })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut AppendMemory) -> (Ended, u32) {
        let planned = self.draw(seat, memory);
        let marks = self.marks.draw(&mut seat.chance);
        let (client, space) = (seat.client, memory.space);
        let (planned, clock): (&[PlannedOperation], &Clock) = (&planned, &seat.clock);
        let (seat, marks) = (&*seat, &marks[..]);
        let (answer, attempts) = memory
            .db
            .transact(async |tx| {
                self.begin_attempt(client, clock());
                self.perform(tx, space, client, planned).await?;
                self.nesting.rest(tx, async |tx| marks::perform(tx, &seat.db, marks).await).await
            })
            .await;
        let ended = ended(answer);
        self.notebooks.of(client).end(&ended, clock());
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db, checks::read_in_transaction).await
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }

    fn history(&self) -> Option<ListHistory> {
        Some(self.notebooks.history())
    }
}
