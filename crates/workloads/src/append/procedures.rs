//! The list workload in one-round transactions: a fragment for each read and each append.
//!
//! Fragments at one repository run in the order of the call, and a list lives at one repository;
//! so what a transaction does to each list is what was drawn, in that order. Some transactions
//! append by a procedure that refuses where the list has an even number of elements already, which
//! nobody else knows: those must be voted on, and leave nothing behind where one of them refuses.

use std::sync::atomic::{AtomicU16, Ordering};

use muesli::procedures::{Keys, Spaces, StoredProcedure, TouchesFn, answer, fragment, with};
use muesli::{
    Call, Class, Db, Error, Footprint, Fragment, Invoked, Procedures, Refuses, RepositoryId, Space,
    SpaceOptions, Stop, Touched,
};

use super::checks;
use super::lists::{decode, encode, key_of};
use super::{Append, AppendMemory, PARAMETERS_OF_BOTH, PlannedOperation, SPACE};
use crate::check::Check;
use crate::list_history::{ListHistory, ListOperation};
use crate::marks;
use crate::nesting::NestingPlan;
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};

/// What the list workload takes in one round.
pub const ONE_ROUND_PARAMETERS: &[Parameter] = &{
    let coordinated = Parameter::new(
        "coordinated",
        "25",
        ParameterKind::Percent,
        "Share of transactions whose appends may refuse.",
    );
    let at_followers = Parameter::new(
        "nearby",
        "0",
        ParameterKind::Percent,
        "Share of transactions that take the nearest copy if they only read at one repository.",
    );
    let moving = Parameter::new(
        "moving",
        "0",
        ParameterKind::Percent,
        "Share of transactions before which their client moves a partition anywhere.",
    );
    let mut all = [at_followers; PARAMETERS_OF_BOTH.len() + 3];
    all[PARAMETERS_OF_BOTH.len()] = coordinated;
    all[PARAMETERS_OF_BOTH.len() + 1] = moving;
    let mut at = 0;
    while at < PARAMETERS_OF_BOTH.len() {
        all[at] = PARAMETERS_OF_BOTH[at];
        at += 1;
    }
    all
};

/// The procedures that it calls.
pub fn procedures() -> Procedures {
    with::<ReadList>(with::<AppendIfOdd>(with::<AppendOne>(Procedures::default())))
}

/// Reads a list: its space and key; its elements.
struct ReadList;

impl StoredProcedure for ReadList {
    const NAME: &'static str = "list-read";
    const READ_ONLY: bool = true;
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<(Space, u64)>> = Some(|_: &Spaces<'_>, (space, key)| {
        Ok(Footprint { reads: vec![list(*space, *key)], writes: Vec::new() })
    });
    type Arguments = (Space, u64);
    type Answer = Vec<u64>;

    fn run(keys: &mut Keys<'_>, (space, key): (Space, u64)) -> Result<Vec<u64>, Stop> {
        read(keys, space, key)
    }
}

/// Appends an element: space, key and element.
struct AppendOne;

impl StoredProcedure for AppendOne {
    const NAME: &'static str = "list-append";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<(Space, u64, u64)>> = Some(appended);
    type Arguments = (Space, u64, u64);
    type Answer = ();

    fn run(keys: &mut Keys<'_>, (space, key, element): (Space, u64, u64)) -> Result<(), Stop> {
        let mut list = read(keys, space, key)?;
        list.push(element);
        keys.put(space, key_of(key), encode(&list))
    }
}

/// The same, where the list is empty or has an odd number of elements.
struct AppendIfOdd;

impl StoredProcedure for AppendIfOdd {
    const NAME: &'static str = "list-append-if-odd";
    const REFUSES: Refuses = Refuses::Alone;
    const TOUCHES: Option<TouchesFn<(Space, u64, u64)>> = Some(appended);
    type Arguments = (Space, u64, u64);
    type Answer = ();

    fn run(keys: &mut Keys<'_>, (space, key, element): (Space, u64, u64)) -> Result<(), Stop> {
        let mut list = read(keys, space, key)?;
        if !list.is_empty() && list.len() % 2 == 0 {
            return Err(Stop::Refused("the list is even".into()));
        }
        list.push(element);
        keys.put(space, key_of(key), encode(&list))
    }
}

fn list(space: Space, key: u64) -> Touched {
    Touched::Key(space.id(), key_of(key))
}

fn appended(_: &Spaces<'_>, (space, key, _): &(Space, u64, u64)) -> Result<Footprint, Stop> {
    Ok(Footprint { reads: Vec::new(), writes: vec![list(*space, *key)] })
}

fn read(keys: &mut Keys<'_>, space: Space, key: u64) -> Result<Vec<u64>, Stop> {
    let value = keys.get(space, &key_of(key))?;
    decode(value.as_ref()).map_err(|error| Stop::Faulty(error.to_string()))
}

/// The list workload in one-round transactions.
#[derive(Debug)]
pub struct AppendProcedures {
    append: Append,
    coordinated: f64,
    at_followers: f64,
    moving: f64,
    /// The last repository that was ever seen to hold something.
    last: AtomicU16,
}

impl AppendProcedures {
    /// The workload with these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> AppendProcedures {
        let (coordinated, at_followers) = (values.number("coordinated"), values.number("nearby"));
        let (append, moving) =
            (Append::with(values, clients, NestingPlan::flat()), values.number("moving"));
        AppendProcedures { append, coordinated, at_followers, moving, last: AtomicU16::new(0) }
    }

    /// Moves a partition anywhere. It may come to nothing where things go wrong, or where somebody
    /// else moves it; what is in it must be right all the same.
    async fn relocate(&self, seat: &mut Seat) -> Result<(), Error> {
        let all = seat.db.partitions().await?;
        let partition = seat.chance.below(all.len() as u64) as u16;
        let last = all.iter().flat_map(|it| &it.holders).map(|it| it.0).max().unwrap_or(0);
        let last = self.last.fetch_max(last, Ordering::Relaxed).max(last);
        let to = RepositoryId(seat.chance.below(u64::from(last) + 1) as u16);
        match seat.db.move_partition(partition, None, to).await {
            Err(error @ (Error::Procedure(_) | Error::Closed)) => Err(error),
            _ => Ok(()),
        }
    }

    /// The fragments of what was drawn; each append is noted, with its element.
    fn fragments(
        &self,
        client: u32,
        space: Space,
        planned: &[PlannedOperation],
        may_refuse: bool,
    ) -> Result<Vec<Fragment>, Error> {
        let one = |planned: &PlannedOperation| match *planned {
            PlannedOperation::Read(key) => {
                fragment::<ReadList>(space.place(key_of(key)), &(space, key))
            }
            PlannedOperation::Append(key) => {
                let element = self.append.notebooks.note_append(client, key);
                let (place, arguments) = (space.place(key_of(key)), (space, key, element));
                match may_refuse {
                    true => fragment::<AppendIfOdd>(place, &arguments),
                    false => fragment::<AppendOne>(place, &arguments),
                }
            }
        };
        planned.iter().map(one).collect()
    }

    /// Notes what was read. Where an append to the same list came before the read in the call, the
    /// read sees it; so reads are noted among the appends as they were drawn.
    fn note(&self, client: u32, planned: &[PlannedOperation], done: &Invoked) -> Result<(), Error> {
        let mut book = self.append.notebooks.of(client);
        let mut appends = book.take_operations().into_iter();
        for (planned, result) in planned.iter().zip(&done.results) {
            let operation = match *planned {
                PlannedOperation::Append(_) => appends.next(),
                PlannedOperation::Read(key) => {
                    Some(ListOperation::Read { key, list: answer::<ReadList>(result)? })
                }
            };
            operation.into_iter().for_each(|operation| book.note(operation));
        }
        Ok(())
    }
}

impl Workload for AppendProcedures {
    type Memory = AppendMemory;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        Workload::spaces(&self.append, repositories)
    }

    fn is_one_round(&self) -> bool {
        true
    }

    async fn load(&self, _: &Db) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<AppendMemory, Error> {
        self.append.begin(seat)
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut AppendMemory) -> (Ended, u32) {
        if self.moving > 0.0
            && seat.chance.percent(self.moving)
            && let Err(error @ Error::Procedure(_)) = self.relocate(seat).await
        {
            return (Ended::Failed(error), 1);
        }
        let planned = self.append.draw(seat, memory);
        let may_refuse = seat.chance.percent(self.coordinated);
        let client = seat.client;
        self.append.notebooks.of(client).begin((seat.clock)());
        let marks = self.append.marks.draw(&mut seat.chance);
        let marked = marks::fragments(&seat.db, &marks);
        let lists = self.fragments(client, memory.space, &planned, may_refuse);
        let all = lists.and_then(|lists| Ok(lists.into_iter().chain(marked?).collect()));
        let fragments: Vec<_> = match all {
            Ok(fragments) => fragments,
            Err(error) => return (Ended::Failed(error), 1),
        };
        let at_followers = self.at_followers > 0.0 && seat.chance.percent(self.at_followers);
        let db = if at_followers { seat.db.follower_reads() } else { seat.db.clone() };
        let (done, attempts) = db.invoke_here(Call { class: Class::Auto, fragments }).await;
        let answer = done.and_then(|done| self.note(client, &planned, &done));
        let ended = ended(answer);
        self.append.notebooks.of(client).end(&ended, (seat.clock)());
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(&self.append, db, read_lists).await
    }

    fn history(&self) -> Option<ListHistory> {
        Workload::history(&self.append)
    }
}

/// Reads lists in one transaction of one round.
async fn read_lists(db: &Db, keys: &[u64]) -> Result<Vec<(u64, Vec<u64>)>, Error> {
    let (space, reader) = (db.space(SPACE)?, db.read_only());
    let one = |key: &u64| fragment::<ReadList>(space.place(key_of(*key)), &(space, *key));
    let fragments = keys.iter().map(one).collect::<Result<_, _>>()?;
    let done = reader.invoke(Class::Auto, fragments).await?;
    let lists = keys.iter().zip(&done.results);
    lists.map(|(key, result)| Ok((*key, answer::<ReadList>(result)?))).collect()
}

#[cfg(test)]
mod tests {
    use muesli::procedures::DryRun;

    use super::*;

    #[test]
    fn lists_grow_unless_they_are_even() {
        let mut dry_run = DryRun::new(&[SPACE]);
        let space = dry_run.space(SPACE);
        assert_eq!(dry_run.run::<AppendIfOdd>(&(space, 3, 10)), Ok(()));
        assert_eq!(dry_run.run::<AppendIfOdd>(&(space, 3, 11)), Ok(()));
        let even = Err(Stop::Refused("the list is even".into()));
        assert_eq!(dry_run.run::<AppendIfOdd>(&(space, 3, 12)), even);
        assert_eq!(dry_run.run::<AppendOne>(&(space, 3, 13)), Ok(()));
        assert_eq!(dry_run.run::<ReadList>(&(space, 3)), Ok(vec![10, 11, 13]));
        assert_eq!(dry_run.run::<ReadList>(&(space, 4)), Ok(vec![]));
    }
}
