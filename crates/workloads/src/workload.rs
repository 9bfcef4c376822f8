//! What a workload is: spaces, data to load, transactions to run, and checks afterwards.
//!
//! A workload is client code and nothing else. It knows no driver, reads no clock, starts no
//! thread, and draws chance only from its client's own stream; so it runs unchanged in a process,
//! in the simulator, and wherever else a [`Db`] is.
//!
//! What checks need to know (which transfers committed, which may have) a workload keeps in
//! itself, one ledger a client: a client may vanish in the middle of a transaction, and what it
//! had done must not vanish with it.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::stream::{self, TryStreamExt};
use muesli::open_nesting::{NestingCounts, OpenNesting, OpenTx};
use muesli::plans::{self, PlanExplanation, PlannedProcedure};
use muesli::{Call, Class, Db, Error, Results, SpaceOptions, Tx};
use muesli_core::{Nanos, NodeId};

use crate::chance::Chance;
use crate::check::Check;
use crate::list_history::ListHistory;
use crate::loading;
use crate::nesting::NestingPlan;
use crate::nesting::roots::RecordsRoots;
use crate::tally::{Ended, Tallies};

/// A future on the loop of the data, which need not be `Send`.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The time, on one clock for all clients.
pub type Clock = Rc<dyn Fn() -> Nanos>;

/// Whether a client is to stop, told how many transactions of its have ended, and the time.
pub type Stop = Box<dyn Fn(u64, Nanos) -> bool>;

/// Says what is derived of a plan.
pub type ExplainsPlan = fn() -> PlanExplanation;

/// Lists plans by their names, each with what says what is derived of it.
macro_rules! explained {
    ($($plan:ident)+) => {
        &[$((
            <$plan as ::muesli::plans::PlannedProcedure>::NAME,
            ::muesli::plans::PlanExplanation::of::<$plan>,
        )),+]
    };
}
pub(crate) use explained;

/// What a client does between two transactions, if anything.
pub type Pause = Box<dyn Fn(&mut Chance) -> LocalFuture<'static, ()>>;

/// What a client of a workload is given.
pub struct Seat {
    /// Its number, from 0.
    pub client: u32,
    /// Which life of the client this is, from 1; a client that vanished begins another one.
    pub incarnation: u32,
    /// How many clients there are.
    pub clients: u32,
    /// The node it runs on.
    pub node: NodeId,
    /// The database, in a session of its own.
    pub db: Db,
    /// Its chance.
    pub chance: Chance,
    /// The time.
    pub clock: Clock,
    /// When to stop.
    pub stop: Stop,
    /// What to do between transactions.
    pub pause: Option<Pause>,
    /// Where it counts.
    pub tallies: Arc<Tallies>,
    /// Whether the transaction under way has several fragments; the workload says so.
    pub several: bool,
}

/// A workload; futures of its clients stay on the loop that polls them.
#[expect(async_fn_in_trait, reason = "the futures stay on their loop and need not be Send")]
pub trait Workload: Send + Sync + 'static {
    /// What a client remembers from one transaction to the next.
    type Memory;

    /// The spaces it needs, on so many repositories.
    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)>;

    /// Whether all that it does is in one round, by procedures.
    fn is_one_round(&self) -> bool {
        false
    }

    /// Writes the data that are there before the first transaction. Harmless if it was done in
    /// part before.
    ///
    /// # Errors
    /// What the database says.
    async fn load(&self, db: &Db) -> Result<(), Error>;

    /// How many of how many rows have been written so far by [`load`](Self::load), where that takes
    /// long enough to be watched.
    fn load_progress(&self) -> Option<(u64, u64)> {
        None
    }

    /// What a new client remembers.
    ///
    /// # Errors
    /// What the database says.
    fn begin(&self, seat: &mut Seat) -> Result<Self::Memory, Error>;

    /// One transaction, retried until it ends: its inputs are drawn once, before the first
    /// attempt. Also answers how many attempts it took.
    async fn transact(&self, seat: &mut Seat, memory: &mut Self::Memory) -> (Ended, u32);

    /// Looks whether everything is as the committed transactions must have left it. No client
    /// runs any more.
    ///
    /// # Errors
    /// What the database says.
    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error>;

    /// The history that the clients saw, where the workload keeps one of its own.
    fn history(&self) -> Option<ListHistory> {
        None
    }

    /// How parts of its transactions are run, where open children lock the rows that they use.
    fn parted(&self) -> Option<&NestingPlan> {
        None
    }

    /// What else is to be told of a run, a line each.
    fn notes(&self) -> Vec<String> {
        self.parted().map_or_else(Vec::new, NestingPlan::notes)
    }

    /// Where the workload records what its transactions did and were answered, if it can.
    fn roots(&self) -> Option<&dyn RecordsRoots> {
        None
    }

    /// What open children of its transactions did, where there may be some.
    fn open_children(&self) -> Option<NestingCounts> {
        self.parted().and_then(NestingPlan::counts)
    }
}

/// Any [`Workload`], by its object-safe side.
pub trait AnyWorkload: Send + Sync {
    /// See [`Workload::spaces`].
    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)>;
    /// See [`Workload::is_one_round`].
    fn is_one_round(&self) -> bool;
    /// See [`Workload::load`].
    fn load<'a>(&'a self, db: &'a Db) -> LocalFuture<'a, Result<(), Error>>;
    /// See [`Workload::load_progress`].
    fn load_progress(&self) -> Option<(u64, u64)>;
    /// One client, in a closed loop until its seat says stop.
    fn run(&self, seat: Seat) -> LocalFuture<'_, Result<(), Error>>;
    /// See [`Workload::check`].
    fn check<'a>(&'a self, db: &'a Db) -> LocalFuture<'a, Result<Vec<Check>, Error>>;
    /// See [`Workload::history`].
    fn history(&self) -> Option<ListHistory>;
    /// See [`Workload::notes`].
    fn notes(&self) -> Vec<String>;
    /// See [`Workload::roots`].
    fn roots(&self) -> Option<&dyn RecordsRoots>;
    /// See [`Workload::open_children`].
    fn open_children(&self) -> Option<NestingCounts>;
}

impl<W: Workload> AnyWorkload for W {
    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let mut spaces = Workload::spaces(self, repositories);
        if !Workload::is_one_round(self) {
            spaces.push((loading::SPACE, SpaceOptions::default()));
        }
        spaces.extend(Workload::parted(self).and_then(NestingPlan::space));
        spaces
    }

    fn is_one_round(&self) -> bool {
        Workload::is_one_round(self)
    }

    fn load<'a>(&'a self, db: &'a Db) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            // Who loads does not keep what all use.
            Workload::load(self, &db.staying()).await?;
            match Workload::is_one_round(self) {
                // Whatever it runs later runs after what it has loaded.
                true => Ok(()),
                false => loading::mark_loaded(db).await,
            }
        })
    }

    fn load_progress(&self) -> Option<(u64, u64)> {
        Workload::load_progress(self)
    }

    fn run(&self, seat: Seat) -> LocalFuture<'_, Result<(), Error>> {
        let (tallies, client) = (seat.tallies.clone(), seat.client);
        Box::pin(async move {
            let ended = closed_loop(self, seat).await;
            if let Err(error) = ended.as_ref().map_err(|error| error.to_string())
                && ended != Err(Error::Closed)
            {
                // One that cannot even begin has no transaction to tell of it.
                tallies.of(client).unexpected.get_or_insert(error);
            }
            ended
        })
    }

    fn check<'a>(&'a self, db: &'a Db) -> LocalFuture<'a, Result<Vec<Check>, Error>> {
        Box::pin(async move {
            // What clients left that have vanished is finished before anything is read.
            let ended = match Workload::parted(self) {
                Some(plan) => plan.check_ended(db).await?,
                None => None,
            };
            let mut checks = Workload::check(self, db).await?;
            checks.extend(ended);
            Ok(checks)
        })
    }

    fn history(&self) -> Option<ListHistory> {
        Workload::history(self)
    }

    fn notes(&self) -> Vec<String> {
        Workload::notes(self)
    }

    fn roots(&self) -> Option<&dyn RecordsRoots> {
        Workload::roots(self)
    }

    fn open_children(&self) -> Option<NestingCounts> {
        Workload::open_children(self)
    }
}

async fn closed_loop<W: Workload>(workload: &W, mut seat: Seat) -> Result<(), Error> {
    if !Workload::is_one_round(workload) {
        loading::see_loaded(&seat.db).await?;
    }
    let mut memory = workload.begin(&mut seat)?;
    let mut now = (seat.clock)();
    let mut ended_before = seat.tallies.of(seat.client).ended();
    while !(seat.stop)(ended_before, now) {
        if let Some(pause) = &seat.pause {
            pause(&mut seat.chance).await;
            now = (seat.clock)();
        }
        seat.several = false;
        let (ended, attempts) = workload.transact(&mut seat, &mut memory).await;
        let after = (seat.clock)();
        let mut tally = seat.tallies.of(seat.client);
        tally.count(&ended, attempts, after - now);
        if seat.several && ended == Ended::Committed {
            tally.several.add(after - now);
        }
        ended_before = tally.ended();
        now = after;
        if ended == Ended::Failed(Error::Closed) {
            return Err(Error::Closed);
        }
    }
    Ok(())
}

/// Runs `body` as one transaction, as [`Db::transact_here`] does, and counts the attempts.
pub async fn transact<T, F>(db: &Db, body: F) -> (Result<T, Error>, u32)
where
    F: AsyncFn(&Tx) -> Result<T, Error>,
{
    let attempts = Cell::new(0);
    let answer = db.transact_here(counting(&attempts, &body)).await;
    (answer, attempts.get())
}

/// As [`transact`], of a transaction that may have open children.
pub async fn transact_nested<T, F>(db: &Db, layer: &OpenNesting, body: F) -> (Result<T, Error>, u32)
where
    F: AsyncFn(&OpenTx) -> Result<T, Error>,
{
    let attempts = Cell::new(0);
    let counting = async |tx: &OpenTx| {
        attempts.set(attempts.get() + 1);
        body(tx).await
    };
    let answer = db.transact_nested_here(layer, counting).await;
    (answer, attempts.get())
}

/// As [`transact`], and tells what the delayed actions gave that the body asked.
pub async fn transact_answering<T, F>(db: &Db, body: F) -> (Result<(T, Results), Error>, u32)
where
    F: AsyncFn(&Tx) -> Result<T, Error>,
{
    let attempts = Cell::new(0);
    let answer = db.transact_answering_here(counting(&attempts, &body)).await;
    (answer, attempts.get())
}

/// Runs a plan, notes whether it has several fragments, and counts the attempts.
pub async fn call_plan<P: PlannedProcedure>(
    db: &Db,
    several: &mut bool,
    arguments: &P::Arguments,
) -> (Result<P::Answer, Error>, u32) {
    match db.plan_fragments::<P>(arguments) {
        Err(error) => (Err(error), 1),
        Ok(fragments) => {
            *several |= fragments.len() > 1;
            let (done, attempts) = db.invoke_here(Call { class: Class::Auto, fragments }).await;
            (done.and_then(|done| plans::answer::<P>(&done)), attempts)
        }
    }
}

/// The attempts of a transaction that makes several calls, one after the other: the first attempt
/// of a later call is no further attempt of the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallAttempts {
    repeated: u32,
}

impl CallAttempts {
    /// A call took so many attempts.
    pub fn add(&mut self, attempts: u32) {
        self.repeated += attempts.saturating_sub(1);
    }

    /// The transaction begins anew, as what it had read has changed.
    pub fn begin_anew(&mut self) {
        self.repeated += 1;
    }

    /// All of them.
    pub fn all(self) -> u32 {
        1 + self.repeated
    }
}

/// Calls a plan once for each of these arguments, several at a time.
///
/// # Errors
/// What the database says, unless trying again can help.
pub async fn load_by_plan<P: PlannedProcedure<Answer = ()>>(
    db: &Db,
    all: Vec<P::Arguments>,
) -> Result<(), Error> {
    let load = async |one: P::Arguments| {
        loading::insist(async || call_plan::<P>(db, &mut false, &one).await.0).await
    };
    let (load, all) = (&load, stream::iter(all.into_iter().map(Ok)));
    all.try_for_each_concurrent(loading::SIDE_BY_SIDE, load).await
}

/// The body, which counts how often it is run.
fn counting<T>(
    attempts: &Cell<u32>,
    body: &impl AsyncFn(&Tx) -> Result<T, Error>,
) -> impl AsyncFn(&Tx) -> Result<T, Error> {
    async move |tx: &Tx| {
        attempts.set(attempts.get() + 1);
        body(tx).await
    }
}

/// How a transaction with this answer ended.
pub fn ended<T>(answer: Result<T, Error>) -> Ended {
    match answer {
        Ok(_) => Ended::Committed,
        Err(Error::Rollback(_) | Error::Refused(_)) => Ended::RolledBack,
        // It did take effect, but nobody can say what it saw.
        Err(Error::Unknown { .. } | Error::AnswerLost) => Ended::Unknown,
        Err(error) => Ended::Failed(error),
    }
}
