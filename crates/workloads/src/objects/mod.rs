//! The objects of the thesis on hierarchical deferred validation (Amaro 2018, chapter 4).
//!
//! There are many objects of one size, dealt to the nodes evenly. A transaction updates some of
//! them, each on another node: it reads an object and writes it back. Keys are drawn evenly, and
//! by [`PlacedKeys`], which controls on which nodes they are and which other clients use them. As
//! printed there are 800,000 objects of 1,000 bytes, transactions of 8 updates on 8 nodes, all
//! distributed, and nobody conflicts; these are the defaults. Everything else can be set: more
//! objects that are only read, writes that do not read, transactions that only read, transactions
//! that stay on the client's own node or below the lowest inner node of the tree above it, and how
//! many of the objects all clients share.
//!
//! What makes runs checkable: each object counts its updates, and a write that does not read leaves
//! its writer's name and begins the count anew.

mod checks;
mod ledger;
mod mix;
mod value;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use muesli::{Db, Error, Index, SmallBytes, Space, SpaceOptions, Tx};

use crate::check::Check;
use crate::loading::write_missing;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb, PartsTx};
use crate::placed_keys::PlacedKeys;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};
use ledger::ObjectBooks;
use mix::{DrawnObjects, ObjectMix, ObjectUse};
use value::{BlindWrite, HEADER_BYTES, StoredObject};

/// The space with the objects.
const SPACE: &str = "objects";

/// So many repositories are loaded side by side.
const LOADERS: u64 = 8;

/// What searches for faults use: few objects of few bytes, and some of everything.
pub const SMALL: &[&str] = &[
    "objects=600",
    "bytes=40",
    "updates=4",
    "reads=1",
    "blind=20",
    "readonly=25",
    "local=30",
    "subtree=30",
    "sharing=40",
    "hot=3",
];

/// What the objects take.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "objects",
        "800000",
        ParameterKind::Count(1, 100_000_000),
        "How many objects there are, on all nodes together.",
    ),
    Parameter::new(
        "bytes",
        "1000",
        ParameterKind::Count(HEADER_BYTES, 1_000_000),
        "Bytes of an object.",
    ),
    Parameter::new(
        "updates",
        "8",
        ParameterKind::Count(0, 1_000),
        "Objects that a transaction writes, each on another node as long as there are others.",
    ),
    Parameter::new(
        "reads",
        "0",
        ParameterKind::Count(0, 1_000),
        "Objects that a transaction reads besides, and does not write.",
    ),
    Parameter::new(
        "blind",
        "0",
        ParameterKind::Percent,
        "Share of the writes that do not read the object first.",
    ),
    Parameter::new(
        "readonly",
        "0",
        ParameterKind::Percent,
        "Share of transactions that read all their objects and write none.",
    ),
    Parameter::new(
        "local",
        "0",
        ParameterKind::Percent,
        "Share of transactions whose objects are all on the client's own node.",
    ),
    Parameter::new(
        "subtree",
        "0",
        ParameterKind::Percent,
        "Share of transactions that stay below the lowest inner node of the tree above that node.",
    ),
    Parameter::new(
        "subtrees",
        "0",
        ParameterKind::Count(0, 1_024),
        "A transaction over all nodes uses such below so many lowest inner nodes, the client's own \
         and others, in equal shares; 0: nodes are drawn evenly from all.",
    ),
    Parameter::new(
        "siblings",
        "0",
        ParameterKind::Count(0, 4_096),
        "Nodes below each lowest inner node of a tree, by their numbers, as subtree and subtrees \
         suppose it; 0: as the database's tree has it, or all nodes.",
    ),
    Parameter::new(
        "sharing",
        "0",
        ParameterKind::Percent,
        "Share of objects drawn from those that all clients share; others are the client's alone.",
    ),
    Parameter::new(
        "hot",
        "10",
        ParameterKind::Count(1, 100_000_000),
        "Objects of each node that all clients share.",
    ),
    Parameter::new(
        "one-by-one",
        "true",
        ParameterKind::Flag,
        "Whether a transaction reads its objects one after the other, and not all at once; with \
         nesting it does.",
    ),
    NESTING_BY_ROWS,
    PATIENCE,
];

/// The objects.
#[derive(Debug)]
pub struct Objects {
    total: u64,
    bytes: usize,
    clients: u32,
    hot: u64,
    siblings: usize,
    one_by_one: bool,
    /// Each object is a part.
    nesting: NestingPlan,
    mix: ObjectMix,
    /// Known as soon as there is a database.
    keys: OnceLock<PlacedKeys>,
    loaded: AtomicU64,
    books: ObjectBooks,
}

/// What a client remembers.
#[derive(Debug)]
pub struct ObjectsMemory {
    space: Space,
    writer: PartsDb,
    reader: PartsDb,
}

impl Objects {
    /// Objects with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<Objects, ParameterError> {
        let total = values.count("objects");
        let nesting = NestingPlan::seldom_open(values);
        Ok(Objects {
            total,
            bytes: values.count("bytes") as usize,
            clients,
            hot: values.count("hot"),
            siblings: values.count("siblings") as usize,
            one_by_one: values.flag("one-by-one") || !nesting.is_flat(),
            nesting,
            mix: ObjectMix::new(values)?,
            keys: OnceLock::new(),
            loaded: AtomicU64::new(0),
            books: ObjectBooks::new(total, clients),
        })
    }

    /// The keys of the objects, on the nodes where this run saw them first.
    fn keys(&self, db: &Db) -> Result<&PlacedKeys, Error> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let (space, catalog) = (db.space(SPACE)?, db.catalog_of_keys());
        let sharing = (self.clients, self.hot);
        let keys = PlacedKeys::new(&catalog, space.id(), self.total, sharing, self.siblings);
        self.mix.fits(&keys, self.clients).map_err(Error::Options)?;
        Ok(self.keys.get_or_init(|| keys))
    }

    /// Writes the objects of every `step`th repository from this one on.
    async fn load_some(&self, db: &Db, first: u64, step: u64) -> Result<(), Error> {
        let (keys, space) = (self.keys(db)?, db.space(SPACE)?);
        for range in (first..keys.ranges()).step_by(step as usize) {
            let rows = keys.numbers_in(range).map(|number| {
                self.loaded.fetch_add(1, Ordering::Relaxed);
                (keys.key(number), StoredObject::first(number).encode(self.bytes))
            });
            write_missing(db, space, rows).await?;
        }
        Ok(())
    }

    /// Reads and writes what was drawn, as a part of a transaction.
    async fn attempt(
        &self,
        tx: PartsTx<'_>,
        (space, keys): (Space, &PlacedKeys),
        drawn: &DrawnObjects,
        write: BlindWrite,
    ) -> Result<(), Error> {
        let read = drawn.iter().filter(|it| it.1 != ObjectUse::Blind && !self.one_by_one);
        let read: Vec<_> = read.map(|it| keys.key(it.0)).collect();
        let mut at_once = Vec::new().into_iter().peekable();
        if !read.is_empty() {
            at_once = tx.get_many(space, read).await?.into_iter().peekable();
        }
        for &(number, used) in drawn {
            let (key, read) = (&keys.key(number), at_once.next_if(|_| used != ObjectUse::Blind));
            let access = async |tx: &Tx| {
                let object = match used {
                    ObjectUse::Blind => StoredObject::written(number, write),
                    ObjectUse::Read | ObjectUse::Update => {
                        let value = match &read {
                            Some(value) => value.clone(),
                            None => tx.get(space, key.clone()).await?,
                        };
                        self.decode(number, value.as_ref())?.updated()
                    }
                };
                if used != ObjectUse::Read {
                    tx.put(space, key.clone(), object.encode(self.bytes)).await?;
                }
                Ok(())
            };
            self.nesting.part(tx, access).await?;
        }
        Ok(())
    }

    /// The object that was read under this number.
    fn decode(&self, number: u64, value: Option<&SmallBytes>) -> Result<StoredObject, Error> {
        let object = StoredObject::decode(value, self.bytes)?;
        if object.number == number {
            return Ok(object);
        }
        Err(Error::Codec(format!("object {number} is {object:?}")))
    }
}

impl Workload for Objects {
    type Memory = ObjectsMemory;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let partitioning = PlacedKeys::partitioning(repositories);
        vec![(SPACE, SpaceOptions { index: Index::Hash, partitioning })]
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let loaders = self.keys(db)?.ranges().min(LOADERS);
        let parts = (0..loaders).map(|first| self.load_some(db, first, loaders));
        join_all(parts).await.into_iter().collect()
    }

    fn load_progress(&self) -> Option<(u64, u64)> {
        Some((self.loaded.load(Ordering::Relaxed).min(self.total), self.total))
    }

    fn begin(&self, seat: &mut Seat) -> Result<ObjectsMemory, Error> {
        self.books.begin_incarnation(seat.client);
        self.keys(&seat.db)?;
        let writer = self.nesting.parts_handle(seat.node, &seat.db, "updates")?;
        let reader = self.nesting.parts_handle(seat.node, &seat.db.read_only(), "reads")?;
        Ok(ObjectsMemory { space: seat.db.space(SPACE)?, writer, reader })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut ObjectsMemory) -> (Ended, u32) {
        let keys = match self.keys(&seat.db) {
            Ok(keys) => keys,
            Err(error) => return (Ended::Failed(error), 1),
        };
        let drawn = &self.mix.draw(seat.client, keys, &mut seat.chance);
        let first = keys.node_of(drawn[0].0);
        seat.several = drawn.iter().any(|it| keys.node_of(it.0) != first);
        let writes = drawn.iter().any(|it| it.1 != ObjectUse::Read);
        let db = if writes { &memory.writer } else { &memory.reader };
        let write = self.books.set_out(seat.client, drawn);
        let place = (memory.space, keys);
        let (answer, attempts) =
            db.transact(async |tx| self.attempt(tx, place, drawn, write).await).await;
        let ended = ended(answer);
        self.books.settle(seat.client, &ended);
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}

#[cfg(test)]
mod tests;
