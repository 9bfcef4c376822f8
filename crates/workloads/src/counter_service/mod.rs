//! A counter service in one-round transactions: the micro-benchmarks of the Granola thesis
//! (chapter 6).
//!
//! Each repository has counters. A transaction adds to a counter of one repository, or to one of
//! each of several; `distributed` is the share of the latter, `coordinated` that of those among
//! them whose parts may refuse alone, `reads` that of transactions that only look. A part uses the
//! repository's shared counter with a chance of `conflicts`, else one that is its client's own, so
//! that conflicts are as many as were asked for and no others (section 6.5.2). `conflicts-by` says
//! whether each part draws for itself or a transaction for all of its parts, as in the thesis.
//!
//! What makes runs checkable: amounts are positive and booked, so each counter must show what was
//! added to it; the parts of a transaction add the same amount to the shared counters where all of
//! them use those; and what a session sees of a counter never shrinks.

mod books;
pub mod procedures;

use muesli::procedures::{answer, fragment};
use muesli::{
    Call, Class, Db, Error, Fragment, Index, Invoked, Key, Partitioning, RepositoryId, SmallBytes,
    Space, SpaceOptions,
};

use crate::chance::Chance;
use crate::check::Check;
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};
use books::{Book, CounterPart};
use procedures::{Add, AddBelow, Addition, CounterAsked, Look};

const SPACE: &str = "counter-service";

/// What the counter service takes.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "keys",
        "100",
        ParameterKind::Count(1, 1_000_000),
        "Counters that each client has of its own at each repository.",
    ),
    Parameter::new(
        "distributed",
        "10",
        ParameterKind::Percent,
        "Share of transactions that use several repositories.",
    ),
    Parameter::new(
        "participants",
        "2",
        ParameterKind::Count(2, 4_096),
        "How many repositories those use, where there are so many.",
    ),
    Parameter::new(
        "coordinated",
        "0",
        ParameterKind::Percent,
        "Share of adding ones that may refuse: at several repositories they must vote.",
    ),
    Parameter::new(
        "conflicts",
        "0",
        ParameterKind::Percent,
        "Share of parts that use the shared counter of their repository.",
    ),
    Parameter::new(
        "conflicts-by",
        "part",
        ParameterKind::Choice(&["part", "transaction"]),
        "Whether that is drawn for each part, or for a transaction and all of its parts.",
    ),
    Parameter::new("reads", "0", ParameterKind::Percent, "Share of transactions that only look."),
    Parameter::new(
        "full",
        "0",
        ParameterKind::Count(0, 1_000_000_000),
        "Those that may refuse do so where a counter would be above this; 0: never.",
    ),
    Parameter::new(
        "work",
        "0",
        ParameterKind::Count(0, 10_000_000),
        "Rounds of arithmetic that each part does besides, about a nanosecond each.",
    ),
];

/// The largest amount that is added.
const AMOUNT_MOST: u64 = 9;

/// A counter: of which repository, whose, and which of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CounterId {
    repository: u16,
    /// 0 for the shared one, else one above the client's number.
    owner: u32,
    number: u32,
}

impl CounterId {
    /// As the procedures name it; those of a repository lie together.
    fn number(self) -> u64 {
        u64::from(self.repository) << 48
            | u64::from(self.owner) << 24
            | u64::from(self.number) & 0xff_ffff
    }
}

/// A counter service.
#[derive(Debug)]
pub struct CounterService {
    keys: u64,
    participants: u64,
    distributed: f64,
    coordinated: f64,
    conflicts: f64,
    /// Whether all parts of a transaction use shared counters, or none.
    conflicts_as_one: bool,
    reads: f64,
    most: u64,
    work: u32,
    books: PerClient<Book>,
}

/// What a client remembers.
#[derive(Debug)]
pub struct CounterServiceMemory {
    space: Space,
    repositories: u16,
    reader: Db,
}

/// What a transaction does.
#[derive(Debug, PartialEq, Eq)]
struct DrawnCall {
    counters: Vec<CounterId>,
    /// What is added to each; `None`: it looks.
    amount: Option<u64>,
    may_refuse: bool,
}

impl CounterService {
    /// A counter service with these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> CounterService {
        CounterService {
            keys: values.count("keys"),
            participants: values.count("participants"),
            distributed: values.number("distributed"),
            coordinated: values.number("coordinated"),
            conflicts: values.number("conflicts"),
            conflicts_as_one: values.word("conflicts-by") == "transaction",
            reads: values.number("reads"),
            most: match values.count("full") {
                0 => u64::MAX,
                most => most,
            },
            work: values.count("work") as u32,
            books: PerClient::new(clients, |_| Book::default()),
        }
    }

    fn draw(&self, client: u32, repositories: u16, chance: &mut Chance) -> DrawnCall {
        let several = chance.percent(self.distributed);
        let count = if several { self.participants.min(repositories.into()) } else { 1 };
        let all_share = self.conflicts_as_one && chance.percent(self.conflicts);
        let mut counters: Vec<CounterId> = Vec::with_capacity(count as usize);
        while counters.len() < count as usize {
            let repository = chance.below(repositories.into()) as u16;
            if counters.iter().any(|drawn| drawn.repository == repository) {
                continue;
            }
            let shared = match self.conflicts_as_one {
                true => all_share,
                false => chance.percent(self.conflicts),
            };
            let number = if shared { 0 } else { chance.below(self.keys) as u32 };
            let owner = if shared { 0 } else { client + 1 };
            counters.push(CounterId { repository, owner, number });
        }
        let reads = chance.percent(self.reads);
        let amount = (!reads).then(|| chance.between(1, AMOUNT_MOST));
        DrawnCall { counters, amount, may_refuse: !reads && chance.percent(self.coordinated) }
    }

    fn fragments(&self, space: Space, drawn: &DrawnCall) -> Result<Vec<Fragment>, Error> {
        let fragment = |id: &CounterId| {
            let (place, counter) = (space.place(id.number().encoded()), id.number());
            let Some(amount) = drawn.amount else {
                let looked = CounterAsked { space, counters: vec![counter], work: self.work };
                return fragment::<Look>(place, &looked);
            };
            let add = Addition { space, counter, amount, most: self.most, work: self.work };
            match drawn.may_refuse {
                true => fragment::<AddBelow>(place, &add),
                false => fragment::<Add>(place, &add),
            }
        };
        drawn.counters.iter().map(fragment).collect()
    }
}

/// What each counter of a transaction showed.
fn shown(drawn: &DrawnCall, done: &Invoked) -> Result<Vec<CounterPart>, Error> {
    let parts = drawn.counters.iter().zip(&done.results);
    let part = |(id, result): (&CounterId, &SmallBytes)| {
        let shows = match drawn.amount {
            Some(_) => answer::<Add>(result)?,
            None => answer::<Look>(result)?.into_iter().sum(),
        };
        Ok(CounterPart { counter: *id, shows })
    };
    parts.map(part).collect()
}

impl Workload for CounterService {
    type Memory = CounterServiceMemory;

    /// A range of counters for each repository.
    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let first = |repository: u16| CounterId { repository, owner: 0, number: 0 };
        let splits = (1..repositories as u16).map(|it| first(it).number().encoded());
        let partitioning = Partitioning::Range(splits.collect());
        vec![(SPACE, SpaceOptions { index: Index::Hash, partitioning })]
    }

    fn is_one_round(&self) -> bool {
        true
    }

    /// Absent counters show zero.
    async fn load(&self, _: &Db) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<CounterServiceMemory, Error> {
        self.books.of(seat.client).begin_incarnation();
        let space = seat.db.space(SPACE)?;
        let repositories = seat.db.catalog_of_keys().repositories() as u16;
        Ok(CounterServiceMemory { space, repositories, reader: seat.db.read_only() })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut CounterServiceMemory) -> (Ended, u32) {
        let drawn = self.draw(seat.client, memory.repositories, &mut seat.chance);
        let fragments = match self.fragments(memory.space, &drawn) {
            Ok(fragments) => fragments,
            Err(error) => return (Ended::Failed(error), 1),
        };
        let adds = drawn.counters.iter().map(|id| (*id, drawn.amount.unwrap_or(0)));
        self.books.of(seat.client).set_out(adds.filter(|(_, amount)| *amount > 0));
        seat.several = fragments.len() > 1;
        let db = if drawn.amount.is_some() { &seat.db } else { &memory.reader };
        let (done, attempts) = db.invoke_here(Call { class: Class::Auto, fragments }).await;
        let answer = done.and_then(|done| shown(&drawn, &done));
        let mut book = self.books.of(seat.client);
        if let Ok(parts) = &answer {
            book.see(parts);
        }
        if matches!(answer, Err(Error::Refused(_))) && !drawn.may_refuse {
            book.refused_though_it_may_not();
        }
        let ended = ended(answer);
        book.settle(&ended);
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let (space, reader) = (db.space(SPACE)?, db.read_only());
        let mut totals = books::Totals::of(&self.books);
        for repository in 0..db.catalog_of_keys().repositories() as u16 {
            let place = muesli::Place::Repository(RepositoryId(repository));
            for counters in totals.counters_of(repository) {
                let numbers = counters.iter().map(|id| id.number()).collect();
                let looked = CounterAsked { space, counters: numbers, work: 0 };
                let shows = reader.execute::<Look>(place.clone(), &looked).await?;
                totals.judge(&counters, &shows);
            }
        }
        Ok(totals.checks())
    }
}

#[cfg(test)]
mod tests;
