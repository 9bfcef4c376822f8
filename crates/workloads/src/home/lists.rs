//! Sorted sets of numbers on home copies, as linked lists.
//!
//! A client looks for a key in its own list, adds a drawn key, and with its next update removes it
//! again, so that the size stays level. An added key is looked for by a walk from the head: a read
//! for each element before it. An add writes the row of the element before it, and its own; a
//! remove writes the row before it and leaves its own as it was. Some adds are *remote*: they walk
//! another copy, write a private key there and count as without effect, as do adds of keys that
//! are there.
//!
//! The port's skip list draws a height and never uses it, so that it is a linked list, too; but a
//! quarter of its adds writes a row with the list's level, which every operation reads first
//! (`structure=skip-list`). This, too, decides who conflicts with whom, so it is kept.

use std::collections::{BTreeMap, BTreeSet};

use muesli::{Db, Error, SmallBytes, Space, SpaceOptions, Tx};

use super::ledger::{Ledgers, WriterTag};
use super::rows::{eight_bytes, key, number};
use super::{HOMES, Homes, PRIVATE};
use crate::chance::Chance;
use crate::check::{Check, Complaints};
use crate::loading::write_missing;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb, PartsTx};
use crate::per_client::PerClient;
use crate::sets::ledger::{SetChange, SetLedger as Changes};
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};

const SPACE: &str = "home-lists";
/// Kinds of rows: the root, which never changes; the level; and each element's next one.
const ROOT: u8 = b's';
const LEVEL: u8 = b'l';
const NEXT: u8 = b'n';
/// The element before all others, and the one after them. A key is the element one above it.
const HEAD: u32 = 0;
const END: u32 = u32::MAX;
/// How many of the port's adds write the level.
const RAISES: f64 = 25.0;
/// Which of the ledger's sums counts writes of levels.
const LEVELS: usize = 0;

/// What lists on home copies take.
pub const PARAMETERS: &[Parameter] = &[
    HOMES,
    Parameter::new(
        "keys",
        "65535",
        ParameterKind::Count(2, 100_000_000),
        "How many keys there are to choose from.",
    ),
    Parameter::new(
        "initial",
        "256",
        ParameterKind::Count(0, 100_000),
        "How many of them are in each list at first; at most half.",
    ),
    Parameter::new(
        "reads",
        "50",
        ParameterKind::Percent,
        "Share of transactions that only look whether a key is there.",
    ),
    Parameter::new("remote", "10", ParameterKind::Percent, "Share of adds that walk another copy."),
    Parameter::new(
        "structure",
        "skip-list",
        ParameterKind::Choice(&["skip-list", "list"]),
        "Whether a quarter of the adds writes a row that all read first, or there is none.",
    ),
    NESTING_BY_ROWS,
    PATIENCE,
];

/// Lists on home copies.
#[derive(Debug)]
pub struct HomeLists {
    homes: Homes,
    keys: u32,
    /// The elements that are there at first, ascending.
    initial: Vec<u32>,
    reads: f64,
    remote: f64,
    has_level: bool,
    nesting: NestingPlan,
    ledgers: Ledgers,
    changes: PerClient<Changes>,
}

/// What a client remembers.
#[derive(Debug)]
pub struct HomeListMemory {
    space: Space,
    writer: PartsDb,
    reader: PartsDb,
    /// The element that it drew last.
    last: u32,
    /// Whether it added that, so that it removes it next.
    added: bool,
}

/// An update with its inputs.
#[derive(Clone, Copy, Debug)]
struct ListUpdate {
    client: u32,
    /// The number of its writes.
    number: u64,
    home: u32,
    element: u32,
    adds: bool,
    remote: bool,
    /// Whether it writes the level, if it adds something.
    raises: bool,
}

impl HomeLists {
    /// With these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> HomeLists {
        let keys = values.count("keys") as u32;
        let mut chance = Chance::new(0, 0, 0);
        let many = values.count("initial").min(u64::from(keys) / 2) as usize;
        let mut initial = BTreeSet::new();
        while initial.len() < many {
            initial.insert(chance.between(1, keys.into()) as u32);
        }
        HomeLists {
            homes: Homes::new(values),
            keys,
            initial: initial.into_iter().collect(),
            reads: values.number("reads"),
            remote: values.number("remote"),
            has_level: values.word("structure") == "skip-list",
            nesting: NestingPlan::seldom_open(values),
            ledgers: Ledgers::new(clients),
            changes: PerClient::new(clients, |_| Changes::default()),
        }
    }

    /// What every operation reads before it walks; the level.
    async fn enter(&self, tx: &Tx, space: Space, home: u32) -> Result<i64, Error> {
        let root = tx.get(space, key(home, ROOT, 0)).await?;
        root.ok_or_else(|| Error::Codec(format!("copy {home} has no root")))?;
        if !self.has_level {
            return Ok(0);
        }
        number(tx.get(space, key(home, LEVEL, 0)).await?.as_ref(), "a level")
    }

    /// The same, in a part of its own.
    async fn enter_apart(&self, tx: PartsTx<'_>, space: Space, home: u32) -> Result<i64, Error> {
        self.nesting.part(tx, async |tx| self.enter(tx, space, home).await).await
    }

    /// The last element below `element`, and the one that follows it.
    async fn find(
        &self,
        tx: &Tx,
        space: Space,
        (home, element): (u32, u32),
    ) -> Result<(u32, u32), Error> {
        let (mut at, mut next) = (HEAD, next(tx, space, home, HEAD).await?);
        while next < element {
            assert!(at < next, "a list ascends");
            at = next;
            next = self::next(tx, space, home, at).await?;
        }
        Ok((at, next))
    }

    async fn look(&self, seat: &Seat, memory: &HomeListMemory) -> (Ended, u32) {
        let (home, element) = (self.homes.of(seat.client), memory.last);
        let (answer, attempts) = memory
            .reader
            .transact(async |tx| {
                self.enter_apart(tx, memory.space, home).await?;
                let walk = async |tx: &Tx| self.find(tx, memory.space, (home, element)).await;
                Ok(self.nesting.part(tx, walk).await?.1 == element)
            })
            .await;
        // Nobody else removes what a client has added, and its session sees it.
        if answer == Ok(false) && memory.added {
            let complain = || format!("client {} does not find its own {element}", seat.client);
            self.ledgers.of(seat.client).wrong.add(complain);
        }
        (ended(answer), attempts)
    }

    fn draw_update(&self, seat: &mut Seat, memory: &mut HomeListMemory) -> ListUpdate {
        let (client, chance) = (seat.client, &mut seat.chance);
        let own = self.homes.of(client);
        let (elsewhere, to) =
            (chance.percent(self.remote), chance.below(self.homes.0.into()) as u32);
        let raises = self.has_level && chance.percent(RAISES);
        let number = self.ledgers.of(client).next_number();
        let adds = !memory.added;
        let remote = adds && elsewhere;
        if adds {
            memory.last = chance.between(1, self.keys.into()) as u32;
        }
        let home = if remote { to } else { own };
        ListUpdate { client, number, home, element: memory.last, adds, remote, raises }
    }

    /// Runs an update; whether it changed the list.
    async fn update(&self, memory: &HomeListMemory, update: ListUpdate) -> (Ended, u32, bool) {
        let space = memory.space;
        let (answer, attempts) = memory
            .writer
            .transact(async |tx| {
                self.ledgers.of(update.client).begin_attempt();
                self.changes.of(update.client).set_out(Vec::new());
                self.attempt(tx, space, update).await
            })
            .await;
        let changed = answer == Ok(true);
        let ended = ended(answer);
        self.ledgers.of(update.client).settle(&ended);
        self.changes.of(update.client).settle(&ended);
        (ended, attempts, changed)
    }

    async fn attempt(
        &self,
        tx: PartsTx<'_>,
        space: Space,
        update: ListUpdate,
    ) -> Result<bool, Error> {
        let ListUpdate { client, home, element, adds, .. } = update;
        let level = self.enter_apart(tx, space, home).await?;
        let walk = async |tx: &Tx| self.find(tx, space, (home, element)).await;
        let (before, after) = self.nesting.part(tx, walk).await?;
        let is_there = after == element;
        if update.remote || is_there == adds {
            let key = key(home, PRIVATE, client);
            self.ledgers.of(client).write(key.clone(), update.number);
            let value = WriterTag { writer: client + 1, number: update.number }.value(0);
            let write = async |tx: &Tx| tx.put(space, key.clone(), value.clone()).await;
            self.nesting.rest(tx, write).await?;
            return Ok(false);
        }
        let raises = adds && update.raises;
        if raises {
            self.ledgers.of(client).add(LEVELS, 1);
        }
        let by = if adds { 1 } else { -1 };
        let change = SetChange { structure: home as usize, key: element.into(), by };
        self.changes.of(client).set_out(vec![change]);
        let write = async |tx: &Tx| {
            if raises {
                tx.put(space, key(home, LEVEL, 0), eight_bytes(level + 1)).await?;
            }
            let follows = match adds {
                true => {
                    tx.put(space, key(home, NEXT, element), link(after)).await?;
                    element
                }
                false => next(tx, space, home, element).await?,
            };
            tx.put(space, key(home, NEXT, before), link(follows)).await
        };
        self.nesting.rest(tx, write).await?;
        Ok(true)
    }
}

/// The row of an element before `next`.
fn link(next: u32) -> SmallBytes {
    SmallBytes::new(&next.to_le_bytes())
}

/// The element after one that is in the list.
async fn next(tx: &Tx, space: Space, home: u32, element: u32) -> Result<u32, Error> {
    let row = tx.get(space, key(home, NEXT, element)).await?;
    let next = row.as_ref().and_then(|row| row.as_slice().try_into().ok());
    let next = next.map(u32::from_le_bytes).filter(|next| *next > element);
    next.ok_or_else(|| Error::Codec(format!("copy {home}: {element} is followed by {row:?}")))
}

impl Workload for HomeLists {
    type Memory = HomeListMemory;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        vec![(SPACE, self.homes.space(repositories))]
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let space = db.space(SPACE)?;
        for home in self.homes.all() {
            let fixed =
                [(key(home, ROOT, 0), eight_bytes(0)), (key(home, LEVEL, 0), eight_bytes(0))];
            let froms = std::iter::once(HEAD).chain(self.initial.iter().copied());
            let tos = self.initial.iter().copied().chain([END]);
            let links = froms.zip(tos).map(|(from, to)| (key(home, NEXT, from), link(to)));
            write_missing(db, space, fixed.into_iter().chain(links)).await?;
        }
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<HomeListMemory, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        self.changes.of(seat.client).begin_incarnation();
        let space = seat.db.space(SPACE)?;
        let writer = self.nesting.parts_handle(seat.node, &seat.db, "updates")?;
        let reader = self.nesting.parts_handle(seat.node, &seat.db.read_only(), "looks")?;
        Ok(HomeListMemory { space, writer, reader, last: 1, added: false })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut HomeListMemory) -> (Ended, u32) {
        if seat.chance.percent(self.reads) {
            return self.look(seat, memory).await;
        }
        let update = self.draw_update(seat, memory);
        let (ended, attempts, changed) = self.update(memory, update).await;
        if ended == Ended::Committed && !update.adds && !changed {
            let complain = || format!("{update:?} found nothing to remove");
            self.ledgers.of(seat.client).wrong.add(complain);
        }
        // What could not be removed is there still, and is removed next time.
        let gave_up = matches!(ended, Ended::Failed(_));
        memory.added = if update.adds { changed } else { gave_up };
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let (space, strict) = (db.space(SPACE)?, db.strict().read_only());
        let (mut sound, mut contents) = (Complaints::default(), Complaints::default());
        let (mut levels, mut size) = (0, 0);
        let [raised, _] = self.ledgers.close();
        for mut changes in self.changes.all() {
            changes.begin_incarnation();
        }
        for home in self.homes.all() {
            let walk = async |tx: &Tx| {
                let level = self.enter(tx, space, home).await?;
                let (mut elements, mut at) = (Vec::new(), next(tx, space, home, HEAD).await?);
                while at != END {
                    elements.push(at);
                    at = next(tx, space, home, at).await?;
                }
                Ok((level, elements))
            };
            match strict.transact_here(walk).await {
                Ok((level, elements)) => {
                    levels += level;
                    size += elements.len();
                    self.judge(home, &elements, &mut contents);
                }
                Err(Error::Codec(broken)) => sound.add(|| broken),
                Err(error) => return Err(error),
            }
        }
        let lists = format!("{} lists, {size} elements", self.homes.0);
        Ok(vec![
            Check::none_wrong("lists are sound", &sound, lists),
            Check::none_wrong("contents are the committed changes", &contents, String::new()),
            Check {
                name: "levels count the adds that wrote them",
                ok: raised.contains(&levels),
                details: format!("{levels} of {raised:?}"),
            },
            self.ledgers.check_writes(db, space).await?,
            self.ledgers.check_reads(),
        ])
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}

impl HomeLists {
    /// Whether a list holds what the books say. They are closed.
    fn judge(&self, home: u32, elements: &[u32], wrong: &mut Complaints) {
        let mut balances: BTreeMap<u64, i64> =
            elements.iter().map(|it| ((*it).into(), 0)).collect();
        for element in &self.initial {
            *balances.entry((*element).into()).or_default() += 1;
        }
        let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
        for changes in self.changes.all() {
            let list = home as usize;
            for ((_, element), by) in changes.sure.range((list, 0)..(list + 1, 0)) {
                *balances.entry(*element).or_default() += by;
            }
            for change in changes.perhaps.iter().filter(|change| change.structure == list) {
                let open = if change.by > 0 { &mut added } else { &mut removed };
                open.insert(change.key);
            }
        }
        let there: BTreeSet<u64> = elements.iter().map(|it| (*it).into()).collect();
        for (element, balance) in balances {
            let found = i64::from(there.contains(&element));
            let fits = (found == balance)
                || (found > balance && added.contains(&element))
                || (found < balance && removed.contains(&element));
            if !fits {
                wrong.add(|| {
                    format!("copy {home}: {element} is there {found} times, not {balance}")
                });
            }
        }
    }
}
