//! Counters: many cold ones around a few hot ones.
//!
//! The shape is that of the micro-benchmarks for nested transactions. A transaction has three
//! phases: some counters of the first group, some of the hot group, some of the last group. Each
//! phase only reads or only adds, drawn once (or all of them only read); with `nesting=closed` each
//! is a child. With `delayed=true` adds are delayed actions, which do not conflict with each other
//! where the protocol delays them.
//!
//! What makes runs checkable: amounts are positive and booked, so each counter must show what was
//! added to it; and what a session sees of the hot counters never shrinks.

mod handle;
mod ledger;
mod open;
mod parameters;
mod recorded;
mod totals;

use std::collections::BTreeMap;
use std::time::Duration;

use muesli::open_nesting::{NestingCounts, NestingSwitch, OpenNesting};
use muesli::structures::Counter;
use muesli::{Db, Error, Index, Results, SmallBytes, Space, SpaceOptions, Tx};
use muesli_core::parts::locator::Static;

use crate::calls::{CallLength, check_objects};
use crate::chance::Chance;
use crate::check::Check;
use crate::delayed_adds::{AskedAdds, How, add_deferred};
use crate::interface::Interface;
use crate::marks::{self, Marks};
use crate::nesting::NestingPlan;
use crate::nesting::open_layer::check_finished;
use crate::nesting::roots::{RecordsRoots, RootRecorder};
use crate::parameters::{ParameterError, Values};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended, transact_answering};
use handle::CounterHandle;
use ledger::{Added, CounterLedger};
use open::{ChildHandlers, NamedPhase, PhaseWatcher};
pub use parameters::PARAMETERS;
use recorded::{PhaseRecorder, name};

const SPACE: &str = "counters";

/// The largest amount that is added.
const AMOUNT_MOST: u64 = 9;
/// The group in the middle.
const HOT: usize = 1;

/// Counters in three groups.
#[derive(Debug)]
pub struct Counters {
    /// How many each group has.
    sizes: [u64; 3],
    /// How many of each a transaction uses.
    used: [usize; 3],
    /// Share of transactions that only read.
    reads: f64,
    /// Share of transactions that read the group in the middle as a whole.
    totals: f64,
    /// Share of each phase that reads, of all others.
    phase_reads: [f64; 3],
    length: CallLength,
    interface: Interface,
    delayed: Option<How>,
    asks: bool,
    roams: bool,
    nesting: NestingPlan,
    /// Whether open children take locks.
    locks: bool,
    /// Whether open children have commit handlers.
    handlers: bool,
    /// A rule of open nesting that is broken.
    broken: Option<NestingSwitch>,
    /// The groups that phases use: only a test lets two of them use one.
    group_of: [usize; 3],
    marks: Marks,
    pairs: PerClient<CounterPair>,
    ledgers: PerClient<CounterLedger>,
    roots: RootRecorder,
}

/// How delayed adds are made.
fn how(values: &Values) -> How {
    match (values.flag("procedures"), values.flag("alone")) {
        (false, _) => How::Actions,
        (true, false) => How::Procedures,
        (true, true) => How::ProceduresAlone,
    }
}

/// What a transaction was shown of the hot counters, or will be.
type Shown = (Vec<i64>, AskedAdds);

/// What a client remembers.
#[derive(Debug)]
pub struct CounterMemory {
    groups: [Vec<CounterHandle>; 3],
    reader: Db,
    /// Where the phase in the middle is an open child.
    open: Option<OpenNesting>,
    /// The most that this session has seen each hot counter show.
    seen: Seen,
}

/// What each hot counter has shown at least.
type Seen = BTreeMap<usize, i64>;

/// Two clients of one session.
#[derive(Debug, Default)]
struct CounterPair {
    /// Its handle, made by whoever comes first.
    db: Option<Db>,
    /// Whether one of them has its turn.
    busy: bool,
    /// As [`CounterMemory::seen`].
    seen: Seen,
}

/// A client's turn in its pair; a client that is gone gives it back.
struct CounterStep<'a> {
    pair: &'a PerClient<CounterPair>,
    number: u32,
}

impl Drop for CounterStep<'_> {
    fn drop(&mut self) {
        self.pair.of(self.number).busy = false;
    }
}

/// So long a client waits before it looks again whether it is its turn.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// The counters of a phase, and what is added to each; nothing: they are read.
#[derive(Debug)]
struct CounterPhase {
    counters: Vec<usize>,
    amount: Option<i64>,
}

impl Counters {
    /// Counters with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<Counters, ParameterError> {
        let (objects, hot) = (values.count("objects"), values.count("hot"));
        let (calls, hot_calls) = (values.count("calls"), values.count("hot-calls"));
        check_objects(("calls", calls), 1, objects)?;
        check_objects(("hot-calls", hot_calls), 1, hot)?;
        if calls + hot_calls == 0 {
            let text = "calls and hot-calls are both 0: a transaction needs a counter".to_owned();
            return Err(ParameterError::Incompatible(text));
        }
        let (cold, hot_reads) = (values.number("cold-reads"), values.number("hot-reads"));
        let all_calls = 2 * calls + hot_calls;
        let (nesting, length) = (NestingPlan::or_open(values), CallLength::new(values, all_calls));
        let interface = Interface::new(values);
        interface.check_delayed(values.flag("delayed"))?;
        if values.flag("handlers") && !nesting.may_be_open() {
            let text = "handlers=true is of open children: give nesting=open or auto".to_owned();
            return Err(ParameterError::Incompatible(text));
        }
        nesting.check_length(length.each() * calls.max(hot_calls) as u32)?;
        let locks = values.flag("locks");
        if !locks && (hot_reads > 0.0 || values.number("reads") > 0.0) {
            let text = "locks=false: give reads=0 and hot-reads=0, as who reads the counters in \
                        the middle would see what is yet to be undone"
                .to_owned();
            return Err(ParameterError::Incompatible(text));
        }
        Ok(Counters {
            sizes: [objects, hot, objects],
            used: [calls as usize, hot_calls as usize, calls as usize],
            reads: values.number("reads"),
            totals: values.number("totals"),
            phase_reads: [cold, hot_reads, cold],
            length,
            interface,
            delayed: values.flag("delayed").then(|| how(values)),
            asks: values.flag("asked"),
            roams: values.flag("roam"),
            nesting,
            locks,
            handlers: values.flag("handlers"),
            broken: None,
            group_of: [0, 1, 2],
            marks: Marks::new(values).delayed(values.flag("delayed")),
            pairs: PerClient::new(clients, |_| CounterPair::default()),
            ledgers: PerClient::new(clients, |_| CounterLedger::default()),
            roots: RootRecorder::default(),
        })
    }

    /// For tests: breaks a rule of open nesting.
    #[doc(hidden)]
    pub fn without(self, switch: NestingSwitch) -> Counters {
        Counters { broken: Some(switch), ..self }
    }

    /// For tests, what a program must not do: the phase in the middle uses the counters of the
    /// first one.
    #[doc(hidden)]
    pub fn sharing_levels(self) -> Counters {
        Counters { group_of: [0, 0, 2], ..self }
    }

    fn groups(&self, space: Space) -> [Vec<CounterHandle>; 3] {
        [0, 1, 2].map(|group| {
            let name = |number| name(self.group_of[group], number);
            let named = |number| CounterHandle::new(self.interface, space, &name(number));
            (0..self.sizes[group]).map(named).collect()
        })
    }

    /// The layer, where the phase in the middle is an open child.
    fn layer(&self, db: &Db) -> Result<Option<OpenNesting>, Error> {
        match self.nesting.may_be_open() {
            true => {
                let place = (self.interface, db.space(SPACE)?);
                let layer = open::layer(&self.nesting, db, place)?;
                let layer = self.broken.into_iter().fold(layer, OpenNesting::without);
                Ok(Some(if self.roots.is_on() { layer.recorded() } else { layer }))
            }
            false => Ok(None),
        }
    }

    /// The counters of the phases by their names.
    fn named(&self, memory: &CounterMemory, phases: &[CounterPhase; 3]) -> [NamedPhase; 3] {
        [0, 1, 2].map(|group| {
            let phase = &phases[group];
            let name = |at: usize| name(self.group_of[group], at as u64);
            let named = |at: &usize| (name(*at), memory.groups[group][*at].clone());
            NamedPhase {
                counters: phase.counters.iter().map(named).collect(),
                amount: phase.amount,
                locks: self.locks,
            }
        })
    }

    fn draw(&self, chance: &mut Chance) -> [CounterPhase; 3] {
        let only_reads = self.reads > 0.0 && chance.percent(self.reads);
        [0, 1, 2].map(|group| {
            let mut counters = Vec::new();
            while counters.len() < self.used[group] {
                let drawn = chance.below(self.sizes[group]) as usize;
                if !counters.contains(&drawn) {
                    counters.push(drawn);
                }
            }
            let amount = chance.between(1, AMOUNT_MOST) as i64;
            let adds = !chance.percent(self.phase_reads[group]) && !only_reads;
            CounterPhase { counters, amount: adds.then_some(amount) }
        })
    }

    /// Waits for a client's turn in its pair, where sessions are shared; the session's handle.
    async fn tick(&self, seat: &Seat) -> Result<Option<(CounterStep<'_>, Db)>, Error> {
        if !self.roams {
            return Ok(None);
        }
        let number = seat.client / 2;
        loop {
            {
                let mut pair = self.pairs.of(number);
                let db = pair.db.get_or_insert_with(|| seat.db.roaming()).clone();
                if !std::mem::replace(&mut pair.busy, true) {
                    return Ok(Some((CounterStep { pair: &self.pairs, number }, db)));
                }
            }
            seat.db.sleep(LOOK_AGAIN).await?;
        }
    }

    /// Runs the phases one after the other; what the hot counters showed, if they were read or
    /// asked.
    async fn run(
        &self,
        tx: &Tx,
        (db, memory): (&Db, &CounterMemory),
        recorder: &PhaseRecorder<'_>,
    ) -> Result<Shown, Error> {
        recorder.begin_attempt();
        let (space, catalog) = (db.space(SPACE)?, db.catalog_of_keys());
        let home = |key: &SmallBytes| {
            let key_partition = catalog.partition(space.id(), key);
            (0..key_partition)
                .find(|it| Static.are_colocated(*it, key_partition, &catalog))
                .unwrap_or(key_partition)
        };
        let mut hot = (Vec::new(), AskedAdds::default());
        for (group, phase) in recorder.phases.iter().enumerate() {
            let run = async |tx: &Tx| {
                let counters = phase.counters.iter().map(|at| memory.groups[group][*at].clone());
                let (mut shown, mut asked) = (Vec::new(), AskedAdds::default());
                match (phase.amount, self.delayed) {
                    (None, _) => {
                        shown = CounterHandle::get_many(tx, &counters.collect::<Vec<_>>()).await?;
                    }
                    (Some(amount), Some(how)) => {
                        let rows = counters.map(|it| it.row().clone());
                        let (counters, how) = (rows.enumerate(), (how, self.asks));
                        asked = add_deferred(tx, (space, amount), counters, how, home).await?;
                    }
                    (Some(amount), None) => {
                        for counter in counters {
                            counter.add(tx, amount).await?;
                        }
                    }
                }
                self.length.wait_for(db, phase.counters.len() as u32).await?;
                Ok((shown, asked))
            };
            let phase_shown = self.nesting.run(tx, run).await?;
            recorder.done(group, &phase_shown.0);
            if group == HOT {
                hot = phase_shown;
            }
        }
        Ok(hot)
    }

    /// A session has read hot counters, or added to them and asked: they never show less than
    /// before, and after an add more by that.
    fn judge(&self, seat: &Seat, all: &mut Seen, phase: &CounterPhase, shown: &[(usize, i64)]) {
        let mut ledger = self.ledgers.of(seat.client);
        for (place, shows) in shown {
            let counter = &phase.counters[*place];
            ledger.reads += 1;
            let seen = all.entry(*counter).or_default();
            if *shows < *seen + phase.amount.unwrap_or(0) {
                let complain = || format!("hot counter {counter} shows {shows} after {seen}");
                ledger.wrong_reads.add(complain);
            }
            *seen = (*shows).max(*seen);
        }
    }
}

fn added(phases: &[CounterPhase; 3]) -> Vec<Added> {
    let of = |(group, phase): (usize, &CounterPhase)| {
        let amount = phase.amount.unwrap_or(0);
        phase.counters.iter().map(move |counter| (group, *counter, amount)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = phases.iter().enumerate().flat_map(of).collect();
    all.retain(|(_, _, amount)| *amount > 0);
    all
}

impl Workload for Counters {
    type Memory = CounterMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let counters = (SPACE, SpaceOptions { index: Index::Hash, ..SpaceOptions::default() });
        std::iter::once(counters).chain(self.marks.space()).chain(self.nesting.space()).collect()
    }

    /// Absent counters show zero.
    async fn load(&self, _: &Db) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<CounterMemory, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        let groups = self.groups(seat.db.space(SPACE)?);
        let (reader, open) = (seat.db.read_only(), self.layer(&seat.db)?);
        Ok(CounterMemory { groups, reader, open, seen: BTreeMap::new() })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut CounterMemory) -> (Ended, u32) {
        if self.totals > 0.0 && seat.chance.percent(self.totals) {
            return totals::read(self, seat, memory).await;
        }
        let phases = self.draw(&mut seat.chance);
        let adds = added(&phases);
        let tick = match self.tick(seat).await {
            Ok(tick) => tick,
            Err(error) => return (Ended::Failed(error), 0),
        };
        let shared = tick.as_ref().map(|(_, db)| (db.clone(), db.read_only()));
        let (writer, reader) = match &shared {
            Some((writer, reader)) => (writer, reader),
            None => (&seat.db, &memory.reader),
        };
        let root = self.roots.begin();
        let recorder = PhaseRecorder { root: &root, phases: &phases, groups: self.group_of };
        let (db, marks) = &match adds.is_empty() {
            true => (root.handle(reader), self.marks.draw_reads(&mut seat.chance)),
            false => (root.handle(writer), self.marks.draw(&mut seat.chance)),
        };
        let counts = self.handlers && !phases[HOT].counters.is_empty();
        self.ledgers.of(seat.client).set_out(adds, counts);
        let (shown_values, recorded) = (&*memory, &recorder);
        let body = async |tx: &Tx| {
            let shown = self.run(tx, (db, shown_values), recorded).await?;
            marks::perform(tx, db, marks).await?;
            Ok(shown)
        };
        let (answer, attempts) = match &memory.open {
            Some(layer) => {
                let after = async |tx: &Tx| marks::perform(tx, db, marks).await;
                let named = self.named(memory, &phases);
                let writer = self.nesting.handle(seat.node, &root.handle(writer), "phases");
                let handlers = ChildHandlers { counts: counts.then_some(seat.client) };
                let layer = (layer, &writer, self.length);
                let how = (&recorder, handlers);
                let (answer, attempts) = open::run(layer, &named, how, after).await;
                let shown = |all| ((all, AskedAdds::default()), Results::default());
                (answer.map(shown), attempts)
            }
            None => {
                let db = self.nesting.handle(seat.node, db, "phases");
                transact_answering(&db, body).await
            }
        };
        let answer = answer.and_then(|((read, asked), results)| match asked.shown(&results) {
            Ok(shown_values) => {
                Ok(read.into_iter().enumerate().chain(shown_values).collect::<Vec<_>>())
            }
            // It was done, and nobody has told in time what it left.
            Err(Error::AnswerLost) => Ok(Vec::new()),
            Err(error) => Err(error),
        });
        if let Ok(shown) = &answer {
            match tick {
                Some(_) => {
                    let mut seen = std::mem::take(&mut self.pairs.of(seat.client / 2).seen);
                    self.judge(seat, &mut seen, &phases[HOT], shown);
                    self.pairs.of(seat.client / 2).seen = seen;
                }
                None => self.judge(seat, &mut memory.seen, &phases[HOT], shown),
            }
        }
        let ended = ended(answer);
        root.end(&ended);
        self.ledgers.of(seat.client).settle(&ended);
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let ended = match self.layer(db)? {
            Some(layer) => Some(check_finished(&layer, db).await?),
            None => None,
        };
        let space = db.space(SPACE)?;
        let groups = self.groups(space);
        let strict = db.strict().read_only();
        let mut shown = Vec::new();
        for group in &groups {
            let read = async |tx: &Tx| CounterHandle::get_many(tx, group).await;
            shown.push(strict.transact_here(read).await?);
        }
        let checks = ledger::check(&self.ledgers, &shown);
        let handled = match self.handlers {
            true => {
                let counted: Vec<Counter> =
                    (0..self.ledgers.clients()).map(|it| open::commits_of(space, it)).collect();
                let read = async |tx: &Tx| Counter::get_many(tx, &counted).await;
                Some(ledger::check_commits(&self.ledgers, &strict.transact_here(read).await?))
            }
            false => None,
        };
        Ok(checks.into_iter().chain(ended).chain(handled).collect())
    }

    fn notes(&self) -> Vec<String> {
        self.nesting.notes()
    }

    fn roots(&self) -> Option<&dyn RecordsRoots> {
        Some(self)
    }

    fn open_children(&self) -> Option<NestingCounts> {
        self.nesting.counts()
    }
}
